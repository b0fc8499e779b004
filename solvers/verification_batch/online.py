"""The scheduler that a server embeds: requests in, batches out, by the policies and the code of the simulator.

Any thread may call it: every call holds one lock and either takes effect as a whole or, with an exception, not at all.
Nothing is lost and nothing is served twice: a batch that failed is put back (`abandon`), one whose end was never
reported is put back after `lost_after_seconds`, and `complete` says which requests count as served by it.

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
('b',)
"""

from __future__ import annotations

import dataclasses
import math
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache, wraps
from types import ModuleType
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from specopt.models.arguments import name_or_number, number
from specopt.models.errors import InvalidInput
from specopt.models.fields import Floats, Ints, describe
from specopt.models.verification_time import VerificationTime
from specopt.solvers.verification_batch.policies import Policy, PolicyName, as_policy
from specopt.solvers.verification_batch.prefixes import Prefixes

Key = str | int

P = ParamSpec("P")
T = TypeVar("T")

# rows of `_Rows.columns`, as in the kernel's `Pending`
_VALUE, _WEIGHT, _MEMORY, _DEADLINE, _DUE, _SPEED, _ALLOWED, _AHEAD = range(8)
_UNSEEN = -1.0  # as `_ALLOWED`: no decision has met the request so far


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
    serials
        Tell its requests from later ones with the same keys.
    drop
        Responses whose prefixes leave the server's cache before the batch; `update` says what a request of theirs that
        waits costs then.
    """

    keys: tuple[Key, ...]
    seconds: float
    wake_seconds: float
    serials: tuple[int, ...] = dataclasses.field(default=(), repr=False, compare=False)
    drop: tuple[Key, ...] = ()


def _locked(method: Callable[Concatenate[Scheduler, P], T]) -> Callable[Concatenate[Scheduler, P], T]:
    """Let one thread at a time into a method."""

    @wraps(method)
    def held(self: Scheduler, *args: P.args, **kwargs: P.kwargs) -> T:
        with self._lock:
            return method(self, *args, **kwargs)

    return held  # type: ignore[return-value]  # a wrapper that keeps the name of its first argument


class Scheduler:
    """Choose batch after batch for one verifier.

    The caller owns the clock: all moments are seconds on one clock of its choice, best one that never jumps. One batch
    runs at a time.

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
    cache_memory_bytes
        Room of the server's cache of prefixes, of which every batch says what to `drop`. Keys name responses then, and
        `forget` says that one has ended. None: ample.
    lost_after_seconds
        A batch that runs longer than this beyond its estimate counts as lost when the next one is asked for: its
        requests wait again. Infinity: never.
    """

    def __init__(
        self,
        estimator: VerificationTime,
        policy: Policy | PolicyName = "slack",
        *,
        guard_seconds: float = 0.0,
        memory_bytes: float | None = None,
        kv_bytes_per_token: float = 0.0,
        cache_memory_bytes: float | None = None,
        lost_after_seconds: float = math.inf,
    ) -> None:
        self.estimator = estimator
        self.policy = as_policy(policy)
        self.guard_seconds = number("guard_seconds", guard_seconds, 0)
        self.memory_bytes = None if memory_bytes is None else number("memory_bytes", memory_bytes, 0)
        self.kv_bytes_per_token = number("kv_bytes_per_token", kv_bytes_per_token, 0)
        self._rule = self.policy.rule(estimator.overhead_seconds, self.guard_seconds, self.memory_bytes)
        self.cache_memory_bytes = (
            None if cache_memory_bytes is None else number("cache_memory_bytes", cache_memory_bytes, 0)
        )
        self._prefixes = None if self.cache_memory_bytes is None else Prefixes(self.cache_memory_bytes)
        self.lost_after_seconds = lost_after_seconds
        if lost_after_seconds != math.inf:
            self.lost_after_seconds = number("lost_after_seconds", lost_after_seconds, 0)
        self._lock = threading.RLock()
        self._serials: dict[Key, int] = {}  # of those that wait
        self._keys: dict[int, Key] = {}  # and back
        self._count = 0  # rows in use below, in order of their serials; those of requests that have gone, too
        self._rows = _Rows.empty(256)
        self._next_serial = 0
        self._running: dict[Key, _Row] = {}
        self._deadline_of_running = math.inf

    @property
    def pending(self) -> tuple[Key, ...]:
        """The requests that wait, in order of arrival."""
        with self._lock:
            return tuple(sorted(self._serials, key=self._serials.__getitem__))

    @property
    def running(self) -> tuple[Key, ...]:
        """The requests of the batch that runs; those that were cancelled since are not among them."""
        with self._lock:
            return tuple(self._running)

    def warm_up(self) -> None:
        """Load the kernel and decide once, so that no later call compiles."""
        kernels = _kernels()
        kernels.choose(0.0, self._rule, kernels.Pending(*np.ones((8, 1))), np.empty(1, dtype=np.int64))

    @_locked
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
        arrival_seconds: float | None = None,
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
        arrival_seconds
            When the request came; None: when the next batch is asked for.

        Raises
        ------
        InvalidInput
            If the key is in use or no name, a value is outside its domain, or the request alone exceeds the memory.
        """
        key = name_or_number("key", key)
        if key in self._serials or key in self._running:
            raise InvalidInput(f"key: expected one that is not in use, got {describe(key)}")
        tau = number("class_speed", class_speed, 0)
        tokens = number("expected_tokens", expected_tokens, 0)
        done = number("tokens_done", tokens_done, 0)
        back = number("return_seconds", return_seconds, 0)
        if tau == 0.0:
            raise InvalidInput("class_speed: expected a number > 0, got 0.0")
        weight, memory = self._cost(new_tokens, cached_tokens)
        deadline = number("iteration_start_seconds", iteration_start_seconds) + tokens / tau - back
        due = number("response_start_seconds", response_start_seconds) + (done + tokens) / tau - back
        allowed = _UNSEEN
        if arrival_seconds is not None:
            allowed = max(0.0, deadline - number("arrival_seconds", arrival_seconds))
        ahead = self._prefixes.ahead_seconds(key) if self._prefixes is not None and cached_tokens > 0 else 0.0
        values = np.array([tokens, weight, memory, deadline, due, tau, allowed, ahead])
        self._append(key, _Row(self._next_serial, values))
        self._next_serial += 1

    @_locked
    def update(self, key: Key, *, new_tokens: int, cached_tokens: int) -> None:
        """Change what a waiting request costs, say because its prefix was dropped from the cache."""
        self._rows.columns[[_WEIGHT, _MEMORY], self._place(key)] = self._cost(new_tokens, cached_tokens)

    @_locked
    def cancel(self, key: Key) -> None:
        """Forget a request that waits or runs; of a running one, `complete` says nothing any more.

        Raises
        ------
        InvalidInput
            If it neither waits nor runs.
        """
        if key in self._running:
            del self._running[key]
            if not self._running:
                self._deadline_of_running = math.inf
            return
        place = self._place(key)
        del self._keys[self._serials.pop(key)]
        self._rows.waits[place] = False

    @_locked
    def forget(self, key: Key) -> None:
        """Note that a response has ended, and that its prefix has left the server's cache."""
        if self._prefixes is not None:
            self._prefixes.forget(key)

    @_locked
    def next_batch(self, now: float) -> Batch:
        """Return what the verifier does now; its requests wait no longer but run until `complete`.

        Raises
        ------
        InvalidInput
            If a batch is running that does not count as lost, or the time is no number.
        """
        now = number("now", now)
        if self._running:
            if now <= self._deadline_of_running:
                raise InvalidInput("next_batch: expected the running batch to be complete first")
            self._put_back()
        self._drop_gone()
        columns = self._rows.columns[:, : self._count]
        unseen = columns[_ALLOWED] == _UNSEEN
        columns[_ALLOWED, unseen] = np.maximum(0.0, columns[_DEADLINE, unseen] - now)
        batch = np.empty(self._count, dtype=np.int64)
        kernels = _kernels()
        taken, wake = kernels.choose(now, self._rule, kernels.Pending(*columns), batch)
        if taken == 0:
            return Batch(keys=(), seconds=0.0, wake_seconds=wake)
        places = batch[:taken]
        seconds = self.estimator.overhead_seconds + math.fsum(columns[_WEIGHT, places])
        keys = [self._keys.pop(serial) for serial in self._rows.serials[places].tolist()]
        self._running = {
            key: _Row(self._serials.pop(key), columns[:, place].copy())
            for key, place in zip(keys, places.tolist(), strict=True)
        }
        self._rows.waits[places] = False
        drop = self._drop(keys, columns[:, places], seconds)
        self._deadline_of_running = now + seconds + self.lost_after_seconds
        serials = tuple(row.serial for row in self._running.values())
        return Batch(keys=tuple(keys), seconds=seconds, wake_seconds=math.inf, serials=serials, drop=drop)

    @_locked
    def complete(self, batch: Batch | Iterable[Key] | None = None) -> tuple[Key, ...]:
        """Note that a batch has ended, and return those of its requests that count as served by it.

        Requests that were cancelled meanwhile do not count. Those of a batch that counted as lost do, if the batch
        itself is given and they have not been served since: they wait no longer. Keys that are returned may be
        submitted again.

        Parameters
        ----------
        batch
            The batch; or the keys of the one that runs, so that both sides mean the same; None: whatever runs.

        Raises
        ------
        InvalidInput
            If keys are given and they are not those of the running batch.
        """
        if isinstance(batch, Batch):
            asked = dict(zip(batch.keys, batch.serials, strict=True))
            ran = tuple(key for key, row in self._running.items() if asked.get(key) == row.serial)
            waited = tuple(key for key in asked if self._serials.get(key) == asked[key])
            for key in (*ran, *waited):
                self.cancel(key)
            return ran + waited
        served = tuple(self._running)
        keys = set(served) if batch is None else set(batch)
        if not set(served) <= keys or (keys and not served):
            raise InvalidInput("complete: expected the keys of the running batch")
        self._running, self._deadline_of_running = {}, math.inf
        return served

    @_locked
    def abandon(self) -> tuple[Key, ...]:
        """Put the requests of a batch that failed back where they were among those that wait, and return them."""
        keys = tuple(self._running)
        self._put_back()
        return keys

    # ------------------------------------------------------------------ state

    @_locked
    def state(self) -> dict[str, Any]:
        """Return everything as data for strict JSON; infinity is the text "inf"."""
        waiting = [*zip(self._serials, map(self._row, self._serials), strict=True), *self._running.items()]
        waiting.sort(key=lambda pair: pair[1].serial)
        state = {
            "estimator": dataclasses.asdict(self.estimator),
            "policy": dataclasses.asdict(self.policy),
            "guard_seconds": self.guard_seconds,
            "memory_bytes": self.memory_bytes,
            "kv_bytes_per_token": self.kv_bytes_per_token,
            "cache_memory_bytes": self.cache_memory_bytes,
            "prefixes": None if self._prefixes is None else self._prefixes.state(),
            "lost_after_seconds": self.lost_after_seconds,
            "requests": [key for key, _ in waiting],
            "serials": [row.serial for _, row in waiting],
            "columns": [row.values.tolist() for _, row in waiting],
            "running": list(self._running),
            "running_until": self._deadline_of_running,
            "next_serial": self._next_serial,
        }
        for part in (state, state["policy"]):
            part.update({name: "inf" for name, value in part.items() if value == math.inf})  # type: ignore[attr-defined]
        return state

    @classmethod
    def from_state(cls, state: Mapping[str, Any], *, shift_seconds: float = 0.0) -> Self:
        """Return the scheduler whose `state` this is; a batch that ran then still runs.

        Parameters
        ----------
        state
            What `state` returned.
        shift_seconds
            Added to all moments: what the clock of today says minus what that of the state would say.

        Raises
        ------
        InvalidInput
            If it is not the state of a scheduler.
        """
        try:
            found, policy = (_with_infinity(part) for part in (state, state["policy"]))
            scheduler = cls(
                VerificationTime(**found["estimator"]),
                Policy(**policy),
                guard_seconds=found["guard_seconds"],
                memory_bytes=found["memory_bytes"],
                kv_bytes_per_token=found["kv_bytes_per_token"],
                cache_memory_bytes=found["cache_memory_bytes"],
                lost_after_seconds=found["lost_after_seconds"],
            )
            if scheduler._prefixes is not None:
                scheduler._prefixes.restore(found["prefixes"], shift_seconds)
            for key, serial, values in zip(found["requests"], found["serials"], found["columns"], strict=True):
                row = np.array(values, dtype=np.float64)
                row[[_DEADLINE, _DUE]] += shift_seconds
                scheduler._append(key, _Row(serial, row))
            for key in found["running"]:
                scheduler._running[key] = scheduler._row(key)
                scheduler._rows.waits[scheduler._place(key)] = False
                del scheduler._keys[scheduler._serials.pop(key)]
            scheduler._deadline_of_running = found["running_until"] + shift_seconds
            scheduler._next_serial = found["next_serial"]
        except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
            if isinstance(error, InvalidInput):
                raise
            raise InvalidInput(f"state: expected the state of a scheduler, but {error!r}") from None
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

    def _drop(self, keys: list[Key], columns: Floats, seconds: float) -> tuple[Key, ...]:
        """Return the prefixes to drop for a batch; responses that wait without theirs do not run ahead."""
        if self._prefixes is None:
            return ()
        window = columns[_VALUE] / columns[_SPEED]
        rows = np.array([columns[_MEMORY], columns[_DUE], window, window - columns[_ALLOWED], columns[_SPEED]]).T
        drop = self._prefixes.serve(keys, rows, seconds)
        for key in drop:
            if key in self._serials:
                self._rows.columns[_AHEAD, self._place(key)] = 0.0
        return drop

    def _place(self, key: Key) -> int:
        """Return the row of a waiting request."""
        if key not in self._serials:
            raise InvalidInput(f"key: expected a waiting request, got {describe(key)}")
        return int(np.searchsorted(self._rows.serials[: self._count], self._serials[key]))

    def _row(self, key: Key) -> _Row:
        return _Row(self._serials[key], self._rows.columns[:, self._place(key)].copy())

    def _append(self, key: Key, row: _Row) -> None:
        """Add a row, which has the largest serial."""
        if self._count == len(self._rows.serials):
            self._drop_gone()
        if 2 * self._count > len(self._rows.serials):
            self._rows = self._rows.larger()
        at = self._count
        self._rows.columns[:, at], self._rows.serials[at], self._rows.waits[at] = row.values, row.serial, True
        self._serials[key] = row.serial
        self._keys[row.serial] = key
        self._count += 1

    def _put_back(self) -> None:
        """Let the requests that run wait again, in the order of their arrival."""
        if not self._running:
            return
        self._drop_gone()  # their old rows: a serial is in one row only
        back, self._running, self._deadline_of_running = self._running, {}, math.inf
        for key, row in back.items():
            self._append(key, row)
        order = np.argsort(self._rows.serials[: self._count], kind="stable")
        self._rows.take(order)

    def _drop_gone(self) -> None:
        """Drop the rows of requests that wait no longer; the others keep their order."""
        left = int(np.count_nonzero(self._rows.waits[: self._count]))
        if left < self._count:
            self._rows.keep(self._rows.waits[: self._count].copy(), left)
            self._count = left


