"""Figures 6-9 of paper 1: small versions of the panels, their claims and their pictures."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from specopt import InvalidInput
from specopt.instances.serving_latency.paper_1 import paper_1
from specopt.reproductions.artefact import Artefact, Verdict
from specopt.reproductions.interval import interval
from specopt.reproductions.paper_1 import FIGURES, PANELS, Axis, Panel, artefact
from specopt.reproductions.paper_1_schemes import (
    AUTOREGRESSIVE,
    EXACT,
    LENGTH_AWARE,
    OWN_BATCHES,
    PROPOSED,
    REAL,
    UNIFORM,
    WITHOUT_PIPELINE,
    Schemes,
)
from specopt.reproductions.registry import paper


def small(name: str, points: tuple[float, ...] | None = None) -> Artefact:
    """Return a panel over a few points with few tasks."""
    panel = PANELS[name]
    axis = dataclasses.replace(panel.axis, points=points or panel.axis.points[:2])
    fixed = {"tasks": 12, **panel.fixed}
    few = dataclasses.replace(panel, axis=axis, fixed={k: v for k, v in fixed.items() if k != axis.field})
    return artefact(few, few.measure((1, 2), lambda _: None, {}))


def test_every_figure_has_its_panels() -> None:
    """Tests that Figures 6 to 9 have three panels each."""
    assert tuple(f"figure-{number}{letter}" for number in "6789" for letter in "abc") == FIGURES


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "points"),
    [("figure-6b", None), ("figure-7b", (256, 512)), ("figure-8a", (8, 90)), ("figure-9a", (5e6, 25e6))],
)
def test_panels_have_data_claims_and_a_picture(name: str, points: tuple[float, ...] | None) -> None:
    """Tests that a small version of one panel of every figure has a row per point and line, and can be drawn."""
    found = small(name, points)
    lines = PANELS[name].lines
    assert len(found.rows) == 2 * len(lines)
    for row in found.rows:
        low, mean, high = (float(row[key] or 0.0) for key in ("interval_low", "mean_seconds", "interval_high"))
        assert mean > 0.0
        assert low <= mean <= high
    assert found.claims
    assert found.paragraph.startswith(found.verdict.capitalize())
    assert found.draw is not None
    legend = found.draw().axes[0].get_legend()
    assert legend is not None
    assert len(legend.get_texts()) == len(lines)


def test_lines_agree_with_what_they_mean() -> None:
    """Tests that the schemes are in the order that they must have whatever the draw."""
    schemes = Schemes(paper_1(tasks=12, seed=3))
    seconds = {line: schemes.seconds(line) for line in (PROPOSED, EXACT, UNIFORM, WITHOUT_PIPELINE, OWN_BATCHES, REAL)}
    assert seconds[EXACT] <= seconds[PROPOSED] <= seconds[UNIFORM]
    assert seconds[PROPOSED] <= seconds[WITHOUT_PIPELINE]
    assert seconds[OWN_BATCHES] <= seconds[WITHOUT_PIPELINE]
    assert seconds[REAL] <= seconds[PROPOSED]
    assert schemes.seconds(LENGTH_AWARE) <= seconds[REAL]


def test_verdicts_follow_from_the_numbers() -> None:
    """Tests that levels that differ leave the shape, and a wrong order leaves nothing."""
    panel = Panel(
        name="figure-9a",
        title="made up",
        axis=Axis(label="bandwidth, MHz", field="bandwidth", points=(5e6, 25e6), unit=1e6),
        lines=(PROPOSED, UNIFORM),
        fixed={},
    )

    def verdict(proposed: list[float], uniform: list[float]) -> Verdict:
        seconds = {PROPOSED: np.outer(proposed, [1.0, 1.001]), UNIFORM: np.outer(uniform, [1.0, 1.001])}
        return artefact(panel, seconds).verdict

    assert verdict([8.0, 5.51], [12.0, 10.0]) is Verdict.REPRODUCED  # printed: 44.9 % at 25 MHz
    assert verdict([8.0, 7.0], [12.0, 10.0]) is Verdict.IN_SHAPE
    assert verdict([8.0, 11.0], [12.0, 10.0]) is Verdict.NOT


def test_interval_of_known_numbers() -> None:
    """Tests that the Student interval of three numbers is 4.303 times the standard error."""
    mean, half = interval(np.array([1.0, 2.0, 3.0]))
    assert mean == 2.0
    assert half == pytest.approx(4.302653 / np.sqrt(3.0), rel=1e-6)


def test_unknown_figures_are_refused() -> None:
    """Tests that a figure that the paper does not have, and too few draws, are named."""
    with pytest.raises(InvalidInput, match="figure: expected one of figure-6a"):
        next(paper("paper-1").reproduce("figure-5"))
    with pytest.raises(InvalidInput, match="seeds: expected at least 2"):
        next(paper("paper-1").reproduce("figure-6a", seeds=1))
    assert AUTOREGRESSIVE in PANELS["figure-6a"].lines
