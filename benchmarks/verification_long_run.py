"""Verification batching in the long run: events per minute, devices served by every policy, and the
time of a decision.
"""

from __future__ import annotations

import csv
import dataclasses
import io
import math
import time
from pathlib import Path
from typing import Any

import numpy as np
from ceiling import ceiling
from table import Benchmark, Row

from specopt.instances.verification_batch.workload import TABLE_12, mixed_classes
from specopt.models.files import write_text
from specopt.models.verification_batch.workload import VerificationWorkload
from specopt.online import VerificationScheduler
from specopt.solvers.simulation import Estimate
from specopt.solvers.verification_batch.policies import POLICIES, Policy
from specopt.solvers.verification_batch.simulate import Belief, capacity, run_once

ROUNDS = (
    ("prompts of 150 tokens", mixed_classes()),
    ("prompts of 300 tokens", mixed_classes(prompt_median_tokens=300.0)),
    ("acceptance 0.55", mixed_classes(acceptance_rate=0.55)),
    ("acceptance 0.85", mixed_classes(acceptance_rate=0.85)),
)
CACHES = (
    # prompts, acceptance, classes, GB of cache, target
    (150.0, 0.73, (2.0, 4.0, 6.0, 8.0), None, 1.7),
    (150.0, 0.73, (2.0, 4.0, 6.0, 8.0), 20.0, 1.55),
    (150.0, 0.73, (2.0, 4.0, 6.0, 8.0), 12.0, 1.3),
    (150.0, 0.73, (2.0, 4.0, 6.0, 8.0), 9.0, 1.25),
    (150.0, 0.73, (2.0, 4.0, 6.0, 8.0), 15.0, 1.0),
    (150.0, 0.73, (2.0, 4.0, 6.0, 8.0), 5.0, 1.0),
    (400.0, 0.65, (2.0, 4.0, 6.0, 8.0), 14.0, 1.0),
    (220.0, 0.8, (3.0, 5.0), 10.0, 1.0),
    (90.0, 0.73, (2.0, 10.0), 7.0, 1.0),
)
KNOBS = (
    ("1 token/s", mixed_classes(class_speeds=(1.0,))),
    ("2 tokens/s", mixed_classes(class_speeds=(2.0,))),
    ("8 tokens/s", mixed_classes(class_speeds=(8.0,))),
    ("2 and 14 tokens/s", mixed_classes(class_speeds=(2.0, 14.0))),
    ("1 and 16 tokens/s", mixed_classes(class_speeds=(1.0, 16.0))),
    ("1, 4 and 16 tokens/s", mixed_classes(class_speeds=(1.0, 4.0, 16.0))),
    ("2-8 tokens/s", mixed_classes()),
    (
        "2-8, drafting 25 tokens/s",
        dataclasses.replace(mixed_classes(), draft_tokens_per_second=25.0),
    ),
    (
        "2-8, drafting 200 tokens/s",
        dataclasses.replace(mixed_classes(), draft_tokens_per_second=200.0),
    ),
    ("2-8, windows of 1", mixed_classes(window=1)),
    ("2-8, windows of 8", mixed_classes(window=8)),
    ("2-8, thinking 0.5 s", dataclasses.replace(mixed_classes(), think_seconds=0.5)),
    ("2-8, thinking 10 s", dataclasses.replace(mixed_classes(), think_seconds=10.0)),
)
FIXED = tuple(
    Policy(defer_seconds=defer, cap_seconds=cap)
    for defer in (0.7, 1.2, 2.0, 4.0)
    for cap in (0.15, math.inf)
)
LOADS = (5, 10, 20, 30, 40, 50, 60, 70, 80, 90, 100, 110, 120)
LOAD_POLICIES = ("slack", "fcfs", "edf")
LOAD_RECORD = Path(__file__).parents[1] / "docs" / "recorded" / "verification-load.csv"
SINGLE = tuple((speed, mixed_classes(class_speeds=(speed,))) for speed in (2.0, 4.0, 6.0, 8.0))


def _carried(
    workload: VerificationWorkload, policy: Policy, smoke: bool, centralised: bool = False
) -> Estimate:
    seeds, seconds = (range(50, 51), 20.0) if smoke else (range(50, 55), 240.0)
    most = 16 if smoke else 4096
    return capacity(
        workload, policy, seeds=seeds, seconds=seconds, centralised=centralised, most=most
    )


