"""Corners of fair goodput: all exact methods agree, and each one ends with a plan, a proof or a
reason.

`SPECOPT_CORNERS=1000` in the environment takes 1,000 random problems, by default 40.
"""

from __future__ import annotations

import os
import warnings
from decimal import Decimal, localcontext
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.fair_goodput_corners import corner
from helpers.untyped import load, solve

import specopt
from specopt import FairGoodputProblem, Status
from specopt.models.fields import Floats

CASES = int(os.environ.get("SPECOPT_CORNERS", "40"))

EDGES = Path(__file__).parents[2] / "data" / "edges"


def methods(problem: FairGoodputProblem) -> tuple[str, ...]:
    """The exact methods of a problem, the default first."""
    return (
        ("dual", "convex", "enumeration")
        if problem.per == "round"
        else ("column-generation", "enumeration")
    )


def common_rate(problem: FairGoodputProblem, goodput: Floats) -> Decimal:
    """The common rate of some goodput, to 50 digits."""
    with localcontext() as context:
        context.prec = 50
        weights, power = (
            [Decimal(w) for w in problem.weight.tolist()],
            1 - Decimal(problem.fairness),
        )
        logs = [Decimal(x).ln() for x in goodput.tolist()]
        if not power:
            return (
                sum((w * u for w, u in zip(weights, logs, strict=True)), Decimal(0)) / sum(weights)
            ).exp()
        mean = sum(
            (w * (power * u).exp() for w, u in zip(weights, logs, strict=True)), Decimal(0)
        ) / sum(weights)
        return (mean.ln() / power).exp()


def goodputs(**fields: Any) -> FairGoodputProblem:
    """A problem of these fields."""
    return FairGoodputProblem.from_dict({"format": "specopt/1", "kind": "fair-goodput", **fields})


def check(problem: FairGoodputProblem) -> dict[str, Any]:
    """Solve by all exact methods without a warning; check that they agree, each to its
    tolerance.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        results = {method: solve(problem, method) for method in methods(problem)}
    if any(result.status is Status.INFEASIBLE for result in results.values()):
        assert all(
            result.status is Status.INFEASIBLE and result.explanation for result in results.values()
        )
        return results
    rates = {}
    for method, result in results.items():
        assert result.status is Status.OPTIMAL, (method, result.status, result.gap, result.stats)
        rates[method] = float(common_rate(problem, problem.realised(result.plan.schedule)[0]))
    best = rates[methods(problem)[0]]
    for method, result in results.items():
        assert rates[method] == pytest.approx(best, rel=1e-6), method
        assert rates[method] <= best * (1 + 2e-9), method
        assert problem.worth(result.bound, problem.scale) >= best * (1 - 1e-9), method
    return results


def compare_all(problem: FairGoodputProblem, tolerance: float) -> list[tuple[Floats, Decimal]]:
    """Solve by every method without a warning; check that the default and every claim of an optimum
    have the best common rate, and that no bound is below it.

    Return the goodput and the common rate of every method's plan.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        results = {one.name: solve(problem, one.name) for one in specopt.methods(problem)}
    goodput = {name: problem.realised(found.plan.schedule)[0] for name, found in results.items()}
    rates = {name: common_rate(problem, one) for name, one in goodput.items()}
    best = float(max(rates.values()))
    assert float(rates["auto"]) == pytest.approx(best, rel=2e-9)
    for name, found in results.items():
        if found.status is Status.OPTIMAL:
            assert float(rates[name]) == pytest.approx(best, rel=tolerance), name
        if found.bound is not None:
            assert problem.worth(found.bound, problem.scale) >= best * (1 - 1e-9), name
    assert all(float(rates[name]) >= best * (1 - tolerance) for name in methods(problem))
    return [(goodput[name], rates[name]) for name in results]


@pytest.mark.parametrize("seed", range(CASES))
def test_exact_methods_agree_in_random_corners(seed: int) -> None:
    """Tests that all methods agree at steep fairness, weights over 12 decades and least rates at
    the edge.
    """
    check(corner(seed))


