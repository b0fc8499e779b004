"""Exact pipelined batching (paper 1, problem (24)): Lagrangian bounds over pipeline positions, and enumeration.

With the batches in pipeline order m = 1..M, the makespan of a step is a maximum over critical batches (Eq. 20):
C_n = max_q Phi_q(n), Phi_q(n) = sum_{m <= q} T^d_{n,m} + sum_{m >= q} T^v_{n,m}. Steps are gathered into scenarios
s (the prefill step, and ranges of decoding steps); d[s] and v[s] are stage times summed over a scenario's steps.
Any weights pi[s, q] >= 0 with sum_q pi[s, q] = 1 give the lower bound sum_s sum_q pi[s, q] Phi_q[s], which is
additive over batches: a batch in position p costs sum_s (sum_{q >= p} pi[s, q]) d[s] + (sum_{q <= p} pi[s, q]) v[s].
Its least value over contiguous partitions *and* orders is a shortest path over (prefix, occupied positions).

A block is (e, b): the b tasks that end at sorted position e (1-based). Stage times of blocks come either as tables,
shape (S, K + 1, B + 1), or, for one-piece runtimes, as b g[s, e] + h[s] with g of shape (S, K + 1).
Positions 0..M-1 are bits of a mask. With a *middle* pool, M of the positions are special (the first and the last
ones), and further blocks, any number, lie between them at position index M: pi is zero there.
"""

import numpy as np
from numba import njit

INFINITY = np.inf


@njit(cache=True)
def stage(linear, table, g, h, s, e, b):
    """Return a stage time of block (e, b) summed over scenario s."""
    return b * g[s, e] + h[s] if linear else table[s, e, b]


@njit(cache=True)
def position_weights(pi, front, middle, A, B):
    """Fill A[s, p], B[s, p]: the weights of d and v at each position; the middle's, if any, behind the specials'."""
    S, M = pi.shape
    for s in range(S):
        total = 0.0
        for p in range(M):
            B[s, p] = total + pi[s, p]
            A[s, p] = 1.0 - total
            total += pi[s, p]
        if middle:
            head = 0.0
            for p in range(front):
                head += pi[s, p]
            B[s, M] = head
            A[s, M] = 1.0 - head


@njit(cache=True)
def compose(linear, d, dg, dh, v, vg, vh, A, B, table, g, h):
    """Fill the cost of blocks by position: table[p, e, b], or g[p, e] and h[p]."""
    S, P = A.shape
    for p in range(P):
        if linear:
            h[p] = 0.0
            g[p, :] = 0.0
            for s in range(S):
                h[p] += A[s, p] * dh[s] + B[s, p] * vh[s]
                for e in range(g.shape[1]):
                    g[p, e] += A[s, p] * dg[s, e] + B[s, p] * vg[s, e]
        else:
            table[p, :, :] = 0.0
            for s in range(S):
                for e in range(table.shape[1]):
                    for b in range(table.shape[2]):
                        table[p, e, b] += A[s, p] * d[s, e, b] + B[s, p] * v[s, e, b]


@njit(cache=True)
def allowed(limits, p, e, b):
    """Tell whether block (e, b) keeps limits[p] = (least size, largest size, least end, largest end)."""
    return limits[p, 0] <= b <= limits[p, 1] and limits[p, 2] <= e <= limits[p, 3]


@njit(cache=True)
def shortest_path(linear, table, g, h, M, middle, width, limits, value):
    """Fill value[mask, i], the least cost from prefix i, with the positions of mask taken, to the end.

    O(K B 2^M M). One mask after the other, from the fullest down; the innermost loop runs over prefixes that do not
    depend on each other. `follow` finds the choices again.
    """
    K = len(width) - 1
    full = (1 << M) - 1
    largest = 0
    for e in range(1, K + 1):
        largest = max(largest, width[e])
    last = np.zeros(largest + 1, np.int64)  # the last end at which a block of b tasks fits: wide ones fit early only
    for e in range(1, K + 1):
        for b in range(1, width[e] + 1):
            last[b] = e
    value[:, :] = INFINITY
    value[full, K] = 0.0
    for mask in range(full, -1, -1):
        here = value[mask]
        for p in range(M):
            if mask >> p & 1:
                continue
            there = value[mask | 1 << p]
            for b in range(limits[p, 0], min(limits[p, 1], largest) + 1):
                first_end = max(b, limits[p, 2])
                last_end = min(last[b], limits[p, 3])
                count = last_end - first_end + 1
                if count < 1:
                    continue
                into = here[first_end - b : last_end - b + 1]
                out = there[first_end : last_end + 1]
                if linear:
                    fixed = h[p]
                    rate = g[p, first_end : last_end + 1]
                    for k in range(count):
                        x = out[k] + (b * rate[k] + fixed)
                        into[k] = x if x < into[k] else into[k]
                else:
                    for k in range(count):
                        x = out[k] + table[p, first_end + k, b]
                        into[k] = x if x < into[k] else into[k]
        if middle:
            for i in range(K - 1, -1, -1):
                for e in range(i + 1, K + 1):
                    if e - i > width[e]:
                        break
                    x = here[e] + stage(linear, table, g, h, M, e, e - i)
                    here[i] = x if x < here[i] else here[i]


