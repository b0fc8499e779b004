"""Serving latency: proofs, gaps and speed."""

from __future__ import annotations

import dataclasses
import itertools
import math

import numpy as np
from rivals import printed_algorithm_1, stage_lines
from table import Benchmark, Row, exponent, median_seconds

import specopt
from specopt.models.serving_latency.problem import ServingLatencyProblem
from specopt.solvers.budget import Budget
from specopt.solvers.serving_latency.blocks import widths
from specopt.solvers.serving_latency.bound import lower_bound
from specopt.solvers.serving_latency.contiguous import algorithm_1_batches
from specopt.solvers.serving_latency.prepare import prepare

PAIRS = ("68M-7B", "1.1B-7B", "1.1B-13B")


def paper_1(pair: str, tasks: int, **parameters: object) -> ServingLatencyProblem:
    """Return a problem of the setting of paper 1."""
    problem = specopt.generate("serving-latency/paper-1", pair=pair, tasks=tasks, **parameters)
    assert isinstance(problem, ServingLatencyProblem)
    return problem


def _own_seconds(problem: specopt.Problem, repeat: int = 5) -> tuple[float, specopt.Result]:
    """Return the median of the seconds that the results report, after a warm-up call, and the last
    result.
    """
    results = [specopt.solve(problem, "exact") for _ in range(repeat + 1)]
    return float(np.median([result.seconds for result in results[1:]])), results[-1]


def proofs(smoke: bool) -> list[Row]:
    """Measure the time to a proven optimum at the setting of the paper."""
    rows = []
    for tasks, limit, alpha, longest in ((7, 0.02, 0.6, 256), (100, 1.0, 0.8, 2048)):
        for pair in PAIRS:
            for seed in (1,) if smoke else (1, 2):
                size = min(tasks, 7) if smoke else tasks
                problem = paper_1(pair, size, alpha=alpha, max_output=longest, seed=seed)
                seconds, result = _own_seconds(problem, 1 if smoke else 5)
                rows.append(
                    Row(
                        f"exact, {pair}, K = {size}, seed {seed}",
                        f"{result.status.value} in {1e3 * seconds:.1f} ms",
                        f"optimal within {1e3 * limit:.0f} ms",
                        result.status == "optimal" and seconds <= limit,
                    )
                )
    return rows


def grid(smoke: bool) -> list[Row]:
    """Measure the share of proven optima on a grid of settings at K = 100."""
    alphas, outputs, inputs = (0.5, 0.6, 0.7, 0.8, 0.9), (128, 512, 2048), (128, 512, 1792)
    tasks = 100
    if smoke:
        alphas, outputs, inputs, tasks = (0.8,), (128,), (128,), 10
    results = [
        specopt.solve(
            paper_1(pair, tasks, alpha=a, max_output=o, max_input=i, seed=1), "exact", time_limit=10
        )
        for pair, a, o, i in itertools.product(PAIRS, alphas, outputs, inputs)
    ]
    proven = sum(result.status == "optimal" for result in results)
    seconds = [result.seconds for result in results]
    gap = max(math.inf if result.gap is None else result.gap for result in results)
    return [
        Row(
            f"exact, {len(results)} settings, K = {tasks}, 10 s each: proven optimal",
            f"{proven / len(results):.1%} (median {1e3 * np.median(seconds):.0f} ms)",
            "97 %",
            proven >= 0.97 * len(results),
        ),
        Row("the largest gap among them", f"{gap:.3%}", "0.5 %", gap <= 0.005),
    ]


