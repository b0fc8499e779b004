"""The instance library: problems that come with the package, and the best that is known of each.

A file of JSON lines per kind of problem, an instance a line. Small problems are written out: the
same numbers on every machine, whatever the generator. Large ones are a recipe and the digest of
what it gives. A new instance is a line with its recipe alone; `make library` adds what is best
known.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import cache
from importlib.resources import files
from typing import Any

import msgspec

from specopt.api.generate import FAMILIES
from specopt.instances.rounded import rounded
from specopt.kinds import KINDS, kind_of
from specopt.models.errors import InvalidInput, SpecoptError
from specopt.models.judge import proof_of, verify
from specopt.models.problem import FORMAT, TOLERANCE, Plan, Problem
from specopt.models.result import Result

FIRST_NAMES = {
    f"serving-latency-{label}": f"serving-latency/paper-1/{label}"
    for label in (
        "K7-68M-7B",
        "K7-1.1B-7B",
        "K20-1.1B-13B",
        "K100-68M-7B",
        "K100-1.1B-7B",
        "K100-1.1B-13B",
    )
}
"""Other names of some instances."""

_NAMES = tuple(kind.name for kind in KINDS)


@dataclass(frozen=True, kw_only=True)
class BestKnown:
    """The best plan and the best bound that are known of an instance, and whose they are.

    Parameters
    ----------
    objective
        Of the best plan, by the judge.
    bound
        What no plan passes, or None.
    status
        "optimal" if the bound proves the objective within 1e-9, else "feasible".
    gap
        Relative distance of objective and bound; None without a bound.
    method, bound_method
        What found the plan, and what proved the bound.
    confirmed_by
        Other methods that proved the same optimum, by themselves and within their tolerance.
    seconds
        That the method of the bound, or else of the plan, took.
    date, versions
        When and with what.
    plan
        The plan, if it is short.
    """

    objective: float
    bound: float | None
    status: str
    gap: float | None
    method: str
    bound_method: str | None
    confirmed_by: tuple[str, ...] = ()
    seconds: float
    date: str
    versions: dict[str, str] = field(default_factory=dict)
    plan: dict[str, Any] | None = None


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """How an instance of the library is made.

    Parameters
    ----------
    name
        KIND/FAMILY/LABEL.
    size
        "small" (for proofs), "paper" (as large as the paper's), "large", "adversarial", or "real"
        (from measured data).
    parameters, seed
        Of the family that it comes from; its numbers are then rounded to six digits.
    version
        Of the library that has it first.
    source
        Where real data come from; None: a family gives the instance.
    problem
        Its fields, without header and name; None if the recipe stands for them.
    """

    name: str
    size: str
    seed: int
    parameters: dict[str, Any]
    version: int = 1
    source: str | None = None
    problem: dict[str, Any] | None = None

    @property
    def kind(self) -> str:
        """What kind of problem it is."""
        return self.name.partition("/")[0]

    @property
    def family(self) -> str:
        """KIND/FAMILY."""
        return self.name.rpartition("/")[0]

    def generate(self) -> Problem:
        """Return the problem, its numbers rounded; without its name."""
        if self.source is not None:
            return kind_of(self.kind).problem.from_dict(
                {"format": FORMAT, "kind": self.kind, **(self.problem or {})}
            )
        return rounded(FAMILIES[self.family].generate(seed=self.seed, **self.parameters))


@dataclass(frozen=True, kw_only=True)
class SavedInstance(Recipe):
    """One instance of the library.

    Parameters
    ----------
    problem_sha256
        What identifies the problem.
    best
        The best known plan and bound.
    """

    problem_sha256: str
    best: BestKnown

    def load(self) -> Problem:
        """Return the problem, under the instance's name.

        Raises
        ------
        SpecoptError
            If its recipe no longer gives the numbers that it gave.
        """
        header = {"format": FORMAT, "kind": self.kind}
        data = self.generate().to_dict() if self.problem is None else header | self.problem
        notes = {} if self.source is None else {"notes": self.source}
        problem = kind_of(self.kind).problem.from_dict({**data, **notes, "name": self.name})
        if problem.sha256 != self.problem_sha256:
            raise SpecoptError(
                f"{self.name}: the numbers are not those of the best known plan; run `make library`"
            )
        return problem

    def plan(self) -> Plan | None:
        """Return the best known plan, if it is saved."""
        return None if self.best.plan is None else kind_of(self.kind).plan.from_dict(self.best.plan)


def saved(kind: str | None = None) -> list[str]:
    """Return the names of the library's instances, of one kind of problem or of all.

    Examples
    --------
    >>> saved("serving-latency")[0]
    'serving-latency/paper-1/K7-68M-7B'
    """
    return [
        name for each in (_NAMES if kind is None else (kind,)) for name in instances_of_kind(each)
    ]


def load_saved(name: str) -> Problem:
    """Return a problem of the library by its name.

    Raises
    ------
    InvalidInput
        If there is none of that name.
    """
    return saved_instance(name).load()


def best_known(name: str) -> BestKnown:
    """Return the best known plan and bound of an instance of the library.

    Raises
    ------
    InvalidInput
        If there is none of that name.
    """
    return saved_instance(name).best


def saved_instance(name: str) -> SavedInstance:
    """Return all that the library has of an instance.

    Raises
    ------
    InvalidInput
        If there is none of that name.
    """
    name = FIRST_NAMES.get(name, name)
    kind = name.partition("/")[0]
    found = instances_of_kind(kind).get(name) if kind in _NAMES else None
    if found is None:
        raise InvalidInput(
            f"name: expected one of {', '.join(saved(kind if kind in _NAMES else None))}, got"
            f" {name!r}"
        )
    return found


def known_values() -> dict[str, tuple[float | None, float | None]]:
    """Return the best known objective and bound of every instance, by the problem's digest."""
    return {
        instance.problem_sha256: (instance.best.objective, instance.best.bound)
        for kind in _NAMES
        for instance in instances_of_kind(kind).values()
    }


def submitted(name: str, result: Result, today: str) -> tuple[SavedInstance, list[str]]:
    """Hold a result against what the library knows of its instance.

    Parameters
    ----------
    name
        Of the instance.
    result
        A plan, which the judge prices, and a bound, which is taken as its author's claim.
    today
        The date to be written down.

    Returns
    -------
    The instance with the better of both, and a sentence on the plan and on the bound.

    Raises
    ------
    InvalidInput
        If there is no such instance, or the result is another problem's, infeasible, or refutes
        itself.
    """
    known = saved_instance(name)
    problem = known.load()
    report = verify(problem, result)
    if report.objective is None or not report.feasible:
        raise InvalidInput(
            f"plan: expected a feasible plan of {known.name}: {report.violations[0]}"
        )
    proof = proof_of(
        type(problem), report.objective, result.bound, scale=problem.scale, size=report.size
    )
    if proof.refuted:
        raise InvalidInput(
            f"bound: {result.bound!r} is passed by the plan itself, {report.objective!r}"
        )
    sign = 1.0 if problem.sense == "minimize" else -1.0
    if result.bound is not None and sign * (result.bound - known.best.objective) > TOLERANCE * abs(
        known.best.objective
    ):
        raise InvalidInput(
            f"bound: {result.bound!r} is passed by the best known plan, {known.best.objective!r}"
        )
    claimed = BestKnown(
        **certificate(problem, report.objective, proof.bound),
        method=result.by,
        bound_method=None if proof.bound is None else result.by,
        seconds=result.seconds,
        date=today,
        versions=result.versions,
        plan=None if result.plan is None else result.plan.to_dict(),
    )
    best = better_of(problem, known.best, claimed)
    said = [
        (
            f"plan: {report.objective:.9g}, feasible;"
            f" {_compared(best.objective != known.best.objective)} the best known,"
            f" {known.best.objective:.9g}"
        ),
    ]
    if proof.bound is not None:
        said.append(
            f"bound: {proof.bound:.9g}, as claimed; {_compared(best.bound != known.best.bound)} the"
            " best known,"
            f" {'none' if known.best.bound is None else format(known.best.bound, '.9g')}"
        )
    return replace(known, best=best), said


def _compared(better: bool) -> str:
    return "better than" if better else "no better than"


def certificate(problem: Problem, objective: float, bound: float | None) -> dict[str, Any]:
    """Return objective, bound, status and gap as the library has them."""
    if bound is None or not math.isfinite(bound):
        return {"objective": objective, "bound": None, "status": "feasible", "gap": None}
    gap = problem.gap(objective, bound)
    proven = gap <= TOLERANCE
    return {
        "objective": objective,
        "bound": bound,
        "status": "optimal" if proven else "feasible",
        "gap": 0.0 if proven else gap,
    }


def better_of(problem: Problem, old: BestKnown, new: BestKnown) -> BestKnown:
    """Return the old one, with the plan or bound of the new one where that is better by more than
    rounding.
    """
    sign = 1.0 if problem.sense == "minimize" else -1.0
    rounding = TOLERANCE * abs(old.objective)
    best, when = old, dict[str, Any](seconds=new.seconds, date=new.date, versions=new.versions)
    if sign * new.objective < sign * old.objective - rounding:
        best = replace(
            best,
            method=new.method,
            plan=new.plan,
            **when,
            **certificate(problem, new.objective, old.bound),
        )
    if new.bound is not None and (
        old.bound is None or sign * new.bound > sign * old.bound + rounding
    ):
        best = replace(
            best,
            bound_method=new.bound_method,
            **when,
            **certificate(problem, best.objective, new.bound),
        )
    return best


def line_of(instance: SavedInstance) -> str:
    """Return the line of an instance in the library's file: what is None or empty is left out."""
    data: dict[str, Any] = {"name": instance.name, "version": instance.version} | asdict(instance)
    best = {name: value for name, value in data["best"].items() if value not in (None, (), {})}
    data["best"] = {"bound": None, "gap": None, "bound_method": None} | best
    return json.dumps(
        {name: value for name, value in data.items() if value is not None}, separators=(",", ":")
    )


@cache
def instances_of_kind(kind: str) -> Mapping[str, SavedInstance]:
    """Return the instances of one kind by name, in the library's order, without recipes that stand
    alone.
    """
    file = files("specopt.instances.data.library") / f"{kind}.jsonl"
    lines = file.read_bytes().splitlines() if file.is_file() else []
    read = [msgspec.json.decode(line, type=SavedInstance) for line in lines if is_solved(line)]
    return {instance.name: instance for instance in read}


def is_solved(line: bytes) -> bool:
    """Return whether a line of the library says what is known of its instance, not its recipe
    alone.
    """
    return "best" in msgspec.json.decode(line, type=dict[str, msgspec.Raw])
