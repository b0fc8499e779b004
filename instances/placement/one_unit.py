"""Functions that compute the yield of one verifier unit with identical clients.

All clients use the same source of drafts. The yield is the number of clients that the unit serves
or, without a minimum rate, the throughput of each client. It is computed from measured passes,
because lines fitted to measurements that contain steps could change the result.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from specopt.models.fields import Floats
from specopt.models.pass_time import PassTime, Which
from specopt.models.pass_time.pieces import PassPieces
from specopt.models.placement.plan import Place, PlacementPlan
from specopt.models.placement.problem import PlacementProblem

MAX_CLIENTS = 10_000
"""Maximum number of clients with which a unit is evaluated."""

SIZES = np.unique(np.concatenate([np.arange(1.0, 257.0), np.exp2(np.arange(8.0, 15.0))]))
"""Batch sizes at which pass times are computed, with linear interpolation between them."""

COARSE = np.unique(np.round(np.exp2(np.arange(0.0, 14.0, 0.25)))).tolist()
"""Batch sizes at which the throughput is computed to find its maximum."""

STEP = 0.97
"""Ratio of successive numbers of clients in a descending search.

Values closer to 1 make the search slower, but the result is exact more often.
"""


@dataclass(frozen=True, eq=False)
class MeasuredPieces(PassPieces):
    """Passes whose times are measured for the judge and approximated by lines for all other code.

    Beyond the measured range, the duration of a pass is the maximum of two values, the extrapolated
    measured time and the value from the lines. For the lower limit, the minimum is used instead.

    Parameters
    ----------
    rows
        Coefficients of the lines.
    times
        Measured pass times.
    which
        Whether to use the measured times or one of their confidence limits.
    known
        Cache of computed times, by new and cached tokens per sequence.
    """

    times: PassTime
    which: Which
    known: dict[tuple[float, float], Floats] = field(default_factory=dict)

    def at(self, sequences: float, new_tokens: float, cached_tokens: float) -> float:
        """Return the duration of one pass, in seconds."""
        each = new, cached = round(new_tokens / sequences, 9), round(cached_tokens / sequences, 9)
        if each not in self.known:
            at = SIZES, np.full_like(SIZES, new), np.full_like(SIZES, cached)
            found = self.times.seconds(*at, self.which)
            work = np.column_stack([np.ones(len(SIZES)), SIZES, SIZES * new, SIZES * cached])
            lines = (work @ self.rows.T).max(axis=1)
            beyond = (np.minimum if self.which == "lower" else np.maximum)(found, lines)
            self.known[each] = np.where(self.times.covers(*at), found, beyond)
        return float(np.interp(sequences, SIZES, self.known[each]))


@dataclass(frozen=True)
class Figure:
    """The yield of a verifier unit for one source of drafts, at the best draft length.

    Parameters
    ----------
    place
        Source of the drafts.
    value
        Number of clients that a unit serves at their minimum rate or, without a minimum rate, the
        number of tokens per second for each client.
    draft_tokens
        Draft length; 0 if there are no drafts.
    overlap
        Whether devices draft ahead while the verifier works.
    batch
        Mean number of sequences in a pass.
    band
        Worst-case and best-case values within the measurement error; None if the error is unknown.
    """

    place: Place
    value: float
    draft_tokens: int = 0
    overlap: bool = False
    batch: float = 0.0
    band: tuple[float, float] | None = None


def places_of(problem: PlacementProblem) -> list[Place]:
    """Return the sources of drafts that a problem allows, beginning with "none"."""
    (drafter,), (of,) = problem.drafters, problem.classes
    there = (True, drafter.beside, drafter.server, of.device_seconds_per_token)
    places: tuple[Place, ...] = ("none", "beside", "pool", "device")
    return [place for place, known in zip(places, there, strict=True) if known]


def best_length(problem: PlacementProblem, place: Place, value: float = 0.0) -> Figure:
    """Return the yield of a verifier unit for one source of drafts, at the best draft length.

    Only lengths whose yield exceeds `value` are considered; ties go to the shortest length.
    """
    (of,), found = problem.classes, Figure(place, 0.0)
    most = 0 if place == "none" else problem.max_draft_tokens
    for tokens in range(min(1, most), most + 1):
        for overlap in (False, True) if place == "device" and problem.overlap else (False,):
            option = Figure(place, 0.0, tokens, overlap)

            def serves(count: int, option: Figure = option) -> bool:
                return problem.serves(everywhere(problem, option, count))

            if of.min_tokens_per_second:
                # rates are not monotone in the number of clients, so search from above
                above = count = _limit(problem, option) if serves(1) else 0
                while count > value and not serves(count):
                    above = count
                    count = min(count - 1, int(STEP * count))
                while above - count > 1:
                    middle = (above + count) // 2
                    above, count = (above, middle) if serves(middle) else (middle, count)
            else:
                count = of.clients if serves(of.clients) else 0
            plan = everywhere(problem, option, max(1, count))
            (group,) = plan.groups
            unit = problem.unit(plan, group)
            entry = problem.entry(plan, group, group.clients[0])
            rate = entry.tokens / unit.seconds[0] if count else 0.0
            reached = float(count) if of.min_tokens_per_second else rate
            if reached > value:
                value = reached
                found = Figure(place, reached, tokens, overlap, unit.batch)
    return found


def _limit(problem: PlacementProblem, option: Figure) -> int:
    """Return an upper bound on the number of clients that a unit can serve at their minimum rate.

    The bound follows from the number of tokens generated by a unit that is always busy.
    """
    plan = everywhere(problem, option, 1)
    (group,), (verifier,), (of,) = plan.groups, problem.verifiers, problem.classes
    entry = problem.entry(plan, group, group.clients[0])
    passes, context = verifier.passes, of.context_tokens
    most = max(size / passes.at(size, size * entry.new_tokens, size * context) for size in COARSE)
    share = 1.0 - verifier.reserved_share
    return int(min(MAX_CLIENTS, 1.1 * most * share * entry.tokens / of.min_tokens_per_second))


def everywhere(
    problem: PlacementProblem, option: Figure, clients: int, units: int = 1
) -> PlacementPlan:
    """Return the plan in which all clients use the same source of drafts.

    The clients are spread evenly over the units.
    """
    (of,), (drafter,), (verifier,) = problem.classes, problem.drafters, problem.verifiers
    least, more = divmod(clients, units)
    drafts: dict[str, Any] = {"draft_tokens": option.draft_tokens, "drafter": drafter.name}
    own: dict[str, Any] = {"place": option.place, "overlap": option.overlap}
    beside, servers = None, []
    if option.place == "beside":
        beside = drafts
    elif option.place == "device":
        own |= drafts
    elif option.place == "pool":
        own |= {"draft_tokens": option.draft_tokens, "draft_group": 0}
        count = min(clients, problem.draft_pools[0].units)
        pool = {"pool": problem.draft_pools[0].name, "drafter": drafter.name, "units": count}
        servers.append(pool | {"per_unit": -(-clients // count)})
    groups = [
        {
            "verifier": verifier.name,
            "units": count,
            "beside": beside,
            "clients": [{"class": of.name, "per_unit": size, **own}],
        }
        for size, count in ((least + 1, more), (least, units - more))
        if size * count
    ]
    return PlacementPlan.from_dict({"groups": groups, "draft_groups": servers})
