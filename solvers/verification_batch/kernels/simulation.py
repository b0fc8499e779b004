"""Kernels for the long-run simulation of verification batching.

Devices draft tokens, and one verifier serves one batch after another.

`choose` selects the pending requests that the verifier serves next. `calibrate` updates the
estimated costs from the observed duration of a batch. `play` is the event simulation around these
two functions. A server that embeds the scheduler calls the same two functions.

Random numbers come from SplitMix64, with one stream per (key, device, response). Two policies that
are simulated with the same key therefore see the same prompts, lengths, acceptances and delays.
"""

import math

import numpy as np

from specopt.solvers.kernels.heap import heapify, pop, push
from specopt.solvers.kernels.kernel import helper, inlined, kernel, record, rows
from specopt.solvers.kernels.random import GOLDEN, draw, draw_exponential, draw_normal, mixed

FCFS, EDF, ALGORITHM_1, ALGORITHM_1_DROP, PER_EPOCH, SLACK = 0, 1, 2, 3, 4, 5

LUCK = 6.0  # 1.3 ln(100), see `latest`
AHEAD_WINDOWS = 10.0
"""Number of windows by which a response runs ahead while its prefix is cached.

This number applies if the cache cannot hold all prefixes. Computing a prefix again costs about as
much as five warm verifications. The capacity is the same within 4 % for all values from 6 to 20.
"""

START_ERROR = 0.3
"""Relative standard deviation of the initial error of each cost coefficient.

These errors are added to an error that all coefficients have in common.
"""

BOUND = 3.0
"""Number of typical errors at which the deviation of a batch is clipped.

Clipping limits the effect of a single stall on the estimated costs.
"""

MEMORY, SHORT_MEMORY = 32.0, 8.0
"""Numbers of past batches to which the cost estimates are fitted.

The longer memory is a few seconds of a busy verifier. The shorter memory applies after a batch
whose deviation exceeds `BOUND`, because the machine may have changed.
"""

MIN_ERROR, ERROR_STEP, MEDIAN = 0.01, 1.13, 0.67
"""Parameters of the running estimate of the typical error.

MIN_ERROR is its minimum, and ERROR_STEP is the factor by which it rises or falls after every batch.
With this update, MEDIAN times the typical error tracks the median of the errors.
"""

SPARE_SHARE = 0.25
"""Maximum duration of a batch that includes requests that could wait.

It is a fraction of the time available to the requests with the tightest deadlines. A request that
arrives during such a batch waits for that batch and its own batch. With values of 0.33 or more, a
class with little time is late more often.
"""

TIGHTEST, FOLLOW = 0.01, 0.1
"""Parameters of the estimate of the time available to the requests with the tightest deadlines.

TIGHTEST is the fraction of requests whose deadlines count as tightest, and FOLLOW is the step size
of the updates to the logarithm of the estimate. The estimate adapts to tighter deadlines after some
tens of requests, and outliers have little effect.
"""

SPIKE_BATCHES, SPIKE_RATIO = 50, 1.5
"""W and tau of Eq. 21.

A batch is a spike if it lasts more than SPIKE_RATIO times the mean of the previous SPIKE_BATCHES
batches. `run_ahead` also averages over SPIKE_BATCHES batches.
"""

SPREAD = 20.0
"""Maximum time, in seconds, within which all devices start during the warm-up."""

WAITS = 1
"""Value of an entry of `waits` if the request is still in the queue."""

