"""Lagrangian bounds over pipeline positions and an enumeration of plans, for solving pipelined
batching to optimality (paper 1, problem (24)).

With the batches in pipeline order m = 1..M, the makespan of a step is a maximum over critical
batches (Eq. 20): C_n = max_q Phi_q(n), Phi_q(n) = sum_{m <= q} T^d_{n,m} + sum_{m >= q} T^v_{n,m}.
Steps are grouped into scenarios s: the first scenario is the prefill step, and the others are
ranges of decoding steps. d[s] and v[s] are stage times summed over a scenario's steps. Any weights
pi[s, q] >= 0 with sum_q pi[s, q] = 1 yield the lower bound sum_s sum_q pi[s, q] Phi_q[s], which is
additive over batches. A batch in position p costs sum_s (sum_{q >= p} pi[s, q]) d[s] + (sum_{q <=
p} pi[s, q]) v[s]. The minimum over contiguous partitions *and* orders is a shortest path over
(prefix, occupied positions).

A block (e, b) consists of the b tasks that end at sorted position e (1-based). The costs of blocks
form a table [., b, e]. If runtimes have one linear piece, costs are affine in b. In this case,
`linear` is true, and the table is [., RATE or FIXED, e]. M positions are special: the first `front`
and the last M - front. Between the special positions lies a *pool* of positions, where pi is zero.
The pool has a fixed number of blocks or, if `more` is true, any number of blocks. A state of the
path counts the blocks in the pool and stores the occupied special positions in the M low bits. A
block at position p, where p = M means the pool, adds 2^p to the state.
"""

from specopt.solvers.kernels.kernel import helper, inlined, kernel, record
from specopt.solvers.serving_latency.kernels.stages import (
    INFINITY,
    Data,  # noqa: F401  (named in a signature)
    range_stages,
)

RATE, FIXED = range(2)  # rows of a table if costs are affine in the size
END, SIZE, POSITION = range(3)  # rows of a path
PREFIX, STATE, MOVE, PLACED = range(4)  # columns of the enumeration's stack

Costs = record("Costs", linear="b1", d="f8[:, :, ::1]", v="f8[:, :, ::1]", width="i8[::1]")
Places = record("Places", front="i8", pool="i8", more="b1")
Paths = record(  # a depth-first search over paths
    "Paths",
    stack="i8[:, ::1]",
    spent="f8[:, ::1]",  # cost so far, by weights
    closed="i8[::1]",  # number of nodes closed, by weights
    # level, nodes of the last call, minimum level (lower levels belong to other branches), paths
    # found
    state="i8[::1]",
    leaves="i8[:, :, ::1]",
    blocks="i8[::1]",  # number of blocks, by leaf
    phi="f8[:, ::1]",  # work space
)


@kernel(
    "void(Data, i8[::1], i8[::1], f8[:, :, ::1], f8[:, :, ::1])",
    steps=lambda data, width, starts, *_: 5 * sum(width) * len(starts) * data.runtimes.shape[1],
)
def scenario_tables(data, width, starts, d, v):
    """Compute the draft times d[s, b, e] and the verify times v[s, b, e] of blocks (e, b), summed
    over scenario s.

    Scenario s covers the steps starts[s]..starts[s+1]-1, and the first scenario is the prefill step
    alone. Only entries for blocks of at most width[e] tasks are computed.
    """
    for e in range(1, len(width)):
        for size in range(1, width[e] + 1):
            for s in range(len(d)):
                n, count = starts[s], starts[s + 1] - starts[s]
                d[s, size, e], v[s, size, e] = range_stages(data, float(size), e - 1, n, count)


@helper
def cost(linear, table, s, e, b):
    """Return the cost of block (e, b), which consists of the b tasks up to task e, in layer s of a
    table of block costs.
    """
    return b * table[s, RATE, e] + table[s, FIXED, e] if linear else table[s, b, e]


@inlined
def placed(state, p, M, places):
    """Return the state that results when a block is assigned to position p, or -1 if the position
    is not available.
    """
    if p < M:
        return -1 if state >> p & 1 else state + (1 << p)
    if state >> M == places.pool:
        return state if places.more else -1
    return state + (1 << M)


