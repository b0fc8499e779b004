"""Model of a server's prefix cache.

The model records the cached prefixes of unfinished responses, and the responses that are served
early to free the cache.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from types import ModuleType
from typing import Annotated, Self

import numpy as np
from msgspec import Meta

from specopt.models.arguments import LARGEST, Key
from specopt.models.errors import InvalidInput
from specopt.models.fields import Amount, Floats, Number, describe
from specopt.online.base import Saved, distinct

_SIZE, _CACHED, _DUE, _WINDOW, _AWAY, _SPEED, _AHEAD = range(7)  # rows of `Prefixes._columns`
_RECENT_BATCHES = 50
"""Number of batches over which the duration of a batch is averaged."""


class SavedPrefixes(Saved):
    """The saved state of a `Prefixes` object."""

    keys: list[Key]
    columns: Annotated[list[list[Number]], Meta(min_length=7, max_length=7)]
    batches: Annotated[int, Meta(ge=0, le=_RECENT_BATCHES)]
    batch_seconds: Amount


class Prefixes:
    """A prefix cache for responses identified by keys, based on the simulator's cache model."""

    def __init__(self) -> None:
        self._places: dict[Key, int] = {}
        self._keys: list[Key] = []
        self._columns: Floats = np.zeros((7, 0))
        self._batches, self._batch_seconds = 0, 0.0

    def ahead_seconds(self, key: Key) -> float:
        """Return how early a response is served while its prefix is cached, in seconds."""
        return float(self._columns[_AHEAD, self._places[key]]) if key in self._places else 0.0

    def served(
        self, room_bytes: float, keys: Sequence[Key], rows: Floats, seconds: float
    ) -> tuple[tuple[Key, ...], Self]:
        """Return the responses whose prefixes a batch evicts, and the cache after the batch.

        Parameters
        ----------
        room_bytes
            Size of the cache, in bytes.
        keys
            Keys of the requests in the batch, whose prefixes are not evicted.
        rows
            Values for each request, shape (requests, 5): the size in bytes, the time at which the
            request is due, the window in seconds, the time between two verifications in seconds,
            and the speed.
        seconds
            Duration of the batch, in seconds.
        """
        after = type(self)()
        new = [key for key in keys if key not in self._places]
        after._keys = self._keys + new
        after._places = self._places | dict(
            zip(new, range(len(self._keys), len(after._keys)), strict=True)
        )
        used = after._columns = np.hstack([self._columns, np.zeros((7, len(new)))])
        places = [after._places[key] for key in keys]
        used[[_SIZE, _DUE, _WINDOW, _AWAY, _SPEED], np.array(places)[:, None]] = rows
        used[_CACHED, places] = used[_SIZE, places]
        first = -used[_DUE]
        first[places] = np.inf
        before = used[_CACHED].copy()
        kernels().evict(room_bytes, used[_CACHED], first)
        # The prefixes of the batch are in use, and stay even if they exceed the cache.
        used[_CACHED, places] = used[_SIZE, places]
        after._batches = min(self._batches + 1, _RECENT_BATCHES)
        change = min(seconds, LARGEST) - self._batch_seconds
        after._batch_seconds = self._batch_seconds + change / after._batches
        # Sorting by the first 16 bits is ten times as fast, and the order of speeds within 1 % is
        # irrelevant.
        with np.errstate(over="ignore"):
            speed = used[_SPEED].astype(np.float32)
        order = np.argsort((speed.view(np.uint32) >> 16).astype(np.uint16), kind="stable")
        used[_AHEAD] = 0.0
        kernels().run_ahead(
            room_bytes,
            after._batch_seconds,
            used[_SIZE],
            used[_WINDOW],
            used[_AWAY],
            order[used[_WINDOW, order] > 0.0],
            used[_AHEAD],
        )
        return tuple(after._keys[place] for place in np.flatnonzero(used[_CACHED] < before)), after

    def forget(self, key: Key) -> None:
        """Remove the prefix of a response that has ended."""
        place = self._places.get(key)
        if place is None:
            return
        columns = self._columns.copy()
        columns[:, place] = columns[:, -1]
        last = self._keys[-1]
        self._keys[place], self._places[last], self._columns = last, place, columns[:, :-1]
        del self._keys[-1], self._places[key]

    def state(self) -> SavedPrefixes:
        """Return the state of the cache."""
        return SavedPrefixes(
            keys=self._keys.copy(),
            columns=self._columns.tolist(),
            batches=self._batches,
            batch_seconds=self._batch_seconds,
        )

    def restore(self, state: SavedPrefixes, shift_seconds: float) -> None:
        """Restore the cache from a state, with all times shifted by `shift_seconds`."""
        self._keys = distinct("prefixes.keys", state.keys)
        count = len(self._keys)
        self._places = dict(zip(self._keys, range(count), strict=True))
        for row, values in enumerate(state.columns):
            negative = row not in (_DUE, _AWAY) and min(values, default=0.0) < 0.0
            if negative or len(values) != count:
                raise InvalidInput(
                    f"prefixes.columns[{row}]: expected {count} numbers in their domain, got"
                    f" {describe(values)}"
                )
        self._columns = np.array(state.columns, np.float64)
        self._columns[_DUE] += shift_seconds
        self._batches, self._batch_seconds = state.batches, state.batch_seconds


@cache
def kernels() -> ModuleType:
    """Import and return the simulator's kernels, whose import is slow."""
    import specopt.solvers.verification_batch.kernels.simulation as simulation

    return simulation
