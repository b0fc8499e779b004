"""vLLM: drafts per batch size, a part of its ``speculative_config``."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

from specopt.engines.engine import Config, Engine, leave_out, other_rules, tail
from specopt.models.arguments import integer
from specopt.models.errors import InvalidInput
from specopt.models.fields import describe
from specopt.solvers.speculation_table.schedule import Schedule

RULES = "0.33"
TABLE = "num_speculative_tokens_per_batch_size"


def config(schedule: Schedule, version: str | None = None) -> Config | None:
    """Return the part to paste into ``speculative_config``."""
    if not schedule.speculates:
        return None
    return {"num_speculative_tokens": schedule.longest, TABLE: [list(entry) for entry in schedule.ranges]}


def notes(schedule: Schedule, version: str | None = None) -> tuple[str, ...]:
    """Return what an operator must know beside the configuration."""
    if not schedule.speculates:
        return (leave_out("speculative_config", schedule),)
    known = [tail(schedule)]
    if len(schedule.ranges) > 1:
        known += [
            f"with data parallelism above 1 vLLM ignores the table and drafts {schedule.longest} at every batch size",
            "on the old model runner (V1) the table holds for ngram, eagle, eagle3, mtp, draft_model and dflash only, "
            "and full CUDA graphs become piecewise",
        ]
    return (*known, *other_rules(RULES, version))


def check(found: Mapping[str, Any], version: str | None = None) -> None:
    """Raise where vLLM would refuse a configuration.

    Ranges [first, last, drafts], both ends included, positive, without overlaps, the first from 1. A gap and the tail
    carry the last drafts on; drafts above ``num_speculative_tokens`` are clamped to it: refused here, as the engine
    would do something else than it is told.

    Raises
    ------
    InvalidInput
        With the entry, what was expected and what came.
    """
    most = integer("num_speculative_tokens", found.get("num_speculative_tokens"), 1)
    if TABLE not in found:
        return
    entries = found[TABLE]
    if not isinstance(entries, list) or not entries:
        raise InvalidInput(f"{TABLE}: expected a list of [first, last, drafts], got {describe(entries)}")
    for i, entry in enumerate(entries):
        if not isinstance(entry, list | tuple) or len(entry) != 3:
            raise InvalidInput(f"{TABLE}[{i}]: expected [first, last, drafts], got {describe(entry)}")
        low = integer(f"{TABLE}[{i}][0]", entry[0], 1)
        integer(f"{TABLE}[{i}][1]", entry[1], low)
        integer(f"{TABLE}[{i}][2]", entry[2], 0, most)
    ordered = sorted(entries)
    if ordered[0][0] != 1:
        raise InvalidInput(f"{TABLE}: expected the first range to start at 1, got {ordered[0][0]}")
    for (_, high, _), (low, *_) in pairwise(ordered):
        if low <= high:
            raise InvalidInput(f"{TABLE}: expected ranges without overlaps, got one to {high} and one from {low}")


VLLM = Engine(name="vllm", config=config, notes=notes, check=check)
