"""The front door: which method runs, what is refused, and what the judge says."""

from __future__ import annotations

import dataclasses
import importlib
import importlib.metadata
import logging
import math
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import specopt
from specopt import (
    InvalidInput,
    ServingLatencyPlan,
    ServingLatencyProblem,
    Status,
    Termination,
    Unsupported,
)
from specopt.api import plugins
from specopt.kinds import KINDS
from specopt.models import problem as problem_module
from specopt.models.errors import BrokenPlugin, OutOfMemory, OutOfTime, Stopped
from specopt.solvers.auto import Auto
from specopt.solvers.draft_allocation.greedy import Greedy
from specopt.solvers.draft_allocation.milp import MilpAllocation
from specopt.solvers.method import Outcome
from specopt.solvers.serving_latency.baselines import StaticBatching

front_door: Any = importlib.import_module("specopt.api.solve")  # the function has the module's name


def solved(
    problem: ServingLatencyProblem, **kwargs: Any
) -> tuple[specopt.Result, ServingLatencyPlan]:
    """A result and its plan."""
    result = specopt.solve(problem, **kwargs)
    assert isinstance(result.plan, ServingLatencyPlan)
    return result, result.plan


def test_a_method_by_name_or_value(small: ServingLatencyProblem) -> None:
    """Tests that options travel with the value and are written into the result."""
    by_name, _ = solved(small, method="static-batching")
    by_value, plan = solved(small, method=StaticBatching(size=2))
    assert by_name.options == {"size": 8}
    assert by_value.options == {"size": 2}
    assert [len(batch) for batch in plan.batches] == [2, 2, 1]


def test_unknown_methods(small: ServingLatencyProblem) -> None:
    """Tests that a wrong name lists the right ones, and that something else is no method."""
    with pytest.raises(
        Unsupported,
        match=r"no method 'exakt' \(did you mean 'exact'\?\); its methods: .*exact.*algorithm-1",
    ):
        specopt.solve(small, "exakt")
    wrong: Any = 3
    with pytest.raises(
        InvalidInput, match="method: expected a name, a method or a function, got 3"
    ):
        specopt.solve(small, wrong)
    with pytest.raises(InvalidInput, match="problem: expected a specopt problem, got 3"):
        specopt.solve(wrong)


def test_infeasible_names_task_and_bytes(small: ServingLatencyProblem) -> None:
    """Tests that the explanation says which task needs how many bytes of which model's memory."""
    assert small.draft is not None
    longest = int(small.input_tokens.argmax())
    tokens = int(small.input_tokens.max()) + small.longest_output
    needed = small.draft.parameter_bytes + small.draft.kv_bytes_per_token * tokens
    within = dataclasses.replace(small, draft_memory_bytes=needed * (1 - 5e-10))
    assert specopt.solve(within).status is Status.OPTIMAL, "the tolerance of the format"
    result = specopt.solve(dataclasses.replace(small, draft_memory_bytes=needed - 100.0))
    assert result.status is Status.INFEASIBLE
    assert result.termination is Termination.INFEASIBLE
    assert result.explanation is not None
    assert f"task {longest} needs" in result.explanation
    assert f"({needed} bytes) of draft-model memory alone" in result.explanation
    assert f"({needed - 100} bytes) are available" in result.explanation


def test_infeasible_verify_memory(small: ServingLatencyProblem) -> None:
    """Tests that the verify model's memory is named, which autoregressive decoding needs too."""
    for mechanism in ("pipelined", "autoregressive", "any"):
        short = dataclasses.replace(small, verify_memory_bytes=1e9, mechanism=mechanism)
        result = specopt.solve(short)
        assert result.status is Status.INFEASIBLE
        assert "verify-model memory alone, but only 1.000 GB (1000000000 bytes) are available" in (
            result.explanation or ""
        )


