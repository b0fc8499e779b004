"""SGLang: its server arguments, with the content of ``--speculative-adaptive-config``."""

from __future__ import annotations

from specopt.engines.engine import Config, Engine, leave_out, other_rules, tail
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


SGLANG = Engine(name="sglang", config=config, notes=notes)
