"""What an operator does with schedulers: reads counters, changes settings, refuses."""

from __future__ import annotations

import dataclasses
import json
import re
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from helpers import verification_requests

from specopt.instances.continuous_serving.paper_1 import paper_1
from specopt.instances.verification_batch.workload import TABLE_12
from specopt.models.errors import InvalidInput
from specopt.online import (
    GoodputScheduler,
    PromptMonitor,
    Refused,
    ServingScheduler,
    VerificationScheduler,
)
from specopt.solvers.verification_batch.policies import Policy, PolicyName

ONE = TABLE_12.seconds(np.array([5]), np.array([200]))
EACH = ONE - TABLE_12.overhead_seconds
LINE = re.compile(r'(# (HELP|TYPE) \w+ .+|[a-z_]+\{(\w+="(\\.|[^"\\])*",?)*\} [0-9.e+-]+)')


def request(**changes: Any) -> dict[str, Any]:
    """A request of a response that has just begun, at 10, and is due at 10.75."""
    return verification_requests.request(10.0, **({"arrival_seconds": 10.0} | changes))


def numbers(text: str) -> dict[str, float]:
    """What an exposition says, by metric (without prefix) and labels; its form is checked."""
    found = {}
    for line in text.splitlines():
        assert LINE.fullmatch(line), line
        if not line.startswith("#"):
            name, value = line.rsplit(" ", 1)
            found[re.sub(r"^specopt_\w+?_", "", name).replace("{}", "")] = float(value)
    names = [line.split()[2] for line in text.splitlines() if line.startswith("# TYPE")]
    assert len(names) == len(set(names))
    return found


def test_counters_of_verification() -> None:
    """Tests that every number of a verification scheduler is reported, and survives a restart."""
    scheduler = VerificationScheduler(TABLE_12, lost_after_seconds=1.0)
    scheduler.submit("on time", **request())
    scheduler.submit("late", **request(response_start_seconds=0.0))
    scheduler.submit("cancelled", **request())
    scheduler.cancel("cancelled")
    scheduler.refuse_late = True
    with pytest.raises(Refused):
        scheduler.submit("refused", **request(response_start_seconds=0.0))
    scheduler.refuse_late = False
    scheduler.next_batch(10.0)
    scheduler.submit("waits", **request())
    assert (numbers(scheduler.metrics())["waiting"], numbers(scheduler.metrics())["running"]) == (
        1,
        2,
    )
    scheduler.abandon()
    scheduler.cancel("waits")
    scheduler.next_batch(10.0)
    scheduler.next_batch(12.0)  # the batch of 10.0 is lost
    scheduler.abandon()
    batch = scheduler.next_batch(10.5)
    expected = batch.seconds
    copy = VerificationScheduler.from_state(json.loads(json.dumps(scheduler.state())))
    for one in (scheduler, copy):
        one.complete(batch, seconds=0.2)
        found = numbers(one.metrics())
        assert found == {
            "waiting": 0,
            "running": 0,
            "served_total": 2,
            "late_total": 1,
            "refused_total": 1,
            "cancelled_total": 2,
            "put_back_total": 6,
            "evicted_total": 0,
            "batch_seconds_total": 0.2,
            "batch_error_seconds_total": pytest.approx(0.2 - expected),
        }
    assert next(iter(numbers(scheduler.metrics(pair='a"\\\n')))) == 'waiting{pair="a\\"\\\\\\n"}'


def test_prefixes_that_go_are_counted() -> None:
    """Tests that prefixes that leave the cache are counted, and that a cache may become smaller."""
    scheduler = VerificationScheduler(TABLE_12, kv_bytes_per_token=1.0, cache_memory_bytes=500.0)
    for key in range(2):
        scheduler.submit(key, **request())
    assert scheduler.complete(scheduler.next_batch(10.0)) == (0, 1)
    scheduler.cache_memory_bytes = 250.0
    scheduler.submit(2, **request())
    assert len(scheduler.next_batch(10.0).drop) == 2
    assert numbers(scheduler.metrics())["evicted_total"] == 2
    with pytest.raises(InvalidInput, match="cannot change between a bounded"):
        scheduler.cache_memory_bytes = None


