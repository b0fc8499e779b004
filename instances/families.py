"""Named families of problems, and the one door to them."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from specopt.instances.draft_allocation.capped import capped
from specopt.instances.draft_allocation.one_dominates import one_dominates
from specopt.instances.draft_allocation.paper_5 import paper_5 as draft_allocation_paper_5
from specopt.instances.draft_allocation.ties import ties
from specopt.instances.draft_allocation.uniform import uniform as draft_allocation_uniform
from specopt.instances.draft_control.alternating import alternating
from specopt.instances.draft_control.deterministic_cycle import deterministic_cycle
from specopt.instances.draft_control.near_tie import near_tie
from specopt.instances.draft_control.paper_3 import paper_3
from specopt.instances.draft_control.random import random as draft_control_random
from specopt.instances.draft_control.slow_mixing import slow_mixing
from specopt.instances.fair_goodput.extreme_fairness import extreme_fairness
from specopt.instances.fair_goodput.minimum_rates import minimum_rates
from specopt.instances.fair_goodput.paper_5 import paper_5 as fair_goodput_paper_5
from specopt.instances.fair_goodput.per_second import per_second as fair_goodput_per_second
from specopt.instances.prompt_chunking.paper_4 import paper_4
from specopt.instances.prompt_chunking.random import random as prompt_chunking_random
from specopt.instances.prompt_chunking.single_stage import single_stage
from specopt.instances.prompt_chunking.slow_link import slow_link as prompt_chunking_slow_link
from specopt.instances.prompt_chunking.slow_message import slow_message
from specopt.instances.prompt_chunking.steep_cloud import steep_cloud
from specopt.instances.serving_latency.equal_inputs import equal_inputs
from specopt.instances.serving_latency.heavy_prefill import heavy_prefill
from specopt.instances.serving_latency.known_lengths import known_lengths
from specopt.instances.serving_latency.paper_1 import paper_1
from specopt.instances.serving_latency.slow_link import slow_link as serving_latency_slow_link
from specopt.instances.serving_latency.stage_ratio import stage_ratio
from specopt.instances.serving_latency.tight_memory import tight_memory
from specopt.instances.verification_batch.bursty import bursty
from specopt.instances.verification_batch.correlated import correlated
from specopt.instances.verification_batch.density_trap import density_trap
from specopt.instances.verification_batch.hopeless_urgent import hopeless_urgent
from specopt.instances.verification_batch.pending import memory_bound, mixed, tight, warm
from specopt.models.errors import InvalidInput
from specopt.models.problem import Problem


@dataclass(frozen=True)
class Family:
    """A named family of problems.

    Parameters
    ----------
    name
        KIND/FAMILY, as on the command line.
    build
        Function of the family's parameters and the seed, both by keyword.
    """

    name: str
    build: Callable[..., Problem]

    @property
    def summary(self) -> str:
        """First line of the family's documentation."""
        return (inspect.getdoc(self.build) or "").partition("\n")[0]

    @property
    def defaults(self) -> dict[str, Any]:
        """The family's parameters and their default values, the seed included."""
        return {p.name: p.default for p in inspect.signature(self.build).parameters.values()}


FAMILIES: dict[str, Family] = {
    family.name: family
    for family in (
        Family("serving-latency/paper-1", paper_1),
        Family("serving-latency/equal-inputs", equal_inputs),
        Family("serving-latency/tight-memory", tight_memory),
        Family("serving-latency/stage-ratio", stage_ratio),
        Family("serving-latency/slow-link", serving_latency_slow_link),
        Family("serving-latency/heavy-prefill", heavy_prefill),
        Family("serving-latency/known-lengths", known_lengths),
        Family("draft-allocation/paper-5", draft_allocation_paper_5),
        Family("draft-allocation/uniform", draft_allocation_uniform),
        Family("draft-allocation/ties", ties),
        Family("draft-allocation/one-dominates", one_dominates),
        Family("draft-allocation/capped", capped),
        Family("verification-batch/warm", warm),
        Family("verification-batch/mixed", mixed),
        Family("verification-batch/tight", tight),
        Family("verification-batch/memory-bound", memory_bound),
        Family("verification-batch/bursty", bursty),
        Family("verification-batch/hopeless-urgent", hopeless_urgent),
        Family("verification-batch/density-trap", density_trap),
        Family("verification-batch/correlated", correlated),
        Family("draft-control/paper-3", paper_3),
        Family("draft-control/random", draft_control_random),
        Family("draft-control/alternating", alternating),
        Family("draft-control/near-tie", near_tie),
        Family("draft-control/deterministic-cycle", deterministic_cycle),
        Family("draft-control/slow-mixing", slow_mixing),
        Family("fair-goodput/paper-5", fair_goodput_paper_5),
        Family("fair-goodput/per-second", fair_goodput_per_second),
        Family("fair-goodput/minimum-rates", minimum_rates),
        Family("fair-goodput/extreme-fairness", extreme_fairness),
        Family("prompt-chunking/paper-4", paper_4),
        Family("prompt-chunking/random", prompt_chunking_random),
        Family("prompt-chunking/slow-message", slow_message),
        Family("prompt-chunking/single-stage", single_stage),
        Family("prompt-chunking/steep-cloud", steep_cloud),
        Family("prompt-chunking/slow-link", prompt_chunking_slow_link),
    )
}


def generate(family: str, *, seed: int = 0, **parameters: Any) -> Problem:
    """Return a problem from a named family: the same parameters and seed give the same problem.

    Parameters
    ----------
    family
        KIND/FAMILY, for example ``"serving-latency/paper-1"``.
    seed
        Seed of numpy's default generator.
    parameters
        The family's own parameters.

    Raises
    ------
    InvalidInput
        If there is no such family or parameter.
    """
    if family not in FAMILIES:
        raise InvalidInput(f"family: expected one of {', '.join(FAMILIES)}, got {family!r}")
    known = FAMILIES[family].defaults
    for name in parameters:
        if name not in known:
            raise InvalidInput(f"{name}: {family} has no such parameter; it has {', '.join(known)}")
    return FAMILIES[family].build(seed=seed, **parameters)
