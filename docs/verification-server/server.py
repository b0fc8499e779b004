"""A verification server that receives requests as lines of JSON over TCP and returns verdicts.

`python server.py 8765` starts the server. A request has the fields in `REQUEST`. Its answer is
{"verdict": ...} or {"error": ...}.
"""

import asyncio
import itertools
import json
import sys
from asyncio import StreamReader, StreamWriter
from collections.abc import Mapping
from typing import Any

from specopt.instances.verification_batch.workload import TABLE_12
from specopt.models.errors import SpecoptError
from specopt.online import AsyncScheduler, VerificationScheduler

REQUEST = (
    "draft",
    "class_speed",
    "expected_tokens",
    "cached_tokens",
    "tokens_done",
    "response_age",
    "iteration_age",
)
"""Fields of a request: the drafted tokens; the minimum speed in tokens per second; the expected
number of tokens; the tokens in the cache and in the response so far; and the seconds since the
response and since this iteration began. The last two are ages, so that clocks need not agree.
"""

MAX_REQUESTS = 1000  # maximum number of requests in the scheduler; further clients wait
LOST_AFTER_SECONDS = 5.0  # time after the estimated end at which a batch is verified again

keys = itertools.count()


async def verify(drafts: Mapping[Any, list[int]]) -> dict[Any, int]:
    """Return the number of accepted tokens of each draft. Run your model here."""
    new = [len(draft) for draft in drafts.values()]
    await asyncio.sleep(TABLE_12.seconds(new, [200] * len(new)))
    return {key: len(draft) // 2 for key, draft in drafts.items()}


async def verdict(scheduler: AsyncScheduler[list[int], Any], line: bytes) -> dict[str, Any]:
    """Return the answer to a request."""
    try:
        request = json.loads(line)
        draft, speed, expected, cached, done, age, since = (request[name] for name in REQUEST)
        now = scheduler.clock()
        return {
            "verdict": await scheduler.submit(
                next(keys),
                draft,
                class_speed=speed,
                expected_tokens=expected,
                new_tokens=len(draft),
                cached_tokens=cached,
                tokens_done=done,
                response_start_seconds=now - age,
                iteration_start_seconds=now - since,
            )
        }
    except (SpecoptError, KeyError, TypeError, ValueError, OverflowError, RecursionError) as error:
        return {"error": f"{type(error).__name__}: {error}"}


async def converse(
    scheduler: AsyncScheduler[list[int], Any], reader: StreamReader, writer: StreamWriter
) -> None:
    """Answer one client, one request at a time. If the client disconnects, cancel its request."""
    following = asyncio.create_task(reader.readline())
    try:
        while line := await following:
            following = asyncio.create_task(reader.readline())
            answer = asyncio.create_task(verdict(scheduler, line))
            await asyncio.wait([answer, following], return_when=asyncio.FIRST_COMPLETED)
            if not answer.done() and (
                following.exception() or not following.result()
            ):  # the client has disconnected
                answer.cancel()
                break
            writer.write(json.dumps(await answer).encode() + b"\n")
            await writer.drain()
    except (ConnectionError, ValueError):  # the client disconnected, or its line is too long
        pass
    finally:
        following.cancel()
        writer.close()


async def main(port: int) -> None:
    """Listen until interrupted, and then verify the requests that were accepted."""
    scheduler = VerificationScheduler(TABLE_12, lost_after_seconds=LOST_AFTER_SECONDS)
    async with AsyncScheduler(scheduler, verify, max_requests=MAX_REQUESTS) as serving:
        listening = await asyncio.start_server(
            lambda *ends: converse(serving, *ends), "127.0.0.1", port
        )
        async with listening:
            await listening.serve_forever()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1])))
