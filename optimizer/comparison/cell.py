"""One cell of a comparison: a method on an instance, with its limits; and the record of what became of it."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from specopt.kinds import kind_of
from specopt.models.errors import InvalidInput
from specopt.models.fields import describe, read
from specopt.models.problem import Problem
from specopt.models.result import Status
from specopt.solvers.method import Method

FAILED = "failed"
"""The status of a cell without a result."""


@dataclass(frozen=True)
class Cell:
    """A method on an instance.

    Parameters
    ----------
    instance
        Name of the instance, for people.
    problem
        Its JSON form.
    problem_sha256, kind, scale
        What identifies it, and what its gaps are taken on.
    method, options
        Name and options of the method.
    time_limit, gap, seed
        As in `specopt.solve`.
    """

    instance: str
    problem: dict[str, Any]
    problem_sha256: str
    kind: str
    method: str
    options: dict[str, Any]
    time_limit: float | None
    gap: float
    seed: int
    scale: tuple[float, ...] = ()

    @classmethod
    def of(
        cls, instance: str, problem: Problem, method: Method, time_limit: float | None, gap: float, seed: int
    ) -> Cell:
        """Return the cell of a problem and a method."""
        return cls(
            instance=instance,
            problem=problem.to_dict(),
            problem_sha256=problem.sha256,
            kind=problem.kind,
            method=method.name,
            options=method.options,
            time_limit=None if time_limit is None else float(time_limit),  # 2 and 2.0 are one cell
            gap=float(gap),
            seed=seed,
            scale=problem.scale,
        )

    @property
    def key(self) -> str:
        """What tells this cell from others, in any run: problem, method and limits; not the instance's name."""
        parts = [self.problem_sha256, self.method, self.options, self.time_limit, self.gap, self.seed]
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:32]


@dataclass(frozen=True)
class Record:
    """What became of a cell: the numbers of its result, or why there are none.

    Parameters
    ----------
    key, instance, kind, problem_sha256, method, options, time_limit, gap_limit, seed, scale
        The cell.
    status
        Of the result, or ``failed``: crashed, killed, refused.
    termination, objective, bound, gap, seconds
        Of the result; None where it failed.
    wall_seconds
        From the outside, the process around it included.
    error
        Why it failed.
    started, host, versions
        When (UTC), where, and with what.
    """

    key: str
    instance: str
    kind: str
    problem_sha256: str
    method: str
    options: dict[str, Any]
    time_limit: float | None
    gap_limit: float
    seed: int
    status: str
    termination: str | None = None
    objective: float | None = None
    bound: float | None = None
    gap: float | None = None
    seconds: float | None = None
    wall_seconds: float = 0.0
    error: str | None = None
    scale: tuple[float, ...] = ()
    started: str = ""
    host: str = ""
    versions: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, cell: Cell, **found: Any) -> Record:
        """Return the record of a cell."""
        return cls(
            key=cell.key,
            instance=cell.instance,
            kind=cell.kind,
            problem_sha256=cell.problem_sha256,
            method=cell.method,
            options=cell.options,
            time_limit=cell.time_limit,
            gap_limit=cell.gap,
            seed=cell.seed,
            scale=cell.scale,
            **found,
        )

    @property
    def failed(self) -> bool:
        """Whether there is no result at all."""
        return self.status == FAILED

    @property
    def infeasible(self) -> bool:
        """Whether the result is a proof that no plan is feasible: an answer, in place of a plan."""
        return self.status == "infeasible"

    @property
    def label(self) -> str:
        """The method, with the options that are not at their defaults given by the caller."""
        for method in kind_of(self.kind).methods:
            if method.name == self.method:
                default = {f.name: f.default for f in fields(method)}
                changed = {name: value for name, value in self.options.items() if default.get(name) != value}
                return self.method + "".join(f" {name}={value}" for name, value in sorted(changed.items()))
        return self.method

    def to_dict(self) -> dict[str, Any]:
        """Return the record as JSON-like data."""
        return asdict(self)

    @classmethod
    def from_dict(cls, data: object) -> Record:
        """Return the record of JSON-like data; unknown keys, of later versions, are left out.

        Raises
        ------
        InvalidInput
            If the data is no record, or of a kind that is not known here.
        """
        record: Record = read(cls, data, "")
        kind_of(record.kind)
        if record.status not in (*Status, FAILED):
            raise InvalidInput(f"status: expected one of {', '.join((*Status, FAILED))}, got {describe(record.status)}")
        return record