def test_counters_of_the_others() -> None:
    """Tests that goodput, serving and prompts report their numbers."""
    goodput = GoodputScheduler(2, 4)
    goodput.allocate()
    goodput.allocate()
    goodput.observe([2, 0], round=0)
    for _ in range(64):
        goodput.allocate()
    again = GoodputScheduler.from_state(json.loads(json.dumps(goodput.state())))
    found = numbers(again.metrics())
    assert found == numbers(goodput.metrics())
    assert (found["rounds_total"], found["served_total"], found["tested_total"]) == (66, 2, 3)
    assert (found["late_total"], found["evicted_total"], found["waiting"], found["clients"]) == (
        1,
        1,
        64,
        2,
    )
    estimate = GoodputScheduler(2, 4).estimates[0]
    assert found["error_total"] == pytest.approx(2 - 2 * estimate + estimate)

    serving = ServingScheduler(paper_1())
    for key in range(3):
        serving.submit(key, input_tokens=30)
    step = serving.next_step()
    serving.submit("new", input_tokens=3)
    assert (numbers(serving.metrics())["running"], numbers(serving.metrics())["waiting"]) == (3, 1)
    serving.cancel(2)
    serving.complete({0: 1.0}, finished=[0])
    found = numbers(ServingScheduler.from_state(paper_1(), serving.state()).metrics())
    assert (found["served_total"], found["steps_total"], found["cancelled_total"]) == (1, 1, 1)
    assert step.batches and found["tokens_total"] > 1.0
    assert found["error_tokens_total"] == pytest.approx(found["tokens_total"] - 1.0 - 1.0)

    monitor = PromptMonitor()
    monitor.observe_batch(10.0, 0.5)
    monitor.observe_batch(10.0, 0.25)
    monitor.observe_device("a", draft_seconds=1.0)
    found = numbers(PromptMonitor.from_state(monitor.state()).metrics())
    assert found == {
        "devices": 1,
        "batches_total": 2,
        "batch_seconds_total": 0.75,
        "batch_error_seconds_total": 0.25,
    }


def test_a_policy_that_is_changed_decides() -> None:
    """Tests that a changed policy, memory or guard decides the next batch as in a scheduler that
    began with it.
    """

    def filled(**options: Any) -> VerificationScheduler:
        scheduler = VerificationScheduler(TABLE_12, kv_bytes_per_token=1.0, **options)
        for key in range(40):
            scheduler.submit(
                key,
                **request(tokens_done=key * 7 % 40, iteration_start_seconds=9.8 + key % 9 / 50.0),
            )
        return scheduler

    for name, values in {
        "policy": ("fcfs", "edf", "algorithm-1-drop", Policy(defer_seconds=0.5)),
        "memory_bytes": (3000.0, 410.0),
    }.items():
        for value in values:
            changed = filled(memory_bytes=4000.0)
            given = filled(**({"memory_bytes": 4000.0} | {name: value}))
            changed.abandon()
            assert changed.next_batch(10.0).keys != given.next_batch(10.0).keys
            changed.abandon()
            given.abandon()
            setattr(changed, name, value)
            assert changed.next_batch(10.0) == given.next_batch(10.0)
            assert changed.state() == given.state() | {"totals": changed.state()["totals"]}
    scheduler = filled(policy="algorithm-1")
    scheduler.guard_seconds = 0.5
    assert scheduler.next_batch(10.0) == filled(policy="algorithm-1", guard_seconds=0.5).next_batch(
        10.0
    )
    scheduler.abandon()
    with pytest.raises(InvalidInput, match="within the memory"):
        scheduler.memory_bytes = 200.0  # a request that waits would never run
    with pytest.raises(InvalidInput, match="policy"):
        scheduler.policy = "lifo"
    assert scheduler.memory_bytes is None and scheduler.policy.name == "algorithm-1"


def test_what_has_no_effect_cannot_be_set() -> None:
    """Tests that attributes that do not exist, or cannot change, are refused by every object."""
    for one in (
        VerificationScheduler(TABLE_12),
        GoodputScheduler(2, 4),
        ServingScheduler(paper_1()),
        PromptMonitor(),
    ):
        with pytest.raises(AttributeError, match="wait"):
            one.wait = 3  # type: ignore[union-attr]
    for scheduler, name in (
        (VerificationScheduler(TABLE_12), "kv_bytes_per_token"),
        (GoodputScheduler(2, 4), "per"),
        (ServingScheduler(paper_1()), "mechanism"),
        (PromptMonitor(), "smoothing"),
    ):
        with pytest.raises(AttributeError, match="cannot be changed"):
            setattr(scheduler, name, None)


