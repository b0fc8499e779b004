"""Draft stopping: `belief` against rules and against the tree of all histories, and the growth of
its cost.
"""

from __future__ import annotations

import math
import time

from table import Benchmark, Row

import specopt

RULES = ("optimal-stopping", "confidence-threshold", "first-rejection", "fixed-window")


def against_rules(smoke: bool) -> list[Row]:
    """Compare the token speed of every rule with the optimum, on random problems and on problems
    with easy and hard rounds.
    """
    problems = [
        specopt.generate("draft-stopping/random", max_draft=6, seed=seed)
        for seed in range(2 if smoke else 50)
    ]
    problems.append(specopt.generate("draft-stopping/mixed", max_draft=8))
    best = [specopt.solve(problem).objective or math.nan for problem in problems]
    rows = []
    for rule in RULES:
        shares = [
            (specopt.solve(problem, rule).objective or 0.0) / top
            for problem, top in zip(problems, best, strict=True)
        ]
        windows = [
            specopt.solve(problem, "fixed-window").objective or math.nan for problem in problems
        ]
        lost = min(
            share * top / window for share, top, window in zip(shares, best, windows, strict=True)
        )
        figure = (
            f"{sum(shares) / len(shares):.3f} of the optimum on average, {min(shares):.3f} at worst"
        )
        rows.append(
            Row(
                f"{len(problems)} problems, {rule}",
                f"{figure}; {lost:.3f} of the fixed window at worst",
            )
        )
    return rows


def growth(smoke: bool) -> list[Row]:
    """Measure the processor seconds until a gap of 1e-6 for more tokens and scores, and the
    exponent of the growth.
    """
    rows = []
    sizes = (4, 8) if smoke else (8, 16, 32)
    for name, parameters in (
        ("L tokens, 4 scores", {"bins": 4}),
        ("8 tokens, B scores", {"max_draft": 8}),
    ):
        seconds = []
        for size in sizes:
            changed = parameters | ({"max_draft": size} if "bins" in parameters else {"bins": size})
            problem = specopt.generate("draft-stopping/mixed", **changed)
            start = time.process_time()
            specopt.solve(problem, "belief", gap=1e-6)
            seconds.append(time.process_time() - start)
        exponent = math.log(seconds[-1] / seconds[0]) / math.log(sizes[-1] / sizes[0])
        times = ", ".join(
            f"{1e3 * one:.3g} ms at {size}" for one, size in zip(seconds, sizes, strict=True)
        )
        rows.append(Row(f"belief to 1e-6, {name}", f"{times}; exponent {exponent:.2f}"))
    problem = specopt.generate("draft-stopping/mixed", max_draft=6 if smoke else 11)
    took = []
    for method in ("belief", "history-tree"):
        start = time.process_time()
        specopt.solve(problem, method)
        took.append(time.process_time() - start)
    rows.append(
        Row("belief against the history tree, 3 scores", f"{took[1] / took[0]:.2g} times faster")
    )
    return rows


BENCHMARKS = (
    Benchmark("draft-stopping: rules against the optimum", against_rules),
    Benchmark("draft-stopping: growth", growth),
)