def _figure(found: Estimate) -> str:
    low, high = found.confidence_interval
    return f"{found.mean:.0f} devices ({low:.0f}-{high:.0f})"


def _with_share(found: Estimate, workload: VerificationWorkload) -> str:
    most = ceiling(workload)
    return f"{_figure(found)}, {found.mean / most:.0%} of the ceiling of {most:.0f}"


def speed(smoke: bool) -> list[Row]:
    """Measure simulated verifications per minute on one core, by policy, with 300 devices in mixed
    classes.
    """
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
    """Measure the devices served at 1 % violations in mixed classes with an ample cache, with 95 %
    intervals over five seeds.
    """
    rows = []
    for name, workload in ROUNDS[: 1 if smoke else None]:
        slack = _carried(workload, Policy(), smoke)
        rows.append(Row(f"{name}: slack", _with_share(slack, workload)))
        for label, policy, target in (
            ("fcfs", Policy(name="fcfs"), 1.4),
            ("edf, batches capped alike", Policy(name="edf"), 0.0),
            ("algorithm-1-drop, late requests fill up", Policy(name="algorithm-1-drop"), 1.5),
            (
                "algorithm-1-drop, late set aside",
                Policy(name="algorithm-1-drop", fill_with_late=False),
                1.5,
            ),
            ("per-epoch", Policy(name="per-epoch"), 0.0),
        ):
            rival = _carried(workload, policy, smoke)
            ratio = slack.mean / max(1.0, rival.mean)
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


def bounded_cache(smoke: bool) -> list[Row]:
    """Measure the devices served at 1 % violations with a cache that cannot hold all prefixes. The
    baselines drop the least recently used prefix.

    Reports means over five seeds, and the worst of them. No parameter was tuned on these seeds, nor
    on any row after the fourth.
    """
    rows = []
    for prompt, rate, speeds, gigabytes, target in CACHES[: 1 if smoke else None]:
        workload = dataclasses.replace(
            mixed_classes(prompt_median_tokens=prompt, acceptance_rate=rate, class_speeds=speeds),
            cache_memory_bytes=None if gigabytes is None else 1e9 * gigabytes,
        )
        classes = "-".join(f"{speed:g}" for speed in speeds)
        name = (
            f"{'ample' if gigabytes is None else f'{gigabytes:g} GB'}, prompts of {prompt:g}, alpha"
            f" {rate:g}, {classes}"
        )
        slack = _carried(workload, Policy(), smoke)
        rows.append(Row(f"{name}: slack", _with_share(slack, workload)))
        for label, policy, goal in (
            ("fcfs", Policy(name="fcfs"), target),
            ("edf", Policy(name="edf"), 0.98),
            ("fcfs that drops the prefix due last", Policy(name="fcfs", eviction="due-last"), 0.0),
        ):
            rival = _carried(workload, policy, smoke)
            factors = [a / max(1, b) for a, b in zip(slack.samples, rival.samples, strict=True)]
            factor = slack.mean / max(1.0, rival.mean)
            figure = f"{factor:.2f} times (worst seed {min(factors):.2f}); {_figure(rival)}"
            rows.append(
                Row(
                    f"{name}: slack against {label}",
                    figure,
                    f"{goal:g} times" if goal else "",
                    factor >= goal if goal else None,
                )
            )
    return rows


