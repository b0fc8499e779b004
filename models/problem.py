"""Common base of all problems and plans: declared fields, a JSON form, and a judge."""

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
"""Columns with at least this many entries are checked for a faster way to write them."""


TOLERANCE = 1e-9
"""A constraint on amounts may be violated by this relative amount, and a bound proves an objective
optimal within it.
"""

ROUNDING = 1e-11
"""A bound is widened by this relative amount, 90,000 times half a unit in the last place, for the
rounding of its sums. A bound with cancellation, or of a solver with tolerances, needs its own
margin.
"""


def exceeds(amount: float, limit: float, readings: float = 0.0) -> bool:
    """Return whether a constraint amount <= limit is violated, in any unit.

    The terms of every amount have one sign, so its size is the sum of their sizes. Counts are
    compared exactly, not by this function. For a limit that is a difference of two clock readings,
    `readings` is their error, the spacing of floating-point numbers.
    """
    return amount > limit + TOLERANCE * max(abs(limit), abs(amount)) + readings


@dataclass(frozen=True)
class Evaluation:
    """Evaluation of a plan by the judge.

    Parameters
    ----------
    objective
        Objective of the plan.
    terms
        Parts of the objective, or other figures to report.
    size
        Sum of the absolute terms of the objective, with which an objective of 0 is compared.
    key
        Number by which plans of a problem are compared, in the sense of the objective. It is the
        objective, unless that has too few digits.
    """

    objective: float
    terms: dict[str, Any] = field(default_factory=dict)
    size: float = 0.0
    key: float = math.nan

    def __post_init__(self) -> None:
        if math.isnan(self.key):
            object.__setattr__(self, "key", self.objective)


@dataclass(frozen=True, kw_only=True, eq=False)
class Plan(Checked, Shown):
    """A decision for one problem; the subclasses declare its fields."""

    @classmethod
    def from_dict(cls, data: object) -> Self:
        """Build a plan from JSON-like data."""
        return parse(cls, data, "plan")

    def to_dict(self) -> dict[str, Any]:
        """Return the plan as JSON-like data."""
        return dump(self)

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.to_dict() == other.to_dict()

    __hash__ = None  # type: ignore[assignment]  # arrays inside; equal plans need no common hash


# defaults of type variables come with Python 3.13; type checkers know them by this name
if TYPE_CHECKING:
    from typing_extensions import TypeVar

    P = TypeVar("P", bound=Plan, default=Plan, covariant=True)
else:
    from typing import TypeVar

    P = TypeVar("P", bound=Plan, covariant=True)


class Filed(Immutable):
    """Base of the values that a file holds under their kind: declared dataclasses with a JSON
    form.
    """

    kind: ClassVar[str]

    def to_dict(self) -> dict[str, Any]:
        """Return the value as JSON-like data without fields that have their default."""
        return {"format": FORMAT, "kind": self.kind, **dump(self)}

    @classmethod
    def from_dict(cls, data: object) -> Self:
        """Build the value from JSON-like data.

        Raises
        ------
        InvalidInput
            If a field is unknown, missing, of the wrong type or outside its domain.
        """
        return parse(cls, strip_header(data, cls.kind))


