"""Storage of comparison records on disk.

Records are appended to files, one record per line, and are flushed to disk immediately. Every
writer has its own file, so that any number of writers can use the same folder. If a writer is
killed, only the running cells are lost. The writer's file then ends with at most one incomplete
line, which readers skip. Readers read all files and use the first record of each cell.

The files in a folder are not trusted: an invalid line is reported and ignored, and the cell is run
again. Records are never removed; those from earlier versions of the source code remain as history.
The folder also contains a file `problems/DIGEST.json` for each problem that is not in the instance
library.
"""

from __future__ import annotations

import json
import logging
import math
import os
import platform
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import msgspec

from specopt.api.library import load_saved, saved, saved_instance
from specopt.comparison.cell import Record
from specopt.comparison.table import Comparison, newest, without_refuted
from specopt.kinds import kind_of
from specopt.models.errors import InvalidInput
from specopt.models.fields import printable
from specopt.models.files import load, to_json, unwritten, write_text
from specopt.models.judge import verify
from specopt.models.problem import TOLERANCE, Problem
from specopt.models.reading import StrPath, read_bytes

logger = logging.getLogger("specopt")

PATTERN = "records-*.jsonl"


class Store:
    """A folder in which the records of a comparison are stored.

    Parameters
    ----------
    folder
        Path of the folder, which is created if it does not exist.

    Raises
    ------
    InvalidInput
        If the folder cannot be created or read.
    """

    def __init__(self, folder: StrPath) -> None:
        self.folder = Path(folder)
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except (OSError, ValueError) as error:  # ValueError: a null byte in the path
            raise InvalidInput(
                f"{folder}: cannot be created ({getattr(error, 'strerror', None) or error})"
            ) from None
        self.damaged: list[str] = []
        self._file: int | None = None
        self._path = (
            self.folder / f"records-{platform.node()}-{os.getpid()}-{uuid.uuid4().hex[:8]}.jsonl"
        )

    def records(self) -> dict[str, Record]:
        """Read all records in the folder, and return them by cell key.

        Messages about invalid lines are stored in the attribute `damaged`.
        """
        found: dict[str, Record] = {}
        self.damaged = []
        try:
            texts = {
                path: read_bytes(path)
                for path in sorted(self.folder.glob(PATTERN))
                if path.is_file()
            }
        except OSError as error:
            raise InvalidInput(
                f"{self.folder}: cannot be read ({error.strerror or error})"
            ) from None
        for path, text in texts.items():
            *lines, _ = text.split(b"\n")  # a last line without a newline is incomplete
            for number, line in enumerate(lines, start=1):
                try:
                    record = Record.from_dict(msgspec.json.decode(line))
                except (ValueError, msgspec.MsgspecError, RecursionError) as error:
                    self.damaged.append(printable(f"{path}:{number}: invalid record ({error})"))
                else:
                    found.setdefault(record.key, record)
        return found

    def log_damaged(self) -> None:
        """Log a warning for each invalid line that was found when the records were last read."""
        for damaged in self.damaged:
            logger.warning("%s; the record is ignored, and its cell is run again", damaged)

    def open(self) -> int:
        """Open this writer's file unless it is already open, and return the file descriptor.

        If this method is called first, an unwritable folder is rejected before any work is done.

        Raises
        ------
        InvalidInput
            If the file cannot be written.
        """
        if self._file is None:
            try:
                self._file = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
            except OSError as error:
                raise unwritten(self._path, error) from None
        return self._file

    def append(self, record: Record) -> None:
        """Append a record to this writer's file, and flush the file to disk.

        Raises
        ------
        InvalidInput
            If the record cannot be written. Readers skip a record that was written only partially.
        """
        line = json.dumps(record.to_dict(), allow_nan=False).encode() + b"\n"
        file = self.open()
        try:
            while line:
                line = line[os.write(file, line) :]
            os.fsync(file)
        except OSError as error:
            raise unwritten(self._path, error) from None

    def keep(self, digest: str, problem: Mapping[str, Any]) -> None:
        """Save a problem, unless it is already in the folder or in the instance library.

        Raises
        ------
        InvalidInput
            If the problem cannot be written.
        """
        path = self._problem(digest)
        if not path.exists() and digest not in _library():
            path.parent.mkdir(exist_ok=True)
            write_text(path, to_json(problem) + "\n")

    def problem(self, record: Record) -> Problem:
        """Return the problem of a record, read from the folder or from the instance library.

        Raises
        ------
        InvalidInput
            If the problem is in neither of them, or if its file contains another problem.
        """
        path = self._problem(record.problem_sha256)
        name = _library().get(record.problem_sha256)
        if name is not None:
            return load_saved(name)
        if not path.is_file():
            raise InvalidInput(
                f"problem: {path} does not exist, and the instance library has no problem with that"
                " digest"
            )
        problem = load(path, Problem)  # type: ignore[type-abstract]
        if problem.sha256 != record.problem_sha256:
            raise InvalidInput(
                f"problem: {path} contains another problem, whose digest is {problem.sha256}"
            )
        return problem

    def _problem(self, digest: str) -> Path:
        return self.folder / "problems" / f"{digest}.json"

    def close(self) -> None:
        """Close this writer's file, and remove the file if it is empty."""
        if self._file is not None:
            os.close(self._file)
            self._file = None
            if self._path.exists() and not self._path.stat().st_size:
                self._path.unlink()


