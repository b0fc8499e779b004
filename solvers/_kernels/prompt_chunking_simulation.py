"""Prompts in chunks and rounds of decoding, simulated: many devices, one pipeline of stages, batch after batch.

A request is one pending event at most: the next chunk that arrives in the cloud, or its next round. Whenever the first
stage is free, everything that waits there forms the next batch, but no two chunks of one prompt; a batch of m tokens
takes g(mu + m)/P on each stage. All that follows a batch (the other stages, the way back, the next draft) is known
when it starts, so that it needs no event of its own.

Settings by position: bytes per token, constant background mu, local overhead, local seconds per token, overhead of a
message, latency of the link, seconds at the head, weight alpha of the past in Eq. 1, how much longer a step of parallel
drafting takes than a step of drafting. Choices by position: who chunks, tokens of a chunk, wait, download, stages,
parallel drafting (0 never, 1 by Eq. 6, else one more than the number of steps).
"""

import math

import numpy as np

from specopt.solvers._kernels.heap import pop, push
from specopt.solvers._kernels.kernel import helper, kernel
from specopt.solvers._kernels.random import GOLDEN, draw, mixed

BYTES, BACKGROUND, LOCAL, LOCAL_TOKEN, MESSAGE, LATENCY, HEAD, ALPHA, PARALLEL_COST = 0, 1, 2, 3, 4, 5, 6, 7, 8
MODE, CHUNK, WAIT, DOWNLOAD, STAGES, PARALLEL = 0, 1, 2, 3, 4, 5
GIVEN, EQUATION_3, SERVER = 0, 1, 2
NO_WAIT, SERIAL, OVERLAP = 0, 1, 2
ALL, LAST = 0, 1


@helper
def _delay(tokens, seconds, m):
    """Return g(m): piecewise linear, the first value to the left, the last slope to the right."""
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
    """Return the smallest positive root X of X seconds_per_token = (g(mu) + g(mu + X))/P (Eq. 3); infinity if none.

    The left side starts below the right one, or at it if g(mu) is 0; the first knot on the other side ends the search.
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
def _chunk_size(choices, r, c, left, every, offsets, sizes):
    """Return the tokens of a prompt's next message, given what is `left` of it."""
    if choices[MODE] == GIVEN:
        return sizes[offsets[r] + c]
    if choices[MODE] == EQUATION_3:
        return min(every[r], left)
    return left


@helper
def _upload(settings, choices, r, x, uplink, wait, local, up):
    """Send a chunk of x tokens as soon as device and link are free; return when the cloud may start on it."""
    local[r] += settings[LOCAL] + settings[LOCAL_TOKEN] * x
    up[r] = max(local[r], up[r]) + settings[MESSAGE] + x * settings[BYTES] / uplink[r]
    return up[r] + settings[LATENCY] + (wait if choices[WAIT] == OVERLAP else 0.0)


