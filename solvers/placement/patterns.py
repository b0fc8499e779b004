"""Patterns, each of which describes the clients that one unit serves.

The value of a pattern is the unit's contribution to the objective. A plan specifies the number of
units that use each pattern.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice, repeat

import numpy as np

from specopt.models.placement.plan import Beside, DraftGroup, PlacementPlan, Served, UnitGroup
from specopt.models.placement.problem import PlacementProblem
from specopt.solvers.placement.prepare import Prepared, most_options, prepare

SLACK = 0.9e-9
"""Relative tolerance for memory and minimum rates when patterns are evaluated.

It is slightly smaller than the tolerance of the judge.
"""

SECONDS_PER_PATTERN = 1e-5
"""Work of building and evaluating one pattern, in seconds."""


Use = tuple[tuple[int, ...], tuple[tuple[int, int, bool, bool], ...]]
"""The number of clients served by class, and a tuple for every type of draft units in use.

The tuple contains the index of the type, the number of clients that use the type, and two flags.
The flags tell whether some client has the type's largest context, and whether some client has the
type's largest draft length.
"""


@dataclass(frozen=True)
class Pattern:
    """The clients that one unit serves, and the value of the unit.

    Parameters
    ----------
    side
        Index of the side, that is, of the verifier with the drafter next to it (see `Side`).
    entries
        Pairs of an option and its number of clients, sorted by option.
    value
        Contribution of the unit to the objective, where larger is better.
    """

    side: int
    entries: tuple[tuple[int, int], ...]
    value: float = 0.0

    def served(self, prepared: Prepared) -> list[int]:
        """Return the number of clients that the pattern serves, by class."""
        found = [0] * len(prepared.clients)
        for option, count in self.entries:
            found[prepared.sides[self.side].ways[option].cls] += count
        return found

    def use(self, prepared: Prepared) -> Use:
        """Return the clients that the pattern serves, and the draft units in use (see `Use`)."""
        drafted = self.drafted(prepared).items()
        types = sorted((d, count, *widest(prepared, self, d)) for d, count in drafted)
        return tuple(self.served(prepared)), tuple(types)

    def drafted(self, prepared: Prepared) -> dict[int, int]:
        """Return the number of clients that draft on draft units, by type of draft unit."""
        found: dict[int, int] = defaultdict(int)
        for option, count in self.entries:
            draft = prepared.sides[self.side].ways[option].draft
            if draft >= 0:
                found[draft] += count
        return found


def valued(prepared: Prepared, patterns: Sequence[Pattern]) -> list[Pattern]:
    """Return the distinct patterns that satisfy memory and minimum rates, with their values."""
    if prepared.kernels is None:
        every = [judged(prepared, one) for one in dict.fromkeys(patterns)]
        return [one for one in every if one.value > -math.inf]
    by_side: dict[int, dict[tuple[tuple[int, int], ...], None]] = defaultdict(dict)
    for one in patterns:
        by_side[one.side][one.entries] = None
    found = []
    for side, listed in by_side.items():
        of = prepared.sides[side]
        sizes = np.array([len(one) for one in listed])
        chosen, counts = np.zeros((2, len(listed), int(sizes.max())), np.int64)
        for row, entries in enumerate(listed):
            prepared.budget.check()
            prepared.budget.spend(SECONDS_PER_PATTERN)
            for at, (option, count) in enumerate(entries):
                chosen[row, at], counts[row, at] = option, count
        out = np.empty(len(listed))
        unit = of.unit, of.options, prepared.trips
        prepared.kernels.values(*unit, chosen, counts, sizes, prepared.objective, SLACK, out)
        priced = map(Pattern, repeat(side), listed, out.tolist())
        found += [one for one in priced if one.value > -math.inf]
    return found


def sign(problem: PlacementProblem) -> float:
    """Return the factor, 1 or -1, by which the objective is multiplied so that larger is better."""
    return -1.0 if problem.sense == "minimize" else 1.0


def judged(prepared: Prepared, pattern: Pattern) -> Pattern:
    """Return a pattern with the value that the judge computes.

    The value is -inf if the pattern is infeasible.
    """
    prepared.budget.check()
    prepared.budget.spend(1.0)
    plan, problem = plan_of(prepared, {pattern: 1}), prepared.problem
    if not problem.serves(plan):
        return replace(pattern, value=-math.inf)
    return replace(pattern, value=sign(problem) * problem.evaluate(plan).objective)


def count_exact(problem: PlacementProblem, enough: int) -> float:
    """Return the number of patterns that fit in memory, or infinity if the number exceeds `enough`.

    Minimum rates are ignored. Draft units with different numbers of clients are distinguished.
    """
    # Every option that fits in memory is a pattern.
    if most_options(problem, exact=True) > 10 * enough:
        return math.inf
    every = all_patterns(prepare(problem, exact=True))
    total = sum(1 for _ in islice(every, enough + 1))
    return total if total <= enough else math.inf


def most_clients(prepared: Prepared) -> list[int]:
    """Return the maximum number of clients of each class on one unit.

    For the "capacity" objective, the maximum is the number of clients that fit in the memory of one
    unit. For all other objectives, it is the number of clients in the class.
    """
    if prepared.problem.objective != "capacity":
        return prepared.clients
    most = [0] * len(prepared.clients)
    for side in prepared.sides:
        for way, option in zip(side.ways, side.options, strict=True):
            fits = int(max(0.0, side.unit.room) * (1.0 + SLACK) / (side.unit.kv * option["memory"]))
            most[way.cls] = max(most[way.cls], fits)
    return most


def all_patterns(prepared: Prepared) -> Iterator[Pattern]:
    """Yield every nonempty pattern that fits in memory, regardless of minimum rates."""
    for index, side in enumerate(prepared.sides):
        needs = (side.unit.kv * side.options["memory"]).tolist()
        stack: list[tuple[tuple[tuple[int, int], ...], int, float, list[int]]]
        stack = [((), 0, side.unit.room + SLACK * abs(side.unit.room), most_clients(prepared))]
        while stack:
            entries, first, room, left = stack.pop()
            prepared.budget.check()
            for option in range(first, len(needs)):
                cls = side.ways[option].cls
                if not left[cls] or needs[option] > room:
                    continue
                count = 1 + (entries[-1][1] if entries and entries[-1][0] == option else 0)
                more = (*entries[: len(entries) - (count > 1)], (option, count))
                rest = left.copy()
                rest[cls] -= 1
                stack.append((more, option, room - needs[option], rest))
                yield Pattern(index, more)


def undominated(prepared: Prepared, patterns: Sequence[Pattern]) -> list[Pattern]:
    """Return the patterns that are not dominated by another pattern.

    Among the patterns that agree in verifier, clients per class and draft units, only the most
    valuable pattern remains.
    """
    best: dict[tuple[object, ...], Pattern] = {}
    for one in patterns:
        prepared.budget.check()
        key = prepared.sides[one.side].verifier, *one.use(prepared)
        held = best.get(key)
        if held is None or one.value > held.value:
            best[key] = one
    return list(best.values())


def widest(prepared: Prepared, pattern: Pattern, draft: int) -> tuple[bool, bool]:
    """Return whether a pattern reaches the largest context and draft length of a draft type.

    The two results tell whether some client has the draft type's largest context, and whether some
    client has the draft type's largest draft length. Only clients of the pattern that use this
    draft type are considered.
    """
    of, side = prepared.drafts[draft], prepared.sides[pattern.side]
    ways = [side.ways[option] for option, _ in pattern.entries if side.ways[option].draft == draft]
    contexts = [prepared.problem.classes[way.cls].context_tokens for way in ways]
    return (
        max(contexts) == of.context,
        of.length is None or max(way.length for way in ways) == of.length,
    )


def plan_of(prepared: Prepared, used: Mapping[Pattern, int]) -> PlacementPlan:
    """Return the plan in which `used` gives the number of units for each pattern.

    The plan contains the minimum number of draft units.
    """
    problem = prepared.problem
    held: dict[int, int] = defaultdict(int)
    for pattern, units in used.items():
        for draft, count in pattern.drafted(prepared).items():
            held[draft] += units * count
    index = {draft: at for at, draft in enumerate(held)}
    groups = []
    for pattern, units in used.items():
        side, served = prepared.sides[pattern.side], []
        for option, count in pattern.entries:
            way = side.ways[option]
            away = way.place in ("device", "pool")
            served.append(
                Served(
                    class_=problem.classes[way.cls].name,
                    per_unit=count,
                    place=way.place,
                    drafter=problem.drafters[way.drafter].name if way.place == "device" else None,
                    draft_tokens=way.length if away else None,
                    overlap=way.overlap,
                    draft_group=index[way.draft] if way.place == "pool" else None,
                )
            )
        beside = None
        if side.drafter >= 0:
            beside = Beside(drafter=problem.drafters[side.drafter].name, draft_tokens=side.length)
        name = problem.verifiers[side.verifier].name
        groups.append(UnitGroup(verifier=name, units=units, beside=beside, clients=tuple(served)))
    drafts = []
    for draft, clients in held.items():
        of = prepared.drafts[draft]
        number, pool = -(-clients // of.most), problem.draft_pools[of.pool]
        drafter = problem.drafters[of.drafter].name
        each = -(-clients // number)
        drafts.append(DraftGroup(pool=pool.name, drafter=drafter, units=number, per_unit=each))
    return PlacementPlan(groups=tuple(groups), draft_groups=tuple(drafts))
