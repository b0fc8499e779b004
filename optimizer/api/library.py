"""The instance library, which contains problems shipped with the package and their best known
results.

Each kind of problem has a JSON Lines file with one instance per line. Small problems are stored
in full, so that they are identical on every machine even if the generator changes. A large problem
is stored as a recipe for generating it, together with a digest that identifies the generated
problem. To add an instance, append a line with its recipe and run `make library`, which adds the
best known result.
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

_NAMES = tuple(kind.name for kind in KINDS)


@dataclass(frozen=True, kw_only=True)
class BestKnown:
    """The best known plan and bound for an instance, and information about their origin.

    Parameters
    ----------
    objective
        Objective of the best plan, computed by the judge.
    bound
        Best known bound on the objective of every plan, or None.
    status
        "optimal" if the bound proves that the plan is optimal to within 1e-9, else "feasible".
    gap
        Relative distance between objective and bound; None if there is no bound.
    method
        Method that found the plan.
    bound_method
        Method that proved the bound.
    confirmed_by
        Other methods that independently proved the same optimum within their tolerance.
    seconds
        Solution time in seconds of the method that proved the bound or, if there is no bound, of
        the method that found the plan. If an improvement is submitted, this time is replaced by the
        solution time of the submitted result.
    date
        Date on which the result was obtained.
    versions
        Versions of the libraries that produced the result.
    plan
        The best plan; None if it is too long to be stored.
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
    """Instructions for generating an instance of the library.

    Parameters
    ----------
    name
        Name of the instance, in the form KIND/FAMILY/LABEL.
    size
        Size class: "small" (small enough to prove optimality), "paper" (the size used in the
        paper), "large", "adversarial", or "real" (based on measured data).
    seed
        Random seed with which the family generates the problem.
    parameters
        Parameters of the family. Numbers in the generated problem are rounded to six digits.
    version
        First version of the library that contains the instance.
    source
        Origin of measured data; None if a family generates the instance.
    problem
        Fields of the problem other than the header and the name; None if a family generates the
        problem.
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
        """The name of the kind of problem to which the instance belongs."""
        return self.name.partition("/")[0]

    @property
    def family(self) -> str:
        """The name of the family, in the form KIND/FAMILY."""
        return self.name.rpartition("/")[0]

    def generate(self) -> Problem:
        """Return the unnamed problem. The numbers of a generated problem are rounded."""
        if self.source is not None:
            return self.made_of(self.problem or {})
        return rounded(FAMILIES[self.family].generate(seed=self.seed, **self.parameters))

    def made_of(self, fields: dict[str, Any]) -> Problem:
        """Build a problem of the recipe's kind from its fields, which exclude the file header."""
        header = {"format": FORMAT, "kind": self.kind}
        return kind_of(self.kind).problem.from_dict(header | fields)


@dataclass(frozen=True, kw_only=True)
class SavedInstance(Recipe):
    """An instance in the library, together with its best known result.

    Parameters
    ----------
    problem_sha256
        SHA-256 digest of the problem.
    best
        The best known plan and bound.
    """

    problem_sha256: str
    best: BestKnown

    def load(self) -> Problem:
        """Return the instance's problem, with its name set to that of the instance.

        Raises
        ------
        SpecoptError
            If the problem generated by the recipe does not match the stored digest.
        """
        data = self.generate().to_dict() if self.problem is None else self.problem
        notes = {} if self.source is None else {"notes": self.source}
        problem = self.made_of({**data, **notes, "name": self.name})
        if problem.sha256 != self.problem_sha256:
            raise SpecoptError(
                f"{self.name}: the numbers are not those of the best known plan; run `make library`"
            )
        return problem

    def plan(self) -> Plan | None:
        """Return the best known plan, or None if the library contains no plan."""
        return None if self.best.plan is None else kind_of(self.kind).plan.from_dict(self.best.plan)


def saved(kind: str | None = None) -> list[str]:
    """Return the names of the instances in the library, for one kind or for all kinds.

    Examples
    --------
    >>> saved("serving-latency")[0]
    'serving-latency/paper-1/K7-68M-7B'
    """
    return [
        name for each in (_NAMES if kind is None else (kind,)) for name in instances_of_kind(each)
    ]


def load_saved(name: str) -> Problem:
    """Return a problem from the library.

    Raises
    ------
    InvalidInput
        If the library has no instance with that name.
    """
    return saved_instance(name).load()


def best_known(name: str) -> BestKnown:
    """Return the best known plan and bound for an instance.

    Raises
    ------
    InvalidInput
        If the library has no instance with that name.
    """
    return saved_instance(name).best


def saved_instance(name: str) -> SavedInstance:
    """Return the library entry for an instance.

    Raises
    ------
    InvalidInput
        If the library has no instance with that name.
    """
    kind = name.partition("/")[0]
    found = instances_of_kind(kind).get(name) if kind in _NAMES else None
    if found is None:
        raise InvalidInput(
            f"name: expected one of {', '.join(saved(kind if kind in _NAMES else None))}, got"
            f" {name!r}"
        )
    return found