Rule = record(
    "Rule",
    policy="i8",
    costs="f8[::1]",  # a, b_compute, b_read and c of Eq. 18-19, as believed
    bytes_per_token="f8",
    guard="f8",  # delta of Eq. 17
    memory="f8",  # M
    cap="f8",  # on the time of a batch
    # lead over the due time at which a request can wait; if negative, `latest` computes it
    defer="f8",
    give_up="f8",  # lateness at which a request is given up
    fill="b1",  # whether late requests use the time that a batch leaves
    due_last="b1",  # whether a full cache drops the prefix due last, or the least recently used
    # one entry: seconds available with the tightest deadlines so far; 0 before the first request
    tight="f8[::1]",
)
Pending = record(
    "Pending",  # requests in order of arrival
    value="f8[::1]",  # E[tokens]
    new="f8[::1]",  # L_new
    cached="f8[::1]",  # L_cached
    deadline="f8[::1]",  # d of this iteration (Eq. 12)
    due="f8[::1]",  # of the response: start + (done + E[tokens]) / tau
    latest="f8[::1]",  # latest time until which it can wait, see `latest`
    # seconds by which the request is served earlier, as its prefix is cached and the cache is small
    ahead="f8[::1]",
    waits="i1[::1]",  # any value other than WAITS: the request has left the queue
)
Sorting = record("Sorting", keys="f8[::1]", places="i8[::1]")
"""Buffer for sorting the pending requests, with one entry per request."""

Calibration = record(
    "Calibration",  # of the costs, as factors of the initial costs
    given="f8[::1]",
    # discounted sums over batches of products of terms, and of products of terms and seconds
    squares="f8[:, ::1]",
    products="f8[::1]",
    error="f8[::1]",  # typical relative error: one entry
)
Verifier = record(
    "Verifier",
    costs="f8[::1]",  # the true ones
    noise="f8",  # standard deviation of the logarithm of a batch's real time
    slowdown="f8",  # of all batches from half of the window on
    knows="b1",  # whether the rule's costs are always the true ones
    learns="b1",  # whether the rule's costs follow the durations of batches
    cache="b1",  # whether there is a cache of prefixes
    cache_bytes="f8",
    central="b1",  # whether the verifier decodes alone, one token at a time
)
Lengths = record("Lengths", median="f8", sigma="f8", most="f8")
"""Parameters of a log-normal number of tokens.

They are its median, the standard deviation of its logarithm, and its upper limit.
"""

Predictor = record(
    "Predictor", used="b1", false_accept="f8", false_reject="f8", false_accept_after="f8"
)
"""The predictor of rejections on a device.

`used` tells whether drafting stops at the first predicted rejection. The other fields are the error
probabilities of the predictor.
"""

Devices = record(
    "Devices",
    class_of="i8[::1]",
    speed="f8[::1]",  # tau by class
    acceptance="f8[::1]",  # by place in the window
    expected="f8[::1]",  # tokens by drafts sent
    predictor="Predictor",
    prompt="Lengths",
    response="Lengths",
    draft="f8",  # duration of drafting a token, in seconds
    up="f8",  # delay to the verifier (up) and back (down), in seconds
    down="f8",
    jitter="f8",  # mean jitter in each direction
    think="f8",  # mean
)
Device = rows(
    "Device",
    responses="i8",
    prompt="f8",
    target="f8",
    done="f8",
    started="f8",
    counted="b1",
    drafted="i8",
    sent="i8",
    accepted="i8",
    arrival="f8",
    deadline="f8",
    due="f8",
    until="f8",
)
"""State of a device.

`responses` is the number of responses begun. `prompt`, `target`, `done`, `started` and `counted`
describe the current response: its prompt length, its length, its finished tokens, its start, and
whether it is counted. `drafted`, `sent` and `accepted` are the tokens of the current window, and
`arrival` is the time at which the window reaches the verifier. `deadline` is the window's deadline,
`due` is the due time of the response, and `until` is the latest time until which the request can
wait.
"""

ByClass = rows(
    "ByClass",
    responses="i8",
    violations="i8",
    tokens="f8",
    seconds="f8",
    on_time_tokens="f8",
    iterations="i8",
    late="i8",
    late_in_spikes="i8",
)
"""Counters for one class of devices.

The counters of responses are the number of counted responses, the number of responses that are
slower than required, their tokens and seconds, and the tokens of responses that are on time. The
counters of iterations within the window are their number, the number of late iterations, and the
number of late iterations whose batch is a spike.
"""

Served = rows(
    "Served",
    batches="i8",
    busy_seconds="f8",
    tokens="f8",
    drafted="i8",
    wasted="i8",
    cold="i8",
    responses="i8",
    logged="i8",
)
"""Totals within the window.

They are the numbers of batches, busy seconds, committed tokens, drafted tokens, drafted tokens that
were not accepted, and cold iterations. `responses` and `logged` are the numbers of rows written to
the responses and to the log.
"""

