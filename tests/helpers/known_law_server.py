"""A server in the tests' own process whose steps follow a law of load and draft length, over real
HTTP.

A step of c requests with K drafts takes `seconds(c, K)` and yields a token and the drafts that are
accepted, each with the same probability if all before it were. Requests keep to the law's time
whatever the machine does beside: they sleep until the time at which their steps are over.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import random
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from helpers.stand_in_server import Server

from specopt.models.acceptance import expected_tokens

SCRAPES = 3
"""Of a first load, and of a look before it: the fault "later" begins after them."""


@dataclass(frozen=True)
class Law:
    """Seconds of a step: a pass, more per token that it verifies, more per draft; and the rate of
    acceptance.
    """

    of_pass: float
    of_token: float
    of_draft: float
    rate: float
    idle: float = 0.0

    def seconds(self, concurrency: int, length: int | None) -> float:
        """Return the seconds of a step."""
        drafts = length or 0
        idle = self.idle if length == 0 else 0.0
        return (
            self.of_pass + self.of_token * concurrency * (1 + drafts) + self.of_draft * drafts
        ) / (1.0 - idle)

    def tokens(self, length: int | None) -> float:
        """Return the mean tokens of a step."""
        return float(expected_tokens(self.rate, float(length or 0)))

    def speed(self, concurrency: int, length: int | None) -> float:
        """Return tokens per second."""
        return concurrency * self.tokens(length) / self.seconds(concurrency, length)


class LawServer(Server):
    """Answers at the pace of a law; `length` None: it does not speculate, and counts nothing."""

    def __init__(self, law: Law, length: int | None, fault: str = "") -> None:
        super().__init__(length or 0, fault)
        self.law, self.speculates, self.scrapes = law, length, 0
        self.random = random.Random(0)

    def seconds(self) -> float:
        """Return the seconds of a step by the law."""
        return self.law.seconds(self.active, self.speculates)

    def accepted(self) -> int:
        """Return how many drafts come before the first that is rejected."""
        chances = (self.random.random() < self.law.rate for _ in range(self.length))
        return sum(itertools.takewhile(bool, chances))

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one request and close, even where the server ends first."""
        with contextlib.suppress(asyncio.CancelledError, ConnectionError):
            await super().answer(reader, writer)
        writer.close()

    def metrics(self) -> str:
        """Return the counters as vLLM writes them."""
        self.scrapes += 1
        return super().metrics()

    async def stream(self, writer: asyncio.StreamWriter, asked: dict[str, object]) -> None:
        """Write tokens step by step, or fail from the second load on."""
        if self.fault == "later" and self.scrapes > SCRAPES:
            self.plain(writer, '{"error": "out of memory"}', "500 Internal Server Error")
        else:
            await super().stream(writer, asked)


@contextmanager
def serving(law: Law, length: int | None, fault: str = "") -> Iterator[str]:
    """Serve in a thread, and yield the address."""
    loop, ready = asyncio.new_event_loop(), threading.Event()
    found: list[asyncio.Server] = []

    def serve() -> None:
        asyncio.set_event_loop(loop)
        found.append(
            loop.run_until_complete(
                asyncio.start_server(LawServer(law, length, fault).answer, "127.0.0.1")
            )
        )
        ready.set()
        loop.run_forever()

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    assert ready.wait(60)
    try:
        yield f"http://127.0.0.1:{found[0].sockets[0].getsockname()[1]}"
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.run_until_complete(_ended(found[0]))
        loop.close()


async def _ended(server: asyncio.Server) -> None:
    """Close a server and what it still answers."""
    server.close()
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    await asyncio.sleep(0.01)  # transports close in a later step
