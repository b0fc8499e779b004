"""A scheduler that combines a server's requests into batches.

The scheduler uses the same policies and code as the simulator. Calls are thread-safe, because every
call holds a lock. A call either takes effect completely or, if it raises an exception, has no
effect.

No request is lost or served twice. The requests of a failed batch (`abandon`), or of a batch whose
end is not reported within `lost_after_seconds`, return to the queue. `complete` returns the served
requests. If the durations of batches are reported, the scheduler uses them to correct its
estimates, for example on a machine that is slower than expected.

>>> from specopt.instances.verification_batch.workload import TABLE_12
>>> scheduler = VerificationScheduler(TABLE_12)
>>> for key, speed in (("a", 2.0), ("b", 8.0)):
...     scheduler.submit(
...         key, class_speed=speed, expected_tokens=2.9, new_tokens=5, cached_tokens=200,
...         response_start_seconds=0.0,
...         tokens_done=10, iteration_start_seconds=1.5,
...     )
>>> batch = scheduler.next_batch(1.6)
>>> batch.keys  # "a" is 4.85 s ahead of its required speed, but there is time for it
('b', 'a')
>>> scheduler.complete(batch, seconds=0.017)  # measured: the estimator follows
('b', 'a')
"""

from __future__ import annotations

import dataclasses
import math
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, ClassVar, Literal, Self

import msgspec
import numpy as np
from msgspec import Meta
from numpy.typing import NDArray

from specopt.models.arguments import LARGEST, Key, boolean, key_of, number
from specopt.models.errors import InvalidInput
from specopt.models.fields import MAX_TOKENS, Amount, Count, Floats, Ints, Number, describe, parse
from specopt.models.pass_time import COEFFICIENTS, VerificationTime, features
from specopt.online import base
from specopt.online.base import (
    Fixed,
    Online,
    Refused,
    Saved,
    SavedTotals,
    Setting,
    Unbounded,
    locked,
)
from specopt.online.prefixes import Prefixes, SavedPrefixes, kernels
from specopt.solvers.policy import as_policy
from specopt.solvers.verification_batch.policies import NAMED, Policy, PolicyName

# Rows of `_Rows.columns`; all but the last are in the state, in this order.
_VALUE, _NEW, _CACHED, _DEADLINE, _DUE, _AHEAD, _SPEED, _ALLOWED, _LATEST = range(9)
_UNSEEN = -1.0  # value of `_ALLOWED` before the first decision about the request
_GONE, _WAITS, _RUNS = range(3)
_OF_RULE = ("guard_seconds", "memory_bytes", "kv_bytes_per_token")
_Row = tuple[float, ...]
"""Values of a request, in the order of `_Rows.columns`."""


@dataclass(frozen=True, kw_only=True)
class Batch:
    """A batch of requests for the verifier.

    Parameters
    ----------
    keys
        Keys of the requests to verify together, most urgent first; empty if the verifier should
        wait for the next request.
    seconds
        Estimated duration of the batch, in seconds; 0 if the batch is empty.
    serials
        Serial numbers of the requests, which distinguish them from later requests with the same
        keys.
    drop
        Keys of the responses whose prefixes are evicted from the cache of the server before the
        batch. Call `update` for the waiting requests of these responses, because the costs of the
        requests change.
    """

    keys: tuple[Key, ...]
    seconds: float
    serials: tuple[int, ...] = dataclasses.field(default=(), repr=False, compare=False)
    drop: tuple[Key, ...] = ()


class _Request(Saved):
    key: Key
    serial: Count
    expected_tokens: Annotated[float, Meta(ge=0, le=MAX_TOKENS)]
    new_tokens: float
    cached_tokens: float
    deadline_seconds: Number
    due_seconds: Number
    ahead_seconds: Amount
    class_speed: Annotated[float, Meta(gt=0, le=sys.float_info.max)]
    allowed_seconds: Annotated[float, Meta(ge=_UNSEEN, le=sys.float_info.max)]


_Four = Annotated[list[Amount], Meta(min_length=4, max_length=4)]


class _Calibration(Saved):
    given: _Four
    squares: Annotated[list[_Four], Meta(min_length=4, max_length=4)]
    products: _Four
    error: Annotated[list[Amount], Meta(min_length=1, max_length=1)]


