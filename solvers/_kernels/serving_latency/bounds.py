"""Exact pipelined batching (paper 1, problem (24)): Lagrangian bounds over pipeline positions, and enumeration.

With the batches in pipeline order m = 1..M, the makespan of a step is a maximum over critical batches (Eq. 20):
C_n = max_q Phi_q(n), Phi_q(n) = sum_{m <= q} T^d_{n,m} + sum_{m >= q} T^v_{n,m}. Steps are gathered into scenarios
s (the prefill step, and ranges of decoding steps); d[s] and v[s] are stage times summed over a scenario's steps.
Any weights pi[s, q] >= 0 with sum_q pi[s, q] = 1 give the lower bound sum_s sum_q pi[s, q] Phi_q[s], which is
additive over batches: a batch in position p costs sum_s (sum_{q >= p} pi[s, q]) d[s] + (sum_{q <= p} pi[s, q]) v[s].
Its least value over contiguous partitions *and* orders is a shortest path over (prefix, occupied positions).

A block is (e, b): the b tasks that end at sorted position e (1-based). What blocks cost is a table [., b, e]; for
one-piece runtimes, where that is affine in b, the table is [., RATE or FIXED, e] instead and `linear` says so.
M positions are special, `front` first and M - front last ones, between them lies a *pool* of so many blocks, or `more`,
where pi is zero. A state of the path counts the pool's blocks and holds the special positions taken as M low bits, so
that position p, with M for the pool, adds 2^p to it.
"""

from specopt.solvers._kernels.kernel import helper, kernel
from specopt.solvers._kernels.serving_latency.stages import INFINITY, range_stages

RATE, FIXED = range(2)  # rows of a table where costs are affine in the size
LEAST_SIZE, LARGEST_SIZE, LEAST_END, LARGEST_END = range(4)  # columns of limits, by position
END, SIZE, POSITION = range(3)  # rows of a path
PREFIX, MASK, MOVE, PLACED = range(4)  # columns of the enumeration's stack


@kernel(
    "void(const f8[:, ::1], const f8[::1], const f8[:, :, ::1], i8[::1], i8[::1], f8[:, :, ::1], f8[:, :, ::1])",
)
def scenario_tables(task, setting, runtimes, width, starts, d, v):
    """Fill d[s, b, e] and v[s, b, e], the stage times of blocks (e, b) summed over the steps of scenario s.

    Scenario s covers the steps starts[s]..starts[s+1]-1; the first is the prefill step alone. Only blocks of at most
    width[e] tasks are filled.
    """
    for e in range(1, len(width)):
        for size in range(1, width[e] + 1):
            for s in range(len(d)):
                n, count = starts[s], starts[s + 1] - starts[s]
                d[s, size, e], v[s, size, e] = range_stages(task, setting, runtimes, float(size), e - 1, n, count)


@helper
def cost(linear, table, s, e, b):
    """Return what block (e, b) costs in layer s of a table."""
    return b * table[s, RATE, e] + table[s, FIXED, e] if linear else table[s, b, e]


@helper
def compose(d, v, pi, front, table):
    """Fill the cost of blocks by position from the weights; those of the pool behind the special positions'."""
    S, M = pi.shape
    table[:] = 0.0
    for s in range(S):
        before = 0.0  # weight of the positions up to p, without it
        for p in range(len(table)):
            if p == M:
                before = 0.0
                for q in range(front):
                    before += pi[s, q]
            here = pi[s, p] if p < M else 0.0
            for b in range(table.shape[1]):
                for e in range(table.shape[2]):
                    table[p, b, e] += (1.0 - before) * d[s, b, e] + (before + here) * v[s, b, e]
            before += here


@helper
def allowed(limits, p, e, b):
    """Tell whether block (e, b) keeps the limits of position p."""
    return limits[p, LEAST_SIZE] <= b <= limits[p, LARGEST_SIZE] and limits[p, LEAST_END] <= e <= limits[p, LARGEST_END]


