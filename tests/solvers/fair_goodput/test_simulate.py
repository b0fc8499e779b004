"""Rounds under the online policies: the kernel against a slow replay, benchmarks, and how close
policies come.
"""

from __future__ import annotations

import itertools
import math
import tracemalloc
from typing import Any

import numpy as np
import pytest
from oracles import fair_goodput_online as naive_online
from oracles.fair_goodput_online import GradientClient, RobustClient
from oracles.random_numbers import key_of

from specopt import InvalidInput
from specopt.instances.fair_goodput.paper_5 import acceptance_rates
from specopt.models.acceptance_process import AcceptanceProcess
from specopt.models.fair_goodput.workload import GoodputWorkload
from specopt.online import GoodputScheduler
from specopt.solvers.fair_goodput.policies import Gradient, Robust
from specopt.solvers.fair_goodput.simulate import benchmark, simulate

TABLE_1 = ((4, 24), (4, 28), (8, 16), (8, 20))
WIDE = [0.3, 0.5, 0.7, 0.95]


# ---------------------------------------------------------------------------- the same decisions


@pytest.mark.parametrize(
    ("policy", "client"), [("gradient", GradientClient), ("robust", RobustClient)]
)
@pytest.mark.parametrize(("rates", "budget"), [(WIDE, 10), ([0.05, 0.4, 0.9], 4)])
def test_the_kernel_decides_as_described(
    policy: str, client: Any, rates: list[float], budget: int
) -> None:
    """Tests that every allocation of a run is that of a slow replay from the description of the
    policy.
    """
    run = simulate(
        GoodputWorkload(rates, budget), policy, rounds=250, replications=2, seed=3, record=True
    )
    for replication in range(2):
        slow = naive_online.allocations(client, rates, budget, 250, key_of(3), replication)
        assert run.allocations[replication].tolist() == slow


@pytest.mark.parametrize("policy", ["gradient", "robust"])
@pytest.mark.parametrize("every_draft", [True, False])
def test_the_scheduler_decides_as_the_kernel(policy: str, every_draft: bool) -> None:
    """Tests that the scheduler, fed with the luck of a simulated run, takes the same decisions
    round by round.
    """
    rates, rounds = [*WIDE, 0.02], 400
    run = simulate(
        GoodputWorkload(rates, 9),
        policy,
        rounds=rounds,
        replications=1,
        seed=5,
        record=True,
        every_draft=every_draft,
    )
    scheduler = GoodputScheduler(len(rates), 9, policy)
    for t in range(rounds):
        drafts = scheduler.allocate()
        assert drafts.tolist() == run.allocations[0, t].tolist()
        accepted, ratios = [], []
        for i, rate in enumerate(rates):
            fates = [
                naive_online.fate(key_of(5), 0, t * len(rates) + i, j, rate)
                for j in range(1, drafts[i] + 1)
            ]
            accepted.append(fates.index(False) if False in fates else len(fates))
            ratios.append(sum(fates) / len(fates) if fates else math.nan)
        scheduler.observe(accepted, acceptance_ratios=ratios if every_draft else None)


def test_sums_are_those_of_the_allocations() -> None:
    """Tests that the checkpoints hold the summed expected rates of the recorded allocations."""
    run = simulate(
        GoodputWorkload(WIDE, 10),
        "robust",
        rounds=30,
        replications=3,
        checkpoints=[10, 30],
        record=True,
    )
    for r in range(3):
        expected = np.array(
            [
                [naive_online.goodput(a, s) for a, s in zip(WIDE, S, strict=True)]
                for S in run.allocations[r]
            ]
        )
        assert run.expected[r, 0] == pytest.approx(expected[:10].sum(axis=0))
        assert run.expected[r, 1] == pytest.approx(expected.sum(axis=0))
        assert run.mean_rates(10, 30)[r] == pytest.approx(expected[10:].mean(axis=0))


def test_realised_goodput_agrees_with_its_expectation() -> None:
    """Tests that realised tokens are the expected ones within their standard error."""
    run = simulate(
        GoodputWorkload(WIDE, 10), "fixed", rounds=4000, replications=20, checkpoints=[4000]
    )
    realised = run.realised[:, -1] / 4000
    mean, error = realised.mean(axis=0), realised.std(axis=0) / math.sqrt(19)
    assert (np.abs(mean - run.mean_rates()[0]) < 4 * error).all()


