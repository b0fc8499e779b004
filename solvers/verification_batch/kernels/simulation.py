"""Long-run simulation of verification batching: devices that draft, and one verifier that serves
batch after batch.

`choose` makes one decision: which pending requests the verifier serves next. `calibrate` updates
the believed costs from the observed duration of a batch. `play` is the event simulation around both
functions; a server that embeds the scheduler calls the same two.

Random numbers are SplitMix64, one stream per (key, device, response). Two policies simulated with
the same key therefore see the same prompts, lengths, acceptances and delays.
"""

import math

import numpy as np

from specopt.solvers.kernels.heap import heapify, pop, push
from specopt.solvers.kernels.kernel import helper, inlined, kernel, record, rows
from specopt.solvers.kernels.random import GOLDEN, draw, draw_exponential, draw_normal, mixed

FCFS, EDF, ALGORITHM_1, ALGORITHM_1_DROP, PER_EPOCH, SLACK = 0, 1, 2, 3, 4, 5

LUCK = 6.0  # 1.3 ln(100), see `latest`
AHEAD_WINDOWS = 10.0
"""Number of windows by which a response runs ahead while its prefix is cached, if the cache cannot
hold all prefixes. Computing a prefix again costs about as much as five warm verifications. Any
value from 6 to 20 carries the same load within 4 %.
"""

START_ERROR = 0.3
"""Relative standard deviation of the initial error of each coefficient, in addition to the error
common to all coefficients.
"""

BOUND = 3.0
"""Number of typical errors at which the deviation of a batch is clipped, so that a stall has little
effect.
"""

MEMORY, SHORT_MEMORY = 32.0, 8.0
"""Number of batches over which the fit of their durations looks back: a few seconds of a busy
verifier. After a batch whose deviation exceeds the bound, the shorter memory applies, because the
machine may have changed.
"""

MIN_ERROR, ERROR_STEP, MEDIAN = 0.01, 1.13, 0.67
"""Smallest typical error, and the factor by which the typical error rises or falls after every
batch. With this update, MEDIAN times the typical error is the median of the errors.
"""

SPARE_SHARE = 0.25
"""Longest batch that may include requests that could wait, as a share of the time allowed to the
tightest requests. A request that arrives meanwhile waits for that batch and its own. From 0.33 on,
a class with little time is late more often.
"""

TIGHTEST, FOLLOW = 0.01, 0.1
"""Share of the requests that count as tightest, and the step size of the update of the logarithm of
their time. The update notices tighter requests after some tens of them, and outliers have little
effect.
"""

WAITS = 1
"""Value of `waits` for a request that is waiting."""

Rule = record(
    "Rule",
    policy="i8",
    costs="f8[::1]",  # a, b_compute, b_read and c of Eq. 18-19, as believed
    bytes_per_token="f8",
    guard="f8",  # delta of Eq. 17
    memory="f8",  # M
    cap="f8",  # on the time of a batch
    # lead over its due time at which a request can wait; negative: computed by `latest`
    defer="f8",
    give_up="f8",  # lateness at which a request is given up
    fill="b1",  # whether late requests fill the room that a batch leaves
    due_last="b1",  # whether a full cache drops the prefix due last, or the least recently used
    # one entry: seconds allowed to the tightest requests so far; 0 before the first request
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
    # seconds by which it is served earlier, because its prefix is cached and room is short
    ahead="f8[::1]",
    waits="i1[::1]",  # any value other than WAITS: the request has left the queue
)
Sorting = record("Sorting", keys="f8[::1]", places="i8[::1]")
"""Sort buffer, with one entry per pending request."""

Calibration = record(
    "Calibration",  # of the costs, as factors of the initial costs
    given="f8[::1]",
    # discounted sums over batches: products of terms, and products of terms and seconds
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
    bytes_per_token="f8",
    cache="b1",  # whether there is a cache of prefixes
    cache_bytes="f8",
    central="b1",  # whether the verifier decodes alone, one token at a time
)
Lengths = record("Lengths", median="f8", sigma="f8", most="f8")
"""Parameters of a lognormal number of tokens."""

