"""Checks of the theorems of five papers on instances, and counterexamples.

Instances do not prove a theorem; "held on n instances" reports the number of attempts to refute it.
Tests run every check. A counterexample consists of numbers that anyone can compute again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache

import numpy as np

from specopt.api.solve import solve
from specopt.models.drafting import BinaryPredictor, first_flag_round
from specopt.models.fair_goodput.problem import FairGoodputPlan, FairGoodputProblem
from specopt.models.fair_goodput.workload import GoodputWorkload
from specopt.models.fields import Floats, Ints
from specopt.models.uplink import spectral_efficiency, upload_seconds
from specopt.solvers.draft_allocation import fast
from specopt.solvers.fair_goodput.policies import Gradient
from specopt.solvers.fair_goodput.simulate import simulate


@dataclass(frozen=True, kw_only=True)
class Check:
    """Result of a check.

    Parameters
    ----------
    assumptions
        Assumptions of the check.
    instances
        Number of instances on which the statement held.
    counterexample
        Instance on which it does not hold; empty if none was found.
    """

    assumptions: str
    instances: int = 0
    counterexample: str = ""

    @property
    def verdict(self) -> str:
        """Verdict in words."""
        return (
            f"refuted: {self.counterexample}"
            if self.counterexample
            else f"held on {self.instances} instances"
        )


def _held(assumptions: str, instances: int, holds: Callable[[np.random.Generator], bool]) -> Check:
    """Check a statement on random instances."""
    random = np.random.default_rng(0)
    for number in range(instances):
        if not holds(random):
            return Check(
                assumptions=assumptions,
                instances=number,
                counterexample=f"instance {number} of seed 0",
            )
    return Check(assumptions=assumptions, instances=instances)


# ---------------------------------------------------------------------------- paper 5


def _problem(random: np.random.Generator) -> FairGoodputProblem:
    clients = int(random.integers(2, 7))
    return FairGoodputProblem(
        acceptance_rates=random.uniform(0.05, 0.95, clients),
        budget_tokens=int(random.integers(1, 25)),
    )


def _optimum(problem: FairGoodputProblem) -> Floats:
    plan = solve(problem).plan
    assert isinstance(plan, FairGoodputPlan)
    return plan.goodput


def _mu(rates: Floats, drafts: Ints) -> Floats:
    return (1.0 - rates ** (drafts + 1)) / (1.0 - rates)


def _best(problem: FairGoodputProblem, goodput: Floats) -> Floats:
    """Return v of Lemma 2: mu of the allocation of Eq. 5 at a goodput."""
    drafts = np.empty(problem.clients, np.int64)
    fast.allocate(1.0 / goodput, problem.acceptance_rates, problem.budget_tokens, None, drafts)
    return _mu(problem.acceptance_rates, drafts)


def _one_optimum(random: np.random.Generator) -> bool:
    problem = _problem(random)
    first, second = (solve(problem, method).plan for method in ("dual", "convex"))
    assert isinstance(first, FairGoodputPlan) and isinstance(second, FairGoodputPlan)
    return bool(np.allclose(first.goodput, second.goodput, rtol=1e-4))


def _fluid(random: np.random.Generator) -> bool:
    """Return whether x' = v - x converges to x* from a random starting point."""
    problem = _problem(random)
    best = _optimum(problem)
    x = random.uniform(0.05, 20.0, problem.clients)
    start = np.abs(x - best).max()
    for step in range(400):
        gain = 2.0 / (step + 3.0)  # the fluid time is 2 log(step), so that Euler steps get finer
        x = x + gain * (_best(problem, x) - x)
    return bool(
        np.abs(x / best - 1.0).max() < 0.03 and np.abs(x - best).max() < max(0.5, 0.1 * start)
    )


def _boundary(random: np.random.Generator) -> bool:
    """Return whether clients with x near 0 gain at least 1 each, the minimum of mu, at the best
    point of the region.
    """
    problem = _problem(random)
    x = random.uniform(0.5, 5.0, problem.clients)
    starved = random.uniform(size=problem.clients) < 0.5
    starved[0] = True
    x[starved] = 1e-12
    v = _best(problem, x)
    even = np.full(problem.clients, 1.0 / problem.clients)
    others = [
        _mu(problem.acceptance_rates, random.multinomial(problem.budget_tokens, even))
        for _ in range(20)
    ]
    return bool((v - x)[starved].sum() >= starved.sum() * (1.0 - 1e-9)) and all(
        (v / x).sum() >= (one / x).sum() * (1.0 - 1e-12) for one in others
    )


