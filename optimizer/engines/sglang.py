"""Configuration of SGLang, which consists of server arguments.

The configuration includes the JSON data of the file for ``--speculative-adaptive-config``.
"""

from __future__ import annotations

from specopt.engines.engine import Config, Engine, method, other_rules, tail
from specopt.models.sweep import Setup
from specopt.solvers.speculation_table.prices import FREE, IDLE, Prices
from specopt.solvers.speculation_table.schedule import Schedule

PRICES = Prices(IDLE, FREE)
RULES = "0.5.23"
ALGORITHMS = ("EAGLE", "EAGLE3", "NEXTN", "STANDALONE", "NGRAM")
FIXED = ("STANDALONE", "NGRAM")
"""Drafting algorithms of SGLang whose draft length cannot be adaptive."""
ADAPTIVE = "speculative_adaptive_config"


def config(schedule: Schedule, version: str | None) -> Config | None:
    """Return the server arguments for a schedule, or None if the server should not speculate.

    Adaptive draft lengths are used only if the draft length varies with the batch size.
    """
    if not schedule.speculates:
        return None
    fixed = {
        "speculative_num_steps": schedule.longest,
        "speculative_eagle_topk": 1,
        "speculative_num_draft_tokens": schedule.longest + 1,
    }
    if len(schedule.ranges) == 1:
        return fixed
    # a list with a single candidate fixes the draft length
    steps = {str(low): {"candidate_steps": [drafts]} for low, _, drafts in schedule.ranges}
    return {**fixed, "speculative_adaptive": True, ADAPTIVE: {"strategy": "ema", **steps}}


def notes(schedule: Schedule, version: str | None, config: Config) -> tuple[str, ...]:
    """Return notes for the operator on how to use a configuration and on its limitations."""
    flags = " ".join(
        f"--{key.replace('_', '-')} {'FILE' if key == ADAPTIVE else value}".removesuffix(" True")
        for key, value in config.items()
    )
    known = [f"as flags: {flags}", tail(schedule)]
    if ADAPTIVE in config:
        known[0] += f", with {ADAPTIVE} in FILE"
        known += [
            (
                "adaptive lengths work only for EAGLE and EAGLE3 with top-k 1, without"
                " data-parallel attention"
            ),
            (
                "a batch is treated as one of the next captured CUDA graph size; capture the last"
                " size of every range except the last"
                f" ({', '.join(str(high) for _, high, _ in schedule.ranges[:-1])})"
            ),
        ]
    return (*known, *other_rules(RULES, version))


def setup(drafts: Setup) -> Config | None:
    """Return the server arguments that set the algorithm, token trees and adaptive draft lengths.

    The algorithm is set if its name is a prefix of the drafter's name. The result is None if SGLang
    has no options for the setup.
    """
    known = method(drafts, (*ALGORITHMS, "MTP"))
    found: Config = {"speculative_algorithm": "NEXTN" if known == "MTP" else known} if known else {}
    if drafts.topk > 1:  # sweeps do not report how many tokens of a tree are verified
        found |= {"speculative_eagle_topk": drafts.topk, "speculative_num_draft_tokens": None}
    if drafts.mode == "fixed":
        return found
    adapts = drafts.mode == "adaptive" and drafts.topk == 1 and known not in FIXED
    return found | {"speculative_adaptive": True} if adapts else None


SGLANG = Engine(
    name="sglang",
    config=config,
    notes=notes,
    option="--speculative-algorithm",
    batch="--max-running-requests",
    setup=setup,
    prices=PRICES,
)
