"""The scheduler behind `asyncio`: coroutines submit drafts and await their verdicts; a task
verifies batches.

>>> import asyncio
>>> from specopt.instances.verification_batch.workload import TABLE_12
>>> async def verify(drafts):  # what runs the model
...     return {key: len(draft) for key, draft in drafts.items()}
>>> async def main():
...     async with AsyncScheduler(VerificationScheduler(TABLE_12), verify) as scheduler:
...         now = scheduler.clock()
...         return await scheduler.submit(
...             "a", [17, 4, 25], class_speed=4.0, expected_tokens=2.9, new_tokens=5,
...             cached_tokens=200,
...             response_start_seconds=now, tokens_done=0, iteration_start_seconds=now,
...         )
>>> asyncio.run(main())
3
"""

from __future__ import annotations

import asyncio
import inspect
import math
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import ExitStack
from types import TracebackType
from typing import Any, Generic, Self, TypeVar

from specopt.models.arguments import Key, integer, key_of
from specopt.models.errors import InvalidInput, SpecoptError
from specopt.models.fields import describe
from specopt.online.verification import Batch, VerificationScheduler

Draft = TypeVar("Draft")
Verdict = TypeVar("Verdict")
Verify = Callable[[dict[Key, Draft]], Awaitable[Mapping[Key, Verdict]]]


class NotVerified(SpecoptError):
    """A request got no verdict: its cause is what the verifier raised, if it did."""


