"""Bounds on ranges of decoding steps, with the tasks batched again in each range."""

import numpy as np

from specopt.solvers.kernels.kernel import helper, kernel
from specopt.solvers.serving_latency.kernels.stages import (
    DRAFT,
    HEIGHT,
    INFINITY,
    INPUT,
    LENGTH,
    OUTPUT,
    STEPS,
    VERIFY,
    Data,  # noqa: F401  (named in a signature)
    fits,
    is_linear,
    overlaps,
    range_stages,
)

# Entries of a search for the weight between the stages: the weight, the best value found and its
# weight. Then, for the last weight below (0) and above (1) the best weight: whether the weight is
# known, the weight, the time by which all drafting exceeds all verification, and the time of
# verification.
WEIGHT, VALUE, VALUE_WEIGHT, KNOWN, EDGE, EXCESS, VERIFIED = 0, 1, 2, 3, 5, 7, 9
SEARCH_ENTRIES = 11
SEARCHES = 6  # number of weights tried for a range


@helper
def active_tasks(data, by_output, end, active, least):
    """List the tasks that take part in step `end`, and their output lengths in increasing order.

    Return the number of tasks.
    """
    A = 0
    for k in range(len(data.task)):
        if data.task[k, STEPS] >= end:
            active[A] = k
            A += 1
    count = 0
    for k in by_output:
        if data.task[k, STEPS] >= end:
            least[count] = data.task[k, OUTPUT]
            count += 1
    return A


@helper
def shortest_path(data, active, least, A, n, count, mix, f, choice):
    """Run the shortest path over contiguous batches of the active tasks for one range of steps.

    With overlap, a batch costs mix T^d + (1 - mix) T^v; the first batch adds (1 - mix) T^d, and the
    last batch adds mix T^v. Without overlap, a batch costs T^d + T^v. A batch of b tasks must fit
    with the output length least[b-1], which is the minimum for any b tasks. Modified in place: f[i,
    s] and choice[i, s] = 4 b + the previous state, where s = 1 (first taken) + 2 (last taken).
    Returns the cost of all tasks, which is infinite if a task fits no batch; `walk` then has no
    path.
    """
    linear = is_linear(data)
    overlap = overlaps(data)
    dh = count * data.setting[LENGTH] * data.runtimes[DRAFT, 0, HEIGHT]
    vh = count * data.runtimes[VERIFY, 0, HEIGHT]
    f[0, 0] = 0.0
    f[0, 1] = f[0, 2] = f[0, 3] = INFINITY
    for e in range(1, A + 1):
        k = active[e - 1]
        for s in range(4):
            f[e, s] = INFINITY
        one_d, one_v = range_stages(data, 1.0, k, n, count)
        for size in range(1, e + 1):
            b = float(size)
            if not fits(data, b, data.task[k, INPUT] + least[size - 1]):
                break
            if linear:
                d, v = b * (one_d - dh) + dh, b * (one_v - vh) + vh
            else:
                d, v = range_stages(data, b, k, n, count)
            j = e - size
            if not overlap:
                if f[j, 0] + d + v < f[e, 0]:
                    f[e, 0] = f[j, 0] + d + v
                    choice[e, 0] = 4 * size
                continue
            cost = mix * d + (1.0 - mix) * v
            for taken in range(4):
                role = cost
                if taken & 1:
                    role += (1.0 - mix) * d
                if taken & 2:
                    role += mix * v
                for s in range(4):
                    if s & taken == 0 and f[j, s] + role < f[e, s | taken]:
                        f[e, s | taken] = f[j, s] + role
                        choice[e, s | taken] = 4 * size + s
    return f[A, 3 if overlap else 0]


@helper
def walk(data, active, A, n, count, choice):
    """Return the sums of both stages over the shortest path, including the first and the last
    batch.
    """
    e, s = A, 3 if overlaps(data) else 0
    draft = verify = 0.0
    while e > 0:
        size, state = choice[e, s] >> 2, choice[e, s] & 3
        d, v = range_stages(data, float(size), active[e - 1], n, count)
        draft += d
        verify += v
        if (s & 1) > (state & 1):
            verify += d
        if (s & 2) > (state & 2):
            draft += v
        e -= size
        s = state
    return draft, verify


@helper
def learn(search, value, draft, verify):
    """Record the value and the stage sums at the search's weight, and choose the next weight.

    Return whether there is a next weight.
    """
    weight = search[WEIGHT]
    if value > search[VALUE]:
        search[VALUE], search[VALUE_WEIGHT] = value, weight
    if abs(draft - verify) <= 1e-3 * value:
        return False
    side = 0 if draft > verify else 1  # whether to raise or lower the weight of drafting
    if weight == 1.0 - side:
        return False
    search[KNOWN + side], search[EDGE + side] = 1.0, weight
    search[EXCESS + side], search[VERIFIED + side] = draft - verify, verify
    if search[KNOWN] + search[KNOWN + 1] == 2.0:  # where both paths cost the same
        weight = (search[VERIFIED + 1] - search[VERIFIED]) / (search[EXCESS] - search[EXCESS + 1])
        weight = min(max(weight, search[EDGE]), search[EDGE + 1])
    elif side == 0:
        weight = weight + 0.1 if weight <= 0.8 else 1.0
    else:
        weight = weight - 0.1 if weight >= 0.2 else 0.0
    search[WEIGHT] = weight
    return True


@kernel("void(i8, i8, Data, i8[::1], i8[::1], f8[::1], f8[::1])")
def rebatching_ranges(first, stop, data, ends, by_output, search, seconds):
    """Bound the ranges r = first..stop-1 of steps, with the tasks batched again in each range.

    Range r contains the steps ends[r]+1..ends[r+1]; its tasks are those that take part in all of
    these steps. The weight between the stages is chosen to maximise the bound; its search starts at
    search[VALUE_WEIGHT]. Modified in place: search and seconds[r].
    """
    K = len(data.task)
    active, least = np.arange(K), np.empty(K)
    f, choice = np.empty((K + 1, 4)), np.empty((K + 1, 4), np.int64)
    for r in range(first, stop):
        n, count = ends[r] + 1, ends[r + 1] - ends[r]
        A = active_tasks(data, by_output, ends[r + 1], active, least)
        weight = search[VALUE_WEIGHT]  # the best weight of the previous range
        search[:] = 0.0
        search[WEIGHT] = weight
        for _ in range(SEARCHES):
            cost = shortest_path(data, active, least, A, n, count, search[WEIGHT], f, choice)
            if cost == INFINITY:
                search[VALUE] = cost
                break
            draft, verify = walk(data, active, A, n, count, choice)
            if not learn(search, cost, draft, verify) or not overlaps(data):
                break
        seconds[r] = search[VALUE]
