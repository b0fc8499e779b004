"""Kernels that simulate chunked prompts and rounds of decoding, batch by batch.

Many devices share one pipeline of stages in the cloud.

A request has at most one pending event: the arrival of its next chunk in the cloud, or its next
round. Whenever the first stage is free, all waiting work forms the next batch, except that a batch
contains at most one chunk of a prompt. A batch of m tokens takes g(mu + m)/P on each stage.
Everything that follows a batch (the other stages, the download, the next draft) is known when the
batch starts, so no further events are needed.
"""

import math

import numpy as np

from specopt.solvers.kernels.heap import pop, push
from specopt.solvers.kernels.kernel import helper, kernel, record, rows
from specopt.solvers.kernels.random import GOLDEN, draw, mixed

WHOLE, PLANNED, EQUATION_3, SERVER = range(4)  # source of the chunks
NO_WAIT, SERIAL, OVERLAP = 0, 1, 2
NEVER, EQUATION_6, STEPS = 0, 1, 2  # parallel drafting: STEPS + n means n steps

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
"""A request.

The fields are its arrival time in seconds, its numbers of prompt and output tokens, its link rates
in bytes per second, and the time per drafted token in seconds. `first_size` is the index of its
first chunk in the plans' `sizes`.
"""

Round = rows("Round", drafted="i8", sent="i8", gained="i8", up_to="f8", hit="f8")
"""One possible outcome of a round of decoding.

The fields are the numbers of tokens drafted, sent and gained, the cumulative probability of the
outcome, and the probability that parallel drafting has already begun the next round.
"""

SMOOTHING = 0.8
"""Weight alpha of past batches in the moving average of Eq. 1."""

Cloud = record("Cloud", tokens="f8[::1]", seconds="f8[::1]", background="f8", stages="i8")
"""The cloud: the breakpoints of the piecewise linear function g, the constant part of mu, and the
number of stages P.
"""

Edge = record(
    "Edge",
    bytes_per_token="f8",
    # seconds per message and per token on the device, and per message sent besides its bytes
    local_overhead_seconds="f8",
    local_seconds_per_token="f8",
    message_overhead_seconds="f8",
    link_latency_seconds="f8",
    head_seconds="f8",
)
Serving = record(
    "Serving",
    mode="i8",
    sizes="i8[::1]",  # all chunks, if plans are given
    batch_tokens="i8",  # tokens per batch, up to which the server adds prompts
    wait="i8",
    last="b1",  # whether only the last token of a prompt comes back
    rounds="Round[::1]",
    parallel="i8",
    parallel_cost="f8",  # duration of a parallel drafting step relative to a drafting step
)
Reached = rows("Reached", first="f8", last="f8", chunks="i8", rounds="i8", hidden="i8")
"""Progress of a request, as reported in the results.

`first` and `last` are the times of the first and the last token in seconds, counted from the
arrival, or NaN if not reached. The other fields are the numbers of chunks and rounds, and the
number of drafting steps hidden by parallel drafting.
"""

Progress = rows(
    "Progress",
    device_free="f8",
    link_free="f8",
    down="f8",
    every="i8",
    chunk="i8",
    sent="i8",
    uploaded="i8",
    computed="i8",
    tokens="i8",
    outcome="i8",
)
"""Internal state of a request.

`device_free` and `link_free` are the times at which the request's device and uplink become free.
`down` is the end of the request's last download, and `every` is the chunk size of Eq. 3. `chunk`
and `sent` are the index and the size of the chunk on the uplink. `uploaded` and `computed` are the
numbers of prompt tokens that have arrived in the cloud and that the cloud has computed. `tokens` is
the number of response tokens so far, and `outcome` is the index of the current round's outcome.
"""

Batch = rows("Batch", start="f8", prompt_tokens="i8", round_tokens="i8", seconds="f8")
Ended = record(
    "Ended",
    events="i8",
    batches="i8",
    counted="i8",
    stage_seconds="f8",
    squares="f8",
    tokens="i8",
    background="f8",
    seconds="f8",
)
"""Totals of a simulation.

The fields are the numbers of events, of batches and of counted batches. They also include sums over
the counted batches: of the stage times, their squares, the numbers of tokens, and mu in Eq. 1. The
last field is the start of the last counted batch, in seconds after the first counted arrival.
"""


