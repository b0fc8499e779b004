"""Pictures of the simulations of paper 5: Figures 3 and 4."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from specopt.reproductions.paper_5_simulation import Reproduction
from specopt.views.canvas import new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_COLOURS = {"Algorithm 1": "#33658a", "robust": "#2f7d4f", "Fixed-S": "#8a6d1b", "Random-S": "#b5495b"}
_PARTS = {"receiving": "#33658a", "verification": "#8a6d1b", "sending": "#b5495b"}


def figure_4(found: Reproduction) -> Figure:
    """Return the utility over the rounds, one panel per setting."""
    figure = new_figure(1.0 + 2.9 * len(found.utility), 3.1)
    panels = figure.subplots(1, len(found.utility), squeeze=False)[0]
    for axes, (setting, curves) in zip(panels, found.utility.items(), strict=True):
        for policy, curve in curves.items():
            axes.plot(np.arange(1, len(curve) + 1), curve, color=_COLOURS[policy], label=policy)
        optimum = found.optimum[setting]
        axes.axhline(optimum, color="black", linewidth=0.8, linestyle=":", label="optimum")
        low = min(float(curve[len(curve) // 20 :].min()) for curve in curves.values())
        axes.set_ylim(low - 0.4 * (optimum - low), optimum + 0.1 * (optimum - low))
        _label(axes, setting, "round T", "utility of the mean goodput" if axes is panels[0] else "")
    panels[-1].legend(frameon=False, fontsize=8, loc="upper left", bbox_to_anchor=(1.0, 1.0))
    return figure


def figure_3(found: Reproduction) -> Figure:
    """Return where the time goes: per round on the left, per token on the right."""
    readings = (("per round", found.seconds_per_round), ("per token", found.seconds_per_token))
    figure = new_figure(10.0, 0.9 + 1.1 * len(found.optimum))
    panels = figure.subplots(1, 2, sharey=True)
    for axes, (reading, data) in zip(panels, readings, strict=True):
        rows = [(setting, policy) for setting in data for policy in data[setting]]
        for place, (setting, policy) in enumerate(rows):
            reference = sum(data[setting]["Fixed-S"].values())
            start = 0.0
            for part, colour in _PARTS.items():
                width = data[setting][policy][part] / reference
                axes.barh(place, width, left=start, color=colour, label=part if place == 0 else None)
                start += width
        axes.axvline(1.0, color="black", linewidth=0.8, linestyle=":")
        axes.set_yticks(range(len(rows)), [f"{setting}: {policy}" for setting, policy in rows], fontsize=7)
        _label(axes, f"Wall time {reading}", "Fixed-S = 1", "")
    panels[0].invert_yaxis()
    panels[1].legend(frameon=False, fontsize=8, loc="upper left", bbox_to_anchor=(1.0, 1.0))
    return figure


def _label(axes: Axes, title: str, x: str, y: str) -> None:
    axes.set_title(title, loc="left", fontsize=10)
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    axes.spines[["top", "right"]].set_visible(False)
