"""Pictures of the reproduction of paper 3."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from specopt.reproductions.artefact import Value
from specopt.views.canvas import new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_COLOURS = {
    "dynamic Q-S": "#2f7d4f",
    "myopic Q-S": "#1d7a85",
    "static Q-S": "#33658a",
    "static S-Q": "#b5495b",
    "heuristic Q-S": "#8a6d1b",
    "LLM": "#555555",
    "Q-S": "#33658a",
    "S-Q": "#b5495b",
    "SLM": "#8a6d1b",
}
_MARKERS = {"LLM": "s", "Q-S": "o", "S-Q": "^", "SLM": "v"}


def figure_3(rows: Sequence[Mapping[str, Value]]) -> Figure:
    """Return the distance from the LLM's law on the left, the entropies on the right."""
    figure = new_figure(8.6, 3.4)
    left, right = figure.subplots(1, 2)
    for name in ("SLM", "S-Q", "Q-S"):
        _line(left, rows, f"error of {name}", name)
    left.set_ylim(bottom=-0.01)
    _label(left, "Loss of the LLM's distribution", "total variation")
    for name in ("LLM", "SLM", "S-Q", "Q-S"):
        _line(right, rows, f"entropy of {name}", name, dashed=name == "Q-S")
    right.set_ylim(bottom=0.0)
    _label(right, "Entropy", "nats per token")
    right.legend(frameon=False, fontsize=8)
    left.legend(frameon=False, fontsize=8)
    return figure


def figure_4(rows: Sequence[Mapping[str, Value]], title: str) -> Figure:
    """Return the throughput of every strategy against the temperature."""
    figure = new_figure(5.6, 3.6)
    axes = figure.subplots()
    for name in ("dynamic Q-S", "myopic Q-S", "static S-Q", "static Q-S", "heuristic Q-S", "LLM"):
        _line(axes, rows, name, name, dashed=name in ("myopic Q-S", "static S-Q"))
    axes.set_ylim(bottom=0.0)
    _label(axes, f"Token throughput, {title}", "tokens per second")
    axes.legend(frameon=False, fontsize=8, loc="upper left", bbox_to_anchor=(1.0, 1.0))
    return figure


def _line(axes: Axes, rows: Sequence[Mapping[str, Value]], column: str, name: str, *, dashed: bool = False) -> None:
    x, y = ([float(row[key] or 0.0) for row in rows] for key in ("temperature", column))
    axes.plot(
        x, y, marker=_MARKERS.get(name, "o"),
        markersize=4, color=_COLOURS[name], linestyle="--" if dashed else "-", label=name,
    )  # fmt: skip


def _label(axes: Axes, title: str, y: str) -> None:
    axes.set_title(title, loc="left", fontsize=10)
    axes.set_xlabel("temperature")
    axes.set_ylabel(y)
    axes.spines[["top", "right"]].set_visible(False)
