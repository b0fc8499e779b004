"""Pictures from a description: panels of lines, points and bars."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from specopt.views.canvas import new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

_TICKS = 4
"""Intervals between the ticks of a logarithmic axis of less than a decade or two, at most."""


@dataclass(frozen=True, kw_only=True)
class Line:
    """A line, points, or both.

    Parameters
    ----------
    x, y
        Through which points.
    label
        In the legend; empty: not there.
    style, colour, size
        Of matplotlib; the size is that of the markers.
    spread
        Lengths of the error bars below and above (2 x points).
    """

    x: Any
    y: Any
    label: str = ""
    style: str = "o-"
    colour: str = "black"
    size: float = 3.0
    spread: Any = None

    def draw(self, axes: Axes) -> None:
        """Draw it."""
        axes.errorbar(
            self.x, self.y, yerr=self.spread, fmt=self.style, color=self.colour, label=self.label or None,
            markersize=self.size, capsize=2.0, linewidth=1.4,
        )  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Bars:
    """Bars that lie, one in each row.

    Parameters
    ----------
    lengths
        How long they are, from the top.
    colour
        As drawn.
    """

    lengths: Any
    colour: Any

    def draw(self, axes: Axes) -> None:
        """Draw them."""
        axes.barh(range(len(self.lengths)), self.lengths, 0.6, color=self.colour)


@dataclass(frozen=True, kw_only=True)
class Panel:
    """A pair of axes and what is on them.

    Parameters
    ----------
    title, x, y
        Words above and beside them.
    marks
        From back to front.
    log
        Whether both axes are logarithmic.
    rows
        Names of the rows of bars, from the top.
    x_range, y_range
        Ends of the axes; None leaves one to the data.
    legend
        Where it is.
    """

    title: str
    x: str = ""
    y: str = ""
    marks: Sequence[Line | Bars] = ()
    log: bool = False
    rows: Sequence[str] = ()
    x_range: tuple[float | None, float | None] = (None, None)
    y_range: tuple[float | None, float | None] = (None, None)
    legend: Literal["inside", "beside", "none"] = "inside"

    def draw(self, axes: Axes) -> None:
        """Draw them."""
        for mark in self.marks:
            mark.draw(axes)
        if self.log:
            axes.set(xscale="log", yscale="log")
            _tick_plainly(axes.xaxis)
            _tick_plainly(axes.yaxis)
        if self.rows:
            axes.set_yticks(range(len(self.rows)), self.rows)
            axes.set_ylim(len(self.rows) - 0.4, -0.6)
        axes.set_xlim(*self.x_range)
        axes.set_ylim(*self.y_range)
        axes.set_title(self.title, loc="left", fontsize=10)
        axes.set_xlabel(self.x, fontsize=9)
        axes.set_ylabel(self.y, fontsize=9)
        axes.tick_params(labelsize=8)
        axes.spines[["top", "right"]].set_visible(False)
        if self.legend != "none":
            beside: dict[str, Any] = {"loc": "upper left", "bbox_to_anchor": (1.0, 1.0)}
            axes.legend(frameon=False, fontsize=8, handlelength=3.0, **(beside if self.legend == "beside" else {}))


def draw(*panels: Panel, size: tuple[float, float], rows: int = 1) -> Figure:
    """Return a picture of panels side by side, in so many rows; its size in inches.

    Raises
    ------
    MissingDependency
        If matplotlib is not installed.
    """
    figure = new_figure(*size)
    places = figure.subplots(rows, math.ceil(len(panels) / rows), squeeze=False).flat
    for panel, axes in zip(panels, places, strict=False):
        panel.draw(axes)
    for axes in places:
        axes.set_visible(False)
    return figure


def _tick_plainly(axis: Axis) -> None:
    """Let few round numbers stand at a logarithmic axis: they are written without powers, and do not overlap."""
    from matplotlib.ticker import MaxNLocator, NullLocator

    axis.set_major_locator(MaxNLocator(_TICKS))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter("{x:g}")
