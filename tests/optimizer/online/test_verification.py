"""The scheduler that a server embeds: the simulator's decisions, one call at a time."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from helpers.growth import growth
from helpers.verification_requests import request

from specopt.instances.verification_batch.workload import TABLE_12, mixed_classes
from specopt.models.errors import InvalidInput
from specopt.models.pass_time import VerificationTime
from specopt.online import VerificationScheduler
from specopt.solvers.verification_batch.kernels import simulation as kernels
from specopt.solvers.verification_batch.policies import POLICIES, Policy, PolicyName
from specopt.solvers.verification_batch.simulate import run_once


def submit(scheduler: VerificationScheduler, key: int | str, **changes: float) -> None:
    """Submit a request of a response of class 4 that is on time."""
    on_time = {"tokens_done": 40, "iteration_start_seconds": 9.9}
    scheduler.submit(key, **request(**(on_time | changes)))


@pytest.mark.parametrize("policy", POLICIES)
def test_same_decisions_as_the_simulator(policy: PolicyName) -> None:
    """Tests that the scheduler, call by call, takes every batch of a simulation without
    randomness.
    """
    workload = dataclasses.replace(
        mixed_classes(),
        prompt_sigma=0.0,
        response_sigma=0.0,
        jitter_seconds=0.0,
        acceptance_rates=np.ones(4),
    )
    devices = 60
    pace = 0.02 if policy == "algorithm-1" else 1.0
    workload = dataclasses.replace(
        workload,
        think_seconds=0.0,
        response_median_tokens=4096.0,
        class_speeds=np.array([2.0 * pace, 4.0 * pace, 6.0 * pace, 8.0 * pace]),
    )
    if policy == "slack":  # slow classes: requests are deferred too
        workload = dataclasses.replace(workload, class_speeds=np.array([0.5, 1.0, 2.0, 9.0]))
    seconds = 50.0 if policy == "slack" else 10.0  # it idles
    run = run_once(
        workload, policy, devices=devices, seconds=seconds, warm_up_seconds=0.0, events=100_000
    )
    events = run.events
    assert len(events) > 2000
    scheduler = VerificationScheduler(
        workload.estimator,
        policy,
        guard_seconds=workload.guard_seconds,
        kv_bytes_per_token=workload.kv_bytes_per_token,
    )
    scheduler.warm_up()
    speeds = workload.class_speeds[
        np.floor(np.modf((np.arange(devices) + 0.5) * 0.6180339887498949)[0] * 4).astype(int)
    ]
    done, begun = np.zeros(devices), np.zeros(devices)
    arrivals = [(4 / 50.0 + 0.01, j) for j in range(devices)]
    clock, place = 0.0, 0
    while place < len(events):
        arrivals.sort()
        while arrivals and arrivals[0][0] <= clock:
            came, j = arrivals.pop(0)
            cold = done[j] == 0.0
            scheduler.submit(
                j,
                class_speed=float(speeds[j]),
                expected_tokens=5.0,
                new_tokens=154 if cold else 5,
                cached_tokens=0 if cold else int(150 + done[j] - 1),
                response_start_seconds=0.0,
                tokens_done=int(done[j]),
                iteration_start_seconds=float(begun[j]),
                return_seconds=0.01,
                arrival_seconds=float(came),
            )
        batch = scheduler.next_batch(clock)
        if not batch.keys:
            clock = min((came for came, _ in arrivals[:1]), default=math.inf)
            continue
        logged = events[place : place + len(batch.keys)]
        if len(logged) < len(batch.keys):
            break  # the last batch ends after the window
        assert logged["device"].tolist() == list(batch.keys)
        assert logged["start"] == pytest.approx(clock)
        assert logged["seconds"] == pytest.approx(batch.seconds)
        scheduler.complete(batch.keys)
        clock = float(logged["start"][0] + logged["seconds"][0])  # the simulator's own sum
        for key in batch.keys:
            j = int(key)
            done[j] += 5
            begun[j] = clock + 0.01
            arrivals.append((begun[j] + 4 * (1 / 50.0) + 0.01, j))
        place += len(batch.keys)


@pytest.mark.parametrize("policy", POLICIES)
def test_state_round_trip(policy: PolicyName) -> None:
    """Tests that a scheduler restored from its state, through JSON, decides as the one that it
    copies.
    """
    scheduler = VerificationScheduler(
        TABLE_12,
        Policy(name=policy, defer_seconds=1.0, give_up_seconds=math.inf),
        memory_bytes=1e9,
        kv_bytes_per_token=1e5,
    )
    for key in range(300):
        submit(
            scheduler,
            key,
            cached_tokens=50 + key % 7,
            tokens_done=30 + key % 11,
            iteration_start_seconds=9.0,
        )
    first = scheduler.next_batch(10.0)
    text = json.dumps(scheduler.state(), allow_nan=False)
    copy = VerificationScheduler.from_state(json.loads(text))
    elsewhere = VerificationScheduler.from_state(json.loads(text), shift_seconds=-8.0)
    assert copy.state() == scheduler.state()
    assert copy.running == scheduler.running == first.keys
    for one in (scheduler, copy, elsewhere):
        one.complete()
        submit(one, "late", response_start_seconds=-8.0 * (one is elsewhere))
        one.cancel(one.pending[0])
    later = scheduler.next_batch(10.25)
    assert copy.next_batch(10.25) == later
    assert elsewhere.next_batch(2.25) == later


def test_a_batch_of_before_the_restart_serves_no_later_request() -> None:
    """Tests that a key that was served, and is used again after a restart, is not taken for the one
    of before.
    """
    scheduler = VerificationScheduler(TABLE_12, "fcfs")
    submit(scheduler, "a")
    batch = scheduler.next_batch(10.0)
    scheduler.complete(batch)
    restarted = VerificationScheduler.from_state(json.loads(json.dumps(scheduler.state())))
    submit(restarted, "a")
    assert restarted.complete(batch) == ()
    assert restarted.pending == ("a",)


def test_urgent_first() -> None:
    """Tests that `slack` takes the response furthest behind first, then the one given up, then who
    could wait.
    """
    scheduler = VerificationScheduler(TABLE_12)
    submit(scheduler, "ahead", tokens_done=60)
    submit(scheduler, "given up", tokens_done=30)
    submit(scheduler, "on time", tokens_done=40)
    submit(scheduler, "behind", tokens_done=36)
    batch = scheduler.next_batch(10.0)
    assert batch.keys == ("behind", "on time", "given up", "ahead")
    assert batch.seconds == pytest.approx(TABLE_12.seconds(np.array([5] * 4), np.array([200] * 4)))


@pytest.mark.parametrize("error", [0.7, 1.3])
def test_a_wrong_estimator_changes_no_decision(error: float) -> None:
    """Tests that `slack` takes those in need in the same batches by an estimator that is 30 %
    wrong.
    """
    wrong = VerificationTime(
        **{name: error * value for name, value in dataclasses.asdict(TABLE_12).items()}
    )
    batches = []
    for estimator in (TABLE_12, wrong):
        scheduler = VerificationScheduler(
            estimator, kv_bytes_per_token=1e5, memory_bytes=1e9, cache_memory_bytes=9e8
        )
        for key in range(80):
            submit(scheduler, key, class_speed=4.0 + key % 2, tokens_done=33 + key % 9)
        batches.append(scheduler.next_batch(10.0))
    assert batches[0].keys == batches[1].keys
    assert 5 < len(batches[0].keys) < 75
    assert batches[0].drop == batches[1].drop
    assert batches[1].seconds == pytest.approx(error * batches[0].seconds)


def test_spare_capacity_is_spent_in_short_batches() -> None:
    """Tests that requests that could wait join, warm ones first, while a batch is a quarter of the
    tightest's time.
    """
    scheduler = VerificationScheduler(TABLE_12)
    for key in range(300):  # deadline 10.65: 0.65 s are allowed
        submit(
            scheduler,
            key,
            tokens_done=100,
            arrival_seconds=10.0,
            cached_tokens=0 if key % 2 else 200,
        )
    tight = scheduler.state()["tight_seconds"]
    assert 0.65 * math.exp(-0.1) < tight < 0.65 * math.exp(0.1)
    taken = len(scheduler.next_batch(10.0).keys)
    one = TABLE_12.seconds(np.array([5]), np.array([200])) - TABLE_12.overhead_seconds
    assert taken == int((0.25 * tight - TABLE_12.overhead_seconds) / one) < 150
    assert scheduler.running == tuple(range(0, 2 * taken, 2))
    scheduler.abandon()
    for key in range(taken):
        submit(scheduler, f"in need {key}", arrival_seconds=10.0)
    assert scheduler.next_batch(10.0).keys == tuple(f"in need {key}" for key in range(taken))
    scheduler.abandon()
    submit(scheduler, "tight", iteration_start_seconds=9.0, arrival_seconds=9.5)
    for key in range(
        60
    ):  # a class whose time is shorter is noticed; 1 % that come too late are not
        submit(scheduler, f"late {key}", tokens_done=100, arrival_seconds=20.0)
    assert scheduler.state()["tight_seconds"] < 0.01 * tight


def test_a_few_late_requests_change_little() -> None:
    """Tests that one request in 200 that comes too late does not make batches short."""
    scheduler = VerificationScheduler(TABLE_12)
    for key in range(1000):
        submit(scheduler, key, arrival_seconds=99.0 if key % 200 == 0 else 10.0)
    assert scheduler.state()["tight_seconds"] > 0.5 * 0.65


def test_batches_respect_memory() -> None:
    """Tests that a batch keeps within the memory, and that a request that never fits is refused."""
    scheduler = VerificationScheduler(TABLE_12, memory_bytes=1000.0, kv_bytes_per_token=1.0)
    for key in range(10):
        submit(scheduler, key)
    assert len(scheduler.next_batch(10.0).keys) == 4
    with pytest.raises(InvalidInput, match="within the memory"):
        submit(scheduler, "large", cached_tokens=1000)


def test_misuse_is_refused() -> None:
    """Tests that keys used twice, batches that overlap and completions of something else are
    refused.
    """
    scheduler = VerificationScheduler(TABLE_12)
    assert scheduler.next_batch(0.0).keys == ()
    submit(scheduler, 1)
    with pytest.raises(InvalidInput, match="is already in use"):
        submit(scheduler, 1)
    with pytest.raises(InvalidInput, match="class_speed: expected a number > 0"):
        submit(scheduler, 2, class_speed=0.0)
    submit(scheduler, 3)
    scheduler.cancel(3)
    assert scheduler.pending == (1,)
    scheduler.update(1, new_tokens=205, cached_tokens=0)
    batch = scheduler.next_batch(10.0)
    assert batch.seconds == pytest.approx(TABLE_12.seconds(np.array([205]), np.array([0])))
    with pytest.raises(InvalidInput, match="a batch is still running"):
        scheduler.next_batch(10.0)
    with pytest.raises(InvalidInput, match="keys of the running batch"):
        scheduler.complete([2])
    with pytest.raises(InvalidInput, match="waiting request"):
        scheduler.update(1, new_tokens=1, cached_tokens=0)
    assert scheduler.complete([1]) == (1,)
    submit(scheduler, 1)


@pytest.mark.parametrize("policy", POLICIES)
def test_a_decision_grows_with_what_waits(policy: PolicyName) -> None:
    """Tests that a decision grows no faster than the square of what is pending."""
    generator = np.random.default_rng(0)

    def pending(size: int) -> Callable[[], object]:
        schedulers = []
        for _ in range(7):
            one = VerificationScheduler(TABLE_12, policy, guard_seconds=0.005)
            for key in range(size):
                submit(
                    one,
                    key,
                    class_speed=float(generator.integers(2, 9)),
                    tokens_done=int(generator.integers(80)),
                )
            schedulers.append(one)
        return lambda: schedulers.pop().next_batch(10.0)

    VerificationScheduler(TABLE_12, policy).warm_up()
    assert (
        growth(pending(200), pending(3_200)) < 500
    )  # 256 where it is the square, 4,096 where it was the cube


# ---------------------------------------------------------------------------- in a server


def test_a_batch_that_fails_waits_again_in_its_place() -> None:
    """Tests that abandoned requests are pending again in the order of their arrival, and that
    nothing else changes.
    """
    scheduler = VerificationScheduler(TABLE_12, "fcfs", memory_bytes=1000.0, kv_bytes_per_token=1.0)
    for key in range(6):
        submit(scheduler, key)
    batch = scheduler.next_batch(10.0)
    submit(scheduler, 6)
    assert set(scheduler.abandon()) == set(batch.keys) == {0, 1, 2, 3}
    assert scheduler.pending == (0, 1, 2, 3, 4, 5, 6)
    assert scheduler.running == scheduler.abandon() == ()
    assert scheduler.next_batch(10.0) == batch


def test_cancelled_after_its_batch_failed() -> None:
    """Tests that a request that was put back can be cancelled or changed as if it had never run."""
    scheduler = VerificationScheduler(TABLE_12, "fcfs")
    for key in "abc":
        submit(scheduler, key)
    scheduler.next_batch(10.0)
    scheduler.abandon()
    scheduler.cancel("a")
    scheduler.update("b", new_tokens=50, cached_tokens=0)
    batch = scheduler.next_batch(10.0)
    assert batch.keys == ("b", "c")
    assert batch.seconds == pytest.approx(TABLE_12.seconds(np.array([50, 5]), np.array([0, 200])))


def test_a_batch_that_never_ends_wedges_nothing() -> None:
    """Tests that a lost batch waits again after its time, and that its late end serves nobody
    twice.
    """
    scheduler = VerificationScheduler(TABLE_12, "fcfs", lost_after_seconds=1.0)
    for key in "ab":
        submit(scheduler, key)
    lost = scheduler.next_batch(10.0)
    with pytest.raises(InvalidInput, match="a batch is still running"):
        scheduler.next_batch(10.0 + lost.seconds + 0.9)
    submit(scheduler, "c")
    again = scheduler.next_batch(10.0 + lost.seconds + 1.1)
    assert again.keys == ("a", "b", "c")
    assert scheduler.complete(lost) == ("a", "b")  # it was only late: its results count, once
    assert scheduler.running == ("c",)
    assert scheduler.complete(again) == ("c",)
    assert scheduler.complete(again) == scheduler.complete(lost) == ()


def test_cancelled_while_it_runs() -> None:
    """Tests that a running request can be cancelled and its key used again; the old batch does not
    serve it.
    """
    scheduler = VerificationScheduler(TABLE_12, "fcfs")
    for key in "ab":
        submit(scheduler, key)
    batch = scheduler.next_batch(10.0)
    scheduler.cancel("b")
    submit(scheduler, "b")
    assert scheduler.complete(batch) == ("a",)
    assert scheduler.pending == ("b",)
    only = scheduler.next_batch(11.0)
    scheduler.cancel("b")
    assert scheduler.running == ()
    assert scheduler.complete(only) == ()
    assert scheduler.next_batch(12.0).keys == ()


def test_a_batch_is_learned_from_once_and_only_while_it_runs() -> None:
    """Tests that seconds told of no batch, twice, or of one that failed or was lost leave the
    estimates alone.
    """
    scheduler = VerificationScheduler(TABLE_12, "fcfs", lost_after_seconds=1.0)
    for key in "ab":
        submit(scheduler, key)
    abandoned = scheduler.next_batch(10.0)
    scheduler.abandon()
    assert scheduler.complete(seconds=5.0) == ()
    assert scheduler.complete(abandoned, seconds=5.0) == ("a", "b")
    for key in "ab":
        submit(scheduler, key)
    lost = scheduler.next_batch(11.0)
    submit(scheduler, "c")
    batch = scheduler.next_batch(15.0)
    assert scheduler.complete(lost, seconds=5.0) == ("a", "b")
    assert scheduler.estimator == TABLE_12
    assert scheduler.complete(batch, seconds=5.0) == ("c",)
    learned = scheduler.state()
    assert scheduler.estimator != TABLE_12
    assert scheduler.complete(batch, seconds=5.0) == scheduler.complete(seconds=5.0) == ()
    assert scheduler.state() == learned


@pytest.mark.parametrize("policy", POLICIES)
def test_warming_up_calls_every_kernel(policy: PolicyName, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests that no call after `warm_up` meets a kernel for the first time, whatever policy, and
    cache or not.
    """
    declared = {name for name, each in vars(kernels).items() if hasattr(each, "declared")} - {
        "play"
    }
    of_cache = {"evict", "run_ahead"}
    assert of_cache < declared
    called: set[str] = set()

    def recording(name: str, kernel: Callable[..., Any]) -> Callable[..., Any]:
        def record(*arguments: Any) -> Any:
            called.add(name)
            return kernel(*arguments)

        return record

    for name in declared:
        monkeypatch.setattr(kernels, name, recording(name, getattr(kernels, name)))
    VerificationScheduler(TABLE_12, policy, guard_seconds=0.1).warm_up()
    assert called == declared - of_cache
    VerificationScheduler(
        TABLE_12, policy, kv_bytes_per_token=1.0, cache_memory_bytes=0.0
    ).warm_up()
    assert called == declared