class _State(SavedTotals):
    estimator: dict[str, Any]
    policy: dict[str, Any]
    guard_seconds: float
    memory_bytes: float | None
    kv_bytes_per_token: float
    cache_memory_bytes: float | None
    prefixes: SavedPrefixes | None
    lost_after_seconds: Unbounded
    refuse_late: bool
    requests: list[_Request]
    running: list[Key]
    latest_seconds: Number
    running_until: Number | Literal["inf"]
    work: _Four
    tight_seconds: Amount
    calibration: _Calibration
    next_serial: Count


def _limit(name: str, value: Any) -> float | None:
    """Check a memory limit and return it. None means that there is no limit."""
    return None if value is None else number(name, value, 0)


class VerificationScheduler(Online):
    """A scheduler that chooses the batches of a single verifier.

    The caller provides the time. All times are in seconds, on a single clock that should be
    monotonic. One batch runs at a time.

    Parameters
    ----------
    estimator
        Initial estimator for the duration of a batch (Eq. 18-19). It is corrected using the
        durations that are reported to `complete`. Coefficients that are 0 remain 0.
    policy
        Policy that chooses the batches.
    guard_seconds
        Guard time delta of Eq. 17, in seconds.
    memory_bytes
        Memory M of Eq. 14; None for no limit.
    kv_bytes_per_token
        Memory per cached or new token of a request, in bytes.
    cache_memory_bytes
        Size of the server's prefix cache, in bytes; None for no limit. If there is a limit, keys
        identify responses, every batch lists the prefixes to `drop`, and the end of a response must
        be reported to `forget`.
    lost_after_seconds
        Time after the estimated end of a running batch at which the batch is considered lost, in
        seconds. Lost batches are detected when the next batch is requested. The requests of a lost
        batch return to the queue. If the value is infinity, no batch is considered lost.
    refuse_late
        Whether to refuse a request if its response would be late even if no more requests arrived.

    All arguments except the estimator and `kv_bytes_per_token` may be changed at any time:
    ``scheduler.policy = "fcfs"``.
    """

    __slots__ = (
        "_calibration",
        "_deadline_of_running",
        "_latest",
        "_next_serial",
        "_prefixes",
        "_rows",
        "_rule",
        "_running",
        "_work",
    )
    _KIND = "verification"
    _METRICS: ClassVar = {
        "waiting": "Waiting requests.",
        "running": "Requests of the running batch.",
        "served_total": "Requests that were verified.",
        "late_total": "Verified requests whose response was late.",
        "refused_total": "Requests that were refused because their response would have been late.",
        "cancelled_total": "Requests that were cancelled.",
        "put_back_total": "Requests of batches that failed or were lost.",
        "evicted_total": "Prefixes that were evicted from the cache.",
        "batch_seconds_total": "Measured time of batches.",
        "batch_error_seconds_total": "Absolute error of the estimated time of these batches.",
    }
    policy = Setting[Policy](lambda name, value: as_policy(value, NAMED, Policy))
    guard_seconds = Setting(partial(number, low=0))
    memory_bytes = Setting(_limit)
    kv_bytes_per_token = Fixed(partial(number, low=0, high=LARGEST))
    cache_memory_bytes = Setting(_limit)
    lost_after_seconds = Setting[float](
        lambda name, value: value if value == math.inf else number(name, value, 0)
    )
    refuse_late = Setting(boolean)

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
        refuse_late: bool = False,
    ) -> None:
        super().__init__(
            policy=policy,
            guard_seconds=guard_seconds,
            memory_bytes=memory_bytes,
            kv_bytes_per_token=kv_bytes_per_token,
            cache_memory_bytes=cache_memory_bytes,
            lost_after_seconds=lost_after_seconds,
            refuse_late=refuse_late,
        )
        self._rule = self._rule_of(self._settings, estimator)
        self._calibration = kernels().calibration(self._rule.costs)
        self._prefixes = Prefixes()
        self._latest = 0.0  # time of the last call to `next_batch`
        self._rows = _Rows()
        self._next_serial = 0
        self._running: tuple[Key, ...] = ()
        # The features of the running batch, in which its duration is linear.
        self._work: Floats = np.zeros(len(COEFFICIENTS))
        self._deadline_of_running = math.inf

    @property
    @locked
    def estimator(self) -> VerificationTime:
        """Current estimator for the duration of a batch."""
        return VerificationTime(**dict(zip(COEFFICIENTS, self._rule.costs.tolist(), strict=True)))

    @property
    @locked
    def pending(self) -> tuple[Key, ...]:
        """Keys of the waiting requests, in order of arrival."""
        rows = self._rows
        places = np.flatnonzero(rows.status[: rows.count] == _WAITS)
        return tuple([rows.keys[place] for place in places.tolist()])

    @property
    def running(self) -> tuple[Key, ...]:
        """Keys of the requests in the running batch, excluding cancelled requests."""
        return self._running

    @staticmethod
    def _rule_of(settings: Mapping[str, Any], estimator: VerificationTime) -> Any:
        """Convert the settings and an estimator to the rule that the kernel applies."""
        return settings["policy"].rule(estimator, *[settings[name] for name in _OF_RULE])

    def _change(self, name: str, value: Any) -> None:
        if name == "cache_memory_bytes" and None in (value, self.cache_memory_bytes):
            raise InvalidInput(
                "cache_memory_bytes: cannot change between a bounded and an unbounded cache; make a"
                " new scheduler"
            )
        settings = self._settings | {name: value}
        rows = self._rows
        tokens = rows.columns[_NEW : _CACHED + 1, rows.places(rows.place_of)].sum(axis=0)
        self._refuse_large(float(tokens.max(initial=0.0)), settings["memory_bytes"])
        rule = self._rule_of(settings, self.estimator)
        rule = rule._replace(costs=self._rule.costs, tight=self._rule.tight)
        rows.columns[_LATEST] = math.nan  # recomputed by the policy
        self._rule = rule

    def _gauges(self) -> dict[str, float]:
        return {
            "waiting": len(self._rows.place_of) - len(self._running),
            "running": len(self._running),
        }

    def warm_up(self) -> None:
        """Load and compile the kernels by serving one request, so that later calls are fast."""
        twin = type(self)(
            self.estimator,
            self.policy,
            cache_memory_bytes=self.cache_memory_bytes,
            refuse_late=True,
        )
        twin.submit(
            "",
            class_speed=1.0,
            expected_tokens=1.0,
            new_tokens=1,
            cached_tokens=0,
            response_start_seconds=1e8,
            tokens_done=0,
            iteration_start_seconds=1e9,
            arrival_seconds=0.0,
        )
        batch = twin.next_batch(0.0)
        assert batch.keys  # every policy serves a request with a distant deadline
        twin.complete(batch, seconds=1.0)

    @locked
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
        """Add a request. Requests arrive in the order of the calls.

        Parameters
        ----------
        key
            Name of the request (or of its response) until the request is complete.
        class_speed
            Minimum speed tau of the response, in tokens per second.
        expected_tokens
            Expected number of tokens that the verification yields, including the verifier's own
            token.
        new_tokens
            Number of tokens L_new to compute.
        cached_tokens
            Number of tokens L_cached to read.
        response_start_seconds
            Time at which the response started.
        tokens_done
            Number of tokens that the response has so far.
        iteration_start_seconds
            Time at which the device started this iteration.
        return_seconds
            Time that sending the result back to the device takes, in seconds.
        arrival_seconds
            Time of arrival; None for the time of the next call to `next_batch`. If `refuse_late` is
            set, the time of arrival is required.

        Raises
        ------
        InvalidInput
            If the key is in use or invalid, a value is outside its domain, or the request alone
            exceeds the memory.
        Refused
            If late requests are refused and the response would be late.
        """
        key = key_of("key", key)
        if key in self._rows.place_of:
            raise InvalidInput(f"key: {describe(key)} is already in use; choose another key")
        tau = number("class_speed", class_speed, 0)
        tokens = number("expected_tokens", expected_tokens, 0, MAX_TOKENS)
        done = number("tokens_done", tokens_done, 0)
        back = number("return_seconds", return_seconds, 0)
        if tau == 0.0:
            raise InvalidInput("class_speed: expected a number > 0, got 0.0")
        new, cached = self._tokens(new_tokens, cached_tokens)
        deadline = number("iteration_start_seconds", iteration_start_seconds) + tokens / tau - back
        due = (
            number("response_start_seconds", response_start_seconds) + (done + tokens) / tau - back
        )
        if not max(abs(deadline), abs(due), tokens / tau) <= LARGEST:
            raise InvalidInput(
                f"class_speed: expected a speed at which the request is due within {LARGEST:g} s,"
                f" got {tau}"
            )
        allowed, ahead = _UNSEEN, 0.0
        tight = float(self._rule.tight[0])
        if arrival_seconds is not None:
            now = number("arrival_seconds", arrival_seconds, -LARGEST, LARGEST)
            allowed = max(0.0, deadline - now)
            tight = kernels().tighter(tight, allowed)
        if cached > 0.0:
            ahead = self._prefixes.ahead_seconds(key)
        values = (tokens, new, cached, deadline, due, ahead, tau, allowed, math.nan)
        if self.refuse_late:
            self._refuse(key, values, arrival_seconds)
        serial = self._next_serial + 1
        self._rows.append(key, self._next_serial, values, _WAITS)
        self._next_serial, self._rule.tight[0] = serial, tight

    def _refuse(self, key: Key, values: _Row, now: float | None) -> None:
        """Raise `Refused` if a request's response would be late even if no more requests arrived.

        The policy is simulated from the time `now` on, one batch at a time.
        """
        if now is None:
            raise InvalidInput(
                "arrival_seconds: missing; required because late requests are refused"
            )
        rows = self._rows
        waits = np.flatnonzero(rows.status[: rows.count] == _WAITS)
        # Contiguous rows, as the kernels need them.
        columns = np.ascontiguousarray(np.column_stack([rows.columns[:, waits], values]))
        count = columns.shape[1]
        rule, pending = self._met(now, columns, np.full(count, _WAITS, np.int8))
        if self._running:
            now = max(now, self._latest + float(rule.costs @ self._work))
        places = np.empty(count, np.int64)
        room = kernels().Sorting(np.empty(count), places)
        end = float(kernels().done_at(now, rule, pending, room, places.copy()))
        if end > values[_DUE]:
            self._totals = self._counted(refused=1)
            raise Refused(
                f"{describe(key)} is due at {values[_DUE]} s, but would be done at {end} s at the"
                " earliest",
                end,
            )

    def _met(self, now: float, columns: Floats, status: NDArray[np.int8]) -> tuple[Any, Any]:
        """Compute how long new requests can wait, and return the rule and the requests.

        The rule is a copy, and the requests are in the form that the kernel uses.

        The columns are modified in place.
        """
        rule = self._rule._replace(tight=self._rule.tight.copy())
        pending = kernels().Pending(*columns[:_AHEAD], columns[_LATEST], columns[_AHEAD], status)
        kernels().meet(now, rule, pending, columns[_SPEED], columns[_ALLOWED])
        return rule, pending

    @locked
    def update(self, key: Key, *, new_tokens: int, cached_tokens: int) -> None:
        """Change a waiting request's numbers of tokens, for example if its prefix was evicted."""
        rows, tokens = self._rows, self._tokens(new_tokens, cached_tokens)
        key = key_of("key", key)
        place = rows.place_of.get(key)
        if place is None or rows.status[place] != _WAITS:
            raise InvalidInput(f"key: expected the key of a waiting request, got {describe(key)}")
        rows.columns[_NEW : _CACHED + 1, place] = tokens

    @locked
    def cancel(self, key: Key) -> None:
        """Remove a waiting or running request, which `complete` will then not return.

        Raises
        ------
        InvalidInput
            If no waiting or running request has this key.
        """
        key = key_of("key", key)
        if key not in self._rows.place_of:
            raise InvalidInput(f"key: expected a request that waits or runs, got {describe(key)}")
        self._remove([key], self._counted(cancelled=1))

    @locked
    def forget(self, key: Key) -> None:
        """Report that a response has ended, and remove its prefix from the cache model."""
        self._prefixes.forget(key_of("key", key))

    @locked
    def next_batch(self, now: float) -> Batch:
        """Return the next batch, whose requests run until `complete` is called.

        Raises
        ------
        InvalidInput
            If another batch is running and is not considered lost, or if the time is invalid.
        """
        now = number("now", now, -LARGEST, LARGEST)
        if self._running and now <= self._deadline_of_running:
            raise InvalidInput("next_batch: a batch is still running; call `complete()` first")
        rows = self._rows
        if 2 * len(rows.place_of) < rows.count:  # the cost per removed request is then constant
            rows.make_room()
        columns = rows.columns[:, : rows.count].copy()
        status = rows.status[: rows.count].copy()
        status[status == _RUNS] = _WAITS  # a lost batch
        rule, pending = self._met(now, columns, status)
        taken = kernels().choose(now, rule, pending, rows.room, rows.batch)
        places = rows.batch[:taken].copy()
        status[places] = _RUNS
        keys = tuple([rows.keys[place] for place in places.tolist()])
        seconds, until, work = 0.0, math.inf, self._work
        drop: tuple[Key, ...] = ()
        prefixes = self._prefixes
        if taken > 0:
            served = columns[:, places]
            work = np.array(
                [*(part.sum() for part in features(served[_NEW], served[_CACHED])), 1.0]
            )
            seconds = float(rule.costs @ work)
            until = now + seconds + self.lost_after_seconds
            if self.cache_memory_bytes is not None:
                window = served[_VALUE] / served[_SPEED]
                memory = self.kv_bytes_per_token * (served[_CACHED] + served[_NEW])
                away = window - served[_ALLOWED]
                facts = np.array([memory, served[_DUE], window, away, served[_SPEED]]).T
                drop, prefixes = prefixes.served(self.cache_memory_bytes, keys, facts, seconds)
                dropped = rows.places([key for key in drop if key in rows.place_of])
                # A request without a cached prefix is not served early.
                columns[_AHEAD, dropped[status[dropped] == _WAITS]] = 0.0
        serials = tuple(rows.serials[places].tolist())
        totals = self._counted(put_back=len(self._running), evicted=len(drop))
        batch = Batch(keys=keys, seconds=seconds, serials=serials, drop=drop)
        rows.columns[:, : rows.count], rows.status[: rows.count] = columns, status
        self._running, self._work, self._deadline_of_running = keys, work, until
        self._prefixes = prefixes
        self._rule, self._latest, self._totals = rule, now, totals
        return batch

    @locked
    def complete(
        self, batch: Batch | Iterable[Key] | None = None, *, seconds: float | None = None
    ) -> tuple[Key, ...]:
        """Report that a batch has ended, and return the keys of the served requests.

        Cancelled requests are excluded. If a lost batch is passed as a `Batch`, those of its
        requests that have not been served in the meantime are included and removed from the queue.
        Returned keys may be submitted again.

        Parameters
        ----------
        batch
            Batch that has ended, or the keys of the running batch, which are then checked; None for
            the running batch.
        seconds
            Duration of the batch in seconds; None if unknown. The estimator learns from the
            duration if the batch is the running batch.

        Raises
        ------
        InvalidInput
            If the keys do not match the running batch, or if `seconds` is not a positive number.
        """
        if seconds is not None:
            seconds = number("seconds", seconds, high=LARGEST, above=0)
        served = self._running
        if isinstance(batch, Batch):
            try:
                asked = dict(zip(batch.keys, batch.serials, strict=True))
            except (TypeError, ValueError):
                raise InvalidInput(
                    f"batch: expected a batch returned by next_batch, got {describe(batch)}"
                ) from None
            rows = self._rows
            served = tuple(
                [
                    key
                    for key, serial in asked.items()
                    if key in rows.place_of and int(rows.serials[rows.place_of[key]]) == serial
                ]
            )
        elif batch is not None:
            named = {key_of("batch", key) for key in batch}
            if not set(served) <= named or (named and not served):
                raise InvalidInput("complete: expected the keys of the running batch")
        learned = self._rule.costs, self._calibration
        end = self._latest
        took = off = 0.0
        if self._running:
            expected = float(learned[0] @ self._work)
            end += expected if seconds is None else seconds
            if seconds is not None and set(self._running) <= set(served):
                learned = self._learned(seconds)
                took, off = seconds, abs(seconds - expected)
        late = int((self._rows.columns[_DUE, self._rows.places(served)] < end).sum())
        totals = self._counted(
            served=len(served), late=late, batch_seconds=took, batch_error_seconds=off
        )
        self._remove(served, totals)
        self._rule.costs[:], self._calibration = learned
        return served

    @locked
    def abandon(self) -> tuple[Key, ...]:
        """Put the requests of a failed batch back into the queue, and return their keys.

        The requests keep their old positions in the queue.
        """
        keys, status = self._running, self._rows.status[: self._rows.count]
        totals = self._counted(put_back=len(keys))
        status[status == _RUNS] = _WAITS
        self._running, self._deadline_of_running, self._totals = (), math.inf, totals
        return keys

    # ------------------------------------------------------------------ state

    def _saved(self) -> _State:
        rows = self._rows
        places = rows.places(rows.place_of)
        policy = dataclasses.asdict(self.policy)
        return _State(
            **self._settings
            | {
                "policy": {name: base.bounded(value) for name, value in policy.items()},
                "lost_after_seconds": base.bounded(self.lost_after_seconds),
            },
            estimator=dataclasses.asdict(self.estimator),
            prefixes=None if self.cache_memory_bytes is None else self._prefixes.state(),
            latest_seconds=self._latest,
            requests=list(
                map(
                    _Request,
                    rows.place_of,
                    rows.serials[places].tolist(),
                    *rows.columns[:_LATEST, places].tolist(),
                )
            ),
            running=list(self._running),
            running_until=base.bounded(self._deadline_of_running),
            work=self._work.tolist(),
            tight_seconds=float(self._rule.tight[0]),
            calibration=_Calibration(*[part.tolist() for part in self._calibration]),
            next_serial=self._next_serial,
        )

    @classmethod
    @base.restoring()
    def from_state(cls, state: Mapping[str, Any], *, shift_seconds: float = 0.0) -> Self:
        """Restore a scheduler from a state. A batch that was running is still running.

        Parameters
        ----------
        state
            Data returned by the method `state`.
        shift_seconds
            Offset to add to all times, in seconds. This is the reading of the current clock minus
            the reading at the same moment of the clock used in the state.

        Raises
        ------
        InvalidInput
            If the data is not a valid state of a scheduler.
        """
        found = _State.read(state)
        shift = number("shift_seconds", shift_seconds, -LARGEST, LARGEST)
        policy = {
            name: math.inf if value == "inf" else value for name, value in found.policy.items()
        }
        scheduler = cls(
            parse(VerificationTime, found.estimator, "estimator"),
            **cls._settings_in(found)
            | {
                "policy": parse(Policy, policy, "policy"),
                "lost_after_seconds": float(found.lost_after_seconds),
            },
        )
        if (found.prefixes is None) != (found.cache_memory_bytes is None):
            raise InvalidInput(
                f"prefixes: expected None if and only if the cache is unbounded, got"
                f" {describe(found.prefixes)}"
            )
        if found.prefixes is not None:
            scheduler._prefixes.restore(found.prefixes, shift)
        running = set(base.distinct("running", found.running))
        rows, last = scheduler._rows, -1
        keys = base.distinct("requests", [one.key for one in found.requests])
        if not running <= set(keys):
            raise InvalidInput(f"running: expected keys of requests, got {describe(found.running)}")
        for key, one in zip(keys, found.requests, strict=True):
            if not last < one.serial < found.next_serial:
                raise InvalidInput(
                    "requests: expected increasing serial numbers below next_serial, got"
                    f" {describe(one.serial)}"
                )
            last = one.serial
            scheduler._tokens(one.new_tokens, one.cached_tokens)
            values = (*msgspec.structs.astuple(one)[2:], math.nan)
            rows.append(key, last, values, _RUNS if key in running else _WAITS)
        rows.columns[_DEADLINE : _DUE + 1, : rows.count] += shift
        scheduler._running, scheduler._next_serial = tuple(found.running), found.next_serial
        scheduler._work = np.array(found.work)
        scheduler._rule.tight[0] = found.tight_seconds
        minimum = kernels().MIN_ERROR
        if found.calibration.error[0] < minimum:
            raise InvalidInput(
                f"calibration.error: expected at least {minimum}, got"
                f" {describe(found.calibration.error)}"
            )
        for name, part in scheduler._calibration._asdict().items():
            part[:] = getattr(found.calibration, name)
        scheduler._deadline_of_running = float(found.running_until) + shift
        scheduler._latest = found.latest_seconds + shift
        scheduler._restore_totals(found.totals)
        return scheduler

    # ------------------------------------------------------------------ inside

    def _tokens(self, new_tokens: float, cached_tokens: float) -> tuple[float, float]:
        """Check that a request fits in memory, and return its numbers of tokens."""
        new = number("new_tokens", new_tokens, 0, MAX_TOKENS)
        cached = number("cached_tokens", cached_tokens, 0, MAX_TOKENS)
        self._refuse_large(cached + new, self.memory_bytes)
        return new, cached

    def _refuse_large(self, tokens: float, room: float | None) -> None:
        if room is not None and self.kv_bytes_per_token * tokens > room:
            raise InvalidInput(
                f"new_tokens: expected a request within the memory of {room:.6g} bytes, "
                f"got a request of {self.kv_bytes_per_token * tokens:.6g} bytes"
            )

    def _learned(self, seconds: float) -> tuple[Floats, Any]:
        """Return the estimator's costs and calibration after learning from the running batch."""
        costs = self._rule.costs.copy()
        calibration = self._calibration
        copy = calibration._make(part.copy() for part in calibration)
        if all(1.0 / LARGEST < float(each @ self._work) < LARGEST for each in (costs, copy.given)):
            with np.errstate(all="ignore"):
                kernels().calibrate(costs, copy, self._work, seconds)
            if all(np.isfinite(part).all() for part in (costs, *copy)):
                return costs, copy
        # Nothing can be learned outside the range of floating-point numbers.
        return self._rule.costs, calibration

    def _remove(self, keys: Sequence[Key], totals: dict[str, float]) -> None:
        """Remove requests, and set the counters."""
        rows, gone = self._rows, set(keys)
        running = tuple([key for key in self._running if key not in gone])
        places = rows.places(keys)
        rows.status[places] = _GONE
        rows.columns[_ALLOWED, places] = 0.0  # does not count as a new arrival any more
        for key in keys:
            del rows.place_of[key]
        self._running, self._totals = running, totals
        if not running:
            self._deadline_of_running = math.inf


