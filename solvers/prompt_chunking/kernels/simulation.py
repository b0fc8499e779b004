"""Simulation of prompts in chunks and rounds of decoding: many devices and one pipeline of stages,
batch by batch.

A request has at most one pending event: the arrival of its next chunk in the cloud, or its next
round. Whenever the first stage is free, all waiting work forms the next batch, except that a batch
contains at most one chunk of a prompt. A batch of m tokens takes g(mu + m)/P on each stage.
Everything that follows a batch (the other stages, the way back, the next draft) is known when the
batch starts, so it needs no events of its own.
"""

import math

import numpy as np

from specopt.solvers.kernels.heap import pop, push
from specopt.solvers.kernels.kernel import helper, kernel, record, rows
from specopt.solvers.kernels.random import GOLDEN, draw, mixed

GIVEN, EQUATION_3, SERVER = 0, 1, 2  # source of the chunks
NO_WAIT, SERIAL, OVERLAP = 0, 1, 2
NEVER, EQUATION_6, STEPS = 0, 1, 2  # parallel drafting: STEPS + n means n steps
BATCHES, CHUNKS, ROUNDS = 0, 1, 2  # indices of sums

Request = rows(
    "Request",
    arrival="f8",
    prompt="i8",
    output="i8",
    uplink="f8",
    downlink="f8",
    draft_seconds="f8",
    first_size="i8",
)
"""Arrival time, numbers of tokens, link rates in bytes per second, time per drafted token in
seconds, and index of the request's first chunk in the plans' `sizes`.
"""

Round = rows("Round", drafted="i8", sent="i8", gained="i8", up_to="f8", hit="f8")
"""Tokens of a round of decoding, the cumulative probability of the round, and the probability that
parallel drafting has begun the next round.
"""

Cloud = record(
    "Cloud", tokens="f8[::1]", seconds="f8[::1]", background="f8", stages="i8", smoothing="f8"
)
"""The knots of g, the constant part of mu, the number of stages P, and the weight alpha of the past
in Eq. 1.
"""

Edge = record(
    "Edge",
    token_bytes="f8",
    # seconds per message on the device, per token there, and per message sent besides its bytes
    chunk="f8",
    token="f8",
    message="f8",
    latency="f8",  # latency of the link, in seconds
    head="f8",  # time at the head, in seconds
)
Serving = record(
    "Serving",
    mode="i8",
    sizes="i8[::1]",  # all chunks, if plans are given
    server_chunk="i8",  # tokens per batch, up to which the server adds prompts
    wait="i8",
    last="b1",  # whether only the last token of a prompt comes back
    rounds="Round[::1]",
    parallel="i8",
    parallel_cost="f8",  # duration of a parallel drafting step relative to a drafting step
)
Reached = rows("Reached", first="f8", last="f8", chunks="i8", rounds="i8", hidden="i8")
"""Progress of a request: times of the first and last token since arrival, NaN if not reached;
numbers of chunks, rounds, and drafting steps hidden by parallel drafting.
"""

Sums = rows("Sums", count="i8", seconds="f8", squares="f8", tokens="i8")
"""Statistics of the stage times of batches, or of the in-cloud delays of chunks or rounds: their
number, the sums of seconds and of squared seconds, and the number of tokens.
"""

Batch = rows("Batch", start="f8", prompt_tokens="i8", round_tokens="i8", seconds="f8")
Ended = record("Ended", events="i8", batches="i8", background="f8", seconds="f8")
"""Numbers of events and batches, sum of mu of Eq. 1 over counted batches, and time until the last
counted batch, in seconds.
"""


@helper
def _delay(tokens, seconds, m):
    """Return g(m), which is piecewise linear, with the first value to the left and the last slope
    to the right.
    """
    if m <= tokens[0]:
        return seconds[0]
    low, high = 0, len(tokens) - 1
    while high - low > 1:
        middle = (low + high) // 2
        if tokens[middle] <= m:
            low = middle
        else:
            high = middle
    slope = (seconds[low + 1] - seconds[low]) / (tokens[low + 1] - tokens[low])
    return seconds[low] + slope * (m - tokens[low])


