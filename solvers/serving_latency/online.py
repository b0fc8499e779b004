"""The scheduler that an engine embeds: tasks join when they like, and every step is planned when it begins.

It knows no output lengths. Each step it chooses who drafts, how many tokens, and the batches; every task at hand is
served. Not for several threads at once.

>>> from specopt.instances.serving_latency.paper_1 import paper_1
>>> scheduler = Scheduler(paper_1())  # its models, runtimes and memory; its tasks play no part
>>> scheduler.submit("a", input_tokens=300)
>>> step = scheduler.next_step()
>>> scheduler.submit("b", input_tokens=20)  # joins with the next step
>>> scheduler.complete({"a": 3})  # tokens that it gained
>>> [batch.keys for batch in scheduler.next_step().batches]
[('a',), ('b',)]
>>> scheduler.complete({"a": 1, "b": 2}, finished=["a"])
>>> scheduler.tasks
('b',)
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from specopt.models.acceptance import expected_tokens_per_step
from specopt.models.arguments import integer, number
from specopt.models.errors import InvalidInput
from specopt.models.fields import MAX_TOKENS, describe
from specopt.models.serving_latency import Mechanism, ServingLatencyProblem
from specopt.solvers.budget import Budget
from specopt.solvers.serving_latency.prepare import prepare

Key = str | int

USUAL_TOKENS = 256.0
"""Output length that is expected before any task has finished."""

WEIGHT = 8.0
"""Tasks that have finished after which what they had counts as much."""


@dataclass(frozen=True)
class Batch:
    """Tasks that run together in one step.

    Parameters
    ----------
    keys
        Which.
    speculation_length
        Draft tokens for each.
    finish_seconds
        When the batch is verified, since the step began.
    """

    keys: tuple[Key, ...]
    speculation_length: int
    finish_seconds: float


@dataclass(frozen=True)
class Step:
    """What a step serves.

    Parameters
    ----------
    batches
        In order; none if there is no task.
    seconds
        How long it takes.
    """

    batches: tuple[Batch, ...]
    seconds: float


@dataclass
class _Task:
    """What is known of a task: tokens that it has, tokens that the draft model lacks, acceptance, tokens gained."""

    reached: float
    unseen: float
    rate: float
    gained: float = 0.0
    first: bool = True


class Scheduler:
    """Plan every step of a server from what is at hand when it begins.

    Parameters
    ----------
    deployment
        A problem whose models, runtimes, memory, acceptance rate and speculation lengths count; not its tasks. With
        `min_speculation_length` 0 tasks may draft nothing for a while.
    mechanism
        How tasks are served; None: as the problem says, overlapping where it leaves that open.

    Raises
    ------
    InvalidInput
        If the problem is not for this mechanism.
    """

    def __init__(self, deployment: ServingLatencyProblem, mechanism: Mechanism | None = None) -> None:
        allowed = deployment.mechanisms
        self.mechanism = allowed[0] if mechanism is None else mechanism
        if self.mechanism not in allowed:
            raise InvalidInput(f"mechanism: expected one of {', '.join(allowed)}, got {describe(mechanism)}")
        self.deployment = deployment
        prepared = prepare(deployment, self.mechanism)
        self._lengths = np.array(prepared.served_lengths, dtype=np.int64)
        self._kernels = Budget(deployment).load("serving_latency.online")
        self._server = self._kernels.Server(
            draft=prepared.draft, verify=prepared.verify, memory=prepared.memory, runtimes=prepared.runtimes,
            overlap=self.mechanism == "pipelined",
        )  # fmt: skip
        self._tasks: dict[Key, _Task] = {}
        self._running: Step | None = None
        self._outputs, self._squares = WEIGHT * USUAL_TOKENS, WEIGHT * USUAL_TOKENS**2  # sums over what finished
        self._joined, self._seconds = 0, 0.0  # tasks, and steps
        self._make_room(16)

    @property
    def tasks(self) -> tuple[Key, ...]:
        """The tasks at hand, in the order in which they were submitted."""
        return tuple(self._tasks)

    @property
    def stay_tokens(self) -> float:
        """Tokens that a task at hand is expected to gain yet: the mean residual life of the lengths met so far."""
        return self._squares / (2.0 * self._outputs)

    def warm_up(self) -> None:
        """Load the kernel and decide once, so that no later call compiles."""
        self._choose([_Task(1.0, 1.0, 0.5)])

    def submit(self, key: Key, *, input_tokens: int, acceptance_rate: float | None = None) -> None:
        """Add a task, whose input has arrived: it takes part from the next step on.

        Parameters
        ----------
        key
            Names the task until it has finished.
        input_tokens
            Length of its prompt.
        acceptance_rate
            Its own; None: the deployment's, the mean where that has one for each task.

        Raises
        ------
        InvalidInput
            If the key is in use or a value is outside its domain.
        """
        if key in self._tasks:
            raise InvalidInput(f"key: expected one that is not in use, got {describe(key)}")
        tokens = float(integer("input_tokens", input_tokens, 1, MAX_TOKENS))
        rate = self._usual_rate() if acceptance_rate is None else acceptance_rate
        self._joined += 1
        self._tasks[key] = _Task(tokens, tokens, number("acceptance_rate", rate, 0, below=1))

    def cancel(self, key: Key) -> None:
        """Forget a task.

        Raises
        ------
        InvalidInput
            If there is none of that name.
        """
        if key not in self._tasks:
            raise InvalidInput(f"key: expected a task at hand, got {describe(key)}")
        del self._tasks[key]

    def next_step(self) -> Step:
        """Return what the server does now: every task at hand is in one batch.

        Raises
        ------
        InvalidInput
            If a step is running.
        """
        if self._running is not None:
            raise InvalidInput("next_step: expected the running step to be complete first")
        if not self._tasks:
            return Step((), 0.0)
        seconds, count = self._choose(list(self._tasks.values()))
        self._seconds += seconds
        keys = list(self._tasks)
        batches, begin = [], 0
        members, ends = self._members[: len(keys)].tolist(), self._ends[:count].tolist()
        for end, length, finish in zip(ends, self._guesses.tolist(), self._finish.tolist(), strict=False):
            batches.append(Batch(tuple([keys[k] for k in members[begin:end]]), length, finish))
            begin = end
        self._running = Step(tuple(batches), seconds)
        return self._running

    def complete(self, gained: Mapping[Key, float] | None = None, finished: Iterable[Key] = ()) -> None:
        """Note that the step has ended.

        Parameters
        ----------
        gained
            Tokens that each of its tasks gained; those left out, the mean of Eq. 7.
        finished
            Tasks that leave.

        Raises
        ------
        InvalidInput
            If no step is running, or tasks were not in it.
        """
        if self._running is None:
            raise InvalidInput("complete: expected a running step")
        served = {key: batch.speculation_length for batch in self._running.batches for key in batch.keys}
        leaving = set(finished)
        for key in (gained or {}).keys() | leaving:
            if key not in served:
                raise InvalidInput(f"complete: expected tasks of the running step, got {describe(key)}")
        self._running = None
        for key, length in served.items():
            task = self._tasks.get(key)
            if task is None:
                continue  # cancelled meanwhile
            tokens = expected_tokens_per_step(task.rate, length)
            tokens = tokens if gained is None else number("gained", gained.get(key, tokens), 0)
            task.reached, task.gained = task.reached + tokens, task.gained + tokens
            task.unseen = 1.0 if length > 0 else task.unseen + tokens
            task.first = False
            if key in leaving:
                del self._tasks[key]
                self._outputs, self._squares = self._outputs + task.gained, self._squares + task.gained**2

    # ------------------------------------------------------------------ state

    def state(self) -> dict[str, Any]:
        """Return the tasks and what was learnt, between two steps, as JSON-like data; not the deployment."""
        return {
            "mechanism": self.mechanism,
            "tasks": [[key, dataclasses.asdict(task)] for key, task in self._tasks.items()],
            "outputs": self._outputs,
            "squares": self._squares,
            "joined": self._joined,
            "seconds": self._seconds,
        }

    @classmethod
    def from_state(cls, deployment: ServingLatencyProblem, state: Mapping[str, Any]) -> Self:
        """Return the scheduler whose `state` this is; a step that was running then has to be planned again.

        Raises
        ------
        InvalidInput
            If it is not the state of a scheduler, or the problem is not for its mechanism.
        """
        try:
            scheduler = cls(deployment, state["mechanism"])
            scheduler._tasks = {key: _Task(**task) for key, task in state["tasks"]}
            scheduler._outputs, scheduler._squares = state["outputs"], state["squares"]
            scheduler._joined, scheduler._seconds = state["joined"], state["seconds"]
        except (KeyError, TypeError, ValueError) as error:
            if isinstance(error, InvalidInput):
                raise
            raise InvalidInput(f"state: expected the state of a scheduler, but {error!r}") from None
        return scheduler

    # ------------------------------------------------------------------ inside

    def _usual_rate(self) -> float:
        rate = self.deployment.acceptance_rate
        if rate is None:
            return 0.0
        return rate if isinstance(rate, float) else float(rate.values.mean())

    def _choose(self, tasks: list[_Task]) -> tuple[float, int]:
        """Return the seconds of the next step and the number of its batches; the rest is in the work space."""
        if len(tasks) > len(self._members):
            self._make_room(2 * len(tasks))
        columns = np.array([(task.reached, task.unseen, task.rate) for task in tasks]).T.copy()
        first = np.array([task.first for task in tasks])
        seconds, count = self._kernels.choose(
            self._server, self._kernels.Active(columns[0], columns[1], first, columns[2]), self._lengths,
            self.stay_tokens, self._joined / (self._seconds or 1.0), self._room, self._members, self._ends,
            self._guesses, self._finish,
        )  # fmt: skip
        return float(seconds), int(count)

    def _make_room(self, tasks: int) -> None:
        """Make work space for so many tasks."""
        table = self._kernels.ENDS + 1, self._kernels.ENDS + 1
        drafted, done, finish = np.zeros(table), np.zeros(table), np.zeros(tasks)
        self._room = self._kernels.Room(
            drafted, done, np.zeros(table, dtype=np.int64), np.zeros((2, self._kernels.ENDS)),
            np.zeros(tasks, dtype=np.int64), np.zeros((4, tasks), dtype=np.int64), np.zeros(4, dtype=np.int64),
            np.zeros((4, tasks + 1), dtype=np.int64), np.zeros((2, tasks)),
        )  # fmt: skip
        self._members, self._ends, self._guesses = np.zeros((3, tasks), dtype=np.int64)
        self._finish = finish
