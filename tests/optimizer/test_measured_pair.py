"""From the measured pair that comes with the package to an engine's table, by the commands, in
every form.
"""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest
from helpers import measured_pair
from helpers.command_line import CommandLine
from helpers.measured_pair import FLOPS, MODELS, PAIR, SHIPPED, TOKENS

from specopt.instances.runtimes.forms import FORMS

FIT = f"{measured_pair.FIT} {PAIR}"
EXPORT = "export vllm --runtime runtimes.json --acceptance acceptance.json"


def exported(cli: CommandLine, rate: float, options: str = "") -> Any:
    """Return what `export vllm --json` prints for an acceptance rate."""
    Path("acceptance.json").write_text(json.dumps({"acceptance_rate": rate}))
    return cli(f"{EXPORT} --json {options}").json


@pytest.mark.parametrize(
    "options",
    [
        *(f"--form {form} {TOKENS}" for form in FORMS),
        *(f"--form {form} {TOKENS} {MODELS}" for form in ("linear", "roofline")),
        f"--form linear {FLOPS} {MODELS}",
        f"--form table {TOKENS}",
        f"--form table {TOKENS} --spread seconds_p10,seconds_p90",
    ],
    ids=lambda options: " ".join(one for one in options.split() if "/" not in one),
)
def test_export_takes_what_fit_writes(cli: CommandLine, options: str) -> None:
    """Tests that every form goes from fit to export as it is, and that `--robust` at 0.6 speculates
    with none.

    The table's own medians say 0.74x for one draft at batch 1.
    """
    cli(f"{FIT} {options} -o runtimes.json")
    first = exported(cli, 0.6, "--max-batch 4")["ranges"][0]
    assert first["speedup_low"] < first["speedup"] < first["speedup_high"]
    robust = exported(cli, 0.6, "--max-batch 4 --robust")
    assert [row["num_speculative_tokens"] for row in robust["ranges"]] == [None]
    assert robust["config"] is None
    assert any(
        "no draft length is safe" in note and "in the worst case" in note
        for note in robust["notes"]
    )


@pytest.mark.parametrize("rate", [0.8, 0.95])
@pytest.mark.parametrize("form", [*FORMS, "table"])
def test_robust_is_never_slower_than_measured(cli: CommandLine, form: str, rate: float) -> None:
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
    cli(f"{FIT} --form {form} {TOKENS} -o runtimes.json")
    for most in (1, 2, 4):
        for row in exported(cli, rate, f"--robust --max-batch {most}")["ranges"]:
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


def test_the_measured_range_is_kept(cli: CommandLine) -> None:
    """Tests that without sizes the table ends where the measurements do, and goes on with
    `--extrapolate` alone; and that `fit` shows what a table holds and how well its points predict
    each other.
    """
    shown = " ".join(cli(f"{FIT} --form table {TOKENS} -o runtimes.json").out.split())
    assert "verify: table, interpolated linearly, never decreasing" in shown
    assert "range batches 1-4, new tokens 1-32, cached tokens 0-384" in shown
    assert "off by up to: batch " in shown
    assert exported(cli, 0.8)["ranges"][-1]["batch"][1] == 4
    cli.refuses(
        f"{EXPORT} --max-batch 8",
        "expected the measured range (batches 1-4, new tokens 1-32, cached tokens 0-384",
    )
    shown = cli(f"{EXPORT} --max-batch 8 --extrapolate").out
    assert "extrapolated beyond the measured range" in " ".join(shown.split())
    cli.refuses(f"{EXPORT} --context-tokens 385", "contexts of 385 tokens")
    cli(f"{FIT} --form additive {TOKENS} -o runtimes.json")
    assert exported(cli, 0.8)["ranges"][-1]["batch"][1] == 4


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            f"{TOKENS} --form table {MODELS}",
            "--model has no effect with --form table",
        ),
        (f"{TOKENS} --form table --flat", "--flat has no effect with --form table"),
        (f"{TOKENS} --form table --seed 3", "--seed has no effect with --form table"),
        (f"{TOKENS} --form table --level 0.9", "--level has no effect with --form table"),
        (
            f"{TOKENS} --form table --spread seconds_p10",
            "--spread: expected LOW,HIGH with --form table",
        ),
        (
            f"{TOKENS} --spread seconds_p10,seconds_p90",
            "--spread: expected LOW,HIGH with --form table",
        ),
        ("--x new_tokens --form table --where batch=3", "no row has"),
        (
            "--x seconds_p10 --batch batch --form table",
            "expected integer numbers of requests and tokens",
        ),
        (
            "--form table --x batch_new_tokens --x batch_interactions --x batch_cached_tokens",
            "x: expected a single column (new tokens per request), got 3",
        ),
    ],
)
def test_bad_usage_is_one_message(cli: CommandLine, options: str, message: str) -> None:
    """Tests that what cannot be a table exits with 2 and one message."""
    cli.refuses(f"{FIT} {options}", message)
