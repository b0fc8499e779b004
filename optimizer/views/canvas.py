"""Empty pictures: every figure of the project begins here."""

from __future__ import annotations

from typing import TYPE_CHECKING

from specopt.models.errors import MissingDependency

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def new_figure(width: float, height: float) -> Figure:
    """Return an empty picture, in inches.

    Raises
    ------
    MissingDependency
        If matplotlib is not installed.
    """
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
        from matplotlib.layout_engine import ConstrainedLayoutEngine
    except ImportError:
        raise MissingDependency("pictures need matplotlib: pip install 'specopt[plot]'") from None
    figure = Figure(figsize=(width, height), dpi=150, layout=ConstrainedLayoutEngine(h_pad=0.1, w_pad=0.1))
    FigureCanvasAgg(figure)
    return figure
