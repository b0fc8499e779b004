"""SGLang: its server arguments, with the content of ``--speculative-adaptive-config``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from specopt.engines.engine import Config, Engine, counts, leave_out, other_rules, tail
from specopt.models.arguments import integer
from specopt.models.errors import InvalidInput
from specopt.models.fields import describe
from specopt.solvers.speculation_table.schedule import Schedule

RULES = "0.5.23"
ADAPTIVE = "speculative_adaptive_config"


def config(schedule: Schedule, version: str | None = None) -> Config | None:
    """Return the server arguments; one length for all batch sizes needs no adaptive ones."""
    if not schedule.speculates:
        return None
    fixed: Config = {
        "speculative_num_steps": schedule.longest,
        "speculative_eagle_topk": 1,
        "speculative_num_draft_tokens": schedule.longest + 1,
    }
    if len(schedule.ranges) == 1:
        return fixed
    steps = {str(low): {"candidate_steps": [drafts]} for low, _, drafts in schedule.ranges}  # one candidate: pinned
    return {**fixed, "speculative_adaptive": True, ADAPTIVE: {"strategy": "ema", **steps}}


def notes(schedule: Schedule, version: str | None = None) -> tuple[str, ...]:
    """Return what an operator must know beside the configuration."""
    if not schedule.speculates:
        return (leave_out("--speculative-algorithm", schedule),)
    n = schedule.longest
    flags = f"--speculative-num-steps {n} --speculative-eagle-topk 1 --speculative-num-draft-tokens {n + 1}"
    known = [f"as flags: {flags}", tail(schedule)]
    if len(schedule.ranges) > 1:
        known[0] += f" --speculative-adaptive --speculative-adaptive-config FILE, with {ADAPTIVE} in FILE"
        known += [
            "adaptive lengths are for EAGLE and EAGLE3 with top-k 1, without data-parallel attention",
            "a batch counts as the next captured CUDA graph size: capture the last size of every range "
            f"but the last ({', '.join(str(high) for _, high, _ in schedule.ranges[:-1])})",
        ]
    return (*known, *other_rules(RULES, version))


def check(found: Mapping[str, Any], version: str | None = None) -> None:
    """Raise where SGLang would refuse a configuration, or let acceptance move the length.

    Keys of the adaptive configuration are lower bounds of the batch size; a batch below the first takes the first.

    Raises
    ------
    InvalidInput
        With the entry, what was expected and what came.
    """
    most = integer("speculative_num_steps", found.get("speculative_num_steps"), 1)
    integer("speculative_eagle_topk", found.get("speculative_eagle_topk"), 1, 1)
    integer("speculative_num_draft_tokens", found.get("speculative_num_draft_tokens"), most + 1, most + 1)
    if not found.get("speculative_adaptive"):
        return
    adaptive = found.get(ADAPTIVE)
    if not isinstance(adaptive, Mapping) or adaptive.get("strategy", "ema") not in ("ema", "throughput_aware"):
        raise InvalidInput(f"{ADAPTIVE}: expected an object with strategy ema or throughput_aware")
    entries = counts(ADAPTIVE, {key: entry for key, entry in adaptive.items() if str(key).isdecimal()})
    if entries[0][0] != 1:
        raise InvalidInput(f"{ADAPTIVE}: expected the first batch size 1, got {entries[0][0]}")
    for batch, entry in entries:
        steps = entry.get("candidate_steps") if isinstance(entry, Mapping) else None
        if not isinstance(steps, list) or len(steps) != 1:
            raise InvalidInput(f"{ADAPTIVE}.{batch}.candidate_steps: expected one number, got {describe(steps)}")
        integer(f"{ADAPTIVE}.{batch}.candidate_steps[0]", steps[0], 0, most)


SGLANG = Engine(name="sglang", config=config, notes=notes, check=check)
