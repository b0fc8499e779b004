"""Compile kernels into the cache, in a process that outlives its caller: python -m ... LOCK MODULE:KERNEL ...

Whoever is at work on a kernel holds the lock of a file in the cache's folder, which the system frees however it ends;
the file stays. A process gets the lock of its first kernel handed over: it is at work on it before it has begun.
Numba, which takes long to import, is not needed here but by the process that is started.
"""

from __future__ import annotations

import fcntl
import importlib
import os
import pkgutil
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from io import FileIO
from pathlib import Path
from typing import Any

from specopt.solvers._kernels.cache import folder

GUESS = 2.0
"""Seconds that a kernel takes to compile where none was compiled yet."""

_children: list[subprocess.Popen[bytes]] = []  # kept, as Python warns of one that is forgotten while it is at work


def start(*names: str) -> subprocess.Popen[bytes]:
    """Start a process that compiles kernels one after another, but those that another is at, and return it.

    The name of a module alone, or PREFIX*, stands for those of `kernels_of`.

    Raises
    ------
    OSError
        If it cannot be started, or there is no folder for what it compiles.
    """
    with _locked(names[0]) or nullcontext() as mark:
        handed = [] if mark is None else [mark.fileno()]
        child = subprocess.Popen(
            [sys.executable, "-P", "-m", __name__, "".join(map(str, handed)), *names], pass_fds=handed,
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
        )  # fmt: skip
    _children.append(child)
    return child


def outlook(*prefixes: str) -> tuple[list[str], float]:
    """Return the kernels of PREFIX* that are not in the cache, and about how many seconds compiling them takes.

    By the mean of the kernels that were compiled on this machine, or a guess. Sources and file names tell: nothing is
    imported.
    """
    place = folder()
    if place is None:
        return [], 0.0
    here = Path(__file__).parent
    cached = {path.name.partition("-")[0] for path in place.rglob("*.nbi")}
    missing: list[str] = []
    for path in here.rglob("*.py"):
        module = ".".join(path.relative_to(here).with_suffix("").parts)
        if any(module.startswith(prefix.rstrip("*")) for prefix in prefixes) and not module.endswith("simulation"):
            names = re.findall(r"^@kernel\(.*?^def (\w+)", path.read_text(), re.DOTALL | re.MULTILINE)
            missing += [f"{module}:{name}" for name in names if f"{path.stem}.{name}" not in cached]
    taken = [float(path.read_text() or GUESS) for path in place.glob("*.seconds")] or [GUESS]
    return sorted(missing), len(missing) * sum(taken) / len(taken)


def was_begun(name: str) -> bool:
    """Return whether a process has begun to compile a kernel, or found it in the cache."""
    return _mark(name).exists()


def modules_of(prefix: str) -> list[str]:
    """Return the modules here whose names begin so, those of other simulations aside."""
    found = (module.name for module in pkgutil.walk_packages([str(Path(__file__).parent)], f"{__package__}."))
    start = f"{__package__}.{prefix}"
    return [name for name in found if name.startswith(start) and not name[len(start) :].endswith("simulation")]


def kernels_of(prefix: str) -> list[Any]:
    """Return the kernels of the modules whose names begin so."""
    modules = [importlib.import_module(name) for name in modules_of(prefix)]
    members = [(each, module.__name__) for module in modules for each in vars(module).values()]
    return [each for each, home in members if hasattr(each, "declared") and each.py_func.__module__ == home]


@contextmanager
def marked(name: str) -> Iterator[None]:
    """Keep other processes from compiling a kernel while the enclosed code does."""
    mark = None
    with suppress(OSError):  # no place for a cache
        mark = _locked(name)
    try:
        yield
    finally:
        if mark is not None:
            mark.close()


def is_running(name: str) -> bool:
    """Return whether a process is at work on a kernel."""
    mark = _locked(name)
    if mark is None:
        return True
    mark.close()
    return False


def _locked(name: str) -> FileIO | None:
    """Return the file that marks a kernel, locked; None if another process has it."""
    mark = FileIO(_mark(name), "a")
    try:
        fcntl.flock(mark, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        mark.close()
        return None
    return mark


def _mark(name: str) -> Path:
    return _folder() / f"{name.replace(':', '.')}.compiling"


def _folder() -> Path:
    found = folder()
    if found is None:
        raise FileNotFoundError("there is no folder for what is compiled")
    return found


def main(handed: str, *names: str) -> None:
    """Compile kernels, unless another process is at them; the lock of the first, if `handed` over, is a descriptor."""
    from specopt.solvers._kernels.kernel import is_cached, name_of, prepare

    mark = FileIO(int(handed), "a") if handed else None
    for name in names:
        mark = mark or _locked(name)
        if mark is None:
            continue
        module, _, function = name.rstrip("*").partition(":")
        for each in kernels_of(module):
            if function and name_of(each) != name:
                continue
            with marked(name_of(each)):
                if not is_cached(each):
                    started = time.perf_counter()
                    prepare(each)
                    (_folder() / f"{name_of(each)}.seconds").write_text(f"{time.perf_counter() - started:.3f}")
        mark.close()
        mark = None


if __name__ == "__main__":
    os.nice(1)
    main(*sys.argv[1:])
