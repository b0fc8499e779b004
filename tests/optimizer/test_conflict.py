"""Why there is no plan, as data, and the least change that gives one."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
from helpers.command_line import CommandLine
from hypothesis import given
from hypothesis import strategies as st

import specopt
from specopt import (
    FairGoodputProblem,
    Problem,
    Result,
    ServingLatencyProblem,
    Status,
    generate,
    solve,
)
from specopt.api.arguments import with_field

COUNTS = ("max_output_tokens", "budget_tokens")
"""Fields whose next smaller or larger value is one away."""


def check_changes(problem: Problem, worse: dict[str, int]) -> None:
    """Hold each remedy against solving: with it there is a plan, with a little less there is
    none.
    """
    found = solve(problem)
    assert found.status is Status.INFEASIBLE and found.conflict and found.explanation
    for name, value in found.conflict[0].least_change.items():
        enough: Any = int(value) if name in COUNTS else value
        short: Any = enough + worse[name] if name in COUNTS else value * (1 - 2e-9)
        assert solve(with_field(problem, name, enough)).plan is not None, name
        assert solve(with_field(problem, name, short)).status is Status.INFEASIBLE, name


@given(
    st.integers(0, 99), st.sampled_from(["pipelined", "any"]), st.floats(0.3, 0.999), st.booleans()
)
def test_memory(seed: int, mechanism: str, part: float, both: bool) -> None:
    """Tests that tasks that fit no memory are named with their bytes, and that remedies are
    least.
    """
    problem = generate("serving-latency/paper-1", tasks=3, max_output=40, seed=seed)
    assert isinstance(problem, ServingLatencyProblem)
    outputs = np.minimum(problem.output_tokens, 5)
    problem = ServingLatencyProblem.from_dict(
        problem.to_dict() | {"output_tokens": outputs.tolist(), "mechanism": mechanism}
    )
    assert problem.draft is not None
    models = {"draft": problem.draft, "verify": problem.verify}
    most = int(problem.input_tokens.max()) + 40
    limits = {
        f"{name}_memory_bytes": model.parameter_bytes + part * model.kv_bytes_per_token * most
        for name, model in models.items()
    }
    if mechanism == "pipelined" and not both:
        del limits["verify_memory_bytes"]
    short = ServingLatencyProblem.from_dict(problem.to_dict() | limits)
    check_changes(short, {"max_output_tokens": 1})
    found = solve(short)
    named = {(one.constraint, one.index) for one in found.conflict}
    lengths = problem.input_tokens + 40
    for name, model in models.items():
        limit = limits.get(f"{name}_memory_bytes", np.inf)
        for task, tokens in enumerate(lengths.tolist()):
            needs = model.parameter_bytes + model.kv_bytes_per_token * tokens
            assert ((f"{name}_memory_bytes", task) in named) == (needs > limit * (1 + 1e-9))


@pytest.mark.parametrize("per", ["round", "second"])
def test_least_rates(per: str) -> None:
    """Tests that least rates beyond the budget, and those of one client beyond anything, are
    data.
    """
    problem = generate(
        f"fair-goodput/{'paper-5' if per == 'round' else 'per-second'}", clients=4, budget=8, seed=1
    )
    assert isinstance(problem, FairGoodputProblem)
    due = np.zeros(4)
    due[2] = 1e3
    alone = solve(dataclasses.replace(problem, min_goodput=due)).conflict
    assert [(one.constraint, one.index, one.needs > one.has) for one in alone] == [
        ("min_goodput", 2, True)
    ]
    if per == "round":
        together = dataclasses.replace(
            problem, min_goodput=np.full(4, 2.5), acceptance_rates=np.full(4, 0.8)
        )
        check_changes(together, {"budget_tokens": -1})


def test_files_and_terminals_have_it(cli: CommandLine) -> None:
    """Tests that a problem without a plan exits with 1, names task and bytes and what would help,
    and writes its result, from which the conflict comes back.
    """
    problem = with_field(
        generate("serving-latency/paper-1", tasks=3, seed=1), "draft_memory_bytes", 1e6
    )
    specopt.save(problem, "problem.json")
    shown = cli("solve problem.json -o result.json", 1).out
    for word in ("infeasible", "memory alone, but only 0.001 GB (1000000 bytes)", "would help"):
        assert word in shown
    loaded = specopt.load("result.json", Result)
    assert loaded.status is Status.INFEASIBLE and loaded.plan is None
    assert loaded.conflict == solve(problem).conflict != ()
