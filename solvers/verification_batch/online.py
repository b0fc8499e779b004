"""The scheduler that a server embeds: requests in, batches out, by the policies and the code of the simulator.

>>> from specopt.instances.verification_batch.workload import TABLE_12
>>> scheduler = Scheduler(TABLE_12)
>>> for key, speed in (("a", 2.0), ("b", 8.0)):
...     scheduler.submit(
...         key, class_speed=speed, expected_tokens=2.9, new_tokens=5, cached_tokens=200, response_start_seconds=0.0,
...         tokens_done=10, iteration_start_seconds=1.5,
...     )
>>> batch = scheduler.next_batch(1.6)
>>> batch.keys  # "a" is 4.85 s ahead of its speed and can wait
('b',)
>>> scheduler.complete(batch.keys)
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from types import ModuleType
from typing import Any, Self

import numpy as np

from specopt.models.arguments import number
from specopt.models.errors import InvalidInput
from specopt.models.fields import Floats, describe
from specopt.models.verification_time import VerificationTime
from specopt.solvers.verification_batch.policies import Policy, PolicyName, as_policy

Key = str | int

_VALUE, _WEIGHT, _MEMORY, _DEADLINE, _DUE = range(5)  # rows of `Scheduler._columns`, as in the kernel's `Pending`


@dataclass(frozen=True, kw_only=True)
class Batch:
    """What the verifier does next.

    Parameters
    ----------
    keys
        The requests to verify together, most urgent first; empty if the verifier waits.
    seconds
        Estimated time of the batch; 0 if it is empty.
    wake_seconds
        When to ask again at the latest if the batch is empty; infinity: when the next request is submitted.
    """

    keys: tuple[Key, ...]
    seconds: float
    wake_seconds: float


class Scheduler:
    """Choose batch after batch for one verifier.

    The caller owns the clock: all moments are seconds on one clock of its choice. One batch runs at a time.

    Parameters
    ----------
    estimator
        Time of a batch (Eq. 18-19).
    policy
        How to choose.
    guard_seconds
        delta of Eq. 17.
    memory_bytes
        M of Eq. 14; None: ample.
    kv_bytes_per_token
        What a token of a request, cached or new, occupies.
    """

    def __init__(
        self,
        estimator: VerificationTime,
        policy: Policy | PolicyName = "slack",
        *,
        guard_seconds: float = 0.0,
        memory_bytes: float | None = None,
        kv_bytes_per_token: float = 0.0,
    ) -> None:
        self.estimator = estimator
        self.policy = as_policy(policy)
        self.guard_seconds = number("guard_seconds", guard_seconds, 0)
        self.memory_bytes = None if memory_bytes is None else number("memory_bytes", memory_bytes, 0)
        self.kv_bytes_per_token = number("kv_bytes_per_token", kv_bytes_per_token, 0)
        self._rule = self.policy.rule(estimator.overhead_seconds, self.guard_seconds, self.memory_bytes)
        self._keys: list[Key] = []
        self._places: set[Key] = set()
        self._columns: Floats = np.empty((5, 256))
        self._running: tuple[Key, ...] = ()

    @property
    def pending(self) -> tuple[Key, ...]:
        """The requests that wait, in order of arrival."""
        return tuple(self._keys)

    @property
    def running(self) -> tuple[Key, ...]:
        """The requests of the batch that runs."""
        return self._running

    def warm_up(self) -> None:
        """Load the kernel and decide once, so that no later call compiles."""
        kernels = _kernels()
        kernels.choose(0.0, self._rule, kernels.Pending(*np.ones((5, 1))), np.empty(1, dtype=np.int64))

    def submit(
        self,
        key: Key,
        *,
        class_speed: float,
        expected_tokens: float,
        new_tokens: int,
        cached_tokens: int,
        response_start_seconds: float,
        tokens_done: int,
        iteration_start_seconds: float,
        return_seconds: float = 0.0,
    ) -> None:
        """Add a request to those that wait; the order of the calls is the order of arrival.

        Parameters
        ----------
        key
            Names the request (or its response) until it is complete.
        class_speed
            tau, tokens per second that the response must reach.
        expected_tokens
            Tokens that the verification is expected to yield, the verifier's own included.
        new_tokens, cached_tokens
            L_new to compute and L_cached to read.
        response_start_seconds, tokens_done
            When the response started, and the tokens that it has.
        iteration_start_seconds
            When the device started this iteration.
        return_seconds
            How long the result takes back to the device.

        Raises
        ------
        InvalidInput
            If the key is in use, a value is outside its domain, or the request alone exceeds the memory.
        """
        if key in self._places or key in self._running:
            raise InvalidInput(f"key: expected one that is not in use, got {describe(key)}")
        tau = number("class_speed", class_speed, 0)
        tokens = number("expected_tokens", expected_tokens, 0)
        done = number("tokens_done", tokens_done, 0)
        back = number("return_seconds", return_seconds, 0)
        if tau == 0.0:
            raise InvalidInput("class_speed: expected a number > 0, got 0.0")
        weight, memory = self._cost(new_tokens, cached_tokens)
        count = len(self._keys)
        if count == self._columns.shape[1]:
            self._columns = np.concatenate([self._columns, np.empty_like(self._columns)], axis=1)
        self._columns[:, count] = (
            tokens,
            weight,
            memory,
            number("iteration_start_seconds", iteration_start_seconds) + tokens / tau - back,
            number("response_start_seconds", response_start_seconds) + (done + tokens) / tau - back,
        )
        self._keys.append(key)
        self._places.add(key)

    def update(self, key: Key, *, new_tokens: int, cached_tokens: int) -> None:
        """Change what a waiting request costs, say because its prefix was dropped from the cache."""
        self._columns[[_WEIGHT, _MEMORY], self._index(key)] = self._cost(new_tokens, cached_tokens)

    def cancel(self, key: Key) -> None:
        """Forget a waiting request."""
        self._remove([self._index(key)])

    def next_batch(self, now: float) -> Batch:
        """Return what the verifier does now; its requests wait no longer but run until `complete`.

        Raises
        ------
        InvalidInput
            If a batch is running.
        """
        if self._running:
            raise InvalidInput("next_batch: expected the running batch to be complete first")
        count = len(self._keys)
        columns = self._columns[:, :count]
        batch = np.empty(count, dtype=np.int64)
        kernels = _kernels()
        taken, wake = kernels.choose(float(now), self._rule, kernels.Pending(*columns), batch)
        if taken == 0:
            return Batch(keys=(), seconds=0.0, wake_seconds=wake)
        places = batch[:taken].tolist()
        seconds = self.estimator.overhead_seconds + math.fsum(columns[_WEIGHT, places])
        self._running = tuple([self._keys[place] for place in places])
        self._remove(places)
        return Batch(keys=self._running, seconds=seconds, wake_seconds=math.inf)

    def complete(self, keys: Iterable[Key] | None = None) -> None:
        """Note that the running batch has ended; its keys may be submitted again.

        Parameters
        ----------
        keys
            The batch's requests, to make sure that both sides mean the same batch; None: whatever runs.

        Raises
        ------
        InvalidInput
            If the keys are not those of the running batch.
        """
        if keys is not None and set(keys) != set(self._running):
            raise InvalidInput("complete: expected the keys of the running batch")
        self._running = ()

    # ------------------------------------------------------------------ state

    def state(self) -> dict[str, Any]:
        """Return everything as JSON-like data."""
        policy = dataclasses.asdict(self.policy)
        policy["give_up_seconds"] = None if math.isinf(self.policy.give_up_seconds) else self.policy.give_up_seconds
        policy["defer_seconds"] = None if math.isinf(self.policy.defer_seconds) else self.policy.defer_seconds
        return {
            "estimator": dataclasses.asdict(self.estimator),
            "policy": policy,
            "guard_seconds": self.guard_seconds,
            "memory_bytes": self.memory_bytes,
            "kv_bytes_per_token": self.kv_bytes_per_token,
            "pending": list(self._keys),
            "columns": self._columns[:, : len(self._keys)].tolist(),
            "running": list(self._running),
        }

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Self:
        """Return the scheduler whose `state` this is."""
        policy = dict(state["policy"])
        for name in ("give_up_seconds", "defer_seconds"):
            policy[name] = math.inf if policy[name] is None else policy[name]
        scheduler = cls(
            VerificationTime(**state["estimator"]),
            Policy(**policy),
            guard_seconds=state["guard_seconds"],
            memory_bytes=state["memory_bytes"],
            kv_bytes_per_token=state["kv_bytes_per_token"],
        )
        scheduler._keys = list(state["pending"])
        scheduler._places = set(scheduler._keys)
        columns = np.array(state["columns"], dtype=np.float64).reshape(5, len(scheduler._keys))
        scheduler._columns = np.concatenate([columns, np.empty((5, 256))], axis=1)
        scheduler._running = tuple(state["running"])
        return scheduler

    # ------------------------------------------------------------------ inside

    def _cost(self, new_tokens: int, cached_tokens: int) -> tuple[float, float]:
        """Return the seconds that a request adds to a batch, and the bytes that it occupies."""
        new = number("new_tokens", new_tokens, 0)
        old = number("cached_tokens", cached_tokens, 0)
        time = self.estimator
        weight = time.seconds_per_new_token * new + time.seconds_per_interaction * ((old + new) * new)
        weight += time.seconds_per_cached_token * old
        memory = self.kv_bytes_per_token * (old + new)
        if self.memory_bytes is not None and memory > self.memory_bytes:
            raise InvalidInput(
                f"new_tokens: expected a request within the memory of {self.memory_bytes:.6g} bytes, "
                f"got one of {memory:.6g} bytes"
            )
        return weight, memory

    def _index(self, key: Key) -> int:
        if key not in self._places:
            raise InvalidInput(f"key: expected a waiting request, got {describe(key)}")
        return self._keys.index(key)

    def _remove(self, places: list[int]) -> None:
        """Remove requests by their places; the others keep their order."""
        count = len(self._keys)
        keep = np.ones(count, dtype=np.bool_)
        keep[places] = False
        left = np.flatnonzero(keep)
        self._columns[:, : len(left)] = self._columns[:, left]
        self._places.difference_update([self._keys[place] for place in places])
        self._keys = [self._keys[place] for place in left.tolist()]


@cache
def _kernels() -> ModuleType:
    import specopt.solvers._kernels.verification_batch_simulation as kernels

    return kernels