def test_twenty_thousand_may_wait() -> None:
    """Tests that with 20,000 waiting, half of them cancelled, the others are decided on as in a
    fresh scheduler.

    And that a decision costs less than to sort what waits.
    """
    crowded = VerificationScheduler(TABLE_12)
    fresh = VerificationScheduler(TABLE_12)
    for one in (crowded, fresh):
        for key in range(20_000):
            if one is crowded or key % 2:
                submit(one, key, tokens_done=key % 60)
    for key in range(0, 20_000, 2):
        crowded.cancel(key)
    assert crowded.pending == fresh.pending
    assert crowded.next_batch(10.0) == fresh.next_batch(10.0)
    turns = iter(range(1, 100))

    def turn() -> None:
        crowded.complete()
        crowded.next_batch(10.0 + next(turns))

    waiting = [(key % 60, str(key)) for key in range(10_000)]
    assert growth(lambda: sorted(waiting), turn, tries=20) < 1


@pytest.mark.parametrize(("slope", "overhead"), [(1.3, 1.3), (0.7, 0.7), (1.3, 0.7), (0.7, 1.3)])
def test_estimates_follow_what_batches_take(slope: float, overhead: float) -> None:
    """Tests that estimates 30 % off are mended in 60 batches, with noise and stalls, and where it
    slows.
    """
    scheduler = VerificationScheduler(TABLE_12.scaled(slope, overhead), "fcfs")
    draw = np.random.default_rng(7)

    def serve(batches: int, factor: float) -> float:
        """Serve batches; return the mean error of the last twenty estimates."""
        errors = []
        for _ in range(batches):
            new = draw.integers(2, 9, 30)
            cached = draw.integers(50, 900, 30)
            new[:2], cached[:2] = 300, 0
            count = int(draw.integers(1, 31))
            for key in range(30 - count, 30):
                submit(scheduler, key, new_tokens=int(new[key]), cached_tokens=int(cached[key]))
            batch = scheduler.next_batch(10.0)
            truth = factor * TABLE_12.seconds(new[30 - count :], cached[30 - count :])
            errors.append(abs(batch.seconds / truth - 1.0))
            stall = 20.0 if draw.random() < 0.03 else 1.0
            scheduler.complete(batch, seconds=truth * stall * float(draw.lognormal(0.0, 0.05)))
        return float(np.mean(errors[-20:]))

    assert serve(60, 1.0) < 0.05
    scheduler = VerificationScheduler.from_state(
        json.loads(json.dumps(scheduler.state(), allow_nan=False))
    )
    assert serve(20, 1.0) < 0.05  # what was learned survives a restart
    assert serve(100, 1.5) < 0.05
    assert min(dataclasses.astuple(scheduler.estimator)) >= 0.0
    with pytest.raises(InvalidInput, match="seconds: expected"):
        scheduler.complete(seconds=0.0)