def test_any_uses_what_fits(small: ServingLatencyProblem) -> None:
    """Tests that with no room for the draft model an open mechanism decodes autoregressively."""
    result, plan = solved(dataclasses.replace(small, draft_memory_bytes=1e6, mechanism="any"))
    assert result.status is Status.OPTIMAL
    assert plan.mechanism == "autoregressive"


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("time_limit", ("5", -1, math.nan)),
        ("gap", ("0.1", None, -0.1, math.inf, math.nan)),
        ("seed", (-1, 1.5, True)),
        ("memory_limit", ("1", 0)),
    ],
)
def test_arguments_outside_their_domain(
    small: ServingLatencyProblem, name: str, values: tuple[Any, ...]
) -> None:
    """Tests that each is refused by its name, not by a TypeError from within."""
    for value in values:
        with pytest.raises(InvalidInput, match=f"^{name}: expected"):
            specopt.solve(small, "static-batching", **{name: value})


class Changed:
    """A problem of draft allocation, its best plan, and `greedy` with another run."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.problem = specopt.generate("draft-allocation/uniform", seed=1)
        best = specopt.solve(self.problem, "greedy")
        assert best.objective is not None
        self.plan, self.objective = best.plan, best.objective
        self.patch = monkeypatch

    def solve(self, run: Callable[[Any], Outcome], **options: Any) -> specopt.Result:
        """Solve the problem by a run, which gets its budget."""
        self.patch.setattr(Greedy, "run", lambda method, problem, budget: run(budget))
        return specopt.solve(self.problem, "greedy", **options)


@pytest.fixture
def changed(monkeypatch: pytest.MonkeyPatch) -> Changed:
    """A method that does what a test says."""
    return Changed(monkeypatch)


@pytest.mark.parametrize(
    ("error", "termination", "explanation"),
    [
        (OutOfTime(), Termination.TIME_LIMIT, "no plan was found"),
        (Stopped(), Termination.INTERRUPTED, "no plan was found"),
        (KeyboardInterrupt(), Termination.INTERRUPTED, "no plan was found"),
        (OutOfMemory("arrays are too large"), Termination.INTERRUPTED, "arrays are too large"),
    ],
)
def test_how_a_method_ends_early(
    error: BaseException, termination: Termination, explanation: str, changed: Changed
) -> None:
    """Tests that what ends a method early is a result that says so, and never raised, and that plan
    and bound that it had before are the result.
    """

    def run(budget: Any) -> Outcome:
        raise error

    result = changed.solve(run)
    assert (result.status, result.termination, result.explanation) == (
        Status.NONE,
        termination,
        explanation,
    )
    memory = explanation if isinstance(error, OutOfMemory) else None
    assert result.stats.get("out_of_memory") == memory

    def run_after_plan_and_bound(budget: Any) -> Outcome:
        budget.offer(changed.plan)
        budget.improve_bound(2 * changed.objective)
        raise error

    result = changed.solve(run_after_plan_and_bound)
    assert (result.status, result.plan, result.explanation) == (
        Status.FEASIBLE,
        changed.plan,
        None,
    )
    assert result.objective == changed.objective
    assert result.bound == changed.problem.widened(2 * changed.objective)


def test_what_a_method_may_spend(changed: Changed) -> None:
    """Tests that a method gets the arguments."""
    budgets = []

    def run(budget: Any) -> Outcome:
        budgets.append(budget)
        raise OutOfTime

    def callback(progress: Any) -> None:
        """Do nothing."""

    before = time.perf_counter()
    result = changed.solve(run, time_limit=5, gap=0.25, seed=3, memory_limit=1e6, callback=callback)
    found = budgets[0]
    assert (found.problem, found.time_limit, found.seed) == (changed.problem, 5, 3)
    assert 0.25 - 1e-10 < found.gap < 0.25  # room for widening the bound
    assert (found.memory_limit, found.callback, found.warm_start) == (1e6, callback, None)
    assert before <= found.started <= before + result.seconds
    assert changed.solve(run, memory_limit=math.inf).status is Status.NONE


def test_the_log(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests that a solve says what it begins with and how it ends, and in detail what the method
    counted.
    """
    monkeypatch.setattr(front_door, "showing_kernels", None)  # is not asked for
    with caplog.at_level(logging.DEBUG, logger="specopt"):
        result = specopt.solve(
            specopt.generate("draft-allocation/uniform", seed=1),
            "greedy",
            time_limit=5.0,
            gap=0.25,
            seed=3,
        )
    told = [
        (record.levelname, record.getMessage())
        for record in caplog.records
        if record.name.startswith("specopt")
    ]
    assert told == [
        ("INFO", "draft-allocation by greedy: time limit 5.0 s, gap 0.25, seed 3"),
        (
            "INFO",
            (
                f"draft-allocation by greedy: optimal (converged), objective {result.objective}, "
                f"bound {result.bound}, {result.seconds:.3g} s"
            ),
        ),
        ("DEBUG", f"draft-allocation by greedy: {result.stats}"),
    ]