def merged(folders: Sequence[StrPath]) -> Comparison:
    """Combine several folders into a comparison that contains the newest record of every cell.

    Raises
    ------
    InvalidInput
        If a folder contains no records, or if methods from two distributions have the same name.
    """
    records = [record for folder in folders for record in opened(folder).records().values()]
    owners: dict[tuple[str, str], str] = {}
    for record in newest(records):
        owner = record.sources.get("version", "").partition(" ")[0]
        other = owners.setdefault((record.kind, record.method), owner)
        if other != owner:
            names = " and ".join(repr(name or "no distribution") for name in (other, owner))
            raise InvalidInput(
                f"{record.kind}: methods of {names} have the same name {record.method!r}"
            )
    return Comparison(newest(records))


def opened(folder: StrPath) -> Store:
    """Open an existing folder of records, and log a warning for each invalid line in it.

    Raises
    ------
    InvalidInput
        If the folder contains no records.
    """
    store = Store(folder) if Path(folder).is_dir() else None
    if store is None or not store.records():
        why = "" if store is None or not store.damaged else f"; {store.damaged[0]}"
        raise InvalidInput(
            f"{folder}: expected a folder with comparison results, but found no results{why}"
        )
    store.log_damaged()
    return store


@cache
def _library() -> dict[str, str]:
    return {saved_instance(name).problem_sha256: name for name in saved()}


def judged_again(store: Store) -> list[tuple[Record, list[str]]]:
    """Judge every plan in a folder again, and compare the judge's numbers with the records.

    The judge uses only the data of the problem. Return each record together with a list of
    sentences, one for each number that differs. The list is empty for a record without a plan,
    because it cannot be judged.
    """
    return [(record, _differences(record, store)) for record in store.records().values()]


def _differences(record: Record, store: Store) -> list[str]:
    if record.plan is None:
        return []
    try:
        problem = store.problem(record)
        report = verify(problem, kind_of(record.kind).plan.from_dict(record.plan))
    except InvalidInput as error:
        return [str(error)]
    if report.objective is None or not report.feasible:
        return [f"plan: infeasible: {report.violations[0]}"]
    objective = record.objective
    if objective is None or not math.isclose(objective, report.objective, rel_tol=TOLERANCE):
        objective = report.objective
    judged = without_refuted(replace(record, objective=objective), report.objective, report.size)
    return [
        f"{name}: {getattr(record, name)} in the record, "
        + (
            "refuted by its plan"
            if name == "bound"
            else f"{getattr(judged, name)} by its plan and bound"
        )
        for name in ("objective", "bound", "gap", "status")
        if getattr(record, name) != getattr(judged, name)
    ]
