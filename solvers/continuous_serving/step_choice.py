"""The decision of an online scheduler before each step: which tasks use drafts, how many tokens
they draft, and how they are batched.

Output lengths are unknown in advance. The scheduler estimates the remaining output lengths from the
tasks that have finished.
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
"""Assumed mean output length, in tokens, before any task has finished."""

WEIGHT = 8.0
"""Weight of `USUAL_TOKENS` in the mean output length, as an equivalent number of finished tasks."""


class Task(NamedTuple):
    """The scheduler's information about a task.

    The fields contain the number of tokens reached, the number of tokens that the draft model has
    not processed yet, the acceptance rate, and the number of tokens gained. The last field states
    whether the next step is the task's first step.
    """

    reached: Annotated[float, Meta(ge=1, le=1e15)]
    unseen: Amount
    rate: HalfOpenUnit
    gained: Amount = 0.0
    first: bool = True

    def after(self, tokens: float, length: int) -> Task:
        """Return the updated task after a step in which it drafted `length` tokens and gained
        `tokens` tokens.
        """
        unseen = 1.0 if length > 0 else self.unseen + tokens
        return Task(self.reached + tokens, unseen, self.rate, self.gained + tokens, False)


class Learned(NamedTuple):
    """Statistics that the scheduler collects over all tasks.

    The first two fields contain the sums of the output lengths and of the squared output lengths of
    finished tasks. The other fields contain the number of tasks that have joined, and the total
    duration of all steps in seconds.
    """

    outputs: Annotated[float, Meta(ge=WEIGHT * USUAL_TOKENS, le=1e15)] = WEIGHT * USUAL_TOKENS
    squares: Amount = WEIGHT * USUAL_TOKENS**2
    joined: Count = 0
    seconds: Amount = 0.0

    @property
    def stay_tokens(self) -> float:
        """Expected number of tokens that an active task will still gain before it finishes.

        The value is the mean residual life for the output lengths observed so far.
        """
        return self.squares / (2.0 * self.outputs)

    def finished(self, gained: float) -> Learned:
        """Return updated statistics after a task with `gained` tokens has finished."""
        return self._replace(outputs=self.outputs + gained, squares=self.squares + gained**2)


class StepChoice:
    """An online scheduler that chooses the batches of each step with a compiled kernel.

    Parameters
    ----------
    deployment, mechanism
        Problem that specifies the models, runtimes, memory and speculation lengths, and the
        mechanism with which tasks are served.
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
        """Choose the batches of the next step. Return the duration of the step, in seconds, and the
        batches.

        Each batch is a tuple (indices, length, end): the indices of its tasks in `tasks`, its
        number of draft tokens, and the time within the step at which its verification ends, in
        seconds.
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
