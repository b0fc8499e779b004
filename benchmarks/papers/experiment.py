"""Runs of experiments, at the default assumptions and at sampled ones, and their results."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from papers.box import Split, first_order, sample, split
from papers.ledger import Assumption, Paper, Statement
from specopt.models.fields import Floats

Point = Mapping[str, Any]
"""Value of each assumption of an experiment."""

MATTERS = 0.05
"""Assumptions that explain a smaller share of the variance are not reported."""


@dataclass(frozen=True)
class Curves:
    """The lines of a figure.

    Parameters
    ----------
    x
        Title of the horizontal axis.
    y
        Title of the vertical axis.
    at
        Positions of the points on the horizontal axis.
    lines
        Values by name of the line.
    printed
        Points that the paper prints, by name of the line.
    """

    x: str
    y: str
    at: Sequence[float]
    lines: Mapping[str, Sequence[float]]
    printed: Mapping[str, Sequence[tuple[float, float]]] = field(default_factory=dict)


@dataclass(frozen=True)
class Found:
    """Result of an experiment at one point of its assumptions.

    Parameters
    ----------
    values
        Number of each statement, by id.
    curves
        Lines by figure.
    """

    values: Mapping[str, float]
    curves: Mapping[str, Curves] = field(default_factory=dict)


Experiment = Callable[[Point, Sequence[int]], Found]
"""Function of assumptions and seeds; the result is an average over the seeds."""


@dataclass(frozen=True, kw_only=True)
class Finding:
    """Result of a statement.

    Parameters
    ----------
    said
        The statement.
    ours
        Value at the default assumptions.
    values
        Value at each sampled point; empty without assumptions.
    deciding
        Up to three assumptions that explain most of whether the statement holds, with their
        first-order indices.
    split
        Best cut of the first of these assumptions.
    """

    said: Statement
    ours: float
    values: Floats
    deciding: tuple[tuple[str, float], ...] = ()
    split: Split | None = None

    @property
    def holds(self) -> bool:
        """Whether the statement holds at the default assumptions."""
        return self.said.agrees(self.ours)

    @property
    def held(self) -> int:
        """Number of sampled points at which the statement holds."""
        return sum(map(self.said.agrees, self.values.tolist()))

    def to_dict(self) -> dict[str, Any]:
        """Return the result in the form of the record."""
        kept: dict[str, Any] = {"ours": float(f"{self.ours:.6g}")}
        if len(self.values):
            kept |= {
                "held": self.held,
                "samples": len(self.values),
                "median": float(f"{np.median(self.values):.6g}"),
            }
            if self.said.one_sided:
                low, high = self.said.near
                kept["near"] = int(((low <= self.values) & (self.values <= high)).sum())
        if self.split is not None:
            kept["deciding"] = [[name, round(index, 2)] for name, index in self.deciding]
            kept["split"] = str(self.split)
        return kept


@dataclass(frozen=True, kw_only=True, eq=False)
class Run:
    """Results of an experiment.

    Parameters
    ----------
    name
        Name of the experiment.
    box
        Assumptions of the experiment.
    places
        Sampled points as positions from 0 to 1.
    points
        Sampled points.
    findings
        Results by statement.
    curves
        Lines at the default assumptions by figure.
    """

    name: str
    box: tuple[Assumption, ...]
    places: Floats
    points: Sequence[Point]
    findings: tuple[Finding, ...]
    curves: Mapping[str, Curves]


def run(paper: Paper, name: str, *, samples: int, seeds: int) -> Run:
    """Run an experiment at its defaults, averaged over seeds, and at sampled points with one seed
    each.
    """
    experiment: Experiment = paper.module.EXPERIMENTS[name]
    box = paper.box(name)
    found = experiment({one.name: one.default for one in box}, range(seeds))
    places, points = sample(box, samples) if box else (np.empty((0, 0)), [])
    values: dict[str, list[float]] = {said.id: [] for said in paper.of(name)}
    for number, point in enumerate(points):
        there = experiment(point, (seeds + number,)).values
        for one, column in values.items():
            column.append(float(there[one]))
    return Run(
        name=name,
        box=box,
        places=places,
        points=points,
        curves=found.curves,
        findings=tuple(
            _finding(said, found.values[said.id], values[said.id], box, places)
            for said in paper.of(name)
        ),
    )


def _finding(
    said: Statement, ours: float, values: Sequence[float], box: Sequence[Assumption], places: Floats
) -> Finding:
    finding = Finding(said=said, ours=float(ours), values=np.array(values))
    holds = np.array([said.agrees(one) for one in values], bool)
    if holds.all() or not holds.any():  # also without samples
        return finding
    indices = first_order(box, places, holds)
    order = [i for i in np.argsort(-indices, kind="stable")[:3].tolist() if indices[i] >= MATTERS]
    return replace(
        finding,
        deciding=tuple((box[i].name, float(indices[i])) for i in order),
        split=split(box[order[0]], places[:, order[0]], holds) if order else None,
    )
