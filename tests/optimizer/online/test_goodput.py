"""The scheduler as a server uses it: rounds, clients that come and go, corners, and its state."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest

from specopt import InvalidInput
from specopt.online import GoodputScheduler
from specopt.solvers.fair_goodput.kernels.columns import BY_PLACE, RATES
from specopt.solvers.fair_goodput.policies import Fixed, Gradient, Robust

POLICIES = ("robust", "gradient")


def play(
    scheduler: GoodputScheduler, rates: dict[Any, float], rounds: int, seed: int = 0
) -> dict[Any, float]:
    """Play rounds with random acceptances and return the mean drafts of each client."""
    draw = np.random.default_rng(seed)
    total = dict.fromkeys(scheduler.clients, 0.0)
    for _ in range(rounds):
        clients = scheduler.clients
        drafts = scheduler.allocate()
        accepted = []
        for client, count in zip(clients, drafts.tolist(), strict=True):
            total[client] += count / rounds
            accepted.append(
                min(int(draw.geometric(1.0 - rates[client])) - 1, count) if count else 0
            )
        scheduler.observe(accepted)
    return total


def test_a_round_of_nobody_is_over_for_who_has_joined() -> None:
    """Tests that a round given out to no clients can be reported after somebody has joined."""
    scheduler = GoodputScheduler(0, 9)
    scheduler.allocate()
    scheduler.join("a")
    scheduler.observe([])
    assert scheduler.allocate().tolist() == [9]


@pytest.mark.parametrize("policy", POLICIES)
def test_budget_and_caps(policy: str) -> None:
    """Tests that allocations keep the budget, of which nothing is wasted, and the caps."""
    scheduler = GoodputScheduler(["a", "b", "c"], 9, policy, max_draft_tokens=[0, 2, 20])
    for _ in range(30):
        drafts = scheduler.allocate()
        assert drafts.tolist() == [0, 2, 7]
        scheduler.observe(drafts)
    scheduler.budget_tokens = 1
    assert scheduler.allocate().sum() == 1


def test_robust_learns_the_rates() -> None:
    """Tests that estimates come near the true rates of clients that draft."""
    rates = {0: 0.3, 1: 0.6, 2: 0.9}
    scheduler = GoodputScheduler(3, 9)
    play(scheduler, rates, 3000)
    assert scheduler.estimates == pytest.approx([0.3, 0.6, 0.9], abs=0.03)


def test_goodput_where_acceptance_is_not_what_it_seems() -> None:
    """Tests that of clients half of whose rounds are hard the scheduler knows what they get, not
    what mu would say.
    """
    scheduler = GoodputScheduler(3, 9)
    draw = np.random.default_rng(0)
    got = np.zeros(3)
    for _ in range(2000):
        drafts = scheduler.allocate()
        rates = np.where(draw.random(3) < 0.5, 0.95, [0.05, 0.3, 0.6])
        accepted = np.minimum(draw.geometric(1.0 - rates) - 1, drafts)
        scheduler.observe(accepted)
        got += (accepted + 1.0) / 2000
    assert scheduler.goodput == pytest.approx(got, rel=0.04)


def test_weights_matter() -> None:
    """Tests that among equals the heavier client drafts more, and that weights alone matter, not
    their unit.
    """
    rates = {0: 0.8, 1: 0.8}
    drafts = play(GoodputScheduler(2, 8, weights=[1.0, 3.0]), rates, 500)
    assert drafts[1] > 1.5 * drafts[0]
    assert drafts == play(GoodputScheduler(2, 8, weights=[4.0, 12.0]), rates, 500)


def test_fairness_zero_is_the_sum() -> None:
    """Tests that with fairness 0 drafts go where they are worth most, whatever the others get."""
    drafts = play(GoodputScheduler(2, 6, fairness=0.0), {0: 0.2, 1: 0.95}, 1000)
    assert drafts[1] > 5.5


@pytest.mark.parametrize("rate", [0.0, 1.0])
@pytest.mark.parametrize("policy", POLICIES)
def test_estimates_at_the_ends(policy: str, rate: float) -> None:
    """Tests that clients who always or never succeed, and estimates of 0 and 1, make no trouble."""
    scheduler = GoodputScheduler(3, 6, policy, initial_estimates=[0.0, 1.0, 0.5])
    for _ in range(1000):
        drafts = scheduler.allocate()
        assert drafts.sum() <= 6
        scheduler.observe(drafts if rate else np.zeros(3, dtype=int))
    assert np.isfinite(scheduler.estimates).all()
    assert np.isfinite(scheduler.goodput).all()
    assert ((scheduler.estimates >= 0.0) & (scheduler.estimates <= 1.0)).all()


def test_idle_clients_are_probed() -> None:
    """Tests that a client that starves under Algorithm 1 gets its probes under the robust
    policy.
    """
    options = {"initial_estimates": [0.001, 0.9, 0.9]}
    for policy, least, most in (("gradient", 0, 0), (Robust(optimism=0.0, probe_after=40), 4, 60)):
        scheduler = GoodputScheduler(3, 4, policy, **options)  # type: ignore[arg-type]
        probes = 0
        for _ in range(200):
            drafts = scheduler.allocate()
            probes += int(drafts[0])
            scheduler.observe([0, *drafts[1:].tolist()])
        assert least <= probes <= most
    scheduler = GoodputScheduler(3, 4, Robust(optimism=0.0, probe_after=0), **options)  # type: ignore[arg-type]
    for _ in range(500):
        assert scheduler.allocate()[0] == 0
        scheduler.observe([0, 0, 0] if scheduler.estimates[1] > 0.5 else scheduler.allocate())


def test_eq_3_and_4() -> None:
    """Tests that a round of Algorithm 1 is as computed by hand."""
    scheduler = GoodputScheduler(2, 4, Gradient(smoothing=0.5, estimate_smoothing=0.1))
    assert scheduler.allocate().tolist() == [2, 2]
    scheduler.observe([2, 0], acceptance_ratios=[1.0, 0.25])
    assert scheduler.estimates == pytest.approx([0.55, 0.475])
    assert scheduler.goodput == pytest.approx([2.0, 1.0])
    assert scheduler.allocate().tolist() == [2, 2]  # 0.475, 0.55 / 2, 0.475^2, 0.55^2 / 2


def test_no_drafts_no_news() -> None:
    """Tests that Eq. 3, which is 0/0 without drafts, leaves the estimate alone, and that NaN ratios
    do no harm.
    """
    for policy in POLICIES:
        scheduler = GoodputScheduler(2, 4, policy, max_draft_tokens=[0, 4])
        scheduler.allocate()
        scheduler.observe([0, 3], acceptance_ratios=[math.nan, 0.8])
        assert scheduler.estimates[0] == 0.5
        assert np.isfinite(scheduler.goodput).all()


def test_counts_and_ratios_are_one_evidence() -> None:
    """Tests that a ratio of accepted to tested drafts says the same as the counts if all were
    accepted.
    """
    one, two = GoodputScheduler(2, 6), GoodputScheduler(2, 6)
    for scheduler in (one, two):
        drafts = scheduler.allocate()
    one.observe(drafts)
    two.observe(drafts, acceptance_ratios=[1.0, 1.0])
    assert (one.estimates == two.estimates).all()


def test_clients_join_and_leave() -> None:
    """Tests that clients may come and go at any moment, also while a round is under way."""
    scheduler = GoodputScheduler(["a", "b"], 6)
    first = scheduler.allocate()
    scheduler.join("c", weight=2.0, initial_estimate=0.7)
    scheduler.leave("a")
    assert scheduler.clients == ("b", "c")
    before = scheduler.estimates
    scheduler.observe(first)  # of the round with a and b
    assert scheduler.estimates[0] > before[0]
    assert scheduler.estimates[1] == before[1] == 0.7
    assert scheduler.allocate().sum() == 6
    scheduler.observe({"b": 1})
    assert scheduler.estimates[1] == 0.7
    scheduler.leave("b")
    scheduler.leave("c")
    assert scheduler.allocate().tolist() == []
    scheduler.observe([])
    scheduler.join("a")
    assert scheduler.estimates.tolist() == [0.5]  # what was known of a is forgotten


def test_stragglers_report_by_number() -> None:
    """Tests that clients of earlier rounds may report late and once each, and that it is worth what
    it was in time.
    """
    prompt = GoodputScheduler(["a", "b"], 6)
    late = GoodputScheduler(["a", "b"], 6)
    for scheduler in (prompt, late):
        assert scheduler.round_number == -1
        assert scheduler.allocate().tolist() == [3, 3]
    prompt.observe([1, 2])
    late.observe({"b": 2})
    late.allocate(["b"])
    late.observe({"b": 0})
    late.observe({"a": 1}, round=0)
    assert late.estimates[0] == prompt.estimates[0]
    assert late.goodput[0] == prompt.goodput[0]
    for again in (0, 1, 7):
        with pytest.raises(InvalidInput, match="round: expected a round with missing reports"):
            late.observe({"a": 1}, round=again)
    late.allocate()
    late.observe({"b": 0})
    with pytest.raises(InvalidInput, match="that have not reported yet, got 'b'"):
        late.observe({"b": 0})
    for _ in range(64):
        late.allocate()
    with pytest.raises(InvalidInput, match="round: expected a round"):
        late.observe({"a": 0}, round=2)


def test_only_those_who_are_ready() -> None:
    """Tests that the budget goes to the clients named, and that the others are neither fed nor
    taken to be silent.
    """
    scheduler = GoodputScheduler(["slow", "fast", "other"], 6)
    for _ in range(50):
        drafts = scheduler.allocate(["fast", "other"])
        assert drafts[0] == 0
        assert drafts.sum() == 6
        scheduler.observe({"fast": 1, "other": 0})
    assert scheduler.allocate()[0] > 1
    with pytest.raises(InvalidInput, match="clients: expected one or more of the clients, got 'x'"):
        scheduler.allocate(["x"])


def test_silent_clients_cost_little() -> None:
    """Tests that a client that stops reporting gets single drafts, ever more rarely, until it is
    back.
    """
    scheduler = GoodputScheduler(3, 9)
    given = []
    for _ in range(300):
        drafts = scheduler.allocate()
        assert drafts.sum() == 9
        given.append(int(drafts[2]))
        scheduler.observe({0: min(2, int(drafts[0])), 1: min(2, int(drafts[1]))})
    assert min(given[:8]) > 1
    assert [turn for turn, count in enumerate(given) if turn > 7 and count] == [
        8,
        16,
        32,
        64,
        128,
        192,
        256,
    ]
    assert max(given[8:]) == 1
    scheduler.allocate()
    scheduler.observe({2: 0})
    assert scheduler.allocate()[2] > 1


def test_fairness_begins_anew_when_clients_come_or_go() -> None:
    """Tests that those who had more before a crowd came get their share of today at once, and so do
    the newcomers.
    """
    scheduler = GoodputScheduler(["old"], 12)
    rates: dict[Any, float] = {"old": 0.8, **dict.fromkeys(range(5), 0.8)}
    play(scheduler, rates, 1000)
    for key in range(5):
        scheduler.join(key)
    drafts = play(scheduler, rates, 100)
    assert drafts["old"] == pytest.approx(2.0, abs=0.25)
    for key in range(5):
        scheduler.leave(key)
    assert scheduler.allocate().tolist() == [12]


def test_a_newcomer_gets_its_share() -> None:
    """Tests that a client that joins late is not made to wait, nor given all: equals become equal
    again.
    """
    rates = {0: 0.7, 1: 0.7, "new": 0.7}
    scheduler = GoodputScheduler(2, 9)
    play(scheduler, rates, 500)
    scheduler.join("new")
    drafts = play(scheduler, rates, 500)
    assert drafts["new"] == pytest.approx(3.0, abs=0.3)


@pytest.mark.parametrize("policy", [Robust(memories=()), Gradient(smoothing=0.5)])
def test_state_resumes(policy: Any) -> None:
    """Tests that a scheduler restored from JSON in a round goes on exactly as the original, with
    the options of its policy.
    """
    scheduler = GoodputScheduler(["a", 1], 9, policy)
    scheduler.allocate()
    twin = GoodputScheduler.from_state(json.loads(json.dumps(scheduler.state())))
    for one in (scheduler, twin):
        one.observe([0, 2])
    rates = {"a": 0.2, 1: 0.6}
    assert play(twin, rates, 20) == play(scheduler, rates, 20)
    assert twin.state() == scheduler.state()


def test_warm_up_changes_nothing() -> None:
    """Tests that warming up loads the kernels and leaves the scheduler as it was."""
    scheduler = GoodputScheduler(3, 6)
    before = scheduler.state()
    scheduler.warm_up()
    assert scheduler.state() == before
    GoodputScheduler(0, 6).warm_up()


def test_allocations_are_the_callers() -> None:
    """Tests that what the caller does to an allocation does not reach the scheduler."""
    scheduler = GoodputScheduler(2, 4)
    scheduler.allocate()[:] = 100
    scheduler.observe([2, 2])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"accepted": [1, 2, 3]}, "accepted: expected 2 entries"),
        ({"accepted": [1.0, 2.0]}, "accepted: expected integers"),
        ({"accepted": [3, 0]}, "accepted[0]: expected 0 to 2, the number of draft tokens, got 3"),
        ({"accepted": [0, -1]}, "accepted[1]: expected 0 to 2"),
        ({"accepted": [1, 0], "tested": [2, 2]}, "tested[1]: expected 0 to 1"),
        ({"accepted": [1, 0], "tested": [0, 0]}, "tested[0]: expected 1 to 2"),
        (
            {"accepted": [1, 0], "acceptance_ratios": [0.5, 1.5]},
            "acceptance_ratios[1]: expected a ratio from 0 to 1",
        ),
        (
            {"accepted": [1, 0], "acceptance_ratios": [math.nan, 0.5]},
            "acceptance_ratios[0]: expected a ratio",
        ),
        (
            {"accepted": {7: 0}},
            "accepted: expected clients in the round that have not reported yet, got 7",
        ),
        (
            {"accepted": {0: 0}, "tested": [0, 0]},
            "tested: expected the same clients as in `accepted`",
        ),
        (
            {"accepted": {0: 0}, "tested": {1: 0}},
            "tested: expected the same clients as in `accepted`",
        ),
    ],
)
def test_impossible_observations(arguments: dict[str, Any], message: str) -> None:
    """Tests that observations that cannot be are refused by name, and change nothing."""
    scheduler = GoodputScheduler(2, 4)
    scheduler.allocate()
    before = scheduler.state()
    with pytest.raises(InvalidInput) as caught:
        scheduler.observe(**arguments)
    assert message in str(caught.value)
    assert scheduler.state() == before


def test_fewer_drafts_than_allowed() -> None:
    """Tests that a client may draft less than it was given: only tested drafts are evidence."""
    scheduler = GoodputScheduler(2, 8, "gradient")
    scheduler.allocate()
    scheduler.observe([2, 2], tested=[2, 3])
    assert scheduler.estimates == pytest.approx([0.55, 0.9 * 0.5 + 0.1 * 2 / 3])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"clients": -1}, "clients: expected an integer >= 0"),
        ({"clients": True}, "clients: expected an integer"),
        ({"clients": ["a", "a"]}, "client: the client 'a' already exists"),
        ({"clients": [1.5]}, "client: expected a string or an integer"),
        ({"budget_tokens": 2.5}, "budget_tokens: expected an integer"),
        ({"policy": "best"}, "policy: expected one of robust, gradient"),
        (
            {"policy": Fixed()},
            "policy: expected one of robust, gradient, Robust, Gradient, got Fixed",
        ),
        ({"fairness": -1.0}, "fairness: expected a number in [0, 100]"),
        ({"fairness": math.inf}, "fairness: expected a number in [0, 100]"),
        ({"weights": [1.0]}, "weights: expected 2 entries"),
        ({"weights": [1.0, 0.0]}, "weight: expected a finite number > 0"),
        ({"max_draft_tokens": [1, -1]}, "max_draft_tokens: expected an integer >= 0"),
        ({"initial_estimates": [0.5, 1.5]}, "initial_estimate: expected a number in [0, 1]"),
        ({"per": "minute"}, "per: expected one of"),
        ({"min_goodput": [1.0]}, "min_goodput: expected 2 entries"),
        ({"network_seconds": [0.1, -0.1]}, "network_seconds: expected a finite number >= 0"),
        (
            {"verify_overhead_seconds": -1.0},
            "verify_overhead_seconds: expected a finite number >= 0",
        ),
    ],
)
def test_bad_input(arguments: dict[str, Any], message: str) -> None:
    """Tests that what makes no sense is refused by name."""
    with pytest.raises(InvalidInput) as caught:
        GoodputScheduler(**{"clients": 2, "budget_tokens": 4, **arguments})
    assert message in str(caught.value)


def test_bad_calls() -> None:
    """Tests that observing nothing, removing nobody and restoring nonsense are refused."""
    scheduler = GoodputScheduler(2, 4)
    with pytest.raises(InvalidInput, match="no round is open; call `allocate"):
        scheduler.observe([0, 0])
    with pytest.raises(InvalidInput, match="expected one of the clients, got 'x'"):
        scheduler.leave("x")


def test_bad_policies() -> None:
    """Tests that options outside their domains are refused."""
    for make in (
        lambda: Gradient(smoothing=0.0),
        lambda: Gradient(estimate_smoothing=1.0),
        lambda: Gradient(initial_goodput=0.0),
        lambda: Robust(memories=(16, 4)),
        lambda: Robust(memories=(0,)),
        lambda: Robust(optimism=-1.0),
        lambda: Robust(reluctance=1.0),
        lambda: Robust(probe_after=-1),
    ):
        with pytest.raises(InvalidInput):
            make()


def test_rounds_that_are_easy_or_hard() -> None:
    """Tests that where half of the rounds are hard, drafts are valued by place, and that steady
    clients stay as is.
    """
    draw, hard = np.random.default_rng(3), (0.05, 0.2)
    scheduler = GoodputScheduler(3, 9)
    for _ in range(1500):
        drafts = scheduler.allocate()
        rates = [0.95 if draw.random() < 0.5 else one for one in hard] + [0.7]
        scheduler.observe(np.minimum(draw.geometric(1.0 - np.array(rates)) - 1, drafts))
    facts = scheduler._facts
    for place in range(2):
        chances = [
            (0.95 ** (place + 1) + one ** (place + 1)) / (0.95**place + one**place) for one in hard
        ]
        assert facts[:2, RATES + place] == pytest.approx(chances, abs=0.06)
    assert facts[2, BY_PLACE] < 0.1 < 0.9 < facts[:2, BY_PLACE].min()
    assert facts[2, RATES : RATES + 3] == pytest.approx(0.7, abs=0.03)
