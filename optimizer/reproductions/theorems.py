"""What five papers claim to prove: checked on many instances, or refuted by one that is computed and printed.

No instance proves a theorem; "held on n instances" says how hard it was tried. Tests run every check, and with
generated instances of their own those of the judge's formulas. A refutation is exact: numbers anyone can compute again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache
from itertools import product

import numpy as np

from specopt.api.solve import solve
from specopt.models.codes.losslessness import quantise_then_sample_law, sample_then_quantise_law
from specopt.models.drafting import BinaryPredictor, first_flag_round, waste_bound
from specopt.models.fair_goodput import FairGoodputPlan, FairGoodputProblem
from specopt.models.fields import Floats, Ints
from specopt.models.goodput_workload import GoodputWorkload
from specopt.models.uplink import spectral_efficiency, upload_seconds
from specopt.online import GoodputScheduler
from specopt.reproductions.ledger import THEOREMS, TITLES, Statement, paper
from specopt.solvers.draft_allocation import fast
from specopt.solvers.fair_goodput.policies import Gradient
from specopt.solvers.fair_goodput.simulate import simulate


@dataclass(frozen=True, kw_only=True)
class Check:
    """What a check found.

    Parameters
    ----------
    assumptions
        Under which it was made.
    instances
        On how many it held.
    counterexample
        The one on which it does not; empty if there is none.
    """

    assumptions: str
    instances: int = 0
    counterexample: str = ""

    @property
    def verdict(self) -> str:
        """In words."""
        return f"refuted: {self.counterexample}" if self.counterexample else f"held on {self.instances} instances"


def _held(assumptions: str, instances: int, holds: Callable[[np.random.Generator], bool]) -> Check:
    """Return that something held on random instances, or that it did not."""
    random = np.random.default_rng(0)
    for number in range(instances):
        if not holds(random):
            return Check(assumptions=assumptions, instances=number, counterexample=f"instance {number} of seed 0")
    return Check(assumptions=assumptions, instances=instances)


# ---------------------------------------------------------------------------- paper 5


def _problem(random: np.random.Generator) -> FairGoodputProblem:
    clients = int(random.integers(2, 7))
    return FairGoodputProblem(
        acceptance_rates=random.uniform(0.05, 0.95, clients), budget_tokens=int(random.integers(1, 25))
    )


def _optimum(problem: FairGoodputProblem) -> Floats:
    plan = solve(problem).plan
    assert isinstance(plan, FairGoodputPlan)
    return plan.goodput


def _mu(rates: Floats, drafts: Ints) -> Floats:
    return np.asarray((1.0 - rates ** (drafts + 1)) / (1.0 - rates))


def _best(problem: FairGoodputProblem, goodput: Floats) -> Floats:
    """Return v of Lemma 2: mu of the allocation that Eq. 5 takes at a goodput."""
    drafts = np.empty(problem.clients, dtype=np.int64)
    fast.allocate(1.0 / goodput, problem.acceptance_rates, problem.budget_tokens, None, drafts)
    return _mu(problem.acceptance_rates, drafts)


def _largest_marginals(random: np.random.Generator) -> bool:
    clients, budget = int(random.integers(1, 5)), int(random.integers(0, 9))
    rates, weights = random.uniform(0.05, 0.95, clients), random.uniform(0.1, 3.0, clients)
    drafts = np.empty(clients, dtype=np.int64)
    fast.allocate(weights, rates, budget, None, drafts)
    every = np.array([one for one in product(range(budget + 1), repeat=clients) if sum(one) <= budget])
    return bool(weights @ _mu(rates, drafts) >= (_mu(rates, every) @ weights).max() * (1.0 - 1e-12))


def _one_optimum(random: np.random.Generator) -> bool:
    problem = _problem(random)
    first, second = (solve(problem, method).plan for method in ("dual", "convex"))
    assert isinstance(first, FairGoodputPlan) and isinstance(second, FairGoodputPlan)
    return bool(np.allclose(first.goodput, second.goodput, rtol=1e-4))


def _fluid(random: np.random.Generator) -> bool:
    """Whether x' = v - x, from a random start, is near x* in the end and has lost its distance."""
    problem = _problem(random)
    best = _optimum(problem)
    x = random.uniform(0.05, 20.0, problem.clients)
    start = np.abs(x - best).max()
    for step in range(400):
        gain = 2.0 / (step + 3.0)  # time runs as 2 log(step): an Euler step ever finer
        x = x + gain * (_best(problem, x) - x)
    return bool(np.abs(x / best - 1.0).max() < 0.03 and np.abs(x - best).max() < max(0.5, 0.1 * start))


