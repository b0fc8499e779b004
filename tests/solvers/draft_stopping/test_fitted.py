"""Draft stopping fitted to a log: the problem, the plans played on held-out rounds, and what the
command says.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.draft_logs import draft_log, write
from helpers.untyped import solve

from specopt import InvalidInput
from specopt.commands.cli import run
from specopt.instances.reading.draft_table import read_draft_log
from specopt.models.drafting import DraftLog
from specopt.solvers.draft_stopping.fitted import FittedStopping, fit_stopping

COSTS: Any = {"draft_seconds_per_token": 0.02, "round_seconds": 0.15}
OPTIONS = ("--draft-seconds", "0.02", "--round-seconds", "0.15")


@pytest.fixture(scope="module")
def fitted() -> FittedStopping:
    """A problem fitted to rounds whose features say much."""
    return fit_stopping(draft_log(1500, window=6, signal=1.5, seed=3), bins=4, **COSTS)


def test_a_table_is_the_log_it_was_written_from(tmp_path: Path) -> None:
    """Tests that rounds, outcomes and features are read back, and that columns can be chosen."""
    log = draft_log(40, window=5, seed=1)
    found = read_draft_log(write(log, tmp_path / "log.csv"))
    assert found.names == log.names
    assert np.array_equal(found.outcomes, log.outcomes)
    assert np.allclose(found.features, log.features, rtol=1e-11)
    assert read_draft_log(tmp_path / "log.csv", ["margin"]).names == ("margin",)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("round,outcome,x\n1,2,0.5\n", "line 2, outcome: expected 1, 0 or -1, got '2'"),
        ("round,outcome,x\n1.5,1,0.5\n", "line 2, round: expected an integer, got '1.5'"),
        (
            "round,outcome,x\n1,1,high\n",
            "line 2, x: expected a number of size <= 1e+100, got",
        ),
        ("round,outcome\n1,1\n", "line 1: expected at least one feature column, got none"),
        (
            "round,result,x\n1,1,2\n",
            "expected exactly one column 'outcome', but the header has round, result, x",
        ),
        ("round,outcome,x\n", "expected at least one drafted token, got none"),
        ("round,outcome,x\n1,0,2\n1,1,2\n", "a 0 is followed by a 1"),
        ("round,outcome,x\n1,1,2\n1,-1,2\n", "a 1 is followed by a -1"),
        (
            "round,outcome,x\n1,-1,2\n",
            "expected rounds that begin with 1 or 0, got one that begins with -1",
        ),
    ],
)
def test_what_is_no_log(
    text: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Tests that a table that is no log is refused with the line, the column and what was
    expected.
    """
    path = tmp_path / "log.csv"
    path.write_text(text)
    assert run(["fit-predictor", str(path), *OPTIONS]) == 2
    assert said in capsys.readouterr().err


def test_rounds_are_played_one_by_one(fitted: FittedStopping) -> None:
    """Tests that tokens and seconds of held-out rounds are those of a loop over their tokens."""
    plan = solve(fitted.problem).plan
    tokens, seconds = fitted.play(plan)
    for number, (scores, outcomes) in enumerate(zip(fitted._scores, fitted._outcomes, strict=True)):
        node, right, drafted = plan.start, 0, 0
        while node != -1:
            right += int(outcomes[drafted] == 1)
            node, drafted = plan.next.rows[node][scores[drafted]], drafted + 1
        assert tokens[number] == 1 + right
        assert seconds[number] == pytest.approx(0.15 + 0.02 * drafted)


def test_errors_are_those_of_a_point_of_the_curve(fitted: FittedStopping) -> None:
    """Tests that errors where the probability is cut are far below guessing, and near or below the
    curve's area.
    """
    good = 1.0 - 0.5 * (
        fitted.false_accept + fitted.false_reject
    )  # the area of the curve through that point alone
    assert 0.6 < good <= fitted.area + 0.01 < 1.0


def test_the_model_foretells_held_out_rounds(fitted: FittedStopping) -> None:
    """Tests that the speed on held-out rounds is the model's within five standard errors, above the
    fixed window's.
    """
    best, window = solve(fitted.problem), solve(fitted.problem, "fixed-window").plan
    speed = fitted.speed(best.plan)
    assert abs(speed.mean - best.objective) < 5.0 * speed.standard_error
    gain, low, high = fitted.gain(best.plan, window)
    assert 0.0 < low < gain < high
    assert fitted.gain(window, window) == (0.0, 0.0, 0.0)
    played = np.array([*fitted.play(best.plan), *fitted.play(window)], dtype=np.float64)
    mine, my_seconds, its, its_seconds = (
        played.sum(axis=1, keepdims=True) - played
    )  # each round left out once
    logs = np.log(mine / my_seconds * its_seconds / its)
    half = 1.96 * np.sqrt((len(logs) - 1) * logs.var())  # the jackknife's
    assert np.log1p(high) - np.log1p(gain) == pytest.approx(half, rel=0.01)
    assert np.log1p(gain) - np.log1p(low) == pytest.approx(half, rel=0.01)


def test_short_rounds_are_dropped_and_counted() -> None:
    """Tests that rounds shorter than the longest draft are left out, and that too few are
    refused.
    """
    log = draft_log(62, window=4, seed=2)
    keep = np.ones(len(log), dtype=bool)
    keep[3] = False  # the first round has three tokens left
    assert log.rounds is not None
    short = DraftLog(
        features=log.features[keep],
        outcomes=log.outcomes[keep],
        names=log.names,
        rounds=log.rounds[keep],
    )
    found = fit_stopping(short, bins=2, **COSTS)
    assert (found.rounds, found.dropped) == (61, 1)
    assert len(found._outcomes) == 20  # of 61, a third
    with pytest.raises(
        InvalidInput, match="expected at least 30 rounds with 5 draft tokens, got 0"
    ):
        fit_stopping(short, max_draft_tokens=5, **COSTS)


def test_rounds_have_seconds_by_their_drafts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Tests that a whole list of seconds reaches problem and held-out rounds, and that not drafting
    is a rival.
    """
    log = write(draft_log(600, window=3, signal=0.0, seed=5), tmp_path / "log.csv")
    given = ["fit-predictor", str(log), "--draft-seconds", "0.02", "--json", "--round-seconds"]
    assert run([*given, "0.05,0.15,0.16,0.17"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["problem"]["round_seconds"] == [0.05, 0.15, 0.16, 0.17]
    rules = {one["method"]: one for one in found["rules"]}
    assert rules["no-drafts"]["held_out"] == rules["no-drafts"]["model"] == pytest.approx(20.0)
    assert rules["optimal-stopping"]["held_out"] == pytest.approx(
        20.0
    )  # drafts cost more than they bring
    for text, said in (
        ("0.1,0.2", "expected one number, or 4 numbers"),
        ("0.1,fast", "--round-seconds: expected numbers separated by commas"),
    ):
        assert run([*given, text]) == 2
        assert said in capsys.readouterr().err
