"""Main module of a worker process, which solves the cells of a comparison.

The process is started as ``python -P -m specopt.comparison.worker PIPE``, where PIPE is the file
descriptor of a pipe. Requests and responses are pickled and sent over the pipe. The process ends
when its parent ends. Output from libraries is written to a file that the parent provides.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from functools import cache
from multiprocessing.connection import Connection
from typing import Any

from specopt.api.solve import solve
from specopt.comparison.cell import Cell, unpickled
from specopt.comparison.sources import sources_of
from specopt.console.interrupts import SIGNALS
from specopt.console.progress import showing_kernels
from specopt.kinds import kind_of
from specopt.models.fields import printable
from specopt.solvers.kernels.compiling import kernels_of
from specopt.solvers.method import Method

Request = tuple[Cell, list[str]]
"""Request to a worker: a cell and the module search path with which its method can be imported."""


def serve(answer: Callable[[Any], Any], prepare: Callable[[Any], object] = lambda _: None) -> None:
    """Receive requests over the pipe and answer them until the parent process ends.

    Parameters
    ----------
    answer
        Function that maps a request to a response.
    prepare
        Function that is called with each request before the request's time limit starts. When it
        returns, the parent is informed that the process is ready.
    """
    pipe = Connection(int(sys.argv[-1]))
    os.set_inheritable(pipe.fileno(), False)
    for number in SIGNALS:  # batch systems send these to every process; the parent handles them
        signal.signal(number, signal.SIG_IGN)
    threading.Thread(target=_end_with, args=(os.getppid(),), daemon=True).start()
    keep_highs_to_one_thread()
    with contextlib.suppress(EOFError):
        while True:
            request = pipe.recv()
            prepare(request)
            pipe.send("ready")
            pipe.send(answer(request))


def load(request: Request) -> None:
    """Load the kernels and modules that a request needs, before its solution time is measured.

    Kernels are compiled if necessary.
    """
    cell, path = request
    for kernel in kernels_of(cell.kind.replace("-", "_")):
        kernel.prepare()
    with contextlib.suppress(Exception, SystemExit):  # the answer reports the failure
        method_of(cell.pickled, tuple(path))


def answer(request: Request) -> dict[str, Any]:
    """Solve a cell and return the fields of its record.

    If the solve fails, the field `error` contains the reason.
    """
    cell, path = request
    try:
        method, sources = method_of(cell.pickled, tuple(path))
        problem = kind_of(cell.kind).problem.from_dict(cell.problem)
        if sources is not None and sources != cell.sources:
            changed = [name for name, value in sources.items() if cell.sources.get(name) != value]
            raise RuntimeError(
                f"method {method.name}: the worker's copy differs from the requested one"
                f" in {changed}"
            )
        result = solve(
            problem, method, time_limit=cell.time_limit, gap=cell.gap_limit, seed=cell.seed
        )
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        return {"error": printable(f"{type(error).__name__}: {error}")}
    found = result.to_dict()
    names = (
        "status",
        "termination",
        "objective",
        "bound",
        "gap",
        "seconds",
        "versions",
        "plan",
        "stats",
    )
    kept = json.dumps(
        {name: found[name] for name in names}, default=repr
    )  # default=repr, because stats may contain any value
    return dict(json.loads(kept, parse_constant=lambda _: None)) | {
        "error": result.stats.get("refuted")
    }


@cache
def method_of(text: str, path: tuple[str, ...]) -> tuple[Method, dict[str, str] | None]:
    """Decode a method that was sent to this process, and compute digests of its source code.

    Return a pair (method, digests). The digests are computed from the files on this machine. They
    are None if the method was pickled by value and therefore has no source file.

    Parameters
    ----------
    text
        Method as a string, as encoded by `pickled`.
    path
        Folders to append to the module search path.
    """
    sys.path.extend(folder for folder in path if folder not in sys.path)
    method: Method = unpickled(text)
    module = type(method).__module__
    return method, sources_of(
        type(method)
    ) if module in sys.modules and module != "__main__" else None


def keep_highs_to_one_thread() -> None:
    """Restrict HiGHS to one thread for all runs in this process."""
    from specopt.solvers.highs import Highs

    model = Highs()
    model.setOptionValue("threads", 1)
    model.run()


def _end_with(parent: int) -> None:
    """Wait until the parent process has ended, and then end this process."""
    while os.getppid() == parent:
        time.sleep(0.5)
    os._exit(1)


if __name__ == "__main__":
    with showing_kernels():
        serve(answer, load)
