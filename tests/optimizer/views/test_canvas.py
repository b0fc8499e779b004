"""The palette."""

from __future__ import annotations

import itertools

import numpy as np
from matplotlib.colors import to_rgb

from specopt.views.canvas import COLOURS, line_style


def test_lines_are_told_apart() -> None:
    """Tests that no two of many lines share colour and dashes, and that similar colours differ in dashes."""
    styles = [line_style(i) for i in range(32)]
    assert len(set(styles)) == 32
    for (one, dashes), (other, others) in itertools.combinations(styles[: len(COLOURS)], 2):
        distance = np.linalg.norm(np.subtract(to_rgb(one), to_rgb(other)))
        assert distance > 0.25
        assert distance > 0.55 or dashes != others