class AsyncScheduler(Generic[Draft, Verdict]):
    """Let coroutines await their verdicts from one verifier.

    A request whose task is cancelled, by a timeout or because its client has gone, is forgotten; so
    nothing piles up. One that the verifier does not get done within the scheduler's
    `lost_after_seconds` beyond the estimate is verified again, and `verify` is cancelled. All calls
    are made from one event loop.

    Parameters
    ----------
    scheduler
        Chooses the batches. It has no requests yet, and all come through `submit`.
    verify
        Called with the drafts of a batch by key, most urgent first; returns the verdict of each.
        One call at a time.
    most_requests
        How many may wait or run; `submit` of another one waits until there is room.
    clock
        Says what time it is, in seconds. Where it is set back, time stands still here: see `clock`.
    drop
        Called with every response whose prefix leaves the scheduler's bounded cache, before the
        batch that takes its room; it may `update` the scheduler on a request of it that waits. If
        it raises, the batch fails, once all of its responses have been informed.
    """

    def __init__(
        self,
        scheduler: VerificationScheduler,
        verify: Verify[Draft, Verdict],
        *,
        most_requests: int = 1000,
        clock: Callable[[], float] = time.monotonic,
        drop: Callable[[Key], object] | None = None,
    ) -> None:
        if scheduler.pending or scheduler.running:
            raise InvalidInput(
                "scheduler: expected one without requests, since nothing awaits their verdicts"
            )
        if drop is None and scheduler.cache_memory_bytes is not None:
            raise InvalidInput(
                "drop: expected a function, as the scheduler's cache of prefixes is bounded"
            )
        if not (
            inspect.iscoroutinefunction(verify)
            or inspect.iscoroutinefunction(type(verify).__call__)
        ):
            raise InvalidInput(f"verify: expected an async function, got {describe(verify)}")
        self.scheduler = scheduler
        self.drop = drop
        self._verify = verify
        self._clock, self._shift, self._latest = clock, 0.0, -math.inf
        self._room = asyncio.Semaphore(integer("most_requests", most_requests, 1))
        self._waiting: dict[Key, tuple[Draft, asyncio.Future[Verdict]]] = {}
        self._news = asyncio.Event()
        self._closed = False
        self._task: asyncio.Task[None] | None = None

    def clock(self) -> float:
        """Return what time it is: of the clock given, less its steps back, after which requests
        would not be due.
        """
        now = self._clock() + self._shift
        if now < self._latest:
            self._shift += self._latest - now
            now = self._latest
        self._latest = now
        return now

    async def __aenter__(self) -> Self:
        self.scheduler.warm_up()
        self._task = asyncio.create_task(self._run())
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._task is not None and kind is not None:
            self._task.cancel()
        await self.close()

    async def close(self) -> None:
        """Take no more requests, and wait until those that were taken have their verdicts."""
        self._closed = True
        self._news.set()
        if self._task is not None:
            await asyncio.wait([self._task])

    async def submit(self, key: Key, draft: Draft, **request: Any) -> Verdict:
        """Return the verdict on a draft.

        Parameters
        ----------
        key
            Name of the request until this returns: a string or an integer.
        draft
            What `verify` gets.
        request
            As for `submit` of the scheduler; moments are those of `clock`, and the request arrives
            now if nothing else is said.

        Raises
        ------
        InvalidInput, Refused
            If the request is refused.
        NotVerified
            If the verifier fails, or is closed.
        """
        async with self._room:
            if self._task is None:
                raise NotVerified("submit: open the scheduler first, with `async with scheduler:`")
            if self._closed:
                raise NotVerified("submit: the scheduler is closed")
            key = key_of("key", key)
            verdict: asyncio.Future[Verdict] = asyncio.get_running_loop().create_future()
            waiting = draft, verdict
            self.scheduler.submit(key, **({"arrival_seconds": self.clock()} | request))
            self._waiting[key] = waiting
            self._news.set()
            try:
                return await verdict
            finally:
                if self._waiting.get(key) is waiting:  # this task was cancelled
                    del self._waiting[key]
                    self.scheduler.cancel(key)

    # ------------------------------------------------------------------ inside

    async def _run(self) -> None:
        """Verify batch after batch until all is done after `close`; whatever happens, nobody waits
        for ever.
        """
        failure: Exception | None = None
        try:
            while not (self._closed and not self._waiting):
                self._news.clear()
                batch = self.scheduler.next_batch(self.clock())
                if batch.keys:
                    await self._serve(batch)
                else:
                    await self._news.wait()
        except Exception as error:
            failure = error
        finally:
            self._closed = True
            for key in list(self._waiting):
                self.scheduler.cancel(key)
                self._answer(key, {}, failure)

    async def _serve(self, batch: Batch) -> None:
        """Verify a batch and tell those that wait."""
        failure: Exception | None = None
        seconds: float | None = None
        verdicts: Mapping[Key, Verdict] = {}
        loop = asyncio.get_running_loop()  # its clock never jumps
        longest = batch.seconds + self.scheduler.lost_after_seconds
        try:
            async with asyncio.timeout(None if math.isinf(longest) else longest) as limit:
                with ExitStack() as calls:  # all are, whatever one of the calls raises
                    for key in reversed(batch.drop):
                        calls.callback(self.drop, key)  # type: ignore[arg-type]  # there is one where prefixes go
                begun = loop.time()
                verdicts = dict(
                    await self._verify({key: self._waiting[key][0] for key in batch.keys})
                )
            seconds = loop.time() - begun or None
        except Exception as error:
            if limit.expired():
                self.scheduler.abandon()
                return
            failure = error
        for key in self.scheduler.complete(batch, seconds=seconds):
            self._answer(key, verdicts, failure)

    def _answer(self, key: Key, verdicts: Mapping[Key, Verdict], failure: Exception | None) -> None:
        """Tell who awaits a verdict what it is, or that there is none."""
        _, verdict = self._waiting.pop(key)
        if verdict.done():
            return  # its task was cancelled and has not run since
        if key in verdicts:
            verdict.set_result(verdicts[key])
            return
        why = "" if failure is None else f" ({type(failure).__name__}: {failure})"
        error = NotVerified(f"the verifier gave no verdict for {describe(key)}{why}")
        error.__cause__ = failure
        verdict.set_exception(error)
