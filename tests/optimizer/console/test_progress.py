"""Lines of progress."""

from __future__ import annotations

import pytest

from specopt.console.progress import progress_line
from specopt.models.result import Progress


@pytest.mark.parametrize(
    ("objective", "bound", "gap"),
    [(160.0, 6.4, 0.96), (33.5, 230.0, 1.48e81), (100.0, 210.0, 1.1)],
)
def test_a_far_bound_is_not_shown(objective: float, bound: float, gap: float) -> None:
    """Tests that a bound that is farther than 100 % from the objective is not printed."""
    line = progress_line(Progress(1.5, objective, bound, gap))
    assert line == f"    1.5 s  objective {objective:g}  bound not known yet"


@pytest.mark.parametrize(("bound", "gap"), [(60.0, 0.4), (190.0, 0.9), (100.0, 0.0)])
def test_a_close_bound_is_shown(bound: float, gap: float) -> None:
    """Tests that other bounds are printed with their gap."""
    line = progress_line(Progress(1.5, 100.0, bound, gap))
    assert line == f"    1.5 s  objective 100  bound {bound:g}  gap {100 * gap:g} %"
