"""What every problem and plan has in common: declared fields, a JSON form, and a judge."""

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
"""Entries from which a column is worth a look at how it is written."""


TOLERANCE = 1e-9
"""Relative: what a constraint on amounts may be missed by, and within what a bound proves an
objective optimal.
"""

ROUNDING = 1e-11
"""Relative: by how much a bound is widened for the rounding of the sums behind it, 90,000 times
half a unit in the last place. A bound that cancels, or that a solver with tolerances gives, pays
for that itself."""


def exceeds(amount: float, limit: float, readings: float = 0.0) -> bool:
    """Return whether a constraint amount <= limit is violated, whatever its unit.

    The terms of every amount here have one sign, so that its size is the sum of theirs. Counts are
    compared as they are, never here; a limit that is a difference of two clock readings brings what
    these may be off, their spacing.
    """
    return amount > limit + TOLERANCE * max(abs(limit), abs(amount)) + readings


@dataclass(frozen=True)
class Evaluation:
    """What the judge says of a plan.

    Parameters
    ----------
    objective
        Its objective.
    terms
        Parts of it, or other figures worth showing.
    size
        Sum of the absolute terms that the objective consists of: what an objective of 0 is held
        against.
    key
        Plans of a problem are compared by it, in the sense of the objective. The objective, unless
        that has too few digits.
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


if (
    TYPE_CHECKING
):  # defaults of type variables come with Python 3.13; type checkers know them by this name
    from typing_extensions import TypeVar

    P = TypeVar("P", bound=Plan, default=Plan, covariant=True)
else:
    from typing import TypeVar

    P = TypeVar("P", bound=Plan, covariant=True)


class Filed(Immutable):
    """Base of what a file holds under its kind: declared dataclasses with a JSON form."""

    kind: ClassVar[str]

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON-like data, fields at their defaults left out."""
        return {"format": FORMAT, "kind": self.kind, **dump(self)}

    @classmethod
    def from_dict(cls, data: object) -> Self:
        """Build it from JSON-like data.

        Raises
        ------
        InvalidInput
            If a field is unknown, missing, of the wrong type or outside its domain.
        """
        return parse(cls, strip_header(data, cls.kind))


@dataclass(frozen=True, kw_only=True, eq=False)
class Problem(Filed, Shown, ABC, Generic[P]):
    """A question that `solve` answers; the subclasses declare its fields and its judge.

    Parameters
    ----------
    name, notes
        Free text; not part of the problem's identity.
    """

    plan_type: ClassVar[type[Plan]]
    sense: ClassVar[Sense]
    objective_label: ClassVar[str]
    worth_label: ClassVar[str] = "objective"  # what `worth` returns, and gaps are shares of

    name: str | None = None
    notes: str | None = None

    def __init_subclass__(cls, **arguments: Any) -> None:
        super().__init_subclass__(**arguments)
        if "kind" in cls.__dict__:
            held = _TYPES.setdefault(cls.kind, cls)
            if (held.__module__, held.__qualname__) == (
                cls.__module__,
                cls.__qualname__,
            ):  # it is written anew
                _TYPES[cls.kind] = cls

    def __post_init__(self) -> None:
        check(self)
        refuse_denormal(self)

    @abstractmethod
    def evaluate(self, plan: Any) -> Evaluation:
        """Return the objective of a plan and its terms, straight from the paper's equations.

        Raises
        ------
        InvalidInput
            If the plan is not a plan for this problem, so that the equations make no sense.
        """

    @abstractmethod
    def violations(self, plan: Any) -> list[str]:
        """Return one sentence for every constraint that the plan violates; empty if feasible."""

    def expect_plan(self, plan: object) -> None:
        """Refuse what is not a plan for this kind of problem."""
        if not isinstance(plan, self.plan_type):
            raise InvalidInput(
                f"plan: expected a {self.plan_type.__name__}, got {describe(plan)}"
                + ("; pass its plan" if hasattr(plan, "plan") else "")
            )

    def plot(self, plan: Any) -> Picture:
        """Return the picture of a plan, or of a result's: a notebook shows it, `save` writes it.

        Raises
        ------
        InvalidInput
            If the plan is none of this kind, or violates the problem.
        """
        picture: Picture = late("picture")(self, plan)
        return picture

    @property
    def scale(self) -> tuple[float, ...]:
        """What `worth` needs to know of the problem."""
        return ()

    @classmethod
    def sense_of(cls, scale: Sequence[float] = ()) -> Sense:
        """Return the sense of problems of a scale: where it differs from problem to problem, the
        scale says it.
        """
        return cls.sense

    @classmethod
    def worth(cls, value: float, scale: Sequence[float] = ()) -> float:
        """Return what gaps are taken on: the objective itself, unless it has no natural zero; NaN
        if out of range.
        """
        return value

    @classmethod
    def widened(cls, bound: float, scale: Sequence[float] = ()) -> float:
        """Return a bound that the rounding of sums does not take across the truth: by its worth
        `ROUNDING` further.
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
        """Return the relative distance of a bound, `|objective - bound| / |objective|`, each by its
        worth.

        Parameters
        ----------
        objective, bound
            Values of the objective of one problem.
        scale
            The problem's.
        size
            Sum of the absolute terms of the objective: what an objective of 0 is held against.
        """
        objective, bound = cls.worth(objective, scale), cls.worth(bound, scale)
        if objective == bound:
            return 0.0
        size = abs(objective) or abs(size)
        return abs(objective - bound) / size if size else math.inf

    def gap(self, objective: float, bound: float, size: float = 0.0) -> float:
        """Return the relative distance of a bound on this problem's objective; see `distance`."""
        return self.distance(objective, bound, self.scale, size)

    @cached_property
    def numbers(self) -> int:
        """How many numbers the fields hold."""
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
                {"type": "string"}, "$schema", "Where an editor finds this schema; not read."
            ),
            "format": described({"const": FORMAT}, "format", "The version of the format."),
            "kind": described({"const": cls.kind}, "kind", "The kind of problem."),
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
"""The problem classes by kind, each entered where it is defined."""


def problem_type(kind: object) -> type[Problem]:
    """Return the problem class of a kind.

    Raises
    ------
    InvalidInput
        If there is no such kind.
    """
    if isinstance(kind, str) and kind not in _TYPES:
        late("plugged_kinds")(kind)  # importing it defines the kinds of this distribution
    if not isinstance(kind, str) or kind not in _TYPES:
        raise InvalidInput(f"kind: expected one of {', '.join(sorted(_TYPES))}, got {kind!r}")
    return _TYPES[kind]


def refuse_subclass(problem: Problem) -> None:
    """Refuse a problem whose class is a subclass of the problem class of its kind.

    Raises
    ------
    InvalidInput
        If it is one: the methods, files and tables of a kind are for its problem class alone.
    """
    own, base = type(problem), problem_type(problem.kind)
    if own is not base:
        raise InvalidInput(
            f"problem: expected an instance of {base.__name__} itself, got {own.__name__}; a"
            " problem with its own judge is its own kind, see"
            " docs/own-method/README.md#your-own-kind"
        )


def canonical_json(data: Mapping[str, Any]) -> bytes:
    """Return the JSON text that identities are digests of: sorted keys, no spaces, numbers as
    Python writes them.

    Long columns of numbers that need no exponent go through msgspec, which writes those alike and
    much faster.
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
    """Tell so of a column, or of a matrix as a list of rows."""
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
    """Check `format` and `kind` of JSON-like data and return the rest, without what `$schema` says
    to editors.

    Raises
    ------
    InvalidInput
        If the data is no object, or its format or kind is another.
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
