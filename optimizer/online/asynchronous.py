"""A verification scheduler for `asyncio`.

Coroutines submit drafts and await the verdicts. A background task verifies the drafts in batches.

>>> import asyncio
>>> from specopt.instances.verification_batch.workload import TABLE_12
>>> async def verify(drafts):  # calls the model
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
from typing import Any, Generic, Self, TypeVar

from specopt.models.arguments import Key, integer, key_of
from specopt.models.errors import InvalidInput, SpecoptError
from specopt.models.fields import describe
from specopt.online.verification import Batch, VerificationScheduler

Draft = TypeVar("Draft")
Verdict = TypeVar("Verdict")
Verify = Callable[[dict[Key, Draft]], Awaitable[Mapping[Key, Verdict]]]


class NotVerified(SpecoptError):
    """Exception for a request that receives no verdict.

    The cause is the verifier's exception, if any.
    """


class AsyncScheduler(Generic[Draft, Verdict]):
    """A scheduler for coroutines that await the verdicts of a single verifier.

    A request is removed if its task is cancelled, for example by a timeout or because the client
    disconnected. If a batch takes more than `lost_after_seconds` longer than estimated, `verify` is
    cancelled and the requests are verified again. All calls must be made on the same event loop.

    Parameters
    ----------
    scheduler
        Scheduler that chooses the batches. Initially, it must not contain any requests. All
        requests must be submitted through this object.
    verify
        Asynchronous function that receives the drafts of a batch by key, most urgent first, and
        returns their verdicts by key. At most one call runs at a time.
    max_requests
        Maximum number of waiting and running requests. If it is reached, additional calls to
        `submit` wait.
    clock
        Function that returns the time in seconds. If the returned time decreases, the method
        `clock` continues from its previous value.
    drop
        Function that is called with the key of every response whose prefix is evicted from the
        limited prefix cache. The call precedes the batch that needs the space. The function may
        `update` a waiting request of the response. If the function raises an exception, all
        evictions are still reported, and the batch fails.
    """

    def __init__(
        self,
        scheduler: VerificationScheduler,
        verify: Verify[Draft, Verdict],
        *,
        max_requests: int = 1000,
        clock: Callable[[], float] = time.monotonic,
        drop: Callable[[Key], object] | None = None,
    ) -> None:
        if scheduler.pending or scheduler.running:
            raise InvalidInput(
                "scheduler: there are already requests whose verdicts are not awaited; use a new"
                " scheduler"
            )
        if drop is None and scheduler.cache_memory_bytes is not None:
            raise InvalidInput(
                "drop: missing; required because the scheduler has a bounded prefix cache"
            )
        if not any(map(inspect.iscoroutinefunction, (verify, type(verify).__call__))):
            raise InvalidInput(f"verify: expected an async function, got {describe(verify)}")
        self.scheduler = scheduler
        self.drop = drop
        self._verify = verify
        self._clock, self._shift, self._latest = clock, 0.0, -math.inf
        self._room = asyncio.Semaphore(integer("max_requests", max_requests, 1))
        self._waiting: dict[Key, tuple[Draft, asyncio.Future[Verdict]]] = {}
        self._news = asyncio.Event()
        self._closed = False
        self._task: asyncio.Task[None] | None = None

    def clock(self) -> float:
        """Return the clock's time in seconds, corrected so that it never decreases."""
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

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if self._task is not None and kind is not None:
            self._task.cancel()
        await self.close()

    async def close(self) -> None:
        """Stop accepting requests, and wait for the verdicts of all accepted requests."""
        self._closed = True
        self._news.set()
        if self._task is not None:
            await asyncio.wait([self._task])

    async def submit(self, key: Key, draft: Draft, **request: Any) -> Verdict:
        """Submit a draft, and return its verdict.

        Parameters
        ----------
        key
            Name of the request until this call returns, as a string or an integer.
        draft
            Draft that is passed to `verify`.
        request
            Keyword arguments for the method `submit` of the scheduler. Times refer to `clock`; by
            default, the request arrives now.

        Raises
        ------
        InvalidInput
            If an argument is outside its domain.
        Refused
            If the request is refused because its response would be late.
        NotVerified
            If the verifier fails, or if the scheduler is not open.
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
        """Verify batches until the scheduler is closed and all requests are served.

        Every request receives a verdict or an exception, even if an error occurs.
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
        """Verify a batch, and pass the verdicts to its requests."""
        failure: Exception | None = None
        seconds: float | None = None
        verdicts: Mapping[Key, Verdict] = {}
        loop = asyncio.get_running_loop()  # the clock of the event loop is monotonic
        longest = batch.seconds + self.scheduler.lost_after_seconds
        try:
            async with asyncio.timeout(None if math.isinf(longest) else longest) as limit:
                with ExitStack() as calls:  # all calls are made, even if one raises
                    for key in reversed(batch.drop):
                        calls.callback(self.drop, key)  # type: ignore[arg-type]  # given if prefixes are dropped
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
        """Deliver a request's verdict, or an exception if there is no verdict."""
        _, verdict = self._waiting.pop(key)
        if verdict.done():
            return  # the task was cancelled and has not run since then
        if key in verdicts:
            verdict.set_result(verdicts[key])
            return
        why = "" if failure is None else f" ({type(failure).__name__}: {failure})"
        error = NotVerified(f"the verifier gave no verdict for {describe(key)}{why}")
        error.__cause__ = failure
        verdict.set_exception(error)
