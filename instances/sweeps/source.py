"""File names on the command line, with an optional draft length of the runs in the file."""

from __future__ import annotations

import os
import re
from types import EllipsisType

NO_SPECULATION = "none"
DraftLength = int | EllipsisType | None
"""Draft length of runs: None without speculation, ``...`` if the file contains the draft length."""

_SUFFIXED = re.compile(rf"(.+)@(\d{{1,6}}|{NO_SPECULATION})", re.ASCII | re.DOTALL)


def parse_source(text: str) -> tuple[str, DraftLength]:
    """Return the path and the draft length in ``FILE``, ``FILE@K`` or ``FILE@none``.

    If a file with the whole text as its name exists, the text is the path of this file.

    Examples
    --------
    >>> parse_source("run.json@3"), parse_source("run.json@none"), parse_source("run.json")
    (('run.json', 3), ('run.json', None), ('run.json', Ellipsis))
    """
    suffixed = _SUFFIXED.fullmatch(text)
    if suffixed is None or os.path.lexists(text):
        return text, ...
    return suffixed[1], None if suffixed[2] == NO_SPECULATION else int(suffixed[2])
