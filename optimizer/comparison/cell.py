"""Cells, which are the units of work of a comparison, and records of their results.

A cell is one run of one method on one problem instance with given limits and a given seed.
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
"""Status in the record of a cell that produced no result."""


@dataclass(frozen=True, kw_only=True)
class Run:
    """Description of a run of a method on an instance. Its fields are shared by cells and records.

    Parameters
    ----------
    instance
        Name of the instance, used only for display.
    kind
        Kind of the problem.
    problem_sha256
        SHA-256 digest of the problem.
    method
        Name of the method.
    options
        Options of the method.
    time_limit
        Time limit in seconds, as in `specopt.solve`.
    gap_limit
        Relative gap at which the method may stop, which is called `gap` in `specopt.solve`.
    seed
        Random seed, as in `specopt.solve`.
    scale
        Values from the problem that are needed to compute relative gaps.
    label
        Name of the method, followed by the options that differ from their defaults.
    sources
        Version and digests of the source code on which the result depends, as returned by
        `sources_of`.
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
    """A run of a method on an instance, with the data that is needed to execute it.

    Parameters
    ----------
    problem
        Problem as JSON-compatible data.
    pickled
        Method to run, pickled and encoded as a string.
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
            # numbers are converted to float, so that 2 and 2.0 yield equal keys
            time_limit=None if time_limit is None else float(time_limit),
            gap_limit=float(gap),
            seed=seed,
            scale=problem.scale,
        )

    @property
    def key(self) -> str:
        """Key that identifies the cell.

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
    """Pickle a method and encode it as a string.

    The method is pickled by import path, or by value if it is defined in a notebook.

    Raises
    ------
    InvalidInput
        If the method cannot be pickled. The error message begins with `where`.
    """
    import cloudpickle

    try:
        return base64.b64encode(cloudpickle.dumps(value)).decode()
    except (pickle.PicklingError, TypeError, AttributeError, RecursionError) as error:
        raise InvalidInput(f"{where} cannot be sent to a worker process ({error})") from None


def unpickled(text: str) -> Any:
    """Return the method that `pickled` encoded as a string."""
    return pickle.loads(base64.b64decode(text))


@dataclass(frozen=True, kw_only=True)
class Record(Run):
    """Outcome of a cell: either the numbers in its result or the reason why the cell failed.

    Parameters
    ----------
    key
        Key of the cell.
    status
        Status of the result, or ``failed`` if the method crashed, was killed or was refused.
    termination
        Reason why the method stopped; None if the cell failed.
    objective
        Objective of the plan; None if there is no plan.
    bound
        Bound on the objective of every plan; None if there is no bound.
    gap
        Relative gap between objective and bound; None if it is unknown.
    seconds
        Duration of the solve, in seconds; None if the cell failed.
    wall_seconds
        Total duration of the cell in seconds, including the start of its process.
    error
        Reason for a failure, or sentences about claims of the method that the numbers in the result
        refute.
    started
        Start time of the solve (UTC).
    host
        Name of the machine.
    versions
        Versions of the libraries that were used.
    plan
        Plan in the result, which is stored so that it can be judged again. None if there is no plan
        or if the record was written by an early version. The problem is stored separately under its
        digest, in the folder or in the instance library.
    stats
        Counters that the method reported; empty if the cell failed.
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
        """Create the record of a cell from the fields that describe its outcome."""
        return cls(
            key=cell.key, **{one.name: getattr(cell, one.name) for one in fields(Run)}, **found
        )

    @property
    def failed(self) -> bool:
        """Whether the cell produced no result."""
        return self.status == FAILED

    @property
    def infeasible(self) -> bool:
        """Whether the result proves that no feasible plan exists.

        A cell with such a proof counts as solved.
        """
        return self.status == "infeasible"

    @property
    def identity(self) -> tuple[Any, ...]:
        """Values that identify the cell independently of the version of the source code."""
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
        """Create a record from JSON-compatible data. Keys that later versions added are ignored.

        Raises
        ------
        InvalidInput
            If the data is not a valid record, or if its kind is unknown.
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
