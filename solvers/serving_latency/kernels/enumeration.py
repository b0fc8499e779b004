"""Brute force: the stage times of every subset of tasks, and every ordered partition into
subsets.
"""

import numpy as np

from specopt.solvers.kernels.kernel import kernel
from specopt.solvers.serving_latency.kernels.stages import (
    INPUT,
    OUTPUT,
    STEPS,
    Data,  # noqa: F401  (named in a signature)
    fits,
    range_stages,
)
from specopt.solvers.serving_latency.kernels.step import served


@kernel("void(Data, f8[:, ::1], f8[:, ::1], b1[::1])")
def subset_stages(data, draft, verify, allowed):
    """Fill, for every subset of tasks (a bit mask), its stage times at every step and whether it
    fits.

    Modified in place: draft, verify of shape (2^K, N), zeros so far, and allowed of shape (2^K,).
    """
    for mask in range(1, len(allowed)):
        b = longest = last = 0.0
        top = 0
        for k in range(len(data.task)):
            if mask >> k & 1:
                b += 1.0
                top = k
                longest = max(longest, data.task[k, OUTPUT])
                last = max(last, data.task[k, STEPS])
        allowed[mask] = fits(data, b, data.task[top, INPUT] + longest)
        for n in range(1, int(last) + 1):
            draft[mask, n - 1], verify[mask, n - 1] = range_stages(data, b, top, n, 1)


@kernel("f8(i8, b1, f8[:, ::1], f8[:, ::1], b1[::1], f8, i8[::1])")
def enumerate_after(first, overlap, draft, verify, allowed, best, order):
    """Try every ordered partition of the tasks whose first batch is the mask `first`; return the
    least T_inf, or `best` if none is below it.

    Modified in place: order, the masks of the best partition found (0 behind the last), if below
    `best`.
    """
    if not allowed[first]:
        return best
    K, N = len(order), draft.shape[1]
    drafted, done = np.zeros((K + 1, N)), np.zeros((K + 1, N))
    rest, batch = np.zeros(K + 1, np.int64), np.zeros(K + 1, np.int64)
    t = 0
    rest[0] = len(allowed) - 1  # tasks left before level t
    batch[0] = first  # batch tried at level t
    while True:
        s = batch[t]
        total = 0.0
        for n in range(N):
            drafted[t + 1, n], done[t + 1, n] = served(
                overlap, drafted[t, n], done[t, n], draft[s, n], verify[s, n]
            )
            total += done[t + 1, n]
        left = rest[t] & ~s
        if left == 0:
            if total < best:
                best = total
                for level in range(K):
                    order[level] = batch[level] if level <= t else 0
        else:
            rest[t + 1] = left
            batch[t + 1] = left + 1  # before its first submask
            t += 1
        # the next batch: the next allowed submask at this level, or back up
        while t > 0:
            s = (batch[t] - 1) & rest[t]
            while s > 0 and not allowed[s]:
                s = (s - 1) & rest[t]
            if s > 0:
                batch[t] = s
                break
            t -= 1
        if t == 0:
            return best
