"""The scheduler behind `asyncio`: coroutines submit drafts and await their verdicts, one per verifier verifies.

>>> import asyncio
>>> from specopt.instances.verification_batch.workload import TABLE_12
>>> async def verify(drafts):  # what runs the model
...     return {key: len(draft) for key, draft in drafts.items()}
>>> async def main():
...     async with AsyncScheduler(VerificationScheduler(TABLE_12), verify) as scheduler:
...         now = scheduler.clock()
...         return await scheduler.submit(
...             "a", [17, 4, 25], class_speed=4.0, expected_tokens=2.9, new_tokens=5, cached_tokens=200,
...             response_start_seconds=now, tokens_done=0, iteration_start_seconds=now,
...         )
>>> asyncio.run(main())
3
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import ExitStack
from types import TracebackType
from typing import Any, Generic, Self, TypeVar

from specopt.models.arguments import Key, integer, key_of
from specopt.models.errors import InvalidInput, SpecoptError
from specopt.models.fields import describe
from specopt.online.pool import VerificationPool
from specopt.online.verification import Batch, VerificationScheduler

Draft = TypeVar("Draft")
Verdict = TypeVar("Verdict")
Verify = Callable[[dict[Key, Draft]], Awaitable[Mapping[Key, Verdict]]]


class NotVerified(SpecoptError):
    """A request got no verdict: its cause is what the verifier raised, if it did."""


class VerifierDied(SpecoptError):
    """What `verify` raises where its verifier will serve no more: its requests go on with the others."""


class AsyncScheduler(Generic[Draft, Verdict]):
    """Let coroutines await their verdicts from one verifier, or several.

    A request whose task is cancelled, by a timeout or because its client has gone, is forgotten; so nothing piles up.
    One that the verifier does not get done within the scheduler's `lost_after_seconds` beyond the estimate is verified
    again, and `verify` is cancelled. All calls are made from one event loop.

    Parameters
    ----------
    scheduler
        Chooses the batches, or a pool of such; no request is in it, and all come through `submit`.
    verify
        Called with the drafts of a batch by key, most urgent first; returns the verdict of each. One call at a time.
        Of a pool, one for each verifier, by its name.
    most_requests
        How many may wait or run; `submit` of another one waits until there is room.
    clock
        Says what time it is, in seconds. Where it is set back, time stands still here: see `clock`.
    drop
        Called with every response whose prefix leaves the scheduler's bounded cache, before the batch that takes its
        room; it may `update` the scheduler on a request of it that waits. If it raises, the batch fails, once all of
        its responses have been informed.
    """

    def __init__(
        self,
        scheduler: VerificationScheduler | VerificationPool,
        verify: Verify[Draft, Verdict] | Mapping[Key, Verify[Draft, Verdict]],
        *,
        most_requests: int = 1000,
        clock: Callable[[], float] = time.monotonic,
        drop: Callable[[Key], object] | None = None,
    ) -> None:
        named: dict[Any, Verify[Draft, Verdict]] = dict(verify) if isinstance(verify, Mapping) else {None: verify}
        owned: dict[Any, VerificationScheduler] = {None: scheduler}  # type: ignore[dict-item]  # else a pool
        if isinstance(scheduler, VerificationPool):
            owned = {name: scheduler[name] for name in scheduler.verifiers}
        if named.keys() != owned.keys():
            raise InvalidInput("verify: expected a function, or of a pool one for each of its verifiers")
        self._verifiers = {name: (one, named[name]) for name, one in owned.items()}
        if any(one.pending or one.running for one in owned.values()):
            raise InvalidInput("scheduler: expected one without requests, since nothing awaits their verdicts")
        if drop is None and any(one.cache_memory_bytes is not None for one, _ in self._verifiers.values()):
            raise InvalidInput("drop: expected a function, as the scheduler's cache of prefixes is bounded")
        self.scheduler = scheduler
        self.drop = drop
        self._clock, self._shift, self._latest = clock, 0.0, -math.inf
        self._room = asyncio.Semaphore(integer("most_requests", most_requests, 1))
        self._waiting: dict[Key, tuple[Draft, asyncio.Future[Verdict]]] = {}
        self._news = asyncio.Event()
        self._closed = False
        self._tasks: list[asyncio.Task[None]] = []

    def clock(self) -> float:
        """Return what time it is: of the clock given, less its steps back, after which requests would not be due."""
        now = self._clock() + self._shift
        if now < self._latest:
            self._shift += self._latest - now
            now = self._latest
        self._latest = now
        return now

    async def __aenter__(self) -> Self:
        self.scheduler.warm_up()
        self._tasks = [asyncio.create_task(self._run(name)) for name in self._verifiers]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        for task in self._tasks if kind is not None else ():
            task.cancel()
        await self.close()

    async def close(self) -> None:
        """Take no more requests, and wait until those that were taken have their verdicts."""
        self._closed = True
        self._news.set()
        if self._tasks:
            await asyncio.wait(self._tasks)

    async def submit(self, key: Key, draft: Draft, **request: Any) -> Verdict:
        """Return the verdict on a draft.

        Parameters
        ----------
        key
            Names the request until this returns.
        draft
            What `verify` gets.
        request
            As for `submit` of the scheduler; moments are those of `clock`, and the request arrives now if nothing else
            is said.

        Raises
        ------
        InvalidInput, Refused
            If the request is refused.
        NotVerified
            If the verifier fails, or is closed.
        """
        async with self._room:
            if self._closed or not self._tasks:
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

    async def _run(self, name: Key | None) -> None:
        """Verify batch after batch until all is done after `close`; whatever happens, nobody waits for ever."""
        failure: Exception | None = None
        others_go_on = False
        try:
            while not (self._closed and not self._waiting):
                self._news.clear()
                batch = self._verifiers[name][0].next_batch(self.clock())
                if batch.keys:
                    await self._serve(batch, *self._verifiers[name])
                    self._news.set()  # others may wait for the end of all
                else:
                    await self._news.wait()
        except VerifierDied as error:
            failure = error
            if name is not None and len(self._verifiers) > 1 and isinstance(self.scheduler, VerificationPool):
                del self._verifiers[name]
                self.scheduler.leave(name, self.clock())
                others_go_on = True
        except Exception as error:
            failure = error
        finally:
            self._news.set()
            if not others_go_on:
                self._closed = True
                for key in list(self._waiting):
                    self.scheduler.cancel(key)
                    self._answer(key, {}, failure)

    async def _serve(self, batch: Batch, scheduler: VerificationScheduler, verify: Verify[Draft, Verdict]) -> None:
        """Verify a batch and tell those that wait."""
        failure: Exception | None = None
        seconds: float | None = None
        verdicts: Mapping[Key, Verdict] = {}
        loop = asyncio.get_running_loop()  # its clock never jumps
        longest = batch.seconds + scheduler.lost_after_seconds
        try:
            async with asyncio.timeout(None if math.isinf(longest) else longest) as limit:
                with ExitStack() as calls:  # all are, whatever one of the calls raises
                    for key in reversed(batch.drop):
                        calls.callback(self.drop, key)  # type: ignore[arg-type]  # there is one where prefixes go
                begun = loop.time()
                verdicts = dict(await verify({key: self._waiting[key][0] for key in batch.keys}))
            seconds = loop.time() - begun or None
        except Exception as error:
            if limit.expired():
                scheduler.abandon()
                return
            if isinstance(error, VerifierDied):
                raise
            failure = error
        for key in scheduler.complete(batch, seconds=seconds):
            self._answer(key, verdicts, failure)

    def _answer(self, key: Key, verdicts: Mapping[Key, Verdict], failure: Exception | None) -> None:
        """Tell who awaits a verdict what it is, or that there is none."""
        _, verdict = self._waiting.pop(key)
        if verdict.done():
            return  # its task was cancelled and has not run since
        if key in verdicts:
            verdict.set_result(verdicts[key])
            return
        error = NotVerified(f"the verifier gave no verdict for {describe(key)}")
        error.__cause__ = failure
        verdict.set_exception(error)
