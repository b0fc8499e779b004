"""`specopt plan`: from two configs and measured passes to a judged plan, with everything assumed
named as such.
"""

from __future__ import annotations

import json
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from helpers.command_line import CommandLine

from specopt.api.generate import FAMILIES

SHIPPED = files("specopt.instances") / "data" / "measured"
TABLE = str(SHIPPED / "cpu-pair.csv")
CONFIGS = {
    name: str(SHIPPED / f"{file}.config.json")
    for name, file in (("draft", "draft-15m"), ("verify", "verify-100m"))
}
MODELS = " ".join(f"--{name}={path}" for name, path in CONFIGS.items())
HAVE = f"{MODELS} --runtimes {TABLE}"
FITTED = (
    f"fit {TABLE} --x new_tokens --y seconds_median --batch batch --cached"
    " cached_tokens --draft model=draft-15m --verify model=verify-100m"
)
REQUESTS = "arrival_seconds,input_tokens,output_tokens\n0,40,5\n1,10,8\n2,90,3\n"
ASSUMED = {
    "serving-latency": {"acceptance_rate", "max_speculation_length", "output_lengths"},
    "verification-batch": {"now_seconds", "expected_tokens", "deadline_seconds"},
    "prompt-chunking": {"background_tokens", "message_overhead_seconds"},
    "fair-goodput": {"acceptance_rates", "budget_tokens", "per"},
}
"""By kind: what neither models, passes, trace, link nor memory say."""

ACCEPTANCE: dict[str, set[str]] = {
    "serving-latency": {"acceptance_rate"},
    "verification-batch": {"expected_tokens"},
    "prompt-chunking": set(),
    "fair-goodput": {"acceptance_rates"},
}
"""By kind: those of them that rates of acceptance say."""


def planned(cli: CommandLine, line: str) -> dict[str, Any]:
    """Return what the command says in JSON."""
    data: dict[str, Any] = cli(f"plan {line} --json").json
    return data


@pytest.fixture
def trace(tmp_path: Path) -> str:
    """Return a file of three requests."""
    path = tmp_path / "trace.csv"
    path.write_text(REQUESTS)
    return str(path)


@pytest.mark.parametrize("kind", ASSUMED)
def test_every_value_is_known_or_named_as_assumed(
    kind: str, trace: str, tmp_path: Path, cli: CommandLine
) -> None:
    """Tests that all fields are listed, the assumed ones as the family has them, and that the judge
    takes the plan.
    """
    problem, result = tmp_path / "problem.json", tmp_path / "result.json"
    have = f"{HAVE} --trace {trace} --link 20,30 --memory 2 --for {kind} --time-limit 20"
    data = planned(cli, f"{have} --problem {problem} -o {result}")
    cli(f"evaluate {problem} {result}")
    found = json.loads(problem.read_text())
    assert {one["name"] for one in data["values"]} == set(found) - {"format", "kind", "notes"}
    assumed = {one["name"]: one["source"] for one in data["values"] if one["assumed"]}
    assert set(assumed) == ASSUMED[kind]
    (family,) = set(assumed.values())
    size = (
        {"tasks": 3}
        if kind == "serving-latency"
        else {"requests": 3}
        if kind == "verification-batch"
        else {}
    )
    drawn = FAMILIES[family].generate(seed=0, **size).to_dict()
    assert all(found[name] == drawn[name] for name in assumed)
    assert data["judged"]["feasible"]
    assert data["judged"]["objective"] == data["result"]["objective"]
    assert ("--memory: the model has no memory" in data["unused"]) == (
        kind in ("prompt-chunking", "fair-goodput")
    )


