"""Two halves that are hardly ever left: a chain that takes thousands of iterations to mix."""

from __future__ import annotations

import dataclasses

import numpy as np

from specopt.instances.draft_control.random import random
from specopt.models.arguments import integer, number
from specopt.models.draft_control.problem import DraftControlProblem
from specopt.models.fields import MAX_TOKENS
from specopt.models.markov_chain import TransitionMatrix


def slow_mixing(*, states: int = 10, leave: float = 1e-4, seed: int = 0) -> DraftControlProblem:
    """States in two halves, each left with a small probability; links and acceptance are random.

    Difficulty: value iteration needs about 1 / `leave` sweeps where policy iteration needs a few
    linear solves. A trace of usual length contains only one half, and so does a policy learnt from
    it.

    Parameters
    ----------
    states
        Number of states S, at least 2.
    leave
        Probability of leaving a half, in (0, 1).
    seed
        Seed of `numpy.random.default_rng`.
    """
    integer("seed", seed, 0)
    count = integer("states", states, 2, MAX_TOKENS)
    leave = number("leave", leave, above=0, below=1)
    first = np.arange(count) < count // 2
    same = first[:, None] == first
    jumps = 1.0 + np.random.default_rng((seed, 1)).uniform(size=(count, count))
    inside, outside = jumps * same, jumps * ~same
    rows = (1.0 - leave) * inside / inside.sum(axis=1, keepdims=True)
    rows += leave * outside / outside.sum(axis=1, keepdims=True)
    base = random(states=count, resolutions=3, max_draft=32, seed=seed)
    return dataclasses.replace(
        base,
        name=f"slow-mixing S={states} leave={leave:g} seed={seed}",
        transition=TransitionMatrix(rows),
    )