def _with_infinity(part: Mapping[str, Any]) -> dict[str, Any]:
    """Return a part of a state with its infinities as numbers."""
    return {name: math.inf if value == "inf" else value for name, value in part.items()}


@dataclass(frozen=True)
class _Row:
    """A request: when it came, among all, and its values."""

    serial: int
    values: Floats


@dataclass(frozen=True)
class _Rows:
    """Arrays with room for requests: values as the kernel takes them, serials, whether each still waits."""

    columns: Floats
    serials: Ints
    waits: NDArray[np.bool_]

    @classmethod
    def empty(cls, room: int) -> Self:
        """Return arrays with so much room."""
        return cls(np.empty((8, room)), np.empty(room, dtype=np.int64), np.zeros(room, dtype=np.bool_))

    def larger(self) -> _Rows:
        """Return the same with twice the room."""
        more = _Rows.empty(2 * len(self.serials))
        more._fill(self, np.arange(len(self.serials)))
        return more

    def take(self, places: Ints) -> None:
        """Keep these rows, in this order, from the first row on."""
        self._fill(self, places)

    def keep(self, which: NDArray[np.bool_], count: int) -> None:
        """Keep those of the first rows that are marked, and so many they are: faster than by their places."""
        for row in self._all:
            row[:count] = row[: len(which)][which]

    @property
    def _all(self) -> tuple[NDArray[Any], ...]:
        return *self.columns, self.serials, self.waits

    def _fill(self, other: _Rows, places: Ints) -> None:
        for to, out_of in zip(self._all, other._all, strict=True):
            to[: len(places)] = out_of.take(places, mode="clip")  # a third of the time of `out_of[places]`


@cache
def _kernels() -> ModuleType:
    import specopt.solvers._kernels.verification_batch_simulation as kernels

    return kernels
