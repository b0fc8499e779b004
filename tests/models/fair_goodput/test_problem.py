"""The judge of fair goodput against one that plays every entry, and what problem, plan and schedule
refuse.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from helpers.growth import growth
from hypothesis import given
from hypothesis import strategies as st
from oracles import fair_goodput as naive
from small_instances.fair_goodput import declared

from specopt import FairGoodputPlan, FairGoodputProblem, InvalidInput, Schedule
from specopt.kinds.fair_goodput.strategies import plans
from specopt.kinds.fair_goodput.strategies import problems as fair_goodputs

BASE: dict[str, Any] = {
    "format": "specopt/1",
    "kind": "fair-goodput",
    "acceptance_rates": [0.5, 0.0, 0.75],
    "budget_tokens": 4,
}
SECOND: dict[str, Any] = {
    "per": "second",
    "draft_seconds_per_token": [0.01, 0.02, 0.03],
    "network_seconds": [0.03, 0.02, 0.01],
    "verify_overhead_seconds": 0.05,
    "verify_seconds_per_token": 0.001,
}
PLAN: dict[str, Any] = {
    "goodput": [1.5625, 1.0, 1.9375],
    "mean_draft_tokens": [1.25, 0.0, 1.5],
    "schedule": [
        {"share": 0.25, "draft_tokens": [2, 0, 0]},
        {"share": 0.5, "changes": [[2, 2], [0, 1]]},
        {"share": 0.25, "draft_tokens": [1, 0, 2]},
    ],
}


def problem(**fields: Any) -> FairGoodputProblem:
    """A problem of three clients, with some fields replaced."""
    return FairGoodputProblem.from_dict(BASE | fields)


def plan(**fields: Any) -> FairGoodputPlan:
    """A plan of three entries, with some fields replaced."""
    return FairGoodputPlan.from_dict(PLAN | fields)


def test_an_example_by_hand() -> None:
    """Tests that goodput, mean drafts and utility are those computed on paper."""
    goodput, tokens = problem().realised(plan().schedule)
    assert goodput == pytest.approx([0.25 * 1.75 + 0.75 * 1.5, 1.0, 0.25 + 0.75 * 2.3125])
    assert tokens == pytest.approx([1.25, 0.0, 1.5]) and plan().schedule.changes == 2
    assert problem().evaluate(plan()).objective == pytest.approx(sum(np.log(goodput)))
    assert problem(fairness=0.0).evaluate(plan()).objective == pytest.approx(goodput.sum())
    assert problem(fairness=2.0).evaluate(plan()).objective == pytest.approx(-(1 / goodput).sum())


@given(st.data())
def test_judge_equals_naive(data: st.DataObject) -> None:
    """Tests that rates, drafts, utility and verdict are those of playing the schedule entry by
    entry.
    """
    problem = data.draw(fair_goodputs())
    plan = data.draw(plans(problem))
    form = problem.to_dict()
    schedule = plan.to_dict()["schedule"]
    goodput, tokens = naive.played(form, schedule)
    assert plan.goodput == pytest.approx(goodput, rel=1e-12)
    assert plan.mean_draft_tokens == pytest.approx(tokens, rel=1e-12, abs=1e-12)
    assert problem.evaluate(plan).objective == pytest.approx(
        naive.utility(form, goodput), rel=1e-9, abs=1e-12
    )
    assert problem.violations(plan) == []
    assert naive.keeps_limits(form, schedule)


@given(st.data())
def test_limits_equal_naive(data: st.DataObject) -> None:
    """Tests that schedules made for another problem are judged as the oracle judges them."""
    loose = data.draw(fair_goodputs(clients=(3, 3), per=("round",)))
    tight = data.draw(fair_goodputs(clients=(3, 3), budget=(0, 4), per=("round",)))
    schedule = data.draw(plans(loose)).to_dict()["schedule"]
    plan = declared(tight, Schedule.parse(schedule, "schedule"))
    assert (tight.violations(plan) == []) == naive.keeps_limits(tight.to_dict(), schedule)


VIOLATED: list[tuple[dict[str, Any], dict[str, Any], str]] = [
    (
        {"budget_tokens": 2},
        {},
        "schedule[1]: the draft tokens sum to 3, but the budget is 2 (and 1 more of the same kind)",
    ),
    (
        {"max_draft_tokens": [2, 0, 1]},
        {},
        (
            "schedule[1]: client 2 has 2 draft tokens, but at most 1 are allowed"
            " (and 1 more of the same kind)"
        ),
    ),
    (
        {},
        {"goodput": [1.5625, 1.0, 1.94]},
        "goodput[2]: the plan states 1.94, but the schedule gives 1.984375",
    ),
    (
        {},
        {"mean_draft_tokens": [1.25, 0.5, 1.5]},
        "mean_draft_tokens[1]: the plan states 0.5, but the schedule gives 0",
    ),
    (
        {"min_goodput": [1.0, 1.1, 2.0]},
        {},
        (
            "min_goodput[1]: the schedule gives 1, but the minimum is 1.1"
            " (and 1 more of the same kind)"
        ),
    ),
    (
        {},
        {"schedule": [{"share": 0.5, "draft_tokens": [1, 0, 1]}]},
        "schedule: the shares sum to 0.5 instead of 1",
    ),
    ({}, {"goodput": [1.0, 1.0]}, "goodput: expected 3 entries, got 2"),
    (
        {},
        {"schedule": [{"share": 1.0, "draft_tokens": [1]}]},
        "schedule[0].draft_tokens: expected 3 entries, got 1",
    ),
]


@pytest.mark.parametrize(("fields", "other", "message"), VIOLATED)
def test_violations_name_the_place(
    fields: dict[str, Any], other: dict[str, Any], message: str
) -> None:
    """Tests that every constraint is judged, and its sentence says where and by how much."""
    goodput = {"goodput": [1.5625, 1.0, 1.984375], "mean_draft_tokens": [1.25, 0.0, 1.5]}
    if "goodput" in other and len(other["goodput"]) == 2:
        other = other | {"mean_draft_tokens": [0.0, 0.0]}
    assert message in problem(**fields).violations(plan(**(goodput | other)))


REFUSED_PLANS: list[tuple[Any, str]] = [
    ([], "plan.schedule: expected at least one entry, got none"),
    ({}, "plan.schedule: expected array, got .*object"),
    (
        [{"share": 1.0, "changes": []}],
        r"plan.schedule\[0\].draft_tokens: missing; required",
    ),
    (
        [{"share": 1.0}],
        r"plan.schedule\[0\]: expected either draft_tokens or changes, got neither",
    ),
    (
        [{"share": 1.0, "draft_tokens": [1], "changes": []}],
        r"plan.schedule\[0\]: expected either draft_tokens or changes, got both",
    ),
    (
        [{"share": 0.5, "draft_tokens": [1, 2]}, {"share": 0.5, "changes": [[1, 1], [1, 2]]}],
        r"plan.schedule\[1\].changes: expected each client at most once, got 1",
    ),
    (
        [{"share": 0.5, "draft_tokens": [1, 2]}, {"share": 0.5, "changes": [[1]]}],
        r"plan.schedule\[1\].changes\[0\]: expected array of length 2",
    ),
]
"""Test_domains has the values outside the domain of a field."""


@pytest.mark.parametrize(("schedule", "message"), REFUSED_PLANS)
def test_bad_schedules_are_refused(schedule: Any, message: str) -> None:
    """Tests that what is no schedule is refused with the place and what was expected."""
    with pytest.raises(InvalidInput, match=f"^{message}"):
        plan(schedule=schedule)


def test_schedules_built_from_arrays_are_checked() -> None:
    """Tests that arrays that make no schedule are refused, and that the caller's arrays stay
    theirs.
    """
    unfit = "schedule: the arrays of a schedule must have consistent lengths"
    two = {
        "share": [1.0, 0.0],
        "starts": [0, 2, 3],
        "clients": [0, 1, 1],
        "tokens": [1, 1, 2],
        "full": [True, False],
    }
    share = np.array([1.0, 0.0])
    schedule = Schedule(**two | {"share": share})  # type: ignore[arg-type]
    share[0] = 7.0
    assert schedule.share.tolist() == [1.0, 0.0]
    for change, message in (
        ({"share": [np.nan, 1.0]}, "schedule[0].share: expected a share >= 0, got nan"),
        ({"share": [1.0, -1.0]}, "schedule[1].share: expected a share >= 0, got -1.0"),
        ({"starts": [0, 2, 4]}, unfit),
        ({"starts": [0, 3]}, unfit),
        ({"starts": [1, 2, 3]}, unfit),
        ({"starts": [0, 4, 3]}, unfit),
        ({"full": [True]}, unfit),
        ({"tokens": [1, 1]}, unfit),
        (
            {"full": [False, True]},
            "schedule[0].draft_tokens: missing; required because the first entry has no previous"
            " entry to change",
        ),
        (
            {"full": [True, True]},
            "schedule[1].draft_tokens: expected 2 entries, as in schedule[0], got 1",
        ),
        (
            {"clients": [1, 0, 1]},
            "schedule[0]: an entry with draft_tokens must list every client, in order",
        ),
        ({"clients": [0, 1, 2]}, "schedule[1].changes: expected clients 0 to 1, got 2"),
        ({"clients": [0, 1, -1]}, "schedule[1].changes: expected clients 0 to 1, got -1"),
        (
            {"tokens": [1, 1, -1]},
            f"schedule[1].changes: expected tokens from 0 to {10**15}, got -1",
        ),
        (
            {"tokens": [1, 10**15 + 1, 1]},
            f"schedule[0].changes: expected tokens from 0 to {10**15}, got {10**15 + 1}",
        ),
    ):
        with pytest.raises(InvalidInput) as refusal:
            Schedule(**two | change)  # type: ignore[arg-type]
        assert str(refusal.value) == message
    assert Schedule(**two | {"tokens": [0, 10**15, 0]}).tokens.tolist() == [0, 10**15, 0]  # type: ignore[arg-type]


def test_schedules_of_allocations() -> None:
    """Tests that allocations come back as integers, each entry in full."""
    schedule = Schedule.of([0.5, 0.5], np.array([[1.0, 2.0], [3.0, 2.0]]))
    found = list(schedule.allocations())
    assert [(share, row.tolist()) for share, row in found] == [(0.5, [1, 2]), (0.5, [3, 2])]
    assert all(row.dtype == np.int64 for _, row in found)
    assert schedule.full.tolist() == [True, True] and schedule.changes == 1
    assert schedule.dump() == [
        {"share": 0.5, "draft_tokens": [1, 2]},
        {"share": 0.5, "draft_tokens": [3, 2]},
    ]


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"weights": [1.0]}, "weights: expected 3 entries, as in acceptance_rates, got 1"),
    (
        {"per": "second"},
        r"draft_seconds_per_token: missing; required when per is 'second'",
    ),
    (
        SECOND | {"network_seconds": [0.0] * 3, "verify_overhead_seconds": 0.0},
        "verify_overhead_seconds: expected a number > 0 when all network_seconds are 0, got 0",
    ),
]


@pytest.mark.parametrize(("fields", "message"), REFUSED)
def test_bad_problems_are_refused(fields: dict[str, Any], message: str) -> None:
    """Tests that a value outside its domain is refused by name."""
    with pytest.raises(InvalidInput, match=f"^{message}"):
        problem(**fields)


def test_plans_of_other_problems_are_no_plans() -> None:
    """Tests that a plan for another number of clients cannot be evaluated."""
    with pytest.raises(InvalidInput, match="goodput: expected 2 entries, got 3"):
        problem(acceptance_rates=[0.5, 0.5]).evaluate(plan())


def test_the_schema_of_a_schedule() -> None:
    """Tests that a schema says all that is read of a schedule."""
    count = {"type": "integer", "minimum": 0, "maximum": 10**15}
    pair = {"type": "array", "prefixItems": [count, count], "items": False}
    forms = {
        "draft_tokens": {"type": "array", "items": count, "minItems": 1},
        "changes": {"type": "array", "items": pair},
    }
    entries = [
        {
            "type": "object",
            "properties": {"share": {"type": "number", "minimum": 0}, name: form},
            "required": ["share", name],
            "additionalProperties": False,
        }
        for name, form in forms.items()
    ]
    found = Schedule.schema()
    for entry in found["items"]["anyOf"]:
        for field in entry["properties"].values():
            assert all(field.pop(word) for word in ("description", "unit", "range"))
    assert found == {"type": "array", "minItems": 1, "items": {"anyOf": entries}}


@pytest.mark.parametrize(
    ("fields", "name"),
    [
        (SECOND | {"verify_overhead_seconds": 1e260}, "verify_overhead_seconds"),
        (SECOND | {"network_seconds": [1e308, 0.1, 0.1]}, "verify_overhead_seconds"),
        (
            SECOND | {"network_seconds": [0.0] * 3, "verify_overhead_seconds": 3e-308},
            "verify_overhead_seconds",
        ),
        ({"weights": [1e308] * 3}, "weights"),
        ({"weights": [1e-260] * 3}, "fairness"),
        ({"fairness": 60.0, "acceptance_rates": [0.5, 0.0, 1 - 1e-12]}, "fairness"),
        (SECOND | {"verify_overhead_seconds": 1e10, "fairness": 30.0}, "fairness"),
    ],
)
def test_what_floating_point_cannot_hold_is_refused(fields: dict[str, Any], name: str) -> None:
    """Tests that rounds, weights and utilities out of range are refused by the field that is to
    blame.
    """
    with pytest.raises(
        InvalidInput, match=f"^{name}: round times, weights and utility must be within the range"
    ):
        problem(**fields)


def test_what_an_objective_is_held_against() -> None:
    """Tests that the terms of a utility that is 0 by cancellation give it a size, and else it is
    its own.
    """
    fair = FairGoodputProblem(
        acceptance_rates=np.array([0.5, 0.5]), budget_tokens=0, fairness=1.0, per="round"
    )
    evaluation = fair.evaluate(declared(fair, Schedule.of([1.0], [[0, 0]])))
    assert (evaluation.objective, evaluation.size, evaluation.terms) == (0.0, 0.0, {"utility": 0.0})
    for fairness in (0.0, 1.0, 2.0):
        found = problem(fairness=fairness).evaluate(plan())
        assert found.size == abs(found.objective) and found.terms == {"utility": found.objective}


@pytest.mark.nightly
def test_many_changes_are_judged_in_time() -> None:
    """Tests that the judge's work grows with the changes, not with clients times entries."""

    def judge(size: int) -> None:
        clients = np.arange(size)
        schedule = Schedule(
            share=np.full(size + 1, 1 / (size + 1)),
            starts=np.concatenate(([0], size + np.arange(size + 1))),
            clients=np.concatenate((clients, clients)),
            tokens=np.concatenate((np.zeros(size), np.ones(size))),
            full=np.arange(size + 1) == 0,
        )
        judged = FairGoodputProblem(acceptance_rates=np.full(size, 0.5), budget_tokens=size)
        goodput, tokens = judged.realised(schedule)
        assert judged.violations(declared(judged, schedule)) == []
        assert tokens == pytest.approx((size - clients) / (size + 1), rel=1e-9)
        assert goodput == pytest.approx(1 + 0.5 * tokens, rel=1e-12)

    assert (
        growth(lambda: judge(2_500), lambda: judge(50_000), tries=2) < 100
    )  # 400 where it was a product


