"""Base classes for problems and plans, which define their JSON form, their digest and the interface
of the judge.
"""

from __future__ import annotations

import hashlib
import json
import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Literal, Self

import msgspec
import numpy as np

from specopt.models.errors import InvalidInput
from specopt.models.fields import (
    Checked,
    Immutable,
    check,
    count_numbers,
    describe,
    dump,
    parse,
    refuse_denormal,
)
from specopt.models.late import Picture, Shown, late
from specopt.models.schema import described, schema

Sense = Literal["minimize", "maximize"]

FORMAT = "specopt/1"

LONG_COLUMN = 1000
"""Minimum length of an array for which a faster JSON encoder may be used."""


TOLERANCE = 1e-9
"""Relative tolerance for constraints on real-valued amounts. An objective value also counts as
optimal if its relative distance from the bound is at most this value.
"""

ROUNDING = 1e-11
"""Relative amount by which bounds are widened to allow for rounding errors in sums. This is 90,000
times half a unit in the last place. Bounds with cancellation, and bounds from solvers with
tolerances, need a separate margin.
"""


def exceeds(amount: float, limit: float, readings: float = 0.0) -> bool:
    """Return whether `amount` exceeds `limit` by more than the relative tolerance.

    If an amount is a sum, its terms must all have the same sign, so that they cannot cancel. Counts
    must be compared exactly, without this function. If the limit is a difference between two clock
    readings, `readings` is the spacing between floating-point numbers at these readings.
    """
    return amount > limit + TOLERANCE * max(abs(limit), abs(amount)) + readings


@dataclass(frozen=True)
class Evaluation:
    """The judge's evaluation of a plan.

    Parameters
    ----------
    objective
        Objective value of the plan.
    terms
        Parts of the objective value, or other values to report.
    size
        Sum of the absolute values of the objective's terms. If the objective value is 0,
        differences are measured relative to this sum.
    key
        Value by which plans for the same problem are compared. This is the objective value, unless
        it has too few significant digits.
    tie_break
        Values for choosing between plans whose keys are equal up to rounding, in order of
        importance. Lower values are better.
    """

    objective: float
    terms: dict[str, Any] = field(default_factory=dict)
    size: float = 0.0
    key: float = math.nan
    tie_break: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        if math.isnan(self.key):
            object.__setattr__(self, "key", self.objective)


class Compared:
    """Base class for objects that are equal if they have the same class and the same JSON form.
    They are not hashable unless a subclass defines their hash, because they contain arrays.
    """

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """Return the object as JSON-like data."""

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.to_dict() == other.to_dict()


@dataclass(frozen=True, kw_only=True, eq=False)
class Plan(Checked, Shown, Compared):
    """Base class for plans. A plan assigns values to a problem's decision variables, which
    subclasses declare as fields.
    """

    @classmethod
    def from_dict(cls, data: object) -> Self:
        """Build a plan from JSON-like data in the format of `to_dict`."""
        return parse(cls, data, "plan")

    def to_dict(self) -> dict[str, Any]:
        """Return the plan as JSON-like data. Fields that have their default values are omitted."""
        return dump(self)


# defaults of type variables require Python 3.13; type checkers find them in typing_extensions
if TYPE_CHECKING:
    from typing_extensions import TypeVar

    P = TypeVar("P", bound=Plan, default=Plan, covariant=True)
else:
    from typing import TypeVar

    P = TypeVar("P", bound=Plan, covariant=True)


class Filed(Immutable, Compared):
    """Base class for objects that are stored in files. The field `kind` in a file identifies the
    class.
    """

    kind: ClassVar[str]

    def to_dict(self) -> dict[str, Any]:
        """Return the object as JSON-like data. Fields with their default values are omitted."""
        return {"format": FORMAT, "kind": self.kind, **dump(self)}

    @classmethod
    def from_dict(cls, data: object) -> Self:
        """Build an object from JSON-like data.

        Raises
        ------
        InvalidInput
            If a field is unknown, missing, of the wrong type or outside its domain.
        """
        return parse(cls, strip_header(data, cls.kind))


