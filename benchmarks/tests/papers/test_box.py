"""Maps of verdicts: where known statements hold, and what decides them."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from papers.box import first_order, sample, split
from papers.experiment import Found, run
from papers.ledger import Assumption, Paper, Statement

pytestmark = pytest.mark.nightly

SLOW = Assumption(name="draft_ms", default=2.0, reason="r", low=1.0, high=100.0, log=True)
IDLE = Assumption(name="idle", default=0.5, reason="r", low=0.0, high=1.0)
WORD = Assumption(name="reading", default="a", reason="r", choices=("a", "b", "c", "d"))


def test_points_fill_the_box() -> None:
    """Tests that of 64 points each choice and each eighth of each range gets its share, and that
    the seed decides.
    """
    places, points = sample((SLOW, IDLE, WORD), 64, seed=3)
    for column in places.T[:2]:
        assert np.bincount((column * 8).astype(int), minlength=8).tolist() == [8] * 8
    assert sorted({point["reading"] for point in points}) == ["a", "b", "c", "d"]
    assert np.array_equal(places, sample((SLOW, IDLE, WORD), 64, seed=3)[0])
    assert len(sample((SLOW,), 5)[1]) == 5


def test_points_are_distinct() -> None:
    """Tests that a box of choices alone has no more points than there are choices, each once, at
    its place.
    """
    other = Assumption(name="other", default=1, reason="r", choices=(1, 2, 3))
    places, points = sample((WORD, other), 64)
    assert len(points) == len({tuple(point.values()) for point in points}) == 12 == len(places)
    assert [WORD.at(place) for place in places[:, 0].tolist()] == [
        point["reading"] for point in points
    ]


def test_indices_of_known_statements() -> None:
    """Tests that what decides alone explains all, what plays no part next to nothing, and halves
    half each.
    """
    box = (SLOW, IDLE, WORD)
    places, points = sample(box, 512)
    slow = np.array([point["draft_ms"] < 10.0 for point in points])  # half of the range
    word = np.array([point["reading"] in "ab" for point in points])
    assert first_order(box, places, slow) == pytest.approx([1.0, 0.0, 0.0], abs=0.02)
    # of "both", with chance 1/4, each alone explains (1/2 - 1/4)^2 / (3/16) = 1/3
    assert first_order(box, places, slow & word) == pytest.approx([1 / 3, 0.0, 1 / 3], abs=0.03)
    assert first_order(box, places, np.ones(512, dtype=bool)).tolist() == [0.0, 0.0, 0.0]


def test_the_cut_of_a_known_statement() -> None:
    """Tests that the cut is found, on the side where the statement holds, for ranges both ways and
    for choices.
    """
    places, points = sample((SLOW, WORD), 256)
    fast = np.array([point["draft_ms"] < 4.0 for point in points])
    assert str(split(SLOW, places[:, 0], fast)).startswith("holds in 100 % with draft_ms < 4.0")
    assert str(split(SLOW, places[:, 0], ~fast)).startswith("holds in 100 % with draft_ms >= ")
    chosen = np.array([point["reading"] == "c" for point in points])
    found = str(split(WORD, places[:, 1], chosen))
    assert found == "holds in 100 % with reading = c, otherwise in 0 %"


def test_a_run_from_end_to_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests that an experiment is played at its defaults over all seeds, at every point with its
    own, and judged.
    """
    said = {
        name: Statement(id=name, place="p", statement="s", status="simulated", by="e")
        for name in ("below", "always")
    }
    paper = Paper(
        name="p",
        title="t",
        identifiers=(),
        summary=(),
        statements=said,
        assumptions={"draft_ms": SLOW},
        experiments={"e": ("draft_ms",)},
    )
    seen: list[tuple[int, ...]] = []

    def experiment(point: dict[str, float], seeds: range) -> Found:
        seen.append(tuple(seeds))
        return Found({"below": 10.0 - point["draft_ms"], "always": 1.0})

    monkeypatch.setattr(Paper, "module", SimpleNamespace(EXPERIMENTS={"e": experiment}))
    found = run(paper, "e", samples=32, seeds=2)
    below, always = found.findings
    assert seen[0] == (0, 1) and seen[1:] == [(2 + i,) for i in range(32)]
    assert below.holds and below.held == 16 and below.deciding == (("draft_ms", 1.0),)
    assert always.held == 32 and always.split is None
    assert always.to_dict() == {"ours": 1.0, "held": 32, "samples": 32, "median": 1.0}
    assert below.to_dict()["split"].startswith("holds in 100 % with draft_ms <")