@helper
def _delay(tokens, seconds, m):
    """Return g(m), a piecewise linear function.

    It is constant to the left of its breakpoints, and keeps the last slope to their right.
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

    Return infinity if there is no root. At X = 0, the left side is below the right side, or equal
    to it if g(mu) is 0. The search ends at the first breakpoint of g at which the order is
    reversed.
    """
    here = _delay(tokens, seconds, mu)
    x0 = 0.0
    y0 = -2.0 * here / stages
    for k in range(len(tokens)):
        x1 = tokens[k] - mu
        if x1 <= x0:
            continue
        y1 = x1 * seconds_per_token - (here + _delay(tokens, seconds, tokens[k])) / stages
        if y0 < 0.0 <= y1 or y1 <= 0.0 < y0:
            return x0 + (x1 - x0) * (-y0) / (y1 - y0)
        x0, y0 = x1, y1
    slope = (seconds[-1] - seconds[-2]) / (tokens[-1] - tokens[-2])
    rate = seconds_per_token - slope / stages
    return x0 - y0 / rate if y0 * rate < 0.0 else math.inf


@helper
def _chunk_size(serving, request, c, left, every):
    """Return the number of tokens in the chunk with index c, given `left` remaining tokens."""
    if serving.mode == PLANNED:
        return serving.sizes[request.first_size + c]
    return min(every, left)


@helper
def _upload(edge, request, one, x):
    """Send a chunk of x tokens, and return the time at which it arrives in the cloud.

    The chunk is sent as soon as the device and the uplink are free.
    """
    one.device_free += edge.local_overhead_seconds + edge.local_seconds_per_token * x
    one.link_free = (
        max(one.device_free, one.link_free)
        + edge.message_overhead_seconds
        + x * edge.bytes_per_token / request.uplink
    )
    return one.link_free + edge.link_latency_seconds


