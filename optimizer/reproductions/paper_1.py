"""Figures 6-9 of paper 1: serving latency under every scheme, means over seeds with intervals.

The axes of the figures are not in the text; the points are those that it names, and round ones between them. Not in the
paper either: the size of static batching (8 here), seeds, and how many draws a point averages.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from specopt.instances.serving_latency.paper_1 import paper_1
from specopt.models.errors import InvalidInput
from specopt.models.fields import Floats
from specopt.reproductions.artefact import LEVEL, Artefact, Claim, Value
from specopt.reproductions.interval import interval
from specopt.reproductions.paper_1_schemes import (
    AUTOREGRESSIVE,
    EXACT,
    FIXED_LENGTH,
    HEURISTIC,
    LENGTH_AWARE,
    MAX,
    NO_BATCHING,
    OWN_AUTOREGRESSIVE,
    OWN_BATCHES,
    PROPOSED,
    REAL,
    STATIC,
    UNIFORM,
    WITHOUT_PIPELINE,
    Schemes,
)
from specopt.reproductions.selection import Say, select
from specopt.views.canvas import new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

HEAVY_TAILS = 10
OURS = (EXACT, REAL, LENGTH_AWARE)
SERVING = (PROPOSED, WITHOUT_PIPELINE, OWN_BATCHES, NO_BATCHING, FIXED_LENGTH, *OURS)
BATCHING = (PROPOSED, STATIC, MAX, HEURISTIC, AUTOREGRESSIVE, OWN_AUTOREGRESSIVE, *OURS)


@dataclass(frozen=True, kw_only=True)
class Axis:
    """What varies in a panel.

    Parameters
    ----------
    label, unit
        Of the axis; values are divided by the unit.
    field, points
        Parameter of the family, and its values.
    """

    label: str
    field: str
    points: tuple[float, ...]
    unit: float = 1.0


TASKS = Axis(label="tasks K", field="tasks", points=(50, 60, 70, 80, 90, 100))
INPUTS = Axis(label="maximum input length I_max", field="max_input", points=(256, 512, 1024, 1792))
OUTPUTS = Axis(label="maximum output length O_max", field="max_output", points=(512, 1024, 1792, 2048))
ALPHAS = Axis(label="acceptance rate", field="alpha", points=(0.5, 0.6, 0.7, 0.8, 0.9))
BANDS = Axis(label="bandwidth, MHz", field="bandwidth", points=(5e6, 10e6, 15e6, 20e6, 25e6), unit=1e6)
_COLOURS = {
    PROPOSED: "#33658a", WITHOUT_PIPELINE: "#b5495b", OWN_BATCHES: "#e0a3ac", NO_BATCHING: "#6a4c93",
    FIXED_LENGTH: "#1d7a85", STATIC: "#6a4c93", MAX: "#8a6d1b", HEURISTIC: "#1d7a85", AUTOREGRESSIVE: "#b5495b",
    OWN_AUTOREGRESSIVE: "#e0a3ac", UNIFORM: "#b5495b", EXACT: "#000000", REAL: "#7fb3d5", LENGTH_AWARE: "#2f7d4f",
}  # fmt: skip


@dataclass(frozen=True, kw_only=True, eq=False)
class Panel:
    """One panel: a parameter on the axis, a line per scheme.

    Parameters
    ----------
    name, title
        Of the figure that it becomes.
    axis
        What varies.
    fixed
        Other parameters of the family.
    lines
        Schemes.
    heavy_tails
        Whether draws differ so much that only their median says something; ten times as many are made.
    """

    name: str
    title: str
    axis: Axis
    lines: Sequence[str]
    fixed: Mapping[str, Any]
    heavy_tails: bool = False

    def measure(self, seeds: Sequence[int], say: Say, cells: dict[Any, Schemes]) -> dict[str, Floats]:
        """Return seconds per line: points x seeds."""
        points = self.axis.points
        found = {line: np.zeros((len(points), len(seeds))) for line in self.lines}
        for i, point in enumerate(points):
            for j, seed in enumerate(seeds):
                parameters = {**self.fixed, self.axis.field: point, "seed": seed}
                key = tuple(sorted(parameters.items()))
                schemes = cells.setdefault(key, Schemes(paper_1(**parameters)))
                for line in self.lines:
                    say(f"{self.name}: {self.axis.label} {point / self.axis.unit:g}, seed {seed}, {line}")
                    found[line][i, j] = schemes.seconds(line)
        return found


def _panels() -> Iterator[Panel]:
    for letter, pair in zip("abc", ("68M-7B", "1.1B-7B", "1.1B-13B"), strict=True):
        yield Panel(
            name=f"figure-6{letter}", title=f"Latency against the acceptance rate, {pair}", axis=ALPHAS,
            lines=(PROPOSED, AUTOREGRESSIVE, OWN_AUTOREGRESSIVE, *OURS), fixed={"pair": pair},
        )  # fmt: skip
    for number, lines, of in (("7", SERVING, "Serving mechanisms"), ("8", BATCHING, "Batching schemes")):
        for letter, axis in zip("abc", (TASKS, INPUTS, OUTPUTS), strict=True):
            yield Panel(
                name=f"figure-{number}{letter}", title=f"{of} against the {axis.label}, 1.1B-7B",
                axis=axis, lines=lines, fixed={"pair": "1.1B-7B"},
            )  # fmt: skip
    for letter, pair in zip("abc", ("68M-7B", "1.1B-7B", "1.1B-13B"), strict=True):
        yield Panel(
            name=f"figure-9{letter}", title=f"Latency with optimal and with uniform bandwidth, {pair}, K = 100",
            axis=BANDS, lines=(PROPOSED, UNIFORM, EXACT), fixed={"pair": pair}, heavy_tails=True,
        )  # fmt: skip


PANELS = {panel.name: panel for panel in _panels()}


def figures() -> tuple[str, ...]:
    """Return the names of the figures."""
    return tuple(PANELS)


def reproduce(
    name: str | None = None, *, seeds: int = 5, quick: bool = False, say: Say = lambda _: None
) -> Iterator[Artefact]:
    """Compute figures again.

    Parameters
    ----------
    name
        A figure, or the beginning of its name (``figure-7`` has three panels); None: all of them.
    seeds
        Draws of users and tasks per point, at least 2; Figure 9 takes ten times as many, see `_remark`.
    quick
        Few tasks and two points a panel, to see that it runs: verdicts mean nothing then.
    say
        Told what is going on.

    Raises
    ------
    InvalidInput
        If there is no such figure, or too few seeds.
    """
    if seeds < 2:
        raise InvalidInput(f"seeds: expected at least 2, for intervals, got {seeds}")
    chosen = [PANELS[one] for one in select(PANELS, name)]
    cells: dict[Any, Schemes] = {}
    for panel in map(small, chosen) if quick else chosen:
        draws = HEAVY_TAILS * seeds if panel.heavy_tails and not quick else seeds
        yield artefact(panel, panel.measure(range(1, draws + 1), say, cells))


def small(panel: Panel) -> Panel:
    """Return the ends of a panel, with few tasks."""
    axis = panel.axis
    points = tuple(int(point) // 5 if axis is TASKS else point for point in (axis.points[0], axis.points[-1]))
    fixed = {**panel.fixed} if axis is TASKS else {"tasks": 12, **panel.fixed}
    return dataclasses.replace(panel, axis=dataclasses.replace(axis, points=points), fixed=fixed)


def artefact(panel: Panel, found: dict[str, Floats]) -> Artefact:
    """Return a panel's data, claims and picture from its seconds per line (points x seeds)."""
    points = panel.axis.points
    rows: list[dict[str, Value]] = []
    for i, point in enumerate(points):
        for line in panel.lines:
            mean, half = interval(found[line][i])
            rows.append(
                {
                    panel.axis.field: point,
                    "scheme": line,
                    "mean_seconds": mean,
                    "interval_low": mean - half,
                    "interval_high": mean + half,
                    "median_seconds": float(np.median(found[line][i])),
                    "seeds": found[line].shape[1],
                }
            )
    return Artefact(
        name=panel.name,
        title=panel.title,
        rows=rows,
        claims=tuple(_claims(panel, found)),
        remark=_remark(panel),
        draw=lambda: _draw(panel, found),
    )