@pytest.mark.parametrize("kind", ASSUMED)
def test_acceptance_is_known_where_it_is_given(
    kind: str, trace: str, tmp_path: Path, cli: CommandLine
) -> None:
    """Tests that rates of acceptance take the place of what would be assumed, and nothing is asked
    twice.
    """
    rates = tmp_path / "rates.json"
    rates.write_text('{"acceptance_rate": 0.5}')
    have = f"{HAVE} --trace {trace} --link 20,30 --memory 2 --for {kind} --time-limit 20"
    data = planned(cli, f"{have} --acceptance {rates}")
    assert {one["name"] for one in data["values"] if one["assumed"]} == ASSUMED[kind] - ACCEPTANCE[
        kind
    ]
    assert not [text for text in data["measure_next"] if "acceptance" in text]
    if kind == "serving-latency":
        assert data["problem"]["acceptance_rate"] == pytest.approx(0.5, abs=1e-12)


def test_a_table_gives_what_its_fit_gives(trace: str, tmp_path: Path, cli: CommandLine) -> None:
    """Tests that a table of measured passes leads to the problem that its own fit leads to."""
    fitted = tmp_path / "runtimes.json"
    models = " ".join(f"--{name}-model={path}" for name, path in CONFIGS.items())
    cli(f"{FITTED} {models} --form roofline -o {fitted}")
    rest = f"--trace {trace} --for serving-latency --time-limit 20"
    one, other = (
        planned(cli, f"{MODELS} --runtimes {file} {rest}")["problem"]
        for file in (TABLE, str(fitted))
    )
    assert one == other


def test_an_engine_gets_what_export_gives_it(tmp_path: Path, cli: CommandLine) -> None:
    """Tests that one command writes the configuration that fit and export write, in an engine's own
    words.
    """
    fitted, rates, own, theirs = (
        tmp_path / name for name in ("fit.json", "rates.json", "own.json", "theirs.json")
    )
    rates.write_text('{"acceptance_rate": 0.7}')
    cli(f"{FITTED} --form table -o {fitted}")
    for engine, version in (
        ("vllm", ""),
        ("sglang", ""),
        ("llama.cpp", ""),
        ("tensorrt-llm", "--engine-version=1.2"),
    ):
        common = f"--acceptance {rates} {version}"
        cli(f"export {engine} --runtime {fitted} {common} -o {theirs}")
        shown = cli(f"plan {HAVE} --for {engine} {common} -o {own}").out
        assert json.loads(own.read_text()) == json.loads(theirs.read_text())
    _, _, advice = shown.rpartition("Measure next:")
    assert "context_tokens: --trace FILE" in advice and "zero_draft_cost" in advice


def test_an_unknown_acceptance_is_a_range(tmp_path: Path, cli: CommandLine) -> None:
    """Tests that the break-even comes first, divides plans that speculate from others, and limits
    hold 0.5 to 0.9.
    """
    data = planned(cli, f"{HAVE} --for vllm")
    assert data["values"][0]["name"] == "acceptance"
    known = data["acceptance"]
    assert data["values"][0]["text"].startswith(
        f"drafts pay off above {known['break_even']:.2f}; 0.7"
    )
    assert known["speedup"]["0.5"] < known["speedup"]["0.9"]
    rates = tmp_path / "rates.json"
    for rate, pays in ((known["break_even"] + 0.01, True), (known["break_even"] - 0.01, False)):
        rates.write_text(json.dumps({"acceptance_rate": rate}))
        found = planned(cli, f"{HAVE} --for vllm --acceptance {rates}")
        assert (found["config"] is not None) == pays
    for row in data["ranges"]:
        assert row["speedup_low"] < row["speedup"] < row["speedup_high"]


def test_draft_lengths_are_multiples_of_what_heads_predict(
    tmp_path: Path, cli: CommandLine
) -> None:
    """Tests that vLLM is given no length that it refuses, and other engines what they take."""
    config = tmp_path / "draft-15m.config.json"
    config.write_text(json.dumps(json.loads(Path(CONFIGS["draft"]).read_text()) | {"n_predict": 4}))
    have = f"--draft {config} --verify {CONFIGS['verify']} --runtimes {TABLE}"
    data = planned(cli, f"{have} --for vllm")
    assert {row["num_speculative_tokens"] for row in data["ranges"]} <= {0, 4, 8}
    assert data["config"]["num_speculative_tokens"] % 4 == 0
    assert {"n_predict"} <= {one["name"] for one in data["values"]}
    free = planned(cli, f"{have} --for sglang")
    assert free["config"]["speculative_num_steps"] % 4 != 0


