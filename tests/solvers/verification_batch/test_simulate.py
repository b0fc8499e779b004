"""The long run of verification: conservation laws, closed forms, and the order of the policies."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from specopt.instances.verification_batch.workload import mixed_classes
from specopt.models.errors import InvalidInput
from specopt.models.verification_batch.workload import DraftPredictor, VerificationWorkload
from specopt.solvers.verification_batch.policies import POLICIES, Policy, PolicyName
from specopt.solvers.verification_batch.simulate import capacity, device_classes, run_once, simulate

WORKLOAD = mixed_classes()


def steady(**changes: object) -> VerificationWorkload:
    """A workload without randomness: one length of prompt and response, no jitter, all drafts
    accepted.
    """
    fixed: dict[str, object] = {
        "prompt_sigma": 0.0,
        "response_sigma": 0.0,
        "jitter_seconds": 0.0,
        "think_seconds": 0.0,
        "acceptance_rates": np.ones(4),
    }
    return dataclasses.replace(WORKLOAD, **(fixed | changes))  # type: ignore[arg-type]


def batch_seconds(new: int, cached: int) -> float:
    """Time of a batch of one request by the paper's four coefficients (Table 12)."""
    return 1.486e-2 + 3.314e-5 * new + 3.45e-8 * (cached + new) * new + 4.62e-6 * cached


def test_one_device_alone() -> None:
    """Tests that one device keeps its closed form: first verification cold, others warm, messages
    late by jitter.
    """
    workload = steady()
    expected = 20 * (4 / 50.0 + 0.020) + batch_seconds(154, 0)
    for done in range(5, 100, 5):
        expected += batch_seconds(5, 150 + done - 1)
    run = run_once(workload, devices=1, seconds=30.0, warm_up_seconds=5.0)
    assert run.responses["tokens"].tolist() == [100.0] * len(run.responses)
    assert len(run.responses) >= 10
    assert run.responses["seconds"] == pytest.approx(expected, rel=1e-9)
    late = run_once(steady(jitter_seconds=0.01), devices=1, seconds=30.0, warm_up_seconds=5.0)
    assert late.responses["seconds"].mean() == pytest.approx(expected + 2 * 20 * 0.01, rel=0.05)


def test_spare_capacity_is_spent() -> None:
    """Tests that no class gets less than 0.95 of the speed under `fcfs` while that leaves the
    verifier 20 % idle.
    """
    for speeds, devices in (((2.0, 4.0, 6.0, 8.0), 8), ((1.0, 16.0), 7)):
        workload = mixed_classes(class_speeds=speeds)
        pairs = [
            [
                run_once(workload, name, devices=devices, seed=seed, seconds=60.0)
                for seed in range(20)
            ]
            for name in ("fcfs", "slack")
        ]
        assert 0.6 < np.mean([run.busy_share for run in pairs[0]]) < 0.8
        fcfs, slack = (np.mean([run.class_mean_speed for run in runs], axis=0) for runs in pairs)
        assert (slack >= 0.95 * fcfs).all()


def test_one_device_without_cache() -> None:
    """Tests that without a prefix cache every verification computes the whole prefix."""
    workload = steady(prefix_cache=False)
    expected = sum(4 / 50.0 + 0.020 + batch_seconds(154 + done, 0) for done in range(0, 100, 5))
    run = run_once(workload, "fcfs", devices=1, seconds=30.0, warm_up_seconds=5.0)
    assert run.responses["seconds"] == pytest.approx(expected, rel=1e-9)
    assert run.cold_share == 1.0


def test_one_device_served_centrally() -> None:
    """Tests that centralised serving of one device is the prompt, then one token per batch, and the
    network twice.
    """
    workload = steady()
    expected = (
        0.020
        + batch_seconds(150, 0)
        + sum(batch_seconds(1, 150 + done - 1) for done in range(1, 100))
    )
    run = run_once(workload, "fcfs", devices=1, seconds=30.0, warm_up_seconds=5.0, centralised=True)
    assert run.responses["seconds"] == pytest.approx(expected, rel=1e-9)


def test_a_cache_without_room_is_no_cache() -> None:
    """Tests that a prefix cache of no bytes gives the very run of a verifier without one."""
    without = run_once(dataclasses.replace(WORKLOAD, prefix_cache=False), devices=15, seconds=20.0)
    empty = run_once(
        dataclasses.replace(WORKLOAD, cache_memory_bytes=0.0), devices=15, seconds=20.0
    )
    assert np.array_equal(without.responses, empty.responses)
    little = dataclasses.replace(WORKLOAD, cache_memory_bytes=5 * 300 * 262144.0)
    shares = [
        run_once(little, policy, devices=15, seconds=20.0).cold_share
        for policy in ("slack", "fcfs")
    ]
    assert 0.03 < shares[0] < shares[1] < 1.0


