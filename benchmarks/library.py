"""Regenerate the instance library: build every problem from its recipe, and solve it by every exact
method that accepts it.

    python benchmarks/library.py [KIND ...] [--time-limit S] [--jobs N]

The value of a plan is the one that the judge computes. A saved plan or bound is never replaced by a
worse one, and a line changes only if its problem, plan or bound changes. If methods prove different
optima, the run stops, because one of them is wrong.
"""

from __future__ import annotations

import argparse
import datetime
import json
import math
import multiprocessing
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec

import specopt
from specopt.api.library import (
    BestKnown,
    Recipe,
    SavedInstance,
    better_of,
    certificate,
    is_solved,
    line_of,
)
from specopt.api.solve import choose
from specopt.kinds import KINDS
from specopt.models.files import write_text
from specopt.models.problem import Problem

FOLDER = Path(__file__).parents[1] / "instances" / "data" / "library"
MAX_PROBLEM_BYTES = 16_000
MAX_PLAN_BYTES = 4_000
TOLERANCE = 1e-9


def regenerate(recipe: Recipe, old: SavedInstance | None, time_limit: float) -> SavedInstance:
    """Return the instance of a recipe with the best known values, old and new."""
    problem = replace(recipe.generate(), name=recipe.name)
    data = {
        name: value
        for name, value in problem.to_dict().items()
        if name not in ("format", "kind", "name")
    }
    best = old.best if old is not None and old.problem_sha256 == problem.sha256 else None
    new = best_found(problem, time_limit)
    return SavedInstance(
        name=recipe.name,
        size=recipe.size,
        seed=recipe.seed,
        parameters=dict(recipe.parameters),
        version=recipe.version,
        source=recipe.source,
        problem_sha256=problem.sha256,
        best=new if best is None else _confirmed(better_of(problem, best, new), new),
        problem=(
            data if recipe.source is not None or len(_json(data)) <= MAX_PROBLEM_BYTES else None
        ),
    )


def _confirmed(best: BestKnown, new: BestKnown) -> BestKnown:
    """Add the methods that now proved the same optimum."""
    both = {*best.confirmed_by, *new.confirmed_by} - {best.bound_method}
    more = best.status == "optimal" and set(new.confirmed_by) - {
        *best.confirmed_by,
        best.bound_method,
    }
    return replace(best, confirmed_by=tuple(sorted(both))) if more else best


def best_found(problem: Problem, time_limit: float) -> BestKnown:
    """Solve by the default method and every exact one. Return the best plan and the best bound."""
    sign = 1.0 if problem.sense == "minimize" else -1.0
    methods = {choose(problem, None).name: choose(problem, None)}
    methods |= {method.name: method() for method in specopt.methods(problem) if method.exact}
    results = []
    for method in methods.values():
        result = specopt.solve(problem, method, time_limit=time_limit)
        if result.plan is not None:
            assert specopt.verify(problem, result).feasible, (
                f"{problem.name}: {method.name} gives no feasible plan"
            )
            results.append((method, result))
    if not results:
        raise AssertionError(f"{problem.name}: no method found a plan")
    least, finder, found = _least(
        [(sign * result.objective, method, result) for method, result in results]
    )
    bounds = [
        (-sign * result.bound, method, result)
        for method, result in results
        if result.bound is not None and method.tolerance <= TOLERANCE
    ]
    proofs = [item for item in bounds if problem.gap(sign * least, -sign * item[0]) <= TOLERANCE]
    highest, prover, proof = (
        proofs[0] if proofs else _least(bounds) if bounds else (math.inf, None, None)
    )
    for method, result in results:
        crossed = result.bound is not None and sign * result.bound > least
        if crossed and problem.gap(sign * least, result.bound) > max(method.tolerance, TOLERANCE):
            raise AssertionError(
                f"{method.name} gives the bound {result.bound}, {finder.name} the plan {least}"
            )
    bound = None if prover is None else -sign * highest
    objective = sign * least
    proven = certificate(problem, objective, bound)
    confirmed = tuple(
        method.name
        for method, result in results
        if method.exact and method is not prover and result.status == proven["status"] == "optimal"
    )
    return BestKnown(
        **proven,
        method=finder.name,
        bound_method=None if prover is None else prover.name,
        confirmed_by=confirmed,
        seconds=float(f"{(found if proof is None else proof).seconds:.3g}"),
        date=datetime.date.today().isoformat(),
        versions=found.versions,
        plan=_short(found.plan.to_dict()),
    )


def _least(found: list[tuple[float, Any, Any]]) -> tuple[float, Any, Any]:
    """Return the first of those with the minimum value, up to rounding. Methods are in order of
    preference.
    """
    least = min(value for value, _, _ in found)
    return next(item for item in found if item[0] <= least + 1e-12 * abs(least))


def _short(plan: dict[str, Any]) -> dict[str, Any] | None:
    return plan if len(_json(plan)) <= MAX_PLAN_BYTES else None


def _json(data: object) -> str:
    return json.dumps(data, separators=(",", ":"), allow_nan=False)


def read(line: bytes) -> tuple[Recipe, SavedInstance | None]:
    """Return the recipe of a line and the known values of its instance, if any."""
    recipe = msgspec.json.decode(line, type=Recipe)
    return recipe, msgspec.json.decode(line, type=SavedInstance) if is_solved(line) else None


def _regenerate(task: tuple[Recipe, SavedInstance | None, float]) -> SavedInstance:
    return regenerate(*task)


def _report(kind: str, found: Sequence[SavedInstance]) -> str:
    proven = [instance for instance in found if instance.best.status == "optimal"]
    twice = [instance for instance in proven if instance.best.confirmed_by]
    worst = max((instance.best.gap or 0.0 for instance in found), default=0.0)
    return (
        f"{kind}: {len(found)} instances, {len(proven)} optimal ({len(twice)} twice), largest gap"
        f" {100 * worst:.3g} %"
    )


def _all(arguments: argparse.Namespace) -> Iterator[str]:
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(arguments.jobs, mp_context=context) as pool:
        for kind in arguments.kinds or [kind.name for kind in KINDS]:
            file = FOLDER / f"{kind}.jsonl"
            lines = file.read_bytes().splitlines() if file.is_file() else []
            tasks = [(*read(line), arguments.time_limit) for line in lines]
            found = [old for _, old, _ in tasks if old is not None and arguments.new]
            for instance in pool.map(_regenerate, tasks[len(found) :]):
                found.append(instance)
                best = instance.best
                print(
                    f"  {instance.name}: {best.objective:.9g}, {best.status}, {best.bound_method}",
                    flush=True,
                )
            if found:
                write_text(file, "".join(line_of(instance) + "\n" for instance in found))
            yield _report(kind, found)


def main() -> None:
    """Regenerate some or all kinds."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0] if __doc__ else None)
    parser.add_argument("kinds", nargs="*", metavar="KIND", help="default: all kinds")
    parser.add_argument(
        "--time-limit", type=float, default=20.0, help="seconds per method and instance"
    )
    parser.add_argument(
        "--new", action="store_true", help="only recipes that stand alone, which come last"
    )
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    for text in _all(parser.parse_args()):
        print(text, flush=True)


if __name__ == "__main__":
    main()
