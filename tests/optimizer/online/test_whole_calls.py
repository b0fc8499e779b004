"""Calls of every online object take effect as a whole or not at all, whatever is passed and
wherever they fail.
"""

from __future__ import annotations

import inspect
import json
import math
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from helpers.verification_requests import request
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from specopt.instances.continuous_serving.paper_1 import paper_1
from specopt.instances.prompt_chunking.workload import FIGURE_1
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
from specopt.solvers.fair_goodput.kernels.columns import ESTIMATE

KEYS = ("a", "b", 1, 2, np.int64(3))
HASHABLE = (*KEYS, True, 1.0, math.nan, b"x", None, ("a",), 10**40, "\ud800", "")
USUAL = (0, 1, 2, 0.5, 7, 40)
WILD: tuple[Any, ...] = (
    -1,
    math.nan,
    math.inf,
    -math.inf,
    1e308,
    1e99,
    -1e99,
    5e-324,
    10**400,
    10**18,
    True,
    None,
    "1",
    b"1",
    [1],
    {},
)
DEPLOYMENT = paper_1()

key: Any = st.sampled_from(KEYS) | st.sampled_from((*HASHABLE, [1], {}))
number: Any = st.sampled_from(USUAL) | st.sampled_from((*USUAL, *WILD))
keys: Any = st.lists(st.sampled_from((*KEYS, "x")), max_size=3) | st.lists(key, max_size=3)
by_key: Any = (
    st.none()
    | st.dictionaries(st.sampled_from(KEYS), number, max_size=3)
    | st.dictionaries(st.sampled_from(HASHABLE), number, max_size=3)
)
REQUEST = (
    "class_speed",
    "expected_tokens",
    "new_tokens",
    "cached_tokens",
    "response_start_seconds",
    "tokens_done",
    "iteration_start_seconds",
)
LINKS = ("uplink_bytes_per_second", "downlink_bytes_per_second", "draft_seconds")
CLIENT = (
    "weight",
    "max_draft_tokens",
    "initial_estimate",
    "min_goodput",
    "draft_seconds_per_token",
    "network_seconds",
)


def options(names: tuple[str, ...]) -> st.SearchStrategy[dict[str, Any]]:
    """Some of the keywords."""
    return st.dictionaries(st.sampled_from(names), number, max_size=len(names))


def due(name: str = "", **changes: Any) -> dict[str, Any]:
    """A request that is due at 10."""
    early: dict[str, Any] = {"key": name, "tokens_done": 36, "iteration_start_seconds": 9.9}
    return request(**(early | changes))


def verification(scheduler: VerificationScheduler, data: st.DataObject, given: list[Batch]) -> Any:
    """One call of a verification scheduler."""
    name = data.draw(
        st.sampled_from(
            ["submit"] * 4
            + ["next_batch"] * 3
            + ["complete"] * 2
            + ["update", "cancel", "forget", "abandon"]
        )
    )
    if name == "submit":
        changes = data.draw(options((*REQUEST, "return_seconds", "arrival_seconds")))
        return scheduler.submit(**due(data.draw(key), **changes))
    if name == "next_batch":
        given.append(scheduler.next_batch(data.draw(number)))
        return given[-1]
    if name == "complete":
        made = st.builds(
            Batch,
            keys=keys.map(tuple),
            seconds=st.just(1.0),
            serials=st.lists(st.integers(0, 3), max_size=3).map(tuple),
        )
        batch = data.draw(st.none() | keys | made | st.sampled_from([None, *given]))
        return scheduler.complete(batch, seconds=data.draw(st.none() | number))
    if name == "update":
        return scheduler.update(
            data.draw(key), new_tokens=data.draw(number), cached_tokens=data.draw(number)
        )
    return scheduler.abandon() if name == "abandon" else getattr(scheduler, name)(data.draw(key))