@helper
def balanced_chunk(tokens, seconds, mu, seconds_per_token, stages):
    """Return the smallest positive root X of X seconds_per_token = (g(mu) + g(mu + X))/P (Eq. 3).

    Return infinity if there is no root. The left side starts below the right side, or equal to it
    if g(mu) is 0; the search ends at the first knot of g where the order is reversed.
    """
    here = _delay(tokens, seconds, mu)
    x0 = 0.0
    y0 = -2.0 * here / stages
    for k in range(len(tokens) + 1):
        if k == len(tokens):
            slope = (seconds[k - 1] - seconds[k - 2]) / (tokens[k - 1] - tokens[k - 2])
            rate = seconds_per_token - slope / stages
            return x0 - y0 / rate if y0 * rate < 0.0 else math.inf
        x1 = tokens[k] - mu
        if x1 <= x0:
            continue
        y1 = x1 * seconds_per_token - (here + _delay(tokens, seconds, tokens[k])) / stages
        if y0 < 0.0 <= y1 or y1 <= 0.0 < y0:
            return x0 + (x1 - x0) * (-y0) / (y1 - y0)
        x0, y0 = x1, y1
    return math.inf


@helper
def _chunk_size(serving, request, c, left, every):
    """Return the number of tokens of a prompt's next message, with index c, given `left` remaining
    tokens.
    """
    if serving.mode == GIVEN:
        return serving.sizes[request.first_size + c]
    if serving.mode == EQUATION_3:
        return min(every, left)
    return left


@helper
def _upload(edge, request, r, x, local, up):
    """Send a chunk of x tokens when device and link are free; return its arrival time in the
    cloud.
    """
    local[r] += edge.chunk + edge.token * x
    up[r] = max(local[r], up[r]) + edge.message + x * edge.token_bytes / request.uplink
    return up[r] + edge.latency


@helper
def _add(sums, seconds, tokens):
    """Add a batch or a delay to the sums."""
    sums.count += 1
    sums.seconds += seconds
    sums.squares += seconds * seconds
    sums.tokens += tokens


