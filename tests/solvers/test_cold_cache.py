"""Kernels that are not compiled yet: by whom they are, and how the time limit is kept meanwhile."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from specopt.solvers._kernels import kernel, prepare
from specopt.solvers._kernels.cache import NO_CACHE
from specopt.solvers._kernels.kernel import name_of

COLD = """
import sys, time
import specopt
from specopt.solvers import budget, compiler
from specopt.solvers._kernels import prepare

problem = specopt.generate("draft-allocation/uniform", seed=1)
budget.Budget(problem).load("draft_allocation")  # Numba
time.perf_counter = lambda: CLOCK
result = specopt.solve(problem, time_limit=0.5)
busy = any(thread.is_alive() for thread in compiler._compilers.values())
print(result.termination.value, result.status.value, len(prepare._children), busy)
"""
STARTED = "float(len(prepare._children))"
"""The time is up as soon as a process is started, and not before."""
STILL = "0.0"
"""There is all the time in the world."""


def solve_cold(cache: Path | str, clock: str, program: str = COLD) -> str:
    """Return termination, status, how many processes were started, and whether a thread compiles on, of a process."""
    env = {**os.environ, "NUMBA_CACHE_DIR": str(cache)}
    command = [sys.executable, "-P", "-c", program.replace("CLOCK", clock)]
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_a_cold_cache_keeps_the_time_limit_and_gets_warm(tmp_path: Path) -> None:
    """Tests that a solve ends with its quick plan while a process compiles on, which the next solve waits for."""
    assert solve_cold(tmp_path, STARTED) == "time_limit feasible 1 False"
    assert solve_cold(tmp_path, STILL) == "converged optimal 0 False"
    assert kept(tmp_path) == 1


@pytest.mark.nightly
def test_what_has_no_time_to_import_gets_warm(tmp_path: Path) -> None:
    """Tests that a solve that ends before Numba is there has its kernels compiled, once, for the solves after it."""
    program = COLD.replace("budget.Budget(problem).load", "# ")
    for children in (1, 0):
        assert solve_cold(tmp_path, "float('numba' in sys.modules)", program) == f"time_limit feasible {children} False"
    with next(tmp_path.rglob("draft_allocation.compiling")).open() as mark:
        fcntl.flock(mark, fcntl.LOCK_EX)  # free when the process has ended
    assert solve_cold(tmp_path, STARTED) == "converged optimal 0 False"
    assert kept(tmp_path) == 1


def kept(cache: Path) -> int:
    """Return how often the kernel was compiled for a cache."""
    return len([*cache.rglob("draft_allocation.allocate*.nbc")])


def test_a_process_is_at_work_before_it_has_begun(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests that from its start to its end nobody else takes the kernel of a process, nor starts another for it."""
    monkeypatch.setattr(prepare, "folder", lambda: tmp_path)
    monkeypatch.setattr(prepare, "_children", [])
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    Path(sys.executable).write_text("#!/bin/sh\nexec sleep 600\n")
    Path(sys.executable).chmod(0o700)
    prepare.start("toys:last", "toys:first")
    assert prepare.is_running("toys:last") and prepare.was_begun("toys:last")
    assert not prepare.is_running("toys:first"), "who needs it earlier compiles it"
    (child,) = prepare._children
    child.kill()
    child.wait()
    assert not prepare.is_running("toys:last")


