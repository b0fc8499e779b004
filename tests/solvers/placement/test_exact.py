"""Optima of placement against an enumeration that shares nothing with specopt."""

from __future__ import annotations

import math
from dataclasses import replace
from types import SimpleNamespace
from typing import Any
from unittest import mock

import numpy as np
import pytest
from helpers.untyped import generate, solve
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from oracles import placement as oracle
from small_instances.placement import (
    INSTANCES,
    client_class,
    one_of_each,
    passes,
    problem_of,
    verifier,
)

from specopt import PlacementPlan, PlacementProblem, Status, Termination, Unsupported
from specopt.kinds.placement import strategies as strategies
from specopt.solvers.budget import Budget
from specopt.solvers.placement import refined
from specopt.solvers.placement.choice import counted
from specopt.solvers.placement.kernels import listing
from specopt.solvers.placement.listing import SECONDS_PER_BOX
from specopt.solvers.placement.listing import every as every_pattern
from specopt.solvers.placement.patterns import (
    Pattern,
    all_patterns,
    count_exact,
    plan_of,
    sign,
    valued,
)
from specopt.solvers.placement.prepare import OBJECTIVES, Prepared, prepare
from specopt.solvers.placement.program import Program
from specopt.solvers.placement.relaxation import SECONDS_PER_OPTION, Relaxation

EXAMPLES = 60
FEW: dict[str, Any] = {"verifiers": 2, "drafters": 2, "units": 6, "max_draft": 4}
METHODS = ("refined", "brute-force", "none", "all-beside", "all-device", "greedy")


def check(problem: PlacementProblem, result: Any) -> Any:
    """Check that a plan is no better than the optimum by enumeration, and a bound no worse; return
    the optimum.
    """
    found = oracle.optimum(problem.to_dict())
    if found is None:
        assert result.plan is None
        return None
    best, sense = found[0], 1 if problem.sense == "maximize" else -1
    tolerance = 1e-9 * max(1.0, abs(best))
    assert result.objective is None or sense * (result.objective - best) <= tolerance
    assert result.bound is None or sense * (result.bound - best) >= -tolerance
    assert result.status is not Status.INFEASIBLE
    if result.status is Status.OPTIMAL:
        assert result.objective == pytest.approx(best, rel=1e-9, abs=1e-9)
    return best


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(problem=strategies.problems(), method=st.sampled_from(METHODS))
def test_no_method_is_wrong(problem: PlacementProblem, method: str) -> None:
    """Tests that what is called optimal is, that what is called infeasible is, that bounds hold and
    that no plan is too good.

    Exact methods have a plan where there is one.
    """
    try:
        # a rare enumeration takes minutes
        result = solve(problem, method, time_limit=20.0 if method == "brute-force" else 60.0)
    except Unsupported:
        return
    best = check(problem, result)
    if method == "brute-force" and result.termination is not Termination.TIME_LIMIT:
        assert result.status is (Status.INFEASIBLE if best is None else Status.OPTIMAL)
    if method == "refined":
        assert (result.plan is None) == (best is None)