@pytest.mark.parametrize("policy", [policy for policy in POLICIES if policy != "algorithm-1"])
def test_conservation(policy: PolicyName) -> None:
    """Tests that busy time, tokens, batches and violations add up under any policy."""
    run = run_once(
        WORKLOAD, policy, devices=120, seconds=30.0, warm_up_seconds=10.0, events=200_000
    )
    events, responses = run.events, run.responses
    assert len(events) == run.iterations.sum()
    batches, first = np.unique(events["batch"], return_index=True)
    starts, seconds = events["start"][first], events["seconds"][first]
    assert len(batches) == run.batches
    assert (starts[1:] >= (starts + seconds)[:-1] - 1e-9).all()  # one batch at a time
    assert run.busy_share == pytest.approx(seconds.sum() / 30.0)
    assert run.busy_share <= 1.0 + seconds.max() / 30.0
    assert (events["queued"] >= -1e-12).all()
    assert (
        events["late"].sum()
        == run.iteration_violations.sum()
        == (events["start"] + events["seconds"] > events["deadline"]).sum()
    )
    assert (run.compute_dominant <= run.iteration_violations).all()
    late = responses["speed"] < run.class_speeds[responses["device_class"]]
    assert late.sum() == run.class_violations.sum()
    assert len(responses) == run.class_responses.sum()
    assert responses["speed"] == pytest.approx(responses["tokens"] / responses["seconds"])
    assert run.goodput_on_time <= run.goodput
    assert 5.0 * run.iterations.sum() / 30.0 > run.goodput


def test_acceptance_by_position() -> None:
    """Tests that an iteration yields the expected tokens, with acceptance rates that differ by
    position.
    """
    workload = dataclasses.replace(WORKLOAD, acceptance_rates=np.array([0.9, 0.5, 0.7]))
    run = run_once(workload, devices=50, seconds=200.0)
    assert workload.expected_tokens[-1] == pytest.approx(1 + 0.9 + 0.45 + 0.315)
    per_iteration = run.goodput * 200.0 / run.iterations.sum()
    assert per_iteration == pytest.approx(
        workload.expected_tokens[-1], rel=0.02
    )  # the last window is cut


def test_tokens_with_a_predictor() -> None:
    """Tests that the expected tokens of predicted windows match drafts drawn by hand, and that less
    is wasted.
    """
    predictor = DraftPredictor(false_accept=0.4, false_reject=0.2, false_accept_after=0.6)
    workload = mixed_classes(predictor=predictor)
    generator = np.random.default_rng(0)
    sums, counts = np.zeros(5), np.zeros(5)
    for _ in range(40_000):
        accepted, sent, intact = 0, 0, True
        for _ in range(4):
            right = generator.random() < 0.73
            chance = 0.6 if not intact else 0.8 if right else 0.4
            if generator.random() >= chance:
                break
            sent += 1
            intact = intact and right
            accepted += intact
        sums[sent] += accepted + 1
        counts[sent] += 1
    assert workload.expected_tokens == pytest.approx(sums / counts, rel=0.03)
    predicted = run_once(workload, devices=50, seconds=60.0)
    assert predicted.wasted_share < run_once(WORKLOAD, devices=50, seconds=60.0).wasted_share


def test_policies_meet_the_same_responses() -> None:
    """Tests that the length of a device's first response does not depend on the policy."""
    runs = [
        run_once(WORKLOAD, policy, devices=60, seconds=200.0, warm_up_seconds=0.0)
        for policy in ("fcfs", "slack")
    ]
    tokens = [sorted(run.responses["tokens"][run.responses["start"] == 0.0]) for run in runs]
    assert tokens[0] == tokens[1]
    assert len(tokens[0]) == 60


def test_classes_keep_their_shares() -> None:
    """Tests that devices are dealt to classes by their shares, for any number of devices."""
    workload = mixed_classes(class_shares=(0.5, 0.25, 0.25, 0.0))
    for devices in (4, 21, 100):
        counts = np.bincount(device_classes(workload, devices), minlength=4)
        assert counts == pytest.approx(np.array([0.5, 0.25, 0.25, 0.0]) * devices, abs=2.0)


def test_algorithm_1_as_printed_stalls() -> None:
    """Tests that the printed algorithm stops for ever once a critical request is late, and that the
    run says so.
    """
    run = run_once(WORKLOAD, "algorithm-1", devices=300, seconds=60.0)
    assert run.stalled
    assert run.violation_rate > 0.5
    assert not run_once(WORKLOAD, "algorithm-1-drop", devices=300, seconds=60.0).stalled


def test_batches_keep_the_memory() -> None:
    """Tests that no batch holds more than the memory has room for."""
    room = 8192 + 4096 + 4
    workload = dataclasses.replace(
        mixed_classes(prompt_median_tokens=600.0),
        batch_memory_bytes=room * 262144.0,
        response_sigma=0.0,
    )
    run = run_once(workload, "fcfs", devices=200, seconds=20.0, events=50_000)
    sizes = np.unique(run.events["batch"], return_counts=True)[1]
    unlimited = run_once(
        dataclasses.replace(workload, batch_memory_bytes=None),
        "fcfs",
        devices=200,
        seconds=20.0,
        events=50_000,
    )
    assert sizes.max() * 150 <= room
    assert sizes.max() < np.unique(unlimited.events["batch"], return_counts=True)[1].max()