def test_fixed_and_random() -> None:
    """Tests that Fixed-S gives floor(C / N) to all, and Random-S all of the budget, evenly in the
    mean.
    """
    fixed = simulate(GoodputWorkload(WIDE, 10), "fixed", rounds=5, replications=1, record=True)
    assert (fixed.allocations == 2).all()
    random = simulate(
        GoodputWorkload(WIDE, 10), "random", rounds=2000, replications=1, record=True
    ).allocations[0]
    assert (random.sum(axis=1) == 10).all()
    assert random.mean(axis=0) == pytest.approx(np.full(4, 2.5), abs=0.15)
    assert random.var(axis=0) == pytest.approx(np.full(4, 10 * 0.25 * 0.75), rel=0.1)
    capped = simulate(
        GoodputWorkload(WIDE, 10, max_draft_tokens=[1, 2, 3, 4]),
        "random",
        rounds=50,
        replications=1,
        record=True,
    )
    assert (capped.allocations[0].max(axis=0) <= [1, 2, 3, 4]).all()


# ---------------------------------------------------------------------------- benchmarks


@pytest.mark.parametrize("fairness", [0.0, 0.5, 1.0, 2.0])
def test_modes_of_a_fixed_process_are_the_fair_optimum(fairness: float) -> None:
    """Tests that the program over modes agrees with `dual` where two modes are the same."""
    fixed = simulate(
        GoodputWorkload(WIDE, 10, fairness=fairness), "fixed", rounds=1, replications=1
    )
    twice = AcceptanceProcess.switching([WIDE, WIDE], 10)
    found = benchmark(GoodputWorkload(twice, 10, fairness=fairness))
    assert found.slack <= 2e-4
    assert found.utility - found.slack - 1e-9 <= fixed.benchmark.utility <= found.utility + 1e-9


def test_modes_bound_every_mixture() -> None:
    """Tests that nobody who knows the modes can do better: all allocations of every mode, by a
    linear program.
    """
    from scipy.optimize import linprog

    regimes = [[0.3, 0.6], [0.9, 0.8]]
    process = AcceptanceProcess.switching(regimes, 5)
    optimum = benchmark(GoodputWorkload(process, 3))
    allocations = [S for S in itertools.product(range(4), repeat=2) if sum(S) <= 3]
    gradient = 1 / optimum.goodput
    total = 0.0
    for mode in itertools.product(range(2), repeat=2):
        values = [
            sum(
                g * naive_online.goodput(regimes[r][i], s)
                for i, (g, r, s) in enumerate(zip(gradient, mode, S, strict=True))
            )
            for S in allocations
        ]
        found = linprog(-np.array(values), A_eq=np.ones((1, len(values))), b_eq=[1.0])
        total -= 0.25 * found.fun
    slack = total - float(gradient @ optimum.goodput)
    assert slack == pytest.approx(optimum.slack, abs=1e-9)
    assert optimum.slack < 1e-3


@pytest.mark.parametrize(("clients", "budget"), [(2, 10**12), (100, 10**6)])
def test_benchmarks_of_large_budgets(clients: int, budget: int) -> None:
    """Tests that memory does not grow with the budget, which is enough for every token that adds
    anything.
    """
    high = np.full(clients, 0.8)
    process = AcceptanceProcess.drifting(np.zeros(clients), high, 4)
    tracemalloc.start()
    found = benchmark(GoodputWorkload(process, budget))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert found.goodput == pytest.approx((1 / (1 - process.rates[:, 0])).mean(axis=0))
    assert peak < 2**24


def test_processes() -> None:
    """Tests that shares of regimes and joint modes are right."""
    process = AcceptanceProcess(
        np.array([[[0.2, 0.3], [0.8, 0.9]]]), np.array([[0.9, 0.1], [0.3, 0.7]])
    )
    assert process.regime_shares == pytest.approx([0.75, 0.25])
    sticky = AcceptanceProcess(
        np.full((1, 2, 1), 0.5), np.array([[1.0 - 1e-15, 1e-15], [3e-15, 1.0 - 3e-15]])
    )
    assert sticky.regime_shares == pytest.approx([0.75, 0.25], rel=1e-15)
    apart = AcceptanceProcess(
        np.full((1, 3, 1), 0.5), np.array([[0.5, 0.5, 0.0], [0.5, 0.5, 0.0], [0.0, 0.0, 1.0]])
    )
    assert apart.regime_shares.tolist() == [0.25, 0.25, 0.5]
    rates, shares = process.modes()
    assert rates.tolist() == [[0.2, 0.3], [0.2, 0.9], [0.8, 0.3], [0.8, 0.9]]
    assert shares == pytest.approx([9 / 16, 3 / 16, 3 / 16, 1 / 16])
    drift = AcceptanceProcess.drifting([0.2, 0.5], [0.4, 0.9], 100)
    assert drift.modes()[1].sum() == pytest.approx(1.0)