def large(smoke: bool) -> list[Row]:
    """Measure certified gaps at K = 1000 and 10,000."""
    rows = []
    for tasks, limit, target in ((1000, 10.0, 0.005), (10_000, 60.0, 0.01)):
        size, seconds = (tasks // 20, 0.2) if smoke else (tasks, limit)
        for pair in PAIRS:
            result = specopt.solve(paper_1(pair, size, seed=1), "exact", time_limit=seconds)
            gap = math.inf if result.gap is None else result.gap
            rows.append(
                Row(
                    f"exact, {pair}, K = {size:,}",
                    f"gap {gap:.4%} in {result.seconds:.2f} s",
                    f"{target:.1%} within {limit:.0f} s",
                    gap <= target and result.seconds <= limit,
                )
            )
    return rows


def ample(smoke: bool) -> list[Row]:
    """Measure proofs and certified gaps if the memory of the draft device is hardly limiting: 64 GB
    instead of 16.
    """
    rows = []
    for tasks, limit, target in ((100, 2.0, 0.0), (300, 10.0, 0.003), (1000, 10.0, 0.005)):
        size = tasks // 20 if smoke else tasks
        for pair in PAIRS:
            problem = dataclasses.replace(paper_1(pair, size, seed=1), draft_memory_bytes=64e9)
            result = specopt.solve(problem, "exact", time_limit=limit)
            gap = math.inf if result.gap is None else result.gap
            rows.append(
                Row(
                    f"exact, {pair}, K = {size:,}, 64 GB",
                    f"{result.status.value}, gap {gap:.4%} in {result.seconds:.2f} s",
                    (
                        f"{target:.1%} within {limit:.0f} s"
                        if target
                        else f"optimal within {limit:.0f} s"
                    ),
                    gap <= target if target else result.status == "optimal",
                )
            )
    return rows


def wide(smoke: bool) -> list[Row]:
    """Measure the share of proven optima among random problems with many batches and few steps,
    whose stages are about equally long.
    """
    rows = []
    for low, high, limit, target in ((8, 14, 5.0, 1.0), (20, 60, 10.0, 0.98)):
        results = []
        for seed in range(2 if smoke else 60):
            random = np.random.default_rng(seed)
            tasks, steps, batches = (
                int(random.integers(low, high + 1)),
                int(random.integers(2, 4)),
                random.integers(4, 11),
            )
            problem = paper_1(PAIRS[seed % 3], tasks, max_input=1024, max_output=steps, seed=seed)
            assert problem.draft is not None
            size = math.ceil(tasks / batches)
            longest = int(problem.input_tokens.max()) + steps
            drafted, verified = (
                random.uniform(0.5, 2.0),
                1.0,
            )  # total seconds of each stage, without overheads
            flops = [
                model.flops_per_token * int(problem.input_tokens.sum())
                for model in (problem.draft, problem.verify)
            ]
            problem = dataclasses.replace(
                problem,
                acceptance_rate=0.01,
                max_speculation_length=int(random.integers(1, 4)),
                draft_memory_bytes=problem.draft.parameter_bytes
                + size * problem.draft.kv_bytes_per_token * longest,
                draft_runtime=specopt.LinearRuntime(
                    seconds_per_flop=drafted / flops[0],
                    overhead_seconds=random.uniform(0.0, 0.5) / batches,
                ),
                verify_runtime=specopt.LinearRuntime(
                    seconds_per_flop=verified / flops[1],
                    overhead_seconds=random.uniform(0.0, 0.5) / batches,
                ),
            )
            results.append(specopt.solve(problem, "exact", time_limit=limit))
        proven = float(np.mean([result.status == "optimal" for result in results]))
        rows.append(
            Row(
                f"exact, {len(results)} random wide problems, K = {low} to {high}",
                f"{proven:.0%} proven, at most {max(result.seconds for result in results):.2f} s",
                f"{target:.0%} within {limit:.0f} s",
                proven >= target,
            )
        )
    return rows


def algorithm_1(smoke: bool) -> list[Row]:
    """Compare Algorithm 1 with its printed form, plainly compiled. Memory is not limiting, and
    there is one speculation length.
    """
    sizes = [20, 40] if smoke else [100, 300, 1000, 3000]
    ours, rival, bound = [], [], []
    length = 1
    for size in sizes:
        problem = specopt.ServingLatencyProblem.from_dict(
            paper_1("1.1B-7B", size, seed=1).to_dict()
            | {
                "draft_memory_bytes": 1e18,
                "max_speculation_length": 1,
            }
        )
        prepared = prepare(problem)
        width, lines = widths(prepared), stage_lines(prepared, length)
        repeat = 1 if smoke or size == 3000 else 3
        ours.append(
            median_seconds(
                lambda p=prepared, q=problem: algorithm_1_batches(p, length, Budget(q)), repeat
            )
        )
        rival.append(
            median_seconds(
                lambda p=prepared, w=width, x=lines: printed_algorithm_1(p, w, x), repeat
            )
        )
        bound.append(
            median_seconds(lambda p=prepared, q=problem: lower_bound(p, Budget(q)), repeat)
        )
        seconds, _ = printed_algorithm_1(prepared, width, lines)
        _, own = algorithm_1_batches(prepared, length, Budget(problem))
        assert math.isclose(seconds, own, rel_tol=1e-9), "both must find the same objective"
    rows = [
        Row(
            f"algorithm-1 against the printed loop over n, K = {size:,}, N = {1138:,}",
            f"{theirs / mine:.0f} times faster ({1e3 * mine:.2f} ms; its bound"
            f" {1e3 * certificate:.2f} ms)",
            "50 times" if size == 1000 else "",
            theirs / mine >= 50 if size == 1000 else None,
        )
        for size, mine, theirs, certificate in zip(sizes, ours, rival, bound, strict=True)
    ]
    rows.append(
        Row(
            "growth with K, ours and the rival's",
            f"K^{exponent(sizes, ours):.2f}, K^{exponent(sizes, rival):.2f}",
        )
    )
    return rows


def known(smoke: bool) -> list[Row]:
    """Compare the judged latency for known output lengths with that of the plan of Algorithm 1, and
    measure optimality at K = 7.
    """
    rows = []
    seeds = range(1 if smoke else 20)
    for pair, target in (("68M-7B", 0.10), ("1.1B-7B", 0.15), ("1.1B-13B", 0.15)):
        savings, seconds, gaps = [], [], []
        for seed in seeds:
            problem = dataclasses.replace(
                paper_1(pair, 4 if smoke else 100, seed=seed), output_lengths="known"
            )
            paper = specopt.solve(problem, "algorithm-1")
            ours = specopt.solve(problem, "length-aware", time_limit=0.2 if smoke else 1.8)
            assert (
                paper.objective is not None and ours.objective is not None and ours.gap is not None
            )
            savings.append(1 - ours.objective / paper.objective)
            seconds.append(ours.seconds)
            gaps.append(ours.gap)
        rows.append(
            Row(
                f"length-aware below algorithm-1, {pair}, K = {problem.tasks}, mean of"
                f" {len(savings)} seeds",
                f"{np.mean(savings):.1%} (at most {max(seconds):.2f} s; mean gap"
                f" {np.mean(gaps):.1%})",
                f"{target:.0%} within 2 s",
                bool(np.mean(savings) >= target and max(seconds) <= 2.0),
            )
        )
    losses = []
    for seed in range(3 if smoke else 100):
        small = paper_1(PAIRS[seed % 3], 4 if smoke else 7, max_output=256, alpha=0.6, seed=seed)
        small = dataclasses.replace(small, output_lengths="known")
        ours, best = specopt.solve(small, "length-aware"), specopt.solve(small, "brute-force")
        assert ours.objective is not None and best.objective is not None
        losses.append(ours.objective / best.objective - 1)
    optimal = float(np.mean(np.array(losses) <= 1e-9))
    rows.append(
        Row(
            f"length-aware optimal, K = {small.tasks}, {len(losses)} instances",
            f"{optimal:.0%}, worst {max(losses):.3%} above",
            "90 %, at most 1 % above",
            optimal >= 0.9 and max(losses) <= 0.01,
        )
    )
    return rows


def known_gaps(smoke: bool) -> list[Row]:
    """Measure certified gaps for known output lengths, and whether the limit is kept at K =
    10,000.
    """
    rows = []
    for tasks, limit, target, worst in (
        (100, 10.0, 0.04, False),
        (1000, 10.0, 0.12, True),
        (10_000, 10.0, 0.15, True),
    ):
        size, seconds = (8, 0.1) if smoke else (tasks, limit)
        for pair in PAIRS:
            results = [
                specopt.solve(
                    dataclasses.replace(paper_1(pair, size, seed=seed), output_lengths="known"),
                    "length-aware",
                    time_limit=seconds,
                )
                for seed in range(1 if smoke else 20)
            ]
            gaps = [math.inf if result.gap is None else result.gap for result in results]
            measured = max(gaps) if worst else float(np.mean(gaps))
            rows.append(
                Row(
                    f"length-aware, {pair}, K = {size:,}, known lengths, {len(gaps)} seeds",
                    f"mean gap {np.mean(gaps):.2%}, largest {max(gaps):.2%} "
                    f"(at most {max(result.seconds for result in results):.2f} s)",
                    f"{'each' if worst else 'mean'} {target:.0%} within {limit:.0f} s",
                    measured <= target,
                )
            )
    limit = 0.1 if smoke else 5.0
    problem = dataclasses.replace(
        paper_1("1.1B-7B", 8 if smoke else 10_000, seed=1), output_lengths="known"
    )
    result = specopt.solve(problem, "length-aware", time_limit=limit)
    fixed = float(result.stats.get("fixed_seconds", 0.0))  # type: ignore[arg-type]
    rows.append(
        Row(
            f"length-aware, K = {problem.tasks:,}, known lengths, at a limit of {limit:g} s",
            f"{result.seconds:.2f} s, {fixed:.2f} s of them fixed",
            "1.05 times the limit and 0.05 s",
            result.seconds <= 1.05 * limit + 0.05 + fixed,
        )
    )
    return rows


def milp(smoke: bool) -> list[Row]:
    """Compare the exact search with the mixed-integer program on the same small problems."""
    rows = []
    for tasks, longest in ((2, 12),) if smoke else ((3, 36), (4, 36)):
        problem = paper_1("1.1B-7B", tasks, max_output=longest, seed=1)
        ours = median_seconds(lambda p=problem: specopt.solve(p, "exact"))
        theirs = median_seconds(lambda p=problem: specopt.solve(p, "milp"), 1)
        a, b = specopt.solve(problem, "exact").objective, specopt.solve(problem, "milp").objective
        assert a is not None and b is not None and math.isclose(a, b, rel_tol=1e-6)
        rows.append(
            Row(
                f"exact against milp, K = {tasks}, O_max = {longest}",
                f"{theirs / ours:.0f} times faster ({theirs:.2f} s)",
            )
        )
    return rows


BENCHMARKS = (
    Benchmark("serving-latency: time to proof", proofs),
    Benchmark("serving-latency: share proven", grid),
    Benchmark("serving-latency: large instances", large),
    Benchmark("serving-latency: ample draft memory", ample),
    Benchmark("serving-latency: wide problems", wide),
    Benchmark("serving-latency: Algorithm 1 without the number of steps", algorithm_1),
    Benchmark("serving-latency: known output lengths", known),
    Benchmark("serving-latency: known output lengths, certified", known_gaps),
    Benchmark("serving-latency: against a mixed-integer program", milp),
)
