"""The region's form: every mean allocation is a mixture of integer ones, found by systematic
sampling.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles import fair_goodput as naive

from specopt import FairGoodputProblem
from specopt.kinds.fair_goodput.strategies import rates
from specopt.models.acceptance import expected_tokens
from specopt.models.fields import Floats
from specopt.solvers.fair_goodput.region import in_units, plan_of, tokens_for

fractions = st.one_of(
    st.sampled_from((0.0, 0.5, 1 / 3, 0.25, 1e-18, 1e-15, 1 - 2**-53, 0.1)),
    st.floats(0, 1, exclude_max=True),
)


@st.composite
def means(draw: st.DrawFn) -> tuple[FairGoodputProblem, list[float]]:
    """A problem and mean draft tokens whose sum its budget just holds, as exactly as floats
    allow.
    """
    size = draw(st.integers(1, 40))
    whole = draw(st.lists(st.integers(0, 5), min_size=size, max_size=size))
    part = draw(st.lists(fractions, min_size=size, max_size=size))
    tokens = [n + f for n, f in zip(whole, part, strict=True)]
    budget = int(np.ceil(sum(tokens) - 1e-9))
    acceptance = draw(st.lists(rates, min_size=size, max_size=size))
    return FairGoodputProblem(acceptance_rates=np.array(acceptance), budget_tokens=budget), tokens


@given(means())
def test_every_mean_is_a_mixture(case: tuple[FairGoodputProblem, list[float]]) -> None:
    """Tests that the schedule realises f(s) within 1e-9 inside the budget, with at most 2 N
    changes.
    """
    problem, tokens = case
    plan = plan_of(problem, np.array(tokens))
    assert problem.violations(plan) == []
    assert plan.schedule.changes <= 2 * problem.clients
    assert len(plan.schedule) <= problem.clients + 1
    assert float(plan.schedule.share.sum()) == 1.0
    assert (plan.schedule.share > 0).all()
    form, schedule = problem.to_dict(), plan.to_dict()["schedule"]
    assert naive.keeps_limits(form, schedule)
    goodput, drafts = naive.played(form, schedule)
    assert drafts == pytest.approx(tokens, abs=1e-9)
    wanted = [
        (1 - s % 1) * naive.mu(a, int(s)) + s % 1 * naive.mu(a, int(s) + 1)
        for a, s in zip(problem.acceptance_rates.tolist(), tokens, strict=True)
    ]
    assert goodput == pytest.approx(wanted, rel=1e-9)
    assert plan.goodput == pytest.approx(goodput, rel=1e-12)


@given(means())
def test_entries_differ_by_one_token_per_client(
    case: tuple[FairGoodputProblem, list[float]],
) -> None:
    """Tests that every client drafts its mean rounded down or up in every round, and that rounds
    use the sum so.
    """
    problem, tokens = case
    plan = plan_of(problem, np.array(tokens))
    totals = []
    for _, allocation in plan.schedule.allocations():
        assert (np.abs(allocation - plan.mean_draft_tokens) < 1).all()
        totals.append(int(allocation.sum()))
    assert max(totals) - min(totals) <= 1


def test_rounding_beyond_the_budget_is_shared_out() -> None:
    """Tests that sums a little above the budget lose their last digits, evenly, and never break
    it.
    """
    tokens = np.full(30, 0.1) + 3e-14
    assert tokens.sum() > 3
    whole, part = in_units(tokens, 3)
    assert whole.sum() == 0
    assert int(part.sum()) <= 3 << 52
    assert part / 2**52 == pytest.approx(tokens, abs=1e-12)


@given(st.lists(st.tuples(rates, st.floats(0, 60)), min_size=1, max_size=20))
def test_tokens_for_a_rate(rows: list[tuple[float, float]]) -> None:
    """Tests that the least mean drafts for a rate give it, and that a little less does not."""
    acceptance, tokens = np.array(rows).T

    def goodput_of(tokens: Floats) -> Floats:
        whole = np.floor(tokens)
        part: Floats = (tokens - whole) * acceptance ** (whole + 1.0)
        return expected_tokens(acceptance, whole) + part

    goodput = goodput_of(tokens)
    found = tokens_for(acceptance, goodput, np.full(len(rows), 100.0))
    assert (found <= tokens * (1 + 1e-9) + 1e-9).all() or goodput_of(found) == pytest.approx(
        goodput
    )
    assert goodput_of(found) == pytest.approx(goodput, rel=1e-13)
