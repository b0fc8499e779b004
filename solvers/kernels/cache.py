"""The cache directory for compiled kernels.

This module does not import Numba, because importing Numba is slow.

Numba detects changes to the file that defines a function, but not to the files of other functions
that this function calls. The directory is therefore named after a hash of all kernel sources, the
Numba version and the Python version. After a change to any kernel source, a new directory is used.

The directory is created in ``NUMBA_CACHE_DIR`` if that variable is set, and otherwise in the user's
cache directory. It is never placed next to the sources, because an installation may be read-only.
Because the cache contains executable code, a directory to which other users may write is not used.
"""

from __future__ import annotations

import os
import shutil
import sys
import time
from functools import cache
from importlib.metadata import version
from pathlib import Path

from specopt.models.code import digest_of

NO_CACHE = (
    "in every process: there is no cache folder for them; set NUMBA_CACHE_DIR to a folder that"
    " only you can write to"
)
"""Part of a message for users without a kernel cache. It states how often kernels are compiled and
how to enable the cache.
"""

KEPT_SECONDS = 30 * 24 * 3600
"""Time without modification, in seconds, after which cache directories of other kernel sources are
deleted.
"""


@cache
def digest() -> str:
    """Return a short hash of all kernel sources, the Numba version and the Python version."""
    solvers = Path(__file__).parents[1]
    paths = sorted({*solvers.glob("kernels/*.py"), *solvers.glob("*/kernels/*.py")})
    sources = {str(path.relative_to(solvers)): path.read_bytes() for path in paths}
    return digest_of({"numba": version("numba").encode(), "python": sys.version.encode()} | sources)


@cache
def folder() -> Path | None:
    """Return the cache directory for the current kernel sources, and create it if necessary.

    Return None if there is no directory to which only the current user can write.
    """
    given = os.environ.get("NUMBA_CACHE_DIR")
    try:
        root = (Path(given) if given else _of_user()) / "specopt-kernels"
        found = root / digest()
        root.parent.mkdir(parents=True, exist_ok=True)
        root.mkdir(mode=0o700, exist_ok=True)
        if not found.is_dir():
            found.mkdir(mode=0o700, exist_ok=True)
            _forget_old(root)
        return found if _is_ours(root) and _is_ours(found) and os.access(found, os.W_OK) else None
    except (OSError, RuntimeError):  # the path is invalid, or the user has no home directory
        return None


def _of_user() -> Path:
    """Return specopt's directory inside the user's cache directory."""
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "specopt"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "specopt"


def _is_ours(path: Path) -> bool:
    """Return whether the current user owns a directory and no other user can write to it."""
    status = path.lstat()
    return not hasattr(os, "getuid") or (
        status.st_uid == os.getuid() and not status.st_mode & 0o022
    )


def _forget_old(root: Path) -> None:
    for other in root.iterdir():
        if other.name != digest() and time.time() - other.stat().st_mtime > KEPT_SECONDS:
            shutil.rmtree(other, ignore_errors=True)
