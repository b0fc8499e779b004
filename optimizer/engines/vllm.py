"""vLLM: drafts per batch size, a part of its ``speculative_config``."""

from __future__ import annotations

from specopt.engines.engine import Config, Engine, leave_out, method, other_rules, tail
from specopt.models.sweep import Setup
from specopt.solvers.speculation_table.schedule import Schedule

RULES = "0.33"
METHODS = ("ngram", "draft_model", "eagle", "eagle3", "mtp", "dflash", "dspark", "suffix")
TABLE = "num_speculative_tokens_per_batch_size"


def config(schedule: Schedule, version: str | None = None) -> Config | None:
    """Return the part to paste into ``speculative_config``."""
    if not schedule.speculates:
        return None
    return {
        "num_speculative_tokens": schedule.longest,
        TABLE: [list(entry) for entry in schedule.ranges],
    }


def notes(schedule: Schedule, version: str | None = None) -> tuple[str, ...]:
    """Return what an operator must know beside the configuration."""
    if not schedule.speculates:
        return (leave_out("speculative_config", schedule),)
    known = [tail(schedule)]
    if len(schedule.ranges) > 1:
        known += [
            (
                "with data parallelism above 1 vLLM ignores the table and drafts"
                f" {schedule.longest} at every batch size"
            ),
            (
                "on the old model runner (V1) the table holds for ngram, eagle, eagle3, mtp,"
                " draft_model and dflash only, and full CUDA graphs become piecewise"
            ),
        ]
    return (*known, *other_rules(RULES, version))


def setup(drafts: Setup) -> Config:
    """Return the method, where the drafter is named by it, and adaptive verification."""
    known = method(drafts, METHODS)
    return ({"method": known} if known else {}) | (
        {"enable_adaptive_verification": True} if drafts.mode != "fixed" else {}
    )


VLLM = Engine(name="vllm", config=config, notes=notes, batch="--max-num-seqs", setup=setup)
