"""What the judge of `placement` reports: the objective, how each class is served, how busy units are, money, power."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from specopt.models.placement_plan import PlacementPlan
from specopt.models.placement_unit import Cycles
from specopt.models.problem import Evaluation

if TYPE_CHECKING:
    from specopt.models.placement import PlacementProblem


def evaluation(problem: PlacementProblem, plan: PlacementPlan, runs: list[Cycles]) -> Evaluation:
    """Return the objective of a plan whose units run so (contract, rules 6 to 10)."""
    served: dict[str, list[dict[str, Any]]] = {one.name: [] for one in problem.classes}
    busy: dict[str, list[tuple[int, Cycles]]] = {one.name: [] for one in problem.verifiers}
    goodput, fair, device_watts, tokens = [], [], [], []
    for group, run in zip(plan.groups, runs, strict=True):
        busy[group.verifier].append((group.units, run))
        for one, seconds, period in zip(group.clients, run.seconds, run.periods, strict=True):
            of, clients = problem.client_class[one.class_], group.units * one.per_unit
            entry, drafter = problem.entry(plan, group, one), problem.drafter_of(plan, group, one)
            rate = entry.tokens / seconds
            goodput.append(clients * of.weight * rate)
            fair.append(clients * of.weight * math.log(rate))
            tokens.append(clients * rate)
            if one.place == "device":
                device_watts.append(clients * (of.device_watts or 0.0) * entry.device_seconds(period) / seconds)
            served[of.name].append({
                "place": one.place, "verifier": group.verifier, "drafter": None if drafter is None else drafter.name,
                "draft_tokens": problem.length_of(group, one), "overlap": one.overlap, "clients": clients,
                "tokens_per_second": rate,
            })  # fmt: skip
    price, watts = [], list(device_watts)
    for verifier in problem.verifiers:
        idle, full = verifier.watts
        for units, run in busy[verifier.name]:
            price.append(units * verifier.price_per_second)
            watts.append(units * (idle + (full - idle) * run.busy))
    for draft in plan.draft_groups:
        pool = problem.pool[draft.pool]
        price.append(draft.units * pool.price_per_second)
        watts.append(draft.units * pool.busy_watts)
    total, power = math.fsum(tokens), math.fsum(watts)
    terms = {
        "classes": served,
        "verifiers": {name: _used(units) for name, units in busy.items()},
        "tokens_per_second": total,
        "price_per_second": math.fsum(price),
        "watts": power,
        "joules_per_token": power / total if total else None,
    }
    shares = [sum(row["clients"] for row in rows) / problem.client_class[name].clients for name, rows in served.items()]
    objective = {
        "goodput": math.fsum(goodput), "fair": math.fsum(fair), "capacity": min(shares), "cost": math.fsum(price),
        "energy": power,
    }[problem.objective]  # fmt: skip
    return Evaluation(objective, terms, math.fsum(map(abs, fair)) if problem.objective == "fair" else 0.0)


def _used(units: list[tuple[int, Cycles]]) -> dict[str, Any]:
    """Return units used, and over them the mean period, batch and busy share; none where none is used."""
    count = sum(number for number, _ in units)
    means = {
        "period": sum(number * run.period for number, run in units),
        "batch": sum(number * run.batch for number, run in units),
        "busy_share": sum(number * run.busy for number, run in units),
    }
    return {"units": count, **{name: total / count if count else None for name, total in means.items()}}
