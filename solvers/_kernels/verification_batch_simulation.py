"""Verification batching in the long run, simulated: devices that draft, one verifier, batch after batch.

`choose` is one decision: which pending requests the verifier takes next. `play` is the event simulation around it; a
server that embeds the scheduler calls the same `choose`. Columns of `choose` list the pending requests in order of
arrival:

* value E[tokens], weight w = a L_new + b_compute (L_cached + L_new) L_new + b_read L_cached (Eq. 18-19),
* memory m = bytes (L_cached + L_new),
* deadline d of this iteration (Eq. 12), due time of the response: start + (done + E[tokens]) / tau.

A batch lasts c + sum of w. Settings, by position: overhead c, guard delta (Eq. 17), memory M, cap on the batch time,
how far ahead of its due time a request is deferred, how late it is given up, whether late requests fill what room a
batch leaves, and the cap on a batch of deferred requests only (0: the verifier idles instead).

Random numbers are SplitMix64, one stream per (key, device, response): two policies simulated with one key meet the
same prompts, lengths, acceptances and delays.
"""

import math

import numpy as np

from specopt.solvers._kernels.heap import pop, push
from specopt.solvers._kernels.kernel import helper, kernel
from specopt.solvers._kernels.random import GOLDEN, draw, draw_exponential, draw_normal, mixed

FCFS, EDF, ALGORITHM_1, ALGORITHM_1_DROP, PER_EPOCH, SLACK = 0, 1, 2, 3, 4, 5
OVERHEAD, GUARD, MEMORY, CAP, DEFER, GIVE_UP, FILL, SPARE_CAP = 0, 1, 2, 3, 4, 5, 6, 7


# ---------------------------------------------------------------------------- one decision


@helper
def _take(settings, cap, order, weight, memory, batch):
    """Take requests in the given order until the next one breaks the cap or the memory; return how many.

    The first request that fits the memory is taken whatever the cap.
    """
    count = 0
    seconds = settings[OVERHEAD]
    used = 0.0
    for i in order:
        if used + memory[i] > settings[MEMORY]:
            if count == 0:
                continue
            break
        if count > 0 and seconds + weight[i] > cap:
            break
        batch[count] = i
        count += 1
        seconds += weight[i]
        used += memory[i]
    return count


@helper
def _algorithm_1(now, settings, use, value, weight, memory, deadline, batch):
    """Algorithm 1 on the requests marked in `use`; return how many are taken."""
    n = len(value)
    critical = np.empty(n, dtype=np.int64)
    others = np.empty(n, dtype=np.int64)
    n_critical = 0
    n_others = 0
    for i in range(n):
        if use[i]:
            if now >= deadline[i] - weight[i] - settings[GUARD]:  # Eq. 17
                critical[n_critical] = i
                n_critical += 1
            else:
                others[n_others] = i
                n_others += 1
    critical = critical[:n_critical]
    others = others[:n_others]
    critical = critical[np.argsort(deadline[critical], kind="mergesort")]
    density = np.empty(n_others)
    for k in range(n_others):
        i = others[k]
        density[k] = value[i] / weight[i] if weight[i] > 0.0 else math.inf
    others = others[np.argsort(-density, kind="mergesort")]
    count = 0
    seconds = settings[OVERHEAD]
    used = 0.0
    tightest = math.inf
    for part in range(2):
        for i in critical if part == 0 else others:
            nearest = min(tightest, deadline[i])
            if used + memory[i] > settings[MEMORY] or now + seconds + weight[i] > nearest:
                return count
            batch[count] = i
            count += 1
            seconds += weight[i]
            used += memory[i]
            tightest = nearest
    return count