@pytest.mark.nightly
@pytest.mark.slow
@pytest.mark.parametrize("least", ["EXACT_CLIENTS", "FEW_PATTERNS", "MANY_PATTERNS"])
@settings(max_examples=EXAMPLES // 3, deadline=None)
@given(problem=st.sampled_from(OBJECTIVES).flatmap(strategies.problems))
def test_bounds_hold_where_patterns_are_priced(least: str, problem: PlacementProblem) -> None:
    """Tests that tiny problems have no plan beyond the bounds of what is for large ones, and none
    that is too good.
    """
    few = -1 if least == "MANY_PATTERNS" else refined.FEW_PATTERNS
    with mock.patch.object(refined, "FEW_PATTERNS", few), mock.patch.object(refined, least, -1):
        result = solve(problem, "refined")
    check(problem, result)


@pytest.mark.nightly
def test_shares_of_unequal_classes_are_bounded() -> None:
    """Tests that a bound on the share of 1000 clients is not that of 3 others: a plan carries 38 %,
    1 of 3 are 33 %.
    """
    data = generate("placement/capacity", number_of_clients=100).to_dict()
    for one, clients in zip(data["classes"], (1000, 3), strict=True):
        one["clients"] = clients
    result = solve(PlacementProblem.from_dict(data), "refined", time_limit=60.0, gap=0.8)
    assert 1 / 3 < 0.36 < result.objective <= result.bound


def test_twenty_clients_are_proven() -> None:
    """Tests that twenty clients of one class are placed with a proof, on one unit and on two."""
    for units in (1, 2):
        result = solve(generate("placement/one-class", number_of_clients=20, units=units))
        assert result.status is Status.OPTIMAL


@pytest.mark.parametrize("watts", [(9.0, 5.0), (5.0, 9.0)])
def test_equal_prices_are_decided_by_watts_and_balance(watts: tuple[float, float]) -> None:
    """Tests that the cheapest plan with the least power is found in either order of two verifiers,
    and that a plan replaces another of the same price only if it needs less power or its units are
    better balanced.
    """
    verifiers = [
        verifier(name, units=2, busy_watts=power)
        for name, power in zip(("first", "second"), watts, strict=True)
    ]
    chat = client_class(acceptance={}, device_seconds_per_token=None, round_trip_seconds=None)
    problem = problem_of("cost", verifiers=verifiers, drafters=[], classes=[chat])
    assert solve(problem).terms["watts"] == 5.0

    def plan(name: str, *clients: int) -> PlacementPlan:
        groups = [
            {
                "verifier": name,
                "units": 1,
                "clients": [{"class": "chat", "place": "none", "per_unit": each}],
            }
            for each in clients
        ]
        return PlacementPlan.from_dict({"groups": groups})

    chat["clients"] = 4
    budget = Budget(problem_of("cost", verifiers=verifiers, drafters=[], classes=[chat]))
    even, uneven = plan("second", 2, 2), plan("second", 1, 3)
    for offered, kept in ((uneven, uneven), (even, even), (uneven, even)):
        budget.offer(offered)
        assert budget.incumbent is kept
    budget.offer(plan("first", 2, 2))
    assert (budget.incumbent is even) == (watts == (9.0, 5.0))


def test_units_that_are_always_busy_are_whole() -> None:
    """Tests that the watts of one unit that is busy are proven the least: half of it busy is no
    plan.
    """
    result = solve(generate("placement/edge-cloud", number_of_clients=20, objective="energy"))
    assert (result.status, result.objective) == (Status.OPTIMAL, pytest.approx(650.0))


def test_branches_that_no_known_pattern_fits() -> None:
    """Tests that 30 clients on so few units that no pattern found so far fits a branch are placed
    with a proof.
    """
    problem = one_of_each(
        "cost",
        4,
        verifier={
            "units": 3,
            "memory_bytes": 8e10,
            "weights_bytes": 2e8,
            "kv_bytes_per_token": 12288,
            "passes": passes(0.024, 0.00064, 0.0018, 7.7e-6),
            "price_per_second": 1.0,
        },
        drafter={
            "weights_bytes": 3e7,
            "kv_bytes_per_token": 6912,
            "beside": {"v": passes(0.0037, 0.0006, 0.0, 6e-7)},
        },
        classes=[
            {
                "clients": 30,
                "context_tokens": 128,
                "max_context_tokens": 256,
                "min_tokens_per_second": 10.0,
                "acceptance": {"d": 0.8},
                "round_trip_seconds": {"v": 0.03},
                "device_seconds_per_token": {"d": 0.00413162},
            }
        ],
    )
    result = solve(problem)
    assert (result.status, result.objective) == (Status.OPTIMAL, 2.0)


@pytest.mark.parametrize("objective", ["goodput", "fair", "energy"])
@settings(max_examples=EXAMPLES, deadline=None)
@given(data=st.data())
def test_patterns_are_worth_what_the_judge_says(objective: str, data: st.DataObject) -> None:
    """Tests that a unit's value is the objective where its clients are all that there are."""
    problem = replace(data.draw(strategies.problems(objective)), overlap=True)
    prepared = prepare(problem, exact=True)
    assume(count_exact(problem, 10_000) < math.inf)
    every = valued(prepared, [one for one in all_patterns(prepared) if not one.drafted(prepared)])
    for one in every[:: len(every) // 20 + 1]:
        served = zip(problem.classes, one.served(prepared), strict=True)
        alone = replace(
            problem, classes=tuple(replace(of, clients=number) for of, number in served if number)
        )
        found = alone.evaluate(plan_of(prepared, {one: 1})).objective
        assert one.value == pytest.approx(sign(problem) * found, rel=1e-9, abs=1e-12)


@pytest.mark.slow
@settings(max_examples=EXAMPLES // 2, deadline=None)
@given(
    problem=st.sampled_from(["goodput", "energy", "capacity"]).flatmap(strategies.problems),
    narrow=st.sampled_from([np.inf, 1.2, 1.05]),
    prices=st.lists(st.floats(-2.0, 2.0), min_size=5, max_size=5),
    share=st.floats(0.0, 1.0),
)
def test_every_pattern_within_reach_is_listed(
    problem: PlacementProblem, narrow: float, prices: list[float], share: float
) -> None:
    """Tests that of the whole patterns that lose no more than a budget at any prices the best are
    listed.
    """
    prepared = prepare(problem, exact=True)
    every = valued(prepared, list(all_patterns(prepared)))
    assume(every)
    scale = max(abs(one.value) for one in every) or 1.0
    relaxation, units = Relaxation(prepared, narrow=narrow), 2 * (1 + len(problem.verifiers))
    of_classes = scale * np.array(prices[: len(problem.classes)])
    of_units = np.zeros(units)
    of_units[:2] = scale * np.array(prices[3:])
    duals = of_classes, of_units, np.zeros(len(prepared.drafts))
    asked: list[int] = []
    lost = (share + 1e-9) * scale
    relaxation.split_near(duals, lost, lambda: asked.append(1))
    listed = relaxation.near(duals, lost)
    within = [
        one
        for one in every
        if one.value - of_classes @ one.served(prepared)
        >= of_units[counted(problem, prepared.sides[one.side].verifier)].sum() - share * scale
    ]
    assume(listed is not None)
    assert listed is not None
    expected, found = keyed(prepared, within), keyed(prepared, listed)
    assert all(found[key].value >= one.value for key, one in expected.items())
    assert {one.entries for one in listed} <= {one.entries for one in every}
    assert len(asked) == len(relaxation.covers), "every side asks for the time"


def test_boxes_near_the_prices_are_charged_and_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests that splitting boxes near the prices and listing their patterns spend work for every
    box, and that no boxes are added once there are as many as allowed.
    """
    monkeypatch.setattr("specopt.solvers.placement.relaxation.SPARE", 64)
    problem = generate("placement/many-classes", number_of_clients=6, classes=3, seed=1, **FEW)
    prepared, spent = prepare(problem, exact=True), list[float]()
    relaxation = Relaxation(prepared, narrow=1.003)
    duals = relaxation.solve(lambda: None, 1e-3)
    monkeypatch.setattr(prepared.budget, "spend", spent.append)
    sizes = []
    for most in (2**21, 1):
        monkeypatch.setattr("specopt.solvers.placement.relaxation.MAX_BOXES", most)
        for _ in range(5):
            relaxation.split_near(duals, relaxation.last, lambda: None)
            sizes.append(sum(len(boxes) for boxes, *_ in relaxation.leaves.values()))
    assert sizes[0] < sizes[4] == sizes[9]
    assert sum(spent) > 10 * SECONDS_PER_OPTION * sizes[0]
    spent.clear()
    assert relaxation.near(duals, 0.01 * relaxation.last) is not None
    assert len(spent) > 10 * len(relaxation.leaves) and min(spent) >= SECONDS_PER_BOX


def test_boxes_without_clients_are_not_split() -> None:
    """Tests that a box in which no client is worth its price is not split, although a unit without
    clients is worth its own price there.
    """
    problem = generate("placement/many-classes", number_of_clients=6, classes=3, seed=1, **FEW)
    relaxation = Relaxation(prepare(problem, exact=True), narrow=1.003)
    duals = relaxation.solve(lambda: None, 1e-3)
    assert duals[1].min() == 0.0, "units are left over"
    relaxation.split_near(duals, 1e-3 * relaxation.last, lambda: None)
    assert 0 < sum((bounds > -np.inf).sum() for _, bounds, *_ in relaxation.leaves.values()) < 1000


def test_listed_patterns_may_have_more_clients_than_exist() -> None:
    """Tests that patterns with several clients are listed where a class has only one."""
    data = INSTANCES["capacity"].to_dict()
    data["classes"][0] |= {"clients": 1}
    relaxation = Relaxation(prepare(PlacementProblem.from_dict(data), exact=True), narrow=np.inf)
    duals = np.array([-1.0]), np.zeros(4), np.zeros(0)
    relaxation.split_near(duals, 0.0, lambda: None)
    listed = relaxation.near(duals, 0.0)
    assert listed is not None
    assert max(sum(one.served(relaxation.prepared)) for one in listed) > 1


@pytest.mark.parametrize(("limit", "priced"), [(0.5, False), (0.05, True)])
def test_a_kernel_lists_ten_times_as_many_patterns(
    limit: float, priced: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tests that all patterns are listed up to ten times the limit, above which they are priced."""
    problem: Any = INSTANCES["goodput"]
    monkeypatch.setattr(refined, "FEW_PATTERNS", int(limit * count_exact(problem, 10_000)))
    result = solve(problem, "refined")
    assert result.status is Status.OPTIMAL and ("rounds" in result.stats) == priced


def test_patterns_are_listed_without_a_kernel_that_is_not_compiled(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Tests that patterns above the limit are listed by the kernel only if it is compiled, and that
    the plan does not depend on this.
    """
    problem: Any = INSTANCES["goodput"]
    monkeypatch.setattr(refined, "FEW_PATTERNS", int(0.5 * count_exact(problem, 10_000)))
    listing.near.prepare()
    by_kernel = solve(problem, "refined")
    assert "rounds" not in by_kernel.stats
    monkeypatch.setattr(listing, "near", SimpleNamespace(is_ready=False))
    result = solve(problem, "refined")
    assert result.plan.to_dict() == by_kernel.plan.to_dict()
    assert result.stats["patterns"] == by_kernel.stats["patterns"]


@given(
    clients=st.lists(st.integers(1, 40), min_size=1, max_size=4),
    prices=st.lists(st.floats(0.01, 1.0), min_size=4, max_size=4),
    value=st.floats(0.0, 50.0),
)
def test_integer_numbers_of_clients_bound_the_share(
    clients: list[int], prices: list[float], value: float
) -> None:
    """Tests that the bound on the share is the largest share whose clients, rounded up, are worth
    no more than the value of all units.
    """
    relaxation: Any = SimpleNamespace(prepared=SimpleNamespace(clients=clients))
    of_classes = np.array(prices[: len(clients)])
    found = Relaxation._share(relaxation, value, -of_classes)
    shares = {k / count for count in clients for k in range(int(50.0 / min(prices)) + 2)}
    able = [
        share
        for share in shares
        if sum(
            price * math.ceil(share * count - 1e-9)
            for price, count in zip(prices, clients, strict=False)
        )
        <= value
    ]
    assert found == pytest.approx(max(able), rel=1e-9, abs=1e-12)


def test_classes_without_a_price_do_not_bound_the_share() -> None:
    """Tests that the share is not lowered client by client of a large class without a price."""
    relaxation: Any = SimpleNamespace(prepared=SimpleNamespace(clients=[1, 10**6]))
    assert Relaxation._share(relaxation, 1.99, np.array([-1.0, 0.0])) == 1.0


@pytest.mark.slow
def test_capacity_is_proven_where_many_clients_fit() -> None:
    """Tests that units are packed with integer numbers of clients, up to the bound that allows for
    them. Fractions of a client would carry a larger share.
    """
    own = FEW | {"number_of_clients": 8, "objective": "capacity", "least_rate": 10.0}
    problem = generate("placement/many-classes", classes=3, **own)
    result = solve(problem, "refined")
    assert result.status is Status.OPTIMAL and result.objective == pytest.approx(1805 / 3)
    edge = solve(generate("placement/edge-cloud", number_of_clients=20, objective="capacity"))
    assert edge.status is Status.OPTIMAL and edge.objective == pytest.approx(39.8)


@pytest.mark.slow
@settings(max_examples=EXAMPLES // 2, deadline=None)
@given(
    problem=st.sampled_from(["goodput", "energy", "cost"]).flatmap(strategies.problems),
    seed=st.integers(0, 1000),
)
def test_bounds_of_boxes_are_kept_at_other_prices(problem: PlacementProblem, seed: int) -> None:
    """Tests that bounds that are kept from other prices and wider boxes hold for every pattern."""
    prepared, random = prepare(problem, exact=True), np.random.default_rng(seed)
    every = valued(prepared, list(all_patterns(prepared)))
    assume(every)
    scale, relaxation = max(abs(one.value) for one in every) or 1.0, Relaxation(prepared)
    of_units = np.zeros(2 * (1 + len(problem.verifiers)))
    of_drafts = np.zeros(len(prepared.drafts))
    for change in (2.0, 1.0, 0.1, 0.01, 1.0):
        relaxation.narrow_to(1.0 + (relaxation.narrow - 1.0) * random.uniform(0.5, 1.0))
        of_classes = scale * change * random.normal(size=len(problem.classes))
        of_units[-1] = -scale * change * random.uniform()  # a reward for units that are always busy
        for cover in relaxation.covers:
            duals = of_classes, of_units.copy(), of_drafts
            top = relaxation._search(cover, duals, random.uniform(-scale, 0.0))[0]
            nets = (
                one.value - of_classes @ one.served(prepared)
                for one in every
                if one.side == cover.side
            )
            assert top >= max(nets, default=-np.inf) - 1e-9 * scale


def test_bounds_are_computed_only_of_boxes_that_may_be_best(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Tests that pricing again at the same prices takes less than a third of the work."""
    prepared = prepare(generate("placement/one-class", number_of_clients=400, units=4))
    relaxation, spent = Relaxation(prepared, narrow=1.01), list[float]()
    duals = relaxation.solve(lambda: None, 1e-3)
    relaxation = Relaxation(prepared, narrow=1.01)
    monkeypatch.setattr(prepared.budget, "spend", spent.append)
    for _ in range(2):
        spent.append(0.0)
        first = sum(spent)
        relaxation._price(lambda: None, duals)
    assert 0.0 < sum(spent) - first < first / 3


def test_patterns_of_many_classes_have_room() -> None:
    """Tests that patterns are listed where a row per class makes more rows than any other problem
    here has.
    """
    data = generate("placement/one-class").to_dict()
    data["classes"] = [data["classes"][0] | {"name": f"class {k}", "clients": 1} for k in range(70)]
    relaxation = Relaxation(prepare(PlacementProblem.from_dict(data), exact=True), narrow=np.inf)
    assert relaxation.classes == 70
    duals = np.zeros(70), np.array([1e9, 0.0, 0.0, 0.0]), np.zeros(0)
    relaxation.split_near(duals, 0.0, lambda: None)
    assert relaxation.near(duals, 0.0) == []


def test_a_program_that_fails_proves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests that an integer program that HiGHS calls infeasible, although using nothing is a
    solution, bounds no plan.
    """
    honest = Program.solve

    def failing(self: Program, *arguments: Any, **keywords: Any) -> Any:
        found = honest(self, *arguments, **keywords)
        return replace(found, bound=-math.inf, amounts=None) if any(self.whole) else found

    optimum = solve(INSTANCES["capacity"], "brute-force").objective
    monkeypatch.setattr(Program, "solve", failing)
    monkeypatch.setattr(refined, "first_plans", lambda prepared: [{}])  # using nothing
    result = solve(INSTANCES["capacity"], "refined")
    assert result.bound >= optimum


@pytest.mark.slow
@settings(max_examples=EXAMPLES, deadline=None)
@given(problem=strategies.problems())
def test_kernels_list_what_is_listed_one_by_one(problem: PlacementProblem) -> None:
    """Tests that the best patterns with the same clients and draft units are those of a plain
    enumeration, and that a pattern too many ends the list.
    """
    prepared = prepare(problem, exact=True)
    plain = list(all_patterns(prepared))
    expected = {key: one.value for key, one in keyed(prepared, valued(prepared, plain)).items()}
    listed = every_pattern(prepared, len(plain))
    assert listed is not None and len(listed) == len(expected)
    assert {key: one.value for key, one in keyed(prepared, listed).items()} == expected
    assert not expected or every_pattern(prepared, len(expected) - 1) is None


def keyed(prepared: Prepared, patterns: list[Pattern]) -> dict[object, Pattern]:
    """Return the most valuable pattern by verifier, clients and draft units."""
    found: dict[object, Pattern] = {}
    for one in sorted(patterns, key=lambda one: one.value):
        ways = prepared.sides[one.side].ways
        pooled: dict[int, list[tuple[int, int, int]]] = {}
        for option, count in one.entries:
            if ways[option].draft >= 0:
                context = prepared.problem.classes[ways[option].cls].context_tokens
                pooled.setdefault(ways[option].draft, []).append(
                    (count, context, ways[option].length)
                )
        used = []
        for draft, of in sorted(pooled.items()):
            counts, contexts, lengths = zip(*of, strict=True)
            wanted = prepared.drafts[draft]
            met = max(contexts) == wanted.context, wanted.length in (None, max(lengths))
            used.append((draft, sum(counts), *met))
        key = prepared.sides[one.side].verifier, tuple(one.served(prepared)), tuple(used)
        found[key] = one
    return found