@pytest.mark.parametrize("fairness", [0.0, 0.5, 1.0, 2.0, 40.0])
def test_the_common_rate(fairness: float) -> None:
    """Tests that equal rates are worth themselves whatever the weights, that others lie between,
    and that the gap of two utilities is the relative difference of the rates they are worth.
    """
    one = problem(fairness=fairness, weights=[3.0, 1.0, 0.5])
    for rate in (0.5, 2.0, 3.0):
        assert one.worth(one.utility(np.full(3, rate)), one.scale) == pytest.approx(rate, rel=1e-12)
    low = one.utility(np.full(3, 2.0))
    high = one.utility(np.full(3, 2.5))
    assert one.gap(low, high) == pytest.approx(0.25, rel=1e-11)
    assert one.gap(low, high) == FairGoodputProblem.distance(low, high, one.scale)
    assert 2.0 < one.worth(one.utility(np.array([2.0, 3.0, 4.0])), one.scale) < 4.0


def test_tokens_are_counted_exactly() -> None:
    """Tests that a token too many is seen where floating point no longer counts single ones."""
    most = 10**15
    rich = FairGoodputProblem(acceptance_rates=np.zeros(12), budget_tokens=most, per="round")
    full = [most // 12 + (client < most % 12) for client in range(12)]
    for more in (0, 1):
        schedule = Schedule.parse(
            [
                {"share": 0.5, "draft_tokens": full},
                {"share": 0.5, "changes": [[0, full[0] - 1], [1, full[1] + 1 + more]]},
            ],
            "schedule",
        )
        assert rich.violations(declared(rich, schedule)) == (
            [f"schedule[1]: the draft tokens sum to {most + 1}, but the budget is {most}"]
            if more
            else []
        )


def test_what_is_declared_is_held_against_what_cancels() -> None:
    """Tests that mean drafts may differ by rounding of the changes that add up to them, and no
    more.
    """
    rich = FairGoodputProblem(acceptance_rates=np.zeros(1), budget_tokens=10**6, per="round")
    schedule = Schedule.parse(
        [{"share": 1e-3, "draft_tokens": [10**6]}, {"share": 0.999, "changes": [[0, 0]]}], "s"
    )
    for off, sentences in ((1.9e-3, 0), (2.1e-3, 1)):  # 1e-9 of 10^6 (1 + 0.999)
        plan = FairGoodputPlan(
            goodput=np.ones(1), mean_draft_tokens=np.array([1000 + off]), schedule=schedule
        )
        assert len(rich.violations(plan)) == sentences


def test_no_rate_has_no_utility(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests that a client without a rate is refused, and that a utility of nothing is worth no
    number.
    """
    with pytest.raises(InvalidInput) as refusal:
        problem().evaluate(plan(schedule=[{"share": 0.0, "draft_tokens": [1, 0, 0]}]))
    assert str(refusal.value) == "schedule: the shares must give every client a positive rate"
    assert np.isnan(FairGoodputProblem.worth(0.0, (3.0, 0.5))) and np.isnan(
        FairGoodputProblem.worth(1.0, (3.0, 2.0))
    )
    monkeypatch.setattr(FairGoodputProblem, "utility", lambda self, goodput: 0.0)
    assert problem().evaluate(plan()).size == pytest.approx(
        np.log([1.5625, 1.984375]).sum()
    )  # logarithms that cancel