@helper
def _per_epoch(now, settings, use, value, weight, memory, deadline, batch):
    """Best over all tightest deadlines D of the density greedy with skips; return how many are taken.

    With equal values and slack memory the greedy takes the lightest requests, and the result is optimal.
    """
    n = len(value)
    density = np.empty(n)
    for i in range(n):
        density[i] = value[i] / weight[i] if weight[i] > 0.0 else math.inf
    order = np.argsort(-density, kind="mergesort")
    best = 0.0
    best_deadline = math.inf
    for t in range(n):
        if not use[t]:
            continue
        room = deadline[t] - now - settings[OVERHEAD]
        used = 0.0
        total = 0.0
        for i in order:
            if use[i] and deadline[i] >= deadline[t] and weight[i] <= room and used + memory[i] <= settings[MEMORY]:
                room -= weight[i]
                used += memory[i]
                total += value[i]
        if total > best:
            best = total
            best_deadline = deadline[t]
    if best == 0.0:
        return 0
    count = 0
    room = best_deadline - now - settings[OVERHEAD]
    used = 0.0
    for i in order:
        if use[i] and deadline[i] >= best_deadline and weight[i] <= room and used + memory[i] <= settings[MEMORY]:
            room -= weight[i]
            used += memory[i]
            batch[count] = i
            count += 1
    return count


@helper
def _fill(now, settings, count, late, weight, memory, deadline, batch):
    """Add late requests, in order of arrival, that make no member of the batch late; return the new size."""
    seconds = settings[OVERHEAD]
    used = 0.0
    tightest = math.inf
    for k in range(count):
        seconds += weight[batch[k]]
        used += memory[batch[k]]
        tightest = min(tightest, deadline[batch[k]])
    for i in range(len(weight)):
        if late[i] and now + seconds + weight[i] <= tightest and used + memory[i] <= settings[MEMORY]:
            batch[count] = i
            count += 1
            seconds += weight[i]
            used += memory[i]
    return count


@helper
def _by_deadline(policy, now, settings, value, weight, memory, deadline, batch):
    """Decide by the deadlines of this iteration: Algorithm 1, with or without the late, or the best of this epoch."""
    n = len(value)
    use = np.ones(n, dtype=np.bool_)
    if policy == ALGORITHM_1:
        return _algorithm_1(now, settings, use, value, weight, memory, deadline, batch)
    for i in range(n):
        use[i] = now + settings[OVERHEAD] + weight[i] <= deadline[i]
    if policy == ALGORITHM_1_DROP:
        count = _algorithm_1(now, settings, use, value, weight, memory, deadline, batch)
    else:
        count = _per_epoch(now, settings, use, value, weight, memory, deadline, batch)
    if count > 0:
        return _fill(now, settings, count, ~use, weight, memory, deadline, batch) if settings[FILL] > 0.0 else count
    return _take(settings, settings[CAP], np.arange(n), weight, memory, batch)  # only late requests are pending


@helper
def _by_slack(now, settings, weight, memory, due, batch):
    """Decide by the slack of the responses; return how many are taken and when to look again."""
    n = len(due)
    order = np.argsort(due, kind="mergesort")
    ranked = np.empty(n, dtype=np.int64)
    kept = 0
    for i in order:
        if -settings[GIVE_UP] <= due[i] - now <= settings[DEFER]:
            ranked[kept] = i
            kept += 1
    for i in order:
        if due[i] - now < -settings[GIVE_UP]:
            ranked[kept] = i
            kept += 1
    if kept > 0:
        return _take(settings, settings[CAP], ranked[:kept], weight, memory, batch), math.inf
    wake = due[order[0]] - settings[DEFER]
    if settings[SPARE_CAP] <= 0.0 and wake > now:
        return 0, wake
    return _take(settings, settings[SPARE_CAP], order, weight, memory, batch), math.inf