@kernel(
    "i8(u8, f8[::1], i8[::1], f8[::1], i8[::1], i8[::1], f8[::1], f8[::1], f8[::1], i8[::1], i8[::1], f8[::1],"
    " i8[:, ::1], f8[::1], i8, i8, f8[:, ::1], f8[::1], f8[:, ::1])"
)
def play(
    key, settings, choices, arrival, prompt, output, uplink, downlink, draft_seconds, offsets, sizes, knots, rounds,
    round_law, first_counted, last_counted, out, totals, log,
):  # fmt: skip
    """Simulate until the counted requests are complete; return the number of events.

    Requests are R, in order of `arrival`: tokens of `prompt` and `output`, bandwidths in bytes per second, seconds per
    drafted token. Request r sends the chunks ``sizes[offsets[r] : offsets[r + 1]]`` if plans are given. `knots` is
    tokens and then seconds of g. A round drafts, sends and yields ``rounds[i]`` (T, 3) tokens; `round_law` is the
    cumulative law of i and then, by i, the chance that parallel drafting has begun the next draft.

    An event is an arrival of a request, of a chunk or of a round in the cloud, or the start of a batch.

    Modified in place:

    * ``out`` (R, 5): first token and last token since arrival, chunks, rounds, steps of drafting hidden by parallel
      drafting; NaN for times that were not reached,
    * ``totals`` (16,): batches, and the sum and sum of squares of their seconds per stage, and the sum of their tokens;
      the same four for the in-cloud delay of chunks (count, sum, squares, tokens), and for that of rounds; mu of Eq. 1
      summed over batches, end, rows of ``log``, seconds until the last counted batch (all but end and rows of batches
      that start between the arrivals of the first and the last counted request), and
    * ``log`` (E, 4): start, tokens of prompts, tokens of rounds, seconds per stage of the first batches.
    """
    n = len(arrival)
    stages = choices[STAGES]
    pieces = len(knots) // 2
    tokens, seconds = knots[:pieces], knots[pieces:]
    kinds = len(rounds)
    background = settings[BACKGROUND]
    running = _delay(tokens, seconds, background) / stages  # w
    streams = np.empty(n, dtype=np.uint64)
    local = np.zeros(n)
    up = np.zeros(n)
    down = np.zeros(n)
    every = np.zeros(n, dtype=np.int64)
    sent = np.zeros(n, dtype=np.int64)  # tokens of the prompt on their way or in the cloud
    served = np.zeros(n, dtype=np.int64)
    messages = np.zeros(n, dtype=np.int64)
    done = np.zeros(n, dtype=np.int64)
    ready = np.zeros(n, dtype=np.int64)  # steps of the next draft that parallel drafting has made
    outcome = np.zeros(n, dtype=np.int64)
    here = np.zeros(n)  # arrival in the cloud
    # chunks in the cloud, a queue per request: a ring in one array would need their number, so chunks are linked
    head = np.full(n, -1, dtype=np.int64)
    tail = np.full(n, -1, dtype=np.int64)
    room = 1024
    chunk_tokens = np.empty(room, dtype=np.int64)
    chunk_arrival = np.empty(room)
    chunk_next = np.empty(room, dtype=np.int64)
    free = -1
    used = 0
    heap_times = np.empty(n)
    heap_requests = np.empty(n, dtype=np.int64)
    heap_size = 0
    waiting = np.empty(n, dtype=np.int64)  # requests with chunks in the cloud
    n_waiting = 0
    deciding = np.empty(n, dtype=np.int64)  # requests with a round in the cloud
    n_deciding = 0
    taken = np.empty(n, dtype=np.int64)
    finish = np.zeros(stages)
    mu = 0.0
    events = 0
    batches = 0
    upcoming = 0
    open_requests = last_counted - first_counted
    now = 0.0
    while open_requests > 0:
        launch = max(finish[0], now) if n_waiting + n_deciding > 0 else math.inf
        moment = heap_times[0] if heap_size > 0 else math.inf
        fresh = upcoming < n and arrival[upcoming] <= moment
        if fresh:
            moment = arrival[upcoming]
        if moment == math.inf and launch == math.inf:
            break
        events += 1
        if moment <= launch:
            now = moment
            if fresh:
                r = upcoming
                upcoming += 1
                streams[r] = mixed(mixed(key) + np.uint64(r + 1) * GOLDEN)
                local[r], up[r], down[r] = now, now, now
                if choices[MODE] == EQUATION_3:
                    root = balanced_chunk(
                        tokens, seconds, background + mu, settings[BYTES] / uplink[r], np.float64(stages)
                    )
                    every[r] = prompt[r] if root >= prompt[r] else max(1, np.int64(math.ceil(root)))
            else:
                r = heap_requests[0]
                heap_size = pop(heap_times, heap_requests, heap_size)
                if served[r] == prompt[r]:
                    here[r] = now
                    deciding[n_deciding] = r
                    n_deciding += 1
                    continue
                x = _chunk_size(choices, r, messages[r], prompt[r] - sent[r], every, offsets, sizes)
                if free >= 0:
                    c = free
                    free = chunk_next[c]
                else:
                    if used == room:
                        chunk_tokens = np.concatenate((chunk_tokens, np.empty(room, dtype=np.int64)))
                        chunk_arrival = np.concatenate((chunk_arrival, np.empty(room)))
                        chunk_next = np.concatenate((chunk_next, np.empty(room, dtype=np.int64)))
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
            if sent[r] < prompt[r]:
                x = _chunk_size(choices, r, messages[r], prompt[r] - sent[r], every, offsets, sizes)
                heap_size = push(
                    heap_times, heap_requests, heap_size,
                    _upload(settings, choices, r, x, uplink, running, local, up), r
                )  # fmt: skip
            continue
        # ---- a batch: every round that waits, and a chunk of every prompt that waits
        now = launch
        from_rounds = 0
        for k in range(n_deciding):
            from_rounds += rounds[outcome[deciding[k]], 1]
        from_prompts = 0
        members = n_waiting
        if choices[MODE] == SERVER:  # the server fills up a budget of tokens, first come first served
            budget = max(1, choices[CHUNK] - from_rounds)
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
        begin = now + (running if choices[WAIT] == SERIAL and members > 0 else 0.0)
        finish[0] = begin + stage
        for q in range(1, stages):
            finish[q] = max(finish[q - 1], finish[q]) + stage
        out_of_cloud = finish[stages - 1]
        mu = settings[ALPHA] * mu + (1.0 - settings[ALPHA]) * size  # Eq. 1
        within = arrival[first_counted] <= now <= arrival[last_counted - 1]
        if within:
            totals[0] += 1.0
            totals[1] += stage
            totals[2] += stage * stage
            totals[3] += size
            totals[12] += mu
            totals[15] = now - arrival[first_counted]
        if batches < len(log):
            log[batches, 0] = begin
            log[batches, 1] = from_prompts
            log[batches, 2] = from_rounds
            log[batches, 3] = stage
            totals[14] += 1.0
        batches += 1
        for part in range(2):
            count = members if part == 0 else n_deciding
            for k in range(count):
                r = waiting[k] if part == 0 else deciding[k]
                if part == 0:
                    c = head[r]
                    x = taken[k]
                    since = chunk_arrival[c]
                    served[r] += x
                    chunk_tokens[c] -= x
                    if chunk_tokens[c] == 0:
                        head[r] = chunk_next[c]
                        chunk_next[c] = free
                        free = c
                    last = served[r] == prompt[r]
                    back = x
                    if choices[MODE] == SERVER:
                        back = prompt[r] if last else 0  # nothing comes back before the prompt is complete
                    if choices[DOWNLOAD] == LAST:
                        back = 1 if last else 0
                    down[r] = max(out_of_cloud + settings[LATENCY], down[r]) + back * settings[BYTES] / downlink[r]
                    out[r, 2] += 1.0
                else:
                    x = rounds[outcome[r], 1]
                    since = here[r]
                    last = True
                    down[r] = out_of_cloud + settings[LATENCY] + x * settings[BYTES] / downlink[r]
                    out[r, 3] += 1.0
                if within:
                    spent = out_of_cloud - since
                    totals[4 + 4 * part] += 1.0
                    totals[5 + 4 * part] += spent
                    totals[6 + 4 * part] += spent * spent
                    totals[7 + 4 * part] += x
                if not last:
                    continue
                if part == 0:
                    done[r] = 1
                    out[r, 0] = down[r] + settings[HEAD] - arrival[r]
                else:
                    done[r] += rounds[outcome[r], 2]
                moment = down[r] + settings[HEAD]
                if done[r] >= output[r]:
                    # tokens beyond the output are cut off, but their round has to end
                    out[r, 1] = moment - arrival[r]
                    if first_counted <= r < last_counted:
                        open_requests -= 1
                    continue
                hit = part == 1 and choices[PARALLEL] > 0
                if hit:
                    hit = draw(streams, r) < round_law[kinds + outcome[r]]
                if hit:
                    steps = choices[PARALLEL] - 2
                    if choices[PARALLEL] == 1:  # Eq. 6, with the draft just verified
                        way = rounds[outcome[r], 1] * settings[BYTES] * (1.0 / uplink[r] + 1.0 / downlink[r])
                        way += _delay(tokens, seconds, background + mu)
                        steps = np.int64(way / (draft_seconds[r] * settings[PARALLEL_COST]))
                    ready[r] = steps
                else:
                    ready[r] = 0
                u = draw(streams, r)
                i = 0
                while i < kinds - 1 and round_law[i] <= u:
                    i += 1
                outcome[r] = i
                hidden = min(ready[r], rounds[i, 0])
                out[r, 4] += hidden
                local[r] = moment + (rounds[i, 0] - hidden) * draft_seconds[r]
                up[r] = local[r]
                x = rounds[i, 1]
                local[r] += settings[LOCAL] + settings[LOCAL_TOKEN] * x
                moment = local[r] + settings[MESSAGE] + x * settings[BYTES] / uplink[r] + settings[LATENCY]
                heap_size = push(heap_times, heap_requests, heap_size, moment, r)
        n_deciding = 0
        kept = 0
        for k in range(n_waiting):
            if head[waiting[k]] >= 0:
                waiting[kept] = waiting[k]
                kept += 1
        n_waiting = kept
    totals[13] = now
    return events
