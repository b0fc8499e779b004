"""Schedulers as state machines: whatever is called in whatever order, nothing is lost, nothing
comes twice, and a scheduler that was restored decides as the one that went on.

`SPECOPT_MACHINES=2000` runs many more examples than the suite does.
"""

from __future__ import annotations

import dataclasses
import json
import os
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from typing import Any, ClassVar

import pytest
from helpers.restoring import restored
from helpers.verification_requests import request
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

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
from specopt.online.verification import Batch

EXAMPLES = int(os.environ.get("SPECOPT_MACHINES", "12"))
SETTINGS = settings(
    max_examples=EXAMPLES,
    stateful_step_count=40,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
DEPLOYMENT = paper_1()
OTHER = dataclasses.replace(DEPLOYMENT, acceptance_rate=0.3)
keys: Any = st.integers(0, 11)
POLICIES = ("slack", "fcfs", "edf", "algorithm-1-drop", "per-epoch")


class Twins(RuleBasedStateMachine):
    """A scheduler, and once it was restored the copy beside it: every call is made of both, with
    one outcome.
    """

    other_process: ClassVar[ProcessPoolExecutor]

    def __init__(self) -> None:
        super().__init__()
        self.twins: list[Any] = []

    def both(self, call: Callable[[Any], Any]) -> Any:
        """Make a call of all; return what comes of it, None if it is refused."""
        found = []
        for one in self.twins:
            try:
                found.append(call(one))
            except (InvalidInput, Refused) as refusal:
                found.append(refusal)
        assert len({repr(one) for one in found}) == 1, found
        return None if isinstance(found[0], Exception) else found[0]

    def restore(self, again: Callable[[Any], Any]) -> None:
        """Let a copy go on beside the first, from what JSON says of one that another process
        restored.
        """
        text = json.dumps(self.twins[0].state(), allow_nan=False)
        there = self.other_process.submit(restored, again, text).result(600.0)
        assert there == text
        self.twins = [self.twins[0], again(json.loads(there))]

    def at_once(self, work: Callable[[Any, str], None]) -> None:
        """Let threads work at once, each with a key of its own that it takes away again; the first
        goes on alone.
        """
        for one in self.twins:
            failed: list[BaseException] = []

            def run(key: str, one: Any = one, failed: list[BaseException] = failed) -> None:
                try:
                    for _ in range(3):
                        work(one, key)
                except BaseException as error:
                    failed.append(error)

            threads = [
                threading.Thread(target=run, args=(f"thread {number}",)) for number in range(3)
            ]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            assert not failed
        del self.twins[1:]  # the order of the threads, and so the serials, may differ

    @invariant()
    def are_equal(self) -> None:
        """Both are in one state."""
        assert all(one.state() == self.twins[0].state() for one in self.twins[1:])


class Verifying(Twins):
    """A verifier. `alive`: the requests that are there, by key, each with its own number."""

    @initialize(
        policy=st.sampled_from(POLICIES),
        cache=st.sampled_from([None, 600.0]),
        lost=st.sampled_from([0.0, 0.5, 1e9]),
    )
    def begin(self, policy: Any, cache: float | None, lost: float) -> None:
        """Begin without requests."""
        self.twins = [
            VerificationScheduler(
                TABLE_12,
                policy,
                kv_bytes_per_token=1.0,
                memory_bytes=900.0,
                cache_memory_bytes=cache,
                lost_after_seconds=lost,
            )
        ]
        self.now, self.count = 100.0, 0
        self.alive: dict[Any, int] = {}
        self.batches: list[tuple[Batch, dict[Any, int]]] = []
        self.ended: Counter[int] = Counter()

    @rule(
        key=keys,
        tau=st.sampled_from([1.0, 8.0]),
        done=st.integers(0, 30),
        cached=st.sampled_from([0, 90, 200]),
        age=st.floats(0.0, 5.0),
    )
    def submit(self, key: int, tau: float, done: int, cached: int, age: float) -> None:
        """A request comes."""
        self.both(
            lambda one: one.submit(
                key,
                **request(
                    self.now - age,
                    class_speed=tau,
                    cached_tokens=cached,
                    tokens_done=done,
                    iteration_start_seconds=self.now - 0.1,
                    arrival_seconds=self.now,
                ),
            )
        )
        if key not in self.alive and key in self.twins[0].pending:
            self.count += 1
            self.alive[key] = self.count

    @rule(step=st.sampled_from([0.0, 0.01, 0.3, 0.3, 2.0, 3600.0, -0.2, -3600.0]))
    def decide(self, step: float) -> None:
        """Time passes, or the clock jumps, and the verifier asks what to do."""
        self.now += step
        batch = self.both(lambda one: one.next_batch(self.now))
        if batch is not None and batch.keys:
            assert set(batch.keys) <= self.alive.keys()
            self.batches.append((batch, {key: self.alive[key] for key in batch.keys}))

    @precondition(lambda self: self.batches)
    @rule(place=st.integers(0, 9), seconds=st.sampled_from([None, 0.01, 0.02, 5.0]))
    def complete(self, place: int, seconds: float | None) -> None:
        """A batch ends, be it one that was lost or abandoned long ago; nothing that it ends ended
        before.
        """
        batch, numbers = self.batches[-1 - place % len(self.batches)]
        for key in self.both(lambda one: one.complete(batch, seconds=seconds)):
            self.ended[numbers[key]] += 1
            assert self.alive.pop(key) == numbers[key]

    @rule()
    def abandon(self) -> None:
        """A batch fails."""
        self.both(lambda one: one.abandon())

    @rule(key=keys)
    def cancel(self, key: int) -> None:
        """A client goes."""
        self.both(lambda one: one.cancel(key))
        self.alive.pop(key, None)

    @rule(key=keys, cached=st.sampled_from([0, 400, 2000]))
    def update(self, key: int, cached: int) -> None:
        """A prefix is dropped, or grows."""
        self.both(lambda one: one.update(key, new_tokens=5, cached_tokens=cached))

    @rule(key=keys)
    def forget(self, key: int) -> None:
        """A response ends."""
        self.both(lambda one: one.forget(key))

    @rule(
        change=st.sampled_from(
            [
                *(("policy", name) for name in POLICIES),
                ("guard_seconds", 0.01),
                ("memory_bytes", 500.0),
                ("memory_bytes", 900.0),
                ("refuse_late", True),
                ("refuse_late", False),
                ("cache_memory_bytes", 300.0),
                ("lost_after_seconds", 0.1),
            ]
        )
    )
    def change(self, change: tuple[str, Any]) -> None:
        """An operator changes a setting."""
        self.both(lambda one: setattr(one, *change))

    @rule()
    def snapshot(self) -> None:
        """The server restarts elsewhere."""
        self.restore(VerificationScheduler.from_state)

    @rule()
    def threads(self) -> None:
        """Threads submit and cancel at once, in both; what each did to its own keys holds."""

        def work(one: VerificationScheduler, key: str) -> None:
            later = self.now + 1e6
            one.submit(key, **request(later, arrival_seconds=self.now))
            one.cancel(key)

        self.at_once(work)

    @invariant()
    def nothing_is_lost_or_twice(self) -> None:
        """What is alive waits or runs, once, and what has ended has ended once."""
        there = [*self.twins[0].pending, *self.twins[0].running]
        assert Counter(there) == Counter(self.alive.keys())
        assert all(times == 1 for times in self.ended.values())


class Serving(Twins):
    """Tasks of a server. `tasks`: those at hand, in order."""

    @initialize()
    def begin(self) -> None:
        """Begin without tasks."""
        self.twins = [ServingScheduler(DEPLOYMENT)]
        self.tasks: list[int] = []
        self.running: list[int] | None = None

    @rule(key=keys, tokens=st.sampled_from([1, 50, 900]), rate=st.sampled_from([None, 0.2, 0.9]))
    def submit(self, key: int, tokens: int, rate: float | None) -> None:
        """A task comes."""
        self.both(lambda one: one.submit(key, input_tokens=tokens, acceptance_rate=rate))
        self.tasks += [] if key in self.tasks else [key]

    @rule(key=keys)
    def cancel(self, key: int) -> None:
        """A task goes."""
        self.both(lambda one: one.cancel(key))
        self.tasks = [one for one in self.tasks if one != key]
        self.running = self.running and [one for one in self.running if one != key]

    @rule()
    def decide(self) -> None:
        """A step begins, with all tasks once."""
        step = self.both(lambda one: one.next_step())
        assert (step is None) == (self.running is not None)
        if step is not None and step.batches:
            self.running = [key for batch in step.batches for key in batch.keys]
            assert sorted(self.running) == sorted(self.tasks)

    @precondition(lambda self: self.running is not None)
    @rule(gained=st.sampled_from([0, 1.5, 4]), leaving=st.integers(0, 3))
    def complete(self, gained: float, leaving: int) -> None:
        """A step ends."""
        assert self.running is not None
        out = self.running[:leaving]
        others = self.running[1:]
        self.both(lambda one: one.complete(dict.fromkeys(others, gained), finished=out))
        self.tasks, self.running = [key for key in self.tasks if key not in out], None

    @rule(deployment=st.sampled_from([DEPLOYMENT, OTHER]))
    def change(self, deployment: Any) -> None:
        """The deployment changes."""
        self.both(lambda one: setattr(one, "deployment", deployment))

    @precondition(lambda self: self.running is None)
    @rule()
    def snapshot(self) -> None:
        """The server restarts between two steps."""
        self.restore(partial(ServingScheduler.from_state, self.twins[0].deployment))

    @rule()
    def threads(self) -> None:
        """Threads submit and cancel at once."""

        def work(one: ServingScheduler, key: str) -> None:
            one.submit(key, input_tokens=9)
            one.cancel(key)

        self.at_once(work)

    @invariant()
    def nothing_is_lost_or_twice(self) -> None:
        """The tasks are those that came and have not gone."""
        assert self.twins[0].tasks == tuple(self.tasks)


class Goodput(Twins):
    """Clients of a budget. `clients`: those that are there; `open`: what they have still to report,
    by round.
    """

    @initialize(per=st.sampled_from(["round", "second"]))
    def begin(self, per: Any) -> None:
        """Begin with two clients."""
        self.twins = [GoodputScheduler([0, 1], 9, per=per, network_seconds=[0.1, 0.2])]
        self.clients = [0, 1]
        self.open: dict[int, dict[int, int]] = {}

    @rule(key=st.integers(0, 4), weight=st.sampled_from([0.5, 3.0]))
    def join(self, key: int, weight: float) -> None:
        """A client comes."""
        self.both(lambda one: one.join(key, weight=weight, network_seconds=0.3))
        self.clients += [] if key in self.clients else [key]

    @rule(key=st.integers(0, 4))
    def leave(self, key: int) -> None:
        """A client goes, with what it had still to report."""
        self.both(lambda one: one.leave(key))
        self.clients = [one for one in self.clients if one != key]
        for drafts in self.open.values():
            drafts.pop(key, None)

    @rule(ready=st.none() | st.sets(st.integers(0, 4)))
    def allocate(self, ready: set[int] | None) -> None:
        """A round is given out, within the budget."""
        drafts = self.both(lambda one: one.allocate(ready).tolist())
        assert (drafts is None) == (ready is not None and not ready <= set(self.clients))
        if drafts is not None:
            given = {
                key: count
                for key, count in zip(self.clients, drafts, strict=True)
                if not ready or key in ready
            }
            assert sum(given.values()) <= self.twins[0].budget_tokens
            self.open[self.twins[0].round_number] = {} if ready == set() else given

    @precondition(lambda self: self.open)
    @rule(place=st.integers(0, 5), key=st.integers(0, 4), share=st.floats(0.0, 1.0))
    def observe(self, place: int, key: int, share: float) -> None:
        """A client reports on a round, once."""
        number = list(self.open)[-1 - place % len(self.open)]
        drafts = self.open[number].get(key)
        before = self.twins[0].state()["totals"]
        self.both(lambda one: one.observe({key: int(share * (drafts or 0))}, round=number))
        after = self.twins[0].state()["totals"]
        assert (after["late_total"] > before["late_total"]) == (
            drafts is not None and number < self.twins[0].round_number
        )
        assert drafts or after["tested_total"] == before["tested_total"]
        self.open[number].pop(key, None)

    @rule(
        change=st.sampled_from(
            [("policy", "gradient"), ("policy", "robust"), ("budget_tokens", 4), ("weights", 2.0)]
        )
    )
    def change(self, change: tuple[str, Any]) -> None:
        """An operator changes a setting."""
        name, value = change
        value = [value] * len(self.clients) if name == "weights" else value
        self.both(lambda one: setattr(one, name, value))

    @rule()
    def snapshot(self) -> None:
        """The server restarts."""
        self.restore(GoodputScheduler.from_state)

    @rule()
    def threads(self) -> None:
        """Threads join and leave at once."""

        def work(one: GoodputScheduler, key: str) -> None:
            one.join(key, network_seconds=0.3)
            one.leave(key)

        self.at_once(work)

    @invariant()
    def clients_are_those(self) -> None:
        """The clients are those that came and have not gone."""
        assert self.twins[0].clients == tuple(self.clients)


class Prompts(Twins):
    """Devices and batches that a monitor sees. `devices`: those that it knows, in the order in
    which they came.
    """

    @initialize(smoothing=st.sampled_from([0.0, 0.8]), limit=st.sampled_from([None, 4.0]))
    def begin(self, smoothing: float, limit: float | None) -> None:
        """Begin without devices."""
        self.twins = [PromptMonitor(smoothing=smoothing, outlier_limit=limit, draft_seconds=0.01)]
        self.devices: list[int] = []

    @rule(tokens=st.floats(-1.0, 9000.0), seconds=st.sampled_from([0.0, 0.02, 0.3, 50.0, -1.0]))
    def observe_batch(self, tokens: float, seconds: float) -> None:
        """A batch ends, as late as a clock that jumps says."""
        self.both(lambda one: one.observe_batch(tokens, seconds))

    @rule(key=keys, up=st.sampled_from([None, 0.0, 1e5, 1e7]), down=st.sampled_from([None, 1e6]))
    def observe_device(self, key: int, up: float | None, down: float | None) -> None:
        """A device reports; one without anything new is not known by that."""
        self.both(
            lambda one: one.observe_device(
                key, uplink_bytes_per_second=up, downlink_bytes_per_second=down
            )
        )
        self.devices = list(self.twins[0].devices)
        assert key in self.devices or up == 0.0 or up is down is None

    @rule(key=keys)
    def forget(self, key: int) -> None:
        """A device goes, and the others stay."""
        self.both(lambda one: one.forget(key))
        self.devices = [one for one in self.devices if one != key]

    @rule(key=keys)
    def decide(self, key: int) -> None:
        """A prompt comes: both state the same problem."""
        self.both(
            lambda one: one.problem(key, 500, bytes_per_token=4e3, pipeline_length=2).to_dict()
        )
        self.both(lambda one: one.parallel_steps(key, 4, bytes_per_token=4e3))

    @rule()
    def snapshot(self) -> None:
        """The server restarts."""
        self.restore(PromptMonitor.from_state)

    @rule()
    def threads(self) -> None:
        """Threads report devices and forget them at once."""

        def work(one: PromptMonitor, key: str) -> None:
            one.observe_device(key, uplink_bytes_per_second=1e6)
            one.forget(key)

        self.at_once(work)

    @invariant()
    def devices_are_those(self) -> None:
        """The devices are those that reported and were not forgotten, each once."""
        assert Counter(self.twins[0].devices) == Counter(self.devices)


@pytest.fixture(scope="module", autouse=True)
def other_process() -> Iterator[None]:
    """Have a process in which states are restored."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        Twins.other_process = pool
        yield


@pytest.mark.parametrize("machine", [Verifying, Serving, Goodput, Prompts])
def test_machine(machine: type[Twins]) -> None:
    """Tests that in any order of calls nothing is lost, nothing comes twice, and a restored
    scheduler decides alike.
    """
    case = machine.TestCase
    case.settings = SETTINGS
    case("runTest").runTest()
