"""Conformance: every registered method on every small instance that it does not refuse.

A new kind of problem adds a file to `small_instances`; a new method adds nothing. A test solves a
problem once by every method and compares the answers, so a failure names the method and the
problem.
"""

from __future__ import annotations

from functools import cache
from io import StringIO
from itertools import permutations

import pytest
from helpers.instances import INSTANCES
from helpers.results import check_result
from helpers.untyped import generate, solve
from rich.console import Console

from specopt import (
    ContinuousServingProblem,
    DraftControlProblem,
    Problem,
    PromptChunkingProblem,
    Unsupported,
    methods,
)
from specopt.solvers.auto import Auto
from specopt.solvers.method import Method
from specopt.solvers.serving_latency.milp import Milp
from specopt.testing import guarantees
from specopt.testing.guarantees import Case
from specopt.views.methods import method_entry, print_methods

METHODS = methods()


@cache
def large() -> list[Problem]:
    """Instances beyond each limit on size; nothing solves them here."""
    paper_1, uniform, fair, timed = (
        "serving-latency/paper-1",
        "draft-allocation/uniform",
        "fair-goodput/paper-5",
        "fair-goodput/per-second",
    )
    state = {"uplink_bits_per_second": 5e4, "acceptance_rates": [0.5] * 2001}
    long = {"mechanism": "autoregressive", "output_lengths": "known", "output_tokens": [900]}
    one = generate("continuous-serving/paper-1", tasks=1, seed=1).to_dict() | long
    one.pop("max_output_tokens", None)
    actions = {
        "draft_lengths": [0, 9999],
        "resolutions": [*range(1, 2002)],
        "states": [state],
        "transition": [[1.0]],
    }
    long = generate("prompt-chunking/paper-4", prompt_tokens=20_000)
    return [
        generate(paper_1, tasks=9, max_input=40, max_output=24),
        generate(paper_1, tasks=4, max_output=8000),
        generate("continuous-serving/paper-1", tasks=5, max_input=40, max_output=24),
        generate("continuous-serving/paper-1", tasks=4, max_input=40, max_output=24),
        ContinuousServingProblem.from_dict(one),
        generate(uniform, clients=100, budget=100),
        generate(fair, clients=20_001, budget=20_001),
        generate(timed, clients=1000, budget=20_000),
        generate("verification-batch/mixed", requests=301),
        generate("prompt-chunking/paper-4", prompt_tokens=60_000),
        generate("draft-stopping/random", bins=100),
        PromptChunkingProblem.from_dict(long.to_dict() | {"pipeline_length": 1000}),
        generate("placement/many-classes"),
        DraftControlProblem.from_dict(
            INSTANCES["draft-control"]["alternating"].to_dict() | actions
        ),
    ]


VALUES: dict[type[Method], tuple[Method, ...]] = {Milp: (Milp(), Milp(length=11))}
"""Methods that take more or less with options."""

LEARNING = ("double-q-learning",)
"""Methods whose luck the default does not have to match."""

every_problem = pytest.mark.parametrize(
    "problem",
    [pytest.param(of[name], id=f"{kind}: {name}") for kind, of in INSTANCES.items() for name in of],
)
every_method = pytest.mark.parametrize(
    "method", METHODS, ids=lambda method: f"{method.solves.kind}: {method.name}"
)


def cases_of(problem: Problem) -> list[Case]:
    """Return a case for every method that takes a problem."""
    return [Case(method(), problem) for method in methods(problem)]


def test_names_are_unique() -> None:
    """Tests that a method is found by its kind and name alone."""
    names = [(method.solves.kind, method.name) for method in METHODS]
    assert len(set(names)) == len(names)


@every_method
def test_methods_say_what_they_are(method: type[Method]) -> None:
    """Tests that source, guarantee, complexity are stated, options are frozen with defaults, the
    file has the name.

    A portfolio is defined next to the list of its kind's methods, and a baseline may share a file
    with others.
    """
    place = method.solves.kind if method.name == "auto" else method.name
    assert method.__module__.rpartition(".")[2] in (place.replace("-", "_"), "baselines")
    guarantees.check_declaration(method())


