"""Lower bounds on the durations of ranges of decoding steps. New batches may be formed in each
range.
"""

import numpy as np

from specopt.solvers.kernels.kernel import helper, kernel
from specopt.solvers.serving_latency.kernels.stages import (
    INFINITY,
    INPUT,
    OUTPUT,
    STEPS,
    Data,  # noqa: F401  (named in a signature)
    fits,
    is_linear,
    overlaps,
    range_stages,
)

BOUND, MIX = range(2)  # rows of the result: bounds of ranges, and weights of drafting
EDGE, EXCESS, VERIFIED = range(3)  # columns of a tried weight, with its path's stage sums
SEARCHES = 6  # number of weights tried for a range


@helper
def shortest_path(data, active, least, n, count, mix, f, choice):
    """Compute a shortest path over contiguous batches of the active tasks, for one range of steps.

    With overlap, a batch with draft time T^d and verify time T^v costs mix T^d + (1 - mix) T^v. In
    addition, the first batch costs (1 - mix) T^d, and the last batch costs mix T^v. Without
    overlap, a batch costs T^d + T^v. A batch of b tasks must fit in memory with the output length
    least[b-1], because any b tasks include an output that is at least as long.

    Two arrays are modified in place: f[i, s] is the minimum cost of the first i tasks in state s,
    and choice[i, s] is 4 b + the previous state. The state s is the sum of 1 if the first batch has
    been chosen and 2 if the last batch has been chosen. Return the cost of all tasks. It is
    infinite if some task fits in no batch, and then `walk` must not be called.
    """
    linear = is_linear(data)
    overlap = overlaps(data)
    A = len(active)
    f[0, 0] = 0.0
    f[0, 1] = f[0, 2] = f[0, 3] = INFINITY
    for e in range(1, A + 1):
        k = active[e - 1]
        for s in range(4):
            f[e, s] = INFINITY
        one_d, one_v = range_stages(data, 1.0, k, n, count)
        two_d, two_v = range_stages(data, 2.0, k, n, count) if linear else (one_d, one_v)
        for size in range(1, e + 1):
            b = float(size)
            if not fits(data, b, data.task[k, INPUT] + least[size - 1]):
                break
            if linear:
                d, v = one_d + (b - 1.0) * (two_d - one_d), one_v + (b - 1.0) * (two_v - one_v)
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
def walk(data, active, n, count, choice):
    """Return the total draft time and the total verify time of the batches on the shortest path.

    The verify total also includes the first batch's draft time, and the draft total also includes
    the last batch's verify time.
    """
    e, s = len(active), 3 if overlaps(data) else 0
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
def best_mix(data, active, least, n, count, mix, f, choice):
    """Maximise the lower bound on the duration of a range over the weight of drafting. Return the
    highest bound found and its weight.

    The search starts at the weight `mix`.
    """
    best, best_mix = 0.0, 0.0
    # the last weight below (0) and above (1) the best weight; negative if not known
    tried = np.full((2, 3), -1.0)
    for _ in range(SEARCHES):
        cost = shortest_path(data, active, least, n, count, mix, f, choice)
        if cost > best:
            best, best_mix = cost, mix
        if cost == INFINITY or not overlaps(data):
            break
        draft, verify = walk(data, active, n, count, choice)
        side = 0 if draft > verify else 1  # whether to raise or lower the weight
        if abs(draft - verify) <= 1e-3 * cost or mix == 1.0 - side:
            break
        tried[side, EDGE], tried[side, EXCESS], tried[side, VERIFIED] = mix, draft - verify, verify
        if tried[0, EDGE] >= 0.0 and tried[1, EDGE] >= 0.0:  # where both paths cost the same
            mix = (tried[1, VERIFIED] - tried[0, VERIFIED]) / (tried[0, EXCESS] - tried[1, EXCESS])
            mix = min(max(mix, tried[0, EDGE]), tried[1, EDGE])
        elif side == 0:
            mix = mix + 0.1 if mix <= 0.8 else 1.0
        else:
            mix = mix - 0.1 if mix >= 0.2 else 0.0
    return best, best_mix


@kernel("void(i8, i8, Data, i8[::1], i8[::1], f8[:, ::1])")
def rebatching_ranges(first, stop, data, ends, by_output, found):
    """Compute a lower bound on the duration of each range r = first..stop-1 of steps. New batches
    may be formed in each range.

    Range r contains the steps ends[r]+1..ends[r+1]. Only tasks that take part in all steps of the
    range are considered. The weight between the stages is chosen to maximise the bound. The search
    for this weight starts at the weight of the previous range or, in the first range, at the weight
    in found[MIX, 0]. The array `found`, with rows as in `BOUND` and shape (2, ranges), is modified
    in place.
    """
    K = len(data.task)
    f, choice = np.empty((K + 1, 4)), np.empty((K + 1, 4), np.int64)
    steps, outputs = data.task[:, STEPS], data.task[by_output, OUTPUT]
    for r in range(first, stop):
        active = np.flatnonzero(steps >= ends[r + 1])
        least = outputs[steps[by_output] >= ends[r + 1]]  # in increasing order
        found[BOUND, r], found[MIX, r] = best_mix(
            data,
            active,
            least,
            ends[r] + 1,
            ends[r + 1] - ends[r],
            found[MIX, max(0, r - 1)],
            f,
            choice,
        )