def _claims(panel: Panel, found: dict[str, Floats]) -> Iterator[Claim]:
    rivals = [line for line in panel.lines if line not in (PROPOSED, *OURS)]
    for rival in rivals:
        saved = 1.0 - found[PROPOSED].mean(axis=1) / found[rival].mean(axis=1)
        yield Claim(
            text=f"below {rival} at every point",
            measured=f"{100 * saved.min():.1f} to {100 * saved.max():.1f} %",
            holds=bool((saved > 0.0).all()),
            essential=rival not in (OWN_BATCHES, OWN_AUTOREGRESSIVE),  # not lines of the paper
        )
    rises = np.diff(found[PROPOSED].mean(axis=1))
    if panel.name.startswith(("figure-6", "figure-9")):
        yield Claim(
            text=f"latency falls with the {panel.axis.label.partition(',')[0]}", holds=bool((rises < 0.0).all())
        )
    else:
        yield Claim(
            text=f"latency rises with the {panel.axis.label.partition(',')[0]}", holds=bool((rises > 0.0).all())
        )
    for rival, point, printed in _PRINTED.get(panel.name, ()):
        if point not in panel.axis.points:
            continue
        i = panel.axis.points.index(point)
        reduction = 1.0 - found[PROPOSED][i] / found[rival][i]
        middle, half = interval(reduction)
        measured = f"{100 * middle:.1f} +- {100 * half:.1f} %"
        if panel.heavy_tails:
            low, middle, high = np.quantile(reduction, (0.25, 0.5, 0.75))
            measured = f"{100 * middle:.1f} %, half of the draws from {100 * low:.1f} to {100 * high:.1f} %"
        yield Claim(
            text=f"{'median ' if panel.heavy_tails else ''}reduction against {rival} at {point / panel.axis.unit:g}",
            printed=f"{100 * printed:.1f} %",
            measured=measured,
            holds=abs(float(middle) - printed) <= LEVEL * printed,
            essential=False,
        )