@dataclass(frozen=True, kw_only=True, eq=False)
class Problem(Filed, Shown, ABC, Generic[P]):
    """Base class for the problems that `solve` accepts. Subclasses declare fields and implement the
    judge.

    Parameters
    ----------
    name
        Name of the problem. It does not affect the problem's digest.
    notes
        Remarks about the problem. They do not affect the problem's digest.
    """

    plan_type: ClassVar[type[Plan]]
    sense: ClassVar[Sense]
    objective_label: ClassVar[str]
    worth_label: ClassVar[str] = "objective"  # label of the result of `worth`

    name: str | None = None
    notes: str | None = None

    def __init_subclass__(cls, **arguments: Any) -> None:
        super().__init_subclass__(**arguments)
        if "kind" in cls.__dict__:
            held = _TYPES.setdefault(cls.kind, cls)
            # a dataclass decorator may create the class a second time
            if (held.__module__, held.__qualname__) == (cls.__module__, cls.__qualname__):
                _TYPES[cls.kind] = cls

    def __post_init__(self) -> None:
        check(self)
        refuse_denormal(self)

    @abstractmethod
    def evaluate(self, plan: Any) -> Evaluation:
        """Return a plan's objective value and its terms. They are computed directly from the
        problem's equations.

        Raises
        ------
        InvalidInput
            If the plan does not match this problem, so that its equations do not apply.
        """

    @abstractmethod
    def violations(self, plan: Any) -> list[str]:
        """Return a message for each constraint that the plan violates. An empty list means that the
        plan is feasible.

        This implementation only returns the reasons why the equations cannot evaluate the plan.
        Implementations in subclasses begin with it.
        """
        self.expect_plan(plan)
        return self._defects(plan)

    def expect_plan(self, plan: object) -> None:
        """Raise `InvalidInput` if `plan` is not a plan for this kind of problem."""
        if not isinstance(plan, self.plan_type):
            raise InvalidInput(
                f"plan: expected a {self.plan_type.__name__}, got {describe(plan)}"
                + ("; pass its `plan` attribute" if hasattr(plan, "plan") else "")
            )

    def expect_fit(self, plan: object) -> None:
        """Raise `InvalidInput` if `plan` is not a plan that this problem can evaluate."""
        self.expect_plan(plan)
        for defect in self._defects(plan):
            raise InvalidInput(defect)

    def _defects(self, plan: Any) -> list[str]:
        """Return the reasons why this problem's equations cannot evaluate a plan."""
        return []

    def plot(self, plan: Any) -> Picture:
        """Return a chart of a plan. The argument may also be a result, whose plan is then shown.

        Notebooks display the chart, and the chart's `save` method writes it to a file.

        Raises
        ------
        InvalidInput
            If the plan belongs to another kind of problem or is infeasible.
        """
        picture: Picture = late("picture")(self, plan)
        return picture

    @property
    def scale(self) -> tuple[float, ...]:
        """Parameters of this problem that the class methods `worth`, `widened` and `sense_of`
        require.
        """
        return ()

    @classmethod
    def sense_of(cls, scale: Sequence[float] = ()) -> Sense:
        """Return "minimize" or "maximize". For some kinds of problems, the sense depends on
        `scale`.
        """
        return cls.sense

    @classmethod
    def worth(cls, value: float, scale: Sequence[float] = ()) -> float:
        """Convert an objective value to the value from which relative gaps are computed. The two
        are equal unless the objective has no natural zero. The result is NaN if no plan can have
        the objective value.
        """
        return value

    @classmethod
    def widened(cls, bound: float, scale: Sequence[float] = ()) -> float:
        """Return a bound that is widened by the relative amount `ROUNDING`. The result is a valid
        bound even if sums are rounded.
        """
        return bound * (
            1.0 + ROUNDING
            if (cls.sense_of(scale) == "maximize") == (bound > 0.0)
            else 1.0 - ROUNDING
        )

    @classmethod
    def distance(
        cls, objective: float, bound: float, scale: Sequence[float] = (), size: float = 0.0
    ) -> float:
        """Return the relative distance `|objective - bound| / |objective|` between an objective
        value and a bound. Both are first converted by `worth`.

        Parameters
        ----------
        objective
            Objective value of a plan.
        bound
            Bound on the objective values of all plans for the same problem.
        scale
            Value of the problem's property `scale`.
        size
            Sum of the absolute values of the objective's terms. If the objective value is 0, this
            sum replaces the denominator.
        """
        objective = cls.worth(objective, scale)
        bound = cls.worth(bound, scale)
        if objective == bound:
            return 0.0
        size = abs(objective) or abs(size)
        return abs(objective - bound) / size if size else math.inf

    def gap(self, objective: float, bound: float, size: float = 0.0) -> float:
        """Return the relative distance between an objective value of this problem and a bound, as
        defined by `distance`.
        """
        return self.distance(objective, bound, self.scale, size)

    @cached_property
    def numbers(self) -> int:
        """Number of values in the problem's fields, which measures the size of the problem."""
        return count_numbers(tuple(getattr(self, one.name) for one in fields(self)))

    @cached_property
    def sha256(self) -> str:
        """SHA-256 digest that identifies the problem. It is computed from the canonical JSON form
        of all fields except `name` and `notes`.
        """
        data = self.to_dict()
        data.pop("name", None)
        data.pop("notes", None)
        return hashlib.sha256(canonical_json(data)).hexdigest()

    @classmethod
    def json_schema(cls) -> dict[str, Any]:
        """Return the JSON Schema for files that contain this kind of problem."""
        body = schema(cls)
        header = {
            "$schema": described(
                {"type": "string"}, "$schema", "Location of this schema, used only by editors."
            ),
            "format": described({"const": FORMAT}, "format", "Version of the format."),
            "kind": described({"const": cls.kind}, "kind", "Kind of problem."),
        }
        header["$schema"]["default"] = None
        return {
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "title": cls.kind,
            **body,
            "properties": header | body["properties"],
            "required": ["format", "kind", *body["required"]],
        }

    def __hash__(self) -> int:
        return hash(self.sha256)


