"""Folders of results: the files in them that hold runs, each once."""

from __future__ import annotations

from pathlib import Path

from specopt.models.errors import InvalidInput

SUMMARY = "summary.json"
MAX_FILES = 10_000
NO_RESULTS = (".pytorch.json", ".failure.json", "warmup.json")
"""How names of files end that lie beside results, or hold them once more."""


def files_in(folder: Path) -> list[Path]:
    """Return the files that hold the runs of a folder and its subfolders, sorted.

    Where there is any `summary.json`, as `vllm bench sweep` writes one for each setting, those hold all runs.

    Raises
    ------
    InvalidInput
        If there are none, or too many.
    """
    found = sorted(path for path in folder.rglob("*.json") if not path.name.endswith(NO_RESULTS))
    found = [path for path in found if path.name == SUMMARY] or found
    if not 0 < len(found) <= MAX_FILES:
        raise InvalidInput(f"{folder}: expected 1 to {MAX_FILES:,} files of JSON with results, got {len(found):,}")
    return found
