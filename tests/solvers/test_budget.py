"""Budgets: the clock, the incumbent and its bound, memory, and long calls within the time limit."""

from __future__ import annotations

import math
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
import pytest
from helpers.untyped import generate

from specopt import DraftAllocationPlan, DraftAllocationProblem
from specopt.models.errors import OutOfMemory, OutOfTime, Stopped
from specopt.models.result import Progress
from specopt.solvers import clock as module
from specopt.solvers.budget import Budget
from specopt.solvers.kernels.compiling import metered

PROBLEM = DraftAllocationProblem(
    acceptance_rates=np.array([0.5]), weights=np.array([1.0]), budget_tokens=9
)


class Costs(DraftAllocationProblem):
    """The same objective, to be minimised."""

    sense: ClassVar[Literal["minimize", "maximize"]] = "minimize"


def tokens(count: int) -> DraftAllocationPlan:
    """Return the plan with that many tokens: worth 1, 1.5, 1.75, ..."""
    return DraftAllocationPlan(draft_tokens=np.array([count]))


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """A clock that shows its one entry."""
    now = [100.0]
    monkeypatch.setattr(time, "perf_counter", lambda: now[0])
    return now


def test_the_clock(clock: list[float]) -> None:
    """Tests that the time is up at the limit and not before, counted from the start that was
    given.
    """
    limited = Budget(PROBLEM, time_limit=2.0)
    clock[0] = 101.5
    assert (limited.seconds, limited.remaining) == (1.5, 0.5)
    limited.check()
    limited.check(0.25)
    with pytest.raises(OutOfTime):
        limited.check(0.5)
    for now in (102.0, 103.0):
        clock[0] = now
        assert limited.remaining == 0.0
        with pytest.raises(OutOfTime):
            limited.check()
    assert Budget(PROBLEM, started=90.0).seconds == 13.0
    endless = Budget(PROBLEM)
    assert endless.time_limit == endless.remaining == math.inf
    endless.check(1e300)


def test_wishes_are_kept() -> None:
    """Tests that a budget holds what the caller asked for, and otherwise no gap, seed 0 and two
    gigabytes.
    """
    plain = Budget(PROBLEM)
    assert (plain.problem, plain.gap, plain.seed, plain.warm_start) == (PROBLEM, 0.0, 0, None)
    assert plain.memory_limit == 2**31
    assert (plain.incumbent, plain.objective, plain.bound, plain.judging_seconds) == (
        None,
        None,
        None,
        0.0,
    )
    asked = Budget(PROBLEM, gap=0.1, seed=7, memory_limit=5.0, warm_start=tokens(1))
    assert (asked.gap, asked.seed, asked.memory_limit, asked.warm_start) == (0.1, 7, 5.0, tokens(1))


def test_no_round_is_begun_that_cannot_end(clock: list[float]) -> None:
    """Tests that a loop's check lets rounds begin while the longest so far fits into the time left,
    and no longer.
    """
    Budget(PROBLEM, time_limit=0.5).pace()()
    limited = Budget(PROBLEM, time_limit=10.0)
    clock[0] = 101.0
    pace = limited.pace()
    for now in (101.0, 104.0, 105.0, 106.75):
        clock[0] = now
        pace()
    clock[0] = 107.0
    with pytest.raises(OutOfTime):
        pace()


def test_memory_is_asked_for_before_it_is_held() -> None:
    """Tests that arrays within the limit pass, and larger ones are refused with the fields that set
    their size.
    """
    small = Budget(PROBLEM, memory_limit=1000)
    small.hold("clients", 1000)
    with pytest.raises(
        OutOfMemory, match=r"clients need 1001 bytes of memory, but the limit is 1000 bytes"
    ):
        small.hold("clients", 1001)


@pytest.mark.parametrize(
    ("kind", "worths", "best"),
    [(DraftAllocationProblem, [1.5, 1.0, 1.5, 1.75], 2), (Costs, [1.5, 1.75, 1.5, 1.0], 0)],
)
def test_the_best_plan_is_kept(kind: Any, worths: list[float], best: int) -> None:
    """Tests that a plan is kept, and reported, if it is better than all before it in the problem's
    sense.
    """
    seen: list[Progress] = []
    found = Budget(kind(**vars(PROBLEM)), callback=seen.append)
    count = {1.0: 0, 1.5: 1, 1.75: 2}
    assert [found.offer(tokens(count[worth])) for worth in worths] == worths
    assert found.incumbent == tokens(best) and found.objective == worths[-1]
    assert [progress.objective for progress in seen] == [1.5, worths[-1]]