@pytest.mark.nightly
def test_two_solves_at_once_compile_once(tmp_path: Path) -> None:
    """Tests that a second solve waits for the process of the first, and both end with the optimum."""
    command = [sys.executable, "-P", "-c", COLD.replace("CLOCK", STILL)]
    env = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    both = [subprocess.Popen(command, env=env, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    for child in both:
        out, _ = child.communicate(timeout=600)
        assert out.split()[1] == "optimal"
    assert kept(tmp_path) == 1


OUTLOOK = COLD.replace("(problem, time_limit=0.5)", "(problem, time_limit=0.5); print(result.stats)")


@pytest.mark.nightly
def test_the_rest_is_compiled_in_one_chain_and_foretold(tmp_path: Path) -> None:
    """Tests that a solve out of time has the kind's other kernels compiled, and says how many and how long it takes."""
    said = solve_cold(tmp_path, STARTED, OUTLOOK)
    names = sorted(map(name_of, prepare.kernels_of("draft_allocation")))
    count = len(names)
    assert f"'kernels_missing': {names}, 'about_seconds': {count * prepare.GUESS}" in said
    last = next(tmp_path.rglob("draft_allocation*.compiling")).parent
    for _ in range(600):
        if len([*last.glob("*.seconds")]) == count:
            break
        time.sleep(0.2)
    assert len([*last.rglob("draft_allocation.*.nbi")]) == count
    assert "kernels_missing" not in solve_cold(tmp_path, STARTED, OUTLOOK)


def test_a_prefix_stands_for_the_kernels_of_its_modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests that a process that is given PREFIX* compiles the kernels whose modules begin so, and no others."""
    compiled: list[str] = []
    monkeypatch.setattr(prepare, "folder", lambda: tmp_path)
    monkeypatch.setattr(kernel, "is_cached", lambda each: False)
    monkeypatch.setattr(kernel, "prepare", lambda each: compiled.append(name_of(each)))
    prepare.main("", "draft_allocation*")
    assert compiled == ["draft_allocation:allocate"]
    assert [path.name for path in tmp_path.glob("*.seconds")] == ["draft_allocation:allocate.seconds"]


def test_the_outlook_goes_by_what_kernels_took_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests that kernels in the cache count no more, and that the mean of those compiled here is what others take."""
    monkeypatch.setattr(prepare, "folder", lambda: tmp_path)
    names = sorted(map(name_of, prepare.kernels_of("serving_latency")))
    assert prepare.outlook("serving_latency*") == (names, prepare.GUESS * len(names))
    (tmp_path / "bounds.ends_bound-specopt.nbi").touch()
    (tmp_path / "a.seconds").write_text("1.5")
    (tmp_path / "b.seconds").write_text("2.5")
    names.remove("serving_latency.bounds:ends_bound")
    assert prepare.outlook("serving_latency*") == (names, 2.0 * len(names))
    assert prepare.outlook("nothing*") == ([], 0.0)


AHEAD = """
import time
import specopt
from specopt.solvers import budget, compiler
from specopt.solvers._kernels import prepare

compiler.processors = lambda: {processors}
found = budget.Budget(specopt.generate("draft-allocation/uniform", seed=1))
found.compile_ahead("draft_control:weigh")
kernels = found.load_library("specopt.solvers._kernels.kernel")
draft_control = found.load_library("specopt.solvers._kernels.draft_control")
while prepare._children and not kernels.is_cached(draft_control.weigh):
    time.sleep(0.1)
print(kernels.is_cached(draft_control.weigh), kernels.is_ready(draft_control.weigh))
"""


@pytest.mark.parametrize(("processors", "said"), [(2, "True False"), (1, "False False")])
def test_a_second_processor_compiles_ahead(processors: int, said: str, tmp_path: Path) -> None:
    """Tests that another process compiles what is asked for ahead, where there is a second processor."""
    program = AHEAD.format(processors=processors)
    env = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    done = subprocess.run([sys.executable, "-P", "-c", program], env=env, capture_output=True, text=True, timeout=600)
    assert done.stdout.strip() == said, done.stderr


@pytest.mark.nightly
@pytest.mark.parametrize("cache", ["/dev/null/nowhere", "vanishes"])
def test_without_a_cache_the_time_limit_is_kept(cache: str, tmp_path: Path) -> None:
    """Tests that a thread compiles within the limit where there is no folder to write to, or it goes away."""
    program = COLD
    if cache == "vanishes":
        cache = str(tmp_path / "cache")
        program = COLD.replace("result =", f"import shutil; shutil.rmtree({cache!r}); result =")
    assert solve_cold(cache, "float(len(compiler._compilers))", program) == "time_limit feasible 0 True"
    assert solve_cold(cache, STILL, program).startswith("converged optimal")


@pytest.fixture(scope="module")
def warm(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a cache that a solve has filled."""
    cache = tmp_path_factory.mktemp("warm")
    assert solve_cold(cache, STILL).startswith("converged optimal")
    return cache


@pytest.mark.nightly
@pytest.mark.parametrize(("optimised", "disabled"), [("2", ""), ("", "1")])
def test_every_way_to_start_python_has_one_cache(
    optimised: str, disabled: str, warm: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tests that `python -OO` finds what others compiled, as does a process whose user has disabled Numba."""
    monkeypatch.setenv("PYTHONOPTIMIZE", optimised)
    monkeypatch.setenv("NUMBA_DISABLE_JIT", disabled or "0")
    program = f"""{COLD}
from specopt.solvers._kernels import draft_allocation
print(compiler.folder().parent.parent, draft_allocation.allocate.stats.cache_misses)
"""
    assert solve_cold(warm, STILL, program).splitlines() == ["converged optimal 0 False", f"{warm} Counter()"]
    assert kept(warm) == 1


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


@pytest.mark.nightly
def test_plans_without_time_need_no_kernels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests that every method has a plan at time limit 0 where nothing is compiled, and that it does not load Numba."""
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[1]))
    assert solve_cold(tmp_path, "", EVERY) == ""
    assert not [*tmp_path.rglob("*.nbi")]


def test_it_is_said_that_there_is_no_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests that a solve, a compilation and `warmup` say that nothing is kept, and by which variable it would be."""
    said = solve_cold("/dev/null/nowhere", "float(len(compiler._compilers))", COLD + "print(result)")
    assert f"1 s went into preparing kernels, {NO_CACHE}" in said
    assert "once" not in said and "warmup" not in said


@pytest.mark.nightly
def test_a_process_that_fails_is_made_up_for(tmp_path: Path) -> None:
    """Tests that kernels are compiled here where no process can do it."""
    program = COLD.replace("result =", "sys.executable = '/bin/false'; result =")
    assert solve_cold(tmp_path, STILL, program) == "converged optimal 1 False"