def goodput(scheduler: GoodputScheduler, data: st.DataObject, given: list[Any]) -> Any:
    """One call of a goodput scheduler."""
    name = data.draw(
        st.sampled_from(["join", "leave", "allocate", "allocate", "observe", "observe", "budget"])
    )
    if name == "join":
        return scheduler.join(data.draw(key), **data.draw(options(CLIENT)))
    if name == "leave":
        return scheduler.leave(data.draw(key))
    if name == "allocate":
        return scheduler.allocate(data.draw(st.none() | keys)).tolist()
    if name == "budget":
        scheduler.budget_tokens = data.draw(number)
        return None
    counts = (
        st.just([0] * len(scheduler.clients))
        | by_key.map(lambda found: found or {})
        | st.lists(number, max_size=3)
    )
    accepted = data.draw(counts)
    ratios = data.draw(st.none() | counts)
    if ratios is not None and data.draw(st.booleans()) and isinstance(accepted, dict):
        ratios = dict.fromkeys(accepted, 0.5)
    return scheduler.observe(
        accepted,
        data.draw(st.none() | counts),
        acceptance_ratios=ratios,
        round=data.draw(st.none() | number),
    )


def serving(scheduler: ServingScheduler, data: st.DataObject, given: list[Any]) -> Any:
    """One call of a serving scheduler."""
    name = data.draw(
        st.sampled_from(
            ["submit", "submit", "next_step", "next_step", "complete", "complete", "cancel"]
        )
    )
    if name == "submit":
        rate = data.draw(st.none() | number)
        return scheduler.submit(
            data.draw(key), input_tokens=data.draw(number), acceptance_rate=rate
        )
    if name == "next_step":
        return scheduler.next_step()
    return (
        scheduler.complete(data.draw(by_key), data.draw(keys))
        if name == "complete"
        else scheduler.cancel(data.draw(key))
    )


def prompts(monitor: PromptMonitor, data: st.DataObject, given: list[Any]) -> Any:
    """One call of a prompt monitor."""
    name = data.draw(st.sampled_from(["observe_batch", "observe_device", "forget", "device"]))
    if name == "observe_batch":
        return monitor.observe_batch(data.draw(number), data.draw(number))
    if name == "observe_device":
        return monitor.observe_device(data.draw(key), **data.draw(options(LINKS)))
    return (
        monitor.forget(data.draw(key))
        if name == "forget"
        else monitor.device(data.draw(key), data.draw(st.sampled_from((*LINKS, "color"))))
    )


def still_verifies(scheduler: VerificationScheduler, now: float = 1e100) -> list[Any]:
    """Serve a new request, and all that are before it."""
    scheduler.abandon()
    try:
        scheduler.submit(**due("new"))
    except (InvalidInput, Refused):  # it refuses late requests
        return []
    served: list[Batch] = []
    while "new" in scheduler.pending:
        served.append(scheduler.next_batch(now))
        assert served[-1].keys
        scheduler.complete(served[-1], seconds=0.02)
    return [*served, scheduler.state()]


def still_allocates(scheduler: GoodputScheduler) -> list[Any]:
    """Give out two rounds, with a new client."""
    scheduler.join("new", network_seconds=1.0)
    drafts = []
    for _ in range(2):
        drafts.append(scheduler.allocate().tolist())
        assert sum(drafts[-1]) <= scheduler.budget_tokens
        scheduler.observe([0] * len(scheduler.clients))
    return [*drafts, scheduler.state()]


def still_steps(scheduler: ServingScheduler) -> list[Any]:
    """Serve a new task with all that there are."""
    scheduler.submit("new", input_tokens=30)
    step = scheduler.next_step()
    assert sorted(map(str, scheduler.tasks)) == sorted(
        str(one) for batch in step.batches for one in batch.keys
    )
    scheduler.complete(finished=["new"])
    return [step, scheduler.state()]


def still_knows(monitor: PromptMonitor) -> list[Any]:
    """Observe once more, and ask."""
    monitor.observe_batch(10.0, 0.03)
    monitor.observe_device("new", **dict.fromkeys(LINKS, 2.0))
    problem = monitor.problem("new", 100, bytes_per_token=8.0, pipeline_length=2)
    return [problem.to_dict(), monitor.state()]