def load(smoke: bool) -> list[Row]:
    """Measure tokens per second and the wait for a verdict (queue and batch), from an idle verifier
    to an overloaded one.

    Reports means over 20 seeds, which are the same for all policies. Capacity is the number of
    devices that `slack` serves with at most 1 % late responses.
    """
    workload, seeds, seconds = (
        mixed_classes(),
        range(100, 101 if smoke else 120),
        10.0 if smoke else 120.0,
    )
    most = _carried(workload, Policy(), smoke).mean
    rows, table = (
        [],
        [
            (
                "policy",
                "load",
                "devices",
                "tokens_per_second",
                "p50_seconds",
                "p99_seconds",
                "too_late",
            )
        ],
    )
    for share in LOADS[:2] if smoke else LOADS:
        devices, figures = max(1, round(0.01 * share * most)), []
        for policy in LOAD_POLICIES:
            runs = [
                run_once(
                    workload, policy, devices=devices, seed=seed, seconds=seconds, events=10**5
                )
                for seed in seeds
            ]
            waits = np.concatenate([run.events["queued"] + run.events["seconds"] for run in runs])
            speed, late = (
                float(np.mean([getattr(run, of) for run in runs]))
                for of in ("goodput", "violation_rate")
            )
            middle, high = np.quantile(waits, [0.5, 0.99])
            table.append(
                (
                    policy,
                    share / 100,
                    devices,
                    f"{speed:.1f}",
                    f"{middle:.4f}",
                    f"{high:.4f}",
                    f"{late:.4f}",
                )
            )
            figures.append(
                f"{policy} {speed:.0f} tokens/s, {middle:.3f} s ({high:.3f} s), {late:.1%} late"
            )
        rows.append(Row(f"{share} % of capacity, {devices} devices: p50 (p99)", "; ".join(figures)))
    if not smoke:
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows(table)
        write_text(LOAD_RECORD, text.getvalue())
    least = min(_against_fcfs(named, seeds, seconds) for _, named in KNOBS[: 1 if smoke else None])
    rows.append(
        Row(
            f"{len(KNOBS)} workloads, fcfs below 80 % busy: least speed of a class over that of"
            " fcfs",
            f"{least:.3f} times",
            "0.95 times",
            least >= 0.95,
        )
    )
    slow = {
        policy: (
            450
            * float(
                np.mean(
                    [
                        run_once(
                            mixed_classes(prompt_median_tokens=70.0),
                            policy,
                            devices=450,
                            seed=seed,
                            seconds=seconds,
                        ).violation_rate
                        for seed in seeds
                    ]
                )
            )
        )
        for policy in LOAD_POLICIES
    }
    figure = "; ".join(f"{policy} {count:.1f}" for policy, count in slow.items())
    rows.append(
        Row(
            "450 devices, prompts of 70 tokens: too slow of 450",
            figure,
            "slack 5",
            slow["slack"] <= 5.0,
        )
    )
    return rows


def _against_fcfs(workload: VerificationWorkload, seeds: range, seconds: float) -> float:
    """Return the minimum ratio of the mean speed of a class under `slack` to that under `fcfs`,
    while `fcfs` is less than 80 % busy.
    """
    least = math.inf
    for devices in range(len(workload.class_speeds), 17):
        runs = {
            policy: [
                run_once(workload, policy, devices=devices, seed=seed, seconds=seconds)
                for seed in seeds
            ]
            for policy in ("fcfs", "slack")
        }
        if np.mean([run.busy_share for run in runs["fcfs"]]) >= 0.8:
            break
        speeds = {
            policy: np.mean([run.class_mean_speed for run in each], axis=0)
            for policy, each in runs.items()
        }
        there = speeds["fcfs"] > 0.0
        least = min(least, float((speeds["slack"][there] / speeds["fcfs"][there]).min()))
    return least


def nothing_to_set(smoke: bool) -> list[Row]:
    """Compare the devices served by `slack` without tuning with those of the better baseline and of
    the best of 8 fixed deferrals and caps.
    """
    rows = []
    for name, workload in KNOBS[: 1 if smoke else None]:
        seeds, seconds = (range(60, 61), 20.0) if smoke else (range(60, 62), 240.0)

        slack, fcfs, edf, *fixed_knobs = (
            capacity(
                workload, policy, seeds=seeds, seconds=seconds, most=16 if smoke else 4096
            ).mean
            for policy in (
                Policy(),
                Policy(name="fcfs"),
                Policy(name="edf"),
                *FIXED[: 1 if smoke else None],
            )
        )
        rival, fixed = max(1.0, fcfs, edf), max(1.0, *fixed_knobs)
        rows.append(
            Row(
                f"{name}: slack against the better of fcfs and edf",
                f"{slack / rival:.2f} times; {slack:.0f} devices, "
                f"{slack / ceiling(workload):.0%} of the ceiling",
                "0.98 times",
                slack >= 0.98 * rival,
            )
        )
        rows.append(
            Row(
                f"{name}: slack against the best fixed knobs",
                f"{slack / fixed:.3f} times",
                "0.97 times",
                slack >= 0.97 * fixed,
            )
        )
    return rows