Response = rows("Response", device_class="i8", speed="f8", tokens="f8", start="f8", seconds="f8")
Iteration = rows(
    "Iteration",
    batch="i8",
    device="i8",
    start="f8",
    queued="f8",
    seconds="f8",
    deadline="f8",
    ratio="f8",
    late="b1",
)
"""One row of the log, which describes a device's iteration.

`batch` and `device` are indices. `start` and `seconds` are the start and the duration of the batch,
and `queued` is the queueing time, all in seconds. `ratio` is the ratio of the duration to the
moving mean (Eq. 21), and `late` tells whether `deadline` was missed.
"""


@helper
def calibration(costs):
    """Return the initial calibration state for `costs`, before the first batch."""
    return Calibration(costs.copy(), np.zeros((4, 4)), np.zeros(4), np.full(1, START_ERROR))


# ---------------------------------------------------------------------------- one decision


@inlined
def _weight(costs, new, cached):
    """Return the weight w of a request in seconds (Eq. 18).

    The weight is a L_new + b_compute (L_cached + L_new) L_new + b_read L_cached.
    """
    return costs[0] * new + costs[1] * ((cached + new) * new) + costs[2] * cached


@helper
def _candidates(now, rule, order, turn, pending, room):
    """Build a heap of the requests in a turn, ordered by sort key, and return the size of the heap.

    Under the policy ``slack``, turn 0 contains urgent requests. Turn 1 contains requests that run
    ahead while their prefix is cached, turn 2 contains requests that were given up, and turn 3
    contains requests that can wait. Under all other policies, all requests are in turn 0.
    """
    size, n = 0, len(pending.value)
    for i in range(n):
        if pending.waits[i] != WAITS:
            continue
        key, its_turn = np.float64(i), 0
        due, latest = pending.due[i], pending.latest[i]
        if order == EDF:
            key = pending.deadline[i]
        elif order == SLACK:
            if due - now < -rule.give_up:
                key, its_turn = due, 2
            elif latest <= now:
                key = due
            elif latest - pending.ahead[i] <= now:
                # responses furthest ahead go first, since they finish soon and free their memory
                key, its_turn = -due, 1
            else:
                key, its_turn = key if pending.cached[i] > 0.0 else n + key, 3
        if its_turn == turn:
            room.keys[size], room.places[size] = key, i
            size += 1
    heapify(room.keys, room.places, size)
    return size


@helper
def _take(now, rule, order, pending, room, batch):
    """Add requests to the batch, turn by turn and in order of increasing key, and return its size.

    The batch ends when a request would exceed the cap or the memory limit. The first request that
    fits in memory is added regardless of the cap. Requests with equal keys are added in order of
    arrival. Requests that can wait are added only while the batch stays short. A heap is used so
    that only the requests that are added need to be sorted.
    """
    count, seconds, used, cap = 0, rule.costs[3], 0.0, rule.cap
    for turn in range(4 if order == SLACK else 1):
        if turn == 3:
            cap = min(cap, SPARE_SHARE * rule.tight[0])
            if count > 0 and seconds >= cap:
                return count
        left = _candidates(now, rule, order, turn, pending, room)
        while left > 0:
            i = room.places[0]
            left = pop(room.keys, room.places, left)
            memory = rule.bytes_per_token * (pending.cached[i] + pending.new[i])
            if used + memory > rule.memory:
                if count == 0:
                    continue
                return count
            weight = _weight(rule.costs, pending.new[i], pending.cached[i])
            if count > 0 and seconds + weight > cap:
                return count
            batch[count] = i
            count += 1
            seconds += weight
            used += memory
    return count


@inlined
def _by_density(value, weight, which):
    """Return the requests `which` in order of decreasing value per second.

    Ties keep their original order. A request that takes no time comes first.
    """
    density = np.where(weight > 0.0, value / weight, math.inf)
    return which[np.argsort(-density[which], kind="mergesort")]