@kernel(
    "void(Costs, i8, f8[:, ::1], f8[:, :, ::1], f8[:, ::1])",
    steps=lambda costs, front, pi, table, value: len(pi) * table.size,
)
def compose(costs, front, pi, table, value):
    """Compute block costs by position from the weights pi, and write them to `table`.

    The costs in the pool come after the costs at the special positions. `value` is initialised for
    `shortest_paths`.
    """
    _, d, v, width = costs
    value[:] = INFINITY
    value[len(value) - 1, len(width) - 1] = 0.0
    S, M = pi.shape
    table[:] = 0.0
    for s in range(S):
        before = 0.0  # weight of the positions before p
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


@kernel("void(Costs, i8[::1], i8, Places, f8[:, :, ::1], f8[:, ::1], i8[::1])")
def shortest_paths(costs, last, least, places, table, value, states):
    """Compute value[state, i], the minimum cost of all tasks after prefix i if the positions in
    `state` are already occupied.

    The cost is O(K B 2^M M pool). The states in `states` are processed in order. Each of them
    depends only on states with one more occupied position, which must already be complete. The
    innermost loop runs over independent prefixes.

    `last[b]` is the last end at which a block of b tasks fits in memory. Blocks contain at least
    `least` tasks, which is 0 or 1. `follow` reconstructs the path from the values.
    """
    linear, width = costs.linear, costs.width
    K, M = len(width) - 1, len(table) - 1
    for state in states:
        here = value[state]
        for p in range(M + 1):
            after = placed(state, p, M, places)
            if after <= state:
                continue
            there = value[after]
            for b in range(least, len(last)):
                count = last[b] - b + 1
                into = here
                out = there[b:]
                if linear:
                    fixed = table[p, FIXED, b:]
                    rate = table[p, RATE, b:]
                    for k in range(count):
                        x = out[k] + (b * rate[k] + fixed[k])
                        into[k] = x if x < into[k] else into[k]
                else:
                    costs = table[p, b, b:]
                    for k in range(count):
                        x = out[k] + costs[k]
                        into[k] = x if x < into[k] else into[k]
        if placed(state, M, M, places) == state:
            for i in range(K - 1, -1, -1):
                for e in range(i + 1, K + 1):
                    if e - i > width[e]:
                        break
                    x = here[e] + cost(linear, table, M, e, e - i)
                    here[i] = x if x < here[i] else here[i]


@helper
def follow(costs, least, places, table, value, i, state, path, count):
    """Reconstruct the shortest path from prefix i and a state, and append its blocks to the first
    `count` blocks of `path`. Return the total number of blocks.
    """
    K, M = len(costs.width) - 1, len(table) - 1
    while i < K or state < len(value) - 1:
        best = INFINITY
        after = state
        for e in range(i + least, K + 1):
            b = e - i
            if b > costs.width[e]:
                break
            for p in range(M + 1):
                there = placed(state, p, M, places)
                if there < 0 or (there == state and b == 0):
                    continue
                x = cost(costs.linear, table, p, e, b) + value[there, e]
                if x < best:
                    best = x
                    after = there
                    path[END, count], path[SIZE, count], path[POSITION, count] = e, b, p
        i = path[END, count]
        state = after
        count += 1
    return count


@helper
def critical_sums(costs, front, count, path, phi):
    """Compute phi[s, q], the sum Phi_q of stage times in scenario s when the block at position q is
    critical, for the blocks of a path and every special position q.
    """
    linear, d, v, _ = costs
    S, M = phi.shape
    for s in range(S):
        drafted = verified = 0.0
        for k in range(count):
            verified += cost(linear, v, s, path[END, k], path[SIZE, k])
        for q in range(M):
            vq = 0.0
            for k in range(count):
                at = path[POSITION, k]
                if at == q or (
                    at == M and q == front
                ):  # the pool comes before the first special position after it
                    drafted += cost(linear, d, s, path[END, k], path[SIZE, k])
                    y = cost(linear, v, s, path[END, k], path[SIZE, k])
                    if at == q:
                        vq += y
                    else:
                        verified -= y
            phi[s, q] = drafted + verified
            verified -= vq