def test_goodput_and_serving_change() -> None:
    """Tests that weights, the policy of goodput and the deployment of serving can change between
    two rounds.
    """
    changed = GoodputScheduler(2, 6)
    given = GoodputScheduler(2, 6, weights=[5.0, 1.0])
    changed.weights = [5.0, 1.0]
    assert (
        changed.allocate().tolist()
        == given.allocate().tolist()
        != GoodputScheduler(2, 6).allocate().tolist()
    )
    changed.observe([3, 0])
    before = changed.estimates
    changed.policy = "gradient"
    assert changed.estimates == pytest.approx(before)
    assert changed.weights.tolist() == [5.0, 1.0]
    assert changed.allocate().sum() == 6
    assert GoodputScheduler.from_state(changed.state()).state() == changed.state()
    with pytest.raises(InvalidInput, match=r"weights\[1\]"):
        changed.weights = [1.0, 0.0]
    with pytest.raises(InvalidInput, match="policy: expected one of robust, gradient"):
        changed.policy = "random"

    deployment = paper_1()
    small = dataclasses.replace(deployment, acceptance_rate=0.05)
    scheduler = ServingScheduler(deployment)
    scheduler.deployment = small
    for one in (scheduler, fresh := ServingScheduler(small)):
        one.submit("a", input_tokens=30)
    assert scheduler.next_step() == fresh.next_step() != ServingScheduler(deployment).next_step()
    with pytest.raises(InvalidInput, match="deployment"):
        scheduler.deployment = 3


def test_a_request_that_would_be_late_is_refused() -> None:
    """Tests that the end foretold is the one that comes, and that only requests that cannot be in
    time are refused.
    """
    policies: tuple[PolicyName, ...] = ("slack", "fcfs", "edf", "per-epoch")
    for policy in policies:
        scheduler = VerificationScheduler(
            TABLE_12, policy, memory_bytes=10 * 205.0, kv_bytes_per_token=1.0
        )
        for key in range(35):
            scheduler.submit(key, **request(response_start_seconds=9.0 + key / 50.0))
        now = 10.0 + scheduler.next_batch(10.0).seconds
        scheduler.refuse_late = True
        with pytest.raises(Refused) as caught:
            scheduler.submit(
                "too late", **request(response_start_seconds=9.2, arrival_seconds=10.01)
            )
        assert caught.value.earliest_seconds > 9.95
        scheduler.refuse_late = False
        scheduler.submit("too late", **request(response_start_seconds=9.2, arrival_seconds=10.01))
        scheduler.complete()
        while "too late" in scheduler.pending:
            now += scheduler.next_batch(now).seconds
            scheduler.complete()
        assert now == pytest.approx(caught.value.earliest_seconds)
    scheduler = VerificationScheduler(TABLE_12, refuse_late=True)
    scheduler.submit("in time", **request(response_start_seconds=9.25 + 1.01 * ONE))
    with pytest.raises(Refused, match="at the earliest"):
        scheduler.submit("late", **request(response_start_seconds=9.25 + 1.01 * ONE))
    with pytest.raises(InvalidInput, match="arrival_seconds"):
        scheduler.submit("when?", **request(arrival_seconds=None))
    assert scheduler.pending == ("in time",)


def test_serving_under_threads() -> None:
    """Tests that threads that submit, plan and complete lose no task and finish none twice."""
    scheduler = ServingScheduler(paper_1())
    scheduler.warm_up()
    finished: list[Any] = []

    def work(number: int) -> None:
        for turn in range(60):
            scheduler.submit(f"{number} {turn}", input_tokens=5 + turn)
            try:
                step = scheduler.next_step()
                leaving = [key for batch in step.batches for key in batch.keys][: 1 + turn % 3]
                scheduler.complete(finished=leaving)
            except InvalidInput:  # another thread's step runs, or has finished all tasks
                json.dumps(scheduler.state())
                continue
            finished.extend(leaving)

    with ThreadPoolExecutor(6) as threads:
        list(threads.map(work, range(6)))
    assert sorted([*finished, *scheduler.tasks]) == sorted(
        f"{number} {turn}" for number in range(6) for turn in range(60)
    )
    assert numbers(scheduler.metrics())["served_total"] == len(finished)
