"""Planning of one step of online serving: which tasks use drafts, how many tokens they draft, and
in which batches they run.

Output lengths are unknown; the remaining output lengths are estimated from finished tasks.
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
"""Weight of `USUAL_TOKENS`, expressed as a number of finished tasks."""


class Task(NamedTuple):
    """A task as the scheduler knows it.

    The fields are the number of tokens reached, the number of tokens that the draft model has not
    processed, and the acceptance rate. The last two fields are the number of tokens gained, and
    whether the task has not been served yet.
    """

    reached: Annotated[float, Meta(ge=1, le=1e15)]
    unseen: Amount
    rate: HalfOpenUnit
    gained: Amount = 0.0
    first: bool = True

    def after(self, tokens: float, length: int) -> Task:
        """Return the task after a step in which it drafts `length` tokens and gains `tokens`
        tokens.
        """
        unseen = 1.0 if length > 0 else self.unseen + tokens
        return Task(self.reached + tokens, unseen, self.rate, self.gained + tokens, False)


class Learned(NamedTuple):
    """Statistics of all tasks.

    The fields are the sums of the output lengths and of the squared output lengths over finished
    tasks, the number of tasks that have joined, and the total duration of the steps in seconds.
    """

    outputs: Annotated[float, Meta(ge=WEIGHT * USUAL_TOKENS, le=1e15)] = WEIGHT * USUAL_TOKENS
    squares: Amount = WEIGHT * USUAL_TOKENS**2
    joined: Count = 0
    seconds: Amount = 0.0

    @property
    def stay_tokens(self) -> float:
        """Expected number of tokens that an active task will still gain.

        The value is the mean residual life under the output lengths observed so far.
        """
        return self.squares / (2.0 * self.outputs)

    def finished(self, gained: float) -> Learned:
        """Return the statistics after a task has finished."""
        return self._replace(outputs=self.outputs + gained, squares=self.squares + gained**2)


class StepChoice:
    """Compiled function that chooses the batches of a step.

    Parameters
    ----------
    deployment, mechanism
        Problem that specifies the models, runtimes, memory and speculation lengths, and mechanism
        by which tasks are served.
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
        """Return the duration of the step, in seconds, and its batches.

        Each batch is given by the indices of its tasks in `tasks`, its number of draft tokens, and
        its end time.
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
