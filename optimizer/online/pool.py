"""Several verifiers behind one scheduler: a request joins the one that serves it soonest.

>>> from specopt.instances.verification_batch.workload import TABLE_12
>>> from specopt.online.verification import VerificationScheduler
>>> pool = VerificationPool({"a": VerificationScheduler(TABLE_12), "b": VerificationScheduler(TABLE_12)})
>>> for key in (1, 2):
...     pool.submit(
...         key, class_speed=4.0, expected_tokens=2.9, new_tokens=200, cached_tokens=0, response_start_seconds=0.0,
...         tokens_done=0, iteration_start_seconds=0.0, arrival_seconds=0.1,
...     )
'a'
'b'
>>> pool["b"].next_batch(0.1).keys
(2,)
>>> pool.leave("b", 0.2)  # it died: what waited or ran there goes on elsewhere
(2,)
>>> pool["a"].pending
(1, 2)
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from contextlib import ExitStack
from typing import Any, ClassVar, Self

from specopt.models.arguments import LARGEST, Key, key_of, number
from specopt.models.errors import InvalidInput
from specopt.models.fields import describe
from specopt.online import base
from specopt.online.base import Online, Saved, locked
from specopt.online.verification import _AHEAD, _CACHED, _LATEST, _NEW, _RUNS, _WAITS, VerificationScheduler


class _State(Saved):
    verifiers: list[tuple[Key, dict[str, Any]]]


class VerificationPool(Online):
    """Verifiers, each with a scheduler of its own: ``pool["a"]``, of which its loop asks for batches and reports them.

    Requests come and go through the pool, so that a key is in use at one verifier at most. Quotas are per verifier.

    Parameters
    ----------
    verifiers
        Their schedulers, by name.

    Raises
    ------
    InvalidInput
        If a scheduler is given twice, or a key is in use at two of them.
    """

    __slots__ = ("_verifiers",)
    _METRICS: ClassVar = {}

    def __init__(self, verifiers: Mapping[Key, VerificationScheduler]) -> None:
        super().__init__()
        self._verifiers: dict[Key, VerificationScheduler] = {}
        for name, scheduler in verifiers.items():
            self.join(name, scheduler)

    @property
    def verifiers(self) -> tuple[Key, ...]:
        """Their names."""
        return tuple(self._verifiers)

    def __getitem__(self, verifier: Key) -> VerificationScheduler:
        """Return the scheduler of a verifier."""
        found = self._verifiers.get(key_of("verifier", verifier))
        if found is None:
            raise InvalidInput(f"verifier: expected one of {describe(list(self._verifiers))}, got {describe(verifier)}")
        return found

    def metrics(self, **labels: str) -> str:
        """Return counters and gauges of every verifier as Prometheus reads them, with a label ``verifier``.

        Parameters
        ----------
        **labels
            Given to each besides.
        """
        return base.exposition([(labels | {"verifier": str(name)}, one) for name, one in self._verifiers.items()])

    def warm_up(self) -> None:
        """Load the kernels, so that no later call compiles."""
        for one in self._verifiers.values():
            one.warm_up()

    @locked
    def join(self, verifier: Key, scheduler: VerificationScheduler) -> None:
        """Add a verifier; requests that its scheduler has stay there.

        Raises
        ------
        InvalidInput
            If the name is taken, the scheduler is there already, or a key of its requests is in use.
        """
        verifier = key_of("verifier", verifier)
        if verifier in self._verifiers or any(one is scheduler for one in self._verifiers.values()):
            raise InvalidInput(f"verifier: expected a new one, got {describe(verifier)}")
        for key in (*scheduler.pending, *scheduler.running):
            self._expect_new(key)
        self._verifiers = self._verifiers | {verifier: scheduler}

    @locked
    def leave(self, verifier: Key, now: float) -> tuple[Key, ...]:
        """Remove a verifier, say because it died; its requests, waiting or running, join others and are returned.

        Their prefixes have to be computed again there.

        Raises
        ------
        InvalidInput
            If there is no such verifier, or no other with memory for each of its requests.
        """
        now, gone = number("now", now, -LARGEST, LARGEST), self[verifier]
        others = {name: one for name, one in self._verifiers.items() if one is not gone}
        with ExitStack() as locks:
            for one in self._verifiers.values():
                locks.enter_context(one._lock)
            rows = gone._rows
            keys = rows.keys_of(_WAITS, _RUNS)
            columns = rows.columns[:, rows.places(keys)]
            columns[_NEW] += columns[_CACHED]
            columns[[_CACHED, _AHEAD]], columns[_LATEST] = 0.0, math.nan
            moved = dict(zip(keys, map(tuple, columns.T.tolist()), strict=True))
            self._soonest(now, dict.fromkeys(others, (float(columns[_NEW].max(initial=0.0)), 0.0)))
            for key, values in moved.items():
                soonest = self._soonest(now, dict.fromkeys(others, (values[_NEW], 0.0)))
                self._verifiers[soonest]._add(key, values, gone._tenants.get(key))
                gone._remove([key], gone._totals)
            self._verifiers = others
        return keys

    # ------------------------------------------------------------------ requests

    @locked
    def submit(
        self, /, key: Key, *, arrival_seconds: float, new_tokens: int, cached_tokens: int, home: Key | None = None,
        **request: Any,
    ) -> Key:  # fmt: skip
        """Add a request to the verifier that could have it done soonest, and return that one's name.

        Parameters
        ----------
        key, arrival_seconds, new_tokens, cached_tokens, request
            As for `VerificationScheduler.submit`.
        home
            The verifier whose cache has its prefix; elsewhere the cached tokens have to be computed.

        Raises
        ------
        InvalidInput, Refused
            As there.
        """
        self._expect_new(key_of("key", key))
        now = number("arrival_seconds", arrival_seconds, -LARGEST, LARGEST)
        new: Any = number("new_tokens", new_tokens, 0)
        cached: Any = number("cached_tokens", cached_tokens, 0)
        tokens = {name: (new, cached) if name == home else (new + cached, 0.0) for name in self._verifiers}
        soonest = self._soonest(now, tokens)
        new, cached = tokens[soonest]
        self._verifiers[soonest].submit(key, arrival_seconds=now, new_tokens=new, cached_tokens=cached, **request)
        return soonest

    @locked
    def cancel(self, key: Key) -> None:
        """Forget a request that waits or runs."""
        self.of(key).cancel(key)

    def of(self, key: Key) -> VerificationScheduler:
        """Return the scheduler that has a request.

        Raises
        ------
        InvalidInput
            If none has it.
        """
        key = key_of("key", key)
        for one in self._verifiers.values():
            if key in one._rows.serial_of:
                return one
        raise InvalidInput(f"key: expected a request that waits or runs, got {describe(key)}")

    def _soonest(self, now: float, tokens: Mapping[Key, tuple[float, float]]) -> Key:
        """Return the verifier that has an urgent request done first; tokens, new and cached, are by verifier."""
        ends = {}
        for name, (new, cached) in tokens.items():
            one = self._verifiers[name]
            with one._lock:
                if one._fits(new + cached, one._memory_bytes):
                    ends[name] = one._soonest(now, (0.0, new, cached, now, now, math.nan, 0.0, 1.0, 0.0))
        if not ends:
            raise InvalidInput("verifier: expected one with memory for the request")
        return min(ends, key=ends.__getitem__)

    def _expect_new(self, key: Key) -> None:
        for one in self._verifiers.values():
            if key in one._rows.serial_of:
                raise InvalidInput(f"key: expected one that is not in use, got {describe(key)}")

    # ------------------------------------------------------------------ state

    def _saved(self) -> _State:
        return _State(verifiers=[(name, one.state()) for name, one in self._verifiers.items()])

    @classmethod
    @base.restoring
    def from_state(cls, state: Mapping[str, Any], *, shift_seconds: float = 0.0) -> Self:
        """Return the pool whose `state` this is; `shift_seconds` as for `VerificationScheduler.from_state`.

        Raises
        ------
        InvalidInput
            If it is not the state of a pool.
        """
        found = _State.read(state).verifiers
        names = base.distinct("verifiers", [name for name, _ in found])
        restore = VerificationScheduler.from_state
        return cls({name: restore(of, shift_seconds=shift_seconds) for name, (_, of) in zip(names, found, strict=True)})