@pytest.mark.parametrize(
    ("kind", "bounds", "best"),
    [(DraftAllocationProblem, [4.0, 5.0, 3.0, 3.0], 3.0), (Costs, [0.25, 0.125, 0.5, 0.5], 0.5)],
)
def test_the_best_bound_counts(kind: Any, bounds: list[float], best: float) -> None:
    """Tests that a bound counts, and is reported, if it is nearer than all before it."""
    seen: list[Progress] = []
    found = Budget(kind(**vars(PROBLEM)), callback=seen.append)
    for bound in bounds:
        found.improve_bound(bound)
    assert found.bound == best
    assert [progress.bound for progress in seen] == [bounds[0], best]


def test_progress(clock: list[float]) -> None:
    """Tests that a callback sees time, objective, bound and the gap between them as soon as there
    is one.
    """
    seen: list[Progress] = []
    found = Budget(PROBLEM, callback=seen.append)
    found.improve_bound(math.inf)
    clock[0] = 101.0
    found.offer(tokens(1))
    found.improve_bound(3.0)
    assert seen == [
        Progress(0.0, None, math.inf, None),
        Progress(1.0, 1.5, math.inf, None, tokens(1), 1),
        Progress(1.0, 1.5, 3.0, 1.0, tokens(1), 1),
    ]
    assert not found.stopped
    found.check()


def test_a_callback_stops() -> None:
    """Tests that the check after a callback's True raises, and that anything false goes on."""
    for answer in (None, False, True):
        found = Budget(PROBLEM, callback=lambda progress, answer=answer: answer)  # type: ignore[misc]
        found.offer(tokens(1))
        assert found.stopped is bool(answer)
    with pytest.raises(Stopped):
        found.check()


def test_no_plan_is_judged_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests that what the judge said of the incumbent and of the last plan is kept, and others are
    judged again.
    """
    judged: list[Any] = []
    evaluate = DraftAllocationProblem.evaluate

    def watched(problem: Any, plan: Any) -> Any:
        judged.append(plan)
        return evaluate(problem, plan)

    monkeypatch.setattr(DraftAllocationProblem, "evaluate", watched)
    found = Budget(PROBLEM)
    best, worse, worst = tokens(2), tokens(1), tokens(0)
    assert [found.offer(plan) for plan in (best, best, worse)] == [1.75, 1.75, 1.5]
    assert [found.evaluate(plan).objective for plan in (best, worse, worst, worse)] == [
        1.75,
        1.5,
        1.0,
        1.5,
    ]
    assert [int(plan.draft_tokens[0]) for plan in judged] == [2, 1, 0, 1]


def test_no_plan_is_judged_that_the_time_does_not_suffice_for(
    clock: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tests that the first plan is judged whatever it takes, and others while that long fits before
    the end.
    """
    evaluate = DraftAllocationProblem.evaluate

    def slowly(problem: Any, plan: Any) -> Any:
        clock[0] += 4.0
        return evaluate(problem, plan)

    monkeypatch.setattr(DraftAllocationProblem, "evaluate", slowly)
    tight = Budget(PROBLEM, time_limit=10.0)
    clock[0] = 120.0
    tight.offer(tokens(1))
    assert tight.judging_seconds == 4.0
    clock[0] = 106.5  # the last plan may come 5 % and 25 ms after the limit
    assert tight.offer(tokens(0)) == 1.0
    clock[0] = 106.53
    assert tight.offer(tight.incumbent) == 1.5  # type: ignore[arg-type]
    with pytest.raises(OutOfTime):
        tight.offer(tokens(2))
    assert tight.incumbent == tokens(1)


@pytest.fixture
def library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The name of a module whose import takes until `sys.gate` is set, and that imports only
    once.
    """
    (tmp_path / "slow_library.py").write_text("import sys\nsys.gate.wait(600.0)\nhere = [1]\n")
    monkeypatch.setattr(sys, "gate", threading.Event(), raising=False)
    monkeypatch.syspath_prepend(tmp_path)
    yield "slow_library"
    sys.modules.pop("slow_library", None)
    for known in (module._ready, module._loaders):
        known.pop("slow_library", None)


def test_an_import_is_on_the_clock(library: str) -> None:
    """Tests that an import that outlasts the limit goes on for the next budget, and happens
    once.
    """
    with pytest.raises(OutOfTime):
        Budget(PROBLEM, time_limit=0.02).load_library(library)
    loader = module._loaders[library]
    assert loader.is_alive() and loader.daemon, "it must not outlive the program"
    sys.gate.set()  # type: ignore[attr-defined]
    found = Budget(PROBLEM).load_library(library)
    assert found.here == [1] and sys.modules[library] is found
    assert module._loaders[library] is loader
    assert Budget(PROBLEM, time_limit=0.0).load_library(library) is found


def test_an_import_that_fails_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests that what a module raises reaches the caller, and that it may be there the next
    time.
    """
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "broken_library.py").write_text("raise LookupError('half a library')\n")
    for _ in range(2):
        with pytest.raises(LookupError, match="half a library"):
            Budget(PROBLEM).load_library("broken_library")
    assert "broken_library" not in module._loaders


