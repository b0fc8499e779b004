"""An upper bound from fractional patterns, by column generation in successively smaller boxes.

Every unit uses a pattern that is feasible in the linear program of some box (see `boxes`). The
master program, solved by HiGHS, chooses the number of units that use each pattern. At its dual
prices, the best pattern of every side is found by a best-first search over boxes. By Lagrangian
duality, the sum of the prices of all clients, of the draft units and of the best pattern of each
unit is an upper bound on the value of every plan.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from specopt.models.errors import OutOfWork
from specopt.models.fields import Floats
from specopt.solvers.placement.boxes import Cover, covers
from specopt.solvers.placement.choice import Frame, all_units, counted
from specopt.solvers.placement.listing import Task, listed
from specopt.solvers.placement.patterns import Pattern, most_clients
from specopt.solvers.placement.prepare import Prepared, Side

FEW_UNITS = 24
"""Maximum number of units for which the size of a class limits patterns.

No pattern may then contain more clients of a class than exist. For the objective "capacity", it is
the maximum number of units to which integer numbers of clients are assigned.
"""

SPARE = 4096
"""Maximum number of boxes that are created by splitting, per side and pricing step."""

MAX_BOXES = 2**21
"""Number of boxes of all sides from which on no more boxes are created, about 100 MB.

If it is smaller, searches take less time and memory, and bounds may be weaker.
"""

MAX_NEAR = 2_000_000
"""Maximum number of integer patterns near the dual prices to enumerate.

If it is smaller, fewer problems are solved to optimality, and attempts that fail end sooner.
"""

SECONDS_PER_OPTION = 3e-7
"""Work of pricing one option in one box, in seconds.

If it is smaller, a solve without a time limit takes longer.
"""

MAX_SHARES = 10_000
"""Maximum number of shares that are tried to lower the bound on the capacity. If it is smaller, the
bound may be weaker.
"""

PER_SIDE = 3
"""Maximum number of patterns that a pricing step adds per side."""


Duals = tuple[Floats, Floats, Floats]
"""Dual prices of the master program.

