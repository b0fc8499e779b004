"""Numbered cases, some of them in one test: as many as the environment says, all failures in one
report.

``SPECOPT_FUZZ=20000`` takes 20,000 cases and ``SPECOPT_FUZZ_FROM=4711`` begins there: with
``SPECOPT_FUZZ=1`` it repeats one case of a report.
"""

from __future__ import annotations

import faulthandler
import os
import traceback
from collections.abc import Callable, Iterable

import pytest

FIRST = int(os.environ.get("SPECOPT_FUZZ_FROM", "0"))
HANG_SECONDS = 600.0
"""Time after which the process is ended, because a case must hang: nothing else ends an endless
loop of a kernel.
"""


def numbered(cases: int, chunk: int = 100) -> pytest.MarkDecorator:
    """Return the mark that gives a test `numbers`, a chunk of the cases."""
    last = FIRST + int(os.environ.get("SPECOPT_FUZZ", cases))
    chunks = [range(start, min(start + chunk, last)) for start in range(FIRST, last, chunk)]
    return pytest.mark.parametrize("numbers", chunks, ids=lambda one: f"{one.start}-{one.stop - 1}")


def check_all(
    numbers: Iterable[int], check: Callable[[int], None], shown: Callable[[int], object]
) -> None:
    """Check cases, and report those that fail, with what is shown of them."""
    faulthandler.dump_traceback_later(HANG_SECONDS, exit=True)
    failures = []
    for number in numbers:
        try:
            check(number)
        except (Exception, SystemExit):
            failures.append(f"case {number}: {shown(number)}\n{traceback.format_exc(limit=-6)}")
    faulthandler.cancel_dump_traceback_later()
    assert not failures, "\n".join(
        ["repeat with SPECOPT_FUZZ=1 SPECOPT_FUZZ_FROM=NUMBER", *failures]
    )