@helper
def _add(now, rule, order, are_late, count, weight, memory, pending, batch):
    """Add the requests in `order` to a batch, provided that no request becomes late.

    The memory of the batch is limited as well. The batch initially consists of the first `count`
    entries of `batch`. Return the new number of requests in the batch.

    If `are_late` is true, the added requests are themselves late, and only the other requests must
    stay on time. Requests that do not fit are then skipped. Otherwise, the first request that does
    not fit ends the batch.
    """
    deadline = pending.deadline
    seconds, used, tightest = rule.costs[3], 0.0, math.inf
    for i in batch[:count]:
        seconds += weight[i]
        used += memory[i]
        tightest = min(tightest, deadline[i])
    for i in order:
        nearest = tightest if are_late else min(tightest, deadline[i])
        if used + memory[i] <= rule.memory and now + seconds + weight[i] <= nearest:
            batch[count] = i
            count += 1
            seconds += weight[i]
            used += memory[i]
            tightest = nearest
        elif not are_late:
            break
    return count


@helper
def _algorithm_1(now, rule, use, weight, memory, pending, batch):
    """Run Algorithm 1 on the requests marked in `use`, and return the size of the batch."""
    deadline = pending.deadline
    is_critical = now >= deadline - weight - rule.guard  # Eq. 17
    critical = np.flatnonzero(use & is_critical)
    critical = critical[np.argsort(deadline[critical], kind="mergesort")]
    others = _by_density(pending.value, weight, np.flatnonzero(use & ~is_critical))
    count = _add(now, rule, critical, False, 0, weight, memory, pending, batch)
    if count < len(critical):
        return count
    return _add(now, rule, others, False, count, weight, memory, pending, batch)


@helper
def _per_epoch(now, rule, use, weight, memory, pending, batch):
    """Choose the best batch found by a greedy algorithm, and return the size of this batch.

    For every tightest deadline D, the algorithm adds requests by decreasing value per second and
    skips requests that do not fit. If all values are equal and memory does not bind, the algorithm
    selects the lightest requests, and the result is optimal.
    """
    value, deadline = pending.value, pending.deadline
    usable = np.flatnonzero(use)
    order, trial = _by_density(value, weight, usable), np.empty_like(usable)
    best, taken = 0.0, 0
    for t in usable:
        room, used, total, count = deadline[t] - now - rule.costs[3], 0.0, 0.0, 0
        for i in order:
            if deadline[i] >= deadline[t] and weight[i] <= room and used + memory[i] <= rule.memory:
                room -= weight[i]
                used += memory[i]
                total += value[i]
                trial[count] = i
                count += 1
        if total > best:
            best, taken = total, count
            batch[:count] = trial[:count]
    return taken


@helper
def _by_deadline(now, rule, pending, room, batch):
    """Choose a batch by the deadlines of the current iterations, and return its size.

    The policy either runs Algorithm 1, with or without the late requests, or selects the best batch
    for the current epoch.
    """
    weight = _weight(rule.costs, pending.new, pending.cached)
    memory = rule.bytes_per_token * (pending.cached + pending.new)
    use = pending.waits == WAITS
    if rule.policy == ALGORITHM_1:
        return _algorithm_1(now, rule, use, weight, memory, pending, batch)
    late = use & (now + rule.costs[3] + weight > pending.deadline)
    use &= ~late
    if rule.policy == PER_EPOCH:
        count = _per_epoch(now, rule, use, weight, memory, pending, batch)
    else:
        count = _algorithm_1(now, rule, use, weight, memory, pending, batch)
    if count == 0:
        return _take(now, rule, FCFS, pending, room, batch)  # only late requests are pending
    if rule.fill and late.any():
        late_ones = np.flatnonzero(late)
        return _add(now, rule, late_ones, True, count, weight, memory, pending, batch)
    return count


