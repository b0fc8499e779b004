"""The fit of g: exact data are recovered, and no other non-decreasing g on the knots fits
better.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from specopt.instances.prompt_chunking.workload import FIGURE_1
from specopt.models.errors import InvalidInput
from specopt.models.pass_time import CloudDelay
from testbed.cloud_delay import fit_cloud_delay


def loss(delay: CloudDelay, tokens: list[float], seconds: list[float]) -> float:
    """Return the sum of squared residuals."""
    return sum((delay.at(m) - y) ** 2 for m, y in zip(tokens, seconds, strict=True))


def test_exact_data_comes_back() -> None:
    """Tests that the g behind a table without noise is recovered, also beyond the last knot."""
    tokens = np.random.default_rng(0).uniform(0.0, 3000.0, 100)
    fit = fit_cloud_delay(tokens, [FIGURE_1.at(m) for m in tokens], knots=FIGURE_1.tokens)
    assert fit.cloud_delay.seconds == pytest.approx(FIGURE_1.seconds, rel=1e-9)
    assert fit.r2 == pytest.approx(1.0)
    assert fit.worst_seconds < 1e-9
    assert fit.samples == 100


@given(
    st.lists(st.tuples(st.floats(0.0, 120.0), st.floats(0.0, 1.0)), min_size=1, max_size=15),
    st.lists(st.floats(0.0, 0.5), min_size=4, max_size=4),
    st.floats(0.0, 1.0),
)
def test_nothing_fits_better(
    rows: list[tuple[float, float]], increments: list[float], share: float
) -> None:
    """Tests that no other g, and no step from the fit towards one, has a smaller loss (the problem
    is convex).
    """
    tokens, seconds = [row[0] for row in rows], [row[1] for row in rows]
    knots = np.array([0.0, 10.0, 50.0, 100.0])
    found = fit_cloud_delay(tokens, seconds, knots=knots).cloud_delay
    other = np.cumsum(increments)
    least = loss(found, tokens, seconds)
    for weight in (1.0, share, 1e-3):
        mixed = CloudDelay(tokens=knots, seconds=(1.0 - weight) * found.seconds + weight * other)
        assert least <= loss(mixed, tokens, seconds) + 1e-9


@given(
    st.lists(st.tuples(st.integers(0, 50), st.floats(0.0, 1.0)), min_size=1, max_size=20),
    st.integers(2, 6),
)
def test_any_table_gives_a_g(rows: list[tuple[int, float]], most: int) -> None:
    """Tests that knots are found for any table, including one row, and that g is valid and at least
    as good as a constant.
    """
    tokens, seconds = [float(row[0]) for row in rows], [row[1] for row in rows]
    fit = fit_cloud_delay(tokens, seconds, most_knots=most)
    assert 2 <= len(fit.cloud_delay.tokens) <= most
    assert fit.r2 >= -1e-6
    assert fit.rmse_seconds <= fit.worst_seconds + 1e-12


def test_bad_tables_are_refused() -> None:
    """Tests that messages contain the name of the argument."""
    for tokens, seconds, options, match in (
        ([], [], {}, "tokens"),
        ([1.0], [1.0, 2.0], {}, "seconds"),
        ([-1.0], [1.0], {}, "tokens"),
        ([1.0], [np.nan], {}, "seconds"),
        ([1.0], [1.0], {"knots": [1.0]}, "knots"),
        ([1.0], [1.0], {"knots": [2.0, 1.0]}, "knots"),
        ([1.0], [1.0], {"most_knots": 1}, "most_knots"),
    ):
        with pytest.raises(InvalidInput, match=match):
            fit_cloud_delay(tokens, seconds, **options)
