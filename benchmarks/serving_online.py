"""Serving as tasks arrive: the time of a step, and latency by load.

``python -P benchmarks/serving_online.py FOLDER [TRACE ...]`` simulates the first parts of real
traces (`TRACES`) at several loads and writes `docs/recorded/load.csv`, from which `make pages`
draws the picture.
"""

from __future__ import annotations

import csv
import dataclasses
import io
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from table import Benchmark, Row

import specopt
from specopt.api.generate import from_trace
from specopt.instances.traces import Trace, read_trace
from specopt.models.continuous_serving.problem import ContinuousServingProblem
from specopt.models.files import write_text
from specopt.online import ServingScheduler
from specopt.solvers.budget import Budget
from specopt.solvers.continuous_serving.bound import served_bound
from specopt.solvers.continuous_serving.policies import play
from specopt.solvers.continuous_serving.prepare import Prepared
from specopt.solvers.serving_method import able

RECORD = Path(__file__).parents[1] / "docs" / "recorded" / "load.csv"
TRACES = {
    "Azure 2023, conversations": (
        "azure-2023-conv-head.csv",
        100,
        (0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2),
        16e9,
    ),
    "BurstGPT": ("burstgpt-excerpt.csv", 50, (0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2), 16e9),
    "Mooncake, conversations": (
        "mooncake-conversation-head.jsonl",
        50,
        (0.01, 0.03, 0.1, 0.3),
        80e9,
    ),
}
"""File, number of requests from its beginning, arrival rate in requests per second after
stretching, and draft memory, which has to be large enough for the longest prompts.
"""

BITS_PER_TOKEN = 32.0  # prompts are sent as token ids, because serving is compared, not links
FIXED = (2, 4)
"""Speculation lengths of first-come batching. The better one is used, in hindsight."""

COLUMNS = (
    "trace",
    "requests_per_second",
    "policy",
    "mean_seconds",
    "quantile_95_seconds",
    "drafting_share",
)

Point = tuple[str, float, float, float]  # policy, mean, 95 % quantile, drafting share


def at_load(problem: ContinuousServingProblem) -> list[Point]:
    """Return the results of every policy on a problem, and a bound that holds for all policies."""
    found: list[Point] = []
    for name, lengths in (
        ("online", (3,)),
        ("continuous", FIXED),
        ("autoregressive", (3,)),
        ("algorithm-1", (3,)),
    ):
        runs = [play(problem, name, length) for length in lengths]
        run = min(runs, key=lambda one: one.mean)
        if run.plan is not None:
            assert not problem.violations(run.plan)
            assert abs(problem.evaluate(run.plan).objective - run.mean) <= 1e-9 * run.mean
        found.append((name, run.mean, run.quantiles[0.95], run.drafting_share))
    bound = min(served_bound(prepared, Budget(problem)) for prepared in able(problem, Prepared))
    return [*found, ("bound", bound, bound, 0.0)]


def turning_point(rates: list[float], points: list[list[Point]]) -> float | None:
    """Return the load from which serving without drafts is better than the best fixed length,
    between two simulated loads.
    """
    gap = []
    for found in points:
        mean = {name: seconds for name, seconds, _, _ in found}
        gap.append(np.log(mean["continuous"] / mean["autoregressive"]))
    for i in range(1, len(gap)):
        if gap[i - 1] < 0.0 <= gap[i]:
            part = gap[i - 1] / (gap[i - 1] - gap[i])
            return float(rates[i - 1] * (rates[i] / rates[i - 1]) ** part)
    return None


def recorded_turning_point(trace: str) -> float:
    """Return the turning point of a recorded trace."""
    rows = [row for row in csv.DictReader(RECORD.read_text().splitlines()) if row["trace"] == trace]
    rates = sorted({float(row["requests_per_second"]) for row in rows})
    points: list[list[Point]] = [[] for _ in rates]
    for row in rows:
        mean, high, share = (float(row[column]) for column in COLUMNS[3:])
        points[rates.index(float(row["requests_per_second"]))].append(
            (row["policy"], mean, high, share)
        )
    found = turning_point(rates, points)
    assert found is not None, "it pays at the least load, and does not at the largest"
    return found