Predictor = record(
    "Predictor", used="b1", false_accept="f8", false_reject="f8", false_accept_after="f8"
)
"""Whether drafting stops at the first predicted rejection, and the error probabilities of the
predictor.
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
    spread="f8",  # seconds over which devices first appear
)
Window = record("Window", begin="f8", end="f8", latest="f8", spike_batches="i8", spike_ratio="f8")
"""First and last start of counted responses, and the latest time of all. A batch is a spike (Eq.
21) if it lasts more than `spike_ratio` times the mean of the `spike_batches` before it.
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
"""Counters per class: counted responses, responses below their speed, tokens, seconds, and tokens
of responses on time; iterations within the window, iterations past their deadline, and late
iterations in a spike.
"""

Served = rows(
    "Served",
    batches="i8",
    iterations="i8",
    busy_seconds="f8",
    tokens="f8",
    drafted="i8",
    wasted="i8",
    cold="i8",
    responses="i8",
    logged="i8",
    unfinished="i8",
)
"""Totals within the window: batches, iterations, busy seconds, tokens committed, tokens drafted,
drafted tokens that were not accepted, and cold iterations. Also the number of rows of responses and
of the log, and the number of unfinished responses when time was up.
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
"""Batch, device, start of the batch, queueing time, duration of the batch in seconds, deadline,
ratio to the moving mean (Eq. 21), and whether the deadline was missed.
"""


@helper
def calibration(costs):
    """Return an initial calibration of the costs, before any batch."""
    return Calibration(costs.copy(), np.zeros((4, 4)), np.zeros(4), np.full(1, START_ERROR))


# ---------------------------------------------------------------------------- one decision


@inlined
def _weight(costs, new, cached):
    """Return w = a L_new + b_compute (L_cached + L_new) L_new + b_read L_cached (Eq. 18)."""
    return costs[0] * new + costs[1] * ((cached + new) * new) + costs[2] * cached


@helper
def _order(now, rule, order, turn, pending, keys):
    """Write the sort key of each request of the given turn, and NaN for all other requests.

    Under slack, turn 0 contains urgent requests, turn 1 those that run ahead while their prefix is
    cached, turn 2 those given up, and turn 3 those that can wait.
    """
    waits, due, latest, ahead = pending.waits, pending.due, pending.latest, pending.ahead
    for i in range(len(keys)):
        keys[i] = math.nan
        if waits[i] != WAITS:
            continue
        if order == FCFS:
            keys[i] = i
        elif order == EDF:
            keys[i] = pending.deadline[i]
        elif due[i] - now < -rule.give_up:
            if turn == 2:
                keys[i] = due[i]
        elif latest[i] <= now:
            if turn == 0:
                keys[i] = due[i]
        elif latest[i] - ahead[i] <= now:
            if turn == 1:
                keys[i] = -due[
                    i
                ]  # responses furthest ahead go first: they finish soon and free their room
        elif turn == 3:
            keys[i] = i if pending.cached[i] > 0.0 else len(keys) + i


@helper
def _take(now, rule, order, pending, room, batch):
    """Add requests to the batch, turn by turn and by increasing key, until a request breaks the cap
    or the memory limit. Return the size of the batch.

    The first request that fits the memory is added regardless of the cap; ties in the key go in
    order of arrival. Requests that can wait are added while the batch stays short. A heap sorts
    only the requests that are added.
    """
    keys, places = room.keys[: len(pending.value)], room.places
    count, seconds, used, cap = 0, rule.costs[3], 0.0, rule.cap
    for turn in range(4 if order == SLACK else 1):
        if turn == 3:
            cap = min(cap, SPARE_SHARE * rule.tight[0])
            if count > 0 and seconds >= cap:
                return count
        _order(now, rule, order, turn, pending, keys)
        left = 0
        for i in range(len(keys)):
            if not math.isnan(keys[i]):
                keys[left] = keys[i]
                places[left] = i
                left += 1
        heapify(keys, places, left)
        while left > 0:
            i = places[0]
            left = pop(keys, places, left)
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
    """Return the given requests by decreasing value per second; ties keep their original order."""
    density = np.full(len(value), math.inf)
    for i in which:
        if weight[i] > 0.0:
            density[i] = value[i] / weight[i]
    return which[np.argsort(-density[which], kind="mergesort")]


@helper
def _algorithm_1(now, rule, use, weight, memory, pending, batch):
    """Run Algorithm 1 on the requests marked in `use`. Return the size of the batch."""
    deadline = pending.deadline
    is_critical = now >= deadline - weight - rule.guard  # Eq. 17
    critical = np.flatnonzero(use & is_critical)
    critical = critical[np.argsort(deadline[critical], kind="mergesort")]
    others = _by_density(pending.value, weight, np.flatnonzero(use & ~is_critical))
    count, seconds, used, tightest = 0, rule.costs[3], 0.0, math.inf
    for part in (critical, others):
        for i in part:
            nearest = min(tightest, deadline[i])
            if used + memory[i] > rule.memory or now + seconds + weight[i] > nearest:
                return count
            batch[count] = i
            count += 1
            seconds += weight[i]
            used += memory[i]
            tightest = nearest
    return count


@helper
def _per_epoch(now, rule, use, weight, memory, pending, batch):
    """Run the density greedy with skips for every tightest deadline D, and keep the best batch.
    Return its size.

    With equal values and slack memory, the greedy selects the lightest requests, and the result is
    optimal.
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
def _fill(now, rule, count, late, weight, memory, pending, batch):
    """Add late requests, in order of arrival, as long as no request of the batch becomes late.
    Return the new size.
    """
    deadline = pending.deadline
    seconds = rule.costs[3]
    used = 0.0
    tightest = math.inf
    for k in range(count):
        seconds += weight[batch[k]]
        used += memory[batch[k]]
        tightest = min(tightest, deadline[batch[k]])
    for i in range(len(weight)):
        if late[i] and now + seconds + weight[i] <= tightest and used + memory[i] <= rule.memory:
            batch[count] = i
            count += 1
            seconds += weight[i]
            used += memory[i]
    return count