def _boundary(random: np.random.Generator) -> bool:
    """Whether clients with x near 0 gain at least 1 each, the least mu, and the region's best point takes them."""
    problem = _problem(random)
    x = random.uniform(0.5, 5.0, problem.clients)
    starved = random.uniform(size=problem.clients) < 0.5
    starved[0] = True
    x[starved] = 1e-12
    v = _best(problem, x)
    even = np.full(problem.clients, 1.0 / problem.clients)
    others = [_mu(problem.acceptance_rates, random.multinomial(problem.budget_tokens, even)) for _ in range(20)]
    return bool((v - x)[starved].sum() >= starved.sum() * (1.0 - 1e-9)) and all(
        (v / x).sum() >= (one / x).sum() * (1.0 - 1e-12) for one in others
    )


@cache
def starved() -> Check:
    """Paper 5, Theorems 1 and 4 and the corollary: a client whose first estimate is low is never tried."""
    rates, estimates = np.r_[0.9, np.linspace(0.6, 0.9, 7)], np.r_[0.02, np.full(7, 0.5)]
    workload = GoodputWorkload(rates, 16)
    drafts, far = 0, []
    for beta in (0.5, 0.05, 0.005):
        run = simulate(
            workload, Gradient(smoothing=beta, estimate_smoothing=0.2 * beta), rounds=5000, replications=2,
            initial_estimates=estimates, record=True, checkpoints=[5000],
        )  # fmt: skip
        drafts += int(run.allocations[:, :, 0].sum())
        far.append(float(run.benchmark.goodput[0]))
    said = (
        f"8 clients, C = 16, rates 0.9 and 0.6 to 0.9, alpha-hat(0) = 0.02 and 0.5: client 1 gets {drafts} drafts in "
        f"5000 rounds at beta = 0.5, 0.05 and 0.005, so X = 1 where x* = {far[0]:.2f}; its estimate stays 0.02, which "
        "is ergodic"
    )
    return Check(assumptions="1-3 as printed, Eq. 3 left alone where S = 0", counterexample=said if drafts == 0 else "")


def consistent() -> Check:
    """Paper 5, Theorem 1 where estimates tend to the true rates: how far X stays from x* falls with beta and eta."""
    text, instances = "estimates that tend to the true rates; every client drafts now and then", 0
    for low, high in ((0.4, 0.9), (0.5, 0.85), (0.3, 0.95), (0.6, 0.8)):
        gaps = []
        for beta, eta in ((0.5, 0.1), (0.1, 0.03), (0.02, 0.01)):
            run = simulate(
                GoodputWorkload(np.linspace(low, high, 8), 16), Gradient(smoothing=beta, estimate_smoothing=eta),
                rounds=12_000, replications=2, checkpoints=[4000, 12_000],
            )  # fmt: skip
            gaps.append(run.gap(4000, 12_000))
        if not gaps[0] > gaps[1] > gaps[2] or gaps[2] > 0.02:
            return Check(assumptions=text, instances=instances, counterexample=f"rates {low} to {high}: gaps {gaps}")
        instances += 1
    return Check(assumptions=text, instances=instances)


def fluid_relation(rates: Sequence[Fraction], drafts: Sequence[int]) -> tuple[Fraction, Fraction]:
    """Return both sides of Lemma 1's f(t) = sum of mu(k; alpha(t)) g_k(t): one client, a rate and drafts per unit."""

    def mu(rate: Fraction, count: int) -> Fraction:
        return sum((rate**i for i in range(count + 1)), Fraction(0))

    f = sum((mu(rate, count) for rate, count in zip(rates, drafts, strict=True)), Fraction(0))
    return f, sum((mu(rates[-1], count) for count in drafts), Fraction(0))


def lemma_1() -> Check:
    """Paper 5, Lemma 1 where the rate moves: from 0 to 1/2 at t = 1."""
    f, claimed = fluid_relation([Fraction(0), Fraction(1, 2)], [3, 3])
    said = (
        f"one client, S = 3 throughout, rate 0 until t = 1 and 1/2 then: f(2) = {f} = {float(f):g}, but mu(3; 1/2) "
        f"g(2) = {claimed} = {float(claimed):g}"
    )
    return Check(assumptions="2 as printed: rates may move", counterexample=said if f != claimed else "")


def _still_rates(random: np.random.Generator) -> bool:
    rate, drafts = Fraction(int(random.integers(0, 20)), 20), random.integers(0, 9, 6).tolist()
    f, claimed = fluid_relation([rate] * len(drafts), drafts)
    return f == claimed