def test_clients_switch_as_often_as_said() -> None:
    """Tests that the rates of a switching client follow its chain: mean rate, and how it varies
    over a run.
    """
    process = AcceptanceProcess.switching([[0.0], [0.9]], 20)
    run = simulate(
        GoodputWorkload(process, 1), "fixed", rounds=20_000, replications=40, checkpoints=[20_000]
    )
    rates = run.mean_rates()[:, 0]
    assert rates.mean() == pytest.approx(1.45, abs=0.01)
    # the mean of a two-state chain with correlation 1 - 2/20 per round
    variance = 0.45**2 / 20_000 * (1 + 0.9) / (1 - 0.9)
    assert rates.var(ddof=1) == pytest.approx(variance, rel=0.7)


# -------------------------------------------------------------------------- how close policies come


def test_robust_comes_close_soon() -> None:
    """Tests that the gap over the first 600 rounds is small, and that the paper's policy is
    behind.
    """
    for clients, budget, name in ((4, 24, "wide"), (8, 20, "mild")):
        rates = acceptance_rates(name, clients)
        robust, paper = (
            simulate(GoodputWorkload(rates, budget), policy, replications=20)
            for policy in ("robust", "gradient")
        )
        assert robust.gap() <= 0.008 and paper.gap() >= 0.025


@pytest.mark.nightly
def test_table_1() -> None:
    """Tests that the targets of both spans are met at the ends of Table I, with the feedback of Eq.
    3.

    The benchmark has all of it, and counts up to the first rejection.
    """
    for clients, budget in (TABLE_1[0], TABLE_1[-1]):
        for name in ("equal", "extreme"):
            rates = acceptance_rates(name, clients)
            robust = simulate(
                GoodputWorkload(rates, budget),
                rounds=20_000,
                checkpoints=[600, 5000, 20_000],
                replications=40,
                every_draft=True,
            )
            paper = simulate(
                GoodputWorkload(rates, budget),
                Gradient(smoothing=0.5, estimate_smoothing=0.1, initial_estimate=0.5),
                rounds=20_000,
                checkpoints=[5000, 20_000],
                replications=20,
                optimum=robust.benchmark,
            )
            assert robust.gap(0, 600) <= 0.012, (clients, budget, name)
            assert 0.0 <= robust.gap(5000, 20_000) <= 0.003, (clients, budget, name)
            assert paper.gap(5000, 20_000) >= 9 * robust.gap(5000, 20_000), (clients, budget, name)


@pytest.mark.parametrize(("clients", "budget"), TABLE_1)
def test_a_wronged_client_recovers(clients: int, budget: int) -> None:
    """Tests that a client with 0.9 first taken for 0.02 gets 90 % of its fair rate within 600
    rounds.
    """
    rates = np.r_[0.9, np.linspace(0.3, 0.95, clients - 1)]
    estimates = np.r_[0.02, np.full(clients - 1, 0.5)]
    run = simulate(
        GoodputWorkload(rates, budget), initial_estimates=estimates, checkpoints=[500, 600]
    )
    fair = run.benchmark.goodput[0]
    assert run.mean_rates(0, 600)[:, 0].mean() >= 0.9 * fair
    assert run.mean_rates(500, 600)[:, 0].min() >= 0.9 * fair


def test_the_paper_starves_a_wronged_client() -> None:
    """Tests that under Algorithm 1 as printed the same client stays without drafts for ever."""
    rates, estimates = np.r_[0.9, np.linspace(0.6, 0.9, 7)], np.r_[0.02, np.full(7, 0.5)]
    run = simulate(
        GoodputWorkload(rates, 16),
        "gradient",
        rounds=3000,
        replications=5,
        initial_estimates=estimates,
        record=True,
    )
    assert run.allocations[:, :, 0].max() == 0


def test_theorem_1() -> None:
    """Tests that the gap of Algorithm 1 vanishes with beta and eta where estimates are consistent,
    and only there.

    Without: a client whose first estimate is too low to ever be tried, or ratios of the drafts up
    to the first rejection, of which every round has one at most.
    """
    workload = GoodputWorkload(acceptance_rates("wide", 8), 20)
    steps, wrong = ((0.5, 0.1), (0.1, 0.03), (0.02, 0.01)), np.r_[np.full(7, 0.5), 0.02]

    def gaps(**options: Any) -> list[float]:
        runs = [
            simulate(
                workload,
                Gradient(smoothing=beta, estimate_smoothing=eta),
                rounds=12_000,
                replications=3,
                checkpoints=[4000, 12_000],
                **options,
            )
            for beta, eta in steps
        ]
        return [run.gap(4000, 12_000) for run in runs]

    far, near, there = gaps()
    assert far > 0.2
    assert 0.02 < near < 0.1
    assert 0.0 <= there < 0.003
    assert min(gaps(initial_estimates=wrong)) > 1.0
    assert min(gaps(every_draft=False)) > 0.015


