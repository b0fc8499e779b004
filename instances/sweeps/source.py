"""File names on the command line, with the draft length of the measurements in a file."""

from __future__ import annotations

import os
import re
from types import EllipsisType

NO_SPECULATION = "none"
DraftLength = int | EllipsisType | None
"""Draft length: None without speculation, ``...`` if the file contains it."""

_SUFFIXED = re.compile(rf"(.+)@(\d{{1,6}}|{NO_SPECULATION})", re.ASCII | re.DOTALL)


def parse_source(text: str) -> tuple[str, DraftLength]:
    """Return the path and the draft length in ``FILE``, ``FILE@K`` or ``FILE@none``. If a file has
    the whole text as its name, the text is its path.

    Examples
    --------
    >>> parse_source("run.json@3"), parse_source("run.json@none"), parse_source("run.json")
    (('run.json', 3), ('run.json', None), ('run.json', Ellipsis))
    """
    suffixed = _SUFFIXED.fullmatch(text)
    if suffixed is None or os.path.lexists(text):
        return text, ...
    return suffixed[1], None if suffixed[2] == NO_SPECULATION else int(suffixed[2])
