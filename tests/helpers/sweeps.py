"""One file of a sweep, read with what is said beside it."""

from __future__ import annotations

import os
from typing import Any

from specopt.instances.sweeps import read_sweeps
from specopt.models.sweep import Sweep


def read_sweep(
    path: str | os.PathLike[str], draft_length: Any = ..., **chosen: str | None
) -> Sweep:
    """Return the runs of one file, drafted with this length where it does not say it."""
    said = "none" if draft_length is None else draft_length
    return read_sweeps([path if said is ... else f"{os.fspath(path)}@{said}"], **chosen)
