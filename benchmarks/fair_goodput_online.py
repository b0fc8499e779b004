"""The online scheduler of fair goodput: gaps to the fair optimum, recovery, regimes, and
microseconds per round.

`robust` learns from the number of accepted drafts before the first rejection. `gradient` learns
from the outcome of every draft, as Eq. 3 assumes.
"""

from __future__ import annotations

import numpy as np
from table import Benchmark, Row, median_seconds

from specopt.instances.fair_goodput.paper_5 import acceptance_rates
from specopt.models.acceptance_process import AcceptanceProcess
from specopt.models.fair_goodput.workload import GoodputWorkload
from specopt.online import GoodputScheduler
from specopt.solvers.fair_goodput.policies import Gradient, Robust
from specopt.solvers.fair_goodput.simulate import benchmark, simulate

TABLE_1 = ((4, 24), (4, 28), (8, 16), (8, 20))
RATES = ("equal", "mild", "wide", "extreme")
PAPER = Gradient(smoothing=0.5, estimate_smoothing=0.1, initial_estimate=0.5)
SINGLE = (4, 16, 64, 256)


def gaps(smoke: bool) -> list[Row]:
    """Measure the gaps of both policies on the configurations of Table I."""
    rounds, early, late, seeds = (600, 60, 200, 5) if smoke else (20_000, 600, 5000, 100)
    rows = []
    for clients, budget in TABLE_1:
        for name in RATES:
            rates = acceptance_rates(name, clients)
            points = [early, late, rounds]
            robust = simulate(
                GoodputWorkload(rates, budget),
                rounds=rounds,
                replications=seeds,
                checkpoints=points,
            )
            paper = simulate(
                GoodputWorkload(rates, budget),
                PAPER,
                rounds=rounds,
                replications=seeds,
                checkpoints=points,
                optimum=robust.benchmark,
            )
            full = simulate(
                GoodputWorkload(rates, budget),
                rounds=early,
                replications=seeds,
                checkpoints=[early],
                optimum=robust.benchmark,
                every_draft=True,
            )
            long, rival = robust.gap(late, rounds), paper.gap(late, rounds)
            where = f"N = {clients}, C = {budget}, {name}"
            rows += [
                Row(
                    f"{where}: first {early} rounds (gradient; robust told of every draft)",
                    f"{robust.gap(0, early):.4f} ({paper.gap(0, early):.4f}; {full.gap():.4f})",
                    "0.012",
                    None if smoke else robust.gap(0, early) <= 0.012,
                ),
                Row(
                    f"{where}: rounds {late}-{rounds} (gradient)",
                    f"{long:.5f} ({rival:.4f}, {rival / max(long, 1e-9):.0f} times)",
                    "0.003, a ninth",
                    None if smoke else long <= 0.003 and rival >= 9 * long,
                ),
            ]
    return rows


def recovery(smoke: bool) -> list[Row]:
    """Measure the recovery of a client with acceptance rate 0.9 whose first estimate is 0.02."""
    rows = []
    for clients, budget in TABLE_1:
        rates = np.r_[0.9, np.linspace(0.3, 0.95, clients - 1)]
        estimates = np.r_[0.02, np.full(clients - 1, 0.5)]
        found = []
        for policy in ("robust", PAPER):
            run = simulate(
                GoodputWorkload(rates, budget),
                policy,
                initial_estimates=estimates,
                checkpoints=[500, 600],
                replications=10 if smoke else 100,
            )
            fair = run.benchmark.goodput[0]
            found.append(
                (
                    run.mean_rates(0, 600)[:, 0].mean() / fair,
                    run.mean_rates(500, 600)[:, 0].min() / fair,
                )
            )
        rows.append(
            Row(
                f"N = {clients}, C = {budget}: share of its fair rate in 600 rounds; in the last"
                " 100, worst run",
                f"{found[0][0]:.0%}; {found[0][1]:.0%} (gradient {found[1][0]:.0%};"
                f" {found[1][1]:.0%})",
                "90 %",
                min(found[0]) >= 0.9,
            )
        )
    return rows


def regimes(smoke: bool) -> list[Row]:
    """Clients that switch between 0.3 and 0.9, or drift. Gaps are relative to the program over
    modes with common weights.
    """
    rounds, seeds = (1000, 3) if smoke else (20_000, 50)
    rows = []
    for clients, budget in ((4, 24), (8, 20)):
        low, high = np.full(clients, 0.3), np.full(clients, 0.9)
        cases = {
            f"switching, {mean} rounds": AcceptanceProcess.switching([low, high], mean)
            for mean in (20, 100, 500)
        }
        cases["drifting in waves of 2000 rounds"] = AcceptanceProcess.drifting(low, high, 2000)
        for name, process in cases.items():
            optimum = benchmark(GoodputWorkload(process, budget))
            found = {}
            policies = {f"{memory} rounds": Robust(memories=(memory,)) for memory in SINGLE}
            for label, policy in {
                "robust": Robust(),
                "gradient": PAPER,
                "endless": Robust(memories=()),
                **policies,
            }.items():
                run = simulate(
                    GoodputWorkload(process, budget),
                    policy,
                    rounds=rounds,
                    replications=seeds,
                    checkpoints=[rounds // 20, rounds],
                    optimum=optimum,
                )
                found[label] = run.gap(rounds // 20, rounds)
            best = min(
                (gap, label) for label, gap in found.items() if label not in ("robust", "gradient")
            )
            rows.append(
                Row(
                    f"N = {clients}, C = {budget}, {name}",
                    f"{found['robust']:.3f} (gradient {found['gradient']:.3f}, endless memory"
                    f" {found['endless']:.3f}, best of the single memories {best[0]:.3f} with"
                    f" {best[1]})",
                    "below gradient",
                    found["robust"] < found["gradient"],
                )
            )
    return rows


def speed(smoke: bool) -> list[Row]:
    """Measure the time of `allocate` and `observe` per round on the server."""
    rows = []
    for clients, budget in ((4, 24), (8, 20), (100, 400), (1000, 4000)):
        for policy in ("robust", "gradient"):
            scheduler = GoodputScheduler(clients, budget, policy)
            scheduler.warm_up()
            count = 20 if smoke else 1000

            def rounds(scheduler: GoodputScheduler = scheduler, count: int = count) -> None:
                for _ in range(count):
                    scheduler.observe(np.minimum(scheduler.allocate(), 2))

            rows.append(
                Row(
                    f"{policy}, N = {clients}, C = {budget}",
                    f"{1e6 * median_seconds(rounds) / count:.1f} us",
                )
            )
    return rows


BENCHMARKS = (
    Benchmark("fair goodput online: gap to the fair optimum, mean over 100 seeds", gaps),
    Benchmark("fair goodput online: recovery from a wrong estimate", recovery),
    Benchmark("fair goodput online: rates that move", regimes),
    Benchmark("fair goodput online: microseconds per round", speed),
)