def test_what_the_judge_adds_up_to_is_told(small: ServingLatencyProblem) -> None:
    """Tests that a result has the terms of its objective."""
    result, plan = solved(small, method="static-batching")
    assert result.terms == small.evaluate(plan).terms and len(result.terms) == 2


def test_within_a_methods_tolerance_is_optimal(
    changed: Changed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tests that a plan whose distance to the bound is just the method's tolerance is optimal, one
    beyond it is not.
    """
    bound = changed.objective * (1 + 1e-6)
    widened = changed.problem.widened(bound)
    distance = changed.problem.gap(changed.objective, widened)
    for tolerance, gap in ((distance, 0.0), (distance * (1 - 1e-9), distance)):
        monkeypatch.setattr(Greedy, "tolerance", tolerance)
        result = changed.solve(lambda budget: Outcome(plan=changed.plan, bound=bound))
        assert (result.gap, result.bound) == (gap, widened)
        assert result.status is (Status.FEASIBLE if gap else Status.OPTIMAL)


@pytest.mark.parametrize("said", [Termination.CONVERGED, Termination.GAP, Termination.EXHAUSTED])
@pytest.mark.parametrize(
    ("share", "gap", "ended"),
    [
        (1.0, 0.0, Termination.CONVERGED),
        (1.5, 0.501, Termination.GAP),
        (1.5, 0.0, Termination.EXHAUSTED),
        (1.5, 0.499, Termination.EXHAUSTED),
        (None, 0.6, Termination.EXHAUSTED),
    ],
)
def test_only_a_proof_converges(
    said: Termination, share: float | None, gap: float, ended: Termination, changed: Changed
) -> None:
    """Tests that plan and bound decide whether a method has converged, whatever it says itself."""
    bound = None if share is None else changed.objective * share
    outcome = Outcome(plan=changed.plan, bound=bound, termination=said)
    result = changed.solve(lambda budget: outcome, gap=gap)
    assert result.termination is ended
    assert (result.status is Status.OPTIMAL) == (ended is not Termination.EXHAUSTED)
    result = changed.solve(lambda budget: dataclasses.replace(outcome, plan=None), gap=gap)
    assert (result.status, result.termination) == (Status.NONE, Termination.EXHAUSTED)
    assert result.explanation == "no plan was found"


@pytest.mark.parametrize("method", ["greedy", "auto"])
def test_what_time_cut_short_is_not_exhausted(
    method: str, changed: Changed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tests that a method that leaves out a part for want of time, and proves nothing, ends by its
    time limit.
    """

    def run(method: Any, problem: Any, budget: Any) -> Outcome:
        with pytest.raises(OutOfTime):
            budget.check(ahead=200.0)
        return Outcome(plan=changed.plan)

    for one in specopt.methods(changed.problem):
        if not issubclass(one, Auto):
            monkeypatch.setattr(one, "run", run)
    result = specopt.solve(changed.problem, method, time_limit=100.0)
    assert (result.status, result.termination) == (Status.FEASIBLE, Termination.TIME_LIMIT)


@pytest.mark.parametrize("returned", [None, 2.0, 1.2])
def test_the_best_bound_counts(returned: float | None, changed: Changed) -> None:
    """Tests that a bound that a method has reported on its way is not lost where it returns another
    or none.
    """

    def run(budget: Any) -> Outcome:
        budget.improve_bound(1.5 * changed.objective)
        return Outcome(plan=changed.plan, bound=returned and returned * changed.objective)

    least = min(1.5, returned or 1.5) * changed.objective
    assert changed.solve(run).bound == changed.problem.widened(least)


def test_all_methods(small: ServingLatencyProblem) -> None:
    """Tests that without a problem every kind's methods are listed, and with one those that take
    it.
    """
    everything = specopt.methods()
    assert set(specopt.methods(specopt.DraftAllocationProblem)) < set(everything)
    assert (
        set(specopt.methods(small)) <= set(specopt.methods(ServingLatencyProblem)) < set(everything)
    )


def test_what_is_no_warm_start(
    small: ServingLatencyProblem, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tests that a plan that violates something, or is none, is refused, and so is any by a method
    that takes none.
    """
    result, plan = solved(small)
    greedy = dataclasses.replace(plan, bandwidth_share=plan.bandwidth_share * 2)
    for wrong, message in (
        (greedy, "the plan is not feasible: bandwidth_share: the shares sum to 2"),
        (
            dataclasses.replace(result, plan=greedy),
            "the plan is not feasible: bandwidth_share: the shares sum to 2",
        ),
        (3, "expected a plan for a serving-latency problem, got 3"),
    ):
        with pytest.raises(InvalidInput, match=f"^warm_start: {message}"):
            specopt.solve(small, "exact", warm_start=wrong)  # type: ignore[arg-type]
    other = next(method for method in specopt.methods(small) if method.name == "max-batching")
    monkeypatch.setattr(other, "supports_warm_start", True)
    message = (
        "^warm_start: method static-batching cannot use a warm start; methods that can: auto,"
        " exact, max-batching$"
    )
    with pytest.raises(Unsupported, match=message):
        specopt.solve(small, "static-batching", warm_start=plan)


def test_a_callback_is_called_where_progress_is_printed(small: ServingLatencyProblem) -> None:
    """Tests that `verbose` leaves a callback what it says, and needs none."""
    assert specopt.solve(small, "static-batching", verbose=True).plan is not None
    stopped = specopt.solve(small, "exact", verbose=True, callback=lambda progress: True)
    assert stopped.termination is Termination.INTERRUPTED


def test_a_time_limit_is_kept(small: ServingLatencyProblem, own_clock: None) -> None:
    """Tests that enumerating eight tasks over many steps stops in time with a plan."""
    problem = specopt.generate("serving-latency/paper-1", tasks=8, seed=1)
    specopt.solve(small, "brute-force")  # compiled
    result = specopt.solve(problem, "brute-force", time_limit=0.5)
    assert result.seconds <= 1.05 * 0.5 + 0.05 + result.stats["fixed_seconds"]
    assert result.plan is not None
    assert result.status in (Status.FEASIBLE, Status.OPTIMAL)


def test_the_identity_is_on_the_clock(
    small: ServingLatencyProblem, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tests that a problem's digest, slow for a large one, is made once, and before the method
    looks at its limit.
    """
    made: list[str] = []
    written = problem_module.canonical_json

    def canonical_json(data: Any) -> bytes:
        made.append("digest")
        return written(data)

    def callback(progress: Any) -> None:
        made.append("progress")

    monkeypatch.setattr(problem_module, "canonical_json", canonical_json)
    problem = dataclasses.replace(small)
    result = specopt.solve(problem, "brute-force", callback=callback)
    assert made[:2] == ["digest", "progress"] and made.count("digest") == 1
    assert (
        result.problem_sha256
        == problem.sha256
        == dataclasses.replace(problem, name="another").sha256
    )


def test_what_memory_cannot_hold_is_refused() -> None:
    """Tests that a method which cannot hold its arrays names field, bytes and limit, and is no
    default.
    """
    small = specopt.generate("prompt-chunking/paper-4").to_dict()
    problem = specopt.PromptChunkingProblem.from_dict(small | {"pipeline_length": 10_000_000})
    with pytest.raises(
        Unsupported,
        match=r"pipeline_length need 7\.\d+e\+10 bytes of memory, but the limit is 2\.147e\+09",
    ):
        specopt.solve(problem, "deadline")
    with pytest.raises(
        Unsupported, match=r"pipeline_length need 8\.0\d*e\+07 bytes .* is 1000 bytes"
    ):
        specopt.solve(problem, memory_limit=1000)
    assert specopt.solve(problem, time_limit=0).stats["plan_by"] == "equation-3"


def test_what_any_answer_takes_is_reported(
    small: ServingLatencyProblem, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tests that the seconds of validation, digest and one judging are part of the result's, and in
    `stats`.
    """

    def violations(problem: Any, plan: Any) -> list[str]:
        time.sleep(0.05)
        return []

    monkeypatch.setattr(ServingLatencyProblem, "violations", violations)
    result = specopt.solve(small, "static-batching")
    assert 0.05 < result.stats["fixed_seconds"] < result.seconds


@pytest.mark.parametrize("broken", ["run", "refusal"])
def test_a_broken_plug_in_is_named(
    broken: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tests that what a method of a plug-in raises names it, and that one that cannot say what it
    takes is left out.
    """
    entry = importlib.metadata.EntryPoint(
        "draft-allocation.milp", "elsewhere:MilpAllocation", "specopt.methods"
    )
    monkeypatch.setattr(
        plugins, "_entry_of", lambda method: entry if method is MilpAllocation else None
    )
    monkeypatch.setattr(MilpAllocation, broken, lambda *arguments: 1 // 0)
    problem = specopt.generate("draft-allocation/uniform", seed=1)
    with pytest.raises(
        BrokenPlugin, match=r"plug-in draft-allocation\.milp .*: ZeroDivisionError: "
    ):
        specopt.solve(problem, "milp")
    assert (MilpAllocation in specopt.methods(problem)) is (broken == "run")
    assert ("plug-in draft-allocation.milp" in caplog.text) is (broken == "refusal")


def test_a_plan_of_another_type_is_named(
    small: ServingLatencyProblem, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tests that a method that returns something else as a plan is told what was expected."""
    monkeypatch.setattr(StaticBatching, "run", lambda *arguments: Outcome(plan=3))  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="run: expected a plan of type ServingLatencyPlan, got 3"):
        specopt.solve(small, "static-batching")


def test_results_print(small: ServingLatencyProblem) -> None:
    """Tests that a result prints in a readable form."""
    result = dataclasses.replace(
        specopt.solve(small, "brute-force"), objective=1.5, bound=1.25, gap=0.2, seconds=2.0
    )
    shown = str(result).splitlines()
    assert shown[0] == "serving-latency by brute-force: optimal (converged)"
    assert "  objective       1.5  total serving latency (s)" in shown
    assert "  bound           1.25  every plan has an objective of at least this" in shown
    assert "  gap             20.00 %" in shown and any("batches" in line for line in shown)
    assert "objective" not in str(dataclasses.replace(result, objective=None, bound=None))
    explained = dataclasses.replace(result, explanation="Task 3 is too long.")
    assert "  why             Task 3 is too long." in str(explained).splitlines()
    stats = {"preparing_seconds": 0.5}
    late = dataclasses.replace(result, termination=Termination.TIME_LIMIT, stats=stats)
    assert "0.5 s of the limit" in str(late)


def test_options_of_a_method_go_with_its_name(small: ServingLatencyProblem) -> None:
    """Tests that options are keywords behind a name, and that what is none is named with what was
    meant.
    """
    assert specopt.solve(small, "static-batching", size=2).options == {"size": 2}
    for arguments, keywords, message in (
        (
            ["static-batching"],
            {"sise": 2},
            r"sise: method static-batching has no such option \(did you mean 'size'",
        ),
        (["static-batching"], {"size": 0}, "size: expected"),
        (
            [],
            {"time_limt": 2},
            r"time_limt: solve has no such argument \(did you mean 'time_limit'",
        ),
        ([], {"size": 2}, "size: solve has no such argument; options require the name of a method"),
    ):
        with pytest.raises(InvalidInput, match=message):
            specopt.solve(small, *arguments, **keywords)  # type: ignore[arg-type]
    with pytest.raises(
        InvalidInput, match=r"got 'serving-latency/paper1' \(did you mean 'serving-latency/paper-1'"
    ):
        specopt.generate("serving-latency/paper1")
    with pytest.raises(InvalidInput, match="result: expected a result or a plan, got None"):
        specopt.verify(small, None)  # type: ignore[arg-type]


def test_progress_has_the_plan() -> None:
    """Tests that a callback gets the best plan so far, worth what it says, and how often one was
    the best.
    """
    problem = specopt.generate("serving-latency/paper-1", tasks=8, max_output=64, seed=1)
    seen: list[specopt.Progress] = []
    specopt.solve(problem, callback=seen.append)
    assert seen[0].improvements == 1 < seen[-1].improvements
    for progress in seen:
        assert (
            progress.plan is not None
            and progress.objective == problem.evaluate(progress.plan).objective
        )
    counts = [progress.improvements for progress in seen]
    assert counts == sorted(counts) and len({progress.objective for progress in seen}) == counts[-1]


def test_plans_are_drawn(small: ServingLatencyProblem, tmp_path: Path) -> None:
    """Tests that a result draws its plan while its problem is in memory, a problem any plan of its
    kind.
    """
    result = specopt.solve(small)
    result.plot().save(tmp_path / "plan.svg")
    assert (
        small.plot(result.plan).to_dict() == result.plot().to_dict() == small.plot(result).to_dict()
    )
    assert (tmp_path / "plan.svg").read_text().startswith("<svg")
    with pytest.raises(InvalidInput, match="this result does not contain its problem"):
        dataclasses.replace(result, problem_sha256="0" * 64).plot()
    with pytest.raises(InvalidInput, match="expected a plan for a serving-latency problem, got 3"):
        small.plot(3)


def test_families_are_listed() -> None:
    """Tests that families are found by kind, and that each makes a problem of it."""
    assert {family.name.partition("/")[0] for family in specopt.families()} == {
        kind.name for kind in KINDS
    }
    few = specopt.families("draft-allocation")
    assert [family.generate(seed=1).kind for family in few] == ["draft-allocation"] * len(few)
    with pytest.raises(InvalidInput, match="kind: expected one of"):
        specopt.families("nobody")


def test_families_of_plug_ins_have_names(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests that an entry point's family makes problems under its name, and that something else is
    refused there.
    """
    family = specopt.families("draft-allocation")[0]

    def plug_in(value: object) -> None:
        class Entry:
            name = "draft-allocation.mine"
            group = plugins.FAMILIES
            module = "mine"
            dist = None

            def load(self) -> object:
                return value

        entries = (Entry(),)
        monkeypatch.setattr(
            plugins, "_entries", lambda group: entries if group == plugins.FAMILIES else ()
        )

    plug_in(dataclasses.replace(family, name="draft-allocation/mine"))
    made = specopt.generate("draft-allocation/mine", seed=1)
    assert made == dataclasses.replace(family.generate(seed=1), name=made.name)
    assert made.name is not None and made.name.startswith("mine clients=8")
    plug_in(family.build)
    with pytest.raises(
        BrokenPlugin, match=r"plug-in draft-allocation\.mine .*: expected a Family, got "
    ):
        specopt.generate("draft-allocation/mine")


def test_versions_are_those_that_took_part() -> None:
    """Tests that a result names Pyomo where it stated the program."""
    problem = specopt.generate("draft-allocation/uniform", clients=3, seed=1)
    assert "pyomo" in specopt.solve(problem, "milp").versions


def test_several_results_are_a_table(small: ServingLatencyProblem) -> None:
    """Tests that results become a row each, with what a table says of them."""
    results = [specopt.solve(small), specopt.solve(small, "no-batching")]
    rows = specopt.to_arrow(results).to_pylist()
    assert [row["by"] for row in rows] == ["auto (exact)", "no-batching"]
    assert [row["objective"] for row in rows] == [result.objective for result in results]
    with pytest.raises(InvalidInput, match="expected a plan, results"):
        specopt.to_arrow([])