@helper
def latest(rule, due, tokens, tau, allowed):
    """Return the latest time until which a request can wait.

    At that time, the response is still ahead of its due time by one window and a safety margin,
    unless the rule specifies the lead. The window covers the last iteration, which may yield one
    token instead of E[tokens]. Before the last iteration, the lead over tau is a random walk: an
    iteration adds tokens / tau and lasts about half of the time allowed. The probability of falling
    back by x is exp(-2 x drift / variance), with drift allowed / 2 and variance about 1.3
    (E[tokens] - 1) / tau^2. LUCK sets this probability to 1 %.
    """
    if rule.defer >= 0.0:
        return due - rule.defer
    return due - (tokens + LUCK * max(0.0, tokens - 1.0) / max(tau * allowed, 0.1)) / tau


@kernel("f8(f8, f8)")
def tighter(tight, allowed):
    """Return the updated estimate of the time available to the requests with the tightest
    deadlines.

    `tight` is the previous estimate, and `allowed` is the time available to the most recent
    request. Both are in seconds.
    """
    if tight == 0.0:
        return allowed
    return tight * math.exp(FOLLOW * (TIGHTEST - (allowed < tight)))


@kernel("void(f8, Rule, Pending, f8[::1], f8[::1])")
def meet(now, rule, pending, speed, allowed):
    """Compute how long the requests that have arrived since the last decision can wait.

    Before the call, their entries in `latest` must be NaN. ``speed`` is tau. ``allowed`` is the
    time from arrival to deadline, in seconds, or negative for a request that has just arrived. The
    arrays ``allowed`` and ``latest``, and the rule's estimate for the tightest deadlines, are
    modified in place.
    """
    i = len(allowed) - 1
    while i >= 0 and pending.latest[i] != pending.latest[i]:
        if allowed[i] < 0.0:
            allowed[i] = max(0.0, pending.deadline[i] - now)
            rule.tight[0] = tighter(rule.tight[0], allowed[i])
        pending.latest[i] = latest(rule, pending.due[i], pending.value[i], speed[i], allowed[i])
        i -= 1


@kernel("i8(f8, Rule, Pending, Sorting, i8[::1])")
def choose(now, rule, pending, room, batch):
    """Choose the pending requests that the verifier serves now, and return their number.

    Zero means that the verifier waits for the next arrival. The chosen requests are written to the
    first entries of ``batch``, with shape (n,), in the policy's order.
    """
    if len(pending.value) == 0:
        return 0
    if rule.policy in (FCFS, EDF, SLACK):
        return _take(now, rule, rule.policy, pending, room, batch)
    return _by_deadline(now, rule, pending, room, batch)


@kernel("f8(f8, Rule, Pending, Sorting, i8[::1])")
def done_at(now, rule, pending, room, batch):
    """Return the time at which the last pending request is completed if no more requests arrive.

    The result is infinite if the request is never completed. The entries of `waits` for the
    requests served, and the work space, are modified in place.
    """
    last = len(pending.value) - 1
    while pending.waits[last] == WAITS:
        count = choose(now, rule, pending, room, batch)
        if count == 0:
            return math.inf
        now += rule.costs[3]
        for i in batch[:count]:
            now += _weight(rule.costs, pending.new[i], pending.cached[i])
            pending.waits[i] = 0
    return now


@kernel("void(f8[::1], Calibration, f8[::1], f8)")
def calibrate(costs, calibration, work, seconds):
    """Update the estimated costs after a batch that took `seconds` seconds.

    The costs are fitted by nonnegative least squares to the relative errors of recent batches. In
    directions that the batches do not determine, the costs keep their initial proportions, because
    a slower machine is assumed to be slower in all terms.

    ``work`` contains N_linear, N_interactions and N_cached of the batch, followed by 1. The costs
    and the calibration are modified in place.
    """
    given, squares, products, error = calibration
    terms = given * work
    expected, scale = (costs * work).sum(), terms.sum()
    if expected <= 0.0:
        return
    off, most = seconds / expected - 1.0, BOUND * error[0]
    keep = 1.0 - 1.0 / (MEMORY if abs(off) <= most else SHORT_MEMORY)
    seen = expected * (1.0 + min(max(off, -most), most))
    products[:] = keep * products + terms * seen / scale**2
    for j in range(4):
        squares[j] = keep * squares[j] + terms[j] * given * work / scale**2
    error[0] = max(
        MIN_ERROR, error[0] * (ERROR_STEP if abs(off) > MEDIAN * error[0] else 1.0 / ERROR_STEP)
    )
    prior = (error[0] / START_ERROR) ** 2  # times the variance among the factors
    factors = np.where(given > 0.0, costs / given, 1.0)
    for _ in range(20):  # coordinate descent, from where it ended before
        for j in range(4):
            rest = products[j]
            for k in range(4):
                if k != j:
                    rest -= (squares[j, k] - 0.25 * prior) * factors[k]
            factors[j] = max(0.0, rest / (squares[j, j] + 0.75 * prior))
    costs[:] = factors * given