_PRINTED: dict[str, tuple[tuple[str, float, float], ...]] = {
    "figure-7b": ((WITHOUT_PIPELINE, 512, 0.316),),
    "figure-7c": ((WITHOUT_PIPELINE, 1792, 0.307),),
    "figure-8a": ((MAX, 90, 0.214),),
    "figure-8b": ((HEURISTIC, 1792, 0.196),),
    "figure-8c": ((HEURISTIC, 1024, 0.205),),
    "figure-9a": ((UNIFORM, 25e6, 0.449),),
    "figure-9b": ((UNIFORM, 25e6, 0.293),),
    "figure-9c": ((UNIFORM, 25e6, 0.252),),
}
"""Rival, point and reduction, as the text of Sec. IV prints them."""


def _remark(panel: Panel) -> str:
    if panel.name.startswith(("figure-6", "figure-8")):
        return (
            f"'{AUTOREGRESSIVE}' grows its batches only until the latency first rises. The model makes no batch of the "
            "verify model too large, so with batches of its own choice it is faster, unless its memory binds "
            "(`verify_memory_bytes`), which the paper does not limit."
        )
    if panel.name.startswith("figure-7"):
        return (
            f"'{WITHOUT_PIPELINE}' keeps the batches of the proposed scheme, as the paper says; "
            "with batches of its own it loses less."
        )
    return (
        "Medians: under Rayleigh fading the latency of a draw has no mean, since a user in a deep fade takes a time in "
        "inverse proportion to its gain. The printed reductions need an inference time of about 4, 16 and 25 s for the "
        "three pairs, that is outputs of 100 to 200 tokens; with O_max = 2048 of Table II communication is a small "
        "part of the latency."
    )


def _draw(panel: Panel, found: dict[str, Floats]) -> Figure:
    figure = new_figure(7.6, 3.6)
    axes = figure.subplots()
    x = np.array(panel.axis.points, dtype=np.float64) / panel.axis.unit
    for line in panel.lines:
        if panel.heavy_tails:
            low, middle, high = np.quantile(found[line], (0.25, 0.5, 0.75), axis=1)
            bars: Any = [middle - low, high - middle]
        else:
            middle = found[line].mean(axis=1)
            bars = [interval(values)[1] for values in found[line]]
        axes.errorbar(
            x, middle, yerr=bars, color=_COLOURS[line], marker="o", markersize=3, capsize=2, linewidth=1.4, label=line,
            linestyle="--" if line in OURS else "-",
        )  # fmt: skip
    middles = [np.median(values, axis=1) for values in found.values()]
    if max(middle.max() for middle in middles) > 8 * min(middle.min() for middle in middles):
        axes.set_yscale("log")
        axes.yaxis.set_major_formatter("{x:g}")
        axes.yaxis.set_minor_formatter("{x:g}")
    axes.set_title(panel.title, loc="left", fontsize=10)
    axes.set_xlabel(panel.axis.label)
    axes.set_ylabel("latency, s (median, quartiles)" if panel.heavy_tails else "latency, s (mean, 95 % interval)")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, fontsize=8, loc="upper left", bbox_to_anchor=(1.0, 1.0))
    return figure
