"""The scheduler behind asyncio: verdicts, back-pressure, tasks that are cancelled, verifiers that
fail or stall.
"""

from __future__ import annotations

import asyncio
import itertools
import math
import os
import time
from collections import Counter
from collections.abc import Callable, Coroutine
from typing import Any, NamedTuple

import pytest
from helpers.verification_requests import request
from hypothesis import given, settings
from hypothesis import strategies as st

from specopt.instances.verification_batch.workload import TABLE_12
from specopt.models.errors import InvalidInput
from specopt.online import AsyncScheduler, NotVerified, VerificationScheduler

Serving = AsyncScheduler[int, int]


async def verdict(scheduler: Serving, key: int | str, draft: int = 0, **changes: Any) -> int:
    """Submit a draft of a response that is on time."""
    return await scheduler.submit(key, draft, **request(scheduler.clock(), **changes))


async def doubled(drafts: dict[int | str, int]) -> dict[int | str, int]:
    """A verifier."""
    await asyncio.sleep(0.001)
    return {key: 2 * draft for key, draft in drafts.items()}


def play(
    body: Callable[[Serving], Coroutine[Any, Any, None]],
    verify: Any = doubled,
    scheduler: VerificationScheduler | None = None,
    **options: Any,
) -> None:
    """Run a coroutine with a scheduler, and see to it that nothing is left behind in it."""

    async def run() -> None:
        inner = VerificationScheduler(TABLE_12) if scheduler is None else scheduler
        inner.warm_up()  # compiling may take longer than all the rest
        async with asyncio.timeout(20.0):
            async with AsyncScheduler(inner, verify, **options) as serving:
                await body(serving)
        assert inner.pending == inner.running == ()

    asyncio.run(run())


def test_everybody_gets_the_verdict_on_the_own_draft() -> None:
    """Tests that many requests are verified in batches, and that each gets its own verdict."""
    sizes = []

    async def verify(drafts: dict[int | str, int]) -> dict[int | str, int]:
        sizes.append(len(drafts))
        return await doubled(drafts)

    async def body(serving: Serving) -> None:
        assert await asyncio.gather(*(verdict(serving, k, k) for k in range(300))) == [
            2 * k for k in range(300)
        ]

    play(body, verify)
    assert sum(sizes) == 300
    assert len(sizes) < 100


def test_a_clock_that_is_set_back() -> None:
    """Tests that time stands still where the clock is set back, so that requests are due as
    before.
    """
    readings = iter([0.0, 3600.0, 1.0, 1.5])

    async def read() -> list[float]:
        serving: Serving = AsyncScheduler(
            VerificationScheduler(TABLE_12), doubled, clock=lambda: next(readings)
        )
        return [serving.clock() for _ in range(4)]

    assert asyncio.run(read()) == [0.0, 3600.0, 3600.0, 3600.5]


def test_back_pressure() -> None:
    """Tests that no more requests than allowed are in the scheduler, whoever waits outside."""
    most = 0

    async def verify(drafts: dict[int | str, int]) -> dict[int | str, int]:
        nonlocal most
        most = max(most, len(scheduler.pending) + len(scheduler.running))
        return await doubled(drafts)

    async def body(serving: Serving) -> None:
        await asyncio.gather(*(verdict(serving, k) for k in range(40)))

    scheduler = VerificationScheduler(TABLE_12)
    play(body, verify, scheduler, max_requests=7)
    assert most == 7


