"""One cell of a comparison: a method on an instance, with its limits; and the record of what became
of it.
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
"""The status of a cell without a result."""


@dataclass(frozen=True, kw_only=True)
class Run:
    """What a cell and its record share.

    Parameters
    ----------
    instance
        Name of the instance, for people.
    problem_sha256, kind, scale
        Identity of the problem, and what its gaps are taken on.
    method, options, label
        Name and options of the method; its name with the options that are not at their defaults.
    sources
        Version and digests of what the result depends on; see `sources_of`.
    time_limit, gap_limit, seed
        As `time_limit`, `gap` and `seed` in `specopt.solve`.
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
    """A method on an instance.

    Parameters
    ----------
    problem
        The problem in its JSON form.
    pickled
        The method itself, as text: what the worker runs.
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
        """Return the cell of a problem and a method.

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
            time_limit=None if time_limit is None else float(time_limit),  # 2 and 2.0 are one cell
            gap_limit=float(gap),
            seed=seed,
            scale=problem.scale,
        )

    @property
    def key(self) -> str:
        """What tells this cell from others in any run: problem, method, sources, limits; not the
        instance's name.
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
    """Return a method's name, with the options that are not at their defaults."""
    changed = [f for f in fields(method) if getattr(method, f.name) != f.default]
    return method.name + "".join(
        f" {f.name}={getattr(method, f.name)}" for f in sorted(changed, key=lambda f: f.name)
    )


def pickled(value: Method, where: str) -> str:
    """Return a method as text: by its import path, or whole if it has none, as in a notebook.

    Raises
    ------
    InvalidInput
        If an option or its class holds what cannot leave this process; the message names it,
        beginning with `where`.
    """
    import cloudpickle

    try:
        return base64.b64encode(cloudpickle.dumps(value)).decode()
    except (pickle.PicklingError, TypeError, AttributeError, RecursionError) as error:
        raise InvalidInput(f"{where} cannot be sent to a worker process ({error})") from None


def unpickled(text: str) -> Any:
    """Return the method of a text."""
    return pickle.loads(base64.b64decode(text))


@dataclass(frozen=True, kw_only=True)
class Record(Run):
    """What became of a cell: the numbers of its result, or why there are none.

    Parameters
    ----------
    key
        Key of the cell.
    status
        Of the result, or ``failed``: crashed, killed, refused.
    termination, objective, bound, gap, seconds
        Of the result; None where it failed.
    wall_seconds
        From the outside, the process around it included.
    error
        Why it failed, or which of its claims its numbers refute.
    started, host, versions
        When (UTC), on which machine, and with which versions it was solved.
    plan, stats
        Of the result: what it can be judged by again. None and empty where it failed, and in
        records of earlier versions. The problem is in a file of the folder, or in the instance
        library, by its digest.
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
        """Return the record of a cell."""
        return cls(
            key=cell.key, **{one.name: getattr(cell, one.name) for one in fields(Run)}, **found
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
    def identity(self) -> tuple[Any, ...]:
        """What records of one cell share, whatever sources it was run with."""
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
        for name in ("time_limit", "gap_limit", "seconds", "wall_seconds"):
            number(name, getattr(record, name) or 0.0, 0)
        try:
            kind_of(record.kind).problem.distance(1.0, 1.0, record.scale)
        except (ArithmeticError, LookupError):
            raise InvalidInput(
                f"scale: expected that of {record.kind}, got {describe(record.scale)}"
            ) from None
        if record.status not in (*Status, FAILED):
            raise InvalidInput(
                f"status: expected one of {', '.join((*Status, FAILED))}, got"
                f" {describe(record.status)}"
            )
        return record
