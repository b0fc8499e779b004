"""Figures 3 and 4 of paper 3, on a small vocabulary: what is claimed, what is drawn, and what stands for what."""

from __future__ import annotations

import json

import numpy as np
import pytest

from specopt import solve
from specopt.reproductions.artefact import Artefact, Verdict
from specopt.reproductions.paper_3 import artefacts
from specopt.reproductions.paper_3_simulation import CLASSES, RESOLUTIONS, UPLINKS, laws_at, problem_of

Figures = tuple[Artefact, Artefact, Artefact]


@pytest.fixture(scope="module")
def figures() -> Figures:
    """All figures, quickly."""
    return artefacts(temperatures=(0.5, 1.0), positions=12, vocabulary_size=3000, replications=50)


def test_figure_3(figures: Figures) -> None:
    """Tests that Q-S keeps the server's law to rounding, S-Q does not, and all of the figure's points hold."""
    figure = figures[0]
    assert figure.verdict is Verdict.REPRODUCED, figure.paragraph
    for row in figure.rows:
        kept, lost, alone = (float(row[f"error of {name}"] or 0.0) for name in ("Q-S", "S-Q", "SLM"))
        assert kept < 1e-12 < 1e-3 < lost < alone
        assert row["entropy of Q-S"] == pytest.approx(row["entropy of LLM"], abs=1e-9)


def test_figure_4(figures: Figures) -> None:
    """Tests that the optimum is above every line that keeps the law, and that verdicts follow from the claims."""
    for figure in figures[1:]:
        assert [claim.holds for claim in figure.claims[:3]] == [True] * 3, figure.paragraph
        assert (figure.verdict is Verdict.NOT) == (not all(claim.holds for claim in figure.claims))
        for row in figure.rows:
            rate = {name: float(value) for name, value in row.items() if isinstance(value, float)}
            assert rate["dynamic Q-S"] > rate["static Q-S"] > rate["LLM"]
            assert rate["dynamic Q-S"] >= rate["myopic Q-S"]
            assert rate["dynamic Q-S"] > rate["heuristic Q-S"] > rate["LLM"]
            assert rate["error of S-Q"] > 1e-3
    assert float(figures[2].rows[0]["dynamic Q-S"] or 0) > float(figures[1].rows[0]["dynamic Q-S"] or 0)


def test_paper_is_named_synthetic(figures: Figures) -> None:
    """Tests that every figure says that synthetic distributions stand in, and becomes JSON."""
    for figure in figures:
        assert "Synthetic softmax distributions" in figure.remark
        assert json.loads(json.dumps(figure.to_dict()))["verdict"] == figure.verdict.value


@pytest.mark.parametrize("regime", ["low", "high"])
def test_mean_uplink(regime: str) -> None:
    """Tests that the chain's mean uplink rate is the printed one."""
    problem = problem_of(np.full((len(RESOLUTIONS), len(CLASSES)), 0.5), regime, RESOLUTIONS)
    rates = [state.uplink_bits_per_second for state in problem.states]
    assert float(problem.stationary_distribution @ rates) == pytest.approx(UPLINKS[regime])
    assert solve(problem).status == "optimal"


def test_classes_are_ordered() -> None:
    """Tests that the surer the draft model is, the more it is accepted, at the finest resolution."""
    rates = laws_at(1.0, positions=60, vocabulary_size=2000).quantise_sample_rates
    assert rates[-1, 0] < rates[-1, 1] < rates[-1, 2]


def test_pictures(figures: Figures) -> None:
    """Tests that every figure draws a line per strategy over all temperatures."""
    for figure, lines in zip(figures, ((3, 4), (6,), (6,)), strict=True):
        assert figure.draw is not None
        panels = figure.draw().axes
        assert tuple(len(axes.lines) for axes in panels) == lines
        assert all(len(line.get_xdata()) == 2 for axes in panels for line in axes.lines)  # type: ignore[arg-type]