def until_told(value: float, stop: Any) -> float:
    """Run until told to end, as a long kernel does; a guard ends it anyway."""
    end = time.monotonic() + 600.0
    while not stop[0] and time.monotonic() < end:
        time.sleep(0.001)
    return value


def budget(seconds: float | None) -> Budget:
    """Return a budget that ends that many seconds from now."""
    return Budget(generate("draft-allocation/uniform", seed=1), time_limit=seconds)


def test_a_call_gives_what_the_kernel_gives() -> None:
    """Tests that a call that ends in time gives its result, with a time limit and without, however
    long it takes.
    """
    for seconds in (None, 600.0):
        assert budget(seconds).call(lambda a, b, stop: a + b + int(stop[0]), 1, 2) == 3

    def slowly(stop: Any) -> int:
        assert (stop.shape, stop.dtype) == ((1,), np.uint8), "what kernels declare"
        time.sleep(0.12)
        return int(stop[0])

    assert budget(None).call(slowly, partial=True) == 0
    with pytest.raises(OutOfTime):
        budget(0.0).call(slowly)


def test_a_call_is_told_to_end_and_what_it_gives_may_count(clock: list[float]) -> None:
    """Tests that the flag turns a fifth of the time before it is up where a part is useful, and not
    sooner.
    """

    def kernel(stop: Any) -> float:
        for clock[0], told in ((107.9, False), (108.1, True)):
            end = time.monotonic() + (600.0 if told else 0.2)  # some looks
            while not stop[0] and time.monotonic() < end:
                time.sleep(0.001)
            assert bool(stop[0]) is told
        return 7.0

    assert budget(10.0).call(kernel, partial=True) == 7.0


def test_a_call_that_gives_nothing_in_time_is_ended() -> None:
    """Tests that where no part is useful the time runs out, and the kernel is told not to go on in
    vain.
    """
    ended = threading.Event()

    def kernel(stop: Any) -> None:
        assert threading.current_thread().daemon, "it must not outlive the program"
        until_told(0.0, stop)
        if stop[0] == 1:
            ended.set()

    with pytest.raises(OutOfTime):
        budget(0.4).call(kernel)
    assert ended.wait(600.0)


def test_an_error_in_a_call_is_raised() -> None:
    """Tests that what a kernel raises reaches the caller."""
    with pytest.raises(ZeroDivisionError):
        budget(600.0).call(lambda stop: 1 / int(stop[0]))


class Kernel:
    """A kernel that says in which thread it is compiled."""

    def prepare_for(self, *_: Any) -> Kernel:
        """Compile."""
        self.prepared_in = threading.current_thread()
        return self

    def __call__(self, stop: Any) -> threading.Thread:
        """Return the thread that runs it."""
        return threading.current_thread()


def test_a_long_call_is_compiled_where_its_seconds_count() -> None:
    """Tests that a kernel that runs in its own thread is compiled in the thread of the solve."""
    kernel = Kernel()
    assert Budget(PROBLEM, time_limit=600.0).call(kernel) is not threading.current_thread()
    assert kernel.prepared_in is threading.current_thread()


def test_compilation_of_the_thread_is_counted_once(clock: list[float]) -> None:
    """Tests that what a thread spends on compilation since a budget began counts, nested code once,
    others' never.
    """

    def compiled() -> None:
        with metered(), metered():
            clock[0] += 1.0

    compiled()
    budget = Budget(PROBLEM)
    assert budget.preparing_seconds == 0.0
    compiled()
    with pytest.raises(KeyError), metered():
        clock[0] += 0.5
        raise KeyError
    other = threading.Thread(target=compiled)
    other.start()
    other.join()
    clock[0] += 5.0
    assert budget.preparing_seconds == 1.5