def estimates_move_little() -> Check:
    """Paper 5, Assumption 2: no estimate moves by more than eta in a round."""

    def holds(random: np.random.Generator) -> bool:
        eta, rates = float(random.uniform(0.01, 0.9)), random.uniform(0.05, 0.95, 4)
        scheduler = GoodputScheduler(4, 12, Gradient(estimate_smoothing=eta))
        worst = 0.0
        for _ in range(30):
            before = scheduler.estimates.copy()
            drafts = scheduler.allocate()
            scheduler.observe(np.where(random.uniform(size=4) < rates, drafts, 0).tolist())
            worst = max(worst, float(np.abs(scheduler.estimates - before).max()))
        return worst <= eta * (1.0 + 1e-12)

    return _held("Eq. 3", 20, holds)


# ---------------------------------------------------------------------------- papers 1 to 4


def _bandwidth(random: np.random.Generator) -> bool:
    """Whether Eq. 27 ends uploads together, no shares end them sooner, and more power or gain means a smaller share."""
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
        and all(upload_seconds(bits, one, 2e7, snr).max() >= ours.max() * (1.0 - 1e-9) for one in others)
        and shares(stronger)[0] < shares(snr)[0]
    )


def algorithm_1_of_paper_1() -> Check:
    """Paper 1, Algorithm 1: its batches for a given l against the best of all, six tasks."""
    import dataclasses

    from specopt.instances.serving_latency.paper_1 import paper_1

    worst, said = 1.0, ""
    for seed in range(12):
        problem = dataclasses.replace(
            paper_1(tasks=6, max_input=2000, max_output=64, seed=seed), max_speculation_length=1
        )
        found, best = (solve(problem, method) for method in ("algorithm-1", "exact"))
        assert found.objective is not None and best.objective is not None
        inference = problem.evaluate(found.plan).terms["inference_seconds"]
        ratio = inference / (inference - (found.objective - best.objective))
        if ratio > max(worst, 1.001):
            worst = ratio
            said = (
                f"paper_1(tasks=6, max_input=2000, max_output=64, seed={seed}), l = 1: {inference:.4g} s of inference, "
                f"{100 * (ratio - 1):.1f} % above the optimum"
            )
    return Check(assumptions="Tables I and II, all outputs O_max", counterexample=said)


def theorem_1_of_paper_2() -> Check:
    """Paper 2, Theorem 1: a predictor with fewer false alarms that wastes more."""
    many = BinaryPredictor(false_accept=1.0, false_reject=1.0, goes_on_after=0.0)
    few = BinaryPredictor(false_accept=0.75, false_reject=0.0, goes_on_after=1.0)
    wasted = [first_flag_round(0.5, 2, one).wasted for one in (many, few)]
    said = (
        "alpha = 1/2, Kmax = 2; goes on at the first rejection, stops at an accepted token, goes on after the "
        f"rejection with (1, 1, 0) and (3/4, 0, 1): E[W] = {wasted[0]:g} and {wasted[1]:g}"
    )
    return Check(assumptions="as printed", counterexample=said if wasted[1] > wasted[0] else "")


def _waste_bound(random: np.random.Generator) -> bool:
    alpha, most, g, h = random.uniform(), int(random.integers(1, 11)), random.uniform(), random.uniform()
    low, high = np.sort(random.uniform(size=2)).tolist()
    waste = [
        first_flag_round(alpha, most, BinaryPredictor(false_accept=f, false_reject=g, goes_on_after=h)).wasted
        for f in (low, high)
    ]
    return waste[0] <= waste[1] + 1e-12 and waste[0] <= waste_bound(alpha, most, low) + 1e-9


def algorithm_1_of_paper_2() -> Check:
    """Paper 2, Algorithm 1: a request that is already lost keeps everything else out."""
    from specopt.instances.verification_batch.pending import mixed
    from specopt.instances.verification_batch.workload import TABLE_12

    problem = replace(
        mixed(requests=2), name=None, now_seconds=0.0, guard_seconds=0.0, memory_bytes=1e12, estimator=TABLE_12,
        expected_tokens=np.array([3.0, 3.0]), new_tokens=np.array([5, 5]), cached_tokens=np.array([100, 100]),
        request_memory_bytes=np.array([1e6, 1e6]), deadline_seconds=np.array([0.001, 10.0]),
    )  # fmt: skip
    printed, best = (solve(problem, method) for method in ("algorithm-1", "brute-force"))
    said = (
        "two requests of 5 new and 100 cached tokens, deadlines in 1 ms and in 10 s: it admits "
        f"{len(printed.plan.batch)} of them, now and for ever; the best batch has {len(best.plan.batch)}"
    )
    return Check(assumptions="Table 12", counterexample=said if printed.objective == 0.0 < best.objective else "")  # type: ignore[operator]