def _starving(beta: float) -> tuple[int, FairGoodputProblem, Floats]:
    """Return the drafts of a client with a low first estimate, the problem at the estimates, and
    the mean goodput.
    """
    rates, estimates = np.r_[0.9, np.linspace(0.6, 0.9, 7)], np.r_[0.02, np.full(7, 0.5)]
    run = simulate(
        GoodputWorkload(rates, 16),
        Gradient(smoothing=beta, estimate_smoothing=0.2 * beta),
        rounds=5000,
        replications=2,
        initial_estimates=estimates,
        record=True,
        checkpoints=[2500, 5000],
    )
    seen = FairGoodputProblem(acceptance_rates=np.r_[0.02, rates[1:]], budget_tokens=16)
    return int(run.allocations[:, :, 0].sum()), seen, run.mean_rates(2500, 5000).mean(axis=0)


@cache
def starved() -> Check:
    """Paper 5, Theorems 1 and 4 with x* at the true rates: a client with a low first estimate gets
    no drafts.
    """
    drafts = sum(_starving(beta)[0] for beta in (0.5, 0.05, 0.005))
    best = _optimum(
        FairGoodputProblem(acceptance_rates=np.r_[0.9, np.linspace(0.6, 0.9, 7)], budget_tokens=16)
    )
    said = (
        "8 clients, C = 16, rates 0.9 and 0.6 to 0.9, alpha-hat(0) = 0.02 and 0.5: client 1 gets"
        f" {drafts} drafts in 5000 rounds at beta = 0.5, 0.05 and 0.005. So X = 1 where the optimum"
        f" has {best[0]:.2f}. Its estimate stays 0.02, which is ergodic"
    )
    return Check(
        assumptions="1-3 as printed, Eq. 3 left alone where S = 0",
        counterexample=said if drafts == 0 else "",
    )


@cache
def fixed_point() -> Check:
    """Paper 5, Theorems 1 and 4 with x* at the limits of the estimates, also with a wrong
    estimate.
    """
    text, said = "1-3; x* is the fixed point of the fluid dynamics", ""
    runs = [_starving(beta)[1:] for beta in (0.5, 0.05, 0.005)]
    off = [float(np.abs(goodput / _optimum(seen) - 1.0).max()) for seen, goodput in runs]
    if not off[0] > off[1] > off[2] or off[2] > 0.02:
        said = f"a starved client: mean goodput is off x* by {off} at beta = 0.5, 0.05 and 0.005"
    known = consistent()
    return Check(
        assumptions=text, instances=known.instances + 1, counterexample=said or known.counterexample
    )


@cache
def consistent() -> Check:
    """Paper 5, Theorem 1 with estimates that tend to the true rates: the distance of X from x*
    falls with beta and eta.
    """
    text, instances = "estimates that tend to the true rates; every client drafts now and then", 0
    for low, high in ((0.4, 0.9), (0.5, 0.85), (0.3, 0.95), (0.6, 0.8)):
        gaps = []
        for beta, eta in ((0.5, 0.1), (0.1, 0.03), (0.02, 0.01)):
            run = simulate(
                GoodputWorkload(np.linspace(low, high, 8), 16),
                Gradient(smoothing=beta, estimate_smoothing=eta),
                rounds=12_000,
                replications=2,
                checkpoints=[4000, 12_000],
            )
            gaps.append(run.gap(4000, 12_000))
        if not gaps[0] > gaps[1] > gaps[2] or gaps[2] > 0.02:
            return Check(
                assumptions=text,
                instances=instances,
                counterexample=f"rates {low} to {high}: gaps {gaps}",
            )
        instances += 1
    return Check(assumptions=text, instances=instances)


