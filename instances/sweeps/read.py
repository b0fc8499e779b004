"""Reading sweeps, whatever wrote them."""

from __future__ import annotations

import os
from collections.abc import Iterable

from specopt.instances.reading.lines import Lines, open_lines
from specopt.instances.sweeps.rows import Rows
from specopt.instances.sweeps.source import DraftLength, parse_source
from specopt.instances.sweeps.table import read_csv
from specopt.models.errors import InvalidInput
from specopt.models.fields import describe
from specopt.models.sweep import Sweep


def read_sweep(path: str | os.PathLike[str], *, draft_length: DraftLength = ..., workload: str | None = None) -> Sweep:
    """Read the runs of one file; those that failed are left out and counted in its notes.

    Parameters
    ----------
    path
        The file.
    draft_length
        What the runs drafted where the file does not say it; None: no speculation was configured; ``...``: not said.
    workload
        The workload to take; None: all.

    Raises
    ------
    InvalidInput
        If the file cannot be read or is no sweep; the message names what was expected and what came.
    """
    return _only(_read(path, draft_length), workload)


def read_sweeps(sources: Iterable[str | os.PathLike[str]], *, workload: str | None = None) -> Sweep:
    """Read the runs of several files as one sweep; a text may end in ``@K`` or ``@none``, see `parse_source`.

    Parameters
    ----------
    sources
        The files.
    workload
        The workload to take; None: all.

    Raises
    ------
    InvalidInput
        If a file cannot be read or is no sweep, or they do not go together.
    """
    sweeps: dict[str, Sweep] = {}
    for source in sources:
        path, length = parse_source(source) if isinstance(source, str) else (os.fspath(source), ...)
        if os.fspath(source) in sweeps:
            raise InvalidInput(f"{source}: expected each file once")
        sweeps[os.fspath(source)] = _read(path, length)
    runs = tuple(run for sweep in sweeps.values() for run in sweep.measurements)
    several = len(sweeps) > 1
    notes = tuple(f"{name}: {note}" if several else note for name, sweep in sweeps.items() for note in sweep.notes)
    return _only(Sweep(runs, notes), workload)


def _read(path: str | os.PathLike[str], draft_length: DraftLength) -> Sweep:
    where = os.fspath(path)
    rows = Rows(where)
    try:
        with open_lines(path) as stream:
            read_csv(Lines(stream, where), rows)
    except OSError as error:
        raise InvalidInput(f"{where}: cannot be read ({error.strerror or error})") from None
    except ValueError as error:  # a zero byte in the path
        if isinstance(error, InvalidInput):
            raise
        raise InvalidInput(f"{where}: cannot be read ({error})") from None
    if draft_length is not ...:
        raise InvalidInput(
            f"{where}: draft_length: expected none given, the file says it, got {describe(draft_length)}"
        )
    return rows.sweep()


def _only(sweep: Sweep, workload: str | None) -> Sweep:
    if workload is None:
        return sweep
    if workload not in sweep.workloads:
        known = ", ".join(map(describe, sweep.workloads))
        raise InvalidInput(f"workload: expected one of {known}, got {describe(workload)}")
    return Sweep(tuple(run for run in sweep.measurements if run.point.condition.workload == workload), sweep.notes)
