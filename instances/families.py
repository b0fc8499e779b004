"""Named families of problems, and the one door to them."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from specopt.instances.draft_allocation.paper_5 import paper_5 as draft_allocation_paper_5
from specopt.instances.draft_allocation.uniform import uniform as draft_allocation_uniform
from specopt.instances.draft_control.alternating import alternating
from specopt.instances.draft_control.paper_3 import paper_3
from specopt.instances.draft_control.random import random as draft_control_random
from specopt.instances.fair_goodput.paper_5 import paper_5 as fair_goodput_paper_5
from specopt.instances.fair_goodput.per_second import per_second as fair_goodput_per_second
from specopt.instances.prompt_chunking.paper_4 import paper_4
from specopt.instances.prompt_chunking.random import random as prompt_chunking_random
from specopt.instances.serving_latency.paper_1 import paper_1
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
        Family("draft-allocation/paper-5", draft_allocation_paper_5),
        Family("draft-allocation/uniform", draft_allocation_uniform),
        Family("verification-batch/warm", warm),
        Family("verification-batch/mixed", mixed),
        Family("verification-batch/tight", tight),
        Family("verification-batch/memory-bound", memory_bound),
        Family("draft-control/paper-3", paper_3),
        Family("draft-control/random", draft_control_random),
        Family("draft-control/alternating", alternating),
        Family("fair-goodput/paper-5", fair_goodput_paper_5),
        Family("fair-goodput/per-second", fair_goodput_per_second),
        Family("prompt-chunking/paper-4", paper_4),
        Family("prompt-chunking/random", prompt_chunking_random),
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
