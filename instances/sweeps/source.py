"""Parser for file names on the command line.

A file name may be followed by the draft length of the file's runs.
"""

from __future__ import annotations

import os
import re
from types import EllipsisType

NO_SPECULATION = "none"
DraftLength = int | EllipsisType | None
"""Draft length that the user specifies for a file's runs.

None means no speculation, and ``...`` means that the file contains the draft length.
"""

_SUFFIXED = re.compile(rf"(.+)@(\d{{1,6}}|{NO_SPECULATION})", re.ASCII | re.DOTALL)


def parse_source(text: str) -> tuple[str, DraftLength]:
    """Split ``FILE``, ``FILE@K`` or ``FILE@none`` into a path and a draft length.

    If `text` is the name of an existing file, it is not split.

    Examples
    --------
    >>> parse_source("run.json@3"), parse_source("run.json@none"), parse_source("run.json")
    (('run.json', 3), ('run.json', None), ('run.json', Ellipsis))
    """
    suffixed = _SUFFIXED.fullmatch(text)
    if suffixed is None or os.path.lexists(text):
        return text, ...
    return suffixed[1], None if suffixed[2] == NO_SPECULATION else int(suffixed[2])