@helper
def _length(streams, j, lengths):
    """Draw a log-normal number of tokens, rounded and clipped to between 1 and the upper limit."""
    return min(
        lengths.most,
        max(1.0, np.rint(lengths.median * math.exp(lengths.sigma * draw_normal(streams, j)))),
    )


# ---------------------------------------------------------------------------- the simulation


@helper
def _begin_response(key, streams, j, one, devices):
    """Draw the prompt length and the output length of a device's next response.

    Each response has a separate random stream.
    """
    one.responses += 1
    streams[j] = mixed(mixed(key + np.uint64(j + 1) * GOLDEN) + np.uint64(one.responses) * GOLDEN)
    one.prompt = _length(streams, j, devices.prompt)
    one.target = _length(streams, j, devices.response)


@helper
def _draft(streams, j, devices):
    """Simulate drafting one window on a device.

    Return the numbers of tokens drafted, tokens sent, and tokens that the verifier will accept.
    With a predictor, the device stops at the first predicted rejection, and sends the tokens before
    that rejection.
    """
    accepted = 0
    window = len(devices.acceptance)
    for i in range(window):
        right = draw(streams, j) < devices.acceptance[i]
        if devices.predictor.used:
            u = draw(streams, j)
            if accepted < i:
                go_on = u < devices.predictor.false_accept_after
            elif right:
                go_on = u >= devices.predictor.false_reject
            else:
                go_on = u < devices.predictor.false_accept
            if not go_on:
                return i + 1, i, accepted
        if right and accepted == i:
            accepted += 1
    return window, window, accepted


@helper
def _begin_window(streams, j, one, devices, tau, begin):
    """Draft the device's next window from time `begin` on, and return its expected tokens.

    The arrival is set to the time at which the draft is complete, without the delay to the
    verifier.
    """
    one.drafted, one.sent, one.accepted = _draft(streams, j, devices)
    tokens = devices.expected[one.sent]
    one.deadline = begin + tokens / tau - devices.down
    one.due = one.started + (one.done + tokens) / tau - devices.down
    one.arrival = begin + one.drafted * devices.draft
    return tokens


@kernel("void(f8, f8[::1], f8[::1])")
def evict(room, cached, first):
    """Drop prefixes from the cache until the remaining prefixes contain at most `room` tokens.

    Prefixes are dropped in order of increasing `first`.
    """
    total = cached.sum()
    if total <= room:
        return
    for j in np.argsort(first, kind="mergesort"):
        total -= cached[j]
        cached[j] = 0.0
        if total <= room:
            return


@kernel("void(f8, f8, f8[::1], f8[::1], f8[::1], i8[::1], f8[::1])")
def run_ahead(room, batch_seconds, size, window, away, order, ahead):
    """Choose the responses that run ahead while their prefix is cached.

    As a result, the prefixes of the other responses can stay in the cache. A response that runs
    ahead needs cache memory only for the fraction of time in which it runs. Per iteration, that
    time is ``away`` plus one and a half batches, instead of the ``window`` that an iteration may
    last. Slow responses (first in ``order``) save the most memory at the lowest cost. A fifth of
    the cache is reserved for random variation.
    """
    short = size.sum() - 0.8 * room
    for j in order:
        ahead[j] = 0.0
        saved = size[j] * (1.0 - (away[j] + 1.5 * batch_seconds) / window[j])
        if short > 0.0 and saved > 0.0:
            ahead[j] = AHEAD_WINDOWS * window[j]
            short -= saved