_TYPES: dict[str, type[Problem]] = {}
"""Mapping from each kind to its problem class. A class is added when it is defined."""


def problem_type(kind: object) -> type[Problem]:
    """Return the problem class for a kind, for example ``"serving-latency"``.

    Raises
    ------
    InvalidInput
        If there is no such kind of problem.
    """
    if isinstance(kind, str) and kind not in _TYPES:
        late("plugged_kinds")(kind)  # importing this function also defines the built-in kinds
    if not isinstance(kind, str) or kind not in _TYPES:
        raise InvalidInput(f"kind: expected one of {', '.join(sorted(_TYPES))}, got {kind!r}")
    return _TYPES[kind]


def refuse_subclass(problem: Problem) -> None:
    """Raise an error if a problem is an instance of a user-defined subclass of a problem class.

    Such a subclass may change the judge, but methods, files and tables support only the original
    class.

    Raises
    ------
    InvalidInput
        If the problem's class is not the class that is registered for its kind.
    """
    own, base = type(problem), problem_type(problem.kind)
    if own is not base:
        raise InvalidInput(
            f"problem: expected an instance of {base.__name__} itself, got {own.__name__}; to"
            " change the judge, define a new kind, see"
            " docs/own-method/README.md#your-own-kind"
        )


def canonical_json(data: Mapping[str, Any]) -> bytes:
    """Return the canonical JSON document from which digests are computed.

    Keys are sorted, there are no spaces, and numbers are formatted as Python formats them. Long
    arrays of numbers that are written without exponents are encoded by msgspec, which is much
    faster and produces the same bytes.
    """
    parts = []
    for key in sorted(data):
        value = data[key]
        if isinstance(value, list) and len(value) >= LONG_COLUMN and _needs_no_exponent(value):
            text = msgspec.json.encode(value)
        else:
            text = json.dumps(value, sort_keys=True, separators=(",", ":")).encode()
        parts.append(json.dumps(key).encode() + b":" + text)
    return b"{" + b",".join(parts) + b"}"


def _needs_no_exponent(column: list[Any]) -> bool:
    """Return whether all numbers in a list or a nested list are written without exponents."""
    if not isinstance(column[0], (int, float, list)):
        return False
    try:
        values = np.asarray(column)
    except ValueError:  # rows of different lengths
        return False
    if values.dtype.kind not in "if":
        return False
    sizes = np.abs(values)
    return bool(((sizes == 0) | ((sizes >= 1e-4) & (sizes < 1e15))).all())


def strip_header(data: object, kind: str) -> dict[str, Any]:
    """Check the fields `format` and `kind` of JSON-like data, and return all other fields except
    `$schema`.

    Raises
    ------
    InvalidInput
        If the data is not an object, or has a different format or kind.
    """
    if not isinstance(data, Mapping):
        raise InvalidInput(f"the top level: expected an object, got {describe(data)}")
    for key, expected in (("format", FORMAT), ("kind", kind)):
        if key not in data:
            raise InvalidInput(f"{key}: required field is missing")
        if data[key] != expected:
            raise InvalidInput(f"{key}: expected {expected!r}, got {describe(data[key])}")
    if not isinstance(data.get("$schema", ""), str):
        raise InvalidInput(f"$schema: expected a string, got {describe(data['$schema'])}")
    return {key: value for key, value in data.items() if key not in ("$schema", "format", "kind")}
