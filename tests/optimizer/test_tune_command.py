"""`specopt tune`: measured sweeps in, an engine's configuration or a question out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from helpers.command_line import CommandLine

from specopt.engines import ENGINES

HEADER = "concurrency,draft_length,output_tokens_per_second"
ROWS = [
    "1,none,27.4",
    "4,none,81.0",
    "8,none,126.6",
    "1,1,30.5",
    "4,1,87",
    "8,1,129.5",
    "1,3,35.4",
    "4,3,95.3",
    "8,3,138.9",
]


@pytest.fixture
def sweep(tmp_path: Path) -> str:
    """N-gram drafting measured on an engine of two cores."""
    path = tmp_path / "sweep.csv"
    path.write_text("\n".join([HEADER, *ROWS]) + "\n")
    return str(path)


def test_the_result_is_as_the_format_says(sweep: str, tmp_path: Path, cli: CommandLine) -> None:
    """Tests that every field of the JSON is there, a file holds the same, and measured numbers keep
    their digits.
    """
    target = tmp_path / "tuning.json"
    found = cli(f"tune {sweep} --json -o {target}").json
    assert found == json.loads(target.read_text())
    assert found["ranges"] == [[1, 8, 3]]
    assert found["speculate"] is True
    assert found["config"] == {
        "num_speculative_tokens": 3,
        "num_speculative_tokens_per_batch_size": [[1, 8, 3]],
    }
    assert 0.0 <= found["regret_bound"] < 0.15
    assert found["ask"] == []
    (none,) = [
        p for p in found["predictions"] if p["concurrency"] == 4 and p["draft_length"] == "none"
    ]
    assert none["tokens_per_second"] == 81.0
    assert none["measured"]
    (two,) = [p for p in found["predictions"] if p["concurrency"] == 4 and p["draft_length"] == 2]
    assert two["low"] < two["tokens_per_second"] < two["high"]
    assert not two["measured"]
    (worth,) = found["worth"]
    assert worth["range"] == [1, 8, 3] and worth["low"] < worth["speedup"] < worth["high"]


def test_a_table_is_shown_readably(sweep: str, cli: CommandLine) -> None:
    """Tests that ranges, throughput by option, notes and configuration are on the screen, columns
    aligned.
    """
    shown = cli(f"tune {sweep}").out
    assert "1.17   1.14-1.21" in shown
    assert "~25." in shown
    assert "35.4*" in shown
    lines = [
        line for line in shown.splitlines() if line.strip().endswith("*") and "chosen" not in line
    ]
    assert len({len(line) for line in lines}) == 1
    assert '"num_speculative_tokens_per_batch_size"' in shown


def test_speculation_that_does_not_pay_is_left_out(tmp_path: Path, cli: CommandLine) -> None:
    """Tests that no engine gets a configuration then: one null range, and the note says what to
    leave out.
    """
    path = tmp_path / "slow.csv"
    path.write_text(f"{HEADER}\n1,none,100\n8,none,700\n1,2,90\n8,2,500\n")
    for engine in ENGINES:
        version = "--engine-version 1.3.0rc8" if engine == "tensorrt-llm" else ""
        found = cli(f"tune {path} --engine {engine} {version} --json").json
        assert found["ranges"] == [[1, 8, None]]
        assert found["config"] is None
        assert found["speculate"] is False
        assert any("out" in note and "0.80" in note for note in found["notes"])


def test_what_to_measure_next(sweep: str, tmp_path: Path, cli: CommandLine) -> None:
    """Tests that a clear sweep asks for longer drafts only, a thin one its doubtful points, a first
    one its corners.
    """
    shown = cli(f"tune {sweep} --ask").out
    assert "draft_length 4" in shown and "No further measurements are needed" not in shown
    asked = cli(f"tune {sweep} --ask --max-length 3").out.partition("Measure next")[2]
    assert "draft_length 2" in asked and "draft_length 4" not in asked
    thin = tmp_path / "thin.csv"
    thin.write_text(f"{HEADER}\n1,none,100\n8,none,600\n1,5,130\n8,5,590\n")
    asked = cli(f"tune {thin} --ask --budget 3 --json").json["ask"]
    assert 0 < len(asked) <= 3
    assert all(point["draft_length"] not in (5, "none") for point in asked)
    doubtful = tmp_path / "doubtful.csv"
    rows = "1,none,100 1,none,99 8,none,600 8,none,620 1,1,101 1,1,98 8,1,600 8,1,605"
    doubtful.write_text("\n".join([HEADER, *rows.split()]))
    asked = cli(f"tune {doubtful} --ask --max-length 1").out.partition("Measure next")[2]
    lines = asked.splitlines()[1:]
    again = [line.endswith("(again, because of noise)") for line in lines]
    assert again == ["length 0" not in line for line in lines] and {*again} == {False, True}
    first = tmp_path / "first.csv"
    first.write_text(f"{HEADER}\n1,none,100\n8,none,600\n")
    asked = cli(f"tune {first} --ask --json").json["ask"]
    assert {point["concurrency"] for point in asked} == {1, 8}
    cli.refuses(f"tune {first}", "with speculation")


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ("--max-batch 64", "max_batch"),
        ("--max-length 7", "max_length"),
        ("--engine abacus", "--engine"),
        ("--engine tensorrt-llm", "engine_version"),
        ("--workload poems", "workload"),
        ("--confidence 1.5", "confidence"),
        ("--loss 2", "loss"),
        ("--tpot -1", "tpot"),
        ("--tpot x", "--tpot"),
        ("--tpot 40@p95", "p99"),
        ("--ttft 100", "ttft"),
        ("--mix chat", "--mix"),
        ("--mix chat=1", "mix"),
        ("--price 0", "--price"),
        ("--regret x", "number"),
    ],
)
def test_bad_options_are_refused(sweep: str, options: str, word: str, cli: CommandLine) -> None:
    """Tests that every refusal is one line that names the option, with exit code 2."""
    cli.refuses(f"tune {sweep} {options}", word)


def test_a_capacity_table(sweep: str, cli: CommandLine) -> None:
    """Tests that a time per token gives the capacity of every option, and the one that carries most
    is chosen.
    """
    found = cli(f"tune {sweep} --tpot 50 --json").json
    carried = {row["draft_length"]: row for row in found["capacity"]}
    assert (
        carried["none"]["concurrency"] == 4 and 4 < carried[3]["concurrency"] < 8
    )  # 62 and 53 ms at 8
    assert all(row["low"] <= row["concurrency"] <= row["high"] for row in carried.values())
    assert found["ranges"] == [[1, 8, 3]]
    assert "Capacity: largest number" in cli(f"tune {sweep} --tpot 50").out
    assert any(
        "no option meets the target of 20 ms" in note
        for note in cli(f"tune {sweep} --tpot 20 --json").json["notes"]
    )
    cli.refuses(f"tune {sweep} --tpot 50@p99", "p99_tpot_ms")


DRAFTERS = str(Path(__file__).parents[1] / "data/sweeps/qwen3.8-27b-rtx3090-drafters.csv")


def test_drafters_classes_and_energy_in_json(cli: CommandLine) -> None:
    """Tests that rows name drafters where there are several, with the choice by energy, its units
    and its front.
    """
    found = cli(f"tune {DRAFTERS} --mix chat=0.9,code=0.1 --json").json
    assert found["option"] == {"drafter": "dflash2", "mode": "fixed", "topk": 1}
    assert found["config"]["method"] == "dflash"
    assert {row["drafter"] for row in found["predictions"]} == {"mtp", "dflash2"}
    assert all(row["concurrency"] == 1 for row in found["break_even"])
    classes = {row["workload"]: row for row in found["classes"]}
    assert (classes["code"]["drafter"], classes["code"]["draft_length"]) == ("mtp", 8)
    assert classes["chat"]["lost"] == pytest.approx(0.0)
    assert found["second"]["drafter"] == "mtp"
    found = cli(f"tune {DRAFTERS} --per joule --json").json
    (none,) = [row for row in found["predictions"] if row["draft_length"] == "none"]
    assert none["requests_per_joule"] == pytest.approx(1.0 / 3978)
    assert "tokens_per_second" not in none
    assert found["ranges"] == [[1, 1, 2]]
    assert [row["draft_length"] for row in found["front"]] == [2]
    cli.refuses(
        f"tune {DRAFTERS} --per joule --tpot 20", "--per joule cannot be combined with --tpot"
    )


def test_a_price_and_a_memory(sweep: str, cli: CommandLine) -> None:
    """Tests that a price gives coins per million tokens, and a memory the requests that fit with
    and without drafts.
    """
    folder = Path(__file__).parents[2] / "instances/data/measured"
    configs = (
        f"--draft-config {folder / 'draft-15m.config.json'} --verify-config"
        f" {folder / 'verify-100m.config.json'}"
    )
    found = cli(f"tune {sweep} --price 3.6 --memory 0.26 --context 384 {configs} --json").json
    (row,) = [
        p for p in found["predictions"] if (p["concurrency"], p["draft_length"]) == (4, "none")
    ]
    assert row["coins_per_million_tokens"] == pytest.approx(1000.0 / 81.0)
    fits = {one["draft_length"]: one["concurrency"] for one in found["capacity"]}
    assert 0 < fits[3] < fits["none"]
    capacity = cli(f"tune {sweep} --memory 0.22 --context 384 {configs} --json").json["capacity"]
    assert [one["draft_length"] for one in capacity if one["concurrency"]] == ["none"]
    cli.refuses(f"tune {sweep} --memory 1", "--draft-config")
    cli.refuses(f"tune {sweep} --memory 1 {configs}", "--context")
    cli.refuses(f"tune {sweep} --per coin", "--price")


def test_a_measured_zero_is_no_guess(tmp_path: Path, cli: CommandLine) -> None:
    """Tests that draft length 0 costs nothing beside itself where it stands for no speculation."""
    path = tmp_path / "zero.csv"
    path.write_text(f"{HEADER}\n1,0,100\n32,0,1000\n1,3,200\n32,3,960\n")
    found = cli(f"tune {path} --json").json
    zeros = {p["concurrency"]: p for p in found["predictions"] if p["draft_length"] == 0}
    assert zeros[32]["tokens_per_second"] == 1000
    assert zeros[32]["measured"]
    assert not any("0 in a speculating engine was not measured" in note for note in found["notes"])


def test_one_length_for_engines_that_take_one(tmp_path: Path, cli: CommandLine) -> None:
    """Tests that ranges, regret and configuration for llama.cpp speak of one draft length."""
    path = tmp_path / "mixed.csv"
    path.write_text(
        f"{HEADER}\n1,none,100\n8,none,500\n1,0,99\n8,0,495\n1,1,120\n8,1,510\n1,4,220\n8,4,450\n"
    )
    found = cli(f"tune {path} --engine llama.cpp --json").json
    assert found["ranges"] == [[1, 8, found["config"]["--spec-draft-n-max"]]]
    assert len(cli(f"tune {path} --json").json["ranges"]) > 1


def test_weights(sweep: str, tmp_path: Path, cli: CommandLine) -> None:
    """Tests that the load decides whether speculation pays, and that malformed weights are
    refused.
    """
    path = tmp_path / "mixed.csv"
    path.write_text(f"{HEADER}\n1,none,100\n32,none,2000\n1,0,97\n32,0,1900\n1,2,150\n32,2,1500\n")
    light = tmp_path / "light.json"
    heavy = tmp_path / "heavy.json"
    bad = tmp_path / "bad.json"
    light.write_text('{"1": 9, "32": 1}')
    heavy.write_text('{"1": 1, "32": 9}')
    bad.write_text('{"1": "often"}')
    for weights, speculates in ((light, True), (heavy, False)):
        assert cli(f"tune {path} --weights {weights} --json").json["speculate"] is speculates
    cli.refuses(f"tune {path} --weights {bad}", "weights[1]")
    bad.write_text('{"1": 1, "7": 2}')
    cli.refuses(f"tune {path} --weights {bad}", "expected measured concurrencies (1, 32), got 7")


def _tuned(cli: CommandLine, rows: str, options: str = "") -> Any:
    Path("rows.csv").write_text(rows)
    return cli(f"tune rows.csv {options} --json").json


CONTEXTS = """concurrency,draft_length,output_tokens_per_second,mean_acceptance_length,\
context_tokens
1,none,36.0,,7400
8,none,188,,7400
1,5,34,1.144,7400
8,5,166,1.142,7400
1,none,91,,1000
8,none,600,,1000
1,5,172,2.52,1000
8,5,968,2.52,1000
"""


@pytest.mark.parametrize("context", ["--context 7400", ""])
def test_no_gain_that_the_acceptance_at_a_context_rules_out(
    context: str, tmp_path: Path, cli: CommandLine
) -> None:
    """Tests that where five drafts yield 1.144 tokens no shorter draft is predicted to be faster
    than that, its band included, and that nothing is recommended.
    """
    found = _tuned(cli, CONTEXTS, context)
    if context:
        assert not found["speculate"]
        for row in found["predictions"]:
            none, tokens = {1: (36.0, 1.144), 8: (188.0, 1.142)}[row["concurrency"]]
            if row["draft_length"] not in ("none", 5):
                assert row["tokens_per_second"] <= row["high"] <= none * tokens * (1 + 1e-9)
    notes = " ".join(found["notes"])
    assert (
        "K = 1 has a predicted speed-up of 1.0" in notes and "measure it" in notes
    ) or not context
    assert "best draft length, 5, reaches 0.91" in notes or not context


def test_one_length_names_and_asks_for_others(tmp_path: Path, cli: CommandLine) -> None:
    """Tests that with one measured length the next longer one is named with its band, and shorter
    ones are asked for where it hardly pays.
    """
    rows = (
        "concurrency,draft_length,output_tokens_per_second,mean_acceptance_length\n"
        "1,none,91,\n64,none,2524,\n1,5,208,2.85\n64,5,2539,2.85\n"
    )
    found = _tuned(cli, rows, "--ask")
    assert any(
        "K = 6 has a predicted speed-up of" in note and "measure it" in note
        for note in found["notes"]
    )
    asked = [(one["concurrency"], one["draft_length"]) for one in found["ask"]]
    assert asked[0] in ((64, 2), (1, 6))


WITHOUT_NONE = (
    "drafter,concurrency,draft_length,output_tokens_per_second\n"
    "mtp,10,3,264.8\ndflash2,10,7,234.7\ndflash2,10,5,290.6\n"
)


def test_one_base_for_all_drafters(tmp_path: Path, cli: CommandLine) -> None:
    """Tests that without a baseline all options are relative to the best constant one, that this is
    said once, and that questions keep the drafter's name.
    """
    found = _tuned(cli, WITHOUT_NONE)
    speedups = {one["drafter"]: one["speedup"] for one in found["options"]}
    assert speedups == {"dflash2": 1.0, "mtp": pytest.approx(264.8 / 290.6)}
    assert found["option"]["drafter"] == "dflash2"
    assert sum("relative to dflash2 with 5 drafts" in note for note in found["notes"]) == 1
    asked = _tuned(cli, WITHOUT_NONE, "--ask")["ask"]
    assert asked[0]["draft_length"] == "none" and "drafter" not in asked[0]
    assert all(one["drafter"] in ("mtp", "dflash2") for one in asked[1:])


def test_several_files_are_one_sweep(sweep: str, tmp_path: Path, cli: CommandLine) -> None:
    """Tests that measurements of several files count together."""
    half, rest = tmp_path / "half.csv", tmp_path / "rest.csv"
    half.write_text("\n".join([HEADER, *ROWS[:3]]) + "\n")
    rest.write_text("\n".join([HEADER, *ROWS[3:]]) + "\n")
    both = cli(f"tune {half} {rest} --json").json
    assert cli(f"tune {sweep} --json").json["ranges"] == both["ranges"]


def test_contexts_are_asked_for_where_they_were_measured(cli: CommandLine) -> None:
    """Tests that workloads with different contexts are asked for at their own ones."""
    rows = f"{HEADER},workload,context_tokens\n1,none,91,chat,1000\n1,5,190,chat,1000\n"
    asked = _tuned(cli, rows + "1,none,36,rag,7400\n1,5,34,rag,7400\n", "--ask")["ask"]
    assert {(one["workload"], one["context_tokens"]) for one in asked} == {
        ("chat", 1000),
        ("rag", 7400),
    }
