"""The process that solves cells: requests come in on stdin, answers go out on stdout, a line of JSON each.

Run as ``python -P -m specopt.comparison.worker``. It ends when stdin closes or its parent is gone. What libraries print
goes to stderr, away from the answers.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from functools import cache
from typing import Any, TextIO

from specopt.models.fields import printable
from specopt.progress import showing_kernels


def main() -> None:
    """Answer requests until stdin closes."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    threading.Thread(target=_end_with, args=(os.getppid(),), daemon=True).start()
    keep_highs_to_one_thread()
    with showing_kernels():
        for line in sys.stdin:
            request = json.loads(line)
            load_kernels(request["problem"]["kind"])
            _send(answers, {"ready": True})
            _send(answers, answer(request))


def answer(request: dict[str, Any]) -> dict[str, Any]:
    """Solve one cell; whatever goes wrong is the answer, too."""
    from specopt.kinds import kind_of
    from specopt.solve import choose, solve

    try:
        problem = kind_of(request["problem"]["kind"]).problem.from_dict(request["problem"])
        method = choose(problem, request["method"])
        method = type(method)(**request["options"])
        result = solve(problem, method, time_limit=request["time_limit"], gap=request["gap"], seed=request["seed"])
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        return {"error": printable(f"{type(error).__name__}: {error}")}
    found = result.to_dict()
    names = ("status", "termination", "objective", "bound", "gap", "seconds", "versions")
    return {name: found[name] for name in names}


def keep_highs_to_one_thread() -> None:
    """Run HiGHS with one thread: its threads belong to the process, and their number stays that of its first run."""
    import highspy

    model = highspy.Highs()  # type: ignore[no-untyped-call]  # highspy's constructor has no annotations
    for name, value in (("output_flag", False), ("threads", 1)):
        assert model.setOptionValue(name, value) == highspy.HighsStatus.kOk, name
    model.run()


@cache
def load_kernels(kind: str) -> None:
    """Prepare the compiled loops of a kind: building them, once per machine, is not part of any method's time."""
    import importlib
    import pkgutil

    import specopt.solvers._kernels as kernels
    from specopt.solvers._kernels.kernel import prepare

    prefix = kind.replace("-", "_")
    for module in pkgutil.iter_modules(kernels.__path__):
        if module.name.startswith(prefix) and not module.name.endswith("simulation"):
            for found in vars(importlib.import_module(f"{kernels.__name__}.{module.name}")).values():
                if getattr(found, "declared", None) is not None:
                    prepare(found)


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