@pytest.mark.parametrize("mean_rounds", [20, 100, 500])
def test_memory_follows_regimes(mean_rounds: float) -> None:
    """Tests that learned memories do as well as the best single one, and better than the paper's
    smoothing.
    """
    process = AcceptanceProcess.switching([np.full(4, 0.3), np.full(4, 0.9)], mean_rounds)
    workload = GoodputWorkload(process, 24)
    optimum = benchmark(workload)

    def gap(policy: Any) -> float:
        return simulate(
            workload,
            policy,
            rounds=8000,
            checkpoints=[1000, 8000],
            replications=8,
            optimum=optimum,
        ).gap(1000, 8000)

    learned = gap("robust")
    single = [gap(Robust(memories=(rounds,))) for rounds in (4, 16, 64, 256)]
    assert learned <= 1.1 * min(single) + 0.005
    assert gap("gradient") >= 1.3 * learned
    assert gap(Robust(memories=())) >= 2 * learned


def test_drift() -> None:
    """Tests that slow waves are followed closely."""
    process = AcceptanceProcess.drifting(np.full(4, 0.3), np.full(4, 0.9), 2000)
    run = simulate(
        GoodputWorkload(process, 24), rounds=8000, checkpoints=[2000, 8000], replications=8
    )
    assert 0.0 <= run.gap(2000, 8000) <= 0.04


@pytest.mark.parametrize("fairness", [0.0, 0.5, 2.0])
def test_other_fairness(fairness: float) -> None:
    """Tests that the long run is near the optimum for other utilities, weights and caps too."""
    workload = GoodputWorkload(
        WIDE, 10, fairness=fairness, weights=[1, 2, 1, 0.5], max_draft_tokens=[1, 4, 4, 3]
    )
    run = simulate(workload, rounds=6000, checkpoints=[2000, 6000], replications=8)
    assert -1e-9 <= run.gap(2000, 6000) <= 0.004 * max(1.0, abs(run.benchmark.utility))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"rounds": 0}, "rounds: expected an integer >= 1"),
        ({"replications": True}, "replications: expected an integer"),
        ({"seed": -1}, "seed: expected an integer >= 0"),
        (
            {"checkpoints": [3, 2, 10]},
            "checkpoints: expected increasing round numbers that end at 10",
        ),
        ({"policy": "best"}, "policy: expected one of robust, gradient, fixed, random"),
        ({"initial_estimates": [0.5]}, "initial_estimates: expected 4 entries, got 1"),
        ({"process": [0.5, 1.0]}, "rates: expected acceptance rates in [0, 1)"),
        ({"budget_tokens": -1}, "budget_tokens: expected"),
    ],
)
def test_bad_input(change: dict[str, Any], message: str) -> None:
    """Tests that what makes no sense is refused by name."""
    with pytest.raises(InvalidInput) as caught:
        options = {"process": WIDE, "budget_tokens": 10, "rounds": 10, **change}
        simulate(GoodputWorkload(options.pop("process"), options.pop("budget_tokens")), **options)
    assert message in str(caught.value)


def test_bad_processes() -> None:
    """Tests that processes that make no sense, and rounds without a checkpoint, are refused."""
    for make, message in (
        (
            lambda: simulate(GoodputWorkload(WIDE, 10), rounds=20, checkpoints=[10, 20]).gap(
                10, 15
            ),
            "expected one of the checkpoints, got 15",
        ),
        (lambda: AcceptanceProcess.fixed([]), "rates"),
        (lambda: AcceptanceProcess.switching([[0.5], [0.6]], 0.5), "mean_rounds"),
        (lambda: AcceptanceProcess.drifting([0.5], [0.6, 0.7], 5), "high: expected 1 entries"),
        (lambda: AcceptanceProcess.drifting([0.5], [0.6], 1), "period_rounds"),
        (lambda: AcceptanceProcess(np.array([[[0.5]]]), np.array([[0.5]])), "transition"),
        (lambda: AcceptanceProcess.switching([[0.5] * 20, [0.6] * 20], 5).modes(), "joint modes"),
    ):
        with pytest.raises(InvalidInput, match=message):
            make()