@helper
def shortest_path(linear, table, M, pool, more, width, last, limits, value):
    """Fill value[state, i], the least cost from prefix i to the end, and with it the positions of state taken.

    O(K B 2^M M pool). One state after the other, from the fullest down; the innermost loop runs over prefixes that do
    not depend on each other. `follow` finds the choices again. `last[b]` is the last end at which a block of b fits.
    """
    K = len(width) - 1
    value[:] = INFINITY
    value[len(value) - 1, K] = 0.0
    for state in range(len(value) - 1, -1, -1):
        here = value[state]
        for p in range(M + 1):
            if state >> M == pool if p == M else state >> p & 1:
                continue
            there = value[state + (1 << p)]
            for b in range(limits[p, LEAST_SIZE], min(limits[p, LARGEST_SIZE], len(last) - 1) + 1):
                first_end = max(b, limits[p, LEAST_END])
                count = min(last[b], limits[p, LARGEST_END]) - first_end + 1
                if count < 1:
                    continue
                into = here[first_end - b :]
                out = there[first_end:]
                if linear:
                    fixed = table[p, FIXED, first_end:]
                    rate = table[p, RATE, first_end:]
                    for k in range(count):
                        x = out[k] + (b * rate[k] + fixed[k])
                        into[k] = x if x < into[k] else into[k]
                else:
                    costs = table[p, b, first_end:]
                    for k in range(count):
                        x = out[k] + costs[k]
                        into[k] = x if x < into[k] else into[k]
        if more and state >> M == pool:
            for i in range(K - 1, -1, -1):
                for e in range(i + 1, K + 1):
                    if e - i > width[e]:
                        break
                    x = here[e] + cost(linear, table, M, e, e - i)
                    here[i] = x if x < here[i] else here[i]


@helper
def follow(linear, table, M, pool, more, width, limits, value, path):
    """Write the blocks of the shortest path in sorted order; return how many."""
    K = len(width) - 1
    i = state = count = 0
    while i < K or state < len(value) - 1:
        best = INFINITY
        after = state
        for e in range(i, K + 1):
            b = e - i
            if b > width[e]:
                break
            for p in range(M + 1):
                if state >> M == pool if p == M else state >> p & 1:
                    if p < M or not more or b == 0:
                        continue
                    there = state
                elif allowed(limits, p, e, b):
                    there = state + (1 << p)
                else:
                    continue
                x = cost(linear, table, p, e, b) + value[there, e]
                if x < best:
                    best = x
                    after = there
                    path[END, count], path[SIZE, count], path[POSITION, count] = e, b, p
        i = path[END, count]
        state = after
        count += 1
    return count


@helper
def critical_sums(linear, d, v, front, count, path, phi):
    """Fill phi[s, q] = Phi_q over scenario s for the special positions q of a path."""
    S, M = phi.shape
    for s in range(S):
        drafted = verified = 0.0
        for k in range(count):
            verified += cost(linear, v, s, path[END, k], path[SIZE, k])
        for q in range(M):
            vq = 0.0
            for k in range(count):
                at = path[POSITION, k]
                if at == q or (at == M and q == front):  # the pool comes before the first special behind it
                    drafted += cost(linear, d, s, path[END, k], path[SIZE, k])
                    y = cost(linear, v, s, path[END, k], path[SIZE, k])
                    if at == q:
                        vq += y
                    else:
                        verified -= y
            phi[s, q] = drafted + verified
            verified -= vq


@kernel(
    "f8(b1, f8[:, :, ::1], f8[:, :, ::1], i8[::1], i8[::1], i8, i8, b1, i8[:, ::1], f8[:, ::1], f8[:, :, ::1],"
    " f8[:, ::1], i8[:, ::1], i8[::1], f8[:, ::1])",
)
def lagrangian(linear, d, v, width, last, front, pool, more, limits, weights, table, value, path, blocks, phi):
    """Return the Lagrangian bound at weights pi, its path and its gradient; +inf if no path exists.

    Work space, of use to `enumerate_blocks`: table (costs by position) and value. Modified in place: path (sorted),
    blocks (their number) and phi, the gradient Phi_q[s] of shape (S, M).
    """
    M = weights.shape[1]
    compose(d, v, weights, front, table)
    shortest_path(linear, table, M, pool, more, width, last, limits, value)
    blocks[0] = 0
    if value[0, 0] < INFINITY:
        blocks[0] = follow(linear, table, M, pool, more, width, limits, value, path)
        critical_sums(linear, d, v, front, blocks[0], path, phi)
    return value[0, 0]