@kernel(
    "Ended(u8, i8, i8, Request[::1], Cloud, Edge, Serving, Progress[::1], Reached[::1], Batch[::1])"
)
def play(key, first_counted, last_counted, requests, cloud, edge, serving, progress, reached, log):
    """Simulate requests until all counted requests are complete.

    An event is an arrival of a request, of a chunk or of a round in the cloud, or the start of a
    batch. A batch is counted if it starts between the arrivals of the first and the last counted
    request. ``progress`` is work space with shape (R,) that must be filled with zeros. The function
    fills ``reached``, with shape (R,), and the ``log`` of batches, up to the length of the log.
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
    stage_sum = 0.0
    squares = 0.0
    token_sum = 0
    span = 0.0
    events = 0
    batches = 0
    counted = 0
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
            r = upcoming if fresh else heap_requests[0]
            request, one = requests[r], progress[r]
            if fresh:
                upcoming += 1
                streams[r] = mixed(mixed(key) + np.uint64(r + 1) * GOLDEN)
                one.device_free = one.link_free = one.down = now
                one.every = request.prompt
                if serving.mode == EQUATION_3:
                    pace = edge.bytes_per_token / request.uplink
                    root = balanced_chunk(
                        tokens, seconds, background + mu, pace, np.float64(stages)
                    )
                    if root < request.prompt:
                        one.every = max(1, np.int64(math.ceil(root)))
            else:
                heap_size = pop(heap_times, heap_requests, heap_size)
                if one.computed == request.prompt:
                    deciding[n_deciding] = r
                    n_deciding += 1
                    continue
                if one.uploaded == one.computed:
                    waiting[n_waiting] = r
                    n_waiting += 1
                one.uploaded += one.sent
                one.chunk += 1
            left = request.prompt - one.uploaded
            if left > 0:
                one.sent = _chunk_size(serving, request, one.chunk, left, one.every)
                moment = _upload(edge, request, one, one.sent) + (
                    running if serving.wait == OVERLAP else 0.0
                )
                heap_size = push(heap_times, heap_requests, heap_size, moment, r)
            continue
        # ---- a batch: every waiting round, and a chunk of every waiting prompt
        now = launch
        from_rounds = 0
        for k in range(n_deciding):
            from_rounds += rounds[progress[deciding[k]].outcome].sent
        from_prompts = 0
        members = 0
        budget = max(1, serving.batch_tokens - from_rounds)
        while members < n_waiting and budget > 0:  # in order of arrival
            r = waiting[members]
            request, one = requests[r], progress[r]
            left = request.prompt - one.computed
            x = _chunk_size(serving, request, reached[r].chunks, left, one.every)
            taken[members] = min(budget, x)
            budget -= taken[members]
            from_prompts += taken[members]
            members += 1
        size = from_prompts + from_rounds
        stage = _delay(tokens, seconds, background + size) / stages
        begin = now + (running if serving.wait == SERIAL and members > 0 else 0.0)
        finish[0] = begin + stage
        for q in range(1, stages):
            finish[q] = max(finish[q - 1], finish[q]) + stage
        out_of_cloud = finish[stages - 1]
        mu = SMOOTHING * mu + (1.0 - SMOOTHING) * size  # Eq. 1
        if since_first <= now <= until_last:
            counted += 1
            stage_sum += stage
            squares += stage * stage
            token_sum += size
            mu_sum += mu
            span = now - since_first
        if batches < len(log):
            batch = log[batches]
            batch.start = begin
            batch.prompt_tokens = from_prompts
            batch.round_tokens = from_rounds
            batch.seconds = stage
        batches += 1
        for is_chunk in (True, False):
            for k in range(members if is_chunk else n_deciding):
                r = waiting[k] if is_chunk else deciding[k]
                request, mine, one = requests[r], reached[r], progress[r]
                ready = 0  # steps of the next draft completed by parallel drafting
                if is_chunk:
                    mine.chunks += 1
                    one.computed += taken[k]
                    last = one.computed == request.prompt
                    back = taken[k]
                    if serving.mode == SERVER:
                        back = request.prompt if last else 0  # nothing comes back earlier
                    if serving.last:
                        back = 1 if last else 0
                    one.down = (
                        max(out_of_cloud + edge.link_latency_seconds, one.down)
                        + back * edge.bytes_per_token / request.downlink
                    )
                    if not last:
                        continue
                    moment = one.down + edge.head_seconds
                    one.tokens = 1
                    mine.first = moment - request.arrival
                else:
                    mine.rounds += 1
                    law = rounds[one.outcome]
                    x = law.sent
                    moment = (
                        out_of_cloud
                        + edge.link_latency_seconds
                        + x * edge.bytes_per_token / request.downlink
                        + edge.head_seconds
                    )
                    one.tokens += law.gained
                if one.tokens >= request.output:
                    # tokens beyond the output are cut off, but their round must end
                    mine.last = moment - request.arrival
                    if first_counted <= r < last_counted:
                        open_requests -= 1
                    continue
                if (
                    not is_chunk
                    and serving.parallel != NEVER
                    and draw(streams, r) < rounds[one.outcome].hit
                ):
                    ready = serving.parallel - STEPS
                    if serving.parallel == EQUATION_6:  # together with the draft just verified
                        way = (
                            x
                            * edge.bytes_per_token
                            * (1.0 / request.uplink + 1.0 / request.downlink)
                        )
                        way += _delay(tokens, seconds, background + mu)
                        ready = np.int64(way / (request.draft_seconds * serving.parallel_cost))
                u = draw(streams, r)
                i = 0
                while i < len(rounds) - 1 and rounds[i].up_to <= u:
                    i += 1
                one.outcome = i
                hidden = min(ready, rounds[i].drafted)
                mine.hidden += hidden
                one.device_free = moment + (rounds[i].drafted - hidden) * request.draft_seconds
                one.link_free = one.device_free
                moment = _upload(edge, request, one, rounds[i].sent)
                heap_size = push(heap_times, heap_requests, heap_size, moment, r)
        n_deciding = 0
        kept = 0
        for k in range(n_waiting):
            one = progress[waiting[k]]
            if one.computed < one.uploaded:
                waiting[kept] = waiting[k]
                kept += 1
        n_waiting = kept
    return Ended(events, batches, counted, stage_sum, squares, token_sum, mu_sum, span)
