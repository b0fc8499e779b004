"""Conformance: every registered method on every small instance that it does not refuse.

A new kind of problem adds a file to `small_instances`; a new method adds nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from io import StringIO

import pytest
from rich.console import Console

from specopt import DraftControlProblem, Problem, PromptChunkingProblem, Unsupported, generate, methods, solve
from specopt.kinds import KINDS
from specopt.solvers.method import Method
from specopt.solvers.serving_latency.milp import Milp
from specopt.testing import promises
from specopt.views.methods import method_entry, print_methods

METHODS = methods()
INSTANCES: dict[str, dict[str, Problem]] = {
    kind.name: import_module(f"small_instances.{kind.name.replace('-', '_')}").INSTANCES for kind in KINDS
}

CASES = [
    pytest.param(method, problem, id=f"{method.solves.kind}: {method.name}: {name}")
    for method in METHODS
    for name, problem in INSTANCES[method.solves.kind].items()
    if method().refusal(problem) is None
]
ONE_EACH = [
    pytest.param(method, next(p for p in INSTANCES[method.solves.kind].values() if method().refusal(p) is None),
                 id=f"{method.solves.kind}: {method.name}")
    for method in METHODS
]  # fmt: skip
REFUSALS = [
    pytest.param(method, problem, id=f"{method.solves.kind}: {method.name}: {name}")
    for method in METHODS
    for name, problem in INSTANCES[method.solves.kind].items()
    if method().refusal(problem) is not None
]


def large() -> list[Problem]:
    """Instances beyond each limit on size; nothing solves them here."""
    paper_1, uniform, fair, timed = (
        "serving-latency/paper-1", "draft-allocation/uniform", "fair-goodput/paper-5", "fair-goodput/per-second"
    )  # fmt: skip
    state = {"uplink_bits_per_second": 5e4, "acceptance_rates": [0.5] * 2001}
    actions = {"draft_lengths": [0, 9999], "resolutions": [*range(1, 2002)], "states": [state], "transition": [[1.0]]}
    long = generate("prompt-chunking/paper-4", prompt_tokens=20_000)
    return [
        generate(paper_1, tasks=9, max_input=40, max_output=24),
        generate(paper_1, tasks=4, max_output=8000),
        generate(uniform, clients=100, budget=100),
        generate(fair, clients=20_001, budget=20_001),
        generate(timed, clients=1000, budget=20_000),
        generate("verification-batch/mixed", requests=301),
        generate("prompt-chunking/paper-4", prompt_tokens=60_000),
        generate("draft-stopping/random", bins=100),
        PromptChunkingProblem.from_dict(long.to_dict() | {"pipeline_length": 1000}),
        generate("placement/many-classes"),
        DraftControlProblem.from_dict(INSTANCES["draft-control"]["alternating"].to_dict() | actions),
    ]


LARGE = large()
VALUES: dict[type[Method], tuple[Method, ...]] = {Milp: (Milp(), Milp(length=11))}
"""Methods that take more or less with options."""

ONE_EACH_CHECKS = [
    promises.check_gap, promises.check_callback, promises.check_stop, promises.check_interrupt, promises.check_files,
    promises.check_warm_start, promises.check_arguments,
]  # fmt: skip

every_case = pytest.mark.parametrize(("method", "problem"), CASES)
every_problem = pytest.mark.parametrize(
    "problem",
    [pytest.param(of[name], id=f"{kind}: {name}") for kind, of in INSTANCES.items() for name in of],
)
one_each = pytest.mark.parametrize(("method", "problem"), ONE_EACH)


def test_names_are_unique() -> None:
    """Tests that a method is found by its kind and name alone."""
    names = [(method.solves.kind, method.name) for method in METHODS]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("method", METHODS, ids=lambda method: f"{method.solves.kind}: {method.name}")
def test_methods_say_what_they_are(method: type[Method]) -> None:
    """Tests that source, guarantee, complexity are stated, options are frozen with defaults, the file has the name.

    A portfolio lies beside the list of its kind's methods.
    """
    place = method.solves.kind if method.name == "auto" else method.name
    assert method.__module__.rpartition(".")[2] == place.replace("-", "_")
    promises.check_declaration(method())


@every_case
def test_solves(method: type[Method], problem: Problem) -> None:
    """Tests that status, termination, judge and bound agree, and that exact methods prove their plans optimal."""
    promises.check_answer(method(), problem)


@one_each
def test_solves_by_name(method: type[Method], problem: Problem) -> None:
    """Tests that a method is called by its name."""
    assert solve(problem, method.name).method == method.name


@every_problem
def test_exact_is_unbeaten(problem: Problem) -> None:
    """Tests that no method beats an exact one, and that no bound cuts off what another has found."""
    promises.check_each_other(problem, [other() for other in methods(problem)])


@every_case
def test_same_seed_same_plan(method: type[Method], problem: Problem) -> None:
    """Tests that the same seed gives the same plan twice."""
    promises.check_seed(promises.Case(method(), problem))


@every_case
def test_time_limit_0(method: type[Method], problem: Problem) -> None:
    """Tests that no time gives a quick plan, at once, where time gives one, and never a wrong claim."""
    promises.check_no_time(promises.Case(method(), problem))
    if solve(problem, method(), time_limit=0).plan is None:
        if method.solves.kind == "placement":
            pytest.xfail("its methods begin with their kernels")
        assert solve(problem, method()).plan is None


@one_each
@pytest.mark.parametrize("check", ONE_EACH_CHECKS)
def test_promises(method: type[Method], problem: Problem, check: Callable[[promises.Case], None]) -> None:
    """Tests that gap, callback, stopping, Ctrl-C, files, warm starts and refused arguments are as promised."""
    check(promises.Case(method(), problem))


@pytest.mark.parametrize(("method", "problem"), REFUSALS)
def test_refusals_name_the_methods_that_can(method: type[Method], problem: Problem) -> None:
    """Tests that a method that cannot take a problem says why, before it starts, and which can."""
    with pytest.raises(
        Unsupported, match=f"method {method.name} cannot take this problem: .*; methods that can: "
    ) as e:
        solve(problem, method.name)
    clashes = [(condition.clash(method(), problem), condition.takes) for condition in method.conditions()]
    clash, takes = next(pair for pair in clashes if pair[0] is not None)
    assert f": it has {clash}, the method takes {takes}; " in str(e.value)
    able = str(e.value).rpartition("methods that can: ")[2].split(", ")
    for other in METHODS:
        if other.solves is method.solves:
            assert (other.name in able) == (other().refusal(problem) is None)


@pytest.mark.parametrize("method", METHODS, ids=lambda method: f"{method.solves.kind}: {method.name}")
def test_every_condition_counts_and_is_printed(method: type[Method]) -> None:
    """Tests that each condition of a method refuses some problem and not others, and that `specopt methods` has it."""
    problems = [*INSTANCES[method.solves.kind].values(), *(p for p in LARGE if isinstance(p, method.solves))]
    entry = method_entry(method)
    out = Console(file=StringIO(), width=400)
    print_methods([entry], out)
    assert entry["takes"] == [condition.takes for condition in method.conditions()]
    for condition in method.conditions():
        clashes = {condition.clash(value, p) is None for value in VALUES.get(method, (method(),)) for p in problems}
        assert clashes == {True, False}, condition.takes
        assert condition.takes in out.file.getvalue()  # type: ignore[attr-defined]
