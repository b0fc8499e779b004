"""Serving schemes that can be selected by name.

They are four schemes of paper 4 and a scheme with planned chunks:

==============  ====================================================================================
``u-shape``     whole prompts, one token per round
``u-medusa``    whole prompts, a tree of candidates per round
``u-sarathi``   the server cuts prompts into chunks of a common budget, one token per round
``hat``         chunks of Eq. 3, drafts that end at a threshold, parallel drafting
``planned``     the same as ``hat``, but with chunks planned by a method
==============  ====================================================================================
"""

from __future__ import annotations

from functools import partial

from specopt.models.prompt_chunking.workload import PromptWorkload, Rounds, Scheme
from specopt.solvers.policy import as_policy

SCHEMES = ("u-shape", "u-medusa", "u-sarathi", "hat", "planned")
_TREE = 8


def as_scheme(workload: PromptWorkload, scheme: Scheme | str) -> Scheme:
    """Return a scheme that is specified either by its name or as an object.

    For a named scheme, the workload determines how many tokens a round gains.

    Raises
    ------
    InvalidInput
        If `scheme` is neither a known name nor a scheme.
    """
    found: Scheme = as_policy(
        scheme, {name: partial(_named, workload, name) for name in SCHEMES}, Scheme
    )
    return found


def _named(workload: PromptWorkload, name: str) -> Scheme:
    if name == "u-medusa":
        return Scheme(name=name, rounds=Rounds.tree(_TREE, workload.tree_tokens_per_round))
    if name in ("hat", "planned"):
        return Scheme(
            name=name,
            chunking="equation-3" if name == "hat" else "planned",
            rounds=Rounds.threshold(workload.draft_tokens_per_round),
            parallel_drafting=True,
        )
    return Scheme(
        name=name,
        chunking="whole" if name == "u-shape" else "server",
        rounds=Rounds.one_by_one(),
        server_chunk_tokens=workload.server_chunk_tokens,
    )
