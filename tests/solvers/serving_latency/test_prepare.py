"""What every method of serving latency looks at: the speculation lengths worth a look."""

from __future__ import annotations

import dataclasses

from helpers.untyped import generate
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies.serving_plans import fixed as problems_with_plans

from specopt import ServingLatencyPlan, ServingLatencyProblem
from specopt.kinds.serving_latency.strategies import ALL_MECHANISMS
from specopt.models.fields import MAX_TOKENS
from specopt.solvers.serving_latency.prepare import prepare


@settings(max_examples=100)
@given(
    problems_with_plans(tasks=(1, 5), max_output=40, max_length=12, mechanisms=ALL_MECHANISMS),
    st.integers(1, 12),
)
def test_other_lengths_are_no_better(
    case: tuple[ServingLatencyProblem, ServingLatencyPlan], most: int
) -> None:
    """Tests that a plan takes no longer with the next shorter drafts that are looked at, by the
    judge.
    """
    problem, plan = case
    lengths = prepare(problem, problem.mechanism_of(plan)).lengths
    assert list(lengths) == sorted(set(lengths))
    shorter = max(length for length in lengths if length <= plan.speculation_length)
    replaced = dataclasses.replace(plan, speculation_length=shorter)
    assert problem.evaluate(replaced).objective <= problem.evaluate(plan).objective * (1 + 1e-12)


def test_few_lengths_of_many_matter() -> None:
    """Tests that of ten million lengths those are found soon that save a step: at most as many as
    there are steps.
    """
    problem = generate("serving-latency/paper-1", tasks=5, max_output=24, alpha=0.999999)
    many = dataclasses.replace(
        problem, max_speculation_length=MAX_TOKENS, output_tokens=problem.output_tokens * 0 + 24
    )
    assert list(prepare(many).lengths) == [1, 2, 3, 4, 6, 8, 12, 24]
    few = dataclasses.replace(many, acceptance_rate=0.5)
    assert list(prepare(few).lengths) == [1, 2, 3, 39]
