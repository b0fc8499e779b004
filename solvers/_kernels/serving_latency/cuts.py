"""Every way to cut the tasks, bounded by Johnson's order; and every order of the blocks of a cut, few or many.

In each scenario alone the two stages are a flow shop of two machines, where Johnson's order is best: first the blocks
that draft faster than they verify, shortest draft first, then the others, longest verify first. Every order of the
blocks takes at least the sum of these makespans. The same holds of the blocks that a partial order leaves, from when
both stages are free, and of blocks between others whose places are given: rank[m] is what comes first, Johnson's order
holds among equal ranks.

Where a block comes in Johnson's order does not depend on the cut: `rank[s, b, e]` is its place among all blocks (e, b).
So a block of a cut that is critical (Eq. 20) takes its draft and verify time, the drafts of the cut's blocks of lower
rank and the verifies of those of higher rank: sums over blocks, that shortest paths complete for the part of the cut
that is not known yet. Here scenarios are two, the prefill step and all others. For `completions` ranks are gathered in
bins; a block in the bin of the critical one may come before or after it.
"""

import numpy as np

from specopt.solvers._kernels.kernel import helper, kernel, record
from specopt.solvers._kernels.serving_latency.stages import INFINITY, range_stages


@helper
def precedes(x, y, rank, m, k):
    """Tell whether block m comes before block k by rank, then in Johnson's order, draft times x, verify times y."""
    if rank[m] != rank[k]:
        return rank[m] < rank[k]
    if x[m] < y[m]:
        return x[k] >= y[k] or x[m] < x[k]
    return x[k] >= y[k] and y[m] > y[k]


@helper
def sort_johnson(times, rank, M, order):
    """Write Johnson's order of M blocks by scenario."""
    for s in range(len(order)):
        for m in range(M):
            at = m
            while at > 0 and precedes(times[0, s], times[1, s], rank, m, order[s, at - 1]):
                order[s, at] = order[s, at - 1]
                at -= 1
            order[s, at] = m


@helper
def remaining_seconds(times, M, order, s, left, drafted, done):
    """Return the least makespan of scenario s that the blocks left allow, stages free at the times given."""
    for k in range(M):
        m = order[s, k]
        if left[m]:
            drafted += times[0, s, m]
            done = max(drafted, done) + times[1, s, m]
    return done


@kernel("void(f8[:, :, :, ::1], i8[:, :, ::1], i8[::1], f8[:, :, ::1])")
def completions(times, bins, width, least):
    """Fill least[g, h, i], what blocks of the first i tasks add at least to what is critical in bins g and h.

    `times` is [stage, s, b, e].
    """
    added = np.empty((2, max(least.shape[:2])))
    least[:] = INFINITY
    least[:, :, 0] = 0.0
    for e in range(1, len(width)):
        for b in range(1, width[e] + 1):
            for s in range(2):
                x, y = times[0, s, b, e], times[1, s, b, e]
                for g in range(least.shape[s]):
                    added[s, g] = x if bins[s, b, e] < g else y if bins[s, b, e] > g else min(x, y)
            for g in range(least.shape[0]):
                for h in range(least.shape[1]):
                    least[g, h, e] = min(least[g, h, e], least[g, h, e - b] + added[0, g] + added[1, h])


@helper
def adds(times, rank, s, b, e, size, end):
    """Return what block (e, b) adds where the block of `size` at `end` is critical."""
    return times[0 if rank[s, b, e] < rank[s, size, end] else 1, s, b, e]


Cuts = record(  # a depth-first search over them
    "Cuts",
    times="f8[:, :, :, ::1]",  # of blocks, [stage, s, b, e]
    rank="i8[:, :, ::1]",  # their places in Johnson's order, [s, b, e]
    bins="i8[:, :, ::1]",  # of ranks
    width="i8[::1]",  # most tasks of a block by its end
    least="f8[:, :, ::1]",  # see `completions`
    stack="i8[:, ::1]",  # end and size by level, K + 1 of them
    critical="f8[:, :, ::1]",  # by level, what takes longest if that block is critical: [level, s, block]
    state="i8[::1]",  # level, nodes, blocks that were critical where a bound closed last
)


