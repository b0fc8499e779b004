"""How many steps to draft, and from how many candidates, while the cloud verifies (paper 4, Sec. 3.5).

Eq. 6 takes all steps that fit and leaves k open. When candidates and steps cost time, fewer may be faster; so may one
more, which the answer then waits for.
"""

from __future__ import annotations

import math

from specopt.models.device_speculation import DraftingChoice, ParallelDrafting, parallel_steps


def best_parallel_drafting(setting: ParallelDrafting) -> DraftingChoice:
    """Return steps and candidates with the least time between tokens; none at all if that is best.

    Exact: all pairs are compared up to the longest draft, beyond which a step hides nothing and costs no less. Ties go
    to fewer candidates, then to fewer steps. O(L^2 K) for drafts of up to L tokens and K candidates.
    """
    best = DraftingChoice(steps=0, candidates=0, tbt_seconds=setting.tbt_seconds(0, 0))
    for k in range(1, len(setting.candidates) + 1):
        for steps in range(1, len(setting.drafted) + 1):
            found = setting.tbt_seconds(steps, k)
            if found < best.tbt_seconds:
                best = DraftingChoice(steps=steps, candidates=k, tbt_seconds=found)
    return best


def equation_6(setting: ParallelDrafting, k: int) -> DraftingChoice:
    """Return what Eq. 6 gives with k candidates: steps for a draft of mean length, rounded up, at ordinary cost.

    The paper has no cost of candidates in Eq. 6; here a step costs what it costs with k of them.
    """
    cost = setting.cost
    mean = sum((index + 1) * probability for index, probability in enumerate(setting.drafted.tolist()))
    steps = parallel_steps(
        math.ceil(mean),
        bytes_per_token=cost.bytes_per_token,
        uplink_bytes_per_second=cost.uplink_bytes_per_second,
        downlink_bytes_per_second=cost.downlink_bytes_per_second,
        cloud_seconds=cost.cloud_seconds,
        draft_seconds=setting.step_cost(k),
    )
    return DraftingChoice(steps=steps, candidates=k, tbt_seconds=setting.tbt_seconds(steps, k))