def _lossless(random: np.random.Generator) -> bool:
    size = int(random.integers(2, 7))
    p, q = ([Fraction(int(w), int(sum(ws))) for w in ws] for ws in random.integers(1, 30, size=(2, size)))
    return quantise_then_sample_law(p, q, int(random.integers(1, 13))) == p


def sample_quantise() -> Check:
    """Paper 3: a law that S-Q loses, which is what the paper says of it."""
    p, q = [Fraction(1, 2)] * 2, [Fraction(2, 3), Fraction(1, 3)]
    lost = sample_then_quantise_law(p, q, 1)
    return Check(assumptions="p = (1/2, 1/2), q = (2/3, 1/3), resolution 1", instances=int(lost != p))


def equation_3() -> Check:
    """Paper 4, Eq. 3: chunks of its size against the best."""
    from specopt.instances.prompt_chunking.paper_4 import paper_4

    problem = paper_4(message_milliseconds=0.0)
    equation, best = (solve(problem, method) for method in ("equation-3", "exact"))
    assert equation.objective is not None and best.objective is not None
    excess = equation.objective / best.objective - 1.0
    chunks = len(best.plan.chunks), len(equation.plan.chunks)
    said = (
        f"paper_4(message_milliseconds=0): TTFT {1e3 * equation.objective:.1f} ms with {chunks[1]} chunks of Eq. 3, "
        f"{1e3 * best.objective:.1f} ms with {chunks[0]} others"
    )
    return Check(assumptions="its own timing", counterexample=said if excess > 1e-6 else "")


CHECKS: dict[tuple[str, str], Callable[[], Check]] = {
    ("paper-5", "eq-mu"): lambda: _held(
        "independent acceptances", 50,
        lambda random: bool(np.isclose(*_two_means(float(random.uniform()), int(random.integers(0, 12))))),
    ),
    ("paper-5", "eq-5"): lambda: _held("integers within the budget", 20, _largest_marginals),
    ("paper-5", "problem-1"): lambda: _held("fixed rates", 10, _one_optimum),
    ("paper-5", "theorem-1"): starved,
    ("paper-5", "theorem-1.consistent"): consistent,
    ("paper-5", "theorem-3"): lambda: _held("rates that do not move", 20, _fluid),
    ("paper-5", "theorem-4"): starved,
    ("paper-5", "corollary-1"): starved,
    ("paper-5", "algorithm-1"): starved,
    ("paper-5", "assumption-2"): estimates_move_little,
    ("paper-5", "lemma-1"): lemma_1,
    ("paper-5", "lemma-1.constant"): lambda: _held("rates that do not move", 50, _still_rates),
    ("paper-5", "lemma-2"): lambda: _held("rates that do not move", 50, _boundary),
    ("paper-1", "eq-27"): lambda: _held("Eq. 15-16", 100, _bandwidth),
    ("paper-1", "remark-1"): lambda: _held("Eq. 27", 100, _bandwidth),
    ("paper-1", "algorithm-1.optimal"): algorithm_1_of_paper_1,
    ("paper-2", "theorem-1"): theorem_1_of_paper_2,
    ("paper-2", "theorem-1.bound"): lambda: _held("equal errors elsewhere", 200, _waste_bound),
    ("paper-2", "algorithm-1.never-stalls"): algorithm_1_of_paper_2,
    ("paper-3", "abstract.lossless"): lambda: _held("fractions", 200, _lossless),
    ("paper-3", "proposition-1"): lambda: _held("fractions", 200, _lossless),
    ("paper-3", "sample-quantise"): sample_quantise,
    ("paper-4", "eq-3"): equation_3,
}  # fmt: skip


def checked(name: str, said: Statement) -> Check:
    """Return what becomes of a statement that is proved or refuted."""
    return CHECKS[name, said.id]()


def _two_means(rate: float, drafts: int) -> tuple[float, float]:
    """Return mu by its formula and by the law of the number of tokens."""
    law = [rate**k * (1.0 - rate) for k in range(drafts)] + [rate**drafts]
    return float(_mu(np.array([rate]), np.array([drafts]))[0]), sum(p * (k + 1) for k, p in enumerate(law))


def theorems() -> list[tuple[str, Statement]]:
    """Return every statement that is proved or refuted, paper 5 first."""
    return [
        (name, said)
        for name in sorted(TITLES, key=lambda one: (one != "paper-5", one))
        for said in paper(name).statements.values()
        if said.status in THEOREMS
    ]