def test_a_minimum_rate_without_room_leaves_the_bound_its_digits() -> None:
    """Tests that no plan exceeds the bound where no round exceeds a minimum rate noticeably."""
    problem = corner(988)
    plans = [solve(problem, name).objective for name in ("enumeration", "column-generation")]
    bound = solve(problem, "column-generation").bound
    assert max(plans) - bound <= 1e-9 * abs(bound)
    assert plans[1] == pytest.approx(bound, rel=1e-9)
    assert plans[0] == pytest.approx(bound, rel=1e-6)  # as accurate as the method claims


def test_least_rates_that_only_slack_made_free() -> None:
    """Tests that a least rate worth a quarter of a draft token in the tenth digit is kept, and paid
    for, by all.
    """
    problem = load(EDGES / "fair-goodput-enumeration-traceback.json")
    drafts = (
        float(problem.min_goodput[0]) - 1.0
    ) / 1e-9  # per round, at one accepted token in 10^9
    for method, result in check(problem).items():
        assert result.plan.mean_draft_tokens[0] == pytest.approx(drafts, rel=1e-5), method


def test_least_rates_above_two_tokens_by_less_than_a_solver_sees() -> None:
    """Tests that a least rate 8e-15 above two tokens, at acceptance 2e-5, costs two thirds of a
    third one in all.
    """
    rate, due = 2.252780706002433e-05, 1.00002252831457
    problem = goodputs(
        acceptance_rates=[1e-9, rate, 0.5],
        budget_tokens=4,
        fairness=0.999999,
        min_goodput=[1.000000001, due, 1.15],
    )
    a, least = Fraction(rate), Fraction(due)
    drafts = 2.0 + float(
        (least - Fraction(1, 2**51) - 1 - a - a**2) / a**3
    )  # less the last two digits
    for method, result in check(problem).items():
        assert result.plan.mean_draft_tokens[1] == pytest.approx(drafts, rel=1e-8), method


@pytest.mark.parametrize("part", [1.0, 1.0 + 1e-10, 1.0 + 9e-10, 1.0 + 2e-9])
@pytest.mark.parametrize("per", ["round", "second"])
def test_least_rates_are_reachable_as_the_judge_says(part: float, per: str) -> None:
    """Tests that all least rates together at the edge are met to the judge's tolerance, beyond it
    proven infeasible.
    """
    problem = goodputs(
        acceptance_rates=[0.5, 0.5],
        budget_tokens=2,
        min_goodput=[1.5 * part, 1.5 * part],
        per=per,
        draft_seconds_per_token=[0.0, 0.0],
        network_seconds=[1.0, 1.0],
        verify_overhead_seconds=0.0,
        verify_seconds_per_token=0.0,
    )
    expected = Status.INFEASIBLE if part > 1.0 + 1e-9 else Status.OPTIMAL
    assert {result.status for result in check(problem).values()} == {expected}


@pytest.mark.parametrize("fairness", [0.999999, 1.000001])
@pytest.mark.parametrize("per", ["round", "second"])
def test_next_to_fairness_1_the_plans_agree_where_their_utilities_do_not_say(
    fairness: float, per: str
) -> None:
    """Tests that plans agree to 1e-11, where the common rate read off the utility is right to nine
    digits only.
    """
    problem = goodputs(
        acceptance_rates=[0.9, 0.55, 0.3],
        budget_tokens=5,
        weights=[1.0, 1.7, 0.6],
        fairness=fairness,
        per=per,
        draft_seconds_per_token=[0.1, 0.02, 0.05],
        network_seconds=[0.1, 0.3, 0.0],
        verify_overhead_seconds=0.1,
        verify_seconds_per_token=0.01,
    )
    rates = []
    for result in check(problem).values():
        goodput = problem.realised(result.plan.schedule)[0]
        rates.append(float(common_rate(problem, goodput)))
        assert problem.log_common_rate(goodput) == pytest.approx(
            float(common_rate(problem, goodput).ln()), rel=1e-14
        )
        assert problem.worth(result.objective, problem.scale) == pytest.approx(rates[-1], rel=1e-9)
    assert rates == pytest.approx([rates[0]] * len(rates), rel=1e-11)


