"""Prefixes of the responses that a server has begun: which its cache keeps, and which responses run ahead meanwhile."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from types import ModuleType
from typing import Any

import numpy as np

from specopt.models.fields import Floats

Key = str | int

_SIZE, _CACHED, _DUE, _WINDOW, _AWAY, _SPEED, _AHEAD = range(7)  # rows of `Prefixes._columns`
_RECENT_BATCHES = 50


class Prefixes:
    """The simulator's cache for a server, whose responses have names.

    Parameters
    ----------
    room_bytes
        Of the cache.
    """

    def __init__(self, room_bytes: float) -> None:
        self.room_bytes = room_bytes
        self._places: dict[Key, int] = {}
        self._keys: list[Key] = []
        self._columns: Floats = np.zeros((7, 64))
        self._batches, self._batch_seconds = 0, 0.0

    def ahead_seconds(self, key: Key) -> float:
        """Return how much earlier than it need be a response is served while its prefix is cached."""
        return float(self._columns[_AHEAD, self._places[key]]) if key in self._places else 0.0

    def serve(self, keys: Sequence[Key], rows: Floats, seconds: float) -> tuple[Key, ...]:
        """Note that a batch is served, whose prefixes stay; return the responses whose prefixes have to go for them.

        Parameters
        ----------
        keys, rows
            Its requests; a row each of bytes, moment due, seconds of a window, seconds away between two
            verifications, and speed.
        seconds
            What the batch takes.
        """
        for key in keys:
            if key not in self._places:
                self._places[key] = len(self._keys)
                self._keys.append(key)
        if len(self._keys) > self._columns.shape[1]:
            self._columns = np.hstack([self._columns, np.zeros((7, len(self._keys)))])
        used = self._columns[:, : len(self._keys)]
        places = [self._places[key] for key in keys]
        used[[_SIZE, _DUE, _WINDOW, _AWAY, _SPEED], np.array(places)[:, None]] = rows
        used[_CACHED, places] = used[_SIZE, places]
        first = -used[_DUE]
        first[places] = np.inf
        before = used[_CACHED].copy()
        kernels = _kernels()
        kernels.evict(self.room_bytes, used[_CACHED], first)
        used[_CACHED, places] = used[_SIZE, places]  # they are read now, and stay even where they alone are too many
        self._batches = min(self._batches + 1, _RECENT_BATCHES)
        self._batch_seconds += (seconds - self._batch_seconds) / self._batches
        # as their first 16 bits: within 1 % the order says nothing, and so many are sorted in a tenth of the time
        order = np.argsort((used[_SPEED].astype(np.float32).view(np.uint32) >> 16).astype(np.uint16), kind="stable")
        kernels.run_ahead(
            self.room_bytes, self._batch_seconds, used[_SIZE], used[_WINDOW], used[_AWAY], order, used[_AHEAD]
        )
        return tuple(self._keys[place] for place in np.flatnonzero(used[_CACHED] < before))

    def forget(self, key: Key) -> None:
        """Note that a response has ended: its prefix takes no room any more."""
        place = self._places.pop(key, None)
        if place is None:
            return
        last = self._keys.pop()
        if last != key:
            self._keys[place], self._places[last] = last, place
            self._columns[:, place] = self._columns[:, len(self._keys)]

    def state(self) -> dict[str, Any]:
        """Return everything as data for strict JSON."""
        return {
            "keys": self._keys.copy(),
            "columns": self._columns[:, : len(self._keys)].tolist(),
            "batches": self._batches,
            "batch_seconds": self._batch_seconds,
        }

    def restore(self, state: Mapping[str, Any], shift_seconds: float) -> None:
        """Take over what `state` returned; all moments are shifted."""
        self._keys = list(state["keys"])
        self._places = {key: place for place, key in enumerate(self._keys)}
        self._columns = np.array(state["columns"], dtype=np.float64).reshape(7, -1)
        self._columns[_DUE] += shift_seconds
        self._batches, self._batch_seconds = int(state["batches"]), float(state["batch_seconds"])


@cache
def _kernels() -> ModuleType:
    import specopt.solvers._kernels.verification_batch_simulation as kernels

    return kernels
