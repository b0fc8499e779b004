"""Batches of the tasks at hand, for some decoding steps."""

import numpy as np

from specopt.solvers.continuous_serving.kernels.chains import first_verified
from specopt.solvers.kernels.kernel import kernel
from specopt.solvers.serving_latency.kernels.plans import SIZE, TOP
from specopt.solvers.serving_latency.kernels.rebatching import (
    SEARCHES,
    VALUE_WEIGHT,
    WEIGHT,
    begin_search,
    execute,
    learn,
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
    OVERLAP,
    VERIFY,
    fits,
    range_stages,
)


@kernel(
    "f8(i8, i8, const f8[:, ::1], const f8[::1], const f8[:, :, ::1], Workspace, f8[::1], i8[::1])",
    steps=lambda n, count, task, setting, runtimes, *_: 50 * len(task) ** 2 * runtimes.shape[1],
)
def form_batches(n, count, task, setting, runtimes, room, search, slot):
    """Form batches of all tasks, sorted by input, for the steps n..n+count-1; return what these
    take, or infinity.

    Modified in place: slot[k] is the batch of task k, in the order of Johnson's rule. Several
    weights between the stages are tried, from search[VALUE_WEIGHT] on.
    """
    places, lines, f, choice, batches = room
    active, order = places[0], places[1]
    K = len(task)
    for k in range(K):
        active[k] = k
    begin_search(search, search[VALUE_WEIGHT])
    best = INFINITY
    overlap = setting[OVERLAP] > 0.0
    for _ in range(SEARCHES):
        cost = shortest_path(
            task, setting, runtimes, True, active, lines[2], K, n, count, search[WEIGHT], f, choice
        )
        if cost == INFINITY:
            break
        M, draft, verify = walk(task, setting, runtimes, active, K, n, count, choice, batches)
        seconds = execute(task, setting, runtimes, batches, M, n, order, lines)
        if not overlap:
            for m in range(M):
                order[m] = m
        if seconds < best:
            best = seconds
            for place in range(M):
                m = order[place]
                top = int(batches[m, TOP])
                for k in range(top + 1 - int(batches[m, SIZE]), top + 1):
                    slot[k] = place
        if not learn(search, cost, draft, verify) or not overlap:
            break
    return best


@kernel(
    "f8(i8, b1, i8, const f8[:, ::1], const f8[::1], const f8[:, :, ::1], i8[::1], i8[::1])",
    steps=lambda n, rising, most, task, setting, runtimes, *_: (
        10 * most * len(task) ** 2 * runtimes.shape[1]
    ),
)
def form_chain(n, rising, most, task, setting, runtimes, ends, slot):
    """Form pipelined batches of tasks in their order by input, or in the reverse; return the step's
    time, or infinity.

    Of every number of batches up to `most` and every prefix the one that is verified first is kept.
    Batches end at ends[0] = 0, ends[1], ..., the number of tasks; task K - 1 comes first unless
    `rising`. Modified in place: slot[k] is the batch of task k.
    """
    K, G = len(task), len(ends) - 1
    linear = runtimes.shape[1] == 1
    dh, vh = setting[LENGTH] * runtimes[DRAFT, 0, HEIGHT], runtimes[VERIFY, 0, HEIGHT]
    alone, tops, longest = np.empty((G, 2)), np.empty(G, np.int64), np.full(G, -INFINITY)
    for g in range(
        G
    ):  # blocks between two ends: their longest task, what it takes alone, their longest output
        tops[g] = ends[g + 1] - 1 if rising else K - 1 - ends[g]
        alone[g, DRAFT], alone[g, VERIFY] = range_stages(
            task, setting, runtimes, 1.0, tops[g], n, 1
        )
        for i in range(ends[g], ends[g + 1]):
            longest[g] = max(longest[g], task[i if rising else K - 1 - i, OUTPUT])
    times = np.empty((G + 1, G, 2))
    for e in range(1, G + 1):
        output = -INFINITY
        for j in range(e - 1, -1, -1):
            b = float(ends[e] - ends[j])
            g = e - 1 if rising else j
            output = max(output, longest[j])
            if not fits(setting, b, task[tops[g], INPUT] + output):
                times[e, j, VERIFY] = INFINITY
                break
            if linear:
                d, v = b * (alone[g, DRAFT] - dh) + dh, b * (alone[g, VERIFY] - vh) + vh
            else:
                d, v = range_stages(task, setting, runtimes, b, tops[g], n, 1)
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