@helper
def _by_deadline(now, rule, pending, room, batch):
    """Choose a batch by the deadlines of this iteration: Algorithm 1, with or without late
    requests, or the best batch of this epoch.
    """
    weight = _weight(rule.costs, pending.new, pending.cached)
    memory = rule.bytes_per_token * (pending.cached + pending.new)
    use = pending.waits == WAITS
    if rule.policy == ALGORITHM_1:
        return _algorithm_1(now, rule, use, weight, memory, pending, batch)
    late = use & (now + rule.costs[3] + weight > pending.deadline)
    use &= ~late
    if rule.policy == ALGORITHM_1_DROP:
        count = _algorithm_1(now, rule, use, weight, memory, pending, batch)
    else:
        count = _per_epoch(now, rule, use, weight, memory, pending, batch)
    if count > 0:
        return _fill(now, rule, count, late, weight, memory, pending, batch) if rule.fill else count
    return _take(now, rule, FCFS, pending, room, batch)  # only late requests are pending


@helper
def latest(rule, due, tokens, tau, allowed):
    """Return the latest time until which a request can wait. At that time, its response is still
    ahead of its due time by one window and a margin for bad luck, unless the rule sets the lead.

    The window covers the last iteration, which may yield one token instead of E[tokens]. Before the
    last iteration, the lead over tau is a random walk: an iteration adds tokens / tau and lasts
    about half of the time allowed. The probability of falling back by x is exp(-2 x drift /
    variance), with drift allowed / 2 and variance about 1.3 (E[tokens] - 1) / tau^2. LUCK sets this
    probability to 1 %.
    """
    if rule.defer >= 0.0:
        return due - rule.defer
    return due - (tokens + LUCK * max(0.0, tokens - 1.0) / max(tau * allowed, 0.1)) / tau