The arrays contain the price of a client for each class, the prices of units (see `counted`), and
the price of a client for each type of draft units.
"""


@dataclass(frozen=True)
class Column:
    """A fractional pattern, which is a column of the master program.

    Parameters
    ----------
    side
        Index of the side.
    box
        Box of the pattern.
    amounts
        Pairs of an option and its number of clients, which may be fractional.
    value
        Largest value of the pattern in its box.
    bound
        Upper bound on the values of all patterns in the box, net of the dual prices of the clients.
        The bound is valid at the prices at which this pattern was found.
    """

    side: int
    box: tuple[bool, float, float, float, float]
    amounts: tuple[tuple[int, float], ...]
    value: float
    bound: float = field(compare=False)

    @property
    def is_full(self) -> bool:
        """Whether a unit with this pattern is always busy."""
        return self.box[0] or self.box[3] >= 1.0


class Relaxation:
    """The master program, which chooses how many units use each fractional pattern.

    Parameters
    ----------
    prepared
        Arrays of the problem.
    narrow
        Ratio of the ends of a box below which the box is not split.
    penalty
        Cost of a missing client or unit. The value 0 selects a cost that exceeds the value of any
        client.

    Attributes
    ----------
    columns
        Patterns in the master program.
    few
        Whether the problem has at most `FEW_UNITS` units.
    least, most
        Lower and upper bounds on the numbers of units (see `counted`). Initially, they are 0 and
        the number of available units.
    bound
        Best upper bound so far on the value of every plan.
    last
        Upper bound at the last dual prices.
    value
        Optimal value of the master program.
    missing
        Number of missing clients and units in the solution of the master program.
    used
        Patterns in the solution of the master program, with their numbers of units.
    """

    def __init__(self, prepared: Prepared, narrow: float = 1.05, penalty: float = 0.0) -> None:
        problem = prepared.problem
        self.prepared, self.narrow = prepared, narrow
        self.columns: list[Column] = []
        self.most = all_units(problem)
        self.least = [0] * len(self.most)
        self.bound = self.last = math.inf
        self.value, self.missing = -math.inf, 0.0
        self.used: list[tuple[Column, float]] = []
        self.capacity = problem.objective == "capacity"
        self.few = self.most[-1] <= FEW_UNITS
        self.classes = len(problem.classes) if self.few and not self.capacity else 0
        self.covers = list(covers(prepared))
        self.leaves = {
            cover.side: (cover.boxes, np.full(len(cover.boxes), np.inf), np.zeros(1), 0.0)
            for cover in self.covers
        }
        self.penalty = penalty or self._penalty()

    def _penalty(self) -> float:
        """Return a cost per missing client that exceeds the largest contribution of any client."""
        worth = 1.0
        problem = self.prepared.problem
        for cover in self.covers:
            side = self.prepared.sides[cover.side]
            fastest = side.options["weight"] * side.options["tokens"] / cover.floor
            slowest = np.log(side.options["tokens"] / (cover.floor * 1e6))
            most = {
                "goodput": fastest.max(),
                "fair": (side.options["weight"] * np.abs(slowest)).max(),
                "cost": side.unit.price,
                "energy": side.unit.busy + side.options["watts"].max(),
            }
            worth = max(worth, float(most.get(problem.objective, 1.0)))
        return 10.0 * worth

    def solve(self, check: Callable[[], None], gap: float) -> Duals:
        """Add patterns until the relative gap between the bound and the value is at most `gap`.

        Return the dual prices of the last master program.
        """
        while True:
            check()
            duals = self._master()
            bound, found = self._price(check, duals)
            whole = self._share(bound, duals[0]) if self.capacity and bound < math.inf else bound
            self.bound, self.last = min(self.bound, whole), bound
            known = set(self.columns)
            found = [column for column in found if column not in known]
            if not found or bound - self.value <= gap * max(abs(self.value), abs(bound)):
                return duals
            self.columns += found

    def narrow_to(self, narrow: float) -> None:
        """Reduce the width of the boxes to `narrow`, and continue from the patterns in use.

        If the objective depends on rates and no client or unit is missing, the patterns in use are
        kept. Their values are reduced to the lowest values that are possible in their boxes.
        Otherwise, all patterns are dropped.
        """
        objective, kept = self.prepared.problem.objective, []
        for column, _ in self.used if objective in ("goodput", "fair") and not self.missing else ():
            value = column.value / self.narrow
            if objective == "fair":
                of = self.prepared.sides[column.side].options["weight"]
                value = column.value - math.log(self.narrow) * sum(
                    float(of[o]) * amount for o, amount in column.amounts
                )
            kept.append(replace(column, value=value))
        self.narrow, self.columns = narrow, kept

    def _share(self, value: float, of_classes: Floats) -> float:
        """Return an upper bound on the share of the clients that integer numbers of clients reach.

        `value` is an upper bound on the value of all served clients at the dual prices.
        """
        priced = of_classes < 0.0
        clients, prices = np.array(self.prepared.clients)[priced], -of_classes[priced]
        share = value / (prices @ clients)
        for _ in range(MAX_SHARES):
            served = np.ceil(share * clients * (1.0 - 1e-9))
            if prices @ served <= value:
                break
            share = ((served - 1.0) / clients).max()
        return float(share)

    # ------------------------------------------------------------------ pricing

    def _price(self, check: Callable[[], None], duals: Duals) -> tuple[float, list[Column]]:
        """Return the upper bound at the dual prices `duals`, and patterns to add."""
        prepared, problem = self.prepared, self.prepared.problem
        of_classes, of_units, of_drafts = duals
        units = len(problem.verifiers)
        best = np.where(np.array(self.least[:units]) > 0, -np.inf, 0.0)
        found: list[Column] = []
        for cover in self.covers:
            check()
            verifier = prepared.sides[cover.side].verifier
            price = self.unit_price(verifier, of_units)
            top, columns = self._search(cover, duals, price + 1e-12 * abs(price))
            best[verifier] = max(best[verifier], top - of_units[units])
            found += columns
        prices = [*best.tolist(), *of_units[units:].tolist()]
        terms = [
            price * (most if price > 0.0 else few)
            for price, few, most in zip(prices, self.least, self.most, strict=True)
        ]
        if not self.capacity:
            terms += (of_classes * prepared.clients).tolist()
        for p, pool in enumerate(problem.draft_pools):
            gains = (
                float(price) * one.most - prepared.price_of(p)
                for price, one in zip(of_drafts, prepared.drafts, strict=True)
                if one.pool == p
            )
            terms.append(pool.units * max(0.0, *gains, 0.0))
        return math.fsum(terms) + 1e-12 * math.fsum(map(abs, terms)), found

    def _search(
        self, cover: Cover, duals: Duals, threshold: float, every: bool = False
    ) -> tuple[float, list[Column]]:
        """Return an upper bound on the net value of one side's patterns, and the best patterns.

        The net value is the value minus the dual prices of the clients. If `every` is true, all
        boxes above the threshold are split until they are narrow.
        """
        prepared, kernels = self.prepared, self.prepared.kernels
        side = prepared.sides[cover.side]
        sizes, prices = self.sizes(cover, threshold, duals[1]), self.prices(side, duals)
        boxes, bounds, before, full = self.leaves[cover.side]
        if len(boxes) * len(self.covers) < MAX_BOXES and not np.all(boxes["high"][-SPARE:] == 0.0):
            boxes = np.append(boxes, np.zeros(SPARE, boxes.dtype))
            bounds = np.append(bounds, np.full(SPARE, -np.inf))
        # Prices have fallen by `lower` per cached token and unit; the memory limits their effect.
        lower = max(0.0, float(((before - prices) / side.options["memory"]).max()))
        lower = lower * max(0.0, side.unit.room) / side.unit.kv + max(0.0, full - sizes.full)
        bounds += lower * (1.0 + 1e-8)
        self.leaves[cover.side] = boxes, bounds, prices, sizes.full
        columns = np.zeros(PER_SIDE, kernels.Column)
        amounts = np.zeros((PER_SIDE, len(prices)))
        count, looked = kernels.search(
            *(side.unit, side.options, prepared.trips, prepared.objective, sizes, prices),
            *(np.array(prepared.clients, np.float64), every, boxes, bounds, columns, amounts),
        )
        prepared.budget.spend(SECONDS_PER_OPTION * looked * len(prices))
        found = []
        for column, row in zip(columns[:count].tolist(), amounts.tolist(), strict=False):
            place, worth, bound = column
            held = tuple((option, amount) for option, amount in enumerate(row) if amount)
            found.append(Column(cover.side, boxes[place].item(), held, worth, bound))
        return found[0].bound if found else threshold, found

    def split_near(self, duals: Duals, lost: float, check: Callable[[], None]) -> None:
        """Split all boxes that may contain patterns near the dual prices until they are narrow.

        A pattern is near the dual prices if it loses at most `lost` at these prices.
        """
        for cover in self.covers:
            check()
            verifier = self.prepared.sides[cover.side].verifier
            threshold = self.unit_price(verifier, duals[1])
            threshold -= lost + 1e-9 * abs(threshold)  # include ties despite rounding
            self._search(cover, duals, threshold, every=True)

    def near(self, duals: Duals, lost: float, divisor: int = 1) -> list[Pattern] | None:
        """Return all integer patterns whose loss at the dual prices is at most `lost`.

        Among the patterns that serve the same clients, only the most valuable pattern is returned.
        The result is None if there are more than `MAX_NEAR` / `divisor` patterns. The last search
        must have been `split_near` with the same prices, and with the same or a larger `lost`.
        """
        prepared, tasks = self.prepared, list[Task]()
        for cover in self.covers:
            side = prepared.sides[cover.side]
            boxes, bounds, prices, _ = self.leaves[cover.side]
            threshold = self.unit_price(side.verifier, duals[1]) - lost
            sizes = self.sizes(cover, threshold, duals[1])
            tasks.append((cover.side, sizes, prices, boxes[bounds >= threshold]))
        return listed(prepared, MAX_NEAR // divisor, most_clients(prepared), tasks)

    def sizes(self, cover: Cover, threshold: float, of_units: Floats) -> Any:
        """Return the kernel record with the parameters of a search in the boxes of one side."""
        v = self.prepared.sides[cover.side].verifier
        full = self.unit_price(v, of_units, True) - self.unit_price(v, of_units)
        return self.prepared.kernels.Sizes(
            *(cover.base, cover.floor, self.narrow, threshold, full, self.classes)
        )

    def unit_price(self, verifier: int, of_units: Floats, is_full: bool = False) -> float:
        """Return the dual price of one unit of a verifier.

        `is_full` tells whether the unit is always busy.
        """
        return float(of_units[counted(self.prepared.problem, verifier, is_full)].sum())

    @staticmethod
    def prices(side: Side, duals: Duals) -> Floats:
        """Return the dual price of one client for each option of a side."""
        of_classes, _, of_drafts = duals
        of_pools = np.append(of_drafts, 0.0)[side.options["draft"]]  # index -1: no draft unit
        return np.asarray(of_classes[side.options["cls"]] + of_pools)

    # ------------------------------------------------------------------ the master program

    def _master(self) -> Duals:
        """Solve the master program, store its solution, and return its dual prices."""
        prepared = self.prepared
        frame = Frame.of(prepared, self.least, self.most, whole=False)
        program = frame.program
        first = len(program.costs)
        for column in self.columns:
            side = prepared.sides[column.side]
            kinds = counted(prepared.problem, side.verifier, column.is_full)
            rows = {frame.verifiers[kind]: 1.0 for kind in kinds}
            program.column(column.value, rows | frame.clients(side, column.amounts))
        if not self.capacity:
            for row in frame.classes:
                program.column(-self.penalty, {row: 1.0})
        for row, units in zip(frame.verifiers, self.least, strict=True):
            if units:
                program.column(-self.penalty, {row: 1.0})
        found = program.solve(prepared.budget.remaining)
        prepared.budget.spend(found.work)
        # Missing units are allowed, so HiGHS failed for numerical reasons or ran out of time.
        if found.amounts is None:
            prepared.budget.check()
            raise OutOfWork
        self.value = found.value
        self.used = [
            (c, a)
            for c, a in zip(self.columns, found.amounts[first:].tolist(), strict=False)
            if a > 1e-9
        ]
        missing = found.amounts[first + len(self.columns) :]
        self.missing = 0.0 if self.capacity else float(missing.sum())
        duals = found.duals
        # For "capacity", more clients never reduce the share.
        of_classes = np.minimum(duals[frame.classes], 0.0 if self.capacity else math.inf)
        return of_classes, duals[frame.verifiers], duals[frame.drafts]