def test_a_cancelled_task_takes_its_request_with_it() -> None:
    """Tests that requests of cancelled tasks go, waiting or running, and that their keys and places
    are free again.
    """
    started, go_on = asyncio.Event(), asyncio.Event()

    async def verify(drafts: dict[int | str, int]) -> dict[int | str, int]:
        started.set()
        await go_on.wait()
        return await doubled(drafts)

    async def body(serving: Serving) -> None:
        running = asyncio.create_task(verdict(serving, "a", 1))
        await started.wait()
        waiting, outside = (asyncio.create_task(verdict(serving, key, 1)) for key in "bc")
        await asyncio.sleep(0)
        for task in (running, waiting, outside):
            task.cancel()
        await asyncio.wait([running, waiting, outside])
        assert running.cancelled() and waiting.cancelled() and outside.cancelled()
        assert isinstance(serving.scheduler, VerificationScheduler)
        assert serving.scheduler.pending == serving.scheduler.running == ()
        again = [asyncio.create_task(verdict(serving, key, 21)) for key in "ab"]
        await asyncio.sleep(0)
        go_on.set()
        assert await asyncio.gather(*again) == [
            42,
            42,
        ]  # and not the verdict on the draft of before

    play(body, verify, max_requests=2)


def test_cancelled_in_the_moment_of_the_verdict() -> None:
    """Tests that a task that is cancelled while its verdict is on its way disturbs nobody else."""

    async def verify(drafts: dict[int | str, int]) -> dict[int | str, int]:
        tasks["a"].cancel()  # its clean-up runs after the verdicts have been told
        return dict.fromkeys(drafts, 1)

    tasks: dict[str, asyncio.Task[int]] = {}

    async def body(serving: Serving) -> None:
        tasks.update({key: asyncio.create_task(verdict(serving, key)) for key in "ab"})
        assert await tasks["b"] == 1
        await asyncio.wait([tasks["a"]])
        assert tasks["a"].cancelled()
        assert await verdict(serving, "c") == 1

    play(body, verify)


def test_a_failure_reaches_those_who_wait() -> None:
    """Tests that the failure of one batch is told to its requests only, with its cause, and that
    the next one runs.
    """
    calls = 0

    async def verify(drafts: dict[int | str, int]) -> Any:
        nonlocal calls
        calls += 1
        if calls == 1:
            raise OSError("the card fell off")
        return None if calls == 2 else {"c": 5} if "c" in drafts else {}

    async def body(serving: Serving) -> None:
        for cause in (OSError, TypeError):
            with pytest.raises(NotVerified, match="no verdict for 'a'") as caught:
                await verdict(serving, "a")
            assert isinstance(caught.value.__cause__, cause)
        with pytest.raises(NotVerified, match="no verdict for 'b'"):
            await verdict(serving, "b")
        assert await verdict(serving, "c") == 5

    play(body, verify)


def test_a_stalled_batch_is_verified_again() -> None:
    """Tests that a call that hangs is cancelled after its time, and that its requests are verified
    again.
    """
    hung = 0

    async def verify(drafts: dict[int | str, int]) -> dict[int | str, int]:
        nonlocal hung
        if hung < 2:
            hung += 1
            await asyncio.sleep(3600.0)
        return await doubled(drafts)

    async def body(serving: Serving) -> None:
        assert await asyncio.gather(*(verdict(serving, key, 1) for key in "ab")) == [2, 2]

    play(body, verify, VerificationScheduler(TABLE_12, lost_after_seconds=0.02))
    assert hung == 2


def test_closing_drains() -> None:
    """Tests that what was taken is verified before the scheduler closes, and that later requests
    are refused.
    """

    async def run() -> None:
        serving: Serving = AsyncScheduler(VerificationScheduler(TABLE_12), doubled, max_requests=10)
        async with serving:
            tasks = [asyncio.create_task(verdict(serving, k, k)) for k in range(12)]
            await asyncio.sleep(0)
        assert [task.result() for task in tasks[:10]] == [2 * k for k in range(10)]
        for task in (*tasks[10:], asyncio.create_task(verdict(serving, "late"))):
            with pytest.raises(NotVerified, match="closed"):
                await task

    asyncio.run(run())


