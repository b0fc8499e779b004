"""The online scheduler of verification in a server: many requests, clients over sockets that
disappear, and many threads.
"""

from __future__ import annotations

import asyncio
import importlib.util
import json
import random
import resource
import sys
import threading
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from table import Benchmark, Row, exponent

from specopt.instances.runtimes.fit import fit_runtime
from specopt.instances.runtimes.table import RuntimeTable, TableColumns
from specopt.instances.runtimes.work import work_of
from specopt.instances.verification_batch.workload import TABLE_12
from specopt.models.errors import InvalidInput
from specopt.models.pass_time import VerificationTime, features
from specopt.online import AsyncScheduler
from specopt.online.verification import Batch, VerificationScheduler
from specopt.solvers.verification_batch.policies import POLICIES

EXAMPLE = Path(__file__).parents[1] / "docs" / "verification-server" / "server.py"
RECORDS = Path(__file__).parents[1] / "laboratory" / "records"
GIGABYTE = 1e9
KV_BYTES = 262_144.0
MAX_SECONDS = 300.0
"""Maximum time of a run over sockets. A request that is not answered by then is an error."""


# ---------------------------------------------------------------------------- what a call costs


def costs(smoke: bool) -> list[Row]:
    """Measure processor seconds per call with many thousand waiting requests."""
    sizes = [200, 400, 800] if smoke else [5000, 10_000, 20_000]
    rows = []
    for policy in POLICIES:
        if policy == "per-epoch":
            continue  # quadratic, so not for so many requests
        for room in (None, 40 * GIGABYTE) if policy == "slack" else (None,):
            taken = [_call_seconds(policy, size, 5 if smoke else 100, room) for size in sizes]
            (decision, late), (cancel, _) = taken[-1]
            power, cancel_power = (
                exponent(sizes, [calls[i][0] for calls in taken]) for i in range(2)
            )
            rows.append(
                Row(
                    f"{policy}, {sizes[-1]:,} pending, 4"
                    f" GB{' and 40 GB of prefixes' if room else ''}: a decision (99 %); a cancel",
                    f"{1e3 * decision:.2f} ms ({1e3 * late:.2f} ms), n^{power:.2f};"
                    f" {1e6 * cancel:.1f} us, n^{cancel_power:.2f} over {sizes}",
                    "1 ms" if policy == "slack" else "",
                    max(late, cancel) <= 1e-3 if policy == "slack" and not smoke else None,
                )
            )
    return rows


def _call_seconds(policy: Any, pending: int, rounds: int, room: float | None) -> list[Any]:
    """Return the mean time and the 99 % quantile of a decision and of a cancel, with `pending`
    requests throughout.
    """
    draw = np.random.default_rng(0)
    scheduler = VerificationScheduler(
        TABLE_12,
        policy,
        memory_bytes=4 * GIGABYTE,
        kv_bytes_per_token=KV_BYTES,
        cache_memory_bytes=room,
    )
    scheduler.warm_up()
    decisions, cancels = [], []
    waiting = -1
    for turn in range(rounds):
        for _ in range(pending - len(scheduler.pending)):
            waiting += 1
            speed, start = float(draw.integers(2, 9)), float(draw.uniform(0.0, 10.0))
            _submit(scheduler, waiting, speed, start, int(draw.integers(40)))
        start = time.process_time()
        batch = scheduler.next_batch(10.0 + 0.1 * turn)
        decisions.append(time.process_time() - start)
        scheduler.complete(batch)
        for key in draw.choice(np.array(scheduler.pending), 5, replace=False).tolist():
            start = time.process_time()
            scheduler.cancel(key)
            cancels.append(time.process_time() - start)
    return [
        (float(np.mean(taken)), float(np.quantile(taken, 0.99)))
        for taken in (decisions[1:], cancels)
    ]


def _submit(
    scheduler: VerificationScheduler,
    key: int | str,
    speed: float,
    start: float,
    done: int,
    new: int = 5,
    cached: int = 150,
) -> None:
    scheduler.submit(
        key,
        class_speed=speed,
        expected_tokens=3.0,
        new_tokens=new,
        cached_tokens=cached + done,
        response_start_seconds=start,
        tokens_done=done,
        iteration_start_seconds=start,
    )


