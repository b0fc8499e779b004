"""Kernels that are not compiled yet: by whom they are, and how the time limit is kept meanwhile."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

COLD = """
import sys, time
import specopt
from specopt.solvers.budget import Budget

problem = specopt.generate("draft-allocation/uniform", seed=1)
Budget(problem).load("draft_allocation")  # Numba alone takes longer to import than the limit
limit = float(sys.argv[1])
started = time.perf_counter()
result = specopt.solve(problem, time_limit=limit)
print(result.termination.value, result.status.value, time.perf_counter() - started)
"""


def solve_cold(cache: Path | str, limit: float, program: str = COLD) -> tuple[str, str, float]:
    """Return termination, status and seconds of a solve under a time limit, in a process of its own."""
    env = {**os.environ, "NUMBA_CACHE_DIR": str(cache)}
    done = subprocess.run([sys.executable, "-P", "-c", program, str(limit)], env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    termination, status, seconds = done.stdout.split()
    return termination, status, float(seconds)


def test_a_cold_cache_keeps_the_time_limit_and_gets_warm(tmp_path: Path) -> None:
    """Tests that a solve ends in time with its quick plan while kernels are compiled on for the solves after it."""
    termination, status, seconds = solve_cold(tmp_path, 0.5)
    assert (termination, status) == ("time_limit", "feasible")
    assert seconds <= 0.7
    end = time.monotonic() + 120.0
    while solve_cold(tmp_path, 0.5)[0] == "time_limit":
        assert time.monotonic() < end, "the first process left nothing behind"
        time.sleep(1.0)  # the processor is the compiler's


def test_two_solves_at_once_compile_once(tmp_path: Path) -> None:
    """Tests that a second solve waits for the process of the first, and both end with the optimum."""
    command = [sys.executable, "-P", "-c", COLD, "120"]
    env = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    both = [subprocess.Popen(command, env=env, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    for child in both:
        out, _ = child.communicate(timeout=180)
        assert out.split()[1] == "optimal"
    kept = [path.name for path in tmp_path.rglob("draft_allocation.allocate*.nbc")]
    assert len(kept) == 1


AHEAD = """
import time
import specopt
from specopt.solvers import budget

budget.processors = lambda: {processors}
found = budget.Budget(specopt.generate("draft-allocation/uniform", seed=1))
found.compile_ahead("draft_control:weigh")
kernels = found.load_library("specopt.solvers._kernels.kernel")
draft_control = found.load_library("specopt.solvers._kernels.draft_control")
end = time.monotonic() + {seconds}
while not kernels.is_cached(draft_control.weigh) and time.monotonic() < end:
    time.sleep(0.1)
print(kernels.is_cached(draft_control.weigh), kernels.is_ready(draft_control.weigh))
"""


@pytest.mark.parametrize(("processors", "seconds", "said"), [(2, 120.0, "True False"), (1, 3.0, "False False")])
def test_a_second_processor_compiles_ahead(processors: int, seconds: float, said: str, tmp_path: Path) -> None:
    """Tests that another process compiles what is asked for ahead, where there is a second processor."""
    program = AHEAD.format(processors=processors, seconds=seconds)
    env = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    done = subprocess.run([sys.executable, "-P", "-c", program], env=env, capture_output=True, text=True)
    assert done.stdout.strip() == said, done.stderr


@pytest.mark.parametrize("cache", ["/dev/null/nowhere", "vanishes"])
def test_without_a_cache_the_time_limit_is_kept(cache: str, tmp_path: Path) -> None:
    """Tests that a thread compiles within the limit where there is no folder to write to, or it goes away."""
    program = COLD
    if cache == "vanishes":
        cache = str(tmp_path / "cache")
        program = COLD.replace("limit = ", f"import shutil; shutil.rmtree({cache!r}); limit = ")
    termination, status, seconds = solve_cold(cache, 0.5, program)
    assert (termination, status) == ("time_limit", "feasible")
    assert seconds <= 0.7
    assert solve_cold(cache, 120.0, program)[1] == "optimal"


def test_a_process_that_fails_is_made_up_for(tmp_path: Path) -> None:
    """Tests that kernels are compiled here where no process can do it."""
    program = COLD.replace("limit = ", "sys.executable = '/bin/false'; limit = ")
    assert solve_cold(tmp_path, 120.0, program)[1] == "optimal"
