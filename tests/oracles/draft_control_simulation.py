"""Draft control in plain Python, iteration by iteration: the second route to the simulator's
kernel.

Imports nothing of ours. Uniform numbers come from a function, so that both routes can be given the
same luck.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from oracles.random_numbers import GOLDEN, mixed, uniform


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
    verify = problem["verify_seconds"]
    seconds = length * problem["draft_seconds_per_token"] + (
        verify[length] if isinstance(verify, list) else verify
    )
    seconds += length * (token_bits + bits) / here["uplink_bits_per_second"]
    if "downlink_bits_per_second" in here:
        seconds += (math.ceil(math.log2(length + 1)) + token_bits) / here[
            "downlink_bits_per_second"
        ]
    return float(seconds)


def accepted_of(stream: int, drafted: int, rate: float) -> int:
    """The number of drafts before the first that is rejected."""
    accepted = 0
    while accepted < drafted and uniform(stream + (accepted + 1) * GOLDEN) < rate:
        accepted += 1
    return accepted


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

    `choose` maps state, and drafts and accepted drafts of the last iteration (-1 at the start), to
    the number of drafts and the index of the resolution.
    """
    run = mixed(key + (replication + 1) * GOLDEN)
    state, drafted, accepted = pick(first_weights, uniform(run)), -1, -1
    log = []
    for i in range(iterations):
        stream = mixed(run + (i + 1) * GOLDEN)
        drafted, index = choose(state, drafted, accepted)
        rate = problem["states"][state]["acceptance_rates"][index]
        accepted = accepted_of(stream, drafted, rate)
        log.append(
            (
                state,
                drafted,
                accepted,
                iteration_seconds(problem, state, drafted, bits[state][index]),
            )
        )
        state = pick(problem["transition"][state], uniform(stream))
    return log


def learn(
    problem: dict[str, Any],
    bits: Sequence[Sequence[float]],
    actions: Sequence[tuple[int, int]],
    *,
    per_time: bool,
    discount: float,
    step_power: float,
    explore: tuple[float, float],
    forget: float,
    key: int,
    done: int,
    steps: int,
    state: int,
    running: list[float],
) -> tuple[list[list[float]], list[list[float]]]:
    """Two tables of double Q-learning (van Hasselt 2010) after some steps from nothing; `running`
    is updated.
    """
    size = len(problem["states"])
    tables = [[[0.0] * len(actions) for _ in range(size)] for _ in range(2)]
    visits = [[[0] * len(actions) for _ in range(size)] for _ in range(2)]
    for k in range(steps):
        stream = mixed(key + (done + k + 1) * GOLDEN)
        luck = mixed(stream ^ 0xD1B54A32D192ED03)
        greedy = uniform(luck + GOLDEN) >= explore[0] + (explore[1] - explore[0]) * k / steps
        sums = [a + b for a, b in zip(tables[0][state], tables[1][state], strict=True)]
        action = sums.index(max(sums)) if greedy else int(uniform(luck + 2 * GOLDEN) * len(actions))
        length, index = actions[action]
        accepted = accepted_of(stream, length, problem["states"][state]["acceptance_rates"][index])
        tokens, seconds = (
            accepted + 1.0,
            iteration_seconds(problem, state, length, bits[state][index]),
        )
        if greedy:
            running[0] += tokens - forget * running[0]
            running[1] += seconds - forget * running[1]
        reward = tokens - running[0] / running[1] * seconds if per_time else tokens / seconds
        follower = pick(problem["transition"][state], uniform(stream))
        mine = 0 if uniform(luck + 3 * GOLDEN) < 0.5 else 1
        best = tables[mine][follower].index(max(tables[mine][follower]))
        target = reward + discount * tables[1 - mine][follower][best]
        visits[mine][state][action] += 1
        share = visits[mine][state][action] ** -step_power
        tables[mine][state][action] += share * (target - tables[mine][state][action])
        state = follower
    return tables[0], tables[1]
