"""Ranges of batch sizes: fewest, then least lost, against every partition."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from specopt.models.errors import InvalidInput
from specopt.models.fields import Floats
from specopt.solvers.speculation_table.ranges import fewest_ranges

tables = st.tuples(st.integers(1, 6), st.integers(1, 3)).flatmap(
    lambda shape: arrays(np.float64, shape, elements=st.sampled_from([1.0, 1.5, 1.9, 1.99, 2.0]))
)


def by_enumeration(value: Floats, loss: float) -> tuple[int, float]:
    """Return the fewest ranges and the least sum of losses, over every choice per size."""
    sizes, choices = value.shape
    best = (sizes + 1, np.inf)
    for chosen in itertools.product(range(choices), repeat=sizes):
        lost = [1.0 - value[i, c] / value[i].max() for i, c in enumerate(chosen)]
        if max(lost) <= loss + 1e-12:
            best = min(best, (sum(1 for _ in itertools.groupby(chosen)), round(sum(lost), 12)))
    return best


@given(tables, st.sampled_from([0.0, 0.01, 0.1, 0.6]))
def test_fewest_and_least(value: Floats, loss: float) -> None:
    """Tests that no choice per size has fewer ranges within the loss, or as many and less lost."""
    ranges = fewest_ranges(value, loss)
    assert [low for low, _, _ in ranges] == [1, *(high + 1 for _, high, _ in ranges[:-1])]
    assert ranges[-1][1] == len(value)
    lost = [
        1.0 - value[b - 1, c] / value[b - 1].max()
        for low, high, c in ranges
        for b in range(low, high + 1)
    ]
    assert max(lost) <= loss + 1e-12
    count, total = by_enumeration(value, loss)
    assert len(ranges) == count
    assert sum(lost) == pytest.approx(total, abs=1e-9)


@pytest.mark.parametrize("loss", [-0.1, 1.0, True, float("nan")])
def test_impossible_losses_are_refused(loss: float) -> None:
    """Tests that a loss outside [0, 1) is named."""
    with pytest.raises(InvalidInput, match=r"loss: expected a number in \[0, 1\)"):
        fewest_ranges(np.ones((1, 1)), loss)


def test_values_must_be_positive() -> None:
    """Tests that goodputs that are not positive and finite are refused."""
    for bad in (0.0, np.inf, np.nan):
        with pytest.raises(InvalidInput, match="value: expected positive finite goodputs"):
            fewest_ranges(np.array([[1.0, bad]]), 0.0)
