"""The progress of a comparison on stderr: a bar with the time left on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from specopt.comparison.compare import CompareProgress
from specopt.console.streams import say

PLAIN_SECONDS = 10.0


@contextmanager
def comparison_progress() -> Iterator[Callable[[CompareProgress], None]]:
    """Open a progress display; it gives the callback for `compare`."""
    if sys.stderr.isatty():
        yield from _bar()
    else:
        yield from _lines()


def _bar() -> Iterator[Callable[[CompareProgress], None]]:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("cells"),
        TimeElapsedColumn(),
        TextColumn("{task.fields[left]}"),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("", total=None, left="")
        yield lambda at: progress.update(
            task,
            completed=at.done,
            total=at.total,
            left=(_left(at) + (f", {at.failed} failed" if at.failed else "")).lstrip(", "),
        )


def _lines() -> Iterator[Callable[[CompareProgress], None]]:
    last = time.monotonic()

    def show(at: CompareProgress) -> None:
        nonlocal last
        now = time.monotonic()
        if now - last >= PLAIN_SECONDS or (at.done == at.total and at.seconds > PLAIN_SECONDS):
            last = now
            say(f"{at.done} of {at.total} cells, {at.failed} failed, {at.seconds:.0f} s{_left(at)}")

    yield show


def _left(at: CompareProgress) -> str:
    return "" if at.seconds_left is None else f", about {at.seconds_left:.0f} s left"