@njit(cache=True)
def follow(linear, table, g, h, M, middle, width, limits, value, ends, sizes, positions):
    """Write the blocks of the shortest path in sorted order; return how many."""
    K = len(width) - 1
    i = 0
    mask = 0
    count = 0
    while i < K:
        best = INFINITY
        for e in range(i + 1, K + 1):
            b = e - i
            if b > width[e]:
                break
            for p in range(M + 1 if middle else M):
                if p < M and (mask >> p & 1 or not allowed(limits, p, e, b)):
                    continue
                x = stage(linear, table, g, h, p, e, b) + value[mask | 1 << p if p < M else mask, e]
                if x < best:
                    best = x
                    ends[count], sizes[count], positions[count] = e, b, p
        i = ends[count]
        if positions[count] < M:
            mask |= 1 << positions[count]
        count += 1
    return count


@njit(cache=True)
def critical_sums(linear, d, dg, dh, v, vg, vh, M, front, count, ends, sizes, positions, phi):
    """Fill phi[s, q] = Phi_q over scenario s for the special positions q of a path."""
    S = phi.shape[0]
    for s in range(S):
        drafted = 0.0
        verified = 0.0
        middle_d = 0.0
        middle_v = 0.0
        for k in range(count):
            if positions[k] == M:
                middle_d += stage(linear, d, dg, dh, s, ends[k], sizes[k])
                middle_v += stage(linear, v, vg, vh, s, ends[k], sizes[k])
        for q in range(M):
            phi[s, q] = 0.0
        verified = middle_v
        for k in range(count):
            if positions[k] < M:
                verified += stage(linear, v, vg, vh, s, ends[k], sizes[k])
        for q in range(M):
            if q == front:
                drafted += middle_d
                verified -= middle_v
            dq = 0.0
            vq = 0.0
            for k in range(count):
                if positions[k] == q:
                    dq = stage(linear, d, dg, dh, s, ends[k], sizes[k])
                    vq = stage(linear, v, vg, vh, s, ends[k], sizes[k])
            drafted += dq
            phi[s, q] = drafted + verified
            verified -= vq


@njit(
    "f8(b1, f8[:, :, ::1], f8[:, ::1], f8[::1], f8[:, :, ::1], f8[:, ::1], f8[::1], i8[::1], i8, b1, i8[:, ::1],"
    "f8[:, ::1], f8[:, :, ::1], f8[:, ::1], f8[::1], f8[:, ::1], i8[:, ::1], i8[::1], f8[:, ::1])",
    cache=True,
)
def lagrangian(
    linear, d, dg, dh, v, vg, vh, width, front, middle, limits, weights, table, g, h, value, path, blocks, phi,
):  # fmt: skip
    """Return the Lagrangian bound at weights pi, its path and its gradient; +inf if no path exists.

    Modified in place: the work arrays (table or g and h: costs by position; value), path (rows: ends,
    sizes, positions, in sorted order), blocks (their number) and phi, the gradient Phi_q[s] of shape (S, M).
    """
    S, M = weights.shape
    P = M + 1 if middle else M
    A, B = np.zeros((S, P)), np.zeros((S, P))
    position_weights(weights, front, middle, A, B)
    compose(linear, d, dg, dh, v, vg, vh, A, B, table, g, h)
    shortest_path(linear, table, g, h, M, middle, width, limits, value)
    blocks[0] = 0
    if value[0, 0] < INFINITY:
        blocks[0] = follow(linear, table, g, h, M, middle, width, limits, value, path[0], path[1], path[2])
        critical_sums(linear, d, dg, dh, v, vg, vh, M, front, blocks[0], path[0], path[1], path[2], phi)
    return value[0, 0]


