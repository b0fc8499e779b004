"""Choice of the number of units that use each pattern, by an integer program solved with HiGHS."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from specopt.models.placement.problem import PlacementProblem
from specopt.solvers.placement.patterns import Pattern, widest
from specopt.solvers.placement.prepare import Prepared, Side
from specopt.solvers.placement.program import Program

Choice = tuple[dict[Pattern, int] | None, float]
"""A tuple (patterns, bound): chosen patterns with their numbers of units, and an upper bound on the
value of every choice.

The first entry is None if no feasible choice was found. The bound is -inf if no choice is feasible.
"""


def all_units(problem: PlacementProblem) -> list[int]:
    """Return the available units of each verifier and their total, listed twice.

    The first half of the list limits all units, and the second half limits the units that are
    always busy.
    """
    units = [one.units for one in problem.verifiers]
    return 2 * [*units, sum(units)]


def counted(problem: PlacementProblem, verifier: int, is_full: bool = False) -> list[int]:
    """Return the indices of the entries of `all_units` that count a unit of the verifier."""
    kinds = 1 + len(problem.verifiers)
    once = [verifier, kinds - 1]
    return once + [kinds + kind for kind in once] * is_full


@dataclass(frozen=True)
class Frame:
    """A program with the rows that every plan satisfies.

    The columns are the numbers of draft units and, for the objective "capacity", the share of
    clients served.

    Parameters
    ----------
    program
        The linear or integer program.
    classes
        Indices of the rows that count the clients of each class.
    verifiers
        Indices of the rows that count units (see `counted`).
    drafts
        Indices of the rows that count the clients of each type of draft units.
    """

    program: Program
    classes: range
    verifiers: range
    drafts: range

    def clients(self, side: Side, entries: Iterable[tuple[int, float]]) -> dict[int, float]:
        """Return the coefficients of a unit's clients in the rows that count clients.

        `entries` contains pairs of an option and its number of clients.
        """
        found: dict[int, float] = defaultdict(float)
        for option, amount in entries:
            way = side.ways[option]
            found[self.classes[way.cls]] += amount
            if way.draft >= 0:
                found[self.drafts[way.draft]] += amount
        return found

    @classmethod
    def of(
        cls,
        prepared: Prepared,
        least: Sequence[int] = (),
        most: Sequence[int] = (),
        whole: bool = True,
    ) -> Frame:
        """Build the program with the rows that every plan satisfies.

        `least` and `most` are bounds on the numbers of units (see `counted`). By default, they are
        0 and the number of available units.
        """
        problem, program = prepared.problem, Program()
        carried = problem.objective == "capacity"
        clients = [0.0 if carried else float(count) for count in prepared.clients]
        classes = program.rows(clients, [math.inf] * len(clients) if carried else clients)
        units = all_units(problem)
        verifiers = program.rows(least or [0.0] * len(units), most or units)
        drafts = program.rows([-math.inf] * len(prepared.drafts), [0.0] * len(prepared.drafts))
        pools = program.rows(
            [0.0] * len(problem.draft_pools), [one.units for one in problem.draft_pools]
        )
        for row, draft in zip(drafts, prepared.drafts, strict=True):
            held = {row: -float(draft.most), pools[draft.pool]: 1.0}
            program.column(
                -prepared.price_of(draft.pool), held, problem.draft_pools[draft.pool].units, whole
            )
        if carried:
            shares = {
                row: -float(count) for row, count in zip(classes, prepared.clients, strict=True)
            }
            program.column(1.0, shares)
        return cls(program, classes, verifiers, drafts)


def choose(
    prepared: Prepared,
    patterns: Sequence[Pattern],
    reached: float = -math.inf,
    penalty: float = 0.0,
) -> Choice:
    """Choose the number of units that use each pattern, such that every client is served.

    The result is the best choice and an upper bound (see `Choice`). For the objective "capacity",
    the choice serves the largest possible share of each class. The linear relaxation is solved
    first. A choice that improves on the incumbent cannot use a pattern whose reduced cost exceeds
    the gap between the relaxation and the incumbent.

    Parameters
    ----------
    prepared
        Arrays of the problem.
    patterns
        Patterns of units, with their values.
    reached
        Value of the incumbent. Patterns that no better choice can use are excluded.
    penalty
        Cost per client that is not served; 0 if all clients must be served.
    """
    problem, frame = prepared.problem, Frame.of(prepared)
    program, capacity = frame.program, problem.objective == "capacity"
    used = [one.drafted(prepared) for one in patterns]
    met: dict[int, range] = {}
    pooled = [problem.draft_pools[draft.pool].units for draft in prepared.drafts]
    for d in {d for of in used for d in of}:
        # If a type is used, some client has its context, some client has its length, and its units
        # have at least its minimum number of clients.
        met[d] = program.rows([-math.inf] * 3, [0.0] * 3)
        full = prepared.drafts[d].least - 1.0 + 1.0 / pooled[d]
        own = dict(zip(met[d], (1.0, 1.0, full), strict=True))
        program.columns[d] = {**program.columns[d], **own}
    first = len(program.costs)
    for one, drafted in zip(patterns, used, strict=True):
        prepared.budget.check()
        side = prepared.sides[one.side]
        held = frame.clients(side, one.entries) | {frame.verifiers[side.verifier]: 1.0}
        for d, count in drafted.items():
            context, length = widest(prepared, one, d)
            met_by = -float(pooled[d] * context), -float(pooled[d] * length), -float(count)
            held |= zip(met[d], met_by, strict=True)
        program.column(0.0 if capacity else one.value, held, whole=True)
    if penalty:
        for row in frame.classes:
            program.column(-penalty, {row: 1.0})
    unit = (not capacity and max((abs(one.value) for one in patterns), default=0.0)) or 1.0
    # Presolve is off: comparing thousands of columns would take longer than solving the program.
    relaxed = replace(program, whole=[]).solve(prepared.budget.remaining, unit=unit, presolve=False)
    prepared.budget.spend(relaxed.work)
    gained = relaxed.bound - reached
    if relaxed.bound == -math.inf:
        return None, relaxed.bound
    if gained <= 1e-9 * abs(reached) < math.inf:
        return None, max(reached, relaxed.bound)
    lost = gained * (1.0 + 1e-9) + 1e-8 * unit
    losing = np.flatnonzero(relaxed.losses > lost)
    for column in losing:
        program.most[column] = 0.0
    prepared.budget.check()
    left = prepared.budget.work_left
    found = program.solve(prepared.budget.remaining, unit=unit, work=left)
    prepared.budget.spend(found.work)
    # A plan is known, or the empty plan is feasible, so a report of infeasibility is wrong.
    feasible = capacity or (reached > -math.inf and not losing.size)
    bound = relaxed.bound if feasible and found.bound == -math.inf else found.bound
    bound = max(reached, min(bound, relaxed.bound))
    if found.amounts is None:
        return None, bound
    counts = map(round, found.amounts[first:].tolist())  # the last columns are unserved clients
    return {one: count for one, count in zip(patterns, counts, strict=False) if count}, bound
