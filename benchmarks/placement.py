"""Placement: the plans of `refined` against others, their gaps, and the growth of the time. Seconds
are processor seconds.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from unittest import mock

from table import Benchmark, Row, exponent

import specopt
from specopt.models.problem import Problem

RIVALS = ("milp", "greedy", "all-beside", "all-device", "none")
LIMIT = 10.0


def _families(smoke: bool) -> Iterator[tuple[str, list[Problem]]]:
    """Yield small problems of every family, for the objective by which rates are compared."""
    seeds = range(1, 2 if smoke else 6)
    of = {
        "one-class": {"number_of_clients": 8, "units": 2, "max_draft": 3},
        "edge-cloud": {
            "number_of_clients": 6,
            "cloud_units": 1,
            "pool_units": 0,
            "max_draft": 2,
            "objective": "goodput",
        },
        "many-classes": {
            "classes": 2,
            "verifiers": 1,
            "drafters": 1,
            "number_of_clients": 6,
            "units": 2,
            "max_draft": 2,
        },
        "capacity": {"number_of_clients": 100, "units": 2},
    }
    for name, parameters in of.items():
        chosen = seeds if name != "edge-cloud" else range(1)
        yield (
            name,
            [specopt.generate(f"placement/{name}", seed=seed, **parameters) for seed in chosen],
        )


def against_rivals(smoke: bool) -> list[Row]:
    """Compare the objective of the other methods with that of `refined`, and count the problems for
    which they have a plan.
    """
    rows = []
    limit = 0.5 if smoke else LIMIT
    for name, problems in _families(smoke):
        best = [
            specopt.solve(problem, "refined", time_limit=limit).objective or math.nan
            for problem in problems
        ]
        for rival in RIVALS:
            able = [p for p in problems if rival in {method.name for method in specopt.methods(p)}]
            shares = [
                found / top
                for problem, top in zip(problems, best, strict=True)
                if problem in able
                if (found := specopt.solve(problem, rival, time_limit=limit).objective) is not None
            ]
            if able:
                figure = f"{len(shares)} of {len(able)} have a plan" + (
                    f"; {min(shares):.4f} of refined at worst, {max(shares):.4f} at best"
                    if shares
                    else ""
                )
                rows.append(Row(f"{name}, {rival}", figure))
    return rows


def gaps(smoke: bool) -> list[Row]:
    """Measure the certified gaps of `auto` with many units and with few."""
    rows = []
    sizes = ((3, 30),) if smoke else ((24, 10_000), (20, 10_000), (3, 1_500))
    for units, clients in sizes:
        small = {"classes": 2, "drafters": 1, "max_draft": 2} if smoke else {}
        problem = specopt.generate(
            "placement/many-classes", units=units, number_of_clients=clients, seed=1, **small
        )
        start = time.process_time()
        found = specopt.solve(problem, time_limit=LIMIT)
        took = time.process_time() - start
        figure = (
            f"{100 * (found.gap or 0.0):.2f} % after {took:.1f} s"
            if found.plan is not None
            else "no plan"
        )
        goal = 1 if units >= 20 else 3
        met = None if smoke or found.gap is None else found.gap <= goal / 100
        rows.append(
            Row(
                f"many-classes, {clients:,} clients, {units} units, {LIMIT:g} s at most",
                figure,
                f"{goal} %",
                met,
            )
        )
    return rows


def cells(smoke: bool) -> list[Row]:
    """Measure the certified gaps of `auto` after ten processor seconds, by clients and objective,
    on shared units and on edge and cloud.
    """
    few = {"verifiers": 2, "drafters": 2, "units": 6, "max_draft": 4}
    problems: list[tuple[str, int, dict[str, int]]] = [
        ("many-classes", clients, few | {"classes": 3}) for clients in (3, 8, 20, 40, 200, 1000)
    ]
    problems.append(("many-classes", 10_000, {}))
    problems += [
        ("edge-cloud", 20, {}),
        ("edge-cloud", 1000, {"cloud_units": 10, "edge_units": 10, "pool_units": 5}),
    ]
    rows = []
    for family, clients, parameters in problems[:1] if smoke else problems:
        figures, worst = [], 0.0
        for objective in ("goodput", "fair", "capacity", "cost", "energy"):
            least = (
                10.0 if family == "many-classes" and objective not in ("goodput", "fair") else None
            )
            own = parameters | ({"least_rate": least} if least else {})
            problem = specopt.generate(
                f"placement/{family}", number_of_clients=clients, objective=objective, **own
            )
            start = time.process_time()
            with mock.patch.object(time, "perf_counter", time.process_time):
                found = specopt.solve(problem, time_limit=LIMIT)
            took = time.process_time() - start
            gap = math.inf if found.gap is None else found.gap
            worst = max(worst, gap)
            figures.append(f"{objective} {100 * gap:.2g} % in {took:.1f} s")
        rows.append(Row(f"{family}, {clients:,} clients", "; ".join(figures), "1 %", worst <= 0.01))
    return rows


def growth(smoke: bool) -> list[Row]:
    """Measure the processor seconds of `auto` until a gap of 1 %, for more clients and units."""
    sizes = [20, 40] if smoke else [100, 1_000, 10_000]
    seconds = []
    for clients in sizes:
        problem = specopt.generate(
            "placement/one-class", number_of_clients=clients, units=max(1, clients // 100), seed=1
        )
        specopt.solve(problem, time_limit=0)
        start = time.process_time()
        specopt.solve(problem, gap=0.01, time_limit=3 * LIMIT)
        seconds.append(time.process_time() - start)
    times = ", ".join(f"{one:.2f} s for {size:,}" for one, size in zip(seconds, sizes, strict=True))
    return [
        Row(
            "one-class, 100 clients a unit, to 1 %",
            f"{times}; exponent {exponent(sizes, seconds):.2f}",
        )
    ]


BENCHMARKS = (
    Benchmark("placement: refined against others", against_rivals),
    Benchmark("placement: gaps", gaps),
    Benchmark("placement: gaps by objective", cells),
    Benchmark("placement: growth", growth),
)
