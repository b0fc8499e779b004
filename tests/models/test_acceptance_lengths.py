"""Acceptance by draft length: what is answered, what only by extrapolation, and what is refused."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from specopt.models.acceptance_lengths import AcceptanceLengths
from specopt.models.errors import InvalidInput

FALLING = AcceptanceLengths.exactly({1: 1.84, 2: 2.51, 3: 2.47})


def extrapolated(tokens: dict[int, float]) -> AcceptanceLengths:
    """Return lengths that answer for all others, too."""
    found = AcceptanceLengths.exactly(tokens)
    return AcceptanceLengths(
        lengths=found.lengths,
        tokens=found.tokens,
        lower=found.lower,
        upper=found.upper,
        extrapolate=True,
    )


def test_the_table_is_the_answer() -> None:
    """Tests that measured lengths are answered as they are, rises and falls alike, and a fall is
    noted.
    """
    assert FALLING.expected_tokens(3).tolist() == [1.0, 1.84, 2.51, 2.47]
    assert FALLING.max_drafts == 3
    assert not FALLING.has_limits
    assert FALLING.notes == (
        (
            "a step yields 2.51 tokens with 2 drafts and 2.47 with 3: acceptance depends on the"
            " draft length, or the means are inaccurate; rates by position cannot describe it"
        ),
    )
    assert AcceptanceLengths.exactly({1: 1.5, 2: 1.8}).notes == ()


@pytest.mark.parametrize(
    ("tokens", "known", "asked"), [({1: 1.5, 3: 2.0}, 1, 2), ({2: 1.5}, 0, 1), ({1: 1.5}, 1, 2)]
)
def test_other_lengths_are_refused(tokens: dict[int, float], known: int, asked: int) -> None:
    """Tests that lengths between and beyond those measured are refused, and up to where all are
    known.
    """
    found = AcceptanceLengths.exactly(tokens)
    assert found.max_drafts == known
    assert found.expected_tokens(known)[0] == 1.0
    with pytest.raises(
        InvalidInput,
        match=f"but drafts of {asked} were not; allow extrapolation or measure this length",
    ):
        found.expected_tokens(known + 1)


def test_extrapolation_by_hand() -> None:
    """Tests that means are interpolated linearly and continued with shrinking gains, between
    limits.
    """
    found = extrapolated({1: 1.8, 3: 2.6})
    assert found.max_drafts is None
    assert found.expected_tokens(5) == pytest.approx([1.0, 1.8, 2.2, 2.6, 2.8, 2.9])
    assert found.expected_tokens(5, "lower") == pytest.approx([1.0, 1.8, 2.2, 2.6, 2.6, 2.6])
    assert found.expected_tokens(5, "upper") == pytest.approx([1.0, 1.8, 2.2, 2.6, 3.0, 3.4])
    fallen = extrapolated({1: 1.8, 2: 1.7})
    assert fallen.expected_tokens(4) == pytest.approx([1.0, 1.8, 1.7, 1.7, 1.7])
    assert extrapolated({1: 1.5}).expected_tokens(3) == pytest.approx([1.0, 1.5, 1.75, 1.875])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: AcceptanceLengths.exactly({}), "lengths: expected increasing draft lengths"),
        (lambda: AcceptanceLengths.exactly({0: 1.0}), "lengths: expected an integer from 1"),
        (lambda: AcceptanceLengths.exactly({1: 2.5}), r"tokens: expected 1 to 1 \+ K tokens"),
        (lambda: AcceptanceLengths.exactly({1: 0.9}), r"tokens: expected 1 to 1 \+ K tokens"),
        (
            lambda: AcceptanceLengths.exactly({1: float("nan")}),
            r"tokens: expected 1 to 1 \+ K tokens",
        ),
        (
            lambda: AcceptanceLengths(
                lengths=(1,), tokens=np.array([1.5]), lower=np.array([1.6]), upper=np.array([1.7])
            ),
            "lower <= tokens <= upper",
        ),
    ],
)
def test_bad_lengths_are_named(make: Callable[[], object], message: str) -> None:
    """Tests that each impossible table is refused with what was expected."""
    with pytest.raises(InvalidInput, match=message):
        make()
