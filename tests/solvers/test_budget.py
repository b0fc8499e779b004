"""Budgets: long compiled calls within the time limit."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from specopt import generate
from specopt.models.errors import OutOfMemory, OutOfTime
from specopt.solvers.budget import Budget


def until_told(value: float, stop: Any) -> float:
    """Run until told to end, as a long kernel does; a guard ends it anyway."""
    end = time.monotonic() + 10.0
    while not stop[0] and time.monotonic() < end:
        time.sleep(0.001)
    return value


def budget(seconds: float | None) -> Budget:
    """Return a budget of so many seconds from now on."""
    return Budget(generate("draft-allocation/uniform", seed=1), time_limit=seconds)


def test_a_call_gives_what_the_kernel_gives() -> None:
    """Tests that a call that ends in time gives its result, with a time limit and without."""
    for seconds in (None, 5.0):
        assert budget(seconds).call(lambda a, b, stop: a + b + int(stop[0]), 1, 2) == 3


def test_a_call_is_told_to_end_and_what_it_gives_may_count() -> None:
    """Tests that the flag turns before the time is up where a part is useful, and else the time runs out."""
    assert budget(0.3).call(until_told, 7.0, partial=True) == 7.0
    started = time.monotonic()
    with pytest.raises(OutOfTime):
        budget(0.2).call(until_told, 7.0)
    assert time.monotonic() - started < 5.0


def test_memory_is_asked_for_before_it_is_held() -> None:
    """Tests that arrays within the limit pass, and larger ones are refused with the fields that set their size."""
    small = Budget(generate("draft-allocation/uniform", seed=1), memory_limit=1000)
    small.hold("clients", 1000)
    with pytest.raises(OutOfMemory, match=r"clients need 1001 bytes of memory, the limit is 1000 bytes"):
        small.hold("clients", 1001)


def test_no_round_is_begun_that_cannot_end() -> None:
    """Tests that a loop's check lets rounds begin while the longest so far fits into the time left, and no longer."""
    pace, rounds = budget(0.5).pace(), 0
    started = time.monotonic()
    with pytest.raises(OutOfTime):
        while True:
            pace()
            time.sleep(0.2)
            rounds += 1
    assert 1 <= rounds <= 2 and time.monotonic() - started >= 0.2


def test_no_plan_is_judged_that_the_time_does_not_suffice_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests that the first plan is judged whatever it takes, and the next one only if there is time for it."""
    tight = budget(0.5)
    first, second = (type(tight.problem).plan_type(draft_tokens=np.full(tight.problem.clients, n)) for n in (0, 1))  # type: ignore[attr-defined, call-arg]
    evaluate, seen = type(tight.problem).evaluate, []

    def slowly(problem: Any, plan: Any) -> Any:
        seen.append(plan)
        time.sleep(0.4)
        return evaluate(problem, plan)

    monkeypatch.setattr(type(tight.problem), "evaluate", slowly)
    tight.offer(first)
    with pytest.raises(OutOfTime):
        tight.offer(second)
    assert seen == [first] and tight.incumbent is first


def test_an_error_in_a_call_is_raised() -> None:
    """Tests that what a kernel raises reaches the caller."""
    with pytest.raises(ZeroDivisionError):
        budget(5.0).call(lambda stop: 1 / int(stop[0]))


def test_a_sweep_that_is_told_to_end_gives_a_batch() -> None:
    """Tests that the sweep, told to end at once, still gives requests that fit together."""
    from specopt.solvers._kernels.verification_batch_sweep import sweep

    rng = np.random.default_rng(0)
    values, seconds, memory = rng.uniform(1.0, 2.0, 300), rng.uniform(0.01, 0.02, 300), np.zeros(300)
    deadlines, out = rng.uniform(0.5, 1.0, 300), np.empty(300, dtype=np.int64)
    count = sweep(values, seconds, memory, deadlines, 0.0, 0.1, 1.0, out, np.ones(1, dtype=np.uint8))
    batch = out[:count]
    assert count >= 1
    assert 0.1 + seconds[batch].sum() <= deadlines[batch].min()


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

budget._processors = lambda: {processors}
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
