"""Every order of a number of blocks, with bounds from Johnson's order.

In each scenario alone, the two stages are a flow shop with two machines, for which Johnson's order
is optimal. The blocks that draft faster than they verify come first, shortest draft first. The
other blocks follow, longest verification first. Every order of the blocks takes at least the sum of
these makespans. The same holds for the blocks that a partial order leaves, from the times when the
stages are free, and if some blocks have fixed places. Blocks are ordered by rank[m]; Johnson's
order applies to blocks with equal ranks.
"""

import numpy as np

from specopt.solvers.kernels.kernel import helper, kernel, record
from specopt.solvers.serving_latency.kernels.stages import (
    Data,  # noqa: F401  (named in a signature)
    range_stages,
)
from specopt.solvers.serving_latency.kernels.step import served


@helper
def precedes(x, y, rank, m, k):
    """Return whether block m comes before block k: by rank, then in Johnson's order with draft
    times x and verify times y.
    """
    if rank[m] != rank[k]:
        return rank[m] < rank[k]
    if x[m] < y[m]:
        return x[k] >= y[k] or x[m] < x[k]
    return x[k] >= y[k] and y[m] > y[k]


@helper
def sort_johnson(x, y, rank, M, order):
    """Write Johnson's order of M blocks with draft times x and verify times y."""
    for m in range(M):
        at = m
        while at > 0 and precedes(x, y, rank, m, order[at - 1]):
            order[at] = order[at - 1]
            at -= 1
        order[at] = m


@helper
def remaining_seconds(times, M, order, s, left, drafted, done):
    """Return the minimum makespan of scenario s over all orders of the remaining blocks.

    The stages are free at the times `drafted` and `done`.
    """
    for k in range(M):
        m = order[s, k]
        if left[m]:
            drafted, done = served(True, drafted, done, times[0, s, m], times[1, s, m])
    return done


Orders = record(  # a depth-first search over orders
    "Orders",
    # scenario s covers the steps starts[s]..starts[s+1]-1: fewer steps make the bounds tighter
    starts="i8[::1]",
    left="b1[::1]",  # whether the block remains, by block
    stack="i8[::1]",  # the block to try next, by level
    free="f8[:, :, ::1]",  # times when the stages are free, by level and scenario
    state="i8[::1]",  # level, nodes
)


@kernel("i8(i8, i8, i8, i8[:, ::1], Data, f8, Orders, i8[:, ::1])")
def enumerate_orders(nodes_allowed, front, specials, path, data, upper, orders, leaves):
    """Continue a depth-first search over the orders of a path's blocks whose bound stays below
    `upper`.

    The blocks in its pool, at position `specials`, can be in any order after the `front` first
    blocks. Leaves (blocks by position) are written out; the caller computes their exact latency.
    Returns the number of leaves. The search is over when orders.state[0] < 0; it begins with zeros
    and every block left.
    """
    starts, left, stack, free, state = orders
    ends, sizes, places = path
    rank = np.where(places == specials, front, places + (places >= front))
    M, S = len(ends), len(starts) - 1
    times, order = np.empty((2, S, M)), np.empty((S, M), np.int64)
    for s in range(S):
        n, count = starts[s], starts[s + 1] - starts[s]
        for m in range(M):
            b, k = float(sizes[m]), ends[m] - 1
            times[0, s, m], times[1, s, m] = range_stages(data, b, k, n, count)
        sort_johnson(times[0, s], times[1, s], rank, M, order[s])
    found = nodes = 0
    level = state[0]
    while level >= 0 and found < len(leaves) and nodes < nodes_allowed:
        m = stack[level]
        if level == M or m == M:
            if level == M:
                for p in range(M):
                    leaves[found, p] = stack[p] - 1
                found += 1
            level -= 1
            if level >= 0:
                left[stack[level] - 1] = True
            continue
        stack[level] = m + 1
        # a level only accepts blocks of its rank, which is the same in all scenarios
        if not left[m] or rank[m] != rank[order[0, level]]:
            continue
        nodes += 1
        left[m] = False
        bound = 0.0
        for s in range(S):
            drafted, done = served(
                True, free[level, 0, s], free[level, 1, s], times[0, s, m], times[1, s, m]
            )
            free[level + 1, 0, s], free[level + 1, 1, s] = drafted, done
            bound += remaining_seconds(times, M, order, s, left, drafted, done)
        if bound < upper:
            level += 1
            stack[level] = 0
        else:
            left[m] = True
    state[0] = level
    state[1] += nodes
    return found
