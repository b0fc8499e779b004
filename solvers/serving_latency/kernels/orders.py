"""An enumeration of the pipeline orders of blocks, pruned by bounds from Johnson's rule.

Within one scenario, the two stages form a two-machine flow shop, for which Johnson's rule yields an
optimal order. The blocks that draft faster than they verify come first, shortest draft first. The
other blocks follow, longest verification first.

For every order of the blocks, the inference time T_inf is at least the sum, over all scenarios, of
the makespan in Johnson's order. A similar bound holds for the remaining blocks of a partial order,
which start when the stages become free. Blocks are sorted by rank[m], and only blocks with equal
ranks can be reordered.
"""

from specopt.solvers.kernels.kernel import kernel, record
from specopt.solvers.serving_latency.kernels.step import served

Orders = record(  # a depth-first search over orders
    "Orders",
    times="f8[:, :, ::1]",  # T^d and T^v, by scenario and block
    ranks="f8[::1]",  # rank, by block
    order="i8[:, ::1]",  # Johnson's order, by scenario
    left="b1[::1]",  # whether the block remains, by block
    stack="i8[::1]",  # the block to try next, by level
    free="f8[:, :, ::1]",  # times when the stages are free, by level and scenario
    state="i8[::1]",  # level, nodes
)


@kernel("i8(i8, f8, Orders, i8[:, ::1])")
def enumerate_orders(nodes_allowed, upper, orders, leaves):
    """Continue a depth-first search over the orders of blocks that respect their ranks. Partial
    orders whose bound reaches `upper` are pruned.

    Complete orders (blocks by position) are written to `leaves`, and their number is returned. The
    caller computes their exact latency. Initially, `orders.state` must be zero, and all entries of
    `orders.left` must be true. The search has finished when orders.state[0] < 0.
    """
    times, rank, order, left, stack, free, state = orders
    S, M = order.shape
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
            for k in range(M):  # the minimum makespan over all orders of the blocks that remain
                r = order[s, k]
                if left[r]:
                    drafted, done = served(True, drafted, done, times[0, s, r], times[1, s, r])
            bound += done
        if bound < upper:
            level += 1
            stack[level] = 0
        else:
            left[m] = True
    state[0] = level
    state[1] += nodes
    return found
