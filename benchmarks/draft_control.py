"""Draft control: policy iteration, its growth, and the linear program solved by HiGHS."""

from __future__ import annotations

import numpy as np
from table import Benchmark, Row, exponent

import specopt

SIZES = (20, 80, 320)
RIVALS = ("decoupled", "linear-program")


def _problem(states: int, seed: int) -> specopt.Problem:
    """Return a problem with five resolutions times 53 draft lengths, which are 265 actions in every
    state.
    """
    return specopt.generate("draft-control/random", states=states, seed=seed)


def _seconds(states: int, method: str, seeds: int) -> tuple[list[float], list[float]]:
    """Return the seconds of the calls of `solve` and the objectives. Only the compilation of the
    first call is excluded.
    """
    specopt.solve(_problem(states, 99), method)
    results = [specopt.solve(_problem(states, seed), method) for seed in range(seeds)]
    if not all(result.status == "optimal" for result in results):
        raise AssertionError(f"{method} has not proven every plan")
    return [result.seconds for result in results], [result.objective or 0.0 for result in results]


def policy_iteration(smoke: bool) -> list[Row]:
    """Measure the time and growth of the default method, and the other methods on the same
    problems.
    """
    sizes = (2, 4, 8) if smoke else SIZES
    medians = []
    rows = []
    for states in sizes:
        seconds, best = _seconds(states, "policy-iteration", 2 if smoke else 21)
        median = float(np.median(seconds))
        medians.append(median)
        due = states == 80
        rows.append(
            Row(
                f"policy-iteration, {states} states x 265 actions, certified",
                f"median {1e3 * median:.2f} ms, longest {1e3 * max(seconds):.2f} ms",
                "20 ms" if due else "",
                median <= 0.020 if due else None,
            )
        )
        for rival in RIVALS:
            theirs, found = _seconds(states, rival, 2 if smoke else 5)
            apart = max(abs(a - b) / b for a, b in zip(found, best, strict=False))
            rows.append(
                Row(
                    f"{rival}, {states} states x 265 actions",
                    f"median {1e3 * np.median(theirs):.2f} ms, {np.median(theirs) / median:.1f}"
                    f" times as long; objectives agree to {apart:.0e}",
                )
            )
    rows.append(
        Row(
            "growth of policy-iteration with the states",
            f"S^{exponent(list(sizes), medians):.2f} over {sizes}",
        )
    )
    return rows


def baselines(smoke: bool) -> list[Row]:
    """Measure the value of looking ahead and of adapting."""
    rows = []
    problems = {
        f"paper-3, {regime} rate": specopt.generate(
            "draft-control/paper-3", regime=regime, min_draft=0
        )
        for regime in ("low", "high")
    }
    problems["alternating"] = specopt.generate("draft-control/alternating")
    if not smoke:
        problems |= {f"random, 80 states, seed {seed}": _problem(80, seed) for seed in range(2)}
    for name, problem in problems.items():
        best = specopt.solve(problem).objective
        myopic, static = (
            specopt.solve(problem, method).objective for method in ("myopic", "best-static")
        )
        assert best is not None and myopic is not None and static is not None
        rows.append(
            Row(
                f"{name}: optimal, myopic, best-static",
                f"{best:.2f}, {myopic:.2f} ({myopic / best:.1%}), {static:.2f}"
                f" ({static / best:.1%}) tokens per second",
            )
        )
    return rows


BENCHMARKS = (
    Benchmark("draft-control: policy iteration and the other exact methods", policy_iteration),
    Benchmark("draft-control: the optimal policy against the baselines", baselines),
)