def test_memory_limits_the_batch_of_an_engine(cli: CommandLine) -> None:
    """Tests that no batch is recommended whose caches do not fit beside the weights."""
    data = planned(cli, f"{HAVE} --for vllm --memory 0.26")
    (batch,) = [int(one["text"]) for one in data["values"] if one["name"] == "largest batch"]
    assert 1 <= batch < 4
    assert data["ranges"][-1]["batch"][1] == batch


def test_what_is_set_is_not_assumed(trace: str, cli: CommandLine) -> None:
    """Tests that a field of one's own replaces the family's, and is known."""
    rest = f"--trace {trace} --tasks 2 --for serving-latency --time-limit 20"
    data = planned(cli, f"{HAVE} {rest} --set max_speculation_length=3")
    assert data["problem"]["max_speculation_length"] == 3
    assert len(data["problem"]["input_tokens"]) == 2
    (value,) = [one for one in data["values"] if one["name"] == "max_speculation_length"]
    assert (value["source"], value["assumed"]) == ("--set", False)


def test_the_page_says_what_is_assumed_and_what_comes_next(trace: str, cli: CommandLine) -> None:
    """Tests that a reader sees assumptions with their paper before the plan, and advice after
    it.
    """
    have = f"{HAVE} --trace {trace} --for serving-latency --time-limit 20"
    text = cli(f"plan {have}").out
    order = [
        "values are assumed",
        "draft_memory_bytes",
        "paper 1",
        "optimal",
        "judged",
        "Measure next",
        "--memory GB",
    ]
    places = [text.index(words) for words in order]
    assert places == sorted(places)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("--for cooking", "--for: expected one of serving-latency, "),
        ("--for draft-control", "--for: expected one of serving-latency, "),
        ("--for vllm --link fast", "--link: expected MBITS or MBITS,RTT_MS"),
        ("--for vllm --link -3", "--link: expected MBITS or MBITS,RTT_MS"),
        ("--for vllm --tasks 3", "--tasks: expected an integer >= 1 together with --trace"),
        (
            "--for vllm --set bandwidth_hz=1",
            "--set: expected --for with a kind of problem, got --for vllm",
        ),
        ("--for vllm --memory 0.1", "--memory: expected enough for the weights"),
        ("--for vllm --memory -1", "--memory: expected"),
        ("--for tensorrt-llm", "version"),
        (
            "--for fair-goodput --engine-version 1",
            "--engine-version: expected --for with an engine",
        ),
        (
            "--for verification-batch --memory 0.1",
            "memory: expected more than ",
        ),
    ],
)
def test_bad_usage_is_one_message(arguments: str, message: str, cli: CommandLine) -> None:
    """Tests that what cannot be planned exits with 2 and says what was expected."""
    error = cli(f"plan {HAVE} {arguments}", 2).err
    assert message in error and error.count("\n") == 1


def test_passes_of_other_models_are_refused(tmp_path: Path, cli: CommandLine) -> None:
    """Tests that configs and measured passes belong together, in files of runtimes and in
    tables.
    """
    runtime = {"seconds_per_flop": 1e-12, "overhead_seconds": 0.01}
    own = tmp_path / "own.json"
    own.write_text(
        json.dumps(
            {
                "draft": {"runtime": runtime, "model": {"layers": 2, "hidden": 64, "ffn": 128}},
                "verify": runtime,
            }
        )
    )
    assert (
        "draft: expected passes of draft-15m, got passes of another model"
        in cli(f"plan {MODELS} --runtimes {own} --for serving-latency", 2).err
    )
    swapped = f"--draft {CONFIGS['verify']} --verify {CONFIGS['draft']}"
    table = tmp_path / "table.csv"
    table.write_text(
        "".join(
            row
            for row in Path(TABLE).read_text().splitlines(True)
            if not row.startswith("draft-15m")
        )
    )
    cli.refuses(f"plan {swapped} --runtimes {table} --for vllm", "draft-15m")