def test_a_body_that_fails_does_not_wait() -> None:
    """Tests that if the server stops because of an error, everybody who waits is told."""
    tasks: list[asyncio.Task[int]] = []

    async def never(drafts: dict[int | str, int]) -> dict[int | str, int]:
        await asyncio.sleep(3600.0)
        return {}

    async def run() -> None:
        scheduler = VerificationScheduler(TABLE_12)
        with pytest.raises(ZeroDivisionError):
            async with AsyncScheduler(scheduler, never) as serving:
                tasks.extend(asyncio.create_task(verdict(serving, k)) for k in range(3))
                await asyncio.sleep(0.01)
                raise ZeroDivisionError
        for task in tasks:
            with pytest.raises(NotVerified):
                await task
        assert scheduler.pending == scheduler.running == ()

    asyncio.run(run())


def test_a_clock_that_breaks() -> None:
    """Tests that requests that could wait are served, and that a broken clock is told."""
    offset = 0.0

    async def body(serving: Serving) -> None:
        nonlocal offset
        assert await verdict(serving, "far ahead", tokens_done=10**6) == 0
        tasks = [asyncio.create_task(verdict(serving, key)) for key in ("b", "c")]
        await asyncio.sleep(0)  # "b" is verified, "c" waits
        offset = math.nan
        with pytest.raises(InvalidInput, match="arrival_seconds"):
            await verdict(serving, "d", response_start_seconds=0.0, iteration_start_seconds=0.0)
        with pytest.raises(NotVerified, match="no verdict") as caught:
            await tasks[1]
        assert isinstance(caught.value.__cause__, InvalidInput)

    play(body, scheduler=VerificationScheduler(TABLE_12), clock=lambda: time.monotonic() + offset)


def test_refusals() -> None:
    """Tests that bad requests are refused without harm to others, and schedulers with requests of
    nobody altogether.
    """

    async def body(serving: Serving) -> None:
        with pytest.raises(InvalidInput, match="class_speed"):
            await verdict(serving, "a", class_speed=0.0)
        tasks = [asyncio.create_task(verdict(serving, "a", draft)) for draft in (1, 2)]
        with pytest.raises(InvalidInput, match="is already in use"):
            await tasks[1]
        assert await tasks[0] == 2

    play(body)
    scheduler = VerificationScheduler(TABLE_12)
    scheduler.submit(1, **request())
    with pytest.raises(InvalidInput, match="there are already requests whose verdicts"):
        AsyncScheduler(scheduler, doubled)


def test_prefixes_that_go_are_told_and_times_are_learned() -> None:
    """Tests that a full cache names the prefixes that leave it, and that estimates follow what the
    verifier takes.
    """
    gone: list[int | str] = []

    async def verify(drafts: dict[int | str, int]) -> dict[int | str, int]:
        await asyncio.sleep(0.1)
        return await doubled(drafts)

    async def body(serving: Serving) -> None:
        for key in range(6):
            await verdict(serving, key, key, response_start_seconds=serving.clock() - 10.0)

    scheduler = VerificationScheduler(TABLE_12, kv_bytes_per_token=1.0, cache_memory_bytes=500.0)
    before = scheduler.estimator.overhead_seconds
    play(body, verify, scheduler, drop=gone.append)
    assert len(gone) == len(set(gone)) == 4  # of six prefixes of some 200 tokens two fit
    assert scheduler.estimator.overhead_seconds > 2.0 * before
    with pytest.raises(InvalidInput, match="drop: missing; required"):
        AsyncScheduler(scheduler, verify)