# ---------------------------------------------------------------------------- what a batch takes


def estimates(smoke: bool) -> list[Row]:
    """Measure the errors of the estimated time of real batches, in the order in which the verifier
    of a laboratory served them.

    The scheduler begins with estimates 30 % off and learns from every batch. It is compared with
    the same estimates without learning, and with the best four coefficients in hindsight.
    """
    record = json.loads(
        next(iter(sorted(RECORDS.glob("*-verification-batch-real.json")))).read_text(
            encoding="utf-8"
        )
    )
    batches, seconds = [], []
    for trial in record["trials"]:
        new, cached = (
            np.array(record["requests"][trial["scene"]][name])
            for name in ("new_tokens", "cached_tokens")
        )
        for batch in (batch for measured in trial["measured"] for batch in measured["batches"]):
            batches.append((new[batch["requests"]], cached[batch["requests"]]))
            seconds.append(batch["seconds"])
    count = len(batches)
    table = RuntimeTable(
        columns=TableColumns(
            x=("batch_new_tokens", "batch_interactions", "batch_cached_tokens"), y=("seconds",)
        ),
        x=np.array([[column.sum() for column in features(*batch)] for batch in batches]),
        cached=np.zeros(count),
        batch=np.ones(count),
        seconds=np.array(seconds),
        lines=np.arange(1, count + 1),
        source="batches",
        rows=(count, count),
        warnings=(),
    )
    best = fit_runtime(table, work_of(table), "additive", errors="relative").estimator
    hindsight = _errors(best, batches, seconds, learns=False)
    rows = []
    for slope, overhead in ((1.3, 1.3), (0.7, 0.7), (1.3, 0.7), (0.7, 1.3)):
        start = best.scaled(slope, overhead)
        kept, learned = (_errors(start, batches, seconds, learns) for learns in (False, True))
        rows.append(
            Row(
                f"{len(batches)} real batches, slopes {slope - 1:+.0%}, overhead"
                f" {overhead - 1:+.0%}: mean error of the first 20 estimates; of the others (kept;"
                " best in hindsight)",
                f"{learned[:20].mean():.1%}; {learned[20:].mean():.1%} ({kept[20:].mean():.1%}; "
                f"{hindsight[20:].mean():.1%})",
                "within 1 % of the best",
                bool(learned[20:].mean() <= hindsight[20:].mean() + 0.01),
            )
        )
    return rows


def _errors(estimator: VerificationTime, batches: Any, seconds: Any, learns: bool) -> Any:
    """Return the relative errors of the estimates of a scheduler for each batch."""
    scheduler, found = VerificationScheduler(estimator, "fcfs"), []
    for (new, cached), taken in zip(batches, seconds, strict=True):
        for key, tokens in enumerate(zip(new.tolist(), cached.tolist(), strict=True)):
            _submit(scheduler, key, 4.0, 0.0, 0, *tokens)
        batch = scheduler.next_batch(10.0)
        found.append(abs(batch.seconds / taken - 1.0))
        scheduler.complete(batch, seconds=taken if learns else None)
    return np.array(found)


# ---------------------------------------------------------------------------- clients over sockets


