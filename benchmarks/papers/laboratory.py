"""Condensed logs of a real pair of models from the laboratory, which replace synthetic drafts.

`laboratory/inputs.py` writes them from the raw files. The experiments are the same as those on
synthetic drafts, with other assumptions. The ids of their statements end in ``.real``.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cache
from typing import Any

from papers.experiment import Experiment, Found, Point
from papers.ledger import DATA


@cache
def condensed() -> dict[str, list[dict[str, Any]]]:
    """Return all lists of lines by name."""
    found: dict[str, list[dict[str, Any]]] = json.loads((DATA / "laboratory.json").read_text())
    return found


def lines(name: str, /, **where: Any) -> list[dict[str, Any]]:
    """Return the lines of a list with given values."""
    return [
        line
        for line in condensed()[name]
        if all(line[key] == value for key, value in where.items())
    ]


def real(experiment: Experiment) -> Experiment:
    """Return an experiment on the real pair, whose assumptions make it use recorded drafts."""

    def on_the_real_pair(point: Point, seeds: Sequence[int]) -> Found:
        found = experiment(point, seeds)
        return Found(
            {f"{item}.real": value for item, value in found.values.items()},
            {f"{name} real": curves for name, curves in found.curves.items()},
        )

    return on_the_real_pair
