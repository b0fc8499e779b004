"""Charts of plans: the marks that browsers draw quickly, and a word on those that are left out."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from specopt import generate
from specopt.kinds.chart import MAX_MARKS, PALETTE, SERIES, looks
from specopt.kinds.draft_allocation.view import charts
from specopt.models.draft_allocation.problem import DraftAllocationPlan, DraftAllocationProblem
from specopt.models.fields import Floats


def test_charts_say_what_they_leave_out() -> None:
    """Tests that a chart has at most its marks, and that its note counts the rows where there are
    more.
    """
    for clients, left_out in (
        (12, ""),
        (MAX_MARKS + 1, " Only the first 1,500 of 1,501 are shown."),
    ):
        problem = generate("draft-allocation/uniform", clients=clients)
        assert isinstance(problem, DraftAllocationProblem)
        plan = DraftAllocationPlan(draft_tokens=np.zeros(problem.clients, np.int64))
        (chart,) = charts(problem, plan)
        assert chart.note == f"Each point is a client; its size is the weight.{left_out}"
        assert len(chart.rows) == min(clients, MAX_MARKS)


@pytest.mark.parametrize("dark", [False, True])
def test_lines_are_told_apart(dark: bool) -> None:
    """Tests that no two of many lines share colour and dashes, and that similar colours differ in
    dashes.
    """
    encoding = looks("line", range(32))
    names, dashes = (encoding[channel]["scale"]["range"] for channel in ("color", "strokeDash"))
    assert len(set(zip(names, dashes, strict=True))) == 32
    colours = [
        rgb(PALETTE[name.removeprefix("var(--").rstrip(")")][dark]) for name in names[:SERIES]
    ]
    for (one, dash), (other, another) in itertools.combinations(
        zip(colours, dashes, strict=False), 2
    ):
        distance = np.linalg.norm(one - other)
        assert distance > 0.25
        assert distance > 0.55 or dash != another


@pytest.mark.parametrize("dark", [False, True])
def test_colours_stand_out_from_their_paper(dark: bool) -> None:
    """Tests that words, and labels in bars, have a contrast of 4 at least on light and on dark
    paper.
    """
    light = {name: luminance(both[dark]) for name, both in PALETTE.items()}
    for name in ("ink", "soft", "good", "bad", *(f"series-{i}" for i in range(SERIES))):
        assert max(light[name], light["paper"]) / min(light[name], light["paper"]) > 4.0, name


def rgb(colour: str) -> Floats:
    """Return red, green and blue, 0 to 1."""
    return np.array([int(colour[i : i + 2], 16) / 255.0 for i in (1, 3, 5)])


def luminance(colour: str) -> float:
    """Return how light a colour is, with the light of the room."""
    return 0.05 + float(np.dot([0.2126, 0.7152, 0.0722], rgb(colour) ** 2.2))
