"""Prompt chunking: the default method against Eq. 3, the best equal chunks and the optimum, and its
cost with the growth of that.
"""

from __future__ import annotations

from itertools import product

import numpy as np
from table import Benchmark, Row, exponent, median_seconds

import specopt
from specopt.instances.prompt_chunking.workload import paper_4_workload
from specopt.models.prompt_chunking.workload import Rounds
from specopt.solvers.prompt_chunking.simulate import Scheme, run_once

EXACT_SECONDS = 10.0
"""Time limit of each exact solve with which the default is compared."""


def _setting(
    tokens: int, stages: int, milliseconds: float = 3.0, model: str = "vicuna-7b"
) -> specopt.Problem:
    return specopt.generate(
        "prompt-chunking/paper-4",
        prompt_tokens=tokens,
        pipeline_length=stages,
        message_milliseconds=milliseconds,
        model=model,
    )


def _seconds(problem: specopt.Problem, method: str, limit: float | None = None) -> float:
    objective = specopt.solve(problem, method, time_limit=limit).objective
    assert objective is not None
    return objective


def against_the_paper(smoke: bool) -> list[Row]:
    """Compare the time to first token of Eq. 3, the best equal chunks and the default, on the
    testbed of paper 4.
    """
    rows = []
    settings = product(("", "Vicuna-13B, "), (4, 1), (35,) if smoke else (351, 891, 2000))
    for name, stages, tokens in settings:
        held = stages == 4 and not name and not smoke  # the setting for which the target is stated
        problem = _setting(tokens, stages, model="vicuna-13b" if name else "vicuna-7b")
        result = specopt.solve(problem)
        assert result.objective is not None and result.gap is not None
        paper, equal = (
            _seconds(problem, method) / result.objective for method in ("equation-3", "best-equal")
        )
        rows.append(
            Row(
                f"{name}N = {tokens}, P = {stages}, 3 ms per message: TTFT of Eq. 3 and of the best"
                f" equal chunks, over the default's {1e3 * result.objective:.0f} ms",
                f"{paper:.3f} and {equal:.3f}, gap {100 * result.gap:.3f} %",
                "1.14 times" if held else "",
                paper >= 1.14 if held else None,
            )
        )
    return rows


def deadline_against_exact(smoke: bool) -> list[Row]:
    """Measure the gap of `deadline` to the proven optimum, over random links and clouds in every
    mode.
    """
    rows = []
    for wait in ("serial", "overlap", "none"):
        for download in ("all", "last"):
            above, gaps, unsolved = [], [], 0
            for seed in range(2 if smoke else 20):
                problem = specopt.generate(
                    "prompt-chunking/random",
                    prompt_tokens=30 if smoke else (100, 300, 600)[seed % 3],
                    wait=wait,
                    download=download,
                    seed=seed,
                )
                best = specopt.solve(problem, "exact", time_limit=EXACT_SECONDS)
                ours = specopt.solve(problem, "deadline")
                assert (
                    best.objective is not None
                    and ours.objective is not None
                    and ours.gap is not None
                )
                gaps.append(ours.gap)
                if best.status == "optimal":
                    above.append(ours.objective / best.objective - 1)
                else:
                    unsolved += 1
            rows.append(
                Row(
                    f"deadline above the optimum, wait {wait}, download {download}, {len(above)}"
                    f" random problems ({unsolved} more not proven in {EXACT_SECONDS:g} s)",
                    f"mean {100 * np.mean(above):.3f} %, most {100 * max(above):.3f} %; "
                    f"own gap mean {100 * np.mean(gaps):.2f} %",
                    "0.5 %",
                    max(above) <= 0.005,
                )
            )
    return rows


def growth(smoke: bool) -> list[Row]:
    """Measure the time of a solve by `deadline`, including judge and digest, by the length of the
    prompt.
    """
    rows = []
    sizes = [20, 40, 80] if smoke else [512, 2048, 8192]
    for stages in (1, 4):
        for milliseconds in (0.0, 3.0):
            problems = [_setting(tokens, stages, milliseconds) for tokens in sizes]
            seconds = [
                median_seconds(lambda p=p: specopt.solve(p, "deadline"), 21) for p in problems
            ]
            rows.append(
                Row(
                    f"solve, P = {stages}, {milliseconds:g} ms per message, N = {sizes[-1]}",
                    f"{1e3 * seconds[-1]:.2f} ms; N^{exponent(sizes, seconds):.2f} over {sizes}",
                    "5 ms",
                    seconds[-1] <= 5e-3,
                )
            )
    worst = [
        median_seconds(lambda p=p: specopt.solve(p, "deadline"), 3)
        for p in (
            specopt.generate(
                "prompt-chunking/random", prompt_tokens=sizes[-1], pipeline_length=8, seed=seed
            )
            for seed in range(2 if smoke else 20)
        )
    ]
    rows.append(
        Row(
            f"solve, P = 8, {len(worst)} random problems, N = {sizes[-1]}: slowest",
            f"{1e3 * max(worst):.2f} ms",
            "5 ms",
            max(worst) <= 5e-3,
        )
    )
    return rows


def proofs(smoke: bool) -> list[Row]:
    """Measure the time to the proven optimum at token level, and its growth."""
    rows = []
    targets = {351: 0.05, 2000: 2.0}
    sizes = [20, 40, 80] if smoke else [351, 891, 2000]
    for stages in (1, 2, 4):
        for milliseconds in (0.0, 3.0):
            problems = [_setting(tokens, stages, milliseconds) for tokens in sizes]
            seconds = [
                median_seconds(lambda p=p: specopt.solve(p, "exact"), 1 if smoke else 5)
                for p in problems
            ]
            proven = all(
                specopt.solve(problem, "exact").status == "optimal" for problem in problems
            )
            rows.append(
                Row(
                    f"exact, P = {stages}, {milliseconds:g} ms per message, N ="
                    f" {', '.join(map(str, sizes))}",
                    f"{', '.join(f'{1e3 * value:.0f}' for value in seconds)} ms,"
                    f" {'all' if proven else 'not all'} proven; N^{exponent(sizes, seconds):.2f}",
                    "50 ms at 351, 2 s at 2000",
                    proven
                    and all(
                        value <= targets.get(n, np.inf)
                        for n, value in zip(sizes, seconds, strict=True)
                    ),
                )
            )
    return rows


def simulator(smoke: bool) -> list[Row]:
    """Measure the events per second of the simulation of many devices."""
    rows = []
    workload = paper_4_workload(link_latency_seconds=0.0014, link_scale=1.14)
    requests = 200 if smoke else 50_000
    whole = Scheme(name="whole prompts", rounds=Rounds.one_by_one())
    for scheme in (
        whole,
        Scheme(name="Eq. 3's chunks", chunking="equation-3", rounds=Rounds.one_by_one()),
    ):
        run_once(workload, scheme, requests=100, warm_up_requests=10)
        run = run_once(workload, scheme, requests=requests, warm_up_requests=10)
        rate = run.events / run.seconds
        rows.append(
            Row(f"{scheme.name}: events per second", f"{rate:.2g}", "1e6", smoke or rate >= 1e6)
        )
    return rows


BENCHMARKS = (
    Benchmark("prompt-chunking: time to first token on the paper's testbed", against_the_paper),
    Benchmark("prompt-chunking: deadline against the optimum", deadline_against_exact),
    Benchmark("prompt-chunking: cost of deadline", growth),
    Benchmark("prompt-chunking: proofs", proofs),
    Benchmark("prompt-chunking: simulation of many devices", simulator),
)
