"""Cells of a comparison, and records of their results.

A cell is a method applied to an instance within given limits.
"""

from __future__ import annotations

import base64
import hashlib
import json
import pickle
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from specopt.kinds import kind_of
from specopt.models.arguments import number
from specopt.models.errors import InvalidInput
from specopt.models.fields import describe, read
from specopt.models.problem import Problem
from specopt.models.result import Status
from specopt.solvers.method import Method

FAILED = "failed"
"""Status of a cell that produced no result."""


@dataclass(frozen=True, kw_only=True)
class Run:
    """Fields shared by cells and records.

    Parameters
    ----------
    instance
        Name of the instance, for display.
    kind
        Kind of the problem.
    problem_sha256
        Digest of the problem.
    method
        Name of the method.
    options
        Options of the method.
    time_limit
        As in `specopt.solve`.
    gap_limit
        As `gap` in `specopt.solve`.
    seed
        As in `specopt.solve`.
    scale
        Problem data on which the relative gaps depend.
    label
        Name of the method, followed by the options that differ from their defaults.
    sources
        Version and digests of the source code on which the result depends; see `sources_of`.
    """

    instance: str
    kind: str
    problem_sha256: str
    method: str
    options: dict[str, Any]
    time_limit: float | None
    gap_limit: float
    seed: int
    scale: tuple[float, ...] = ()
    label: str = ""
    sources: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Cell(Run):
    """A method to be run on an instance.

    Parameters
    ----------
    problem
        Problem as JSON-compatible data.
    pickled
        Method to run, pickled and encoded as text.
    """

    problem: dict[str, Any]
    pickled: str

    @classmethod
    def of(
        cls,
        instance: str,
        problem: Problem,
        method: Method,
        time_limit: float | None,
        gap: float,
        seed: int,
        sources: dict[str, str],
    ) -> Cell:
        """Create the cell that runs a method on a problem.

        Raises
        ------
        InvalidInput
            If the method cannot be sent to a worker process.
        """
        return cls(
            instance=instance,
            problem=problem.to_dict(),
            problem_sha256=problem.sha256,
            kind=problem.kind,
            method=method.name,
            options=method.options,
            label=label_of(method),
            pickled=pickled(method, f"methods: {method.name}"),
            sources=sources,
            # converted to float, so that 2 and 2.0 give equal keys
            time_limit=None if time_limit is None else float(time_limit),
            gap_limit=float(gap),
            seed=seed,
            scale=problem.scale,
        )

    @property
    def key(self) -> str:
        """Key of the cell.

        The key depends on the problem, method, sources, limits and seed, but not on the name of the
        instance.
        """
        parts = [
            self.problem_sha256,
            self.method,
            self.options,
            self.sources,
            self.time_limit,
            self.gap_limit,
            self.seed,
        ]
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:32]


def label_of(method: Method) -> str:
    """Return the name of a method followed by the options that differ from their defaults."""
    changed = [f for f in fields(method) if getattr(method, f.name) != f.default]
    return method.name + "".join(
        f" {f.name}={getattr(method, f.name)}" for f in sorted(changed, key=lambda f: f.name)
    )


def pickled(value: Method, where: str) -> str:
    """Pickle a method as text, by import path, or by value if it is defined in a notebook.

    Raises
    ------
    InvalidInput
        If the method cannot be pickled. The message begins with `where`.
    """
    import cloudpickle

    try:
        return base64.b64encode(cloudpickle.dumps(value)).decode()
    except (pickle.PicklingError, TypeError, AttributeError, RecursionError) as error:
        raise InvalidInput(f"{where} cannot be sent to a worker process ({error})") from None


def unpickled(text: str) -> Any:
    """Return the method encoded in a text by `pickled`."""
    return pickle.loads(base64.b64decode(text))


@dataclass(frozen=True, kw_only=True)
class Record(Run):
    """Outcome of a cell, which is either the numbers of a result or the reason for a failure.

    Parameters
    ----------
    key
        Key of the cell.
    status
        Status of the result, or ``failed`` if the method crashed, was killed or was refused.
    termination
        Termination of the result; None if the cell failed.
    objective
        Objective of the result; None if the cell failed.
    bound
        Bound of the result; None if the cell failed.
    gap
        Gap of the result; None if the cell failed.
    seconds
        Duration of the solve, in seconds; None if the cell failed.
    wall_seconds
        Duration of the cell in seconds, including the start of its process.
    error
        Reason for a failure, or those claims of the result that its numbers refute.
    started
        Start time of the solve (UTC).
    host
        Name of the machine.
    versions
        Versions of the libraries that were used.
    plan
        Plan of the result, so that it can be judged again; None if the cell failed or the record
        was written by an earlier version. The problem is stored separately under its digest, in
        the folder or in the instance library.
    stats
        Counters of the result; empty if the cell failed.
    """

    key: str
    status: str
    termination: str | None = None
    objective: float | None = None
    bound: float | None = None
    gap: float | None = None
    seconds: float | None = None
    wall_seconds: float = 0.0
    error: str | None = None
    started: str = ""
    host: str = ""
    versions: dict[str, str] = field(default_factory=dict)
    plan: dict[str, Any] | None = None
    stats: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, cell: Cell, **found: Any) -> Record:
        """Return the record of a cell with the given results."""
        return cls(
            key=cell.key, **{one.name: getattr(cell, one.name) for one in fields(Run)}, **found
        )

    @property
    def failed(self) -> bool:
        """Whether the cell produced no result."""
        return self.status == FAILED

    @property
    def infeasible(self) -> bool:
        """Whether the result proves that no plan is feasible. Such a proof counts as an answer."""
        return self.status == "infeasible"

    @property
    def identity(self) -> tuple[Any, ...]:
        """Values that identify the cell regardless of the source code with which it was run."""
        options = json.dumps(self.options, sort_keys=True)
        return (
            self.problem_sha256,
            self.method,
            options,
            self.time_limit,
            self.gap_limit,
            self.seed,
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the record as JSON-compatible data."""
        return asdict(self)

    @classmethod
    def from_dict(cls, data: object) -> Record:
        """Return the record stored in JSON-compatible data; keys of later versions are ignored.

        Raises
        ------
        InvalidInput
            If the data is not a valid record, or its kind is unknown.
        """
        record: Record = read(cls, data, "")
        for name in ("time_limit", "gap_limit", "seconds", "wall_seconds"):
            number(name, getattr(record, name) or 0.0, 0)
        try:
            kind_of(record.kind).problem.distance(1.0, 1.0, record.scale)
        except (ArithmeticError, LookupError):
            raise InvalidInput(
                f"scale: expected a scale for {record.kind}, got {describe(record.scale)}"
            ) from None
        if record.status not in (*Status, FAILED):
            raise InvalidInput(
                f"status: expected one of {', '.join((*Status, FAILED))}, got"
                f" {describe(record.status)}"
            )
        return record
