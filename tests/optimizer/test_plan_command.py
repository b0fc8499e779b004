"""`specopt plan`: from two configs and measured passes to a judged plan, with everything assumed
named as such.
"""

from __future__ import annotations

import json
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

from specopt.api.generate import FAMILIES
from specopt.commands.cli import run

SHIPPED = files("specopt.instances") / "data" / "measured"
TABLE = str(SHIPPED / "cpu-pair.csv")
CONFIGS = {
    name: str(SHIPPED / f"{file}.config.json")
    for name, file in (("draft", "draft-15m"), ("verify", "verify-100m"))
}
MODELS = [f"--{name}={path}" for name, path in CONFIGS.items()]
HAVE = [*MODELS, "--runtimes", TABLE]
FITTED = [
    "fit",
    TABLE,
    "--x",
    "new_tokens",
    "--y",
    "seconds_median",
    "--batch",
    "batch",
    "--cached",
    "cached_tokens",
    "--draft",
    "model=draft-15m",
    "--verify",
    "model=verify-100m",
]
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


def planned(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    """Return what the command says in JSON."""
    assert run(["plan", *arguments, "--json"]) == 0
    data: dict[str, Any] = json.loads(capsys.readouterr().out)
    return data


@pytest.fixture
def trace(tmp_path: Path) -> str:
    """Return a file of three requests."""
    path = tmp_path / "trace.csv"
    path.write_text(REQUESTS)
    return str(path)


@pytest.mark.parametrize("kind", ASSUMED)
def test_every_value_is_known_or_named_as_assumed(
    kind: str, trace: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Tests that all fields are listed, the assumed ones as the family has them, and that the judge
    takes the plan.
    """
    problem = tmp_path / "problem.json"
    result = tmp_path / "result.json"
    have = [
        *HAVE,
        "--trace",
        trace,
        "--link",
        "20,30",
        "--memory",
        "2",
        "--for",
        kind,
        "--time-limit",
        "20",
    ]
    data = planned(capsys, *have, "--problem", str(problem), "-o", str(result))
    assert run(["evaluate", str(problem), str(result)]) == 0
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
    kind: str, trace: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Tests that rates of acceptance take the place of what would be assumed, and nothing is asked
    twice.
    """
    rates = tmp_path / "rates.json"
    rates.write_text('{"acceptance_rate": 0.5}')
    have = [
        *HAVE,
        "--trace",
        trace,
        "--link",
        "20,30",
        "--memory",
        "2",
        "--for",
        kind,
        "--time-limit",
        "20",
    ]
    data = planned(capsys, *have, "--acceptance", str(rates))
    assert {one["name"] for one in data["values"] if one["assumed"]} == ASSUMED[kind] - ACCEPTANCE[
        kind
    ]
    assert not [text for text in data["measure_next"] if "acceptance" in text]
    if kind == "serving-latency":
        assert data["problem"]["acceptance_rate"] == pytest.approx(0.5, abs=1e-12)


def test_a_table_gives_what_its_fit_gives(
    trace: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Tests that a table of measured passes leads to the problem that its own fit leads to."""
    fitted = tmp_path / "runtimes.json"
    models = [f"--{name}-model={path}" for name, path in CONFIGS.items()]
    assert run([*FITTED, *models, "--form", "roofline", "-o", str(fitted)]) == 0
    capsys.readouterr()
    rest = ["--trace", trace, "--for", "serving-latency", "--time-limit", "20"]
    one, other = (
        planned(capsys, *MODELS, "--runtimes", file, *rest)["problem"]
        for file in (TABLE, str(fitted))
    )
    assert one == other


def test_an_engine_gets_what_export_gives_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Tests that one command writes the configuration that fit and export write, in an engine's own
    words.
    """
    fitted, rates, own, theirs = (
        tmp_path / name for name in ("fit.json", "rates.json", "own.json", "theirs.json")
    )
    rates.write_text('{"acceptance_rate": 0.7}')
    assert run([*FITTED, "--form", "table", "-o", str(fitted)]) == 0
    for engine, version in (
        ("vllm", []),
        ("sglang", []),
        ("llama.cpp", []),
        ("tensorrt-llm", ["--engine-version=1.2"]),
    ):
        common = ["--acceptance", str(rates), *version]
        assert run(["export", engine, "--runtime", str(fitted), *common, "-o", str(theirs)]) == 0
        assert run(["plan", *HAVE, "--for", engine, *common, "-o", str(own)]) == 0
        assert json.loads(own.read_text()) == json.loads(theirs.read_text())
    _, _, advice = capsys.readouterr().out.rpartition("Measure next:")
    assert "context_tokens: --trace FILE" in advice and "zero_draft_cost" in advice


def test_an_unknown_acceptance_is_a_range(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Tests that the break-even comes first, divides plans that speculate from others, and limits
    hold 0.5 to 0.9.
    """
    data = planned(capsys, *HAVE, "--for", "vllm")
    assert data["values"][0]["name"] == "acceptance"
    known = data["acceptance"]
    assert data["values"][0]["text"].startswith(
        f"pays above {known['break_even']:.2f}; planned at 0.7"
    )
    assert known["speedup"]["0.5"] < known["speedup"]["0.9"]
    rates = tmp_path / "rates.json"
    for rate, pays in ((known["break_even"] + 0.01, True), (known["break_even"] - 0.01, False)):
        rates.write_text(json.dumps({"acceptance_rate": rate}))
        found = planned(capsys, *HAVE, "--for", "vllm", "--acceptance", str(rates))
        assert (found["config"] is not None) == pays
    for row in data["ranges"]:
        assert row["speedup_low"] < row["speedup"] < row["speedup_high"]


def test_draft_lengths_are_multiples_of_what_heads_predict(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Tests that vLLM is given no length that it refuses, and other engines what they take."""
    config = tmp_path / "draft-15m.config.json"
    config.write_text(json.dumps(json.loads(Path(CONFIGS["draft"]).read_text()) | {"n_predict": 4}))
    have = ["--draft", str(config), "--verify", str(CONFIGS["verify"]), "--runtimes", str(TABLE)]
    data = planned(capsys, *have, "--for", "vllm")
    assert {row["num_speculative_tokens"] for row in data["ranges"]} <= {0, 4, 8}
    assert data["config"]["num_speculative_tokens"] % 4 == 0
    assert {"n_predict"} <= {one["name"] for one in data["values"]}
    free = planned(capsys, *have, "--for", "sglang")
    assert free["config"]["speculative_num_steps"] % 4 != 0


def test_memory_limits_the_batch_of_an_engine(capsys: pytest.CaptureFixture[str]) -> None:
    """Tests that no batch is recommended whose caches do not fit beside the weights."""
    data = planned(capsys, *HAVE, "--for", "vllm", "--memory", "0.26")
    (batch,) = [int(one["text"]) for one in data["values"] if one["name"] == "largest batch"]
    assert 1 <= batch < 4
    assert data["ranges"][-1]["batch"][1] == batch


def test_what_is_set_is_not_assumed(trace: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Tests that a field of one's own replaces the family's, and is known."""
    rest = ["--trace", trace, "--tasks", "2", "--for", "serving-latency", "--time-limit", "20"]
    data = planned(capsys, *HAVE, *rest, "--set", "max_speculation_length=3")
    assert data["problem"]["max_speculation_length"] == 3
    assert len(data["problem"]["input_tokens"]) == 2
    (value,) = [one for one in data["values"] if one["name"] == "max_speculation_length"]
    assert (value["source"], value["assumed"]) == ("--set", False)


def test_the_page_says_what_is_assumed_and_what_comes_next(
    trace: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Tests that a reader sees assumptions with their paper before the plan, and advice after
    it.
    """
    have = [*HAVE, "--trace", trace, "--for", "serving-latency", "--time-limit", "20"]
    assert run(["plan", *have]) == 0
    text = capsys.readouterr().out
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
        (["--for", "cooking"], "--for: expected one of serving-latency, "),
        (["--for", "draft-control"], "--for: expected one of serving-latency, "),
        (["--for", "vllm", "--link", "fast"], "--link: expected MBITS or MBITS,RTT_MS"),
        (["--for", "vllm", "--link", "-3"], "--link: expected MBITS or MBITS,RTT_MS"),
        (["--for", "vllm", "--tasks", "3"], "--tasks: expected an integer >= 1, with --trace"),
        (
            ["--for", "vllm", "--set", "bandwidth_hz=1"],
            "--set: expected a kind of problem, got --for vllm",
        ),
        (["--for", "vllm", "--memory", "0.1"], "--memory: expected room for the weights"),
        (["--for", "vllm", "--memory", "-1"], "--memory: expected"),
        (["--for", "tensorrt-llm"], "version"),
        (
            ["--for", "fair-goodput", "--engine-version", "1"],
            "--engine-version: expected an engine",
        ),
        (
            ["--for", "verification-batch", "--memory", "0.1"],
            "memory: expected more than the weights of verify-100m",
        ),
    ],
)
def test_bad_usage_is_one_message(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Tests that what cannot be planned exits with 2 and says what was expected."""
    assert run(["plan", *HAVE, *arguments]) == 2
    captured = capsys.readouterr()
    assert message in captured.err
    assert captured.err.count("\n") == 1


def test_passes_of_other_models_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
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
    assert run(["plan", *MODELS, "--runtimes", str(own), "--for", "serving-latency"]) == 2
    assert (
        "draft: expected passes of draft-15m, got those of another model" in capsys.readouterr().err
    )
    swapped = ["--draft", CONFIGS["verify"], "--verify", CONFIGS["draft"]]
    table = tmp_path / "table.csv"
    table.write_text(
        "".join(
            row
            for row in Path(TABLE).read_text().splitlines(True)
            if not row.startswith("draft-15m")
        )
    )
    assert run(["plan", *swapped, "--runtimes", str(table), "--for", "vllm"]) == 2
    assert "draft-15m" in capsys.readouterr().err


def test_single_fits_feed_export(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Tests that two single fits make the table that the fit of the pair makes, and that a pair
    takes no second one.
    """
    rates = tmp_path / "rates.json"
    rates.write_text('{"acceptance_rate": 0.7}')
    paths = {name: str(tmp_path / f"{name}.json") for name in ("draft", "verify", "pair")}
    for name, rows in (("draft", "model=draft-15m"), ("verify", "model=verify-100m")):
        assert run([*FITTED[:10], "--where", rows, "--form", "table", "-o", paths[name]]) == 0
    assert run([*FITTED, "--form", "table", "-o", paths["pair"]]) == 0
    capsys.readouterr()
    said = []
    both = ["--runtime", paths["verify"], "--draft-runtime", paths["draft"]]
    for given in (both, ["--runtime", paths["pair"]]):
        assert run(["export", "vllm", *given, "--acceptance", str(rates), "--json"]) == 0
        said.append(json.loads(capsys.readouterr().out))
    assert said[0] == said[1]
    assert (
        run(["export", "vllm", "--runtime", paths["pair"], *both[2:], "--acceptance", str(rates)])
        == 2
    )
    assert "--draft-runtime: expected a single fit as --runtime" in capsys.readouterr().err
    assert run(["export", "vllm", "--runtime", paths["verify"], "--acceptance", str(rates)]) == 2
    assert "draft: required field is missing" in capsys.readouterr().err
    for wrong in (["--logits", "all"], ["--form", "table", "--errors", "relative"]):
        assert run([*FITTED, *wrong]) == 2
        assert "specopt: --" in capsys.readouterr().err


def test_without_a_table_of_passes(capsys: pytest.CaptureFixture[str]) -> None:
    """Tests that it is said how to get a table, and that peaks of the machine stand for one, with a
    wide band; not both.
    """
    assert run(["plan", *MODELS, "--for", "vllm"]) == 2
    said = capsys.readouterr().err
    assert "`specopt measure CONFIG -o TABLE`" in said and "--peak TFLOPS,GB/s" in said
    assert run(["plan", *HAVE, "--peak", "10,200", "--for", "vllm"]) == 2
    assert "expected either it or --peak" in capsys.readouterr().err
    for wrong in ("10", "10,0", "fast,200", "10,200,1"):
        assert run(["plan", *MODELS, "--peak", wrong, "--for", "vllm"]) == 2
        assert "--peak: expected" in capsys.readouterr().err
    data = planned(capsys, *MODELS, "--peak", "10,200", "--for", "vllm")
    first = data["ranges"][0]
    assert first["speedup_low"] < 0.5 * first["speedup"] < 0.5 * first["speedup_high"]
    assert {one["source"] for one in data["values"] if "passes" in one["name"]} == {"--peak 10,200"}


def test_one_mode_of_golden_lengths(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Tests that of a file with two modes `--mode` takes one, and that the message names it."""
    path = tmp_path / "golden.json"
    lengths = {"1": 1.7, "2": 2.2, "3": 2.5}
    path.write_text(json.dumps({"m": {"thinking_on": lengths, "thinking_off": lengths}}))
    have = [*HAVE, "--for", "vllm", "--acceptance", str(path)]
    assert run(["plan", *have]) == 2
    assert "got thinking_off, thinking_on; name the one to take, with --mode" in (
        capsys.readouterr().err
    )
    data = planned(capsys, *have, "--mode", "thinking_on")
    assert data["max_length"] <= 3


def test_passes_of_llama_bench(capsys: pytest.CaptureFixture[str]) -> None:
    """Tests that the CSV of llama-bench is a table of passes of both models."""
    table = str(Path(__file__).parents[1] / "data" / "field" / "llama-bench.csv")
    data = planned(capsys, *MODELS, "--runtimes", table, "--for", "llama.cpp")
    assert data["config"]["--spec-draft-n-max"] >= 1
    texts = {one["text"] for one in data["values"] if "passes" in one["name"]}
    assert "batches 1, new tokens 1-16, cached tokens 0-4096" in texts