@kernel("f8(Costs, i8, Places, f8[:, :, ::1], f8[:, ::1], i8[:, ::1], i8[::1], f8[:, ::1])")
def lagrangian(costs, least, places, table, value, path, blocks, phi):
    """Return the Lagrangian bound on all plans that begin with the blocks in `path`, or +inf if
    there are no such plans.

    The bound uses `table` (costs by position, for given weights pi) and `value`. The arguments
    `path` (in sorted order), `blocks` (the number of blocks) and `phi` are modified in place.
    Initially, `path` and `blocks` describe the beginning of the plans. On return, they describe a
    complete path, and `phi` contains the gradient Phi_q[s], with shape (S, M).
    """
    i = state = 0
    spent = 0.0
    for k in range(blocks[0]):
        i, p = path[END, k], path[POSITION, k]
        spent += cost(costs.linear, table, p, i, path[SIZE, k])
        state = placed(state, p, len(table) - 1, places)
    if value[state, i] < INFINITY:
        blocks[0] = follow(costs, least, places, table, value, i, state, path, blocks[0])
        critical_sums(costs, places.front, blocks[0], path, phi)
    return spent + value[state, i]


@kernel("void(i8, Costs, Places, f8[:, :, :, ::1], f8[:, :, ::1], f8, Paths)")
def enumerate_paths(nodes_allowed, costs, places, tables, values, upper, paths):
    """Continue a depth-first search over all partitions of the tasks into blocks and all
    assignments of blocks to positions.

    The search extends only partial plans whose bounds are below `upper`. The bounds are those of
    `lagrangian` at J weights, computed from `tables` and `values`. A complete path is written to
    `paths.leaves` if sum_s max_q Phi_q[s], over the special positions q, is below `upper`. The
    search has finished when its level is below the minimum level. The kernel also returns when
    `paths.leaves` is full or after `nodes_allowed` nodes.
    """
    linear, width = costs.linear, costs.width
    stack, spent, closed, state, leaves, blocks, phi = paths
    least = state[2]
    K = len(width) - 1
    S, M = phi.shape
    found = nodes = 0
    level = state[0]
    while level >= least and found < len(leaves) and nodes < nodes_allowed:
        i, here, move = stack[level, PREFIX], stack[level, STATE], stack[level, MOVE]
        b, p = move // (M + 1) + 1, move % (M + 1)
        e = i + b
        if e > K or b > width[e]:
            level -= 1
            continue
        stack[level, MOVE] = move + 1
        after = placed(here, p, M, places)
        if after < 0:
            continue
        j = 0
        while j < len(tables):
            spent[level + 1, j] = spent[level, j] + cost(linear, tables[j], p, e, b)
            if not spent[level + 1, j] + values[j, after, e] < upper:
                break
            j += 1
        if j < len(tables):
            closed[j] += 1
            continue
        nodes += 1
        stack[level, PLACED] = p
        level += 1
        stack[level, PREFIX], stack[level, STATE], stack[level, MOVE] = e, after, 0
        if e < K:
            continue
        path = leaves[found]
        for t in range(level):
            path[END, t], path[SIZE, t] = (
                stack[t + 1, PREFIX],
                stack[t + 1, PREFIX] - stack[t, PREFIX],
            )
            path[POSITION, t] = stack[t, PLACED]
        critical_sums(costs, places.front, level, path, phi)
        total = 0.0
        for s in range(S):
            total += phi[s].max()
        if total < upper:
            blocks[found] = level
            found += 1
        level -= 1
    state[0], state[1], state[3] = level, nodes, found


@kernel("void(Costs, f8[::1], f8[:, :, ::1], f8[::1])")
def ends_bound(costs, first_weight, value, bounds):
    """Raise the lower bounds on the inference time T_inf for each number M = 1..cap of batches,
    using weights on the first and the last position only.

    The array `bounds` is modified in place, and bounds[cap] also covers all larger numbers of
    batches. first_weight[s] applies to "first draft + all verify", and the remaining weight applies
    to "all draft + last verify". All bounds result from one shortest path over (prefix, first and
    last taken, blocks so far), with `value` of shape (K + 1, 4, cap + 1). Numbers of blocks above
    cap are treated as cap. Blocks contain at least one task.
    """
    linear, d, v, width = costs
    K = len(width) - 1
    cap = len(bounds) - 1
    value[:] = INFINITY
    value[0, 0, 0] = 0.0
    for e in range(K + 1):
        for b in range(1, width[e] + 1):
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
