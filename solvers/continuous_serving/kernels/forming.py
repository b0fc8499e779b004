"""Batches of the tasks at hand, for some decoding steps."""

import numpy as np

from specopt.solvers.continuous_serving.kernels.chains import first_verified
from specopt.solvers.kernels.kernel import kernel
from specopt.solvers.serving_latency.kernels.orders import sort_johnson
from specopt.solvers.serving_latency.kernels.plans import D1, SIZE, TOP, V1, prefill_seconds
from specopt.solvers.serving_latency.kernels.rebatching import (
    SEARCHES,
    WEIGHT,
    begin_search,
    learn,
    path_space,
    shortest_path,
    walk,
)
from specopt.solvers.serving_latency.kernels.stages import (
    DRAFT,
    HEIGHT,
    INFINITY,
    INPUT,
    LENGTH,
    OUTPUT,
    VERIFY,
    Data,  # noqa: F401  (named in a signature)
    fits,
    is_linear,
    overlaps,
    range_stages,
)


@kernel(
    "f8(i8, Data, f8[::1], i8[::1])",
    steps=lambda n, data, *_: 50 * len(data.task) ** 2 * data.runtimes.shape[1],
)
def form_batches(n, data, search, slot):
    """Form batches of all tasks, sorted by input, for a step like step n; return its seconds, or
    infinity.

    Modified in place: slot[k] is the batch of task k, in the order of Johnson's rule. Several
    weights between the stages are tried, from search[VALUE_WEIGHT] on.
    """
    K = len(data.task)
    active, least, f, choice, batches = path_space(K)
    order, ranks = np.arange(K), np.zeros(K)
    begin_search(search)
    best = INFINITY
    for _ in range(SEARCHES):
        cost = shortest_path(data, True, active, least, K, n, 1, search[WEIGHT], f, choice)
        if cost == INFINITY:
            break
        M, draft, verify = walk(data, active, K, n, 1, choice, batches)
        seconds = cost
        if overlaps(data):
            sort_johnson(batches[:, D1], batches[:, V1], ranks, M, order)
            seconds = prefill_seconds(batches, order, M)
        if seconds < best:
            best = seconds
            for place in range(M):
                m = order[place]
                top = int(batches[m, TOP])
                slot[top + 1 - int(batches[m, SIZE]) : top + 1] = place
        if not learn(search, cost, draft, verify) or not overlaps(data):
            break
    return best


@kernel(
    "f8(i8, b1, i8, Data, i8[::1], i8[::1])",
    steps=lambda n, rising, most, data, *_: (
        10 * most * len(data.task) ** 2 * data.runtimes.shape[1]
    ),
)
def form_chain(n, rising, most, data, ends, slot):
    """Form pipelined batches of tasks in their order by input, or in the reverse; return the step's
    time, or infinity.

    Of every number of batches up to `most` and every prefix the one that is verified first is kept.
    Batches end at ends[0] = 0, ends[1], ..., the number of tasks; task K - 1 comes first unless
    `rising`. Modified in place: slot[k] is the batch of task k.
    """
    K, G = len(data.task), len(ends) - 1
    linear = is_linear(data)
    dh, vh = (
        data.setting[LENGTH] * data.runtimes[DRAFT, 0, HEIGHT],
        data.runtimes[VERIFY, 0, HEIGHT],
    )
    alone, tops, longest = np.empty((G, 2)), np.empty(G, np.int64), np.full(G, -INFINITY)
    # of blocks between two ends: their longest task, its seconds alone, their longest output
    for g in range(G):
        tops[g] = ends[g + 1] - 1 if rising else K - 1 - ends[g]
        alone[g, DRAFT], alone[g, VERIFY] = range_stages(data, 1.0, tops[g], n, 1)
        for i in range(ends[g], ends[g + 1]):
            longest[g] = max(longest[g], data.task[i if rising else K - 1 - i, OUTPUT])
    times = np.empty((G + 1, G, 2))
    for e in range(1, G + 1):
        output = -INFINITY
        for j in range(e - 1, -1, -1):
            b = float(ends[e] - ends[j])
            g = e - 1 if rising else j
            output = max(output, longest[j])
            if not fits(data, b, data.task[tops[g], INPUT] + output):
                times[e, j, VERIFY] = INFINITY
                break
            if linear:
                d, v = b * (alone[g, DRAFT] - dh) + dh, b * (alone[g, VERIFY] - vh) + vh
            else:
                d, v = range_stages(data, b, tops[g], n, 1)
            times[e, j, DRAFT], times[e, j, VERIFY] = d, v
    drafted, done = np.zeros((most + 1, G + 1)), np.zeros((most + 1, G + 1))
    before = np.empty((most + 1, G + 1), np.int64)
    count = first_verified(True, most, 2, times, G, drafted, done, before)
    e = G
    for m in range(count, 0, -1):
        j = before[m, e]
        for i in range(ends[j], ends[e]):
            slot[i if rising else K - 1 - i] = m - 1
        e = j
    return done[count, G]