def made_for(name: str, variant: int) -> Any:
    """An object of every kind, in some variants."""
    policy: Any = ("fcfs", "edf", "slack", "per-epoch", "algorithm-1-drop")[variant % 5]
    if name == "verification":
        bounded: dict[str, Any] = {
            "kv_bytes_per_token": 1.0,
            "cache_memory_bytes": 300.0,
            "memory_bytes": 500.0,
        }
        return VerificationScheduler(
            TABLE_12, policy, **(bounded if variant % 2 else {}), lost_after_seconds=5.0
        )
    if name == "goodput":
        per: Any = ("round", "second")[variant // 2 % 2]
        return GoodputScheduler(
            ["a", 1],
            6,
            ("robust", "gradient")[variant % 2],
            fairness=variant / 2.0,
            per=per,
            network_seconds=[0.1, 0.2],
            min_goodput=[0.0, 1.5],
        )
    pinned: Any = ("observed", "smoothed")[variant // 2 % 2]
    return (
        ServingScheduler(DEPLOYMENT)
        if name == "serving"
        else PromptMonitor(FIGURE_1 if variant % 2 else None, pinned=pinned)
    )


def restored(one: Any) -> Any:
    """The object that its state makes, through strict JSON."""
    state = json.loads(json.dumps(one.state(), allow_nan=False))
    kind = type(one)
    again = (
        kind.from_state(DEPLOYMENT, state) if kind is ServingScheduler else kind.from_state(state)
    )
    assert again.state() == one.state()
    return again


CALLS: dict[str, tuple[Callable[..., Any], Callable[..., list[Any]]]] = {
    "verification": (verification, still_verifies),
    "goodput": (goodput, still_allocates),
    "serving": (serving, still_steps),
    "prompts": (prompts, still_knows),
}


@pytest.mark.parametrize("name", CALLS)
@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_a_refused_call_changes_nothing(name: str, data: st.DataObject) -> None:
    """Tests that any call succeeds or is InvalidInput and leaves no trace, that service goes on,
    and state resumes.
    """
    one: Any = made_for(name, data.draw(st.integers(0, 9)))
    given: list[Any] = []
    call, still = CALLS[name]
    for _ in range(data.draw(st.integers(1, 12))):
        before = one.state()
        try:
            call(one, data, given)
        except InvalidInput:
            assert one.state() == before
    if name == "serving" and one._running is not None:
        one.complete()  # a step that was running is planned again by the restored one
    twin = restored(one)
    assert still(one) == still(twin)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("verification", {"columns": []}),
        ("verification", {"running": ["b"]}),
        ("verification", {"policy": None}),
        ("goodput", {"facts": [[1.0]]}),
        ("goodput", {"policy": {"name": "robust", "speed": 1}}),
        ("goodput", {"rounds": [{"clients": [0]}]}),
        ("prompts", {"errors": []}),
        ("prompts", {"devices": [1]}),
    ],
)
def test_a_broken_state_is_refused(name: str, change: dict[str, Any]) -> None:
    """Tests that what is no state, or a damaged one, is refused by the name of the field."""
    one = made_for(name, 1)
    (field,) = change
    with pytest.raises(InvalidInput, match=rf"^state\.{field}"):
        type(one).from_state(one.state() | change)
    with pytest.raises(InvalidInput, match=r"^state\.\w+: required field is missing"):
        type(one).from_state({})


def test_no_tokens_expected_where_the_cache_is_bounded() -> None:
    """Tests that a request that expects no token is served from a cache that is too small, and
    others after it.
    """
    scheduler = made_for("verification", 1)
    for name in "ab":
        scheduler.submit(**due(name, expected_tokens=0, tokens_done=30))
    assert scheduler.complete(scheduler.next_batch(10.0)) == ("a", "b")
    with pytest.raises(InvalidInput, match="class_speed: expected a speed at which"):
        scheduler.submit(**due("never", class_speed=5e-324))
    still_verifies(scheduler, 20.0)