@every_problem
def test_answers(problem: Problem) -> None:
    """Tests that status, judge and bound of every method agree, that exact methods prove, and that
    none is beaten.

    No bound cuts off a plan of another method, no method beats the default, the same seed gives the
    same answer twice.
    """
    cases = cases_of(problem)
    for case in cases:
        guarantees.check_status(case)
        check_result(problem, case.method, case.answer)
        guarantees.check_seed(case)
    for case, other in permutations(cases, 2):
        guarantees.check_pair(case, other)
    check_default(*cases)


def check_default(default: Case, *others: Case) -> None:
    """Check that no method has a better plan or gap than the default, which names who found plan
    and bound.
    """
    found = default.answer
    if found.objective is None:
        return
    assert isinstance(default.method, Auto)
    members = [member.name for member in default.method.members(default.problem)]
    assert found.stats["members"] == members[: len(found.stats["members"])]
    assert {found.stats["plan_by"], found.stats["bound_by"]} <= {*found.stats["members"], None}
    for other in others:
        answer, name = other.answer, other.method.name
        if answer.objective is None or name in LEARNING:
            continue
        slack = 1e-9 * abs(answer.objective) + 1e-15
        assert default.sign * found.objective <= default.sign * answer.objective + slack, name
        if answer.gap is not None and other.method.tolerance <= 1e-9:
            assert found.gap is not None and found.gap <= answer.gap + 1e-9, name


@every_problem
def test_time_limit_0(problem: Problem) -> None:
    """Tests that without time every method gives a quick plan, at once, where time gives one, and
    no wrong claim.
    """
    for case in cases_of(problem):
        guarantees.check_no_time(case)
        quick = case.solve(time_limit=0)
        check_result(problem, case.method, quick)
        if quick.plan is None:
            assert case.answer.plan is None, case.method.name


@every_method
def test_promises(method: type[Method]) -> None:
    """Tests that gap, callback, stopping, Ctrl-C, files and warm starts are as promised."""
    cases = (
        Case(method(), p)
        for p in INSTANCES[method.solves.kind].values()
        if method().refusal(p) is None
    )
    case = next(
        case for case in cases if case.answer.plan is not None
    )  # some methods may find none
    assert solve(case.problem, method.name).method == method.name
    for check in (
        guarantees.check_gap,
        guarantees.check_callback,
        guarantees.check_stop,
        guarantees.check_interrupt,
        guarantees.check_files,
        guarantees.check_warm_start,
    ):
        check(case)


@every_problem
def test_refusals_name_the_methods_that_can(problem: Problem) -> None:
    """Tests that a method that cannot take a problem says why, before it starts, and which can."""
    of_kind = [method for method in METHODS if isinstance(problem, method.solves)]
    able = [method.name for method in of_kind if method().refusal(problem) is None]
    for method in of_kind:
        if method.name in able:
            continue
        with pytest.raises(Unsupported) as error:
            solve(problem, method.name)
        clashes = [
            (condition.clash(method(), problem), condition.takes)
            for condition in method.conditions()
        ]
        clash, takes = next(pair for pair in clashes if pair[0] is not None)
        start = (
            f"method {method.name} cannot solve this problem: it has {clash}, but the method"
            f" accepts"
            f" {takes}; "
        )
        assert str(error.value) == f"{start}methods that can: {', '.join(able)}"


@every_method
def test_every_condition_counts_and_is_printed(method: type[Method]) -> None:
    """Tests that each condition of a method refuses some problem and not others, and that `specopt
    methods` has it.
    """
    problems = [
        *INSTANCES[method.solves.kind].values(),
        *(p for p in large() if isinstance(p, method.solves)),
    ]
    entry = method_entry(method)
    out = Console(file=StringIO(), width=400)
    print_methods([entry], out)
    assert entry["takes"] == [condition.takes for condition in method.conditions()]
    for condition in method.conditions():
        clashes = {
            condition.clash(value, p) is None
            for value in VALUES.get(method, (method(),))
            for p in problems
        }
        assert clashes == {True, False}, condition.takes
        assert condition.takes in out.file.getvalue()  # type: ignore[attr-defined]
