"""From the measured pair that comes with the package to an engine's table, by the commands, in
every form.
"""

from __future__ import annotations

import csv
import json
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

from specopt.commands.cli import run
from specopt.instances.runtimes.forms import FORMS

SHIPPED = files("specopt.instances") / "data" / "measured"
PAIR = ["--draft", "model=draft-15m", "--verify", "model=verify-100m"]
TOKENS = ["--x", "new_tokens", "--batch", "batch", "--cached", "cached_tokens"]
FLOPS = ["--x", "batch_flops", "--x-unit", "flops"]
MODELS = [
    f"--{part}-model={SHIPPED / name}.config.json"
    for part, name in (("draft", "draft-15m"), ("verify", "verify-100m"))
]


def fitted(path: Path, *options: str) -> str:
    """Fit the pair; return the file."""
    target = path / "runtimes.json"
    assert (
        run(
            [
                "fit",
                str(SHIPPED / "cpu-pair.csv"),
                "--y",
                "seconds_median",
                *PAIR,
                *options,
                "-o",
                str(target),
            ]
        )
        == 0
    )
    return str(target)


def exported(
    runtimes: str, rate: float, capsys: pytest.CaptureFixture[str], *options: str
) -> dict[str, Any]:
    """Return what `export vllm --json` prints for an acceptance rate."""
    acceptance = Path(runtimes).with_name("acceptance.json")
    acceptance.write_text(json.dumps({"acceptance_rate": rate}))
    capsys.readouterr()
    assert (
        run(
            [
                "export",
                "vllm",
                "--runtime",
                runtimes,
                "--acceptance",
                str(acceptance),
                "--json",
                *options,
            ]
        )
        == 0
    )
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


@pytest.mark.parametrize(
    "options",
    [
        *(["--form", form, *TOKENS] for form in FORMS),
        *(["--form", form, *TOKENS, *MODELS] for form in ("linear", "roofline")),
        ["--form", "linear", *FLOPS, *MODELS],
        ["--form", "table", *TOKENS],
        ["--form", "table", *TOKENS, "--spread", "seconds_p10,seconds_p90"],
    ],
    ids=lambda options: " ".join(str(one) for one in options if "/" not in str(one)),
)
def test_export_takes_what_fit_writes(
    options: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Tests that every form goes from fit to export as it is, and that `--robust` at 0.6 speculates
    with none.

    The table's own medians say 0.74x for one draft at batch 1.
    """
    runtimes = fitted(tmp_path, *options)
    found = exported(runtimes, 0.6, capsys, "--max-batch", "4")
    assert (
        found["ranges"][0]["speedup_low"]
        < found["ranges"][0]["speedup"]
        < found["ranges"][0]["speedup_high"]
    )
    robust = exported(runtimes, 0.6, capsys, "--max-batch", "4", "--robust")
    assert [row["num_speculative_tokens"] for row in robust["ranges"]] == [None]
    assert robust["config"] is None
    assert any(
        "no lengths are safe" in note and "in the worst case" in note for note in robust["notes"]
    )


@pytest.mark.parametrize("rate", [0.8, 0.95])
@pytest.mark.parametrize("form", [*FORMS, "table"])
def test_robust_is_never_slower_than_measured(
    form: str, rate: float, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Tests that a robust table of any form is contradicted by no measured point: speed-ups of the
    medians by hand.
    """
    with (SHIPPED / "cpu-pair.csv").open() as stream:
        times = {
            (
                row["model"][:5],
                int(row["batch"]),
                int(row["new_tokens"]),
                int(row["cached_tokens"]),
            ): float(row["seconds_median"])
            for row in csv.DictReader(stream)
        }
    runtimes = fitted(tmp_path, "--form", form, *TOKENS)
    for most in ("1", "2", "4"):
        found = exported(runtimes, rate, capsys, "--robust", "--max-batch", most)
        for row in found["ranges"]:
            drafts = row["num_speculative_tokens"]
            assert drafts != 0
            for model, batch, new, cached in times:
                if (
                    drafts is None
                    or not row["batch"][0] <= batch <= row["batch"][1]
                    or (model, new) != ("verif", 1)
                ):
                    continue
                wide = times.get(("verif", batch, 1 + drafts, cached))
                if wide is not None:
                    tokens = sum(rate**power for power in range(drafts + 1))
                    step = drafts * times["draft", batch, 1, cached] + wide
                    assert tokens * times["verif", batch, 1, cached] >= step


def test_the_measured_range_is_kept(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Tests that without sizes the table ends where the measurements do, and goes on with
    `--extrapolate` alone.
    """
    runtimes = fitted(tmp_path, "--form", "table", *TOKENS)
    assert exported(runtimes, 0.8, capsys)["ranges"][-1]["batch"][1] == 4
    acceptance = str(tmp_path / "acceptance.json")
    command = [
        "export",
        "vllm",
        "--runtime",
        runtimes,
        "--acceptance",
        acceptance,
        "--max-batch",
        "8",
    ]
    assert run(command) == 2
    assert (
        "expected what was measured (batches 1-4, new tokens 1-32, cached tokens 0-384"
        in capsys.readouterr().err
    )
    assert run([*command, "--extrapolate"]) == 0
    assert "extrapolated beyond what was measured" in " ".join(capsys.readouterr().out.split())
    assert run([*command[:-2], "--context-tokens", "385"]) == 2
    assert "contexts of 385 tokens" in capsys.readouterr().err
    additive = fitted(tmp_path, "--form", "additive", *TOKENS)
    assert exported(additive, 0.8, capsys)["ranges"][-1]["batch"][1] == 4


def test_a_table_is_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Tests that the command shows what a table holds and how well its points predict each
    other.
    """
    fitted(tmp_path, "--form", "table", *TOKENS)
    shown = " ".join(capsys.readouterr().out.split())
    assert "verify: table, interpolated linearly, never decreasing" in shown
    assert "range batches 1-4, new tokens 1-32, cached tokens 0-384" in shown
    assert "off by up to: batch " in shown


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            [*TOKENS, "--form", "table", *MODELS],
            "--model: expected a form that is fitted, got --form table",
        ),
        ([*TOKENS, "--form", "table", "--flat"], "--flat: expected a form that is fitted"),
        ([*TOKENS, "--form", "table", "--seed", "3"], "--seed: expected a form that is fitted"),
        ([*TOKENS, "--form", "table", "--level", "0.9"], "--level: expected a form that is fitted"),
        (
            [*TOKENS, "--form", "table", "--spread", "seconds_p10"],
            "--spread: expected LOW,HIGH with --form table",
        ),
        (
            [*TOKENS, "--spread", "seconds_p10,seconds_p90"],
            "--spread: expected LOW,HIGH with --form table",
        ),
        (["--x", "new_tokens", "--form", "table", "--where", "batch=3"], "no row has"),
        (
            ["--x", "seconds_p10", "--batch", "batch", "--form", "table"],
            "expected whole counts of batch and tokens",
        ),
        (
            [
                "--form",
                "table",
                *(f"--x=batch_{name}" for name in ("new_tokens", "interactions", "cached_tokens")),
            ],
            "x: expected one column of new tokens per request, got 3",
        ),
    ],
)
def test_bad_usage_is_one_message(
    options: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Tests that what cannot be a table exits with 2 and one message."""
    assert (
        run(["fit", str(SHIPPED / "cpu-pair.csv"), "--y", "seconds_median", *PAIR, *options]) == 2
    )
    captured = capsys.readouterr()
    assert message in captured.err
    assert not captured.out