def test_single_fits_feed_export(tmp_path: Path, cli: CommandLine) -> None:
    """Tests that two single fits make the table that the fit of the pair makes, and that a pair
    takes no second one.
    """
    rates = tmp_path / "rates.json"
    rates.write_text('{"acceptance_rate": 0.7}')
    paths = {name: str(tmp_path / f"{name}.json") for name in ("draft", "verify", "pair")}
    for name, rows in (("draft", "model=draft-15m"), ("verify", "model=verify-100m")):
        cli(f"{FITTED.partition(' --draft')[0]} --where {rows} --form table -o {paths[name]}")
    cli(f"{FITTED} --form table -o {paths['pair']}")
    said = []
    both = f"--runtime {paths['verify']} --draft-runtime {paths['draft']}"
    for given in (both, f"--runtime {paths['pair']}"):
        said.append(cli(f"export vllm {given} --acceptance {rates} --json").json)
    assert said[0] == said[1]
    cli.refuses(
        f"export vllm {both} --runtime {paths['pair']} --acceptance {rates}",
        "--draft-runtime: this option requires a single fit",
    )
    cli.refuses(
        f"export vllm --runtime {paths['verify']} --acceptance {rates}",
        "draft: required field is missing",
    )
    for wrong in ("--logits all", "--form table --errors relative"):
        cli.refuses(f"{FITTED} {wrong}", "specopt: --")


def test_without_a_table_of_passes(cli: CommandLine) -> None:
    """Tests that it is said how to get a table, and that peaks of the machine stand for one, with a
    wide band; not both.
    """
    said = cli(f"plan {MODELS} --for vllm", 2).err
    assert "`specopt measure CONFIG -o TABLE`" in said and "--peak TFLOPS,GB/s" in said
    cli.refuses(f"plan {HAVE} --peak 10,200 --for vllm", "give this option, or --peak")
    for wrong in ("10", "10,0", "fast,200", "10,200,1"):
        cli.refuses(f"plan {MODELS} --peak {wrong} --for vllm", "--peak: expected")
    data = planned(cli, f"{MODELS} --peak 10,200 --for vllm")
    first = data["ranges"][0]
    assert first["speedup_low"] < 0.5 * first["speedup"] < 0.5 * first["speedup_high"]
    assert {one["source"] for one in data["values"] if "passes" in one["name"]} == {"--peak 10,200"}


def test_one_mode_of_golden_lengths(tmp_path: Path, cli: CommandLine) -> None:
    """Tests that of a file with two modes `--mode` takes one, and that the message names it."""
    path = tmp_path / "golden.json"
    lengths = {"1": 1.7, "2": 2.2, "3": 2.5}
    path.write_text(json.dumps({"m": {"thinking_on": lengths, "thinking_off": lengths}}))
    have = f"{HAVE} --for vllm --acceptance {path}"
    assert "got several (thinking_off, thinking_on); select one with --mode" in (
        cli(f"plan {have}", 2).err
    )
    data = planned(cli, f"{have} --mode thinking_on")
    assert data["max_length"] <= 3


def test_passes_of_llama_bench(cli: CommandLine) -> None:
    """Tests that the CSV of llama-bench is a table of passes of both models."""
    table = str(Path(__file__).parents[1] / "data" / "field" / "llama-bench.csv")
    data = planned(cli, f"{MODELS} --runtimes {table} --for llama.cpp")
    assert data["config"]["--spec-draft-n-max"] >= 1
    texts = {one["text"] for one in data["values"] if "passes" in one["name"]}
    assert "batches 1, new tokens 1-16, cached tokens 0-4096" in texts