@dataclass(frozen=True, kw_only=True, eq=False)
class Problem(Filed, Shown, ABC, Generic[P]):
    """A problem that `solve` solves; the subclasses declare its fields and its judge.

    Parameters
    ----------
    name
        Name in free text; not part of the problem's identity.
    notes
        Notes in free text; not part of the problem's identity.
    """

    plan_type: ClassVar[type[Plan]]
    sense: ClassVar[Sense]
    objective_label: ClassVar[str]
    worth_label: ClassVar[str] = "objective"  # the result of `worth`, of which gaps are shares

    name: str | None = None
    notes: str | None = None

    def __init_subclass__(cls, **arguments: Any) -> None:
        super().__init_subclass__(**arguments)
        if "kind" in cls.__dict__:
            held = _TYPES.setdefault(cls.kind, cls)
            # a dataclass decorator may define the class again
            if (held.__module__, held.__qualname__) == (cls.__module__, cls.__qualname__):
                _TYPES[cls.kind] = cls

    def __post_init__(self) -> None:
        check(self)
        refuse_denormal(self)

    @abstractmethod
    def evaluate(self, plan: Any) -> Evaluation:
        """Return the objective of a plan and its terms, directly from the paper's equations.

        Raises
        ------
        InvalidInput
            If the plan does not match this problem, so that the equations do not apply.
        """

    @abstractmethod
    def violations(self, plan: Any) -> list[str]:
        """Return one sentence for every constraint that the plan violates; empty if feasible."""

    def expect_plan(self, plan: object) -> None:
        """Reject anything that is not a plan for this kind of problem."""
        if not isinstance(plan, self.plan_type):
            raise InvalidInput(
                f"plan: expected a {self.plan_type.__name__}, got {describe(plan)}"
                + ("; pass its plan" if hasattr(plan, "plan") else "")
            )

    @staticmethod
    def _refuse(defects: Sequence[str]) -> None:
        if defects:
            raise InvalidInput(defects[0])

    def plot(self, plan: Any) -> Picture:
        """Return a picture of a plan, or of the plan of a result. A notebook shows it, `save`
        writes it.

        Raises
        ------
        InvalidInput
            If the plan is not of this kind, or violates the problem.
        """
        picture: Picture = late("picture")(self, plan)
        return picture

    @property
    def scale(self) -> tuple[float, ...]:
        """Data of the problem that `worth` needs."""
        return ()

    @classmethod
    def sense_of(cls, scale: Sequence[float] = ()) -> Sense:
        """Return the sense of problems with a given scale. The scale determines the sense if it
        differs from problem to problem.
        """
        return cls.sense

    @classmethod
    def worth(cls, value: float, scale: Sequence[float] = ()) -> float:
        """Return the value on which gaps are computed: the objective, unless it has no natural
        zero. The value is NaN if it is out of range.
        """
        return value

    @classmethod
    def widened(cls, bound: float, scale: Sequence[float] = ()) -> float:
        """Return a bound that stays valid after the rounding of sums, further by a relative
        `ROUNDING` of its worth.
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
        """Return the relative distance of a bound, `|objective - bound| / |objective|`, on the
        scale of `worth`.

        Parameters
        ----------
        objective
            Objective of a plan.
        bound
            Bound on the objective of the same problem.
        scale
            Scale of the problem.
        size
            Sum of the absolute terms of the objective, with which an objective of 0 is compared.
        """
        objective = cls.worth(objective, scale)
        bound = cls.worth(bound, scale)
        if objective == bound:
            return 0.0
        size = abs(objective) or abs(size)
        return abs(objective - bound) / size if size else math.inf

    def gap(self, objective: float, bound: float, size: float = 0.0) -> float:
        """Return the relative distance of a bound from this problem's objective; see `distance`."""
        return self.distance(objective, bound, self.scale, size)

    @cached_property
    def numbers(self) -> int:
        """Number of numbers that the fields hold."""
        return count_numbers(tuple(getattr(self, one.name) for one in fields(self)))

    @cached_property
    def sha256(self) -> str:
        """Digest of the canonical JSON form, without `name` and `notes`: the problem's identity."""
        data = self.to_dict()
        data.pop("name", None)
        data.pop("notes", None)
        return hashlib.sha256(canonical_json(data)).hexdigest()

    @classmethod
    def json_schema(cls) -> dict[str, Any]:
        """Return the JSON Schema of a problem file of this kind."""
        body = schema(cls)
        header = {
            "$schema": described(
                {"type": "string"}, "$schema", "Location of this schema for editors; not read."
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

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Problem)
            and type(self) is type(other)
            and self.to_dict() == other.to_dict()
        )

    def __hash__(self) -> int:
        return hash(self.sha256)


_TYPES: dict[str, type[Problem]] = {}
"""Each problem class is added under its kind when it is defined."""


def problem_type(kind: object) -> type[Problem]:
    """Return the problem class of a kind.

    Raises
    ------
    InvalidInput
        If there is no such kind.
    """
    if isinstance(kind, str) and kind not in _TYPES:
        late("plugged_kinds")(kind)  # its import defines the kinds of this distribution
    if not isinstance(kind, str) or kind not in _TYPES:
        raise InvalidInput(f"kind: expected one of {', '.join(sorted(_TYPES))}, got {kind!r}")
    return _TYPES[kind]


def refuse_subclass(problem: Problem) -> None:
    """Reject a problem whose class is a subclass of the problem class of its kind.

    Raises
    ------
    InvalidInput
        If it is an instance of a subclass: methods, files and tables support only the class itself.
    """
    own, base = type(problem), problem_type(problem.kind)
    if own is not base:
        raise InvalidInput(
            f"problem: expected an instance of {base.__name__} itself, got {own.__name__}; to"
            " change the judge, define a new kind, see"
            " docs/own-method/README.md#your-own-kind"
        )


def canonical_json(data: Mapping[str, Any]) -> bytes:
    """Return the JSON text from which identities are computed: sorted keys, no spaces, numbers as
    Python writes them.

    Long columns of numbers without exponents are written by msgspec, which writes them identically
    and much faster.
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
    """Return whether no number of a column, or of a matrix as a list of rows, needs an exponent."""
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
    """Check `format` and `kind` of JSON-like data and return the rest without `$schema`.

    Raises
    ------
    InvalidInput
        If the data is not an object, or its format or kind is a different one.
    """
    if not isinstance(data, Mapping):
        raise InvalidInput(f"the top level: expected an object, got {describe(data)}")
    for key, expected in (("format", FORMAT), ("kind", kind)):
        if key not in data:
            raise InvalidInput(f"{key}: required field is missing")
        if data[key] != expected:
            raise InvalidInput(f"{key}: expected {expected!r}, got {describe(data[key])}")
    if not isinstance(data.get("$schema", ""), str):
        raise InvalidInput(f"$schema: expected text, got {describe(data['$schema'])}")
    return {key: value for key, value in data.items() if key not in ("$schema", "format", "kind")}
