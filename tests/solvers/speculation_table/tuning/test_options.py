"""Tests of the choice among drafters, modes and trees."""

from __future__ import annotations

import numpy as np
import pytest

from specopt.models.sweep import Condition, Measurement, Point, Setup, Sweep
from specopt.solvers.speculation_table.prices import FREE, Prices
from specopt.solvers.speculation_table.tuning.goal import Goal
from specopt.solvers.speculation_table.tuning.options import Options

MTP, DFLASH, OWN = Setup("mtp"), Setup("dflash"), Setup("mtp", "adaptive")
NONE = {("chat", 1): 100.0, ("chat", 8): 500.0, ("code", 1): 100.0, ("code", 8): 500.0}
SPEEDS = {
    MTP: {("chat", 1): 150.0, ("chat", 8): 700.0, ("code", 1): 160.0, ("code", 8): 700.0},
    DFLASH: {("chat", 1): 110.0, ("chat", 8): 510.0, ("code", 1): 220.0, ("code", 8): 900.0},
}


def _sweep(speeds: dict[Setup, dict[tuple[str, int], float]], length: int = 3) -> Sweep:
    rows = [
        Measurement(Point(Condition(c, name), None), speed) for (name, c), speed in NONE.items()
    ]
    rows += [
        Measurement(Point(Condition(c, name), length), speed, setup=setup)
        for setup, own in speeds.items()
        for (name, c), speed in own.items()
    ]
    return Sweep(tuple(rows))


def _options(sweep: Sweep, **goal: object) -> Options:
    wanted = Goal(prices=Prices(FREE, FREE), **goal)  # type: ignore[arg-type]
    return Options.of(sweep, wanted, 0.02, 0.9)


def _harmonic(speeds: dict[tuple[str, int], float], shares: dict[str, float], c: int) -> float:
    return 1.0 / sum(share / speeds[name, c] for name, share in shares.items())


@pytest.mark.parametrize("code", [0.05, 0.5, 0.95])
def test_the_best_drafter_of_a_mix_by_hand(code: float) -> None:
    """Tests that the drafter with the largest geometric mean of harmonic means is taken, with what
    each class loses.
    """
    shares = {"chat": 1.0 - code, "code": code}
    found = _options(_sweep(SPEEDS), mix=shares)
    means = {s: np.prod([_harmonic(own, shares, c) for c in (1, 8)]) for s, own in SPEEDS.items()}
    best = max(means, key=lambda s: float(means[s]))
    assert found.best.setup == best
    data = found.to_dict()
    assert data["option"] == vars(best)
    assert [row["drafter"] for row in data["options"]] == [
        best.drafter,
        ({MTP, DFLASH} - {best}).pop().drafter,
    ]
    for row in data["classes"]:
        own = {s: np.prod([SPEEDS[s][row["workload"], c] for c in (1, 8)]) ** 0.5 for s in SPEEDS}
        assert row["drafter"] == max(own, key=lambda s: float(own[s])).drafter
        assert row["lost"] == pytest.approx(1.0 - own[best] / max(own.values()))
    other = ({MTP, DFLASH} - {best}).pop()
    # one length was measured, so that the other deployment has one configuration anyway
    ratios = [max(1.0, SPEEDS[other][key] / SPEEDS[best][key]) for key in NONE]
    second = data["second"]
    assert second["drafter"] == other.drafter
    both = {key: max(SPEEDS[s][key] for s in SPEEDS) for key in NONE}
    gains = [_harmonic(both, shares, c) / _harmonic(SPEEDS[best], shares, c) for c in (1, 8)]
    assert second["gain"] == pytest.approx(np.prod(gains) ** 0.5 - 1.0)
    assert len(second["better"]) == sum(ratio > 1.01 for ratio in ratios)
    names = {(row["drafter"], row["draft_length"]) for row in data["predictions"]}
    assert {("mtp", 3), ("dflash", 3)} <= names
    assert sum(length == "none" for _, length in names) == 1


def test_a_second_deployment_has_one_configuration() -> None:
    """Tests that its gain is that of one draft length for all classes that it serves."""
    speeds = {
        2: {"chat": 150.0, "code": 150.0, "math": 150.0},
        1: {"chat": 160.0, "code": 100.0, "math": 140.0},
        6: {"chat": 70.0, "code": 200.0, "math": 165.0},
    }
    names = ("chat", "code", "math")
    rows = [Measurement(Point(Condition(1, name), None), 100.0) for name in names]
    rows += [
        Measurement(Point(Condition(1, name), k), speed, setup=MTP)
        for k, own in speeds.items()
        for name, speed in own.items()
    ]
    second = _options(Sweep(tuple(rows)), single=True, draft_lengths=(1, 2, 6)).second
    assert second is not None
    shared = sum(1 / 150.0 for _ in names)
    pair = [sum(1 / max(150.0, speeds[k][name]) for name in names) for k in (1, 6)]
    assert second["gain"] == pytest.approx(shared / min(pair) - 1.0)
    assert {one["draft_length"] for one in second["better"]} == {6}


def test_a_class_with_fewer_loads_is_left_out() -> None:
    """Tests that a workload that was not measured at every load has no answer of its own, and
    breaks nothing.
    """
    sweep = _sweep(SPEEDS)
    kept = [m for m in sweep.measurements if m.point.condition != Condition(1, "code")]
    found = _options(Sweep(tuple(kept)))
    assert [row["workload"] for row in found.classes] == ["chat"]
    assert _options(Sweep(tuple(kept)), workload="code").loads == [8]


def test_an_own_mode_is_an_option_with_its_longest_length_only() -> None:
    """Tests that nothing is put between, below or beyond what an engine's own mode was measured
    with, and no table.
    """
    better = {key: 1.3 * speed for key, speed in SPEEDS[MTP].items()}
    found = _options(_sweep({MTP: SPEEDS[MTP], OWN: better}, 7))
    assert found.best.setup == OWN
    assert found.best.name == 7
    assert [k for k in range(9) if found.best.is_option(k)] == [0, 1, 8]


@pytest.mark.nightly
def test_the_regret_bound_holds_other_drafters() -> None:
    """Tests that a drafter that is nearly as good counts in what may be lost and is asked about; a
    bad one is not.
    """
    near = {key: 0.999 * speed for key, speed in SPEEDS[MTP].items()}
    bad = {key: 0.5 * speed for key, speed in SPEEDS[MTP].items()}
    sweep = _sweep({MTP: SPEEDS[MTP], DFLASH: near, Setup("ngram"): bad})
    found = Options.of(sweep, Goal(), 0.001, 0.9, asking=True)
    assert set(found.doubtful) == {MTP, DFLASH}
    assert found.regret_bound >= found.best.regret_bound
    assert {setup for setup, _ in found.ask(40)} == {MTP, DFLASH}


def test_one_drafter_names_nothing() -> None:
    """Tests that a sweep with one setup has no option to name and no table of options."""
    data = _options(_sweep({MTP: SPEEDS[MTP]}), workload="chat").to_dict()
    assert data["option"] is None
    assert "options" not in data and "classes" not in data and "second" not in data
    assert all("drafter" not in row for row in data["predictions"])
