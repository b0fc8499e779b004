"""Prompts and rounds on a cloud pipeline, simulated in plain Python; imports nothing of the
package.

A calendar of what reaches the cloud is kept as a sorted list, and a batch takes all that is there.
"""

from __future__ import annotations

import bisect
import math
from typing import Any

from oracles.prompt_chunking import line


def simulate(
    knots: list[tuple[float, float]],
    requests: list[dict[str, Any]],
    *,
    stages: int,
    size: float,
    local: float,
    local_token: float,
    message: float,
    latency: float,
    head: float,
    sent: int,
    gained: int,
    drafted: int,
    budget: int | None = None,
    margins: list[float],
) -> list[tuple[float, float]]:
    """Return (first token, last token) since arrival for requests that all have rounds of one kind.

    A request has arrival, prompt, output, up, down, draft (seconds per token) and chunks. `margins`
    is filled with the seconds by which something was in time for a batch, or too late for it: where
    they are tiny, rounding decides.
    """
    calendar: list[tuple[float, int, int]] = []  # when, request, tokens; tokens 0: a round
    for index, request in enumerate(requests):
        device = link = request["arrival"]
        for x in request["chunks"]:
            device += local + local_token * x
            link = max(device, link) + message + x * size / request["up"]
            bisect.insort(calendar, (link + latency, index, x))
    queues: dict[int, list[int]] = {}  # chunks in the cloud, in order of the first one's arrival
    rounds: list[int] = []
    finish = [0.0] * stages
    tokens_done = [0] * len(requests)
    prompt_done = [0] * len(requests)
    down = [request["arrival"] for request in requests]
    first, last = [math.nan] * len(requests), [math.nan] * len(requests)
    now = 0.0
    while calendar or queues or rounds:
        start = max(finish[0], now) if queues or rounds else math.inf
        if calendar:
            margins.append(abs(calendar[0][0] - start))
        if calendar and calendar[0][0] <= start:
            now, index, x = calendar.pop(0)
            if x:
                queues.setdefault(index, []).append(x)
            else:
                rounds.append(index)
            continue
        now = start
        batch: dict[int, int] = {}
        left = 10**9 if budget is None else max(1, budget - sent * len(rounds))
        for index, queue in queues.items():
            if left <= 0:
                break
            batch[index] = min(queue[0], left)
            left -= batch[index]
        tokens = sum(batch.values()) + sent * len(rounds)
        busy = line([x for x, _ in knots], [y for _, y in knots], tokens) / stages
        for q in range(stages):
            finish[q] = max(finish[q], now if q == 0 else finish[q - 1]) + busy
        ends = []
        for index, x in batch.items():
            queues[index][0] -= x
            if not queues[index][0]:
                queues[index].pop(0)
            prompt_done[index] += x
            complete = prompt_done[index] == requests[index]["prompt"]
            back = x if budget is None else requests[index]["prompt"] if complete else 0
            down[index] = (
                max(finish[-1] + latency, down[index]) + back * size / requests[index]["down"]
            )
            if complete:
                tokens_done[index] = 1
                first[index] = down[index] + head - requests[index]["arrival"]
                ends.append((index, down[index] + head))
        queues = {index: queue for index, queue in queues.items() if queue}
        for index in rounds:
            tokens_done[index] += gained
            ends.append(
                (index, finish[-1] + latency + sent * size / requests[index]["down"] + head)
            )
        rounds = []
        for index, end in ends:
            request = requests[index]
            if tokens_done[index] >= request["output"]:
                last[index] = end - request["arrival"]
            else:
                there = end + drafted * request["draft"] + local + local_token * sent
                there += message + sent * size / request["up"] + latency
                bisect.insort(calendar, (there, index, 0))
    return list(zip(first, last, strict=True))
