"""Pictures from a description: panels of lines, points and bars, a paper's printed numbers as crosses among them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from specopt.views.canvas import new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PRINTED: dict[str, Any] = {"style": "x", "size": 8.0}
"""How a `Line` marks what a paper prints."""

_SMALL = 3.0
"""Markers smaller than this are larger in the legend."""


@dataclass(frozen=True, kw_only=True)
class Line:
    """A line, points, or both.

    Parameters
    ----------
    x, y
        Through which points.
    label
        In the legend; empty: not there.
    style, colour, size, alpha
        Of matplotlib; the size is that of the markers.
    spread
        Lengths of the error bars below and above: both (2 x points), or one for both.
    end
        Text below its last point.
    """

    x: Any
    y: Any
    label: str = ""
    style: str = "o-"
    colour: str = "black"
    size: float = _SMALL
    alpha: float = 1.0
    spread: Any = None
    end: str = ""

    def draw(self, axes: Axes) -> None:
        """Draw it."""
        axes.errorbar(
            self.x, self.y, yerr=self.spread, fmt=self.style, color=self.colour, label=self.label or None,
            markersize=self.size, alpha=self.alpha, capsize=2.0, linewidth=1.4, rasterized=self.alpha < 1.0,
            markeredgewidth=0.0 if self.alpha < 1.0 else None,
        )  # fmt: skip
        if self.end:
            axes.annotate(
                self.end, (self.x[-1], self.y[-1]), xytext=(0, -11), textcoords="offset points", fontsize=7,
                ha="center", color=self.colour,
            )  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Bars:
    """Bars of one kind.

    Parameters
    ----------
    places, lengths
        Where they stand and how long they are.
    start
        Where they begin, for bars on bars.
    label, colour, thickness
        As drawn.
    spread
        As in `Line`.
    hatched
        Whether they are outlines with hatches, for what a paper prints.
    across
        Whether they lie.
    """

    places: Any
    lengths: Any
    start: Any = 0.0
    label: str = ""
    colour: Any = "black"
    thickness: float = 0.8
    spread: Any = None
    hatched: bool = False
    across: bool = False

    def draw(self, axes: Axes) -> None:
        """Draw them."""
        style: dict[str, Any] = {"label": self.label or None, "color": self.colour}
        if self.hatched:
            style = {"color": "white", "edgecolor": self.colour, "hatch": "////"}
        if self.across:
            axes.barh(self.places, self.lengths, self.thickness, self.start, **style)
        else:
            axes.bar(self.places, self.lengths, self.thickness, self.start, yerr=self.spread, capsize=3.0, **style)


@dataclass(frozen=True, kw_only=True)
class Panel:
    """A pair of axes and what is on them.

    Parameters
    ----------
    title, x, y
        Words above and beside them.
    marks
        From back to front.
    log_x, log_y
        Whether an axis is logarithmic: its base, else 0.
    ticks, names
        Of the horizontal axis: places, and what stands there instead of their numbers.
    rows
        Names of the rows of bars that lie, from the top.
    x_range, y_range
        Ends of the axes; None leaves one to the data.
    legend
        Where it is.
    """

    title: str
    x: str = ""
    y: str = ""
    marks: Sequence[Line | Bars] = ()
    log_x: int = 0
    log_y: int = 0
    ticks: Any = ()
    names: Sequence[str] = ()
    rows: Sequence[str] = ()
    x_range: tuple[float | None, float | None] = (None, None)
    y_range: tuple[float | None, float | None] = (None, None)
    legend: Literal["inside", "beside", "none"] = "inside"

    def draw(self, axes: Axes) -> None:
        """Draw them."""
        for mark in self.marks:
            mark.draw(axes)
        if self.log_x:
            axes.set_xscale("log", base=self.log_x)
            axes.xaxis.set_major_formatter("{x:g}")
        if self.log_y:
            axes.set_yscale("log", base=self.log_y)
            axes.yaxis.set_major_formatter("{x:g}")
            axes.yaxis.set_minor_formatter("{x:g}")  # seldom more than a decade
        if len(self.ticks):
            axes.set_xticks(self.ticks, self.names or [f"{place:g}" for place in self.ticks])
            axes.minorticks_off()
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
            smallest = min((mark.size for mark in self.marks if isinstance(mark, Line)), default=_SMALL)
            beside: dict[str, Any] = {"loc": "upper left", "bbox_to_anchor": (1.0, 1.0)}
            axes.legend(
                frameon=False, fontsize=8, markerscale=max(1.0, _SMALL / smallest), handlelength=3.0,
                **(beside if self.legend == "beside" else {}),
            )  # fmt: skip


def draw(*panels: Panel, size: tuple[float, float], share_y: bool = False) -> Figure:
    """Return a picture of panels side by side, its size in inches.

    Raises
    ------
    MissingDependency
        If matplotlib is not installed.
    """
    figure = new_figure(*size)
    for panel, axes in zip(panels, figure.subplots(1, len(panels), squeeze=False, sharey=share_y)[0], strict=True):
        panel.draw(axes)
    return figure
