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
from specopt.models.fields import Floats
from specopt.reproductions.artefact import Artefact, Claim, table, within
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
from specopt.reproductions.selection import Say
from specopt.reproductions.statements import statements
from specopt.views import panels
from specopt.views.canvas import line_style

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
_STYLES = {
    PROPOSED: 0, WITHOUT_PIPELINE: 1, OWN_BATCHES: 2, NO_BATCHING: 3, FIXED_LENGTH: 4, EXACT: 7, REAL: 5,
    LENGTH_AWARE: 6, STATIC: 3, MAX: 2, HEURISTIC: 4, AUTOREGRESSIVE: 1, OWN_AUTOREGRESSIVE: 9, UNIFORM: 1,
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


FIGURES = tuple(PANELS)


def reproduce(names: Sequence[str], *, seeds: int, quick: bool, say: Say) -> Iterator[Artefact]:
    """Compute figures again; a seed is a draw of users and tasks per point, Figure 9 takes ten times as many.

    Quick versions have few tasks and two points a panel.
    """
    chosen = [PANELS[one] for one in names]
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
    rows = table(
        f"{panel.axis.field} scheme mean_seconds interval_low interval_high median_seconds seeds",
        (
            (point, line, mean, mean - half, mean + half, float(np.median(found[line][i])), found[line].shape[1])
            for i, point in enumerate(panel.axis.points)
            for line in panel.lines
            for mean, half in [interval(found[line][i])]
        ),
    )
    return Artefact(
        name=panel.name, title=panel.title, rows=rows, claims=tuple(_claims(panel, found)), remark=_remark(panel),
        draw=lambda: _draw(panel, found),
    )  # fmt: skip


def _claims(panel: Panel, found: dict[str, Floats]) -> Iterator[Claim]:
    rivals = [line for line in panel.lines if line not in (PROPOSED, *OURS)]
    for rival in rivals:
        saved = 1.0 - found[PROPOSED].mean(axis=1) / found[rival].mean(axis=1)
        yield Claim(
            f"below {rival} at every point", bool((saved > 0.0).all()),
            f"{100 * saved.min():.1f} to {100 * saved.max():.1f} %",
            essential=rival not in (OWN_BATCHES, OWN_AUTOREGRESSIVE),  # not lines of the paper
        )  # fmt: skip
    falls = panel.name.startswith(("figure-6", "figure-9"))
    steps = np.diff(found[PROPOSED].mean(axis=1)) * (-1.0 if falls else 1.0)
    way, name = "falls" if falls else "rises", panel.axis.label.partition(",")[0]
    yield Claim(f"latency {way} with the {name}", bool((steps > 0.0).all()))
    for said in statements("paper-1").values():
        rival, point, printed = said.given["rival"], said.given["at"], said.printed
        if said.given["panel"] != panel.name or point not in panel.axis.points:
            continue
        i = panel.axis.points.index(point)
        reduction = 1.0 - found[PROPOSED][i] / found[rival][i]
        middle, half = interval(reduction)
        measured = f"{100 * middle:.1f} +- {100 * half:.1f} %"
        if panel.heavy_tails:
            low, middle, high = np.quantile(reduction, (0.25, 0.5, 0.75))
            measured = f"{100 * middle:.1f} %, half of the draws from {100 * low:.1f} to {100 * high:.1f} %"
        yield Claim(
            f"{'median ' if panel.heavy_tails else ''}reduction against {rival} at {point / panel.axis.unit:g}",
            within(float(middle), printed), measured, f"{100 * printed:.1f} %", essential=False,
        )  # fmt: skip


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
    x, lines = np.array(panel.axis.points, dtype=np.float64) / panel.axis.unit, []
    for line in panel.lines:
        if panel.heavy_tails:
            low, middle, high = np.quantile(found[line], (0.25, 0.5, 0.75), axis=1)
            spread: Any = [middle - low, high - middle]
        else:
            middle, spread = found[line].mean(axis=1), [interval(values)[1] for values in found[line]]
        colour, dashes = line_style(_STYLES[line])
        mark = "s" if line in OURS else "o"
        lines.append(panels.Line(x=x, y=middle, spread=spread, colour=colour, style=f"{mark}{dashes}", label=line))
    middles = np.concatenate([np.median(values, axis=1) for values in found.values()])
    y = "latency, s (median, quartiles)" if panel.heavy_tails else "latency, s (mean, 95 % interval)"
    log_y = 10 if middles.max() > 8 * middles.min() else 0
    view = panels.Panel(title=panel.title, x=panel.axis.label, y=y, marks=lines, log_y=log_y, legend="beside")
    return panels.draw(view, size=(7.6, 3.6))
