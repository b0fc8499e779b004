"""Verification batching in the long run: events per minute, devices carried by every policy, and time of a decision."""

from __future__ import annotations

import time

import numpy as np
from table import Benchmark, Row

from specopt.instances.verification_batch.workload import TABLE_12, mixed_classes
from specopt.models.verification_workload import VerificationWorkload
from specopt.solvers.verification_batch.online import Scheduler
from specopt.solvers.verification_batch.policies import POLICIES, Policy
from specopt.solvers.verification_batch.simulate import Capacity, capacity, run_once

ROUNDS = (
    ("prompts of 150 tokens", mixed_classes()),
    ("prompts of 300 tokens", mixed_classes(prompt_median_tokens=300.0)),
    ("acceptance 0.55", mixed_classes(acceptance_rate=0.55)),
    ("acceptance 0.85", mixed_classes(acceptance_rate=0.85)),
)
SINGLE = tuple((speed, mixed_classes(class_speeds=(speed,))) for speed in (2.0, 4.0, 6.0, 8.0))


def _carried(workload: VerificationWorkload, policy: Policy, smoke: bool, centralised: bool = False) -> Capacity:
    seeds, seconds = (range(50, 51), 20.0) if smoke else (range(50, 55), 240.0)
    most = 16 if smoke else 4096
    return capacity(workload, policy, seeds=seeds, seconds=seconds, centralised=centralised, most=most)


def _figure(found: Capacity) -> str:
    low, high = found.confidence_interval
    return f"{found.devices:.0f} devices ({low:.0f}-{high:.0f})"


def speed(smoke: bool) -> list[Row]:
    """Simulated verifications per minute on one core, by policy, at 300 devices in mixed classes."""
    rows = []
    for policy in POLICIES:
        if policy == "algorithm-1":
            continue  # as printed it stalls
        run_once(mixed_classes(), policy, devices=10, seconds=1.0)
        run = run_once(mixed_classes(), policy, devices=300, seconds=10.0 if smoke else 600.0)
        pace = 60.0 * float(run.iterations.sum()) / run.seconds
        rows.append(Row(f"{policy}, verifications per minute", f"{pace:.2g}", "1e6", pace >= 1e6))
    return rows


def mixed(smoke: bool) -> list[Row]:
    """Devices carried at 1 % violations in mixed classes, cache and windows alike; 95 % intervals over five seeds."""
    rows = []
    for name, workload in ROUNDS[: 1 if smoke else None]:
        slack = _carried(workload, Policy(), smoke)
        rows.append(Row(f"{name}: slack", _figure(slack)))
        for label, policy, target in (
            ("fcfs", Policy(name="fcfs"), 1.4),
            ("edf, batches capped alike", Policy(name="edf"), 0.0),
            ("algorithm-1-drop, late requests fill up", Policy(name="algorithm-1-drop"), 1.5),
            ("algorithm-1-drop, late set aside", Policy(name="algorithm-1-drop", fill_with_late=False), 1.5),
            ("per-epoch", Policy(name="per-epoch"), 0.0),
        ):
            rival = _carried(workload, policy, smoke)
            ratio = slack.devices / max(1.0, rival.devices)
            goal = f"{target:g} times" if target else ""
            rows.append(
                Row(
                    f"{name}: slack against {label}",
                    f"{ratio:.2f} times; {_figure(rival)}",
                    goal,
                    ratio >= target if target else None,
                )
            )
    sled = _carried(mixed_classes(prefix_cache=False), Policy(name="fcfs"), smoke)
    central = _carried(mixed_classes(), Policy(name="fcfs"), smoke, centralised=True)
    rows.append(Row("prompts of 150 tokens: SLED (fcfs without cache)", _figure(sled)))
    rows.append(Row("prompts of 150 tokens: centralised serving", _figure(central)))
    return rows


def single(smoke: bool) -> list[Row]:
    """Devices carried in a single class."""
    rows = []
    for tau, workload in SINGLE[: 1 if smoke else None]:
        slack, fcfs = _carried(workload, Policy(), smoke), _carried(workload, Policy(name="fcfs"), smoke)
        ratio = slack.devices / max(1.0, fcfs.devices)
        figure = f"{ratio:.2f} times; {_figure(slack)}, {_figure(fcfs)}"
        rows.append(Row(f"slack against fcfs, all of {tau:g} tokens/s", figure, "0.9 times", ratio >= 0.9))
    return rows


def decisions(smoke: bool) -> list[Row]:
    """Microseconds of `Scheduler.next_batch` with 200 pending requests."""
    rows = []
    for policy in POLICIES:
        generator = np.random.default_rng(0)
        taken = []
        for _ in range(20 if smoke else 300):
            scheduler = Scheduler(TABLE_12, policy, guard_seconds=0.005)
            scheduler.warm_up()
            for key in range(200):
                scheduler.submit(
                    key, class_speed=float(generator.choice([2.0, 4.0, 6.0, 8.0])), expected_tokens=2.94, new_tokens=5,
                    cached_tokens=int(generator.integers(50, 800)), response_start_seconds=0.0,
                    tokens_done=int(generator.integers(0, 60)), iteration_start_seconds=9.8,
                )  # fmt: skip
            start = time.perf_counter()
            scheduler.next_batch(10.0)
            taken.append(time.perf_counter() - start)
        middle, high = np.quantile(taken, [0.5, 0.99])
        figure = f"{1e6 * middle:.0f} us (99 %: {1e6 * high:.0f} us)"
        rows.append(Row(f"{policy}, 200 pending", figure, "1 ms", bool(middle < 1e-3)))
    return rows


BENCHMARKS = (
    Benchmark("verification in the long run: speed of the simulator", speed),
    Benchmark("verification in the long run: mixed classes", mixed),
    Benchmark("verification in the long run: one class", single),
    Benchmark("verification in the long run: one decision", decisions),
)