def loads(
    build: Callable[[float], ContinuousServingProblem], rates: list[float]
) -> Iterator[tuple[float, list[Point]]]:
    """Yield the results of every policy at each load."""
    for rate in rates:
        yield (
            rate,
            at_load(dataclasses.replace(build(rate), embedding_bits_per_token=BITS_PER_TOKEN)),
        )


def curves(smoke: bool) -> list[Row]:
    """Measure the mean latency by load with Poisson arrivals at the setting of paper 1, for the
    online policy and the best other one.
    """
    rates, tasks = ([0.2, 3.2], 6) if smoke else ([0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4], 100)

    def build(rate: float) -> ContinuousServingProblem:
        problem = specopt.generate(
            "continuous-serving/arrivals", tasks=tasks, requests_per_second=rate, seed=1
        )
        assert isinstance(problem, ContinuousServingProblem)
        return problem

    rows, points = [], []
    for rate, found in loads(build, rates):
        points.append(found)
        (_, own, _, share), *rivals = found[:-1]
        name, best, _, _ = min(rivals, key=lambda point: point[1])
        text = (
            f"{own:.2f} s ({share:.0%} of the tokens drafted); {name} {best:.2f} s; bound"
            f" {found[-1][1]:.2f} s"
        )
        rows.append(
            Row(
                f"{rate:g} requests/s: online, the best other",
                text,
                "1.02 times",
                own <= 1.02 * best,
            )
        )
    turn = turning_point(rates, points)
    where = "not met" if turn is None else f"{turn:.2f} requests/s"
    return [*rows, Row("speculation at the best fixed length stops paying at", where)]


def steps(smoke: bool) -> list[Row]:
    """Measure the milliseconds of `ServingScheduler.next_step` and `complete` while tasks
    continually leave and join.
    """
    problem = specopt.generate("continuous-serving/arrivals")
    assert isinstance(problem, ContinuousServingProblem)
    rows = []
    for tasks in (10, 200):
        scheduler, random = ServingScheduler(problem), np.random.default_rng(0)
        scheduler.warm_up()
        taken = []
        for key in range(tasks, tasks + (50 if smoke else 3000)):
            while len(scheduler.tasks) < tasks:
                scheduler.submit(
                    key + 10_000 * len(scheduler.tasks), input_tokens=int(random.integers(1, 512))
                )
            start = time.perf_counter()
            scheduler.next_step()
            scheduler.complete(finished=[] if key % 3 else scheduler.tasks[:1])
            taken.append(time.perf_counter() - start)
        middle, high = np.quantile(taken, [0.5, 0.99])
        figure = f"{1e3 * middle:.2f} ms (99 %: {1e3 * high:.2f} ms)"
        rows.append(Row(f"{tasks} tasks at hand", figure, "1 ms, 99 %", bool(high <= 1e-3)))
    return rows


BENCHMARKS = (
    Benchmark("continuous-serving online: one step", steps),
    Benchmark("continuous-serving online: latency against load", curves),
)


def main(folder: Path, *names: str) -> None:
    """Simulate some or all traces and record the results. The records of other traces are kept."""
    rows = list(csv.reader(RECORD.read_text().splitlines()))[1:] if names else []
    for name in names or TRACES:
        file, requests, rates, memory = TRACES[name]
        rows = [row for row in rows if row[0] != name]
        trace = read_trace(folder / file, rows=requests)

        def build(
            rate: float, trace: Trace = trace, memory: float = memory
        ) -> ContinuousServingProblem:
            problem = from_trace("continuous-serving").problem(
                trace, "arrivals", requests_per_second=rate
            )
            assert isinstance(problem, ContinuousServingProblem)
            return dataclasses.replace(problem, draft_memory_bytes=memory)

        for rate, points in loads(build, list(rates)):
            print(
                name,
                rate,
                [f"{policy} {mean:.3g}" for policy, mean, _, _ in points],
                file=sys.stderr,
                flush=True,
            )
            for policy, mean, high, share in points:
                rows.append(
                    [name, f"{rate:g}", policy, f"{mean:.5g}", f"{high:.5g}", f"{share:.3f}"]
                )
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows([COLUMNS, *rows])
        write_text(RECORD, text.getvalue())


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