def test_a_refused_report_credits_nobody() -> None:
    """Tests that one NaN among three leaves the step running and all as they were, and a refused
    task is none.
    """
    scheduler = ServingScheduler(DEPLOYMENT)
    for name in "abc":
        scheduler.submit(name, input_tokens=10)
    scheduler.next_step()
    before = scheduler.state()
    with pytest.raises(InvalidInput, match="gained: expected"):
        scheduler.complete({"a": 1, "b": 2, "c": math.nan})
    with pytest.raises(InvalidInput, match="acceptance_rate: expected"):
        scheduler.submit("d", input_tokens=10, acceptance_rate=math.nan)
    assert scheduler.state() == before
    scheduler.cancel("b")
    scheduler.submit("b", input_tokens=500)
    scheduler.complete({"a": 1, "b": 2, "c": 3})
    assert [task.reached for task in scheduler._tasks.values()] == [
        11.0,
        13.0,
        500.0,
    ]  # the new b was not served


@pytest.mark.parametrize("bad", [math.nan, 1.0, True, b"x", None, [1], ("a",), 2**128, "\ud800"])
def test_keys_are_strings_or_integers(bad: Any) -> None:
    """Tests that every call refuses what is no key, by the parameter's name, and takes integers of
    128 bits.
    """
    verifier = made_for("verification", 1)
    clients = made_for("goodput", 0)
    server = made_for("serving", 0)
    monitor = made_for("prompts", 1)
    calls: tuple[Any, ...] = (
        lambda: verifier.submit(**due(bad)),
        lambda: verifier.update(bad, new_tokens=1, cached_tokens=1),
        lambda: verifier.cancel(bad),
        lambda: verifier.forget(bad),
        lambda: verifier.complete([bad]),
        lambda: clients.join(bad),
        lambda: clients.leave(bad),
        lambda: clients.allocate([bad]),
        lambda: server.submit(bad, input_tokens=1),
        lambda: server.cancel(bad),
        lambda: monitor.observe_device(bad),
        lambda: monitor.forget(bad),
        lambda: monitor.device(bad, "draft_seconds"),
    )
    for call in calls:
        with pytest.raises(
            InvalidInput,
            match=r"(key|batch|client|clients|device): expected a string or an integer",
        ):
            call()
    verifier.submit(**due(2**128 - 1))  # type: ignore[arg-type]
    assert restored(verifier).pending == (2**128 - 1,)


def test_averages_that_decay_for_long_count_as_nothing() -> None:
    """Tests that an idle cloud and drafts that are never accepted, whose averages get denormal, are
    served.
    """
    monitor = made_for("prompts", 1)
    monitor.observe_batch(10.0, 0.03)
    for _ in range(3400):
        monitor.observe_batch(0.0, 0.03)
    assert monitor.background_tokens == 0.0
    still_knows(monitor)
    state = made_for("goodput", 3).state()
    state["facts"][0][ESTIMATE] = 1e-310
    still_allocates(GoodputScheduler.from_state(state))


def all_of(one: Any) -> tuple[Any, ...]:
    """What can be seen of an object."""
    return one.state(), getattr(one, "_running", None), getattr(one, "pending", None)


def fails_at(place: int, call: Callable[[], Any]) -> bool:
    """Make a call in which the n-th call of anything is out of memory; return whether it failed."""
    left, done = place, False

    def watch(frame: Any, event: str, argument: Any) -> None:
        nonlocal left
        ends = (
            frame.f_code.co_flags & inspect.CO_GENERATOR
            or getattr(argument, "__name__", "") == "__exit__"
        )
        if event in ("call", "c_call") and not ends and not done:
            left -= 1
            if left == 0:
                raise MemoryError

    sys.setprofile(watch)
    try:
        call()
        done = True
    except MemoryError:
        pass
    finally:
        left = 0
        sys.setprofile(None)
    return not done


def in_the_middle(name: str, method: str) -> Any:
    """An object in the middle of its work, before a call of a method."""
    one = made_for(name, {"goodput": 2, "serving": 0}.get(name, 1))
    if name == "verification":
        one.warm_up()
        for index in range(6):
            one.submit(**due(str(index), cached_tokens=90, tokens_done=30 + index))
        first = one.next_batch(10.0)
        if (
            method == "next_batch"
        ):  # some are known to the cache, some run and are lost, some are new
            one.complete(first)
            one.submit(**due("late", cached_tokens=90))
            one.next_batch(10.1)
            one.submit(**due("later"))
    elif name == "goodput":
        one.warm_up()
        one.allocate()
        one.observe({"a": 0})
    elif name == "serving":
        one.warm_up()
        for index in range(3):
            one.submit(index, input_tokens=30)
        if method == "complete":
            one.next_step()
    else:
        one.observe_batch(100.0, 0.1)
        one.observe_device("a", draft_seconds=1.0)
    return one