@kernel("i8(i8, Cuts, f8, i8[:, ::1], f8[::1])")
def enumerate_cuts(nodes_allowed, cuts, upper, leaves, bounds):
    """Go on with a depth-first search over the cuts, longest inputs first, whose bound stays below `upper`.

    Leaves, the sizes of a cut's blocks from the last, and their bounds are written out. Returns how many; the search
    is over when cuts.state[0] < 0, and begins with zeros and cuts.stack[0] = K, 0. Stops when leaves are full, or after
    `nodes_allowed` nodes.
    """
    times, rank, bins, width, least, stack, critical, state = cuts
    K = len(width) - 1
    found = nodes = 0
    level, first, second = state[0], state[2], state[3]
    while level >= 0 and found < len(leaves) and nodes < nodes_allowed:
        stack[level, 1] += 1
        e, b = stack[level, 0], stack[level, 1]
        if b > width[e]:
            level -= 1
            continue
        nodes += 1
        i = e - b
        if max(first, second) < level:
            f, c = stack[first, 1], stack[first, 0]
            g, d = stack[second, 1], stack[second, 0]
            x = critical[level, 0, first] + adds(times, rank, 0, b, e, f, c)
            x += critical[level, 1, second] + adds(times, rank, 1, b, e, g, d)
            if x + least[bins[0, f, c], bins[1, g, d], i] >= upper:
                continue
        for s in range(2):
            own = times[0, s, b, e] + times[1, s, b, e]
            for k in range(level):
                end, size = stack[k, 0], stack[k, 1]
                own += adds(times, rank, s, size, end, b, e)
                critical[level + 1, s, k] = critical[level, s, k] + adds(times, rank, s, b, e, size, end)
            critical[level + 1, s, level] = own
        bound = 0.0
        for k in range(level + 1):
            for m in range(level + 1):
                x = critical[level + 1, 0, k] + critical[level + 1, 1, m]
                x += least[bins[0, stack[k, 1], stack[k, 0]], bins[1, stack[m, 1], stack[m, 0]], i]
                if x > bound:
                    bound = x
                    if bound >= upper:
                        first, second = k, m
        if bound >= upper:
            continue
        level += 1
        stack[level, 0], stack[level, 1] = i, 0
        if i == 0:
            for k in range(K):
                leaves[found, k] = stack[k, 1] if k < level else 0
            bounds[found] = bound
            found += 1
            level -= 1
    state[0], state[1], state[2], state[3] = level, state[1] + nodes, first, second
    return found


Orders = record(  # a depth-first search over them
    "Orders",
    starts="i8[::1]",  # scenario s covers the steps starts[s]..starts[s+1]-1: the fewer, the closer the bounds
    times="f8[:, :, ::1]",  # work space, of both stages by scenario and block
    order="i8[:, ::1]",  # work space, by scenario
    left="b1[::1]",  # by block
    stack="i8[::1]",  # the block to try, by level
    free="f8[:, :, ::1]",  # when the stages are free, by level and scenario
    state="i8[::1]",  # level, nodes
)


@kernel(
    "i8(i8, i8[::1], i8[::1], i8[::1], const f8[:, ::1], const f8[::1], const f8[:, :, ::1], f8, Orders, i8[:, ::1])"
)
def enumerate_orders(nodes_allowed, ends, sizes, rank, task, setting, runtimes, upper, orders, leaves):
    """Go on with a depth-first search over the orders of blocks by rank whose bound stays below `upper`.

    Leaves (blocks by position) are written out; their true latency is for the caller to compute. Returns how many; the
    search is over when orders.state[0] < 0, and begins with zeros and every block left.
    """
    starts, times, order, left, stack, free, state = orders
    M, S = len(ends), len(starts) - 1
    for s in range(S):
        n, count = starts[s], starts[s + 1] - starts[s]
        for m in range(M):
            b, k = float(sizes[m]), ends[m] - 1
            times[0, s, m], times[1, s, m] = range_stages(task, setting, runtimes, b, k, n, count)
    sort_johnson(times, rank, M, order)
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
        # of every rank, the same in all scenarios, as many blocks come first as have it
        if not left[m] or rank[m] != rank[order[0, level]]:
            continue
        nodes += 1
        left[m] = False
        bound = 0.0
        for s in range(S):
            drafted = free[level, 0, s] + times[0, s, m]
            done = max(drafted, free[level, 1, s]) + times[1, s, m]
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