def known_values() -> dict[str, tuple[float | None, float | None]]:
    """Return a pair (objective, bound) of best known values per instance, by problem digest."""
    return {
        instance.problem_sha256: (instance.best.objective, instance.best.bound)
        for kind in _NAMES
        for instance in instances_of_kind(kind).values()
    }


def submitted(name: str, result: Result, today: str) -> tuple[SavedInstance, list[str]]:
    """Compare a result with the best known result for its instance, and combine the two.

    Parameters
    ----------
    name
        Name of the instance.
    result
        Result that contains a plan. The judge recomputes the plan's objective. A claimed bound
        is accepted unless one of the two plans refutes it.
    today
        Date to record if the result improves the entry.

    Returns
    -------
    A pair of the instance and a list of sentences. The instance contains the better of the two
    plans and the better of the two bounds. The first sentence is about the plan. The second
    sentence is about the bound and is omitted if the result has no bound.

    Raises
    ------
    InvalidInput
        If the library has no such instance, if the result belongs to another problem, if its plan
        is infeasible, or if its bound is refuted.
    """
    known = saved_instance(name)
    problem = known.load()
    report = verify(problem, result)
    if report.objective is None or not report.feasible:
        raise InvalidInput(
            f"plan: expected a feasible plan for {known.name}: {report.violations[0]}"
        )
    proof = proof_of(
        type(problem), report.objective, result.bound, scale=problem.scale, size=report.size
    )
    if proof.refuted:
        raise InvalidInput(
            f"bound: {result.bound!r} is refuted by the plan's objective, {report.objective!r}"
        )
    sign = 1.0 if problem.sense == "minimize" else -1.0
    if result.bound is not None and sign * (result.bound - known.best.objective) > TOLERANCE * abs(
        known.best.objective
    ):
        raise InvalidInput(
            f"bound: {result.bound!r} is refuted by the best known objective,"
            f" {known.best.objective!r}"
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
        f"plan: {report.objective:.9g}, feasible;"
        f" {_compared(best.objective != known.best.objective)} the best known plan,"
        f" {known.best.objective:.9g}"
    ]
    if proof.bound is not None:
        before = "no bound was known"
        if known.best.bound is not None:
            compared = _compared(best.bound != known.best.bound)
            before = f"{compared} the best known bound, {known.best.bound:.9g}"
        said.append(f"bound: {proof.bound:.9g}, as claimed; {before}")
    return replace(known, best=best), said


def _compared(better: bool) -> str:
    return "better than" if better else "no better than"


def certificate(problem: Problem, objective: float, bound: float | None) -> dict[str, Any]:
    """Return the `BestKnown` fields objective, bound, status and gap for a plan and a bound."""
    if bound is not None and not math.isfinite(bound):
        bound = None
    gap = None if bound is None else problem.gap(objective, bound)
    proven = gap is not None and gap <= TOLERANCE
    return {
        "objective": objective,
        "bound": bound,
        "status": "optimal" if proven else "feasible",
        "gap": 0.0 if proven else gap,
    }


def better_of(problem: Problem, old: BestKnown, new: BestKnown) -> BestKnown:
    """Return the old entry, updated with the plan or the bound of the new entry if it is better.

    Improvements that do not exceed the rounding error are ignored. A bound of the old entry that
    the new plan refutes is dropped.
    """
    sign = 1.0 if problem.sense == "minimize" else -1.0
    rounding = TOLERANCE * abs(old.objective)
    if old.bound is not None and sign * new.objective < sign * old.bound - rounding:
        old = replace(old, bound=None, bound_method=None)
    best = old
    when = dict[str, Any](seconds=new.seconds, date=new.date, versions=new.versions)
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
    """Return the JSON line that represents an instance in the library file.

    Empty fields are omitted.
    """
    data: dict[str, Any] = {"name": instance.name, "version": instance.version} | asdict(instance)
    best = {name: value for name, value in data["best"].items() if value not in (None, (), {})}
    data["best"] = {"bound": None, "gap": None, "bound_method": None} | best
    return json.dumps(
        {name: value for name, value in data.items() if value is not None}, separators=(",", ":")
    )


@cache
def instances_of_kind(kind: str) -> Mapping[str, SavedInstance]:
    """Return the instances of a kind by name, in the order of the library file.

    Recipes without a result are skipped.
    """
    file = files("specopt.instances.data.library") / f"{kind}.jsonl"
    lines = file.read_bytes().splitlines() if file.is_file() else []
    read = [msgspec.json.decode(line, type=SavedInstance) for line in lines if is_solved(line)]
    return {instance.name: instance for instance in read}


def is_solved(line: bytes) -> bool:
    """Return whether a line of the library file contains a result in addition to the recipe."""
    return "best" in msgspec.json.decode(line, type=dict[str, msgspec.Raw])
