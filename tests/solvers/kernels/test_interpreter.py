"""Kernels that run in the interpreter."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest

from specopt import generate, solve
from specopt.solvers.kernels.kernel import Kernel

PROBLEMS: dict[str, dict[str, Any]] = {
    "serving-latency/paper-1": {"tasks": 5},
    "serving-latency/paper-1 ": {"tasks": 20},
    "prompt-chunking/paper-4": {},
    "verification-batch/mixed": {"requests": 12},
    "continuous-serving/paper-1": {"tasks": 4},
    "placement/one-class": {"number_of_clients": 3, "objective": "fair"},
    "placement/one-class ": {"number_of_clients": 3, "objective": "capacity"},
}


def _written(value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(map(_written, value))
    return repr(value.tolist()) if isinstance(value, np.ndarray) else (type(value), repr(value))


@pytest.mark.slow
@pytest.mark.parametrize("family", PROBLEMS)
def test_interpreter_and_compiled_function_agree(
    family: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tests that a call in the interpreter returns and writes the same numbers as the compiled
    function.
    """
    seen = set()

    def prepare_for(kernel: Kernel, *_: Any) -> Any:
        def both(*arguments: Any) -> Any:
            copies = copy.deepcopy(arguments)
            with monkeypatch.context() as inside:
                inside.setattr(Kernel, "__call__", Kernel._interpret)
                again = kernel._interpret(*copies)
            found = kernel.prepare()(*arguments)
            assert _written(again) == _written(found), kernel.name
            assert _written(copies) == _written(arguments), kernel.name
            seen.add(kernel.name)
            return found

        return both if kernel._steps is not None else kernel.prepare()

    monkeypatch.setattr(Kernel, "prepare_for", prepare_for)
    monkeypatch.setattr(
        Kernel,
        "__call__",
        lambda kernel, *arguments: prepare_for(kernel, *arguments)(*arguments),
    )
    solve(generate(family.strip(), seed=1, **PROBLEMS[family]))
    assert seen
