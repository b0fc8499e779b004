"""Advice on where to run the draft model in a deployment.

The advice compares the possible drafting places, and reports break-even points, which are parameter
values at which the best place changes.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from specopt.instances.deployment.deployment import Deployment
from specopt.instances.deployment.proposal import Proposal
from specopt.instances.placement.from_deployment import as_measured
from specopt.instances.placement.one_unit import Figure, best_length, everywhere, places_of
from specopt.instances.placement.parts import spread
from specopt.models.acceptance import rate_that_yields
from specopt.models.named import NamedRates, NamedSeconds, NamedTrips
from specopt.models.placement.plan import Place, PlacementPlan
from specopt.models.placement.problem import PlacementProblem
from specopt.models.problem import ROUNDING
from specopt.models.result import Result, Status, Termination

PLACES = {
    "none": "without drafts",
    "beside": "beside the verifier",
    "pool": "on drafting servers",
    "device": "on the devices",
}
"""Descriptions of the drafting places, in order of increasing resource needs. Ties between places
are broken in favour of the earlier place.
"""

MIN_SECONDS, MAX_SECONDS, CLOSE = 1e-4, 10.0, 1.05
"""Ends of the interval in which break-even points are searched for, in seconds, and the ratio of
upper to lower bracket end at which the bisection stops.
"""

MIN_GAIN = 2e-3
"""Minimum relative gain at which a place counts as better in the search for break-even points."""


def text_of(figure: Figure) -> str:
    """Describe the drafting place and the draft length of a `Figure`."""
    words, tokens = PLACES[figure.place], figure.draft_tokens
    return f"{words}, {tokens} token{'' if tokens == 1 else 's'}" if tokens else words


def number_of(figure: Figure) -> str:
    """Format the value of a `Figure` together with its uncertainty band."""
    band = "" if figure.band is None else " ({:.4g} to {:.4g})".format(*figure.band)
    return f"{figure.value:.4g}{band}"


@dataclass(frozen=True, kw_only=True)
class Advice:
    """Advice on where to draft in a deployment.

    Parameters
    ----------
    figures
        Results for every drafting place, best first.
    result
        Result that contains the best known plan and the solver's proof; None if the problem was
        not solved.
    lines
        Sentences that state the advice and explain the break-even points.
    measure
        Sentences that name measurements to add, because the plan exceeds the measured range.
    break_even
        Break-even points by name; None marks a break-even point that does not exist.
        `round_trip_seconds` is the longest mean round trip at which drafting on the devices is
        best, and `device_seconds_per_token` is the longest time per draft token at which it is
        best. `acceptance_rate` is the lowest acceptance rate at which drafts pay off.
    """

    figures: tuple[Figure, ...]
    result: Result | None
    lines: tuple[str, ...]
    measure: tuple[str, ...]
    break_even: dict[str, float | None]

    def to_dict(self) -> dict[str, Any]:
        """Return the advice as JSON-compatible data."""
        return {
            "places": [dataclasses.asdict(one) for one in self.figures],
            "lines": list(self.lines),
            "break_even": self.break_even,
        }


def advise(known: Deployment, proposal: Proposal, result: Result | None = None) -> Advice:
    """Compare the drafting places of a deployment using its measured forward passes.

    The advice contains the performance at each place, the break-even points and the best plan.

    Parameters
    ----------
    known
        Deployment that the user described.
    proposal
        Problem that was created from the deployment.
    result
        Result for the problem; None if the problem was not solved.
    """
    problem = proposal.problem
    assert isinstance(problem, PlacementProblem)
    if not len(problem.classes) == len(problem.drafters) == len(problem.verifiers) == 1:
        return Advice(figures=(), result=result, lines=(), measure=(), break_even={})
    judge = as_measured(known, proposal)
    alone = {place: best_length(judge, place) for place in places_of(judge)}
    if _has_limits(known):
        ends = as_measured(known, proposal, "upper"), as_measured(known, proposal, "lower")
        for place, one in alone.items():
            values = [one.value, *(best_length(end, place).value for end in ends)]
            alone[place] = dataclasses.replace(one, band=(min(values), max(values)))
    ranked = sorted(alone.values(), key=lambda one: -one.value)
    if result is not None:
        result = _best_plan(problem, judge, result, ranked)
        groups = result.plan.groups if isinstance(result.plan, PlacementPlan) else ()
        planned = {one.place for group in groups for one in group.clients}
        # the plan's place is first, even if a better place needs no fewer units
        ranked.sort(key=lambda one: one.place not in planned)
    turns = list(_turns(judge, alone))
    return Advice(
        figures=tuple(ranked),
        result=result,
        lines=(
            _headline(known, problem, ranked),
            *(line for _, _, line in turns),
            *_units(known, problem, result),
        ),
        measure=tuple(_beyond(known, problem, ranked[0])),
        break_even={name: turn for name, turn, _ in turns},
    )


def _headline(known: Deployment, problem: PlacementProblem, ranked: list[Figure]) -> str:
    first, *rest = ranked
    (of,) = problem.classes
    least = of.min_tokens_per_second
    what = (
        f"clients per unit at {1e3 / least:.4g} ms per token"
        if least
        else f"tokens/s for each of {of.clients:,} clients"
    )
    if not any(one.value for one in ranked):
        return f"No place meets {1e3 / least:.4g} ms per token, not even for one client."
    begins = f"Draft {text_of(first)}" if first.draft_tokens else "Do not draft"
    if any(one.value > first.value for one in rest):
        begins += " (another place serves more clients per unit, but needs as many units)"
    shown = [
        f"{begins}: {number_of(first)} {what}",
        *(f"{text_of(one)}: {number_of(one)}" for one in rest),
    ]
    line = "; ".join(shown) + "."
    rivals = [one for one in rest if first.band and one.band and one.band[1] >= first.band[0]]
    if not rivals:
        return line
    unsure = known.acceptance is None or known.acceptance.has_limits
    passes = ", ".join(
        f"of {math.ceil(one.batch):,} sequences with {one.draft_tokens + 1} new tokens"
        for one in (first, rivals[0])
    )
    measure = "acceptance and " if unsure else ""
    return f"Too close to call; measure {measure}passes {passes}. {line}"


def _best_plan(
    problem: PlacementProblem, judge: PlacementProblem, result: Result, ranked: list[Figure]
) -> Result:
    """Return the result, with its plan replaced if a plan with a single place is at least as good.

    The plans are compared using the measured forward passes. The comparison is lexicographic: by
    feasibility, objective, power, and the evenness of the spread of clients over units.
    """
    (of,), (verifier,) = problem.classes, problem.verifiers
    plans: list[Any] = []
    for one in ranked:
        units = math.ceil(of.clients / one.value) if one.value and of.min_tokens_per_second else 1
        if one.value and one.place != "pool" and units <= verifier.units:
            plans.append(everywhere(problem, one, of.clients, units))
    least = None
    chosen: Any = result.plan
    for plan in (*plans, chosen):
        if plan is None or problem.violations(plan):
            continue
        found = judge.evaluate(plan)
        worth = found.objective if problem.sense == "minimize" else -found.objective
        key = (bool(judge.violations(plan)), float(f"{worth:.9g}"), *found.tie_break)
        if least is None or key < least:
            chosen, least = plan, key
    if chosen is result.plan:
        return result
    found = problem.evaluate(chosen)
    gap, bound = result.gap, result.bound
    is_tie = math.isclose(found.objective, result.objective or 0.0, rel_tol=ROUNDING)
    if not is_tie:
        gap = None if bound is None else problem.gap(found.objective, bound)
    return dataclasses.replace(
        result,
        plan=chosen,
        objective=found.objective,
        terms=found.terms,
        gap=gap,
        explanation=None,
        status=result.status if is_tie else Status.FEASIBLE,
        termination=result.termination if is_tie else Termination.EXHAUSTED,
        stats={**result.stats, "plan_by": "one place for all"},
    )


def _turns(
    problem: PlacementProblem, alone: Mapping[Place, Figure]
) -> Iterator[tuple[str, float | None, str]]:
    """Yield a tuple (name, value, sentence) for each break-even point.

    If devices can draft, the first two points are the longest round trip and the longest time per
    draft token at which drafting on the devices is best.
    """
    others = max(one.value for place, one in alone.items() if place != "device")
    (drafter,), (of,), (verifier,) = problem.drafters, problem.classes, problem.verifiers

    def better(place: Place, than: float, **fields: Any) -> bool:
        near = dataclasses.replace(problem, classes=(dataclasses.replace(of, **fields),))
        return best_length(near, place, than * (1.0 + MIN_GAIN)).value > 0.0

    def limit(name: str, form: str, now: float, value: Callable[[float], Any]) -> Any:
        def holds(seconds: float) -> bool:
            return better("device", others, **{name: value(seconds)})

        turn = _last(holds, MIN_SECONDS, MAX_SECONDS)
        best, end = ("not best even at", MIN_SECONDS) if turn is None else ("best up to", turn)
        line = f"Drafting on the devices is {best} {form.format(f'{1e3 * end:.3g}')}"
        return name, turn, f"{line}; the present value is {1e3 * now:.3g} ms."

    trips, tokens = of.round_trip_seconds, of.device_seconds_per_token
    if "device" in alone and others:
        assert trips is not None and tokens is not None, "devices have both"
        yield limit(
            "round_trip_seconds",
            "a mean round trip of {} ms",
            float(np.mean(trips.values[verifier.name])),
            lambda trip: NamedTrips({verifier.name: spread(trip)}),
        )
        yield limit(
            "device_seconds_per_token",
            "{} ms per draft token",
            tokens.values[drafter.name],
            lambda seconds: NamedSeconds({drafter.name: seconds}),
        )

    def useless(rate: float) -> bool:
        rates = NamedRates({drafter.name: np.array(rate)})
        return not any(better(place, alone["none"].value, acceptance=rates) for place in alone)

    if len(alone) > 1 and any(one.value for one in alone.values()):
        rate = _last(useless, 0.01, 1.0)
        own = of.accepted(drafter.name, problem.max_draft_tokens)
        same = rate_that_yields(1.0 + float(np.cumprod(own[:-1]).sum()), len(own) - 1)
        which = "any rate" if rate is None else "no rate" if rate == 1.0 else f"over {rate:.2f}"
        line = f"Acceptance at which drafts pay off: {which}; the present rate is {same:.2f}."
        yield "acceptance_rate", None if rate == 1.0 else rate, line


def _last(holds: Callable[[float], bool], low: float, high: float) -> float | None:
    """Return the largest value at which a monotone condition holds, or None if it fails at `low`.

    The condition must hold up to some value and fail above that value. The value is found by
    bisection on a logarithmic scale between `low` and `high`.
    """
    if not holds(low):
        return None
    if holds(high):
        return high
    while high > CLOSE * low:
        middle = (low * high) ** 0.5
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low


def _units(known: Deployment, problem: PlacementProblem, result: Result | None) -> list[str]:
    """Return a sentence about how many units all clients need, as a list.

    The sentence also states whether the number of units is proven minimal. The list is empty if
    there is no plan or if clients have no minimum rate.
    """
    if (
        result is None
        or not isinstance(result.plan, PlacementPlan)
        or not problem.classes[0].min_tokens_per_second
    ):
        return []
    terms, (verifier,) = result.terms, problem.verifiers
    used = terms["verifiers"][verifier.name]["units"]
    servers = sum(one.units for one in result.plan.draft_groups)
    clients = problem.classes[0].clients
    take = "clients need" if clients > 1 else "client needs"
    parts = [f"{clients:,} {take} {used:,} unit{'s' if used > 1 else ''} of {verifier.name}"]
    rows = terms["classes"][problem.classes[0].name]
    parts.append(
        " and ".join(PLACES[place] for place in dict.fromkeys(row["place"] for row in rows))
    )
    if servers:
        parts.append(f"{servers:,} of {problem.draft_pools[0].name}")
    if problem.objective == "cost" and result.bound is not None and not problem.draft_pools:
        least = math.ceil(result.bound / verifier.price_per_second * (1.0 - 1e-9))
        parts.append("proven minimal" if used == least else f"at least {least:,} are needed")
    if problem.objective == "cost" and known.fleet.price_per_second:
        parts.append(f"{3600.0 * terms['price_per_second']:.4g} per hour")
    if verifier.watts[1]:
        parts.append(f"{terms['watts']:.4g} W, {terms['joules_per_token']:.3g} J per token")
    return [", ".join(parts) + "."]


def _has_limits(known: Deployment) -> bool:
    device = known.fleet.device
    times = [*known.passes.times.values(), *([] if device is None else device.times.values())]
    return any(one.has_limits for one in times) or (
        known.acceptance is not None and known.acceptance.has_limits
    )


def _beyond(known: Deployment, problem: PlacementProblem, best: Figure) -> list[str]:
    """Return a warning if forward passes at the best place lie outside the measured range, as a
    list.

    The list is empty if they lie inside the range.
    """
    times = known.passes.times["verify"]
    tokens = 1 + best.draft_tokens
    where = (
        np.array([float(size)]) for size in (best.batch, tokens, problem.classes[0].context_tokens)
    )
    if not best.value or np.all(times.covers(*where)):
        return []
    return [
        f"passes of {best.batch:.3g} sequences with {tokens} new tokens each are extrapolated"
        f" beyond the measured range, {times.measured}"
    ]
