"""Benchmarks, and the table that a run writes."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Row:
    """One measured line: the subject, the figure, and the target, if any."""

    subject: str
    figure: str
    target: str = ""
    met: bool | None = None


@dataclass(frozen=True)
class Benchmark:
    """A named measurement; `run(smoke)` returns its rows, from tiny inputs if `smoke`."""

    name: str
    run: Callable[[bool], list[Row]]


def median_seconds(call: Callable[[], object], repeat: int = 5) -> float:
    """Return the median wall-clock seconds of several calls, after one that warms up."""
    call()
    seconds = []
    for _ in range(repeat):
        start = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - start)
    return float(np.median(seconds))


def exponent(sizes: list[int], seconds: list[float]) -> float:
    """Return the slope of log(seconds) over log(size), which is the growth of the cost."""
    return float(np.polyfit(np.log(sizes), np.log(np.maximum(seconds, 1e-9)), 1)[0])


def markdown(name: str, rows: list[Row]) -> str:
    """Return a benchmark's rows as a Markdown table."""
    marks = {None: "", True: "met", False: "**not met**"}
    body = [f"| {row.subject} | {row.figure} | {row.target} | {marks[row.met]} |" for row in rows]
    return "\n".join(
        [f"## {name}", "", "| what | measured | target | |", "|---|---|---|---|", *body, ""]
    )
