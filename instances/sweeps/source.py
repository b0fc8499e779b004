"""How a command line says a file and the draft length that it was measured with."""

from __future__ import annotations

import os
import re
from types import EllipsisType

NO_SPECULATION = "none"
DraftLength = int | EllipsisType | None
"""None: no speculation was configured; ``...``: not said, the file says it."""

_SUFFIXED = re.compile(rf"(.+)@(\d{{1,6}}|{NO_SPECULATION})", re.ASCII | re.DOTALL)


def parse_source(text: str) -> tuple[str, DraftLength]:
    """Return the path and the draft length in ``FILE``, ``FILE@K`` or ``FILE@none``; a file of that
    whole name wins.

    Examples
    --------
    >>> parse_source("run.json@3"), parse_source("run.json@none"), parse_source("run.json")
    (('run.json', 3), ('run.json', None), ('run.json', Ellipsis))
    """
    suffixed = _SUFFIXED.fullmatch(text)
    if suffixed is None or os.path.lexists(text):
        return text, ...
    return suffixed[1], None if suffixed[2] == NO_SPECULATION else int(suffixed[2])