@kernel(
    "Tuple((i8, f8))(i8, f8, f8[::1], f8[::1], f8[::1], f8[::1], f8[::1], f8[::1], i8[::1])",
)
def choose(policy, now, settings, value, weight, memory, deadline, due, batch):
    """Return how many pending requests the verifier takes now, and when to look again if it takes none.

    Infinity: when the next request arrives.

    Modified in place: ``batch`` (n,), whose first entries are the requests taken, in the order of the policy.
    """
    if len(value) == 0:
        return 0, math.inf
    if policy == FCFS:
        return _take(settings, settings[CAP], np.arange(len(value)), weight, memory, batch), math.inf
    if policy == EDF:
        return _take(settings, settings[CAP], np.argsort(deadline, kind="mergesort"), weight, memory, batch), math.inf
    if policy == SLACK:
        return _by_slack(now, settings, weight, memory, due, batch)
    return _by_deadline(policy, now, settings, value, weight, memory, deadline, batch), math.inf


@helper
def _length(streams, j, median, sigma, most):
    """Return a lognormal number of tokens, rounded, from 1 to `most`."""
    return min(most, max(1.0, np.rint(median * math.exp(sigma * draw_normal(streams, j)))))


# ---------------------------------------------------------------------------- the simulation


@helper
def _begin_response(key, streams, j, number, lengths, prompt, target):
    """Draw prompt and length of the device's next response from a stream of its own."""
    streams[j] = mixed(mixed(key + np.uint64(j + 1) * GOLDEN) + np.uint64(number + 1) * GOLDEN)
    prompt[j] = _length(streams, j, lengths[0], lengths[1], lengths[2])
    target[j] = _length(streams, j, lengths[3], lengths[4], lengths[5])


@helper
def _draft(streams, j, acceptance, predictor):
    """Draft one window; return (tokens drafted, tokens sent, tokens that the verifier will accept).

    With a predictor (false accept, false reject, go on after a rejection) the device stops at the first predicted
    rejection and sends what came before it.
    """
    accepted = 0
    intact = True
    window = len(acceptance)
    for i in range(window):
        right = draw(streams, j) < acceptance[i]
        if len(predictor) > 0:
            u = draw(streams, j)
            if not intact:
                go_on = u < predictor[2]
            elif right:
                go_on = u >= predictor[1]
            else:
                go_on = u < predictor[0]
            if not go_on:
                return i + 1, i, accepted
        if intact and right:
            accepted += 1
        else:
            intact = False
    return window, window, accepted


@helper
def _evict(room, cached, last_used):
    """Drop the least recently used prefixes until what is cached fits."""
    total = cached.sum()
    while total > room:
        oldest = -1
        for j in range(len(cached)):
            if cached[j] > 0.0 and (oldest < 0 or last_used[j] < last_used[oldest]):
                oldest = j
        total -= cached[oldest]
        cached[oldest] = 0.0