@pytest.mark.parametrize("away", [1e-7, -1e-9, 1e-12, -1e-12, 2.3e-16, -1.2e-16])
@pytest.mark.parametrize("per", ["round", "second"])
def test_next_to_fairness_1_no_method_claims_what_utilities_do_not_show(
    away: float, per: str
) -> None:
    """Tests that exact methods and the default find the best common rate, and that no bound or
    claim contradicts it.
    """
    draw = np.random.default_rng(5)
    for _ in range(2):
        rates, weights = draw.uniform(0.1, 0.95, 3).tolist(), draw.uniform(0.5, 2.0, 3).tolist()
        changes = {"acceptance_rates": rates, "weights": weights, "fairness": 1.0 + away}
        compare_all(goodputs(**TIMED | changes | {"per": per}), 2e-9)


@pytest.mark.parametrize("fairness", [0.0, 0.5, 1.0 - 1e-9, 1.0, 1.0 + 1e-12, 1.5, 7.3])
@pytest.mark.parametrize("per", ["round", "second"])
def test_weights_far_apart(fairness: float, per: str) -> None:
    """Tests that weights over 30 to 240 decades are solved by every method, its bounds above the
    best plan.
    """
    for lightest in (1e-30, 1e-31, 1e-100, 1e-240):
        changes = {"acceptance_rates": [0.8, 0.3, 0.6], "weights": [lightest, 1.0, 1.0]}
        problem = goodputs(**TIMED | changes | {"fairness": fairness, "per": per})
        for goodput, rate in compare_all(problem, 1e-6):
            assert problem.log_common_rate(goodput) == pytest.approx(
                float(rate.ln()), rel=1e-9, abs=1e-12
            )


TIMED: dict[str, Any] = {
    "per": "second",
    "acceptance_rates": [0.999999, 0.999999, 0.1],
    "budget_tokens": 4,
    "fairness": 2.0,
    "draft_seconds_per_token": [0.1, 0.1, 0.0],
    "network_seconds": [0.1, 0.1, 1.0],
    "verify_overhead_seconds": 0.1,
    "verify_seconds_per_token": 0.01,
}
FREE: dict[str, Any] = {
    "per": "second",
    "acceptance_rates": [0.9, 0.1, 0.999999],
    "budget_tokens": 2,
    "fairness": 0.0,
    "draft_seconds_per_token": [0.0, 0.1, 0.0],
    "network_seconds": [1.0, 1.0, 0.1],
    "verify_overhead_seconds": 0.1,
    "verify_seconds_per_token": 0.0,
    "min_goodput": [0.9090909100181819, 0.9090909100181819, 0.0],
}
EDGE: dict[str, Any] = {
    "acceptance_rates": [0.5, 0.5, 0.1],
    "budget_tokens": 3,
    "min_goodput": [1.6250000016250001, 1.6250000016250001, 1.000000001],
}


@pytest.mark.parametrize(
    "fields",
    [
        TIMED | {"min_goodput": [2.631576317106139, 2.631576317106139, 0.8771929828947368]},
        FREE,
        EDGE,
        {
            "acceptance_rates": [0.5, 0.4],
            "budget_tokens": 2,
            "min_goodput": [1.75 * (1 + 1.05e-9), 0.5],
        },
    ],
)
def test_least_rates_at_the_limit_of_what_is_forgiven(fields: dict[str, Any]) -> None:
    """Tests that least rates missed by the very 1e-9 that the judge forgives are no internal error
    by any method.
    """
    problem = goodputs(**fields)
    for method in methods(problem):
        result = solve(problem, method)
        if result.plan is None:
            assert result.explanation is not None
        else:
            assert problem.violations(result.plan) == []