def play(
    clients: int, turns: int, *, faults: bool = True, speedup: float = 50.0, seed: int = 0
) -> dict[str, float]:
    """Let clients send requests to the example server over loopback, with faults, and return the
    outcomes of the requests.

    One in twenty requests is abandoned by a client that disappears. One in thirty batches fails,
    and equally many stall forever. Before one in twenty batches the clock jumps forward or back by
    up to an hour, and before equally many the policy changes.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < 4 * clients:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 4 * clients + 100), hard))
    run = _Load(clients, turns, faults, speedup, seed).play()
    return asyncio.run(asyncio.wait_for(run, MAX_SECONDS))


class _Load:
    """State of a run: the actions of clients, verifier and clock, and the outcomes."""

    def __init__(self, clients: int, turns: int, faults: bool, speedup: float, seed: int) -> None:
        self.clients, self.turns, self.faults, self.speedup = clients, turns, faults, speedup
        self.random = random.Random(seed)
        self.offset = 0.0
        self.batches: Counter[str] = Counter()
        self.came: Counter[str] = Counter()
        self.verified: Counter[tuple[int, int]] = Counter()
        self.most = 0

    def chance(self, one_in: int) -> bool:
        return self.faults and self.random.randrange(one_in) == 0

    def clock(self) -> float:
        return time.monotonic() + self.offset

    def there(self) -> int:
        """Return the number of requests in the scheduler."""
        return len(self.scheduler.pending) + len(self.scheduler.running)

    async def verify(self, drafts: Mapping[Any, list[int]]) -> dict[Any, list[int]]:
        """Take the time of a batch, fail or stall. The verdict on a draft is the reversed draft."""
        self.batches["all"] += 1
        self.most = max(self.most, self.there())
        if self.chance(20):
            self.scheduler.policy = self.random.choice(["slack", "fcfs", "edf"])
        if self.chance(20):
            self.offset += self.random.uniform(-3600.0, 3600.0)
            self.batches["jumps of the clock"] += 1
        if self.chance(30):
            self.batches["stalled"] += 1
            await asyncio.sleep(3600.0)
        await asyncio.sleep(
            TABLE_12.seconds(np.full(len(drafts), 5), np.full(len(drafts), 200)) / self.speedup
        )
        if self.chance(30):
            self.batches["failed"] += 1
            raise OSError("injected")
        self.verified.update((draft[0], draft[1]) for draft in drafts.values())
        return {key: draft[::-1] for key, draft in drafts.items()}

    async def client(self, number: int, port: int) -> None:
        """Send requests for turn after turn. Sometimes disconnect while the verifier is busy, and
        return.
        """
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for turn in range(self.turns):
            draft = [number, turn, 1, 2, 3]
            speed = self.random.choice([2.0, 4.0, 8.0]) * self.speedup
            request = {
                "draft": draft,
                "class_speed": speed,
                "expected_tokens": 3.0,
                "cached_tokens": 200,
                "tokens_done": 3 * turn,
                "response_age": 1.0 * turn / self.speedup,
                "iteration_age": 0.1 / self.speedup,
            }
            writer.write(json.dumps(request).encode() + b"\n")
            if self.chance(20):
                await asyncio.sleep(self.random.uniform(0.0, 0.05))
                writer.transport.abort()
                self.came["abandoned"] += 1
                reader, writer = await asyncio.open_connection("127.0.0.1", port)
                continue
            answer = json.loads(await reader.readline())
            if "error" in answer:
                self.came["told of a failure"] += "NotVerified" in answer["error"]
            else:
                self.came["served"] += answer["verdict"] == draft[::-1]
        writer.close()

    async def play(self) -> dict[str, float]:
        """Run the server and all clients, and count the outcomes."""
        specification = importlib.util.spec_from_file_location("server", EXAMPLE)
        assert specification is not None and specification.loader is not None
        server = importlib.util.module_from_spec(specification)
        specification.loader.exec_module(server)
        self.scheduler = VerificationScheduler(TABLE_12, lost_after_seconds=0.1)
        started = time.monotonic()
        most = server.MAX_REQUESTS
        async with AsyncScheduler(
            self.scheduler, self.verify, max_requests=most, clock=self.clock
        ) as serving:
            listening = await asyncio.start_server(
                lambda *ends: server.converse(serving, *ends), "127.0.0.1", 0, backlog=self.clients
            )
            async with listening:
                port = listening.sockets[0].getsockname()[1]
                await asyncio.gather(*(self.client(number, port) for number in range(self.clients)))
        requests = self.clients * self.turns
        return {
            "requests": requests,
            "served": self.came["served"],
            "told of a failure": self.came["told of a failure"],
            "abandoned": self.came["abandoned"],
            "lost": requests - self.came.total(),
            "verified twice": sum(count > 1 for count in self.verified.values()),
            "ghost keys": self.there(),
            "batches": self.batches["all"],
            **{name: self.batches[name] for name in ("stalled", "failed", "jumps of the clock")},
            "most at once": self.most,
            "seconds": time.monotonic() - started,
        }


def sockets(smoke: bool) -> list[Row]:
    """Run clients over loopback sockets, without and with faults."""
    clients, turns = (20, 3) if smoke else (2000, 10)
    rows = []
    for faults in (False, True):
        found = play(clients, turns, faults=faults)
        seconds = found.pop("seconds")
        rows.append(
            Row(
                f"{clients:,} clients over sockets, {turns} requests each,"
                f" {'with' if faults else 'no'} faults",
                ", ".join(f"{name} {count:,}" for name, count in found.items())
                + f"; {seconds:.0f} s",
                "nothing lost, nothing twice, no ghosts",
                found["lost"] == found["verified twice"] == found["ghost keys"] == 0,
            )
        )
    return rows


# ---------------------------------------------------------------------------- threads


def hammer(seconds: float, count: int = 8) -> dict[str, int]:
    """Let threads submit, cancel, decide, complete, abandon and snapshot, and return the outcomes
    of the requests.
    """
    scheduler = VerificationScheduler(TABLE_12, lost_after_seconds=0.0)
    scheduler.warm_up()
    ends = [Counter[str]() for _ in range(count)]
    calls = [Counter[str]() for _ in range(count)]
    failures: list[BaseException] = []
    until = time.monotonic() + seconds

    def work(number: int) -> None:
        draw = random.Random(number)
        batches: list[Batch] = []
        mine: list[str] = []
        try:
            while time.monotonic() < until:
                call = draw.choice(
                    ("submit", "submit", "cancel", "decide", "complete", "abandon", "look")
                )
                if call == "submit":
                    mine.append(f"{number}-{calls[number]['submit']}")
                    _submit(
                        scheduler,
                        mine[-1],
                        draw.choice([2.0, 8.0]),
                        time.monotonic(),
                        draw.randrange(40),
                    )
                elif call == "cancel" and mine:
                    key = mine.pop(draw.randrange(len(mine)))
                    try:
                        scheduler.cancel(key)
                        ends[number][key] += 1
                    except InvalidInput:
                        calls[number]["cancelled too late"] += 1  # it was served
                elif call == "decide":
                    try:
                        batches.append(scheduler.next_batch(time.monotonic()))
                    except InvalidInput:
                        calls[number]["decided while one ran"] += 1
                elif call == "complete" and batches:
                    ends[number].update(
                        scheduler.complete(batches.pop(draw.randrange(len(batches))))
                    )
                elif call == "abandon" and draw.randrange(10) == 0:
                    scheduler.abandon()
                elif call == "look":
                    json.dumps(scheduler.state())
                calls[number][call] += 1
        except Exception as failure:
            failures.append(failure)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    ended = sum(ends, Counter[str]())
    left = (*scheduler.pending, *scheduler.running)
    keys = {f"{number}-{i}" for number in range(count) for i in range(calls[number]["submit"])}
    for key in left:
        scheduler.cancel(key)
    for failure in failures:
        print(repr(failure), file=sys.stderr)
    return {
        "calls": sum(calls, Counter[str]()).total(),
        "requests": len(keys),
        "ended": len(ended),
        "exceptions": len(failures),
        "lost": len(keys - ended.keys() - set(left)),
        "ended twice": sum(n > 1 for n in ended.values()) + len(ended.keys() & set(left)),
        "ghost keys": len(scheduler.pending) + len(scheduler.running),
    }


def threads(smoke: bool) -> list[Row]:
    """Run eight threads for a minute."""
    seconds = 0.3 if smoke else 60.0
    found = hammer(seconds)
    return [
        Row(
            f"8 threads for {seconds:g} s: submit, cancel, decide, complete, abandon, snapshot",
            ", ".join(f"{name} {count:,}" for name, count in found.items()),
            "no exceptions, nothing lost, nothing twice, no ghosts",
            not any(found[name] for name in ("exceptions", "lost", "ended twice", "ghost keys")),
        )
    ]


BENCHMARKS = (
    Benchmark("verification server: what a call costs", costs),
    Benchmark("verification server: what a batch takes", estimates),
    Benchmark("verification server: clients over sockets", sockets),
    Benchmark("verification server: threads", threads),
)