def changes_of(one: Any) -> dict[str, Callable[[], Any]]:
    """A call of each method, one that changes much."""
    if isinstance(one, VerificationScheduler):
        first = (one.running or one.pending)[0]
        waiting = one.pending[0]
        return {
            "submit": lambda: one.submit(**due("more")),
            "update": lambda: one.update(waiting, new_tokens=9, cached_tokens=1),
            "cancel": lambda: one.cancel(first),
            "forget": lambda: one.forget(first),
            "abandon": one.abandon,
            "complete": lambda: one.complete(seconds=0.1),
            "next_batch": lambda: one.next_batch(1e6),
        }
    if isinstance(one, GoodputScheduler):
        return {
            "join": lambda: one.join("more", network_seconds=0.1),
            "leave": lambda: one.leave("a"),
            "allocate": one.allocate,
            "observe": lambda: one.observe({1: 0}),
            "budget": lambda: setattr(one, "budget_tokens", 9),
        }
    if isinstance(one, ServingScheduler):
        return {
            "submit": lambda: one.submit("more", input_tokens=9),
            "cancel": lambda: one.cancel(1),
            "complete": lambda: one.complete({0: 3, 1: 2.0}, finished=[1]),
            "next_step": one.next_step,
        }
    return {
        "observe_batch": lambda: one.observe_batch(10.0, 0.5),
        "observe_device": lambda: one.observe_device("a", **dict.fromkeys(LINKS, 3.0)),
        "forget": lambda: one.forget("a"),
    }


@pytest.mark.parametrize("name", CALLS)
def test_a_call_that_fails_in_the_middle_changes_nothing(name: str) -> None:
    """Tests that wherever a call runs out of memory, the state is as before, and that the next one
    succeeds.
    """
    for method in changes_of(in_the_middle(name, "")):
        one, place = in_the_middle(name, method), 1
        call = changes_of(one)[method]
        before = all_of(one)
        while fails_at(place, call):
            assert all_of(one) == before, (method, place)
            place += 1
        assert place > 2, method
        assert all_of(one) != before, method


@pytest.mark.parametrize("name", CALLS)
@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_a_wrong_state_is_refused_or_serves(name: str, data: st.DataObject) -> None:
    """Tests that a state with a value exchanged is refused by the name of a field, or restores what
    serves.
    """
    _, still = CALLS[name]
    one = in_the_middle(name, "")
    state = json.loads(json.dumps(one.state(), allow_nan=False))
    kind, place, path = type(one), state, []
    while isinstance(place, (dict, list)) and place and data.draw(st.integers(0, 3)):
        step: Any = data.draw(
            st.sampled_from(list(place) if isinstance(place, dict) else range(len(place)))
        )
        path.append(step)
        inner, place = place, place[step]
    if not path:
        return
    if data.draw(st.booleans()):
        inner[path[-1]] = data.draw(st.sampled_from((*WILD, *USUAL, "a", "inf", [], [[]], [1, 2])))
    else:
        del inner[path[-1]]
    try:
        again = (
            kind.from_state(DEPLOYMENT, state)
            if kind is ServingScheduler
            else kind.from_state(state)
        )
    except InvalidInput as error:
        assert str(error).startswith("state"), error
        return
    still(again)


def test_a_cancelled_arrival_leaves_no_trace() -> None:
    """Tests that a request that is cancelled before the next batch does not change how tight the
    scheduler takes deadlines to be.
    """
    one = made_for("verification", 0)
    one.submit(**due("b", expected_tokens=0, new_tokens=0, class_speed=1, arrival_seconds=0))
    twin = restored(one)
    one.submit(**due("a"))
    one.cancel("a")
    for scheduler in (one, twin):
        scheduler.next_batch(10.0)
    assert one.state()["tight_seconds"] == twin.state()["tight_seconds"]
