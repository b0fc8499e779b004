"""Configuration of TensorRT-LLM, whose ``speculative_config`` contains a ``draft_len_schedule``.

The schedule maps batch sizes to draft lengths. The meaning of its keys changed in version 1.3.0rc8.

Up to 1.3.0rc7, including 1.2.x, a key is the smallest batch size for its draft length, and key 1 is
required. Since 1.3.0rc8 of 17 March 2026 (pull request 10860), a key is the largest batch size for
its draft length, and the engine does not draft at batch sizes above the last key. In both cases,
the draft length of the smallest key must be the longest, ``max_draft_len``.
"""

from __future__ import annotations

import re

from specopt.engines.engine import Config, Engine, method, tail
from specopt.models.errors import InvalidInput
from specopt.models.sweep import Setup
from specopt.solvers.speculation_table.prices import FREE, IDLE, Prices
from specopt.solvers.speculation_table.schedule import Schedule

BORDER = "1.3.0rc8"
FIRST = "1.2"
TYPES = ("Eagle3", "Eagle", "MTP", "NGram", "DraftTarget")
PRICES = Prices(
    IDLE, FREE, shortest=1
)  # length 0 reduces acceptance for the rest of a request, or is raised to 1
SCHEDULE = "draft_len_schedule"
_VERSION = re.compile(r"v?(\d+)\.(\d+)(?:\.(\d+))?(?:rc(\d+))?(?:\.post\d+)?")


def config(schedule: Schedule, version: str | None) -> Config | None:
    """Return the entries of ``speculative_config`` for a schedule and a version of the engine.

    The result is None if the engine should not speculate.

    Raises
    ------
    InvalidInput
        If the version is missing, malformed or too old, or if the draft length at batch size 1 is
        not the longest in the schedule.
    """
    upper = has_upper_bounds(version)
    if not schedule.speculates:
        return None
    longest, first = schedule.longest, schedule.ranges[0][2]
    if first != longest:
        raise InvalidInput(
            f"{SCHEDULE}: TensorRT-LLM expects the longest drafts at batch size 1, got {first}"
            f" draft tokens there and {longest} at a larger batch size; limit the draft length to"
            f" {first or 'a smaller number'}, or leave out the small batch sizes"
        )
    entries = {str(high if upper else low): drafts for low, high, drafts in schedule.ranges}
    return {"max_draft_len": longest, SCHEDULE: entries}


def notes(schedule: Schedule, version: str | None, config: Config) -> tuple[str, ...]:
    """Return notes for the operator on how to use a configuration and on its limitations."""
    upper = has_upper_bounds(version)
    meaning, other = ("upper", "lower") if upper else ("lower", "upper")
    return (
        (
            f"in version {version}, keys of {SCHEDULE} are {meaning} bounds on the batch size; in"
            f" versions {'before' if upper else 'from'} {BORDER}{'' if upper else ' on'}, they are"
            f" {other} bounds"
        ),
        (
            f"batches beyond {schedule.largest_batch} draft nothing, or one token in the newest"
            " versions"
            if upper
            else tail(schedule)
        ),
        f"{SCHEDULE} and max_concurrency cannot be combined",
    )


def has_upper_bounds(version: str | None) -> bool:
    """Return whether a version interprets each schedule key as a largest batch size.

    Earlier versions interpret it as a smallest batch size.

    Raises
    ------
    InvalidInput
        If the version is missing or malformed, or does not support the schedule.
    """
    if version is None:
        raise InvalidInput(
            f"engine_version: expected TensorRT-LLM's version, because keys of {SCHEDULE} are lower"
            f" bounds on the batch size in versions before {BORDER} and upper bounds in {BORDER}"
            " and later"
        )
    order = _order(version)
    if order < _order(FIRST + ".0rc0"):
        raise InvalidInput(
            f"engine_version: expected {FIRST} or later for {SCHEDULE}, got {version}"
        )
    return order >= _order(BORDER)


def _order(version: str) -> tuple[float, ...]:
    match = _VERSION.fullmatch(version.strip())
    if match is None:
        raise InvalidInput(f"engine_version: expected a version such as {BORDER}, got {version!r}")
    major, minor, patch, candidate = match.groups()
    return (
        int(major),
        int(minor),
        int(patch or 0),
        float("inf") if candidate is None else int(candidate),
    )


def setup(drafts: Setup) -> Config | None:
    """Return the option that sets the decoding type.

    The option is set if the name of a decoding type is a prefix of the drafter's name. The result
    is None if TensorRT-LLM has no options for the setup.
    """
    if drafts.mode != "fixed" or drafts.topk > 1:
        return None
    known = method(drafts, TYPES)
    return {"decoding_type": known} if known else {}


TENSORRT_LLM = Engine(
    name="tensorrt-llm",
    config=config,
    notes=notes,
    option="speculative_config",
    batch="max_batch_size",
    setup=setup,
    prices=PRICES,
)
