"""The ceiling on the devices that one verifier carries: by hand, against every policy, and from
below.
"""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from ceiling import ceiling  # type: ignore[import-not-found]  # benchmarks are no package

from specopt.instances.verification_batch.workload import mixed_classes
from specopt.models.errors import InvalidInput
from specopt.models.pass_time import VerificationTime
from specopt.models.verification_batch.workload import DraftPredictor, VerificationWorkload
from specopt.solvers.verification_batch.policies import POLICIES, Policy
from specopt.solvers.verification_batch.simulate import run_once

pytestmark = pytest.mark.nightly


def test_by_hand() -> None:
    """Tests that without randomness the bound is a response's work, and its batches' overheads,
    over its cycle.
    """
    steady = dataclasses.replace(
        mixed_classes(class_speeds=(4.0,)),
        prompt_sigma=0.0,
        response_sigma=0.0,
        jitter_seconds=0.0,
        acceptance_rates=np.ones(4),
    )
    weights = [3.314e-5 * 154 + 3.45e-8 * 154**2]
    for done in range(5, 100, 5):
        cached = 150 + done - 1
        weights.append(3.314e-5 * 5 + 3.45e-8 * (cached + 5) * 5 + 4.62e-6 * cached)
    allowed = 1.01 * 100 / 4.0
    shared = allowed - 20 * (4 / 50.0 + 0.02 + 1.486e-2)
    load = (sum(weights) + 1.486e-2 * sum(np.sqrt(weights)) ** 2 / shared) / (allowed + 2.0)
    assert ceiling(steady) == pytest.approx(1.0 / load, rel=1e-9)
    assert (
        ceiling(dataclasses.replace(steady, draft_tokens_per_second=3.0)) == 0.0
    )  # drafting alone takes too long


def drawn(seed: int) -> VerificationWorkload:
    """Return a random workload of a slow verifier, which carries few devices."""
    draw = np.random.default_rng(seed)
    slow = draw.uniform(5.0, 15.0)
    workload = mixed_classes(
        prompt_median_tokens=float(draw.uniform(30.0, 300.0)),
        acceptance_rate=float(draw.uniform(0.5, 0.9)),
        window=int(draw.integers(1, 8)),
        class_speeds=(1.0, *draw.uniform(1.0, 4.0, 2)),
        estimator=VerificationTime(
            seconds_per_new_token=3.314e-5 * slow,
            seconds_per_interaction=3.450e-8 * slow,
            seconds_per_cached_token=4.620e-6 * slow,
            overhead_seconds=1.486e-2 * draw.uniform(1.0, 8.0),
        ),
        predictor=DraftPredictor(false_accept=0.3, false_reject=0.1, false_accept_after=0.4)
        if seed % 2
        else None,
    )
    room = None if seed % 3 == 0 else 262144.0 * float(draw.uniform(300.0, 3000.0))
    return dataclasses.replace(
        workload,
        cache_memory_bytes=room,
        prefix_cache=seed % 4 != 2,
        response_median_tokens=50.0,
        time_noise=0.2,
    )


@pytest.mark.parametrize("seed", range(8))
def test_no_policy_exceeds_it(seed: int) -> None:
    """Tests that no policy carries the next device, whatever the cache, the windows, the drafting
    and the noise.
    """
    workload = drawn(seed)
    devices = int(ceiling(workload)) + 1
    assert devices > 1
    evicting = Policy(name="fcfs", eviction="due-last")
    for policy in (
        *(name for name in POLICIES if name != "algorithm-1"),
        evicting,
        Policy(defer_seconds=1.0),
    ):
        run = run_once(
            workload, policy, devices=devices, seed=seed, seconds=1200.0, warm_up_seconds=300.0
        )
        assert run.violation_rate > 0.01, policy


@pytest.mark.parametrize("speeds", [(2.0,), (2.0, 4.0, 6.0, 8.0)])
def test_most_of_it_is_reached(speeds: tuple[float, ...]) -> None:
    """Tests that `slack` carries more than three quarters of it with an ample cache: the bound says
    something.
    """
    workload = mixed_classes(class_speeds=speeds)
    devices = int(0.78 * ceiling(workload))
    assert run_once(workload, devices=devices, seconds=120.0).violation_rate <= 0.01


def test_what_helps_raises_it() -> None:
    """Tests that room, a cache and lateness never lower it, that ample room is no room to count,
    and who is refused.
    """
    workload = mixed_classes()
    rooms = [
        ceiling(dataclasses.replace(workload, cache_memory_bytes=1e9 * g))
        for g in (0.0, 1.0, 3.0, 20.0)
    ]
    assert rooms == sorted(rooms)
    assert rooms[0] < 0.2 * rooms[3]
    assert rooms[3] == ceiling(workload) < ceiling(workload, late_share=0.1)
    assert ceiling(mixed_classes(prefix_cache=False)) <= rooms[0]
    with pytest.raises(InvalidInput, match="late_share"):
        ceiling(workload, late_share=-0.1)