@kernel(
    "Ended(u8, i8, i8, Request[::1], Cloud, Edge, Serving, Reached[::1], Sums[::1], Batch[::1])"
)
def play(key, first_counted, last_counted, requests, cloud, edge, serving, reached, sums, log):
    """Simulate until the counted requests, in order of arrival, are complete.

    An event is an arrival of a request, of a chunk or of a round in the cloud, or the start of a
    batch. A batch is counted if it starts between the arrivals of the first and the last counted
    request. Modified in place: ``reached`` (R,), ``sums`` (3,) and, up to its length, the ``log``
    of batches.
    """
    n = len(requests)
    since_first, until_last = requests[first_counted].arrival, requests[last_counted - 1].arrival
    tokens, seconds, stages, background = (
        cloud.tokens,
        cloud.seconds,
        cloud.stages,
        cloud.background,
    )
    rounds = serving.rounds
    running = _delay(tokens, seconds, background) / stages  # waiting time w
    streams = np.empty(n, np.uint64)
    local = np.zeros(n)
    up = np.zeros(n)
    down = np.zeros(n)
    every = np.zeros(n, np.int64)
    sent = np.zeros(n, np.int64)  # tokens of the prompt in transit or in the cloud
    served = np.zeros(n, np.int64)
    messages = np.zeros(n, np.int64)
    done = np.zeros(n, np.int64)
    ready = np.zeros(n, np.int64)  # steps of the next draft completed by parallel drafting
    outcome = np.zeros(n, np.int64)
    here = np.zeros(n)  # arrival in the cloud
    # chunks in the cloud, as linked lists with a queue per request: a ring in one array would need
    # their number
    head = np.full(n, -1, np.int64)
    tail = np.full(n, -1, np.int64)
    room = 1024
    chunk_tokens = np.empty(room, np.int64)
    chunk_arrival = np.empty(room)
    chunk_next = np.empty(room, np.int64)
    free = -1
    used = 0
    heap_times = np.empty(n)
    heap_requests = np.empty(n, np.int64)
    heap_size = 0
    waiting = np.empty(n, np.int64)  # requests with chunks in the cloud
    n_waiting = 0
    deciding = np.empty(n, np.int64)  # requests with a round in the cloud
    n_deciding = 0
    taken = np.empty(n, np.int64)
    finish = np.zeros(stages)
    mu = 0.0
    mu_sum = 0.0
    span = 0.0
    events = 0
    batches = 0
    upcoming = 0
    open_requests = last_counted - first_counted
    now = 0.0
    while open_requests > 0:
        launch = max(finish[0], now) if n_waiting + n_deciding > 0 else math.inf
        moment = heap_times[0] if heap_size > 0 else math.inf
        fresh = upcoming < n and requests[upcoming].arrival <= moment
        if fresh:
            moment = requests[upcoming].arrival
        if moment == math.inf and launch == math.inf:
            break
        events += 1
        if moment <= launch:
            now = moment
            if fresh:
                r = upcoming
                request = requests[r]
                upcoming += 1
                streams[r] = mixed(mixed(key) + np.uint64(r + 1) * GOLDEN)
                local[r], up[r], down[r] = now, now, now
                if serving.mode == EQUATION_3:
                    pace = edge.token_bytes / request.uplink
                    root = balanced_chunk(
                        tokens, seconds, background + mu, pace, np.float64(stages)
                    )
                    every[r] = (
                        request.prompt
                        if root >= request.prompt
                        else max(1, np.int64(math.ceil(root)))
                    )
            else:
                r = heap_requests[0]
                request = requests[r]
                heap_size = pop(heap_times, heap_requests, heap_size)
                if served[r] == request.prompt:
                    here[r] = now
                    deciding[n_deciding] = r
                    n_deciding += 1
                    continue
                x = _chunk_size(serving, request, messages[r], request.prompt - sent[r], every[r])
                if free >= 0:
                    c = free
                    free = chunk_next[c]
                else:
                    if used == room:
                        chunk_tokens = np.concatenate((chunk_tokens, np.empty(room, np.int64)))
                        chunk_arrival = np.concatenate((chunk_arrival, np.empty(room)))
                        chunk_next = np.concatenate((chunk_next, np.empty(room, np.int64)))
                        room *= 2
                    c = used
                    used += 1
                chunk_tokens[c] = x
                chunk_arrival[c] = now
                chunk_next[c] = -1
                if head[r] < 0:
                    head[r] = c
                    waiting[n_waiting] = r
                    n_waiting += 1
                else:
                    chunk_next[tail[r]] = c
                tail[r] = c
                sent[r] += x
                messages[r] += 1
            if sent[r] < request.prompt:
                x = _chunk_size(serving, request, messages[r], request.prompt - sent[r], every[r])
                moment = _upload(edge, request, r, x, local, up) + (
                    running if serving.wait == OVERLAP else 0.0
                )
                heap_size = push(heap_times, heap_requests, heap_size, moment, r)
            continue
        # ---- a batch: every waiting round, and a chunk of every waiting prompt
        now = launch
        from_rounds = 0
        for k in range(n_deciding):
            from_rounds += rounds[outcome[deciding[k]]].sent
        from_prompts = 0
        members = n_waiting
        if serving.mode == SERVER:  # fill up a token budget in order of arrival
            budget = max(1, serving.server_chunk - from_rounds)
            members = 0
            while members < n_waiting and budget > 0:
                taken[members] = min(budget, chunk_tokens[head[waiting[members]]])
                budget -= taken[members]
                from_prompts += taken[members]
                members += 1
        else:
            for k in range(n_waiting):
                taken[k] = chunk_tokens[head[waiting[k]]]
                from_prompts += taken[k]
        size = from_prompts + from_rounds
        stage = _delay(tokens, seconds, background + size) / stages
        begin = now + (running if serving.wait == SERIAL and members > 0 else 0.0)
        finish[0] = begin + stage
        for q in range(1, stages):
            finish[q] = max(finish[q - 1], finish[q]) + stage
        out_of_cloud = finish[stages - 1]
        mu = cloud.smoothing * mu + (1.0 - cloud.smoothing) * size  # Eq. 1
        within = since_first <= now <= until_last
        if within:
            _add(sums[BATCHES], stage, size)
            mu_sum += mu
            span = now - since_first
        if batches < len(log):
            batch = log[batches]
            batch.start = begin
            batch.prompt_tokens = from_prompts
            batch.round_tokens = from_rounds
            batch.seconds = stage
        batches += 1
        for part in (CHUNKS, ROUNDS):
            for k in range(members if part == CHUNKS else n_deciding):
                r = waiting[k] if part == CHUNKS else deciding[k]
                request, mine = requests[r], reached[r]
                if part == CHUNKS:
                    c = head[r]
                    x = taken[k]
                    since = chunk_arrival[c]
                    served[r] += x
                    chunk_tokens[c] -= x
                    if chunk_tokens[c] == 0:
                        head[r] = chunk_next[c]
                        chunk_next[c] = free
                        free = c
                    last = served[r] == request.prompt
                    back = x
                    if serving.mode == SERVER:
                        back = request.prompt if last else 0  # nothing comes back earlier
                    if serving.last:
                        back = 1 if last else 0
                    down[r] = (
                        max(out_of_cloud + edge.latency, down[r])
                        + back * edge.token_bytes / request.downlink
                    )
                    mine.chunks += 1
                else:
                    x = rounds[outcome[r]].sent
                    since = here[r]
                    last = True
                    down[r] = out_of_cloud + edge.latency + x * edge.token_bytes / request.downlink
                    mine.rounds += 1
                if within:
                    _add(sums[part], out_of_cloud - since, x)
                if not last:
                    continue
                moment = down[r] + edge.head
                if part == CHUNKS:
                    done[r] = 1
                    mine.first = moment - request.arrival
                else:
                    done[r] += rounds[outcome[r]].gained
                if done[r] >= request.output:
                    # tokens beyond the output are cut off, but their round must end
                    mine.last = moment - request.arrival
                    if first_counted <= r < last_counted:
                        open_requests -= 1
                    continue
                ready[r] = 0
                if (
                    part == ROUNDS
                    and serving.parallel != NEVER
                    and draw(streams, r) < rounds[outcome[r]].hit
                ):
                    ready[r] = serving.parallel - STEPS
                    if serving.parallel == EQUATION_6:  # together with the draft just verified
                        way = x * edge.token_bytes * (1.0 / request.uplink + 1.0 / request.downlink)
                        way += _delay(tokens, seconds, background + mu)
                        ready[r] = np.int64(way / (request.draft_seconds * serving.parallel_cost))
                u = draw(streams, r)
                i = 0
                while i < len(rounds) - 1 and rounds[i].up_to <= u:
                    i += 1
                outcome[r] = i
                hidden = min(ready[r], rounds[i].drafted)
                mine.hidden += hidden
                local[r] = moment + (rounds[i].drafted - hidden) * request.draft_seconds
                up[r] = local[r]
                moment = _upload(edge, request, r, rounds[i].sent, local, up)
                heap_size = push(heap_times, heap_requests, heap_size, moment, r)
        n_deciding = 0
        kept = 0
        for k in range(n_waiting):
            if head[waiting[k]] >= 0:
                waiting[kept] = waiting[k]
                kept += 1
        n_waiting = kept
    return Ended(events, batches, mu_sum, span)