def fluid_relation(
    rate: Fraction, slope: Fraction, drafts: Sequence[int]
) -> tuple[Fraction, Fraction]:
    """Return both sides of Lemma 1's f(t) = sum of mu(k; alpha(t)) g_k(t) for one client, whose
    rate rises linearly.
    """

    def power(at: Fraction, degree: int) -> Fraction:  # mean over a unit of time
        to = at + slope
        return (
            (to ** (degree + 1) - at ** (degree + 1)) / ((degree + 1) * slope)
            if slope
            else at**degree
        )

    end = rate + slope * len(drafts)
    f = sum(
        (power(rate + slope * t, i) for t, count in enumerate(drafts) for i in range(count + 1)),
        Fraction(0),
    )
    return f, sum((end**i for count in drafts for i in range(count + 1)), Fraction(0))


def ramp() -> Check:
    """Paper 5, Lemma 1 with a rate that moves in fluid time, from 0 to 1/2 within two units."""
    f, claimed = fluid_relation(Fraction(0), Fraction(1, 4), [3, 3])
    said = (
        f"one client, S = 3 throughout, rate t / 4: f(2) = {f} = {float(f):.4g}, but mu(3; 1/2)"
        f" g(2) = {claimed} = {float(claimed):g}"
    )
    return Check(
        assumptions="2 without 3: the rate is Lipschitz in fluid time",
        counterexample=said if f != claimed else "",
    )


def _still_rates(random: np.random.Generator) -> bool:
    f, claimed = fluid_relation(
        Fraction(int(random.integers(0, 20)), 20), Fraction(0), random.integers(0, 9, 6).tolist()
    )
    return f == claimed


# ---------------------------------------------------------------------------- papers 1 to 4


def _bandwidth(random: np.random.Generator) -> bool:
    """Return whether Eq. 27 ends all uploads together, no other shares end them sooner, and more
    power or gain means a smaller share.
    """
    tasks = int(random.integers(2, 9))
    bits, snr = 1e5 * random.uniform(0.1, 10.0, tasks), 10.0 ** random.uniform(-1.0, 5.0, tasks)

    def shares(of: Floats) -> Floats:
        need = bits / spectral_efficiency(of)
        return np.asarray(need / need.sum())

    ours = upload_seconds(bits, shares(snr), 2e7, snr)
    others = random.dirichlet(np.ones(tasks), size=20) + 1e-12
    stronger = snr.copy()
    stronger[0] *= random.uniform(1.01, 10.0)
    return bool(
        np.ptp(ours) <= 1e-12 * ours.max()
        and all(
            upload_seconds(bits, one, 2e7, snr).max() >= ours.max() * (1.0 - 1e-9) for one in others
        )
        and shares(stronger)[0] < shares(snr)[0]
    )


def algorithm_1_of_paper_1() -> Check:
    """Paper 1, Algorithm 1: its batches for a given l, compared with the optimum for six tasks."""
    from specopt.instances.serving_latency.paper_1 import paper_1

    worst, said = 1.0, ""
    for seed in range(12):
        problem = replace(
            paper_1(tasks=6, max_input=2000, max_output=64, seed=seed), max_speculation_length=1
        )
        found, best = (solve(problem, method) for method in ("algorithm-1", "exact"))
        assert found.objective is not None and best.objective is not None
        inference = problem.evaluate(found.plan).terms["inference_seconds"]
        ratio = inference / (inference - (found.objective - best.objective))
        if ratio > max(worst, 1.001):
            worst = ratio
            said = (
                f"paper_1(tasks=6, max_input=2000, max_output=64, seed={seed}), l = 1:"
                f" {inference:.4g} s of inference, {100 * (ratio - 1):.1f} % above the optimum"
            )
    return Check(
        assumptions="Tables I and II, but K = 6, I_max = 2000 and O_max = 64", counterexample=said
    )


def _memory(random: np.random.Generator) -> bool:
    """Return whether batches that fit the memory with O_max also fit it with shorter outputs."""
    from specopt.instances.serving_latency.paper_1 import paper_1

    problem = paper_1(tasks=12, max_input=2000, max_output=2048, seed=int(random.integers(1000)))
    plan = solve(problem, "algorithm-1").plan
    shorter = replace(
        problem, output_tokens=random.integers(1, 2049, problem.tasks), output_lengths="known"
    )
    return not problem.violations(plan) and not shorter.violations(plan)


