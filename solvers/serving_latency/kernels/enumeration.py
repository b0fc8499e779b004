"""A brute-force search over every ordered partition of the tasks into subsets."""

import numpy as np

from specopt.solvers.kernels.kernel import kernel
from specopt.solvers.serving_latency.kernels.step import served


@kernel("f8(i8, b1, f8[:, ::1], f8[:, ::1], b1[::1], f8, i8[::1])")
def enumerate_after(first, overlap, draft, verify, allowed, best, order):
    """Try every ordered partition of the tasks whose first batch is encoded by the bit mask
    `first`.

    Return the minimum inference time T_inf, or `best` if no partition has a lower T_inf. If some
    partition has a lower T_inf, the masks of the best partition are written to `order`, followed by
    zeros.
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