@kernel(
    "i8(i8, b1, f8[:, :, ::1], f8[:, :, ::1], i8[::1], i8[:, ::1], f8[:, :, ::1], f8[:, ::1], f8, i8[:, ::1], f8[::1],"
    " i8[::1], i8[:, ::1], i8[:, ::1])",
)
def enumerate_blocks(
    nodes_allowed, linear, d, v, width, limits, table, value, upper, stack, spent, state, leaf_ends, leaf_sizes
):
    """Go on with a depth-first search over all ways to cut and place M blocks whose bound stays below `upper`.

    Leaves (by position: ends and sizes) whose scenario bound is below `upper` are written out; their true latency is
    for the caller to compute. Returns how many; the search is over when state[0] < 0. Stops when the leaf arrays are
    full but for one row, which is work space, or after `nodes_allowed` nodes.

    Modified in place: stack, spent, state [level, nodes], leaf_ends, leaf_sizes.
    """
    K = len(width) - 1
    M = leaf_ends.shape[1]
    found = 0
    nodes = 0
    level = state[0]
    for t in range(level):
        p = stack[t, PLACED]
        leaf_ends[0, p] = stack[t + 1, PREFIX]
        leaf_sizes[0, p] = stack[t + 1, PREFIX] - stack[t, PREFIX]
    while level >= 0:
        if found == len(leaf_ends) - 1 or nodes >= nodes_allowed:
            break
        move = stack[level, MOVE]
        b = move // M + 1
        p = move % M
        e = stack[level, PREFIX] + b
        if e > K or b > width[e]:
            level -= 1
            continue
        stack[level, MOVE] = move + 1
        if stack[level, MASK] >> p & 1 or not allowed(limits, p, e, b):
            continue
        total = spent[level] + cost(linear, table, p, e, b)
        after = stack[level, MASK] | 1 << p
        if not total + value[after, e] < upper:
            continue
        nodes += 1
        leaf_ends[found, p] = e
        leaf_sizes[found, p] = b
        if level < M - 1:
            stack[level, PLACED] = p
            level += 1
            stack[level, PREFIX] = e
            stack[level, MASK] = after
            stack[level, MOVE] = (K - e - 1) * M if level == M - 1 else 0  # the last block takes the rest
            spent[level] = total
            continue
        total = 0.0
        for s in range(len(d)):
            verified = 0.0
            for q in range(M):
                verified += cost(linear, v, s, leaf_ends[found, q], leaf_sizes[found, q])
            drafted = 0.0
            worst = 0.0
            for q in range(M):
                drafted += cost(linear, d, s, leaf_ends[found, q], leaf_sizes[found, q])
                worst = max(worst, drafted + verified)
                verified -= cost(linear, v, s, leaf_ends[found, q], leaf_sizes[found, q])
            total += worst
        if total < upper:
            for q in range(M):  # the next leaf differs from this one in its last blocks
                leaf_ends[found + 1, q] = leaf_ends[found, q]
                leaf_sizes[found + 1, q] = leaf_sizes[found, q]
            found += 1
    state[0] = level
    state[1] += nodes
    return found


@kernel("void(b1, f8[:, :, ::1], f8[:, :, ::1], i8[::1], i8, f8[::1], f8[:, :, ::1], f8[::1])")
def ends_bound(linear, d, v, width, least, first_weight, value, bounds):
    """Raise bounds[M], M = 1..cap (cap: that many or more), by weights on the first and the last position alone.

    first_weight[s] goes to "first draft + all verify", the rest to "all draft + last verify". One shortest path
    over (prefix, first and last taken, blocks so far), value of shape (K + 1, 4, cap + 1); blocks beyond cap count as
    cap. Blocks hold `least` tasks or more, 0 or 1.
    """
    K = len(width) - 1
    cap = len(bounds) - 1
    value[:] = INFINITY
    value[0, 0, 0] = 0.0
    for e in range(K + 1):
        for b in range(width[e], least - 1, -1):  # empty blocks last: they go on from the prefix that they end at
            i = e - b
            drafted = 0.0
            verified = 0.0
            middle = 0.0
            for s in range(len(first_weight)):
                w = first_weight[s]
                x = cost(linear, d, s, e, b)
                y = cost(linear, v, s, e, b)
                middle += (1.0 - w) * x + w * y
                drafted += w * x  # extra cost of the first block
                verified += (1.0 - w) * y  # extra cost of the last block
            for mask in range(4):
                for m in range(cap + 1):
                    x = value[i, mask, m]
                    if x == INFINITY:
                        continue
                    n = min(m + 1, cap)
                    for role in range(4):  # first (1), last (2), both (3)
                        if mask & role == 0:
                            extra = middle
                            if role & 1:
                                extra += drafted
                            if role & 2:
                                extra += verified
                            value[e, mask | role, n] = min(value[e, mask | role, n], x + extra)
    for m in range(1, cap + 1):
        bounds[m] = max(bounds[m], value[K, 3, m])