class _Rows:
    """A table of requests in order of arrival, with working memory for the kernels.

    Removed requests are marked, and are deleted by `make_room`.
    """

    def __init__(self) -> None:
        self.count = 0
        self.keys: list[Key] = []
        self.place_of: dict[Key, int] = {}  # without removed requests, in order of arrival
        self.columns: Floats = np.empty((9, 0))
        self.serials: Ints = np.empty(0, np.int64)
        self.status: NDArray[np.int8] = np.empty(0, np.int8)
        self.make_room()

    def make_room(self) -> None:
        """Delete the rows of removed requests, and allocate free rows.

        Afterwards, there are as many free rows as occupied rows, or 256 rows in total if that is
        more.
        """
        keys = list(self.place_of)
        count, kept = len(keys), self.places(keys)
        size = max(256, 2 * count)
        columns, serials, status = (
            np.empty((9, size)),
            np.empty(size, np.int64),
            np.empty(size, np.int8),
        )
        columns[:, :count] = self.columns[:, kept]
        serials[:count], status[:count] = self.serials[kept], self.status[kept]
        batch, order = np.empty((2, size), np.int64)
        room = kernels().Sorting(np.empty(size), order)
        place_of = dict(zip(keys, range(count), strict=True))
        self.columns, self.serials, self.status = columns, serials, status
        self.keys, self.place_of, self.count = keys, place_of, count
        self.batch: Ints = batch
        self.room = room

    def places(self, keys: Iterable[Key]) -> Ints:
        """Return the row index of each request."""
        return np.array([self.place_of[key] for key in keys], np.int64)

    def append(self, key: Key, serial: int, values: Sequence[float], status: int) -> None:
        """Append a row, whose serial number must be larger than all earlier serial numbers."""
        if self.count == len(self.serials):
            self.make_room()
        at = self.count
        self.columns[:, at] = values
        self.serials[at], self.status[at] = serial, status
        self.keys[at:] = (key,)
        self.place_of[key] = at
        self.count = at + 1