def theorem_1_of_paper_2() -> Check:
    """Paper 2, Theorem 1: a predictor with a lower false-alarm rate that wastes more."""
    many = BinaryPredictor(false_accept=1.0, false_reject=1.0, goes_on_after=0.0)
    few = BinaryPredictor(false_accept=0.75, false_reject=0.0, goes_on_after=1.0)
    wasted = [first_flag_round(0.5, 2, one).wasted for one in (many, few)]
    said = (
        "alpha = 1/2, Kmax = 2; goes on at the first rejection, stops at an accepted token, goes"
        f" on after the rejection with (1, 1, 0) and (3/4, 0, 1): E[W] = {wasted[0]:g} and"
        f" {wasted[1]:g}"
    )
    return Check(assumptions="as printed", counterexample=said if wasted[1] > wasted[0] else "")


def algorithm_1_of_paper_2() -> Check:
    """Paper 2, Algorithm 1: a small request of higher density excludes a large one of any value."""
    from specopt.instances.verification_batch.pending import mixed
    from specopt.instances.verification_batch.workload import TABLE_12

    problem = replace(
        mixed(requests=2),
        name=None,
        now_seconds=0.0,
        memory_bytes=1e9,
        estimator=TABLE_12,
        expected_tokens=np.array([0.5, 100.0]),
        new_tokens=np.array([1, 400]),
        cached_tokens=np.array([0, 0]),
        request_memory_bytes=np.array([1e6, 1e9]),
        deadline_seconds=np.array([10.0, 10.0]),
    )
    printed, best = (solve(problem, method).objective for method in ("algorithm-1", "brute-force"))
    assert printed is not None and best is not None
    said = (
        "two requests of 1 and 400 new tokens, of which 0.5 and 100 count, and memory for either."
        f" It verifies {printed:g} tokens, the best batch {best:g}. More memory and a larger"
        " request make the ratio any number"
    )
    return Check(
        assumptions="Table 12; within a constant factor",
        counterexample=said if best > 100.0 * printed else "",
    )


def myopic() -> Check:
    """Paper 3, Eq. 13: the policy with the highest reward in each iteration, compared with the
    fastest one.
    """
    from specopt.instances.draft_control.hard import alternating

    problem = alternating()
    greedy, best = (solve(problem, method).objective for method in ("myopic", "policy-iteration"))
    assert greedy is not None and best is not None
    said = f"an uplink that alternates: {greedy:.2f} tokens/s where {best:.2f} are possible"
    return Check(
        assumptions="Eq. 12 as the long-run rate",
        counterexample=said if best > greedy * 1.01 else "",
    )


CHECKS: dict[tuple[str, str], Callable[[], Check]] = {
    ("paper-5", "problem-1"): lambda: _held("fixed rates", 10, _one_optimum),
    ("paper-5", "theorem-1"): fixed_point,
    ("paper-5", "theorem-1.true-rates"): starved,
    ("paper-5", "theorem-1.consistent"): consistent,
    ("paper-5", "theorem-3"): lambda: _held("rates that do not move", 20, _fluid),
    ("paper-5", "theorem-4"): fixed_point,
    ("paper-5", "corollary-1"): fixed_point,
    ("paper-5", "algorithm-1.starved"): starved,
    ("paper-5", "lemma-1"): lambda: _held(
        "3: rates that do not move in fluid time", 50, _still_rates
    ),
    ("paper-5", "lemma-1.ramp"): ramp,
    ("paper-5", "lemma-2"): lambda: _held("rates that do not move", 50, _boundary),
    ("paper-1", "eq-27"): lambda: _held("Eq. 15-16", 100, _bandwidth),
    ("paper-1", "remark-1"): lambda: _held("Eq. 27", 100, _bandwidth),
    ("paper-1", "algorithm-1.optimal"): algorithm_1_of_paper_1,
    ("paper-1", "algorithm-1.memory"): lambda: _held("the judge's memory", 20, _memory),
    ("paper-2", "theorem-1"): theorem_1_of_paper_2,
    ("paper-2", "algorithm-1.approximation"): algorithm_1_of_paper_2,
    ("paper-3", "eq-13.greedy"): myopic,
}
