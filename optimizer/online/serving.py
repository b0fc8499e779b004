"""A scheduler for serving engines, which plans every step as the step begins.

Tasks may join at any time, and their output lengths are unknown to the scheduler. For each step, it
chooses the tasks that draft, the numbers of draft tokens, and the batches. Every present task is
served in every step.

>>> from specopt.instances.continuous_serving.paper_1 import paper_1
>>> scheduler = ServingScheduler(paper_1())  # uses its models, runtimes and memory, not its tasks
>>> scheduler.submit("a", input_tokens=300)
>>> step = scheduler.next_step()
>>> scheduler.submit("b", input_tokens=20)  # joins with the next step
>>> scheduler.complete({"a": 3})  # number of new tokens
>>> [batch.keys for batch in scheduler.next_step().batches]
[('a',), ('b',)]
>>> scheduler.complete({"a": 1, "b": 2}, finished=["a"])
>>> scheduler.tasks
('b',)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Self

from specopt.models.acceptance import expected_tokens_per_step
from specopt.models.arguments import Key, integer, key_of, number, one_of
from specopt.models.continuous_serving.problem import ContinuousServingProblem
from specopt.models.errors import InvalidInput
from specopt.models.fields import MAX_TOKENS, describe
from specopt.models.serving_data import MECHANISMS, Mechanism
from specopt.online.base import Fixed, Online, SavedTotals, Setting, distinct, locked, restoring
from specopt.solvers.continuous_serving.step_choice import Learned, StepChoice, Task


@dataclass(frozen=True)
class Batch:
    """A group of tasks that run together in one step.

    Parameters
    ----------
    keys
        Keys of the tasks.
    speculation_length
        Number of draft tokens per task.
    finish_seconds
        Time from the start of the step to the end of the batch's verification, in seconds.
    """

    keys: tuple[Key, ...]
    speculation_length: int
    finish_seconds: float


@dataclass(frozen=True)
class Step:
    """A planned step of a server.

    Parameters
    ----------
    batches
        Batches in execution order; empty if there are no tasks.
    seconds
        Duration of the step, in seconds.
    """

    batches: tuple[Batch, ...]
    seconds: float


class _State(SavedTotals):
    mechanism: str
    tasks: list[tuple[Key, Task]]
    learned: Learned


def _deployment(name: str, value: Any) -> ContinuousServingProblem:
    if not isinstance(value, ContinuousServingProblem):
        raise InvalidInput(f"{name}: expected a continuous-serving problem, got {describe(value)}")
    return value


class ServingScheduler(Online):
    """A scheduler that plans each step of a server as the step begins.

    Parameters
    ----------
    deployment
        Problem whose models, runtimes, memory, acceptance rate and speculation lengths are used;
        its tasks are ignored. If `min_speculation_length` is 0, tasks may temporarily stop
        drafting. The deployment may be changed at any time, for example if the memory changes:
        ``scheduler.deployment = dataclasses.replace(...)``.
    mechanism
        Mechanism by which tasks are served. None selects the problem's mechanism, or overlap if the
        problem does not specify a mechanism.

    Raises
    ------
    InvalidInput
        If the problem does not allow the mechanism.
    """

    __slots__ = ("_choice", "_learned", "_running", "_tasks")
    _KIND = "serving"
    _METRICS: ClassVar = {
        "waiting": "Tasks that are not in the running step.",
        "running": "Tasks in the running step.",
        "served_total": "Tasks that have finished.",
        "cancelled_total": "Tasks that were cancelled.",
        "steps_total": "Steps that have ended.",
        "tokens_total": "New tokens of tasks.",
        "error_tokens_total": "Absolute error of the expected tokens of steps, as far as reported.",
    }
    deployment = Setting(_deployment)
    mechanism = Fixed[Mechanism](partial(one_of, choices=MECHANISMS))

    def __init__(
        self, deployment: ContinuousServingProblem, mechanism: Mechanism | None = None
    ) -> None:
        allowed = deployment.mechanisms
        if mechanism is None:
            mechanism = allowed[0]
        super().__init__(deployment=deployment, mechanism=one_of("mechanism", mechanism, allowed))
        self._choice = StepChoice(deployment, self.mechanism)
        self._tasks: dict[Key, Task] = {}
        # States of the tasks before the running step, and their numbers of draft tokens.
        self._running: dict[Key, tuple[Task, int]] | None = None
        self._learned = Learned()

    def _change(self, name: str, value: Any) -> None:
        one_of("mechanism", self.mechanism, value.mechanisms)
        self._choice = StepChoice(value, self.mechanism)

    def _gauges(self) -> dict[str, float]:
        running = len(self._tasks.keys() & (self._running or {}).keys())
        return {"waiting": len(self._tasks) - running, "running": running}

    @property
    @locked
    def tasks(self) -> tuple[Key, ...]:
        """Keys of the present tasks, in the order of submission."""
        return tuple(self._tasks)

    @property
    def stay_tokens(self) -> float:
        """Expected number of tokens until a present task finishes.

        The value is the mean residual life of the output lengths observed so far.
        """
        return self._learned.stay_tokens

    @locked
    def warm_up(self) -> None:
        """Load and compile the kernel by planning one step, so that subsequent calls are fast."""
        self._choice.choose([Task(1.0, 1.0, 0.5)], self._learned)

    @locked
    def submit(self, key: Key, *, input_tokens: int, acceptance_rate: float | None = None) -> None:
        """Add a task whose input has arrived. The task takes part from the next step on.

        Parameters
        ----------
        key
            Name of the task until it has finished.
        input_tokens
            Number of tokens in the prompt.
        acceptance_rate
            Acceptance rate of the task. None means the deployment's rate or, if the deployment has
            a rate for each task, the mean of these rates.

        Raises
        ------
        InvalidInput
            If the key is in use or a value is outside its domain.
        """
        key = key_of("key", key)
        if key in self._tasks:
            raise InvalidInput(f"key: {describe(key)} is already in use; choose another key")
        tokens = float(integer("input_tokens", input_tokens, 1, MAX_TOKENS))
        rate: Any = self.deployment.acceptance_rate or 0.0
        if acceptance_rate is not None:
            rate = acceptance_rate
        elif not isinstance(rate, float):
            rate = float(rate.values.mean())
        task = Task(tokens, tokens, number("acceptance_rate", rate, 0, below=1))
        learned = self._learned._replace(joined=self._learned.joined + 1)
        self._tasks[key] = task
        self._learned = learned

    @locked
    def cancel(self, key: Key) -> None:
        """Remove a task.

        Raises
        ------
        InvalidInput
            If no present task has this key.
        """
        key = key_of("key", key)
        if key not in self._tasks:
            raise InvalidInput(f"key: expected the key of a present task, got {describe(key)}")
        totals = self._counted(cancelled=1)
        del self._tasks[key]
        self._totals = totals

    @locked
    def next_step(self) -> Step:
        """Plan and return the next step, in which every present task belongs to exactly one batch.

        Raises
        ------
        InvalidInput
            If a step is running.
        """
        if self._running is not None:
            raise InvalidInput("next_step: a step is still running; call `complete()` first")
        if not self._tasks:
            return Step((), 0.0)
        keys = list(self._tasks)
        seconds, chosen = self._choice.choose(self._tasks.values(), self._learned)
        batches = tuple(
            [Batch(tuple([keys[k] for k in places]), length, end) for places, length, end in chosen]
        )
        step = Step(batches, seconds)
        running = {
            key: (self._tasks[key], batch.speculation_length)
            for batch in batches
            for key in batch.keys
        }
        learned = self._learned._replace(seconds=self._learned.seconds + seconds)
        self._running, self._learned = running, learned
        return step

    @locked
    def complete(
        self, gained: Mapping[Key, float] | None = None, finished: Iterable[Key] = ()
    ) -> None:
        """Report that the running step has ended.

        Parameters
        ----------
        gained
            Number of new tokens for each task; for omitted tasks, the mean from Eq. 7 is used.
        finished
            Keys of the tasks that have finished.

        Raises
        ------
        InvalidInput
            If no step is running, if a task was not in the step, or if a number of tokens is
            outside its domain.
        """
        if self._running is None:
            raise InvalidInput("complete: no step is running; call `next_step()` first")
        tokens = {
            key_of("gained", key): number("gained", n, 0, MAX_TOKENS)
            for key, n in (gained or {}).items()
        }
        leaving = {key_of("finished", key) for key in finished}
        for key in tokens.keys() | leaving:
            if key not in self._running:
                raise InvalidInput(
                    f"complete: expected tasks of the running step, got {describe(key)}"
                )
        tasks, learned = self._tasks.copy(), self._learned
        served = 0
        gain = error = 0.0
        for key, (task, length) in self._running.items():
            if tasks.get(key) is not task:
                continue  # cancelled during the step; the key may be in use again
            mean = expected_tokens_per_step(task.rate, length)
            new = tokens.get(key, mean)
            tasks[key] = task.after(new, length)
            gain += new
            error += abs(new - mean)
            if key in leaving:
                learned = learned.finished(tasks.pop(key).gained)
                served += 1
        totals = self._counted(steps=1, served=served, tokens=gain, error_tokens=error)
        self._tasks, self._learned, self._running, self._totals = tasks, learned, None, totals

    # ------------------------------------------------------------------ state

    def _saved(self) -> _State:
        return _State(
            mechanism=self.mechanism,
            tasks=list(self._tasks.items()),
            learned=self._learned,
        )

    @classmethod
    @restoring()
    def from_state(cls, deployment: ContinuousServingProblem, state: Mapping[str, Any]) -> Self:
        """Restore a scheduler from a state. A step that was running must be planned again.

        Raises
        ------
        InvalidInput
            If the data is not a valid state of a scheduler, or if the problem does not allow the
            mechanism in the state.
        """
        found = _State.read(state)
        mechanism: Any = found.mechanism
        scheduler = cls(deployment, mechanism)
        keys = distinct("tasks", [key for key, _ in found.tasks])
        scheduler._tasks = dict(zip(keys, [task for _, task in found.tasks], strict=True))
        scheduler._learned = found.learned
        scheduler._restore_totals(found.totals)
        return scheduler