@njit(
    "i8(b1, f8[:, :, ::1], f8[:, ::1], f8[::1], f8[:, :, ::1], f8[:, ::1], f8[::1], i8[::1], i8,"
    "i8[:, ::1], f8[:, :, ::1], f8[:, ::1], f8[::1], f8[:, ::1], f8, i8,"
    "i8[:, ::1], f8[::1], i8[::1], i8[:, ::1], i8[:, ::1])",
    cache=True,
)
def enumerate_blocks(
    linear, d, dg, dh, v, vg, vh, width, M, limits, table, g, h, value, upper, nodes_allowed,
    stack, spent, state, leaf_ends, leaf_sizes,
):  # fmt: skip
    """Go on with a depth-first search over all ways to cut and place M blocks whose bound stays below `upper`.

    Leaves (by position: ends and sizes) whose scenario bound is below `upper` are written out; their true latency is
    for the caller to compute. Returns how many; the search is over when state[0] < 0. Stops when the leaf arrays are
    full or after `nodes_allowed` nodes.

    Modified in place: stack (rows of prefix, mask, next move, position of the block placed), spent, state
    [level, nodes], leaf_ends, leaf_sizes.
    """
    K = len(width) - 1
    S = len(dh)
    found = 0
    nodes = 0
    level = state[0]
    at_end = np.zeros(M, np.int64)
    at_size = np.zeros(M, np.int64)
    for t in range(level):
        p = stack[t, 3]
        at_end[p] = stack[t + 1, 0]
        at_size[p] = stack[t + 1, 0] - stack[t, 0]
    while level >= 0:
        if found == len(leaf_ends) or nodes >= nodes_allowed:
            break
        i = stack[level, 0]
        mask = stack[level, 1]
        move = stack[level, 2]
        b = move // M + 1
        p = move % M
        e = i + b
        if e > K or b > width[e]:
            level -= 1
            continue
        stack[level, 2] = move + 1
        if mask >> p & 1:
            continue
        if not allowed(limits, p, e, b):
            continue
        cost = spent[level] + stage(linear, table, g, h, p, e, b)
        after = mask | 1 << p
        if not cost + value[after, e] < upper:
            continue
        nodes += 1
        at_end[p] = e
        at_size[p] = b
        if level < M - 1:
            stack[level, 3] = p
            level += 1
            stack[level, 0] = e
            stack[level, 1] = after
            stack[level, 2] = (K - e - 1) * M if level == M - 1 else 0  # the last block takes the rest
            spent[level] = cost
            continue
        total = 0.0
        for s in range(S):
            verified = 0.0
            for q in range(M):
                verified += stage(linear, v, vg, vh, s, at_end[q], at_size[q])
            drafted = 0.0
            worst = 0.0
            for q in range(M):
                drafted += stage(linear, d, dg, dh, s, at_end[q], at_size[q])
                worst = max(worst, drafted + verified)
                verified -= stage(linear, v, vg, vh, s, at_end[q], at_size[q])
            total += worst
        if total < upper:
            leaf_ends[found, :] = at_end
            leaf_sizes[found, :] = at_size
            found += 1
    state[0] = level
    state[1] += nodes
    return found


@njit(
    "void(b1, f8[:, :, ::1], f8[:, ::1], f8[::1], f8[:, :, ::1], f8[:, ::1], f8[::1], i8[::1], f8[::1], f8[::1])",
    cache=True,
)
def ends_bound(linear, d, dg, dh, v, vg, vh, width, first_weight, bounds):
    """Raise bounds[M], M = 1..cap (cap: that many or more), by weights on the first and the last position alone.

    first_weight[s] goes to "first draft + all verify", the rest to "all draft + last verify". One shortest path
    over (prefix, first and last taken, blocks so far); blocks beyond cap count as cap.
    """
    K = len(width) - 1
    S = len(first_weight)
    cap = len(bounds) - 1
    value = np.full((K + 1, 4, cap + 1), INFINITY)
    value[0, 0, 0] = 0.0
    for e in range(1, K + 1):
        for b in range(1, width[e] + 1):
            i = e - b
            drafted = 0.0
            verified = 0.0
            middle = 0.0
            for s in range(S):
                w = first_weight[s]
                x = stage(linear, d, dg, dh, s, e, b)
                y = stage(linear, v, vg, vh, s, e, b)
                middle += (1.0 - w) * x + w * y
                drafted += w * x  # extra cost of the first block
                verified += (1.0 - w) * y  # extra cost of the last block
            for mask in range(4):
                for m in range(cap + 1):
                    x = value[i, mask, m]
                    if x == INFINITY:
                        continue
                    n = min(m + 1, cap)
                    value[e, mask, n] = min(value[e, mask, n], x + middle)
                    if not mask & 1:
                        value[e, mask | 1, n] = min(value[e, mask | 1, n], x + middle + drafted)
                    if not mask & 2:
                        value[e, mask | 2, n] = min(value[e, mask | 2, n], x + middle + verified)
                    if mask == 0:  # the first block is the last one, too
                        value[e, 3, n] = min(value[e, 3, n], x + middle + drafted + verified)
    for m in range(1, cap + 1):
        bounds[m] = max(bounds[m], value[K, 3, m])
