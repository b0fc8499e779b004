"""The process that solves cells: requests come in on stdin, answers go out on stdout, a line of JSON each.

Run as ``python -P -m specopt.comparison.worker``. It ends when stdin closes or its parent is gone. What libraries print
goes to stderr, away from the answers.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
import threading
import time
from functools import cache
from typing import Any, TextIO

from specopt.api.solve import solve
from specopt.comparison.cell import unpickled
from specopt.comparison.sources import sources_of
from specopt.console.interrupts import SIGNALS
from specopt.console.progress import showing_kernels
from specopt.kinds import kind_of
from specopt.models.fields import printable
from specopt.solvers._kernels.compiling import kernels_of
from specopt.solvers.method import Method


def main() -> None:
    """Answer requests until stdin closes."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    for number in SIGNALS:  # a batch system sends them to every process: what becomes of a cell is the parent's to say
        signal.signal(number, signal.SIG_IGN)
    threading.Thread(target=_end_with, args=(os.getppid(),), daemon=True).start()
    keep_highs_to_one_thread()
    with showing_kernels():
        for line in sys.stdin:
            request = json.loads(line)
            load_kernels(request["problem"]["kind"])
            with contextlib.suppress(Exception, SystemExit):  # the answer says what is wrong with it
                method_of(request["method"], tuple(request["path"]))
            _send(answers, {"ready": True})
            _send(answers, answer(request))


def answer(request: dict[str, Any]) -> dict[str, Any]:
    """Solve one cell; whatever goes wrong is the answer, too."""
    try:
        method, sources = method_of(request["method"], tuple(request["path"]))  # finds the modules of a variant, too
        variant = request.get("variant")
        problem_class = unpickled(variant) if variant else kind_of(request["problem"]["kind"]).problem
        problem = problem_class.from_dict(request["problem"])
        if variant and problem.sha256 != request["problem_sha256"]:
            raise RuntimeError(f"the problem's class {problem_class.__name__} differs here from the one that was given")
        if sources is not None and sources != request["sources"]:
            changed = [name for name, value in sources.items() if request["sources"].get(name) != value]
            raise RuntimeError(f"method {method.name} differs here from the one that was asked for: {changed}")
        result = solve(problem, method, time_limit=request["time_limit"], gap=request["gap"], seed=request["seed"])
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        return {"error": printable(f"{type(error).__name__}: {error}")}
    found = result.to_dict()
    names = ("status", "termination", "objective", "bound", "gap", "seconds", "versions", "plan", "stats")
    kept = json.dumps({name: found[name] for name in names}, default=repr)  # stats are as their authors like
    return dict(json.loads(kept, parse_constant=lambda _: None)) | {"error": result.stats.get("refuted")}


@cache
def method_of(text: str, path: tuple[str, ...]) -> tuple[Method, dict[str, str] | None]:
    """Return a method that was sent here, and its sources as they are here; None if it came whole, without a file.

    Parameters
    ----------
    text
        The method, pickled.
    path
        Where its modules are looked for, after all else.
    """
    sys.path.extend(folder for folder in path if folder not in sys.path)
    method: Method = unpickled(text)
    module = type(method).__module__
    return method, sources_of(type(method)) if module in sys.modules and module != "__main__" else None


def keep_highs_to_one_thread() -> None:
    """Run HiGHS with one thread: its threads belong to the process, and their number stays that of its first run."""
    from specopt.solvers.highs import Highs

    model = Highs()
    model.setOptionValue("threads", 1)
    model.run()


@cache
def load_kernels(kind: str) -> None:
    """Prepare the compiled loops of a kind: building them, once per machine, is not part of any method's time."""
    for found in kernels_of(kind.replace("-", "_")):
        found.prepare()


def _end_with(parent: int) -> None:
    """End this process, whatever it is doing, once its parent is gone."""
    while os.getppid() == parent:
        time.sleep(0.5)
    os._exit(1)


def _send(stream: TextIO, data: dict[str, Any]) -> None:
    stream.write(json.dumps(data) + "\n")
    stream.flush()


if __name__ == "__main__":
    main()