@kernel(
    "b1(u8, f8, f8, Rule, Verifier, Devices, Device[::1], ByClass[::1], Served[::1],"
    " Response[::1], Iteration[::1])"
)
def play(key, opens, closes, rule, verifier, devices, states, by_class, served, responses, log):
    """Simulate a verifier and its devices, and return whether the policy stalled.

    The simulation continues until all responses that start in the window from `opens` to `closes`
    have ended, but at most until time 2 `closes`. A response is counted if it starts within the
    window or spans the whole window. ``states`` is work space with one row per device that must be
    filled with zeros. The function fills ``by_class`` and the only entry of ``served``. It also
    fills ``responses`` with the counted responses and ``log`` with the iterations within the
    window, until these arrays are full.
    """
    total = served[0]
    n = len(states)
    streams = np.empty(n, np.uint64)
    room = verifier.cache_bytes / rule.bytes_per_token
    cached = np.zeros(n)
    first = np.zeros(n)  # the prefixes with the smallest values are dropped first
    size = np.zeros(n)  # of the prefix if it were cached
    per_window = np.ones(n)
    away = np.zeros(n)
    ahead = np.zeros(n)
    half = 0.5 * (opens + closes)
    learned = calibration(rule.costs)
    work = np.ones(4)
    slow_first = np.argsort(devices.speed[devices.class_of], kind="mergesort")
    batch_seconds = 0.0
    heap_times = np.empty(n)
    heap_devices = np.empty(n, np.int64)
    heap_size = 0
    pending = np.empty(n, np.int64)
    n_pending = 0
    value = np.empty(n)
    new = np.empty(n)
    old = np.empty(n)
    pending_deadline = np.empty(n)
    pending_due = np.empty(n)
    pending_latest = np.empty(n)
    pending_ahead = np.empty(n)
    waits = np.full(n, WAITS, np.int8)
    sorting = Sorting(np.empty(n), np.empty(n, np.int64))
    batch = np.empty(n, np.int64)
    recent = np.zeros(SPIKE_BATCHES)
    noise = np.full(1, mixed(key))
    last = 2.0 * closes
    open_responses = 0
    batches = 0
    now = 0.0
    for j in range(n):
        one = states[j]
        _begin_response(key, streams, j, one, devices)
        one.started = draw(streams, j) * min(SPREAD, opens)
        _begin_window(streams, j, one, devices, devices.speed[devices.class_of[j]], one.started)
        one.arrival = one.arrival + devices.up + draw_exponential(streams, j, devices.jitter)
        heap_size = push(heap_times, heap_devices, heap_size, one.arrival, j)
        one.counted = opens <= one.started < closes
        open_responses += one.counted
    while now < last and (now < closes or open_responses > 0):
        while heap_size > 0 and heap_times[0] <= now:
            j = heap_devices[0]
            one = states[j]
            tokens, tau = devices.expected[one.sent], devices.speed[devices.class_of[j]]
            allowed = one.deadline - one.arrival
            rule.tight[0] = tighter(rule.tight[0], max(0.0, allowed))
            one.until = latest(rule, one.due, tokens, tau, allowed)
            pending[n_pending] = j
            n_pending += 1
            heap_size = pop(heap_times, heap_devices, heap_size)
        for k in range(n_pending):
            j = pending[k]
            one = states[j]
            old[k] = cached[j]
            new[k] = one.prompt + one.done + one.sent - old[k]
            value[k] = devices.expected[one.sent]
            pending_deadline[k] = one.deadline
            pending_due[k] = one.due
            pending_latest[k] = one.until
            pending_ahead[k] = ahead[j] if old[k] > 0.0 else 0.0
        requests = Pending(
            value[:n_pending],
            new[:n_pending],
            old[:n_pending],
            pending_deadline[:n_pending],
            pending_due[:n_pending],
            pending_latest[:n_pending],
            pending_ahead[:n_pending],
            waits[:n_pending],
        )
        pace = verifier.slowdown if now >= half else 1.0
        if verifier.knows:
            rule.costs[:] = pace * verifier.costs
        count = choose(now, rule, requests, sorting, batch[:n_pending])
        if count == 0:
            if heap_size == 0:  # every device waits, and the policy serves none of them
                now = last
                break
            now = heap_times[0]
            continue
        work[:3] = 0.0
        seconds = verifier.costs[3]
        for i in batch[:count]:
            work[0] += new[i]
            work[1] += (old[i] + new[i]) * new[i]
            work[2] += old[i]
            seconds += _weight(verifier.costs, new[i], old[i])
        seconds *= pace
        if verifier.noise > 0.0:
            seconds *= math.exp(verifier.noise * draw_normal(noise, 0) - 0.5 * verifier.noise**2)
        if verifier.learns:
            calibrate(rule.costs, learned, work, seconds)
        begin = now
        now += seconds
        ratio = 1.0
        if batches > 0:
            ratio = seconds / recent[: min(batches, SPIKE_BATCHES)].mean()
        recent[batches % SPIKE_BATCHES] = seconds
        within = opens <= begin < closes
        if within:
            total.batches += 1
            total.busy_seconds += seconds
        for place in batch[:count]:
            j = pending[place]
            pending[place] = -1
            one = states[j]
            c = devices.class_of[j]
            tau = devices.speed[c]
            of_class = by_class[c]
            gain = min(one.accepted + 1.0, one.target - one.done)
            if within:
                late = now > one.deadline
                of_class.iterations += 1
                of_class.late += late
                of_class.late_in_spikes += late and ratio > SPIKE_RATIO
                total.tokens += gain
                total.drafted += one.drafted
                total.wasted += one.drafted - one.accepted
                total.cold += cached[j] == 0.0
                if total.logged < len(log):
                    row = log[total.logged]
                    row.batch, row.device, row.start, row.seconds = batches, j, begin, seconds
                    row.queued, row.deadline = begin - one.arrival, one.deadline
                    row.ratio, row.late = ratio, late
                    total.logged += 1
            one.done += gain
            ends = one.done >= one.target
            travels = ends or not verifier.central
            size[j] = one.prompt + one.done
            cached[j] = size[j] - 1.0 if verifier.cache else 0.0
            back = now
            if travels:
                back += devices.down + draw_exponential(streams, j, devices.jitter)
            if ends:
                duration = back - one.started
                speed = one.done / duration
                if one.counted or (one.started < opens and now >= closes):
                    open_responses -= one.counted
                    of_class.responses += 1
                    of_class.violations += speed < tau
                    of_class.tokens += one.done
                    of_class.seconds += duration
                    if speed >= tau:
                        of_class.on_time_tokens += one.done
                    if total.responses < len(responses):
                        response = responses[total.responses]
                        response.device_class, response.speed = c, speed
                        response.tokens, response.start = one.done, one.started
                        response.seconds = duration
                        total.responses += 1
                _begin_response(key, streams, j, one, devices)
                back += draw_exponential(streams, j, devices.think)
                one.started = back
                one.done = cached[j] = size[j] = 0.0
                one.counted = opens <= back < closes
                open_responses += one.counted
            per_window[j] = _begin_window(streams, j, one, devices, tau, back) / tau
            if travels:
                one.arrival += devices.up + draw_exponential(streams, j, devices.jitter)
            away[j] = per_window[j] - (one.deadline - one.arrival)
            first[j] = -one.due if rule.due_last else now
            heap_size = push(heap_times, heap_devices, heap_size, one.arrival, j)
        batches += 1
        kept = 0
        for k in range(n_pending):
            if pending[k] >= 0:
                pending[kept] = pending[k]
                kept += 1
        n_pending = kept
        if room < math.inf:
            evict(room, cached, first)
            if rule.due_last:
                batch_seconds += (seconds - batch_seconds) / min(batches, SPIKE_BATCHES)
                run_ahead(room, batch_seconds, size, per_window, away, slow_first, ahead)
    for j in range(n):  # an unfinished response counts if it is certain to miss its speed
        one = states[j]
        c = devices.class_of[j]
        if one.started < closes and one.target < devices.speed[c] * (now - one.started):
            by_class[c].responses += 1
            by_class[c].violations += 1
    return heap_size == 0
