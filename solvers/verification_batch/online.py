"""The scheduler that a server embeds: requests in, batches out, by the policies and the code of the simulator.

Any thread may call it: every call holds one lock and either takes effect as a whole or, with an exception, not at all.
Nothing is lost and nothing is served twice: a batch that failed is put back (`abandon`), one whose end was never
reported is put back after `lost_after_seconds`, and `complete` says which requests count as served by it. Told how
long batches took, it corrects its estimates: of a machine that is slower than was thought, or becomes so.

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
>>> scheduler.complete(batch, seconds=0.017)  # measured: the estimator follows
('b',)
"""

from __future__ import annotations

import dataclasses
import math
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, wraps
from types import ModuleType
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from specopt.models.arguments import name_or_number, number
from specopt.models.errors import InvalidInput
from specopt.models.fields import Floats, Ints, describe
from specopt.models.verification_time import COEFFICIENTS, VerificationTime, features
from specopt.solvers.verification_batch.policies import Policy, PolicyName, as_policy
from specopt.solvers.verification_batch.prefixes import Prefixes

Key = str | int

P = ParamSpec("P")
T = TypeVar("T")

# rows of `_Rows.columns`: the first seven as in the kernel's `Pending`
_VALUE, _NEW, _CACHED, _DEADLINE, _DUE, _LATEST, _AHEAD, _SPEED, _ALLOWED = range(9)
_UNSEEN = -1.0  # as `_ALLOWED`: no decision has met the request so far
_GONE, _WAITS, _RUNS = range(3)


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
    work
        What its time is linear in: sums of the features of Eq. 18, and 1.
    drop
        Responses whose prefixes leave the server's cache before the batch; `update` says what a request of theirs that
        waits costs then.
    """

    keys: tuple[Key, ...]
    seconds: float
    wake_seconds: float
    serials: tuple[int, ...] = dataclasses.field(default=(), repr=False, compare=False)
    work: tuple[float, ...] = dataclasses.field(default=(), repr=False, compare=False)
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
        Time of a batch (Eq. 18-19), as far as known: it follows what `complete` is told. A coefficient of 0 stays 0.
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
        self.policy = as_policy(policy)
        self.guard_seconds = number("guard_seconds", guard_seconds, 0)
        self.memory_bytes = None if memory_bytes is None else number("memory_bytes", memory_bytes, 0)
        self.kv_bytes_per_token = number("kv_bytes_per_token", kv_bytes_per_token, 0)
        self._rule = self.policy.rule(estimator, self.guard_seconds, self.memory_bytes, self.kv_bytes_per_token)
        self._calibration = _kernels().calibration(self._rule.costs)
        self.cache_memory_bytes = (
            None if cache_memory_bytes is None else number("cache_memory_bytes", cache_memory_bytes, 0)
        )
        self._prefixes = None if self.cache_memory_bytes is None else Prefixes(self.cache_memory_bytes)
        self.lost_after_seconds = lost_after_seconds
        if lost_after_seconds != math.inf:
            self.lost_after_seconds = number("lost_after_seconds", lost_after_seconds, 0)
        self._lock = threading.RLock()
        self._serials: dict[Key, int] = {}  # of those that wait or run, in order of arrival
        self._keys: dict[int, Key] = {}  # and back
        self._rows = _Rows()
        self._next_serial = 0
        self._running: dict[Key, int] = {}  # their serials
        self._work: Floats = np.zeros(len(COEFFICIENTS))  # of the batch that runs
        self._deadline_of_running = math.inf

    @property
    def estimator(self) -> VerificationTime:
        """The time of a batch, as believed by now."""
        with self._lock:
            return VerificationTime(**dict(zip(COEFFICIENTS, self._rule.costs.tolist(), strict=True)))

    @property
    def pending(self) -> tuple[Key, ...]:
        """The requests that wait, in order of arrival."""
        with self._lock:
            return tuple(key for key in self._serials if key not in self._running)

    @property
    def running(self) -> tuple[Key, ...]:
        """The requests of the batch that runs; those that were cancelled since are not among them."""
        with self._lock:
            return tuple(self._running)

    def warm_up(self) -> None:
        """Load the kernels and serve a request once, so that no later call compiles."""
        twin = type(self)(self.estimator, self.policy, cache_memory_bytes=self.cache_memory_bytes)
        twin.submit(
            "", class_speed=1.0, expected_tokens=1.0, new_tokens=1, cached_tokens=0, response_start_seconds=-1.0,
            tokens_done=0, iteration_start_seconds=1e9,
        )  # fmt: skip
        batch = twin.next_batch(0.0)
        assert batch.keys  # the response is due and the deadline far: every policy takes it
        twin.complete(batch, seconds=1.0)
        twin._rows.compact()

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
        if key in self._serials:
            raise InvalidInput(f"key: expected one that is not in use, got {describe(key)}")
        tau = number("class_speed", class_speed, 0)
        tokens = number("expected_tokens", expected_tokens, 0)
        done = number("tokens_done", tokens_done, 0)
        back = number("return_seconds", return_seconds, 0)
        if tau == 0.0:
            raise InvalidInput("class_speed: expected a number > 0, got 0.0")
        new, cached = self._tokens(new_tokens, cached_tokens)
        deadline = number("iteration_start_seconds", iteration_start_seconds) + tokens / tau - back
        due = number("response_start_seconds", response_start_seconds) + (done + tokens) / tau - back
        allowed = _UNSEEN
        if arrival_seconds is not None:
            allowed = max(0.0, deadline - number("arrival_seconds", arrival_seconds))
        ahead = self._prefixes.ahead_seconds(key) if self._prefixes is not None and cached > 0.0 else 0.0
        self._append(
            key, self._next_serial, (tokens, new, cached, deadline, due, math.nan, ahead, tau, allowed), _WAITS
        )
        self._next_serial += 1

    @_locked
    def update(self, key: Key, *, new_tokens: int, cached_tokens: int) -> None:
        """Change what a waiting request costs, say because its prefix was dropped from the cache."""
        self._rows.columns[_NEW : _CACHED + 1, self._place(key)] = self._tokens(new_tokens, cached_tokens)

    @_locked
    def cancel(self, key: Key) -> None:
        """Forget a request that waits or runs; of a running one, `complete` says nothing any more.

        Raises
        ------
        InvalidInput
            If it neither waits nor runs.
        """
        if key not in self._serials:
            raise InvalidInput(f"key: expected a request that waits or runs, got {describe(key)}")
        self._remove([key])

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
        rows, kernels = self._rows, _kernels()
        rows.compact_often()
        pending = kernels.Pending(*rows.columns[:_SPEED, : rows.count], rows.status[: rows.count])
        kernels.meet(now, self._rule, pending, *rows.columns[_SPEED:, : rows.count])
        taken, wake = kernels.choose(now, self._rule, pending, rows.room, rows.batch)
        if taken == 0:
            return Batch(keys=(), seconds=0.0, wake_seconds=wake)
        places = rows.batch[:taken]
        columns, serials = rows.columns[:, places], rows.serials[places].tolist()
        rows.status[places] = _RUNS
        keys = [self._keys[serial] for serial in serials]
        self._running = dict(zip(keys, serials, strict=True))
        self._work = np.array([*(part.sum() for part in features(columns[_NEW], columns[_CACHED])), 1.0])
        seconds = float(self._rule.costs @ self._work)
        self._deadline_of_running = now + seconds + self.lost_after_seconds
        return Batch(
            keys=tuple(keys),
            seconds=seconds,
            wake_seconds=math.inf,
            serials=tuple(serials),
            work=tuple(self._work.tolist()),
            drop=self._drop(keys, columns, seconds),
        )

    @_locked
    def complete(self, batch: Batch | Iterable[Key] | None = None, *, seconds: float | None = None) -> tuple[Key, ...]:
        """Note that a batch has ended, and return those of its requests that count as served by it.

        Requests that were cancelled meanwhile do not count. Those of a batch that counted as lost do, if the batch
        itself is given and they have not been served since: they wait no longer. Keys that are returned may be
        submitted again.

        Parameters
        ----------
        batch
            The batch; or the keys of the one that runs, so that both sides mean the same; None: whatever runs.
        seconds
            What the batch took, which the estimator learns from, once and only if it is the one that runs; None: nobody
            knows.

        Raises
        ------
        InvalidInput
            If keys are given and they are not those of the running batch, or the seconds are no number above 0.
        """
        if seconds is not None:
            seconds = number("seconds", seconds, above=0)
        if isinstance(batch, Batch):
            asked = zip(batch.keys, batch.serials, strict=True)
            served, work = [key for key, serial in asked if self._serials.get(key) == serial], np.array(batch.work)
        else:
            served, work = list(self._running), self._work
            keys = set(served) if batch is None else set(batch)
            if not set(served) <= keys or (keys and not served):
                raise InvalidInput("complete: expected the keys of the running batch")
        if seconds is not None and self._running and self._running.keys() <= set(served):
            _kernels().calibrate(self._rule.costs, self._calibration, work, seconds)
        self._remove(served)
        return tuple(served)

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
        rows = self._rows
        places = rows.places(list(self._serials.values()))
        columns = rows.columns[:, places].T
        columns[:, _LATEST] = 0.0  # it follows from the others
        state: dict[str, Any] = {
            "estimator": dataclasses.asdict(self.estimator),
            "policy": dataclasses.asdict(self.policy),
            "guard_seconds": self.guard_seconds,
            "memory_bytes": self.memory_bytes,
            "kv_bytes_per_token": self.kv_bytes_per_token,
            "cache_memory_bytes": self.cache_memory_bytes,
            "prefixes": None if self._prefixes is None else self._prefixes.state(),
            "lost_after_seconds": self.lost_after_seconds,
            "requests": list(self._serials),
            "serials": list(self._serials.values()),
            "columns": columns.tolist(),
            "running": list(self._running),
            "running_until": self._deadline_of_running,
            "work": self._work.tolist(),
            "calibration": {name: getattr(self._calibration, name).tolist() for name in self._calibration._fields},
            "next_serial": self._next_serial,
        }
        for part in (state, state["policy"]):
            part.update({name: "inf" for name, value in part.items() if value == math.inf})
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
            serials = dict(zip(found["requests"], found["serials"], strict=True))
            if sorted(set(serials.values())) != found["serials"]:
                raise InvalidInput("state: expected requests of different names in the order of their serials")
            running = {key: serials[key] for key in found["running"]}
            for key, serial, values in zip(found["requests"], found["serials"], found["columns"], strict=True):
                row = np.array(values, dtype=np.float64)
                row[[_DEADLINE, _DUE]] += shift_seconds
                row[_LATEST] = math.nan
                scheduler._append(key, serial, row, _RUNS if key in running else _WAITS)
            scheduler._running = running
            scheduler._work[:] = found["work"]
            for name in scheduler._calibration._fields:
                getattr(scheduler._calibration, name)[:] = found["calibration"][name]
            scheduler._deadline_of_running = found["running_until"] + shift_seconds
            scheduler._next_serial = found["next_serial"]
        except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
            if isinstance(error, InvalidInput):
                raise
            raise InvalidInput(f"state: expected the state of a scheduler, but {error!r}") from None
        return scheduler

    # ------------------------------------------------------------------ inside

    def _tokens(self, new_tokens: int, cached_tokens: int) -> tuple[float, float]:
        """Return the tokens of a request, whose memory must be there."""
        new = number("new_tokens", new_tokens, 0)
        cached = number("cached_tokens", cached_tokens, 0)
        memory = self.kv_bytes_per_token * (cached + new)
        if self.memory_bytes is not None and memory > self.memory_bytes:
            raise InvalidInput(
                f"new_tokens: expected a request within the memory of {self.memory_bytes:.6g} bytes, "
                f"got one of {memory:.6g} bytes"
            )
        return new, cached

    def _drop(self, keys: list[Key], columns: Floats, seconds: float) -> tuple[Key, ...]:
        """Return the prefixes to drop for a batch; responses that wait without theirs do not run ahead."""
        if self._prefixes is None:
            return ()
        window = columns[_VALUE] / columns[_SPEED]
        memory = self.kv_bytes_per_token * (columns[_CACHED] + columns[_NEW])
        rows = np.array([memory, columns[_DUE], window, window - columns[_ALLOWED], columns[_SPEED]]).T
        drop = self._prefixes.serve(keys, rows, seconds)
        for key in drop:
            if key in self._serials and key not in self._running:
                self._rows.columns[_AHEAD, self._place(key)] = 0.0
        return drop

    def _place(self, key: Key) -> int:
        """Return the row of a waiting request."""
        if key not in self._serials or key in self._running:
            raise InvalidInput(f"key: expected a waiting request, got {describe(key)}")
        return int(self._rows.places(self._serials[key]))

    def _append(self, key: Key, serial: int, values: Sequence[float] | Floats, status: int) -> None:
        """Add a request, which has the largest serial."""
        self._rows.append(serial, values, status)
        self._serials[key] = serial
        self._keys[serial] = key

    def _remove(self, keys: Sequence[Key]) -> None:
        """Forget requests."""
        serials = [self._serials.pop(key) for key in keys]
        self._rows.remove(serials)
        for key, serial in zip(keys, serials, strict=True):
            del self._keys[serial]
            self._running.pop(key, None)
        if not self._running:
            self._deadline_of_running = math.inf

    def _put_back(self) -> None:
        """Let the requests that run wait again, where they were."""
        self._rows.status[self._rows.places(list(self._running.values()))] = _WAITS
        self._running, self._deadline_of_running = {}, math.inf


def _with_infinity(part: Mapping[str, Any]) -> dict[str, Any]:
    """Return a part of a state with its infinities as numbers."""
    return {name: math.inf if value == "inf" else value for name, value in part.items()}


class _Rows:
    """A table of requests in order of arrival, some of which are gone, and room to decide in."""

    def __init__(self) -> None:
        self.count = self.gone = 0
        self._allocate(256)

    def _allocate(self, most: int) -> None:
        self.columns: Floats = np.empty((9, most))
        self.serials: Ints = np.empty(most, dtype=np.int64)
        self.status: NDArray[np.int8] = np.empty(most, dtype=np.int8)
        self.batch: Ints = np.empty(most, dtype=np.int64)
        self.room = _kernels().Sorting(np.empty(most), np.empty(most, dtype=np.int64))

    def places(self, serials: Any) -> Any:
        """Return the rows of requests."""
        return np.searchsorted(self.serials[: self.count], serials)

    def append(self, serial: int, values: Sequence[float] | Floats, status: int) -> None:
        """Add a row, with the largest serial."""
        if self.count == len(self.serials):
            self.compact()
            if 2 * self.count > len(self.serials):
                old, most = (self.columns, self.serials, self.status), len(self.serials)
                self._allocate(2 * most)
                self.columns[:, :most], self.serials[:most], self.status[:most] = old
        at = self.count
        self.columns[:, at], self.serials[at], self.status[at] = values, serial, status
        self.count += 1

    def remove(self, serials: list[int]) -> None:
        """Mark rows as gone."""
        self.status[self.places(serials)] = _GONE
        self.gone += len(serials)

    def compact_often(self) -> None:
        """Drop what is gone if it is half of the rows: that costs as little per row as it is rare."""
        if 2 * self.gone > self.count:
            self.compact()

    def compact(self) -> None:
        """Drop what is gone; the others keep their order."""
        self.count = _kernels().compact(self.columns, self.serials, self.status, self.count)
        self.gone = 0


@cache
def _kernels() -> ModuleType:
    import specopt.solvers._kernels.verification_batch_simulation as kernels

    return kernels
