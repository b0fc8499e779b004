"""First solves, whose kernels are not compiled yet."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from specopt.solvers.kernels.cache import NO_CACHE

COLD = """
import time
import specopt
from specopt.solvers.kernels import compiling

problem = specopt.generate("draft-allocation/uniform", seed=1)
told = []
compiling.listeners.append(told.append)
time.perf_counter = lambda: float(len(told))
result = specopt.solve(problem, time_limit=0.5)
print(result.status.value, result.stats["preparing_seconds"], result.seconds, *told)
"""
"""The clock stands still but for a second when a compilation begins and another one when it ends.
"""


def solve_cold(cache: Path | str, program: str = COLD, **variables: str) -> str:
    """Return what a program prints in a process with a given cache."""
    env = {**os.environ, "NUMBA_CACHE_DIR": str(cache), **variables}
    done = subprocess.run(
        [sys.executable, "-P", "-c", program], env=env, capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.nightly
def test_a_first_solve_counts_what_it_compiles(tmp_path: Path) -> None:
    """Tests that compilation counts as preparing and may exceed the limit by a kernel, and that it
    happens once.

    A process whose user has disabled Numba finds what others have compiled.
    """
    first = solve_cold(tmp_path)
    assert first.endswith(" 2.0 2.0 draft_allocation.water_level")
    assert solve_cold(tmp_path, NUMBA_DISABLE_JIT="1") == "optimal 0.0 0.0"


EVERY = """
import sys
from importlib import import_module
from specopt import methods, solve
from specopt.kinds import KINDS

for kind in KINDS:
    problems = import_module(f"small_instances.{kind.name.replace('-', '_')}").INSTANCES.values()
    for method in methods(kind.problem):
        problem = next(problem for problem in problems if method().refusal(problem) is None)
        found = solve(problem, method(), time_limit=0)
        if found.plan is None and kind.name != "placement":
            print(kind.name, method.name, found.status)
        if kind.name != "placement":
            assert "numba" not in sys.modules, method
"""


def test_plans_without_time_need_no_kernels(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tests that every method has a plan at time limit 0 where nothing is compiled, and that it
    does not load Numba.
    """
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[1]))
    assert solve_cold(tmp_path, EVERY) == ""
    assert not [*tmp_path.rglob("*.nbi")]


@pytest.mark.nightly
def test_it_is_said_that_there_is_no_cache() -> None:
    """Tests that a solve that ends late because of compilation names the variable that keeps what
    is compiled.
    """
    said = solve_cold("/dev/null/nowhere", COLD + "print(result.stats['no_cache'])")
    assert said.splitlines()[1] == NO_CACHE