@kernel("f8(f8, f8)")
def tighter(tight, allowed):
    """Return the updated time allowed to the tightest requests, after a request to which `allowed`
    seconds are allowed.
    """
    if tight == 0.0:
        return allowed
    return tight * math.exp(FOLLOW * (TIGHTEST - (allowed < tight)))


@kernel("void(f8, Rule, Pending, f8[::1], f8[::1])")
def meet(now, rule, pending, speed, allowed):
    """Compute how long the requests that arrived since the last decision can wait. Their entry in
    `latest` is NaN before the call.

    ``speed``: tau. ``allowed``: time from arrival to deadline, in seconds; negative for a request
    that has just arrived. Modified in place: ``allowed``, the rule's estimate for the tightest
    requests, and `latest`.
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
    """Return the number of pending requests that the verifier serves now. Zero means that it waits
    for the next arrival.

    Modified in place: ``batch`` (n,), whose first entries are the requests chosen, in the order of
    the policy.
    """
    if len(pending.value) == 0:
        return 0
    if rule.policy in (FCFS, EDF, SLACK):
        return _take(now, rule, rule.policy, pending, room, batch)
    return _by_deadline(now, rule, pending, room, batch)


@kernel("f8(f8, Rule, Pending, Sorting, i8[::1])")
def done_at(now, rule, pending, room, batch):
    """Return the time at which the last pending request is done, if no further requests arrive.
    Infinity means never.

    Modified in place: `waits` of the requests that are served, and the work space.
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
    """Update the costs from the duration of a batch, by nonnegative least squares on the relative
    errors of recent batches.

    In directions that the batches do not determine, the costs keep their initial proportions: a
    slower machine is assumed to be slower in all terms.

    ``work``: N_linear, N_interactions, N_cached of the batch, and 1. Modified in place: the costs
    and the calibration.
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
    factors = np.ones(4)
    for j in range(4):
        if given[j] > 0.0:
            factors[j] = costs[j] / given[j]
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
    """Return a lognormal number of tokens, rounded, between 1 and the upper limit."""
    return min(
        lengths.most,
        max(1.0, np.rint(lengths.median * math.exp(lengths.sigma * draw_normal(streams, j)))),
    )


# ---------------------------------------------------------------------------- the simulation


@helper
def _begin_response(key, streams, j, number, devices, prompt, target):
    """Draw prompt and length of the device's next response from a separate random stream."""
    streams[j] = mixed(mixed(key + np.uint64(j + 1) * GOLDEN) + np.uint64(number + 1) * GOLDEN)
    prompt[j] = _length(streams, j, devices.prompt)
    target[j] = _length(streams, j, devices.response)


@helper
def _draft(streams, j, devices):
    """Draft one window. Return (tokens drafted, tokens sent, tokens that the verifier will accept).

    With a predictor, the device stops at the first predicted rejection and sends the tokens before
    it.
    """
    accepted = 0
    intact = True
    window = len(devices.acceptance)
    for i in range(window):
        right = draw(streams, j) < devices.acceptance[i]
        if devices.predictor.used:
            u = draw(streams, j)
            if not intact:
                go_on = u < devices.predictor.false_accept_after
            elif right:
                go_on = u >= devices.predictor.false_reject
            else:
                go_on = u < devices.predictor.false_accept
            if not go_on:
                return i + 1, i, accepted
        if intact and right:
            accepted += 1
        else:
            intact = False
    return window, window, accepted


@kernel("void(f8, f8[::1], f8[::1])")
def evict(room, cached, first):
    """Drop prefixes, by increasing `first`, until the remaining prefixes fit into the cache."""
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
    """Choose the responses that run ahead while their prefix is cached, so that the prefixes of the
    other responses can stay.

    A response that runs ahead needs cache room only for the share of time in which it runs. Per
    iteration, that time is ``away`` plus one and a half batches, instead of the ``window`` that an
    iteration may last. Slow responses (first in ``order``) save most room and cost least. A fifth
    of the room is reserved for random variation.
    """
    short = size.sum() - 0.8 * room
    for j in order:
        ahead[j] = 0.0
        saved = size[j] * (1.0 - (away[j] + 1.5 * batch_seconds) / window[j])
        if short > 0.0 and saved > 0.0:
            ahead[j] = AHEAD_WINDOWS * window[j]
            short -= saved


