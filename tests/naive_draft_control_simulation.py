"""Draft control in plain Python, iteration by iteration: the second route to the simulator's kernel.

Imports nothing of ours. Uniform numbers come from a function, so that both routes can be given the same luck.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

MASK = (1 << 64) - 1
GOLDEN = 0x9E3779B97F4A7C15


def mixed(z: int) -> int:
    """SplitMix64."""
    z &= MASK
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
    return z ^ (z >> 31)


def uniform(z: int) -> float:
    """A number in [0, 1)."""
    return (mixed(z) >> 11) / 2**53


def pick(weights: Sequence[float], draw: float) -> int:
    """The entry in whose part of the whole a draw falls."""
    total, summed = math.fsum(weights), 0.0
    for index, weight in enumerate(weights):
        summed += weight
        if weight > 0 and draw * total < summed:
            return index
    return max(index for index, weight in enumerate(weights) if weight > 0)


def iteration_seconds(problem: dict[str, Any], state: int, length: int, bits: float) -> float:
    """Eq. 7-9 with ceil(log2(L + 1)) bits for the count."""
    token_bits = math.ceil(math.log2(problem["vocabulary_size"]))
    here = problem["states"][state]
    seconds = length * problem["draft_seconds_per_token"] + problem["verify_seconds"]
    seconds += length * (token_bits + bits) / here["uplink_bits_per_second"]
    if "downlink_bits_per_second" in here:
        seconds += (math.ceil(math.log2(length + 1)) + token_bits) / here["downlink_bits_per_second"]
    return float(seconds)


def play(
    problem: dict[str, Any],
    first_weights: Sequence[float],
    bits: Sequence[Sequence[float]],
    choose: Callable[[int, int, int], tuple[int, int]],
    key: int,
    replication: int,
    iterations: int,
) -> list[tuple[int, int, int, float]]:
    """State, drafts, accepted drafts and seconds of every iteration.

    `choose` maps state, and drafts and accepted drafts of the last iteration (-1 at the start), to the number of
    drafts and the index of the resolution.
    """
    run = mixed(key + (replication + 1) * GOLDEN)
    state, drafted, accepted = pick(first_weights, uniform(run)), -1, -1
    log = []
    for i in range(iterations):
        stream = mixed(run + (i + 1) * GOLDEN)
        drafted, index = choose(state, drafted, accepted)
        rate = problem["states"][state]["acceptance_rates"][index]
        accepted = 0
        for token in range(drafted):
            if uniform(stream + (token + 1) * GOLDEN) >= rate:
                break
            accepted += 1
        log.append((state, drafted, accepted, iteration_seconds(problem, state, drafted, bits[state][index])))
        state = pick(problem["transition"][state], uniform(stream))
    return log