@kernel(
    "i8(i8, f8[::1], u8, const f8[::1], i8[::1], f8[::1], const f8[::1], f8[::1], const f8[::1], f8[::1], f8[::1], b1,"
    " b1, f8, f8, f8[::1], i8, f8, f8[:, ::1], f8[:, ::1], f8[::1], f8[:, ::1], i8[::1])"
)
def play(
    policy, settings, key, class_speed, device_class, estimator, acceptance, predictor, expected, lengths, delays,
    cache, central, bytes_per_token, cache_bytes, window, spike_batches, spike, by_class, responses, totals, log,
    counts,
):  # fmt: skip
    """Simulate until the responses that start in the window have ended; return 1 if the policy stalls, else 0.

    `estimator` a, b_compute, b_read, relative noise of a batch's real time. `expected` tokens by draft length sent.
    A response counts if it starts within the window, or spans all of it.
    `lengths` median, sigma and maximum of the prompt, then of the response. `delays` drafting per token, to and from
    the verifier, mean jitter of either, mean thinking time, time over which devices first appear. `window` first and
    last start that counts, and the latest time of all. `central`: the verifier decodes alone, one token at a time.
    A batch is a spike (Eq. 21) if it lasts more than `spike` times the mean of the `spike_batches` before it.

    Modified in place:

    * ``by_class`` (C, 8): responses that count, violations, tokens, seconds, tokens of responses on time; iterations,
      iterations past their deadline, those of them in a spike (iterations within the window),
    * ``responses`` (R, 5): class, speed, tokens, start, seconds; as many as fit,
    * ``totals`` (8,): end, and within the window: batches, iterations, busy seconds, tokens committed, tokens
      drafted, drafted tokens that did not count, cold iterations,
    * ``log`` (E, 8): batch, device, start of the batch, queued seconds, seconds of the batch, deadline, ratio to
      the moving mean, past its deadline; iterations within the window, as many as fit, and
    * ``counts`` (3,): rows of ``responses`` and of ``log``, and responses without an end when time was up.
    """
    n = len(device_class)
    streams = np.empty(n, dtype=np.uint64)
    number = np.zeros(n, dtype=np.int64)
    prompt = np.zeros(n)
    target = np.zeros(n)
    done = np.zeros(n)
    started = np.zeros(n)
    arrival = np.zeros(n)
    deadline = np.zeros(n)
    due = np.zeros(n)
    drafted = np.zeros(n, dtype=np.int64)
    sent = np.zeros(n, dtype=np.int64)
    accepted = np.zeros(n, dtype=np.int64)
    cached = np.zeros(n)
    last_used = np.full(n, -1.0)
    counted = np.zeros(n, dtype=np.bool_)
    heap_times = np.empty(n)
    heap_devices = np.empty(n, dtype=np.int64)
    heap_size = 0
    pending = np.empty(n, dtype=np.int64)
    n_pending = 0
    value = np.empty(n)
    weight = np.empty(n)
    memory = np.empty(n)
    pending_deadline = np.empty(n)
    pending_due = np.empty(n)
    batch = np.empty(n, dtype=np.int64)
    taken = np.zeros(n, dtype=np.bool_)
    recent = np.zeros(spike_batches)
    noise = np.empty(1, dtype=np.uint64)
    noise[0] = mixed(key)
    open_responses = 0
    batches = 0
    now = 0.0
    stalled = 0
    for j in range(n):
        _begin_response(key, streams, j, 0, lengths, prompt, target)
        started[j] = draw(streams, j) * delays[5]
        drafted[j], sent[j], accepted[j] = _draft(streams, j, acceptance, predictor)
        tokens = expected[sent[j]]
        tau = class_speed[device_class[j]]
        deadline[j] = started[j] + tokens / tau - delays[2]
        due[j] = deadline[j]
        arrival[j] = started[j] + drafted[j] * delays[0] + delays[1] + draw_exponential(streams, j, delays[3])
        heap_size = push(heap_times, heap_devices, heap_size, arrival[j], j)
        counted[j] = window[0] <= started[j] < window[1]
        open_responses += counted[j]
    while now < window[2] and (now < window[1] or open_responses > 0):
        while heap_size > 0 and heap_times[0] <= now:
            pending[n_pending] = heap_devices[0]
            n_pending += 1
            heap_size = pop(heap_times, heap_devices, heap_size)
        for k in range(n_pending):
            j = pending[k]
            old = cached[j]
            new = prompt[j] + done[j] + sent[j] - old
            value[k] = expected[sent[j]]
            weight[k] = estimator[0] * new + estimator[1] * ((old + new) * new) + estimator[2] * old
            memory[k] = bytes_per_token * (old + new)
            pending_deadline[k] = deadline[j]
            pending_due[k] = due[j]
        count, wake = choose(
            policy, now, settings, value[:n_pending], weight[:n_pending], memory[:n_pending],
            pending_deadline[:n_pending], pending_due[:n_pending], batch[:n_pending],
        )  # fmt: skip
        if count == 0:
            if heap_size > 0:
                wake = min(wake, heap_times[0])
            if wake == math.inf:
                stalled = 1  # every device waits, and the policy takes none of them
                now = window[2]
                break
            now = wake
            continue
        seconds = settings[OVERHEAD]
        for k in range(count):
            seconds += weight[batch[k]]
        if estimator[3] > 0.0:
            seconds *= math.exp(estimator[3] * draw_normal(noise, 0) - 0.5 * estimator[3] ** 2)
        begin = now
        now += seconds
        ratio = 1.0
        if batches > 0:
            ratio = seconds / recent[: min(batches, spike_batches)].mean()
        recent[batches % spike_batches] = seconds
        within = window[0] <= begin < window[1]
        if within:
            totals[1] += 1.0
            totals[2] += count
            totals[3] += seconds
        for k in range(count):
            place = batch[k]
            taken[place] = True
            j = pending[place]
            c = device_class[j]
            tau = class_speed[c]
            gain = min(accepted[j] + 1.0, target[j] - done[j])
            if within:
                missed = now > deadline[j]
                by_class[c, 5] += 1.0
                by_class[c, 6] += missed
                by_class[c, 7] += missed and ratio > spike
                totals[4] += gain
                totals[5] += drafted[j]
                totals[6] += drafted[j] - accepted[j]
                totals[7] += cached[j] == 0.0
                if counts[1] < len(log):
                    row = log[counts[1]]
                    row[0] = batches
                    row[1] = j
                    row[2] = begin
                    row[3] = begin - arrival[j]
                    row[4] = seconds
                    row[5] = deadline[j]
                    row[6] = ratio
                    row[7] = missed
                    counts[1] += 1
            done[j] += gain
            last_used[j] = now
            cached[j] = prompt[j] + done[j] - 1.0 if cache else 0.0
            back = now
            if done[j] >= target[j] or not central:
                back += delays[2] + draw_exponential(streams, j, delays[3])
            if done[j] >= target[j]:
                speed = done[j] / (back - started[j])
                if counted[j] or (started[j] < window[0] and now >= window[1]):
                    open_responses -= counted[j]
                    by_class[c, 0] += 1.0
                    by_class[c, 1] += speed < tau
                    by_class[c, 2] += done[j]
                    by_class[c, 3] += back - started[j]
                    if speed >= tau:
                        by_class[c, 4] += done[j]
                    if counts[0] < len(responses):
                        row = responses[counts[0]]
                        row[0] = c
                        row[1] = speed
                        row[2] = done[j]
                        row[3] = started[j]
                        row[4] = back - started[j]
                        counts[0] += 1
                number[j] += 1
                _begin_response(key, streams, j, number[j], lengths, prompt, target)
                back += draw_exponential(streams, j, delays[4])
                started[j] = back
                done[j] = 0.0
                cached[j] = 0.0
                counted[j] = window[0] <= back < window[1]
                open_responses += counted[j]
            drafted[j], sent[j], accepted[j] = _draft(streams, j, acceptance, predictor)
            tokens = expected[sent[j]]
            deadline[j] = back + tokens / tau - delays[2]
            due[j] = started[j] + (done[j] + tokens) / tau - delays[2]
            arrival[j] = back + drafted[j] * delays[0]
            if done[j] == 0.0 or not central:
                arrival[j] += delays[1] + draw_exponential(streams, j, delays[3])
            heap_size = push(heap_times, heap_devices, heap_size, arrival[j], j)
        batches += 1
        kept = 0
        for k in range(n_pending):
            if taken[k]:
                taken[k] = False
            else:
                pending[kept] = pending[k]
                kept += 1
        n_pending = kept
        if cache_bytes < math.inf:
            _evict(cache_bytes / bytes_per_token, cached, last_used)
    for j in range(n):  # what has not ended counts if it is lost whatever comes
        if started[j] < window[1]:
            c = device_class[j]
            counts[2] += 1
            if target[j] < class_speed[c] * (now - started[j]):
                by_class[c, 0] += 1.0
                by_class[c, 1] += 1.0
    totals[0] = now
    return stalled
