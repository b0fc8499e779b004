"""A placement problem as arrays, with the options for serving each class of clients.

A side is a verifier together with the drafter that runs next to it, if any. An option is one way to
serve a client of some class on a side. A type of draft units is a pool and a drafter, together with
a range for the number of clients per unit.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import product
from typing import Any

import numpy as np

from specopt.models.fields import Floats
from specopt.models.placement.plan import Place
from specopt.models.placement.problem import ClientClass, Drafter, PlacementProblem, Verifier
from specopt.solvers.budget import Budget

OBJECTIVES = ("goodput", "fair", "capacity", "cost", "energy")
"""Names of the objectives. The kernels identify an objective by its index in this tuple."""

EXACT_SIZES = 8
"""Largest number of clients per draft unit that has a type of its own.

For larger numbers, each type covers a range of client numbers.
"""

RANGE = 1.25
"""Maximum ratio of the largest to the smallest number of clients that a draft type covers.

It applies above `EXACT_SIZES` clients per unit.
"""


@dataclass(frozen=True)
class DraftType:
    """A type of draft units of one pool, with the same drafter and similar numbers of clients.

    Parameters
    ----------
    pool, drafter
        Indices of the pool and of the drafter.
    least, most
        Minimum and maximum number of clients per unit.
    context, length
        Largest context and largest draft length of the clients; None if the type does not fix it.
    """

    pool: int
    drafter: int
    least: int
    most: int
    context: int | None
    length: int | None


@dataclass(frozen=True, slots=True)
class Way:
    """An option as it appears in a plan.

    The fields are a class of clients, and the place and the drafter that generate the draft tokens
    of these clients.
    """

    cls: int
    place: Place
    drafter: int = -1
    length: int = 0
    overlap: bool = False
    draft: int = -1


@dataclass(frozen=True)
class Side:
    """A side: the units of one verifier, with at most one drafter running alongside.

    Parameters
    ----------
    verifier
        Index of the verifier.
    drafter
        Index of the drafter next to the verifier; -1 if there is none.
    length
        Draft length of that drafter; 0 if there is none.
    unit
        Kernel record that describes the unit.
    options
        Options of clients on these units, as kernel records.
    ways
        The same options in the same order, as they appear in a plan.
    """

    verifier: int
    drafter: int
    length: int
    unit: Any
    options: np.ndarray[Any, Any]
    ways: tuple[Way, ...]

    @cached_property
    def by_class(self) -> defaultdict[int, list[int]]:
        """Indices of the options by class of clients."""
        found = defaultdict(list)
        for option, way in enumerate(self.ways):
            found[way.cls].append(option)
        return found


@dataclass(frozen=True)
class Prepared:
    """A placement problem as arrays, with the budget of the solve and the kernels.

    Parameters
    ----------
    problem
        The original problem.
    objective
        Index of the objective in `OBJECTIVES`.
    sides
        Sides of the problem: every verifier alone, and combined with each drafter and draft length.
    trips
        Concatenated round-trip times of all options, in seconds.
    drafts
        Types of draft units.
    budget
        Budget of the solve, which includes the compilation of kernels.
    kernels
        Module `units`, whose kernels are compiled on their first call. None if the judge evaluates
        the patterns instead.
    """

    problem: PlacementProblem
    objective: int
    sides: tuple[Side, ...]
    trips: Floats
    drafts: tuple[DraftType, ...]
    budget: Budget
    kernels: Any

    @cached_property
    def clients(self) -> list[int]:
        """Number of clients, by class."""
        return [one.clients for one in self.problem.classes]

    def price_of(self, index: int) -> float:
        """Return the cost of one unit of a pool in terms of the objective, which may be 0."""
        pool = self.problem.draft_pools[index]
        prices = {"cost": pool.price_per_second, "energy": pool.busy_watts}
        return prices.get(OBJECTIVES[self.objective], 0.0)


def prepare(
    problem: PlacementProblem, exact: bool = False, budget: Budget | None = None
) -> Prepared:
    """Convert a placement problem to arrays.

    If `exact` is True, the types of draft units distinguish the number of clients, the largest
    context and the largest draft length. `budget` is the budget of the solve, which is unlimited by
    default.
    """
    budget = budget or Budget(problem)
    kernels = budget.load("placement.units")
    builder = _Builder(problem, exact, budget.check)
    sides = tuple(builder.sides())
    trips, objective = np.array(builder.trips), OBJECTIVES.index(problem.objective)
    return Prepared(problem, objective, sides, trips, tuple(builder.drafts), budget, kernels)


class _Builder:
    def __init__(self, problem: PlacementProblem, exact: bool, check: Callable[[], None]) -> None:
        self.problem = problem
        self.exact = exact
        self.check = check
        self.accepted = cache(self._accepted)
        self.trips: list[float] = [0.0]
        self.places: dict[tuple[float, ...], int] = {(0.0,): 0}
        self.drafts = list(self._draft_types())

    def sides(self) -> Iterator[Side]:
        """Yield the sides: every verifier alone, and with each drafter and draft length."""
        problem = self.problem
        for v, verifier in enumerate(problem.verifiers):
            yield self._side(v, verifier, -1, 0)
            for d, drafter in enumerate(problem.drafters):
                if drafter.beside is not None and verifier.name in drafter.beside.values:
                    for length in range(1, problem.max_draft_tokens + 1):
                        side = self._side(v, verifier, d, length)
                        if side.ways:
                            yield side

    def _side(self, v: int, verifier: Verifier, d: int, length: int) -> Side:
        from specopt.solvers.placement.kernels.units import Option, Unit

        beside, drafter = np.empty((0, 4)), None
        weights, kv = verifier.weights_bytes, verifier.kv_bytes_per_token
        if d >= 0:
            drafter = self.problem.drafters[d]
            assert drafter.beside is not None, "who calls has looked"
            beside = np.array(drafter.beside.values[verifier.name].rows)
            weights, kv = weights + drafter.weights_bytes, kv + drafter.kv_bytes_per_token
        unit = Unit(
            passes=np.array(verifier.passes.rows),
            beside=beside,
            length=float(length),
            parallel=bool(drafter and drafter.parallel),
            open_share=1.0 - verifier.reserved_share,
            room=verifier.memory_bytes - weights,
            kv=kv,
            idle=verifier.watts[0],
            busy=verifier.watts[1],
            price=verifier.price_per_second,
        )
        self.ways: list[Way] = []
        options = np.fromiter(
            self._beside(d, length) if drafter else self._elsewhere(verifier), Option
        )
        return Side(v, d, length, unit, options, tuple(self.ways))

    def _beside(self, d: int, length: int) -> Iterator[tuple[Any, ...]]:
        drafter = self.problem.drafters[d]
        for c, of in enumerate(self.problem.classes):
            if drafter.name in of.acceptance.values:
                yield self._option(Way(c, "beside", d, length), of)

    def _elsewhere(self, verifier: Verifier) -> Iterator[tuple[Any, ...]]:
        problem = self.problem
        for c, of in enumerate(problem.classes):
            yield self._option(Way(c, "none"), of)
            trips = (
                of.round_trip_seconds.values.get(verifier.name) if of.round_trip_seconds else None
            )
            speeds = of.device_seconds_per_token.values if of.device_seconds_per_token else {}
            uplink = of.uplink_bits_per_second or math.inf
            for d, drafter in enumerate(problem.drafters if trips is not None else ()):
                if drafter.name not in of.acceptance.values or drafter.name not in speeds:
                    continue
                each = speeds[drafter.name]
                for k in range(1, problem.max_draft_tokens + 1):
                    one, more = (each, each) if drafter.parallel else (k * each, (k + 1) * each)
                    away = of, trips, k * problem.bits_per_draft_token / uplink, (one, one)
                    yield self._option(Way(c, "device", d, k), *away)
                    if problem.overlap:
                        yield self._option(Way(c, "device", d, k, True), *away, more)
            yield from self._pooled(verifier, c, of)

    def _pooled(self, verifier: Verifier, c: int, of: ClientClass) -> Iterator[tuple[Any, ...]]:
        problem = self.problem
        for index, draft in enumerate(self.drafts):
            pool, drafter = problem.draft_pools[draft.pool], problem.drafters[draft.drafter]
            trips = pool.round_trip_seconds.values.get(verifier.name)
            if trips is None or drafter.name not in of.acceptance.values:
                continue
            if draft.context is not None and of.context_tokens > draft.context:
                continue
            assert drafter.server is not None, "types are made of such"
            passes, own, widest = drafter.server.values[pool.name], of.context_tokens, draft.context
            if widest is None:
                widest = max(one.context_tokens for one in problem.classes)
            else:
                own = widest
            longest = draft.length or problem.max_draft_tokens
            for k in range(1, longest + 1):
                held = drafter.kv_bytes_per_token * draft.least * (of.max_context + k)
                if drafter.weights_bytes + held > pool.memory_bytes * (1.0 + 1e-9):
                    break
                times = []
                for h, x, most in (
                    (draft.least, own, draft.length or k),
                    (draft.most, widest, longest),
                ):
                    new, number = (h * most, 2.0) if drafter.parallel else (h, k + 1.0)
                    times.append(number * passes.at(h, new, h * x))
                way = Way(c, "pool", draft.drafter, k, draft=index)
                yield self._option(way, of, trips, 0.0, tuple(times))

    def _accepted(self, c: int, d: int) -> tuple[list[float], list[float]]:
        """Return acceptance statistics of a class c of clients with drafter d, by draft length.

        They are the probability that all drafts and one more token would be accepted, and the mean
        number of tokens per round.
        """
        if d < 0:
            return [0.0], [1.0]
        name, most = self.problem.drafters[d].name, self.problem.max_draft_tokens
        held = np.cumprod(self.problem.classes[c].accepted(name, most))
        return held.tolist(), [1.0, *(1.0 + np.cumsum(held)).tolist()]

    def _option(
        self,
        way: Way,
        of: ClientClass,
        trips: Floats | None = None,
        sent: float = 0.0,
        drafting: tuple[float, ...] = (0.0, 0.0),
        ahead: float = 0.0,
    ) -> tuple[Any, ...]:
        self.check()
        self.ways.append(way)
        held, tokens = self.accepted(way.cls, way.drafter)
        values = (0.0,) if trips is None else tuple(np.atleast_1d(trips).tolist())
        if values not in self.places:
            self.places[values] = len(self.trips)
            self.trips += values
        return (
            way.cls,
            way.draft,
            way.drafter,
            tokens[way.length],
            way.length + 1,
            of.context_tokens,
            of.max_context + way.length + 1,
            of.weight,
            of.min_tokens_per_second,
            of.device_watts or 0.0 if way.place == "device" else 0.0,
            sent,
            self.places[values],
            len(values),
            *drafting,
            ahead,
            held[way.length] if way.overlap else 0.0,
        )

    def _draft_types(self) -> Iterator[DraftType]:
        problem = self.problem
        sizes = [draft_sizes(problem, drafter) for drafter in problem.drafters]
        for p in range(len(problem.draft_pools)):
            for d, drafter in enumerate(problem.drafters):
                users = (c for c in problem.classes if drafter.name in c.acceptance.values)
                contexts = sorted({c.context_tokens for c in users}) if self.exact else [None]
                lengths = (
                    range(1, problem.max_draft_tokens + 1)
                    if self.exact and drafter.parallel
                    else [None]
                )
                held = _ranges(sizes[d].get(p, 0), self.exact)
                for ends, *more in product(held, contexts, lengths):
                    self.check()
                    yield DraftType(p, d, *ends, *more)


def draft_sizes(problem: PlacementProblem, drafter: Drafter) -> dict[int, int]:
    """Return the maximum number of clients per draft unit with a drafter, by pool index."""
    users = [c for c in problem.classes if drafter.name in c.acceptance.values]
    found: dict[int, int] = {}
    if not users:
        return found
    context, clients = min(c.max_context for c in users), float(sum(c.clients for c in users))
    if problem.objective == "capacity":  # the number of clients that fit on the verifiers
        clients = 0.0
        for v in problem.verifiers:
            room = (v.memory_bytes * (1.0 + 1e-9) - v.weights_bytes) / v.kv_bytes_per_token
            clients += v.units * max(0.0, room // (context + 2))
    each = drafter.kv_bytes_per_token * (context + 1)
    for p, pool in enumerate(problem.draft_pools):
        if drafter.server is not None and pool.name in drafter.server.values:
            left = max(0.0, pool.memory_bytes * (1.0 + 1e-9) - drafter.weights_bytes)
            found[p] = int(min(clients, left / each if each else math.inf)) if left else 0
    return found


def most_options(problem: PlacementProblem, exact: bool = False) -> float:
    """Return an upper bound on the number of options, computed without building them."""
    most, contexts = problem.max_draft_tokens, len({one.context_tokens for one in problem.classes})
    of: dict[str, int] = {}
    for drafter in problem.drafters:
        of[drafter.name] = len(drafter.beside.values) if drafter.beside else 0
        for p, size in draft_sizes(problem, drafter).items():
            types = (
                size * contexts * (most if drafter.parallel else 1)
                if exact
                else len(list(_ranges(size, exact)))
            )
            of[drafter.name] += types * len(problem.draft_pools[p].round_trip_seconds.values)
    found = 0
    for one in problem.classes:
        device, trips = one.device_seconds_per_token, one.round_trip_seconds
        away = 2 * len(device.values) * len(trips.values) if device and trips else 0
        away += sum(of[name] for name in one.acceptance.values)
        found += len(problem.verifiers) + most * away
    return found


def _ranges(most: int, exact: bool) -> Iterator[tuple[int, int]]:
    """Yield (low, high) for consecutive ranges that cover the client numbers from 1 to `most`."""
    low = 1
    while low <= most:
        high = low if exact or low <= EXACT_SIZES else min(most, int(low * RANGE))
        yield low, high
        low = high + 1