def test_all_are_told_though_one_call_fails() -> None:
    """Tests that where telling that a prefix goes fails, the others are told, and the batch fails
    with the cause.
    """
    told: list[int | str] = []

    def drop(key: int | str) -> None:
        told.append(key)
        if len(told) == 1:
            raise OSError("the cache fell off")

    async def body(serving: Serving) -> None:
        due: dict[str, Any] = {"response_start_seconds": serving.clock() - 10.0}
        await asyncio.gather(*(verdict(serving, key, **due) for key in "abc"))
        with pytest.raises(NotVerified, match="no verdict for 'd'") as caught:
            await verdict(serving, "d", cached_tokens=500, **due)
        assert isinstance(caught.value.__cause__, OSError)
        assert sorted(map(str, told)) == ["a", "b", "c"]
        assert await verdict(serving, "e", 2, **due) == 4

    play(
        body,
        scheduler=VerificationScheduler(TABLE_12, kv_bytes_per_token=1.0, cache_memory_bytes=650.0),
        drop=drop,
    )


class Turn(NamedTuple):
    """What a client does: waits so many turns of the loop, submits under a key, and gives up after
    so many.
    """

    before: int
    key: int
    patience: int | None


class Call(NamedTuple):
    """What a call of the verifier does: takes so many turns, leaves out every so many-th verdict,
    or raises.
    """

    turns: int
    leaves_out: int
    raises: bool


TURNS = st.lists(
    st.builds(Turn, st.integers(0, 6), st.integers(0, 9), st.none() | st.integers(0, 8)),
    max_size=30,
)
CALLS = st.lists(
    st.builds(Call, st.integers(0, 4), st.integers(0, 3), st.booleans()), min_size=1, max_size=8
)
JUMPS = st.lists(st.sampled_from([0.0, 0.001, 0.1, -50.0, 1e6]), min_size=1, max_size=6)


@given(TURNS, CALLS, JUMPS, st.integers(1, 12))
@settings(max_examples=int(os.environ.get("SPECOPT_MACHINES", "40")), deadline=None)
def test_whatever_happens_each_client_has_one_outcome(
    turns: list[Turn], calls: list[Call], jumps: list[float], most: int
) -> None:
    """Tests that clients that leave, verifiers that fail and clocks that jump lose no request and
    serve none twice.

    Of each client comes the verdict on its own draft, `NotVerified`, a refusal of a key in use, or
    that it gave up.
    """
    verified: Counter[int] = Counter()
    script = itertools.cycle(calls)
    steps = itertools.cycle(jumps)
    now = 0.0

    def clock() -> float:
        nonlocal now
        now += next(steps)
        return now

    async def verify(drafts: dict[int | str, int]) -> dict[int | str, int]:
        call = next(script)
        verified.update(drafts.values())
        for _ in range(call.turns):
            await asyncio.sleep(0)
        if call.raises:
            raise RuntimeError("a bad batch")
        told = enumerate(drafts.items(), 1)
        return {
            key: 2 * draft
            for place, (key, draft) in told
            if not call.leaves_out or place % call.leaves_out
        }

    async def client(serving: Serving, number: int, turn: Turn) -> object:
        for _ in range(turn.before):
            await asyncio.sleep(0)
        task = asyncio.create_task(verdict(serving, turn.key, number))
        for _ in range(10**9 if turn.patience is None else turn.patience):
            if task.done():
                break
            await asyncio.sleep(0)
        task.cancel()
        try:
            return await task
        except (asyncio.CancelledError, NotVerified, InvalidInput) as ended:
            return type(ended)

    async def run() -> list[object]:
        inner = VerificationScheduler(TABLE_12)
        async with asyncio.timeout(60.0):
            async with AsyncScheduler[int, int](inner, verify, max_requests=most, clock=clock) as s:
                found = await asyncio.gather(
                    *(client(s, number, turn) for number, turn in enumerate(turns))
                )
        assert inner.pending == inner.running == ()
        return found

    alike = Counter(turn.key for turn in turns)
    for number, outcome in enumerate(asyncio.run(run())):
        assert outcome in (2 * number, asyncio.CancelledError, NotVerified, InvalidInput)
        assert verified[number] <= 1
        assert verified[number] == 1 or outcome in (asyncio.CancelledError, InvalidInput)
        assert outcome is not InvalidInput or alike[turns[number].key] > 1
