"""The server to copy: played over sockets with faults, by the benchmark that plays more of it."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path += [str(ROOT / "benchmarks"), str(ROOT / "docs" / "verification-server")]

import server  # type: ignore[import-not-found]  # noqa: E402 - an example is no package
import verification_server as load  # type: ignore[import-not-found]  # noqa: E402 - neither are benchmarks

from specopt.instances.verification_batch.workload import TABLE_12  # noqa: E402
from specopt.online import AsyncScheduler, VerificationScheduler  # noqa: E402


@pytest.mark.parametrize("faults", [False, True])
def test_clients_over_sockets(faults: bool) -> None:
    """Tests that whatever vanishes, fails, stalls or jumps, every request that is awaited is
    answered, once.
    """
    found = load.play(40, 12, faults=faults)
    assert (
        found["served"] + found["told of a failure"] + found["abandoned"]
        == found["requests"]
        == 480
    )
    assert found["lost"] == found["verified twice"] == found["ghost keys"] == 0
    assert (found["abandoned"] > 0) == faults
    assert found["served"] >= 300 if faults else found["served"] == 480


def test_eight_threads_do_everything() -> None:
    """Tests that threads that call everything at random lose no request and leave none behind."""
    found = load.hammer(0.5)
    assert found["requests"] > 50
    assert found["exceptions"] == found["lost"] == found["ended twice"] == found["ghost keys"] == 0


def test_bad_requests_are_answered() -> None:
    """Tests that lines that are no requests, or bad ones, get an error that says why, and good ones
    their verdict.
    """
    fields = (
        b'{"draft": [1, 2, 3, 4], "class_speed": %s, "expected_tokens": 3, "cached_tokens": 9,'
        b' "tokens_done": 0, '
    )
    rest = b'"response_age": 0, "iteration_age": 0}'

    async def play() -> list[str]:
        async with AsyncScheduler(VerificationScheduler(TABLE_12), server.verify) as scheduler:
            lines = [b"{", b"[1]", b"{}", fields % b"0" + rest, fields % b"4" + rest]
            return [str(await server.verdict(scheduler, line)) for line in lines]

    broken, no_request, empty, bad, good = asyncio.run(play())
    assert "JSONDecodeError" in broken
    assert "TypeError" in no_request
    assert "KeyError: 'draft'" in empty
    assert "class_speed: expected a number > 0" in bad
    assert good == "{'verdict': 2}"
