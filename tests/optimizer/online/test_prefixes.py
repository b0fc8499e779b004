"""The cache of prefixes that the online scheduler keeps account of: what goes, who runs ahead, who
is forgotten.
"""

from __future__ import annotations

import json

import numpy as np
import pytest

from specopt.instances.verification_batch.workload import TABLE_12
from specopt.models.errors import InvalidInput
from specopt.online.verification import Batch, VerificationScheduler
from specopt.solvers.verification_batch.kernels.simulation import evict

KV_BYTES = 1000.0
TAU = {"slow": 2.0, "fast": 8.0}


def request(scheduler: VerificationScheduler, key: str, now: float, done: int, cached: int) -> None:
    """Submit a request for a window of four drafts, of a response that began at 0 and whose name
    says its class.
    """
    scheduler.submit(
        key,
        class_speed=TAU[key.split()[0]],
        expected_tokens=2.94,
        new_tokens=5 if cached else 205 + done,
        cached_tokens=cached,
        response_start_seconds=0.0,
        tokens_done=done,
        iteration_start_seconds=now - 0.09,
        arrival_seconds=now,
    )


def play(
    scheduler: VerificationScheduler, seconds: float, devices: int, room: float
) -> tuple[float, set[str]]:
    """Serve devices whose responses never end; return the share of cold verifications, and who was
    late at the end.
    """
    keys = [f"{kind} {i}" for i in range(devices) for kind in TAU]
    done = dict.fromkeys(keys, 0)
    kept = dict.fromkeys(keys, 0)
    arrivals = [(0.09, key) for key in keys]
    now, cold, served = 0.0, 0, 0
    while now < seconds:
        for key in [key for at, key in arrivals if at <= now]:
            request(scheduler, key, now, done[key], kept[key])
        arrivals = sorted(arrival for arrival in arrivals if arrival[0] > now)
        batch = scheduler.next_batch(now)
        for key in map(str, batch.drop):
            assert (
                kept[key] > 0 and key not in batch.keys
            )  # only what is there goes, and nothing that is read
            kept[key] = 0
            if key in scheduler.pending:
                scheduler.update(key, new_tokens=205 + done[key], cached_tokens=0)
        if not batch.keys:
            now = arrivals[0][0]
            continue
        now += batch.seconds
        for key in map(str, batch.keys):
            cold = cold + (kept[key] == 0)
            served = served + 1
            done[key] += 3
            kept[key] = 200 + done[key]
            arrivals.append((now + 0.1, key))
        scheduler.complete(batch)
        assert KV_BYTES * sum(kept.values()) <= room * 1.02  # 2 % for what a batch adds
    return cold / served, {key for key in keys if done[key] + 8 < TAU[key.split()[0]] * now}


def test_a_part_of_the_room_is_enough() -> None:
    """Tests that with room for part of the prefixes all responses keep their speed, and few are
    computed again.
    """
    room = KV_BYTES * 14_000.0
    short = VerificationScheduler(TABLE_12, kv_bytes_per_token=KV_BYTES, cache_memory_bytes=room)
    share, late = play(short, 20.0, 30, room)
    assert late == set()
    assert 0.005 < share < 0.15
    assert short._prefixes is not None
    ahead = {
        kind: [short._prefixes.ahead_seconds(f"{kind} {i}") > 0.0 for i in range(30)]
        for kind in TAU
    }
    assert all(ahead["slow"]) and not all(ahead["fast"])  # a slow one saves more room
    assert (
        play(VerificationScheduler(TABLE_12, kv_bytes_per_token=KV_BYTES), 20.0, 30, np.inf)[0]
        < 0.05
    )


def served(scheduler: VerificationScheduler, *keys: str) -> Batch:
    """Serve cold requests that are all due, each in its order."""
    for place, key in enumerate(keys):
        request(scheduler, key, 100.0, 100 + 10 * place, 0)
    batch = scheduler.next_batch(100.0)
    scheduler.complete(batch)
    return batch


def test_what_rounding_leaves_needs_no_room() -> None:
    """Tests that prefixes whose sum, less each of them, is more than nothing are dropped, and then
    the search ends.
    """
    cached = np.full(10, 0.1)
    rest = sum(cached.tolist())
    for size in cached.tolist():
        rest -= size
    assert rest > 0.0
    evict(0.0, cached, np.arange(10.0))
    assert not cached.any()


def test_what_is_due_last_goes_first() -> None:
    """Tests that a batch drops the prefix due last, nothing of its own, and that who is forgotten
    takes no room.
    """
    scheduler = VerificationScheduler(
        TABLE_12, kv_bytes_per_token=KV_BYTES, cache_memory_bytes=KV_BYTES * 1000.0
    )
    assert served(scheduler, "slow a", "slow b", "slow c").drop == ()
    copy = VerificationScheduler.from_state(
        json.loads(json.dumps(scheduler.state(), allow_nan=False)), shift_seconds=0.0
    )
    assert copy.state() == scheduler.state()
    assert served(copy, "fast d").drop == served(scheduler, "fast d").drop == ("slow c",)
    scheduler.forget("slow a")
    assert served(scheduler, "fast e").drop == ()
    assert served(scheduler, *(f"fast {i}" for i in range(9))).drop == (
        "fast d",
        "slow b",
        "fast e",
    )
    with pytest.raises(InvalidInput, match="cache_memory_bytes"):
        VerificationScheduler(TABLE_12, cache_memory_bytes=-1.0)


def test_a_waiting_request_without_its_prefix_does_not_run_ahead() -> None:
    """Tests that a request that waits while its prefix is dropped is no longer treated as one that
    runs ahead.
    """
    scheduler = VerificationScheduler(
        TABLE_12,
        kv_bytes_per_token=KV_BYTES,
        cache_memory_bytes=KV_BYTES * 400.0,
        memory_bytes=KV_BYTES * 400.0,
    )
    served(scheduler, "slow a")
    request(scheduler, "slow a", 101.0, 103, 308)
    state = scheduler.state()
    state["requests"][0]["ahead_seconds"] = 1.0
    scheduler = VerificationScheduler.from_state(state)
    request(scheduler, "fast b", 101.0, 100, 0)
    batch = scheduler.next_batch(101.0)
    assert batch.keys == ("fast b",) and batch.drop == ("slow a",)
    (waiting,) = [one for one in scheduler.state()["requests"] if one["key"] == "slow a"]
    assert waiting["ahead_seconds"] == 0.0