@pytest.mark.parametrize(("gigabytes", "factor"), [(9.0, 1.5), (12.0, 1.25)])
def test_slack_carries_more_with_a_small_cache(gigabytes: float, factor: float) -> None:
    """Tests that `slack` carries so much more than FCFS, with either eviction, where the cache
    cannot hold all.
    """
    workload = dataclasses.replace(WORKLOAD, cache_memory_bytes=gigabytes * 1e9)
    evicting = Policy(name="fcfs", eviction="due-last")
    best, fcfs = (
        capacity(workload, policy, seeds=[30], seconds=60.0).mean for policy in ("slack", evicting)
    )
    assert best >= factor * fcfs


def test_order_of_the_policies() -> None:
    """Tests that `slack` carries a load that none of its rivals does."""
    rates = {
        policy: run_once(WORKLOAD, policy, devices=300, seconds=120.0).violation_rate
        for policy in POLICIES
    }
    assert rates["slack"] <= 0.01
    assert 0.02 < rates["edf"] < 0.1 < min(rates[p] for p in POLICIES if p not in ("slack", "edf"))


def test_capacity_brackets() -> None:
    """Tests that a capacity is carried, and that a little more is not."""
    found = capacity(WORKLOAD, "fcfs", seeds=[0, 1], seconds=60.0)
    for seed, devices in enumerate(map(int, found.samples)):
        assert (
            run_once(WORKLOAD, "fcfs", devices=devices, seed=seed, seconds=60.0).violation_rate
            <= 0.01
        )
        assert (
            run_once(
                WORKLOAD, "fcfs", devices=int(devices * 1.1), seed=seed, seconds=60.0
            ).violation_rate
            > 0.01
        )
    low, high = found.confidence_interval
    assert low <= found.mean <= high
    assert capacity(WORKLOAD, "fcfs", seeds=[0], seconds=20.0, most=16).samples == [16]


def test_replications() -> None:
    """Tests that replications are runs of consecutive seeds, and the estimates their means."""
    found = simulate(WORKLOAD, "fcfs", devices=60, seconds=20.0, seed=3, replications=3)
    alone = [run_once(WORKLOAD, "fcfs", devices=60, seconds=20.0, seed=seed) for seed in (3, 4, 5)]
    assert [run.goodput for run in found.runs] == [run.goodput for run in alone]
    assert 0.0 < sum(run.seconds for run in found.runs) <= found.seconds
    assert found.mean == np.mean([run.violation_rate for run in alone])
    assert found.estimates["goodput_tokens_per_second"].mean == pytest.approx(
        np.mean([run.goodput for run in alone])
    )
    assert (
        found.estimates["violation_rate_of_class_8"].samples[1] == alone[1].class_violation_rate[3]
    )


@pytest.mark.nightly
@pytest.mark.slow
@pytest.mark.parametrize("prompt", [150.0, 300.0])
def test_slack_carries_more_in_mixed_classes(prompt: float) -> None:
    """Tests that `slack` carries 1.4 times FCFS and 1.5 times Algorithm 1 at 1 % violations, on
    seeds of their own.
    """
    workload = mixed_classes(prompt_median_tokens=prompt)
    slack, fcfs, algorithm_1, set_aside = (
        capacity(workload, policy, seeds=[20, 21], seconds=120.0).mean
        for policy in (
            "slack",
            "fcfs",
            "algorithm-1-drop",
            Policy(name="algorithm-1-drop", fill_with_late=False),
        )
    )
    assert slack >= 1.4 * fcfs
    assert slack >= 1.5 * max(algorithm_1, set_aside)


@pytest.mark.slow
@pytest.mark.parametrize("speeds", [(2.0,), (8.0,), (2.0, 14.0), (1.0, 16.0)])
def test_slack_follows_the_classes(speeds: tuple[float, ...]) -> None:
    """Tests that `slack`, with nothing set, carries more than FCFS and EDF whatever the classes."""
    workload = mixed_classes(class_speeds=speeds)
    policies: tuple[PolicyName, ...] = ("slack", "fcfs", "edf")
    slack, fcfs, edf = (
        capacity(workload, policy, seeds=[20], seconds=60.0).mean for policy in policies
    )
    assert slack >= 1.1 * max(fcfs, edf)


def test_arguments_are_checked() -> None:
    """Tests that bad arguments are named."""
    with pytest.raises(InvalidInput, match="devices: expected an integer from 1"):
        run_once(WORKLOAD, devices=0)
    with pytest.raises(InvalidInput, match="policy: expected one of fcfs"):
        Policy(name="lifo")  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="seeds: expected at least one"):
        capacity(WORKLOAD, seeds=[])
    with pytest.raises(InvalidInput, match="class_shares: expected a sum of 1"):
        mixed_classes(class_shares=(0.5, 0.1, 0.1, 0.1))
    with pytest.raises(InvalidInput, match="batch_memory_bytes: expected at least"):
        dataclasses.replace(WORKLOAD, batch_memory_bytes=1.0)
