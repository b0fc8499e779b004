"""Empty pictures, and what tells lines apart: every figure of the project begins here."""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING

from specopt.models.errors import MissingDependency
from specopt.models.files import write_bytes

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#882255", "#56b4e9", "#e69f00", "#000000")
"""Apart for eyes that see no red or no green, too (after Okabe and Ito 2008, without its yellow)."""

DASHES = ("-", "--", "-.", ":")


def line_style(i: int) -> tuple[str, str]:
    """Return colour and dashes of the i-th line: no two of the first 32 share both, no similar colours share dashes."""
    return COLOURS[i % len(COLOURS)], DASHES[(i + i // len(COLOURS)) % len(DASHES)]


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


def save_figure(figure: Figure, path: Path) -> None:
    """Write a picture, all or nothing, in the format that the file's name ends in.

    Raises
    ------
    InvalidInput
        If the file cannot be written.
    """
    content = io.BytesIO()
    figure.savefig(content, format=path.suffix[1:].lower())
    write_bytes(path, content.getvalue())