def wrong_estimates(smoke: bool) -> list[Row]:
    """Measure the devices served at 1 % violations by policies that begin with estimates 30 % off
    and learn from every batch.

    They are compared with a policy that always knows the times. Batch times vary by 10 %, and are
    1.3 times as long in the second half.
    """
    workload = dataclasses.replace(mixed_classes(), time_noise=0.1)
    seeds, seconds = (range(70, 71), 20.0) if smoke else (range(70, 73), 240.0)
    rows = []
    for name in ("slack", "edf", "algorithm-1-drop", "per-epoch")[: 1 if smoke else None]:

        def carried(name: Any = name, **belief: Any) -> float:
            return capacity(
                workload,
                name,
                seeds=seeds,
                seconds=seconds,
                most=16 if smoke else 4096,
                belief=Belief(slowdown=1.3, **belief),
            ).mean

        known = max(1.0, carried())
        shares = {calibrated: [] for calibrated in (True, False)}
        for slope, overhead in ((1.3, 1.3), (0.7, 0.7), (1.3, 0.7), (0.7, 1.3)):
            believed = TABLE_12.scaled(slope, overhead)
            for calibrated, found in shares.items():
                found.append(carried(estimator=believed, calibrated=calibrated) / known)
        rows.append(
            Row(
                f"{name}, 10 % noise, then 1.3 times slower: share of the devices of who knows,"
                " worst of 4 starts",
                f"{min(shares[True]):.3f} of {known:.0f} devices (never calibrated"
                f" {min(shares[False]):.3f})",
                "0.97",
                min(shares[True]) >= 0.97,
            )
        )
    return rows


def single(smoke: bool) -> list[Row]:
    """Measure the devices served in a single class with an ample cache."""
    rows = []
    for tau, workload in SINGLE[: 1 if smoke else None]:
        slack, fcfs = (
            _carried(workload, Policy(), smoke),
            _carried(workload, Policy(name="fcfs"), smoke),
        )
        ratio = slack.mean / max(1.0, fcfs.mean)
        figure = f"{ratio:.2f} times; {_figure(slack)}, {_figure(fcfs)}"
        rows.append(
            Row(f"slack against fcfs, all of {tau:g} tokens/s", figure, "0.9 times", ratio >= 0.9)
        )
    return rows


def decisions(smoke: bool) -> list[Row]:
    """Measure the microseconds of `VerificationScheduler.next_batch` with 200 pending requests."""
    rows = []
    for policy in POLICIES:
        generator = np.random.default_rng(0)
        taken = []
        for _ in range(20 if smoke else 300):
            scheduler = VerificationScheduler(TABLE_12, policy, guard_seconds=0.005)
            scheduler.warm_up()
            for key in range(200):
                scheduler.submit(
                    key,
                    class_speed=float(generator.choice([2.0, 4.0, 6.0, 8.0])),
                    expected_tokens=2.94,
                    new_tokens=5,
                    cached_tokens=int(generator.integers(50, 800)),
                    response_start_seconds=0.0,
                    tokens_done=int(generator.integers(0, 60)),
                    iteration_start_seconds=9.8,
                )
            start = time.process_time()
            scheduler.next_batch(10.0)
            taken.append(time.process_time() - start)
        middle, high = np.quantile(taken, [0.5, 0.99])
        figure = f"{1e6 * middle:.0f} us (99 %: {1e6 * high:.0f} us)"
        rows.append(Row(f"{policy}, 200 pending", figure, "1 ms", bool(middle < 1e-3)))
    return rows


BENCHMARKS = (
    Benchmark("verification in the long run: speed of the simulator", speed),
    Benchmark("verification in the long run: mixed classes", mixed),
    Benchmark("verification in the long run: bounded cache", bounded_cache),
    Benchmark("verification in the long run: load", load),
    Benchmark("verification in the long run: nothing to set", nothing_to_set),
    Benchmark("verification in the long run: wrong estimates", wrong_estimates),
    Benchmark("verification in the long run: one class", single),
    Benchmark("verification in the long run: one decision", decisions),
)
