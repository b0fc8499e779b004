"""Every paper: what it lists, what small versions give, and what is refused."""

from __future__ import annotations

import json
from functools import cache

import pytest

from specopt import InvalidInput
from specopt.reproductions.artefact import Artefact, Verdict
from specopt.reproductions.registry import PAPERS, paper
from specopt.reproductions.selection import select


@cache
def small(name: str) -> tuple[Artefact, ...]:
    """All figures and tables of a paper, in small versions; of paper 1 one panel a figure, as the others cost more."""
    if name == "paper-1":
        return tuple(one for figure in ("figure-6a", "figure-7a", "figure-8a", "figure-9a") for one in of(name, figure))
    return of(name)


def of(name: str, figure: str | None = None) -> tuple[Artefact, ...]:
    """Small versions of some figures of a paper."""
    return tuple(paper(name).reproduce(figure, seeds=2, quick=True))


@pytest.mark.parametrize("name", PAPERS)
def test_names(name: str) -> None:
    """Tests that names are unique, can be typed, and select themselves alone."""
    names = paper(name).figures()
    assert len(set(names)) == len(names) > 0
    for one in names:
        assert one.startswith(("figure-", "table-"))
        paper(name).check(one, None)


@pytest.mark.slow
@pytest.mark.parametrize("name", PAPERS)
def test_small_versions(name: str) -> None:
    """Tests that everything listed is made, in order, with rows of equal keys, claims, and a verdict that follows."""
    found = small(name)
    expected = paper(name).figures() if name != "paper-1" else ("figure-6a", "figure-7a", "figure-8a", "figure-9a")
    assert tuple(one.name for one in found) == expected
    for one in found:
        assert one.rows
        assert all(row.keys() == one.rows[0].keys() for row in one.rows)
        assert one.claims
        assert one.title
        essential = [claim.holds for claim in one.claims if claim.essential]
        assert (one.verdict is Verdict.REPRODUCED) == all(claim.holds for claim in one.claims)
        assert (one.verdict is Verdict.NOT) == (
            not all(claim.holds for claim in one.claims) and not (essential and all(essential))
        )
        assert one.paragraph.startswith(f"{one.verdict.capitalize()}. ")
        assert one.paragraph.endswith(".")
        assert all(isinstance(claim.holds, bool) for claim in one.claims)
        json.dumps(one.to_dict(), allow_nan=False)


@pytest.mark.slow
@pytest.mark.parametrize("name", PAPERS)
def test_figures_are_drawn(name: str) -> None:
    """Tests that a figure has a picture with labelled axes, and a table has none."""
    for one in small(name):
        assert (one.draw is not None) == one.name.startswith("figure-")
        if one.draw is not None:
            axes = one.draw().axes
            assert axes
            assert any(panel.get_xlabel() for panel in axes) or any(panel.get_ylabel() for panel in axes)


def test_numbers_of_figures_are_whole() -> None:
    """Tests that figure-1 does not mean figures 10 to 12, and that figure-7 means all its panels."""
    assert [one.name for one in of("paper-4", "figure-1")] == ["figure-1"]
    assert select(paper("paper-1").figures(), "figure-7") == ("figure-7a", "figure-7b", "figure-7c")
    assert select(paper("paper-4").figures(), "figure-") == paper("paper-4").figures()[:8]
    with pytest.raises(InvalidInput, match="figure: expected one of"):
        select(paper("paper-4").figures(), "figure-1x")


def test_what_does_not_exist_is_refused() -> None:
    """Tests that papers, figures and numbers of seeds that make no sense are named."""
    with pytest.raises(InvalidInput, match=r"paper: expected one of paper-1, .* got 'paper-6'"):
        paper("paper-6")
    for name, one in PAPERS.items():
        with pytest.raises(InvalidInput, match="figure: expected one of"):
            one.check("figure-99", None)
        with pytest.raises(InvalidInput, match="seeds: expected at least"):
            one.check(None, 0)
        with pytest.raises(InvalidInput, match="seeds: expected at least"):
            next(paper(name).reproduce(seeds=0))
