"""Advice for a deployment: the performance of each source of drafts, and break-even points."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from specopt.api.solve import solve
from specopt.instances.deployment.deployment import Deployment
from specopt.instances.deployment.proposal import Proposal
from specopt.instances.placement.from_deployment import at_limits
from specopt.instances.placement.parts import spread
from specopt.models.acceptance import rate_that_yields
from specopt.models.errors import OutOfTime
from specopt.models.named import NamedRates, NamedSeconds, NamedTrips
from specopt.models.placement.plan import PlacementPlan
from specopt.models.placement.problem import Objective, PlacementProblem
from specopt.models.result import Progress, Result, Termination
from specopt.solvers.clock import Clock
from specopt.solvers.placement.baselines import NoDrafts

PLACES = {
    "none": "without drafts",
    "beside": "beside the verifier",
    "pool": "on drafting servers",
    "device": "on the devices",
}
"""Descriptions of the sources of drafts. Of equally good sources, the first one is recommended,
because it needs the fewest resources.
"""

MIN_SECONDS, MAX_SECONDS, CLOSE = 1e-4, 10.0, 1.05
"""Range of the search for break-even times, in seconds, and the factor within which they are
found.
"""

MIN_GAIN, GAP = 2e-3, 1e-3
"""Minimum relative gain of a source over another to be called better, and the relative gap at which
the solves for bands and break-evens stop.
"""

MANY = 10_000
"""Number of clients offered to one unit when its capacity is computed."""

SECONDS = 5.0
"""Time limit of each solve in this module; a solve takes at most half of the remaining time."""

LATE = (
    "The time limit ended before all sources of drafts and break-evens were computed; use a longer"
    " --time-limit."
)


@dataclass(frozen=True)
class Figure:
    """Performance with one source of drafts.

    Parameters
    ----------
    place
        Source of the drafts; see `PLACES`.
    value
        Number of clients that one unit serves, or tokens per second of each client, with the best
        plan found.
    drafts
        Pairs of a draft length and the number of clients that use it, most clients first; length 0
        means without drafts.
    batch
        Mean number of sequences in a pass.
    band
        Values with the worst and the best limits of the measurements; None without limits.
    """

    place: str
    value: float
    drafts: tuple[tuple[int, int], ...]
    batch: float
    band: tuple[float, float] | None = None

    @property
    def drafting(self) -> bool:
        """Whether any client drafts."""
        return any(tokens for tokens, _ in self.drafts)

    @property
    def text(self) -> str:
        """The source of drafts and the draft length."""
        words = PLACES[self.place]
        if self.place == "none" or not self.drafts:
            return words
        if not self.drafting:
            return f"{words} no draft length helps"
        lengths = " or ".join(str(tokens) if tokens else "none" for tokens, _ in self.drafts)
        return f"{words}, {lengths} token{'' if lengths == '1' else 's'}"

    @property
    def number(self) -> str:
        """The value, with its band."""
        band = "" if self.band is None else " ({:.4g} to {:.4g})".format(*self.band)
        return f"{self.value:.4g}{band}"


@dataclass(frozen=True, kw_only=True)
class Advice:
    """Advice for a deployment.

    Parameters
    ----------
    figures
        Performance of each source of drafts, the best first.
    lines
        The same in sentences, and the break-even points.
    measure
        Measurements that are missing because the plan exceeds the measured range.
    break_even
        Largest mean round trip and largest time of a draft token at which devices are the best
        source, and smallest acceptance rate at which drafts pay; None if there is no such value.
    """

    figures: tuple[Figure, ...]
    lines: tuple[str, ...]
    measure: tuple[str, ...]
    break_even: dict[str, float | None]

    def to_dict(self) -> dict[str, Any]:
        """Return the advice as JSON-like data."""
        return {
            "places": [dataclasses.asdict(one) for one in self.figures],
            "lines": list(self.lines),
            "break_even": self.break_even,
        }


def advise(
    known: Deployment,
    proposal: Proposal,
    result: Result | None = None,
    *,
    clock: Clock | None = None,
) -> Advice:
    """Return the performance of each source of drafts, and the break-even points.

    Parameters
    ----------
    known
        The deployment.
    proposal
        Proposal with the problem of this deployment.
    result
        Result of that problem; None if it was not solved.
    clock
        Clock with the remaining time. Figures that do not fit into it are left out, and the last
        line reports this.
    """
    problem, clock = proposal.problem, clock or Clock()
    assert isinstance(problem, PlacementProblem)
    if not len(problem.classes) == len(problem.drafters) == len(problem.verifiers) == 1:
        return Advice(figures=(), lines=(), measure=(), break_even={})

    def figure(
        place: str, of: PlacementProblem, gap: float = GAP, over: float = math.nan
    ) -> Figure:
        clock.check()
        return _figure(place, of, min(0.5 * clock.remaining, SECONDS), gap, over)

    alone: dict[str, Figure] = {}
    turns: dict[str, float | None] = {}
    lines = list[str]()
    try:
        for place in PLACES:
            if _restricted(problem, place) is not None:
                alone[place] = figure(place, problem, 0.0)
        ends = (
            [at_limits(known, proposal, which) for which in ("upper", "lower")]
            if _has_limits(known)
            else []
        )
        for place, one in alone.items() if ends else ():
            low, high = sorted(figure(place, end).value for end in ends)
            alone[place] = dataclasses.replace(
                one, band=(min(low, one.value), max(high, one.value))
            )
        lines.append(_headline(problem, _ranked(alone)))
        for name, turn, line in _turns(problem, alone, figure):
            turns[name] = turn
            lines.append(line)
    except OutOfTime:
        lines.append(LATE)
    ranked = tuple(_ranked(alone))
    beyond = _beyond(known, problem, ranked[0]) if ranked and ranked[0].batch else None
    return Advice(
        figures=ranked,
        lines=(*lines, *_units(known, problem, result)),
        measure=() if beyond is None else (beyond,),
        break_even=turns,
    )


def _ranked(alone: dict[str, Figure]) -> list[Figure]:
    return sorted(alone.values(), key=lambda one: -one.value)


def _headline(problem: PlacementProblem, ranked: list[Figure]) -> str:
    first, *rest = ranked
    least, clients = problem.classes[0].min_tokens_per_second, problem.classes[0].clients
    unit = (
        f"clients per unit at {1e3 / least:.4g} ms per token"
        if least
        else f"tokens/s for each of {clients:,} clients"
    )
    if not first.value:
        return f"No source of drafts reaches {1e3 / least:.4g} ms per token, even for one client."
    begins = f"Draft {first.text}" if first.drafting else "Do not draft"
    return (
        "; ".join(
            [f"{begins}: {first.number} {unit}", *(f"{one.text}: {one.number}" for one in rest)]
        )
        + "."
    )


def _restricted(problem: PlacementProblem, place: str) -> PlacementProblem | None:
    """Return the problem with one source of drafts, or without drafts; None if it lacks this
    source.
    """
    own = {"beside": "beside", "pool": "server"}.get(place, "")
    nowhere = {name: None for name in ("beside", "server") if name != own}
    drafters = tuple(dataclasses.replace(one, **nowhere) for one in problem.drafters)  # type: ignore[arg-type]
    classes = (
        problem.classes
        if place == "device"
        else tuple(
            dataclasses.replace(one, device_seconds_per_token=None) for one in problem.classes
        )
    )
    lacks = place == "device" and not any(one.device_seconds_per_token for one in classes)
    if lacks or (own and not any(getattr(one, own) for one in drafters)):
        return None
    return dataclasses.replace(problem, drafters=drafters, classes=classes)


def _figure(
    place: str, problem: PlacementProblem, seconds: float, gap: float, over: float = math.nan
) -> Figure:
    """Solve the problem with one source of drafts.

    The value is the number of clients that one unit serves at their minimum rate, or else their
    tokens per second. The solve ends as soon as it is known whether the best plan is better than
    `over`, unless that is NaN.

    Raises
    ------
    OutOfTime
        If the time does not suffice to decide that or to find a plan.
    """
    restricted = _restricted(problem, place)
    assert restricted is not None, "the problem has this source"
    verifiers = tuple(dataclasses.replace(one, units=1) for one in restricted.verifiers)
    capacity = restricted.classes[0].min_tokens_per_second > 0.0
    many = MANY if capacity else restricted.classes[0].clients
    classes = tuple(dataclasses.replace(one, clients=many) for one in restricted.classes)
    goal: Objective = "capacity" if capacity else "goodput"
    asked = dataclasses.replace(restricted, verifiers=verifiers, classes=classes, objective=goal)
    unit = many if capacity else 1.0 / many

    def decided(now: Progress) -> bool:
        return (now.objective or 0.0) * unit > over or (
            now.bound is not None and now.bound * unit <= over
        )

    # identical clients without drafts differ only in their number, which this method optimises
    result = solve(
        asked,
        NoDrafts() if place == "none" else None,
        time_limit=seconds,
        gap=gap,
        callback=decided,
    )
    is_short = result.termination is Termination.TIME_LIMIT and seconds < SECONDS
    if is_short and not (result.objective and math.isnan(over)):
        raise OutOfTime
    if result.plan is None or not result.terms["classes"]:
        return Figure(place, 0.0, (), 0.0)
    rows = [row for served in result.terms["classes"].values() for row in served]
    drafts: dict[int, int] = {}
    for row in rows:
        drafts[row["draft_tokens"]] = drafts.get(row["draft_tokens"], 0) + row["clients"]
    (used,) = result.terms["verifiers"].values()
    assert result.objective is not None, "there is a plan"
    value = float(sum(drafts.values())) if capacity else result.objective * unit
    most = tuple(sorted(drafts.items(), key=lambda one: -one[1]))
    return Figure(place, value, most, used["batch"] or 0.0)


def _turns(
    problem: PlacementProblem, alone: dict[str, Figure], figure: Callable[..., Figure]
) -> Iterator[tuple[str, float | None, str]]:
    """Yield the name, the value and a sentence for each break-even point.

    Devices are the best source below the first two values.
    """
    others = max(one.value for place, one in alone.items() if place != "device")
    (drafter,), (of,), (verifier,) = problem.drafters, problem.classes, problem.verifiers

    def better(place: str, than: float, **fields: Any) -> bool:
        over, near = than * (1.0 + MIN_GAIN), dataclasses.replace(of, **fields)
        return figure(place, dataclasses.replace(problem, classes=(near,)), over=over).value > over

    def near(trip: float) -> bool:
        return better(
            "device", others, round_trip_seconds=NamedTrips({verifier.name: spread(trip)})
        )

    def fast(seconds: float) -> bool:
        return better(
            "device", others, device_seconds_per_token=NamedSeconds({drafter.name: seconds})
        )

    if "device" in alone and others:
        assert of.round_trip_seconds is not None and of.device_seconds_per_token is not None, (
            "devices have both"
        )
        trip = float(np.mean(of.round_trip_seconds.values[verifier.name]))
        each = of.device_seconds_per_token.values[drafter.name]
        for name, template, now, holds in (
            ("round_trip_seconds", "a mean round trip of {} ms", trip, near),
            ("device_seconds_per_token", "{} ms per draft token", each, fast),
        ):
            turn = _last(holds, MIN_SECONDS, MAX_SECONDS)
            until = (
                f"not even best at {1e3 * MIN_SECONDS:g}"
                if turn is None
                else f"best up to {1e3 * turn:.3g}"
            )
            word, number = until.rsplit(" ", 1)
            yield (
                name,
                turn,
                (
                    f"Drafting on the devices is {word} {template.format(number)}; here:"
                    f" {1e3 * now:.3g} ms."
                ),
            )

    def useless(rate: float) -> bool:
        rates = NamedRates({drafter.name: np.array(rate)})
        return not any(better(place, alone["none"].value, acceptance=rates) for place in alone)

    if len(alone) > 1 and any(one.value for one in alone.values()):
        rate = _last(useless, 0.01, 1.0)
        own = of.accepted(drafter.name, problem.max_draft_tokens)
        same = rate_that_yields(1.0 + float(np.cumprod(own[:-1]).sum()), len(own) - 1)
        verdict = "at any" if rate is None else "at no" if rate == 1.0 else f"from {rate:.2f} on as"
        line = f"Drafts pay {verdict} acceptance rate; here: {same:.2f}."
        yield "acceptance_rate", rate if rate != 1.0 else None, line


def _last(holds: Callable[[float], bool], low: float, high: float) -> float | None:
    """Return the largest value at which a condition holds, by bisection of logarithms; None if it
    does not hold at `low`.
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
    """Return a sentence on the units that all clients need, and whether this number is proven
    minimal.
    """
    if (
        result is None
        or not isinstance(result.plan, PlacementPlan)
        or not problem.classes[0].min_tokens_per_second
    ):
        return []
    terms, (verifier,) = result.terms, problem.verifiers
    used, servers = (
        terms["verifiers"][verifier.name]["units"],
        sum(one.units for one in result.plan.draft_groups),
    )
    clients = problem.classes[0].clients
    need = "clients need" if clients > 1 else "client needs"
    parts = [f"{clients:,} {need} {used:,} unit{'s' if used > 1 else ''} of {verifier.name}"]
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
        parts.append(f"price {3600.0 * terms['price_per_second']:.4g} per hour")
    if verifier.watts[1]:
        parts.append(f"{terms['watts']:.4g} W, {terms['joules_per_token']:.3g} J per token")
    return [", ".join(parts) + "."]


def _has_limits(known: Deployment) -> bool:
    device = known.fleet.device
    times = [*known.passes.times.values(), *([] if device is None else device.times.values())]
    return any(one.has_limits for one in times) or (
        known.acceptance is not None and known.acceptance.has_limits
    )


def _beyond(known: Deployment, problem: PlacementProblem, best: Figure) -> str | None:
    """Return a sentence if the passes of the best plan are larger than the measured ones, else
    None.
    """
    times, tokens = known.passes.times["verify"], 1 + best.drafts[0][0]
    where = (
        np.array([float(size)]) for size in (best.batch, tokens, problem.classes[0].context_tokens)
    )
    if np.all(times.covers(*where)):
        return None
    return (
        f"passes of {best.batch:.3g} sequences with {tokens} new tokens each: they exceed"
        f" the measured range, {times.measured}"
    )
