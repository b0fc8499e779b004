"""Configuration of vLLM, whose ``speculative_config`` sets the draft length per batch size."""

from __future__ import annotations

from specopt.engines.engine import Config, Engine, method, other_rules, tail
from specopt.models.sweep import Setup
from specopt.solvers.speculation_table.schedule import Schedule

RULES = "0.33"
METHODS = ("ngram", "draft_model", "eagle", "eagle3", "mtp", "dflash", "dspark", "suffix")
TABLE = "num_speculative_tokens_per_batch_size"


def config(schedule: Schedule, version: str | None) -> Config | None:
    """Return the entries of ``speculative_config`` for a schedule.

    The result is None if the engine should not speculate.
    """
    if not schedule.speculates:
        return None
    return {
        "num_speculative_tokens": schedule.longest,
        TABLE: [list(entry) for entry in schedule.ranges],
    }


def notes(schedule: Schedule, version: str | None, config: Config) -> tuple[str, ...]:
    """Return notes for the operator on how to use a configuration and on its limitations."""
    known = [tail(schedule)]
    if len(schedule.ranges) > 1:
        known += [
            (
                "with data parallelism above 1, vLLM ignores the table and drafts"
                f" {schedule.longest} at every batch size"
            ),
            (
                "on the old model runner (V1) the table applies only to ngram, eagle, eagle3, mtp,"
                " draft_model and dflash, and full CUDA graphs become piecewise"
            ),
        ]
    return (*known, *other_rules(RULES, version))


def setup(drafts: Setup) -> Config | None:
    """Return the options that set the drafting method and adaptive verification.

    The method is set if its name is a prefix of the drafter's name. Only DSpark supports adaptive
    verification. The result is None if vLLM has no options for the setup.
    """
    known = method(drafts, METHODS)
    found: Config = {"method": known} if known else {}
    if known == "dspark" and drafts.mode == "adaptive":
        found["enable_adaptive_verification"] = True
    elif drafts.mode != "fixed":
        return None
    return found if drafts.topk == 1 else None


VLLM = Engine(
    name="vllm",
    config=config,
    notes=notes,
    option="speculative_config",
    batch="--max-num-seqs",
    setup=setup,
)
