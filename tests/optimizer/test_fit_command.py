"""`specopt fit`: what it shows, writes and refuses."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest
from helpers import measured_pair
from helpers.command_line import CommandLine
from helpers.measured_pair import FLOPS, MODELS

TOKENS = [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256]
FIT = "fit t.csv --x tokens --y time_ms --y-unit ms"
PAIR = "--draft model=small --verify model=large"


@pytest.fixture(autouse=True)
def table(tmp_path: Path) -> None:
    """Times in ms of two models against tokens: the maximum of two lines, with a little noise."""
    rng = np.random.default_rng(0)
    rows = ["model,tokens,cached,time_ms"]
    for model, scale in (("small", 1.0), ("large", 8.0)):
        for tokens in TOKENS:
            time = scale * max(4.0 + 0.002 * tokens, 1.5 + 0.06 * tokens) * rng.uniform(0.98, 1.02)
            rows.append(f"{model},{tokens},0,{time!r}")
    (tmp_path / "t.csv").write_text("\n".join(rows))


def test_readable_and_json(cli: CommandLine) -> None:
    """Tests that the table shows form, errors, residuals and warnings, and the JSON is the
    file's.
    """
    command = f"{FIT} --where model=large"
    printed = cli(f"{command} -o fit.json")
    for text in (
        "roofline, T = max(a1 tokens + c1",
        "piece 2, overhead_seconds",
        "95% limits",
        "MAPE on held-out",
        "16 passes from 16 of 32 rows",
    ):
        assert text in printed.out
    assert printed.err == "written to fit.json\n"
    assert cli(f"{command} --json").json == json.loads(Path("fit.json").read_text())
    shown = cli(f"{command} --form linear").out
    assert "linear, T = c1 tokens + c2" in shown
    assert "Warning: the linear form is off by more than 10% in" in shown
    assert "T = max(c, a2 tokens + c2)" in cli(f"{command} --form roofline --flat").out


def test_the_shipped_measurement(cli: CommandLine) -> None:
    """Tests that the shipped table gives runtimes of both models, of each phase, and the additive
    form.
    """
    flops = f"{measured_pair.FIT} {FLOPS} {measured_pair.PAIR}"
    data = cli(f"{flops} {MODELS} --json").json
    for role in ("draft", "verify"):
        assert data[role]["unit"] == "flops"
        assert data[role]["metrics"]["r2"] > 0.9
        assert data[role]["model"]["cost"] == "exact"
    for phase in ("prefill", "decode", "verify"):
        cli(f"{flops} --where phase={phase}")
    features = "--x batch_new_tokens --x batch_interactions --x batch_cached_tokens"
    additive = cli(f"{measured_pair.FIT} {features} --where model=verify-100m")
    assert "additive, T = a new" in additive.out


def test_picture(cli: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests that a picture of two fits is written, and that a missing vl-convert is one message
    that names the extra.
    """
    cli(f"{FIT} {PAIR} --picture fit.png")
    assert Path("fit.png").stat().st_size > 5000
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    cli.refuses(f"{FIT} --picture fit.png", "specopt[plot]")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--y time_us", "expected exactly one column 'time_us'"),
        ("--form cubic", "form: expected one of auto, linear, roofline, additive"),
        ("--form additive", "form: additive: expected rows that distinguish"),
        ("--x-unit bytes", "--x-unit: expected tokens or flops"),
        ("--y-unit h", "y_unit: expected one of s, ms, us"),
        ("--logits some", "--logits: expected last or all"),
        ("--where model", "--where: expected name=value"),
        ("--where model=none", "no row has model=none; the table contains model: small, large"),
        ("--repeat x", "--repeat: expected N or NAME=N"),
        ("--repeat 2 --repeat 3", "--repeat 3: given twice"),
        ("--draft model=small", "--draft and --verify belong together"),
        ("--draft-model c.json", "--draft-model, --verify-model: add --draft and --verify"),
        (f"{PAIR} --model c", "--model: cannot be combined with --draft and --verify"),
        (f"{PAIR} --where model=small", "--draft model: also given in --where"),
        ("--model none.json", "none.json: cannot be read"),
        ("--picture fit.bmp", "--picture: expected a file named .png"),
        ("-o none/fit.json", "no such directory"),
        ("--errors none", "errors: expected one of absolute, relative"),
        ("--level 2", "level: expected a number"),
    ],
)
def test_bad_usage_is_one_message(cli: CommandLine, options: str, message: str) -> None:
    """Tests that what cannot work exits with 2 and one message."""
    cli.refuses(f"{FIT} {options}", message)
