"""Configuration of the llama.cpp server, which accepts one draft length for all batch sizes."""

from __future__ import annotations

import re

import numpy as np

from specopt.engines.engine import Config, Engine, other_rules
from specopt.models.errors import InvalidInput
from specopt.models.sweep import Setup
from specopt.solvers.speculation_table.schedule import Schedule

RULES = "November 2026"
MOST, LEAST, CONFIDENCE = "--spec-draft-n-max", "--spec-draft-n-min", "--spec-draft-p-min"
_CONFIDENCE = re.compile(r"p[-_ ]?min[-_ =:]*(0|1|[01]?\.\d+)", re.IGNORECASE)
"""Pattern that matches modes which stop drafting below a confidence, such as "p-min 0.60"."""


def config(schedule: Schedule, version: str | None) -> Config | None:
    """Return the server flags for a schedule, by flag; None if the server should not speculate.

    Raises
    ------
    InvalidInput
        If the schedule has several draft lengths but contains no speed-ups from which to choose the
        best length.
    """
    length = single_length(schedule)
    return None if length is None else {MOST: length, LEAST: 0, CONFIDENCE: 0.0}


def notes(schedule: Schedule, version: str | None, config: Config) -> tuple[str, ...]:
    """Return notes for the operator on how to use a configuration and on its limitations."""
    length = config[MOST]
    known = [
        *other_rules(RULES, version),
        f"--spec-type names the drafter; with {CONFIDENCE} 0 every draft has {length} tokens",
    ]
    scheduled, reached = schedule.mean_speedup(), schedule.mean_speedup(length)
    if scheduled is None or reached is None or schedule.speedups is None:
        return tuple(known)
    if len(schedule.ranges) > 1:
        known.append(
            f"one length is used for every batch size: {length} reaches {reached:.3f}x the"
            " throughput without speculation on average, and one length per batch size"
            f" would reach {scheduled:.3f}x, so the loss is"
            f" {100.0 * max(0.0, 1.0 - reached / scheduled):.1f} %"
        )
    slower = np.array(schedule.batches)[schedule.speedups[:, length] < 1.0]
    if slower.size:
        known.append(
            f"this length is slower than no speculation at {slower.size} of {len(schedule.batches)}"
            f" batch sizes, from {slower[0]} to {slower[-1]}"
        )
    return tuple(known)


def single_length(schedule: Schedule) -> int | None:
    """Return the best single draft length for all batch sizes, or None if no length pays off."""
    if not schedule.speculates:
        return None
    if len(schedule.ranges) == 1:
        return schedule.longest
    best = schedule.best_single()
    if best is None:
        raise InvalidInput(
            "schedule: expected speed-ups from which to choose llama.cpp's single draft length,"
            " got none"
        )
    return best[0] if best[1] > 1.0 else None


def setup(drafts: Setup) -> Config | None:
    """Return the flags for the drafter and for the confidence below which drafting stops.

    The result is None if the server has no flags for the setup.
    """
    found: Config = {"--spec-type": drafts.drafter} if drafts.drafter else {}
    stops = _CONFIDENCE.fullmatch(drafts.mode)
    if drafts.topk > 1 or not (stops or drafts.mode == "fixed"):
        return None
    return found | {CONFIDENCE: float(stops[1])} if stops else found


LLAMA_CPP = Engine(
    single=True,
    name="llama.cpp",
    config=config,
    notes=notes,
    option="--spec-type",
    batch="--parallel",
    setup=setup,
)
