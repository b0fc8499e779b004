"""Where compiled kernels are kept, without Numba, which takes long to import.

Numba notices an edit of the file of a function, but not of other files whose functions it calls.
The name of the folder is therefore a digest of all sources here, of Numba and of Python: an edit in
any file here starts a new folder. It lies in ``NUMBA_CACHE_DIR``, else in the user's folder for
caches, never beside the sources: an installation may be read-only. It holds code, so a folder that
others may write to is not used.
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
    "in every process: there is no folder to keep them in; set NUMBA_CACHE_DIR to one that only you"
    " can write to"
)
"""How often kernels are compiled where there is no cache."""

KEPT_SECONDS = 30 * 24 * 3600
"""Caches of other sources that nobody has written to for so long are removed."""


@cache
def digest() -> str:
    """Return what the cache depends on, as a short name: all sources here, Numba and Python."""
    solvers = Path(__file__).parents[1]
    paths = sorted({*solvers.glob("kernels/*.py"), *solvers.glob("*/kernels/*.py")})
    sources = {str(path.relative_to(solvers)): path.read_bytes() for path in paths}
    return digest_of({"numba": version("numba").encode(), "python": sys.version.encode()} | sources)


@cache
def folder() -> Path | None:
    """Return the folder of the cache, made if it was missing; None if there is no place to write
    that is ours alone.
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
    except (OSError, RuntimeError):  # no such place, or a user without a home
        return None


def _of_user() -> Path:
    """Return specopt's folder in the user's one for caches."""
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "specopt"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "specopt"


def _is_ours(path: Path) -> bool:
    """Return whether nobody but this user can put anything into a folder."""
    status = path.lstat()
    return not hasattr(os, "getuid") or (
        status.st_uid == os.getuid() and not status.st_mode & 0o022
    )


def _forget_old(root: Path) -> None:
    for other in root.iterdir():
        if other.name != digest() and time.time() - other.stat().st_mtime > KEPT_SECONDS:
            shutil.rmtree(other, ignore_errors=True)
