"""Choose one step of online serving: which tasks draft, how many tokens, and in which batches.

Output lengths are not known: how long tasks stay is learned from those that have finished.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Annotated, NamedTuple

import numpy as np
from msgspec import Meta

from specopt.models.continuous_serving.problem import ContinuousServingProblem
from specopt.models.fields import Amount, Count, HalfOpenUnit
from specopt.models.serving_data import Mechanism
from specopt.solvers.budget import Budget
from specopt.solvers.continuous_serving.prepare import prepare

USUAL_TOKENS = 256.0
"""Expected output length before any task has finished."""

WEIGHT = 8.0
"""Weight of `USUAL_TOKENS`, as a number of finished tasks."""


class Task(NamedTuple):
    """A task as the scheduler knows it: tokens that it has, tokens that the draft model lacks,
    acceptance, tokens gained.
    """

    reached: Annotated[float, Meta(ge=1, le=1e15)]
    unseen: Amount
    rate: HalfOpenUnit
    gained: Amount = 0.0
    first: bool = True

    def after(self, tokens: float, length: int) -> Task:
        """Return the task after a step in which it drafted `length` tokens and gained `tokens`."""
        unseen = 1.0 if length > 0 else self.unseen + tokens
        return Task(self.reached + tokens, unseen, self.rate, self.gained + tokens, False)


class Learned(NamedTuple):
    """Statistics of all tasks: sums over finished ones, tasks that came, and seconds of the
    steps.
    """

    outputs: Annotated[float, Meta(ge=WEIGHT * USUAL_TOKENS, le=1e15)] = WEIGHT * USUAL_TOKENS
    squares: Amount = WEIGHT * USUAL_TOKENS**2
    joined: Count = 0
    seconds: Amount = 0.0

    @property
    def stay_tokens(self) -> float:
        """Tokens that a task at hand is expected to gain yet: the mean residual life of the lengths
        met so far.
        """
        return self.squares / (2.0 * self.outputs)

    def finished(self, gained: float) -> Learned:
        """Return the statistics once a task has finished."""
        return self._replace(outputs=self.outputs + gained, squares=self.squares + gained**2)


class StepChoice:
    """The compiled choice.

    Parameters
    ----------
    deployment, mechanism
        A problem whose models, runtimes, memory and speculation lengths count, and how tasks are
        served.
    """

    def __init__(self, deployment: ContinuousServingProblem, mechanism: Mechanism) -> None:
        prepared = prepare(deployment, mechanism)
        self._lengths = np.array(prepared.served_lengths, np.int64)
        self._kernels = Budget(deployment).load("continuous_serving.online")
        self._server = self._kernels.Server(
            prepared.models, prepared.memory, prepared.runtimes, prepared.overlap
        )

    def choose(
        self, tasks: Collection[Task], learned: Learned
    ) -> tuple[float, list[tuple[list[int], int, float]]]:
        """Return the seconds of a step, and its batches: places of their tasks, draft tokens of
        each, and end.
        """
        reached, unseen, rate, _, first = map(np.array, zip(*tasks, strict=True))
        (members, ends, guesses), finish = np.zeros((3, len(tasks)), np.int64), np.zeros(len(tasks))
        seconds, count = self._kernels.choose(
            self._server,
            self._kernels.Active(reached, unseen, first, rate),
            self._lengths,
            learned.stay_tokens,
            learned.joined / (learned.seconds or 1.0),
            members,
            ends,
            guesses,
            finish,
        )
        places, bounds = members.tolist(), [0, *ends[:count].tolist()]
        rows = zip(bounds[:-1], bounds[1:], guesses.tolist(), finish.tolist(), strict=False)
        return float(seconds), [
            (places[begin:end], length, finish) for begin, end, length, finish in rows
        ]