@kernel(
    "b1(u8, Rule, Verifier, Devices, Window, ByClass[::1], Served[::1], Response[::1],"
    " Iteration[::1])"
)
def play(key, rule, verifier, devices, window, by_class, served, responses, log):
    """Simulate until all responses that start in the window have ended. Return whether the policy
    stalls.

    A response is counted if it starts within the window or spans all of it. The function fills
    ``by_class`` and the one entry of ``served``. As far as there is room, it also fills
    ``responses`` with the counted responses and ``log`` with the iterations within the window.
    """
    total = served[0]
    n = len(devices.class_of)
    streams = np.empty(n, np.uint64)
    number = np.zeros(n, np.int64)
    prompt = np.zeros(n)
    target = np.zeros(n)
    done = np.zeros(n)
    started = np.zeros(n)
    arrival = np.zeros(n)
    deadline = np.zeros(n)
    due = np.zeros(n)
    drafted = np.zeros(n, np.int64)
    sent = np.zeros(n, np.int64)
    accepted = np.zeros(n, np.int64)
    cached = np.zeros(n)
    last_used = np.full(n, -1.0)
    room = verifier.cache_bytes / verifier.bytes_per_token if rule.due_last else math.inf
    size = np.zeros(n)  # of the prefix if it were cached
    per_window = np.empty(n)
    away = np.empty(n)
    ahead = np.zeros(n)
    half = 0.5 * (window.begin + window.end)
    learned = calibration(rule.costs)
    work = np.ones(4)
    slow_first = np.argsort(devices.speed[devices.class_of], kind="mergesort")
    batch_seconds = 0.0
    counted = np.zeros(n, np.bool_)
    heap_times = np.empty(n)
    heap_devices = np.empty(n, np.int64)
    heap_size = 0
    pending = np.empty(n, np.int64)
    n_pending = 0
    value = np.empty(n)
    new = np.empty(n)
    old = np.empty(n)
    until = np.empty(n)
    pending_deadline = np.empty(n)
    pending_due = np.empty(n)
    pending_latest = np.empty(n)
    pending_ahead = np.empty(n)
    waits = np.full(n, WAITS, np.int8)
    sorting = Sorting(np.empty(n), np.empty(n, np.int64))
    batch = np.empty(n, np.int64)
    taken = np.zeros(n, np.bool_)
    recent = np.zeros(window.spike_batches)
    noise = np.full(1, mixed(key))
    open_responses = 0
    batches = 0
    now = 0.0
    stalled = False
    for j in range(n):
        _begin_response(key, streams, j, 0, devices, prompt, target)
        started[j] = draw(streams, j) * devices.spread
        drafted[j], sent[j], accepted[j] = _draft(streams, j, devices)
        tokens = devices.expected[sent[j]]
        tau = devices.speed[devices.class_of[j]]
        deadline[j] = started[j] + tokens / tau - devices.down
        due[j] = deadline[j]
        arrival[j] = (
            started[j]
            + drafted[j] * devices.draft
            + devices.up
            + draw_exponential(streams, j, devices.jitter)
        )
        until[j] = latest(rule, due[j], tokens, tau, deadline[j] - arrival[j])
        heap_size = push(heap_times, heap_devices, heap_size, arrival[j], j)
        counted[j] = window.begin <= started[j] < window.end
        open_responses += counted[j]
    while now < window.latest and (now < window.end or open_responses > 0):
        while heap_size > 0 and heap_times[0] <= now:
            j = heap_devices[0]
            rule.tight[0] = tighter(rule.tight[0], max(0.0, deadline[j] - arrival[j]))
            pending[n_pending] = j
            n_pending += 1
            heap_size = pop(heap_times, heap_devices, heap_size)
        for k in range(n_pending):
            j = pending[k]
            old[k] = cached[j]
            new[k] = prompt[j] + done[j] + sent[j] - old[k]
            value[k] = devices.expected[sent[j]]
            pending_deadline[k] = deadline[j]
            pending_due[k] = due[j]
            pending_latest[k] = until[j]
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
            if heap_size == 0:
                stalled = True  # every device waits, and the policy serves none of them
                now = window.latest
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
            ratio = seconds / recent[: min(batches, window.spike_batches)].mean()
        recent[batches % window.spike_batches] = seconds
        within = window.begin <= begin < window.end
        if within:
            total.batches += 1
            total.iterations += count
            total.busy_seconds += seconds
        for place in batch[:count]:
            taken[place] = True
            j = pending[place]
            c = devices.class_of[j]
            tau = devices.speed[c]
            of_class = by_class[c]
            gain = min(accepted[j] + 1.0, target[j] - done[j])
            if within:
                late = now > deadline[j]
                of_class.iterations += 1
                of_class.late += late
                of_class.late_in_spikes += late and ratio > window.spike_ratio
                total.tokens += gain
                total.drafted += drafted[j]
                total.wasted += drafted[j] - accepted[j]
                total.cold += cached[j] == 0.0
                if total.logged < len(log):
                    row = log[total.logged]
                    row.batch, row.device, row.start, row.seconds = batches, j, begin, seconds
                    row.queued, row.deadline = begin - arrival[j], deadline[j]
                    row.ratio, row.late = ratio, late
                    total.logged += 1
            done[j] += gain
            last_used[j] = now
            size[j] = prompt[j] + done[j]
            cached[j] = size[j] - 1.0 if verifier.cache else 0.0
            back = now
            if done[j] >= target[j] or not verifier.central:
                back += devices.down + draw_exponential(streams, j, devices.jitter)
            if done[j] >= target[j]:
                speed = done[j] / (back - started[j])
                if counted[j] or (started[j] < window.begin and now >= window.end):
                    open_responses -= counted[j]
                    of_class.responses += 1
                    of_class.violations += speed < tau
                    of_class.tokens += done[j]
                    of_class.seconds += back - started[j]
                    if speed >= tau:
                        of_class.on_time_tokens += done[j]
                    if total.responses < len(responses):
                        response = responses[total.responses]
                        response.device_class = c
                        response.speed = speed
                        response.tokens = done[j]
                        response.start = started[j]
                        response.seconds = back - started[j]
                        total.responses += 1
                number[j] += 1
                _begin_response(key, streams, j, number[j], devices, prompt, target)
                back += draw_exponential(streams, j, devices.think)
                started[j] = back
                done[j] = 0.0
                cached[j] = 0.0
                size[j] = 0.0
                counted[j] = window.begin <= back < window.end
                open_responses += counted[j]
            drafted[j], sent[j], accepted[j] = _draft(streams, j, devices)
            tokens = devices.expected[sent[j]]
            deadline[j] = back + tokens / tau - devices.down
            due[j] = started[j] + (done[j] + tokens) / tau - devices.down
            arrival[j] = back + drafted[j] * devices.draft
            if done[j] == 0.0 or not verifier.central:
                arrival[j] += devices.up + draw_exponential(streams, j, devices.jitter)
            until[j] = latest(rule, due[j], tokens, tau, deadline[j] - arrival[j])
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
        if verifier.cache_bytes < math.inf:
            evict(
                verifier.cache_bytes / verifier.bytes_per_token,
                cached,
                -due if rule.due_last else last_used,
            )
        if room < math.inf:
            batch_seconds += (seconds - batch_seconds) / min(batches, window.spike_batches)
            for j in range(n):
                per_window[j] = devices.expected[sent[j]] / devices.speed[devices.class_of[j]]
                away[j] = per_window[j] - (deadline[j] - arrival[j])
            run_ahead(room, batch_seconds, size, per_window, away, slow_first, ahead)
    for j in range(n):  # an unfinished response counts if it is certain to miss its speed
        if started[j] < window.end:
            c = devices.class_of[j]
            total.unfinished += 1
            if target[j] < devices.speed[c] * (now - started[j]):
                by_class[c].responses += 1
                by_class[c].violations += 1
    return stalled
