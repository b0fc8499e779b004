"""Serving latency (paper 1): stage times, Algorithm 1, additive partitions and exhaustive enumeration.

Letters: K tasks sorted by input length, l draft tokens per step, L = E[tokens per step], N decoding steps,
b batch size, I padded input. A model is ``work = (per_token, per_token_pair, per_logit)``: m new tokens over a
total length t cost F = per_token m + per_token_pair m t + per_logit logits. A runtime is ``pieces``, shape (P, 3):
rows (c1, c2, upto) of its upper envelope, c1 increasing; a row holds while b F <= upto.
``memory = (kv_d, free_d, kv_v, free_v)``: b tasks fit if b kv (I + O) <= free for both models.

Functions of the step n are kept as segments over n = 2..N (the prefill step n = 1 is apart): from ``start`` on the
value grows by ``slope`` per step. Stage times are such functions: affine for one piece, convex piecewise linear
for several; so are completion times, and sums over n cost nothing that depends on N.
"""

import numpy as np
from numba import njit

INFINITY = np.inf
PIPELINED, SEQUENTIAL, AUTOREGRESSIVE = 0, 1, 2


# ---------------------------------------------------------------------------- stage times


@njit(cache=True)
def pass_seconds(pieces, work):
    """Return the runtime of one forward pass of b F = work operations."""
    k = 0
    while work > pieces[k, 2]:
        k += 1
    return pieces[k, 0] * work + pieces[k, 1]


@njit(cache=True)
def draft_work(work, b, padded, L, i, n):
    """Return b F of draft pass i >= 1 at step n (Eq. 13)."""
    if n == 1 and i == 1:
        return b * (work[0] * padded + work[1] * padded * padded + work[2])
    total = padded + (n - 1) * L + i - 1
    return b * (work[0] + work[1] * total + work[2])


@njit(cache=True)
def verify_work(work, b, padded, l, L, n):
    """Return b F of the verify pass at step n (Eq. 14)."""
    if n == 1:
        m = padded + l
        return b * (work[0] * m + work[1] * m * m + work[2] * (1 + l))
    return b * ((1 + l) * (work[0] + work[1] * (padded + (n - 1) * L + l)) + work[2] * (1 + l))


@njit(cache=True)
def draft_seconds(work, pieces, b, padded, l, L, n):
    """Return T^d at step n (Eq. 19)."""
    total = 0.0
    if len(pieces) == 1 and n > 1:
        mean = draft_work(work, b, padded, L, 0.5 * (1 + l), n)  # the mean of passes 1..l: work is affine in i
        return l * (pieces[0, 0] * mean + pieces[0, 1])
    for i in range(1, l + 1):
        total += pass_seconds(pieces, draft_work(work, b, padded, L, i, n))
    return total


@njit(cache=True)
def verify_seconds(work, pieces, b, padded, l, L, n):
    """Return T^v at step n (Eq. 18)."""
    return pass_seconds(pieces, verify_work(work, b, padded, l, L, n))


@njit(cache=True)
def sum_pass(pieces, first, step, count):
    """Return the sum over k = 0..count-1 of the runtime at work first + k step."""
    total = 0.0
    k = 0
    piece = 0
    while k < count:
        while first + k * step > pieces[piece, 2]:
            piece += 1
        last = count - 1
        if step > 0.0 and pieces[piece, 2] < first + last * step:
            last = min(last, max(k, int(np.floor((pieces[piece, 2] - first) / step))))
        m = last - k + 1
        total += m * (pieces[piece, 0] * (first + 0.5 * (k + last) * step) + pieces[piece, 1])
        k = last + 1
    return total


@njit(cache=True)
def draft_sum(work, pieces, b, padded, l, L, N):
    """Return the sum of T^d over n = 2..N."""
    if N < 2:
        return 0.0
    step = b * work[1] * L
    if len(pieces) == 1:
        return l * sum_pass(pieces, draft_work(work, b, padded, L, 0.5 * (1 + l), 2), step, N - 1)
    total = 0.0
    for i in range(1, l + 1):
        total += sum_pass(pieces, draft_work(work, b, padded, L, i, 2), step, N - 1)
    return total


@njit(cache=True)
def verify_sum(work, pieces, b, padded, l, L, N):
    """Return the sum of T^v over n = 2..N."""
    if N < 2:
        return 0.0
    return sum_pass(pieces, verify_work(work, b, padded, l, L, 2), b * (1 + l) * work[1] * L, N - 1)


@njit(cache=True)
def fits(memory, b, padded, outputs):
    """Tell whether a batch fits both models' memory (Eq. 9-10)."""
    tokens = padded + outputs
    return b * memory[0] * tokens <= memory[1] and b * memory[2] * tokens <= memory[3]


# ---------------------------------------------------------------------------- segments over n = 2..N


@njit(cache=True)
def stage_segments(pieces, first, step, passes, gap, N, starts, values, slopes):
    """Write the segments of a sum of passes with work first + g gap + (n - 2) step, g < passes; return how many.

    Modified in place: starts, values, slopes (at least 1 + passes (P - 1) long).
    """
    if len(pieces) == 1:
        mean = first + 0.5 * (passes - 1) * gap
        starts[0] = 2
        values[0] = passes * (pieces[0, 0] * mean + pieces[0, 1])
        slopes[0] = passes * pieces[0, 0] * step
        return 1
    count = 0
    n = 2
    while n <= N:
        value = 0.0
        slope = 0.0
        last = N
        for g in range(passes):
            work = first + g * gap + (n - 2) * step
            k = 0
            while work > pieces[k, 2]:
                k += 1
            value += pieces[k, 0] * work + pieces[k, 1]
            slope += pieces[k, 0] * step
            if step > 0.0 and pieces[k, 2] < first + g * gap + (N - 2) * step:
                last = min(last, max(n, 2 + int(np.floor((pieces[k, 2] - first - g * gap) / step))))
        starts[count] = n
        values[count] = value
        slopes[count] = slope
        count += 1
        n = last + 1
    return count


@njit(cache=True)
def sum_of_max(a, sa, c, sc, m):
    """Return the sum over k = 0..m-1 of max(a + sa k, c + sc k)."""
    end_a = a + sa * (m - 1)
    end_c = c + sc * (m - 1)
    if a >= c and end_a >= end_c:
        return 0.5 * m * (a + end_a)
    if c >= a and end_c >= end_a:
        return 0.5 * m * (c + end_c)
    k = int(np.floor((c - a) / (sa - sc)))  # the larger at 0 rules up to k
    k = min(max(k, 0), m - 2)
    low = a if a > c else c
    low_slope = sa if a > c else sc
    high = c if a > c else a
    high_slope = sc if a > c else sa
    head = (k + 1) * (low + 0.5 * low_slope * k)
    tail = (m - 1 - k) * (high + 0.5 * high_slope * (k + m))
    return head + tail


@njit(cache=True)
def sum_segments(starts, values, slopes, count, N):
    """Return the sum over n = 2..N of a function in segments."""
    total = 0.0
    for k in range(count):
        m = (starts[k + 1] if k + 1 < count else N + 1) - starts[k]
        total += m * (values[k] + 0.5 * slopes[k] * (m - 1))
    return total


# ---------------------------------------------------------------------------- Algorithm 1


@njit(cache=True)
def _push(start, value, slope, first, at, n, v, s):
    """Add a segment at `at`, unless it only continues the one before; return the new end."""
    if at > first:
        k = at - 1
        expected = value[k] + slope[k] * (n - start[k])
        if abs(s - slope[k]) <= 1e-15 * abs(s) and abs(v - expected) <= 1e-15 * abs(v):
            return at
    start[at], value[at], slope[at] = n, v, s
    return at + 1


@njit(cache=True)
def _sum_max(label, start, value, slope, nd, ds, dv, dl, N):
    """Return the sum over n = 2..N of max(Y0 + T^d, Y1) for a label and a new batch's draft times."""
    x, x_end = label[0], label[0] + label[1]
    y, y_end = label[2], label[2] + label[3]
    z = 0
    n = 2
    total = 0.0
    while n <= N:
        end = N
        if x + 1 < x_end:
            end = min(end, start[x + 1] - 1)
        if y + 1 < y_end:
            end = min(end, start[y + 1] - 1)
        if z + 1 < nd:
            end = min(end, ds[z + 1] - 1)
        a = value[x] + slope[x] * (n - start[x]) + dv[z] + dl[z] * (n - ds[z])
        c = value[y] + slope[y] * (n - start[y])
        total += sum_of_max(a, slope[x] + dl[z], c, slope[y], end - n + 1)
        n = end + 1
        if x + 1 < x_end and start[x + 1] == n:
            x += 1
        if y + 1 < y_end and start[y + 1] == n:
            y += 1
        if z + 1 < nd and ds[z + 1] == n:
            z += 1
    return total


@njit(cache=True)
def _append(ranges, i, j, start, value, slope, used, nd, ds, dv, dl, nv, vs, vv, vl, N):
    """Store the label of prefix i (Eq. 31-32) behind the pool, from the label of prefix j and a batch's stage times."""
    at = used[0]
    ranges[i, 0] = at
    x, x_end = ranges[j, 0], ranges[j, 0] + ranges[j, 1]
    z = 0
    n = 2
    while n <= N:  # Y[i,n,0] = Y[j,n,0] + T^d
        at = _push(start, value, slope, ranges[i, 0], at, n,
                   value[x] + slope[x] * (n - start[x]) + dv[z] + dl[z] * (n - ds[z]), slope[x] + dl[z])  # fmt: skip
        n = N + 1
        if x + 1 < x_end:
            n = min(n, start[x + 1])
        if z + 1 < nd:
            n = min(n, ds[z + 1])
        if x + 1 < x_end and start[x + 1] == n:
            x += 1
        if z + 1 < nd and ds[z + 1] == n:
            z += 1
    ranges[i, 1] = at - ranges[i, 0]
    ranges[i, 2] = at
    x, x_end = ranges[i, 0], at
    y, y_end = ranges[j, 2], ranges[j, 2] + ranges[j, 3]
    z = 0
    n = 2
    while n <= N:  # Y[i,n,1] = max(Y[i,n,0], Y[j,n,1]) + T^v
        end = N
        if x + 1 < x_end:
            end = min(end, start[x + 1] - 1)
        if y + 1 < y_end:
            end = min(end, start[y + 1] - 1)
        if z + 1 < nv:
            end = min(end, vs[z + 1] - 1)
        a = value[x] + slope[x] * (n - start[x])
        c = value[y] + slope[y] * (n - start[y])
        v = vv[z] + vl[z] * (n - vs[z])
        end_a = a + slope[x] * (end - n)
        end_c = c + slope[y] * (end - n)
        if a >= c:
            at = _push(start, value, slope, ranges[i, 2], at, n, a + v, slope[x] + vl[z])
        else:
            at = _push(start, value, slope, ranges[i, 2], at, n, c + v, slope[y] + vl[z])
        if (a >= c) != (end_a >= end_c) and end > n:
            k = int(np.floor((c - a) / (slope[x] - slope[y])))
            k = min(max(k, 0), end - n - 1)
            if a >= c:
                at = _push(start, value, slope, ranges[i, 2], at, n + k + 1,
                           c + slope[y] * (k + 1) + v + vl[z] * (k + 1), slope[y] + vl[z])  # fmt: skip
            else:
                at = _push(start, value, slope, ranges[i, 2], at, n + k + 1,
                           a + slope[x] * (k + 1) + v + vl[z] * (k + 1), slope[x] + vl[z])  # fmt: skip
        n = end + 1
        if x + 1 < x_end and start[x + 1] == n:
            x += 1
        if y + 1 < y_end and start[y + 1] == n:
            y += 1
        if z + 1 < nv and vs[z + 1] == n:
            z += 1
    ranges[i, 3] = at - ranges[i, 2]
    used[0] = at


@njit(
    "i8(f8[::1], i8, i8, i8, f8, i8, f8, f8[::1], f8[:, ::1], f8[::1], f8[:, ::1], f8[::1],"
    "i8[::1], f8[::1], f8[::1], f8[:, ::1], i8[:, ::1], i8[::1], f8[::1], f8[::1], i8[::1])",
    cache=True,
)
def algorithm_1_rows(
    inputs, row, stop, l, L, N, outputs, draft, draft_pieces, verify, verify_pieces, memory,
    boundary, best, drafted, prefill, pool_range, pool_start, pool_value, pool_slope, pool_used,
):  # fmt: skip
    """Run rows i = row..stop-1 of Algorithm 1 (paper 1) and return the first row not run: the pool may be full.

    A boundary j is looked at closely only if sum_n T^v + max(sum_n Y[j-1,n,1], sum_n (Y[j-1,n,0] + T^d)), which costs
    a few operations, is not above the total of the boundary one row before, extended by a task.

    Modified in place: boundary S[i] (the start j of the last batch), best Y[i,0,0], drafted sum_n Y[i,n,0], prefill
    Y[i,1,:] and the pool with the segments of Y[i,n,0] and Y[i,n,1] for n >= 2: rows (first, count) of both in
    pool_range[i].
    """
    passes = l * (len(draft_pieces) - 1) + 1
    ds, dv, dl = np.empty(passes, np.int64), np.empty(passes), np.empty(passes)
    vs, vv, vl = np.empty(len(verify_pieces), np.int64), np.empty(len(verify_pieces)), np.empty(len(verify_pieces))
    draft_step = draft[1] * L
    linear = len(draft_pieces) == 1 and len(verify_pieces) == 1
    for i in range(row, stop):
        padded = inputs[i - 1]
        best[i] = INFINITY
        boundary[i] = 0
        # work of a batch of one; with one-piece runtimes a batch of b costs the overheads and b times that
        one_d = draft_seconds(draft, draft_pieces, 1.0, padded, l, L, 1)
        one_d += draft_sum(draft, draft_pieces, 1.0, padded, l, L, N)
        one_v = verify_seconds(verify, verify_pieces, 1.0, padded, l, L, 1)
        one_v += verify_sum(verify, verify_pieces, 1.0, padded, l, L, N)
        fixed_d, fixed_v = N * l * draft_pieces[0, 1], N * verify_pieces[0, 1]
        likely = max(1, boundary[i - 1])
        enough = INFINITY
        for turn in range(-1, i):
            j = likely if turn < 0 else turn + 1
            if best[j - 1] == INFINITY:
                continue
            b = float(i - j + 1)
            if not fits(memory, b, padded, outputs):
                continue
            if turn >= 0:
                if linear:
                    verified = fixed_v + b * (one_v - fixed_v)
                    waited = drafted[j - 1] + fixed_d + b * (one_d - fixed_d)
                else:
                    verified = verify_seconds(verify, verify_pieces, b, padded, l, L, 1)
                    verified += verify_sum(verify, verify_pieces, b, padded, l, L, N)
                    waited = drafted[j - 1]
                if verified + max(best[j - 1], waited) > enough:
                    continue
            d1 = draft_seconds(draft, draft_pieces, b, padded, l, L, 1)
            v1 = verify_seconds(verify, verify_pieces, b, padded, l, L, 1)
            total = max(prefill[j - 1, 0] + d1, prefill[j - 1, 1]) + v1
            if N > 1:
                nd = stage_segments(
                    draft_pieces, draft_work(draft, b, padded, L, 1, 2), b * draft_step, l, b * draft[1], N, ds, dv, dl
                )
                total += verify_sum(verify, verify_pieces, b, padded, l, L, N)
                total += _sum_max(pool_range[j - 1], pool_start, pool_value, pool_slope, nd, ds, dv, dl, N)
            if turn < 0:
                enough = total * (1.0 + 1e-9)
            elif total <= best[i] * (1.0 + 1e-12):
                best[i] = total
                boundary[i] = j
        j = boundary[i]
        if j == 0:
            continue
        b = float(i - j + 1)
        d1 = draft_seconds(draft, draft_pieces, b, padded, l, L, 1)
        drafted[i] = drafted[j - 1] + d1 + draft_sum(draft, draft_pieces, b, padded, l, L, N)
        prefill[i, 0] = prefill[j - 1, 0] + d1
        prefill[i, 1] = max(prefill[i, 0], prefill[j - 1, 1]) + verify_seconds(
            verify, verify_pieces, b, padded, l, L, 1
        )
        if N > 1:
            nd = stage_segments(
                draft_pieces, draft_work(draft, b, padded, L, 1, 2), b * draft_step, l, b * draft[1], N, ds, dv, dl
            )
            nv = stage_segments(
                verify_pieces, verify_work(verify, b, padded, l, L, 2), b * (1 + l) * verify[1] * L, 1, 0.0, N,
                vs, vv, vl,
            )  # fmt: skip
            needed = 4 * (pool_range[j - 1, 1] + pool_range[j - 1, 3] + nd + nv + 2)
            if pool_used[0] + needed > len(pool_start):
                best[i] = INFINITY
                return i
            _append(
                pool_range, i, j - 1, pool_start, pool_value, pool_slope, pool_used, nd, ds, dv, dl, nv, vs, vv, vl, N
            )
    return stop


# ---------------------------------------------------------------------------- additive partitions


@njit(cache=True)
def _batch_seconds(b, padded, l, L, N, draft, draft_pieces, verify, verify_pieces, draft_weight, verify_weight):
    """Return the weighted stage times of a batch over all steps."""
    total = 0.0
    if draft_weight > 0.0 and l > 0:
        total += draft_weight * draft_seconds(draft, draft_pieces, b, padded, l, L, 1)
        total += draft_weight * draft_sum(draft, draft_pieces, b, padded, l, L, N)
    if verify_weight > 0.0:
        total += verify_weight * verify_seconds(verify, verify_pieces, b, padded, l, L, 1)
        total += verify_weight * verify_sum(verify, verify_pieces, b, padded, l, L, N)
    return total


@njit(
    "void(f8[::1], i8, i8, i8, f8, i8, f8, f8[::1], f8[:, ::1], f8[::1], f8[:, ::1], f8[::1],f8, f8, f8[::1], i8[::1])",
    cache=True,
)
def additive_rows(
    inputs, row, stop, l, L, N, outputs, draft, draft_pieces, verify, verify_pieces, memory,
    draft_weight, verify_weight, best, boundary,
):  # fmt: skip
    """Run rows of the shortest path over contiguous batches whose costs add up over batches and steps.

    A batch costs draft_weight sum_n T^d + verify_weight sum_n T^v. Modified in place: best[i] (+inf where no
    batches fit) and boundary[i], the start j >= 1 of the last batch of prefix i.
    """
    linear = len(draft_pieces) == 1 and len(verify_pieces) == 1
    for i in range(row, stop):
        padded = inputs[i - 1]
        best[i] = INFINITY
        boundary[i] = 0
        one = _batch_seconds(
            1.0, padded, l, L, N, draft, draft_pieces, verify, verify_pieces, draft_weight, verify_weight
        )
        fixed = N * (draft_weight * l * draft_pieces[0, 1] + verify_weight * verify_pieces[0, 1])
        for j in range(i, 0, -1):
            b = float(i - j + 1)
            if not fits(memory, b, padded, outputs):
                break
            if linear:
                cost = fixed + b * (one - fixed)
            else:
                cost = _batch_seconds(
                    b, padded, l, L, N, draft, draft_pieces, verify, verify_pieces, draft_weight, verify_weight
                )
            if best[j - 1] + cost < best[i]:
                best[i] = best[j - 1] + cost
                boundary[i] = j


# ---------------------------------------------------------------------------- one plan


@njit(
    "f8(i8, f8[::1], f8[::1], i8[::1], i8, f8, f8[::1], f8[:, ::1], f8[::1], f8[:, ::1])",
    cache=True,
)
def plan_seconds(mechanism, sizes, padded, steps, l, L, draft, draft_pieces, verify, verify_pieces):
    """Return T_inf (Eq. 22) of batches in pipeline order: sizes, padded inputs and decoding steps of each."""
    total = 0.0
    last_step = 0
    for m in range(len(sizes)):
        last_step = max(last_step, steps[m])
    for n in range(1, last_step + 1):
        drafted = 0.0
        done = 0.0
        for m in range(len(sizes)):
            if steps[m] < n:
                continue
            v = verify_seconds(verify, verify_pieces, sizes[m], padded[m], l, L, n)
            d = 0.0
            if mechanism != AUTOREGRESSIVE:
                d = draft_seconds(draft, draft_pieces, sizes[m], padded[m], l, L, n)
            if mechanism == PIPELINED:
                drafted += d
                done = max(drafted, done) + v
            else:
                done += d + v
        total += done
    return total


# ---------------------------------------------------------------------------- brute force


@njit(
    "void(i8, f8[::1], i8[::1], f8[::1], i8, f8, f8[::1], f8[:, ::1], f8[::1], f8[:, ::1], f8[::1],"
    "f8[:, ::1], f8[:, ::1], b1[::1])",
    cache=True,
)
def subset_stages(
    mechanism, inputs, steps, outputs, l, L, draft, draft_pieces, verify, verify_pieces, memory,
    draft_table, verify_table, allowed,
):  # fmt: skip
    """Fill, for every subset of tasks (a bit mask), its stage times at every step and whether it fits.

    Modified in place: draft_table, verify_table of shape (2^K, N), allowed of shape (2^K,).
    """
    K = len(inputs)
    for mask in range(1, 1 << K):
        b = 0.0
        padded = 0.0
        longest = 0.0
        last = 0
        for k in range(K):
            if mask >> k & 1:
                b += 1.0
                padded = max(padded, inputs[k])
                longest = max(longest, outputs[k])
                last = max(last, steps[k])
        allowed[mask] = fits(memory, b, padded, longest)
        for n in range(1, draft_table.shape[1] + 1):
            if n > last:
                draft_table[mask, n - 1] = 0.0
                verify_table[mask, n - 1] = 0.0
                continue
            verify_table[mask, n - 1] = verify_seconds(verify, verify_pieces, b, padded, l, L, n)
            if mechanism != AUTOREGRESSIVE:
                draft_table[mask, n - 1] = draft_seconds(draft, draft_pieces, b, padded, l, L, n)


@njit("f8(i8, i8, i8, f8[:, ::1], f8[:, ::1], b1[::1], f8, i8[::1])", cache=True)
def enumerate_after(mechanism, K, first, draft_table, verify_table, allowed, best, order):
    """Try every ordered partition of the tasks whose first batch is the mask `first`; return the least T_inf.

    Modified in place: order, the masks of the best partition found (0 behind the last), if below `best`.
    """
    N = draft_table.shape[1]
    full = (1 << K) - 1
    drafted = np.zeros((K + 1, N))
    done = np.zeros((K + 1, N))
    rest = np.zeros(K + 1, np.int64)  # tasks left before level t
    batch = np.zeros(K + 1, np.int64)  # batch tried at level t
    if not allowed[first]:
        return best
    t = 0
    rest[0] = full
    batch[0] = first
    while True:
        s = batch[t]
        total = 0.0
        for n in range(N):
            d = draft_table[s, n]
            v = verify_table[s, n]
            if mechanism == PIPELINED:
                drafted[t + 1, n] = drafted[t, n] + d
                done[t + 1, n] = max(drafted[t + 1, n], done[t, n]) + v
            else:
                done[t + 1, n] = done[t, n] + d + v
            total += done[t + 1, n]
        left = rest[t] & ~s
        if left == 0:
            if total < best:
                best = total
                order[:] = 0
                for level in range(t + 1):
                    order[level] = batch[level]
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


# ---------------------------------------------------------------------------- conservative pipelined plans


@njit(cache=True)
def sum_of_envelope(value, slope, count):
    """Return the sum over k = 0..count-1 of the maximum of the lines value[q] + slope[q] k."""
    total = 0.0
    k = 0
    while k < count:
        top = 0
        for q in range(1, len(value)):
            x = value[q] + slope[q] * k
            y = value[top] + slope[top] * k
            if x > y or (x == y and slope[q] > slope[top]):
                top = q
        last = count - 1
        height = value[top] + slope[top] * k
        for q in range(len(value)):
            if slope[q] > slope[top]:
                cross = (height - value[q] - slope[q] * k) / (slope[q] - slope[top])
                if cross < last - k:
                    last = k + max(0, int(np.floor(cross)))
        m = last - k + 1
        total += m * (height + 0.5 * slope[top] * (m - 1))
        k = last + 1
    return total


@njit(cache=True)
def sequence_seconds(inputs, ends, sizes, l, L, N, draft, draft_pieces, verify, verify_pieces):
    """Return T_inf of blocks in pipeline order: block m holds the sizes[m] tasks up to sorted position ends[m]."""
    M = len(ends)
    drafted = 0.0
    done = 0.0
    for m in range(M):
        b, padded = float(sizes[m]), inputs[ends[m] - 1]
        drafted += draft_seconds(draft, draft_pieces, b, padded, l, L, 1)
        done = max(drafted, done) + verify_seconds(verify, verify_pieces, b, padded, l, L, 1)
    if N < 2:
        return done
    if len(draft_pieces) == 1 and len(verify_pieces) == 1:
        value, slope = np.zeros(M), np.zeros(M)
        drafted = drafted_slope = verified = verified_slope = 0.0
        for m in range(M):
            b, padded = float(sizes[m]), inputs[ends[m] - 1]
            drafted += draft_seconds(draft, draft_pieces, b, padded, l, L, 2)
            drafted_slope += l * draft_pieces[0, 0] * b * draft[1] * L
            value[m] = drafted - verified  # verification before block m is not waited for
            slope[m] = drafted_slope - verified_slope
            verified += verify_seconds(verify, verify_pieces, b, padded, l, L, 2)
            verified_slope += verify_pieces[0, 0] * b * (1 + l) * verify[1] * L
        return done + sum_of_envelope(value, slope, N - 1) + (N - 1) * (verified + 0.5 * verified_slope * (N - 2))
    passes = l * (len(draft_pieces) - 1) + 1
    ds, dv, dl = np.empty(passes, np.int64), np.empty(passes), np.empty(passes)
    vs, vv, vl = np.empty(len(verify_pieces), np.int64), np.empty(len(verify_pieces)), np.empty(len(verify_pieces))
    half = 4 * M * (passes + len(verify_pieces) + 2) + 8
    start, value, slope = np.zeros(2 * half, np.int64), np.zeros(2 * half), np.zeros(2 * half)
    start[0:2] = 2
    ranges = np.zeros((2, 4), np.int64)
    ranges[0, 1], ranges[0, 2], ranges[0, 3] = 1, 1, 1
    used = np.zeros(1, np.int64)
    now = 0
    for m in range(M):
        b, padded = float(sizes[m]), inputs[ends[m] - 1]
        work = draft_work(draft, b, padded, L, 1, 2)
        nd = stage_segments(draft_pieces, work, b * draft[1] * L, l, b * draft[1], N, ds, dv, dl)
        work = verify_work(verify, b, padded, l, L, 2)
        nv = stage_segments(verify_pieces, work, b * (1 + l) * verify[1] * L, 1, 0.0, N, vs, vv, vl)
        used[0] = half * (1 - now)
        _append(ranges, 1 - now, now, start, value, slope, used, nd, ds, dv, dl, nv, vs, vv, vl, N)
        now = 1 - now
    at, count = ranges[now, 2], ranges[now, 3]
    return done + sum_segments(start[at:], value[at:], slope[at:], count, N)


@njit(
    "void(f8[::1], i8[:, ::1], i8[:, ::1], i8, i8, i8, f8, i8, f8[::1], f8[:, ::1], f8[::1], f8[:, ::1], f8[::1])",
    cache=True,
)
def sequences_seconds(inputs, ends, sizes, count, M, l, L, N, draft, draft_pieces, verify, verify_pieces, out):
    """Fill out[k] with T_inf of the first `count` sequences of M blocks each."""
    for k in range(count):
        out[k] = sequence_seconds(
            inputs, ends[k, :M], sizes[k, :M], l, L, N, draft, draft_pieces, verify, verify_pieces
        )


@njit(cache=True)
def _block_fits(inputs, memory, outputs, first, end):
    return end > first and fits(memory, float(end - first), inputs[end - 1], outputs)


@njit(
    "f8(f8[::1], f8[::1], f8, i8[::1], i8[::1], i8[::1], i8, i8, f8, i8, f8[::1], f8[:, ::1], f8[::1], f8[:, ::1], f8,"
    "f8)",
    cache=True,
)
def improve_sequence(
    inputs, memory, outputs, ends, sizes, blocks, tries, l, L, N, draft, draft_pieces, verify, verify_pieces, best,
    heat,
):  # fmt: skip
    """Local search around a sequence of contiguous blocks: shift a cut, swap or move blocks, split, merge.

    Takes `tries` random moves and keeps those that lengthen T_inf by no more than a threshold, which falls from
    `heat` (relative) to zero; returns the least T_inf met. Modified in place: ends, sizes (K long, in pipeline order)
    and blocks (how many), to the best sequence met. Call `seed_moves` before, for the same moves each time.
    """
    K = len(inputs)
    M = blocks[0]
    best_M = M
    best_ends, best_sizes = ends.copy(), sizes.copy()
    current = best
    new_ends, new_sizes = np.empty(K, np.int64), np.empty(K, np.int64)
    for attempt in range(tries):
        count = M
        new_ends[:M] = ends[:M]
        new_sizes[:M] = sizes[:M]
        kind = np.random.randint(0, 10)
        a = np.random.randint(0, M)
        if kind < 6:  # shift the cut behind block a
            if M < 2:
                kind = 8
            else:
                after = -1
                for m in range(M):
                    if ends[m] - sizes[m] == ends[a]:
                        after = m
                if after < 0:
                    continue
                reach = max(1, int(max(sizes[a], sizes[after]) // (1 << np.random.randint(0, 6))))
                shift = np.random.randint(1, reach + 1)
                if np.random.randint(0, 2) == 0:
                    shift = -shift
                new_ends[a] += shift
                new_sizes[a] += shift
                new_sizes[after] -= shift
                if new_sizes[a] < 1 or new_sizes[after] < 1:
                    continue
                if not _block_fits(inputs, memory, outputs, new_ends[a] - new_sizes[a], new_ends[a]):
                    continue
                if not _block_fits(inputs, memory, outputs, new_ends[a], new_ends[after]):
                    continue
        if kind == 6 and M > 1:  # swap two positions
            c = np.random.randint(0, M)
            if c == a:
                continue
            new_ends[a], new_ends[c] = ends[c], ends[a]
            new_sizes[a], new_sizes[c] = sizes[c], sizes[a]
        elif kind == 7 and M > 1:  # move a block to another position
            c = np.random.randint(0, M)
            if c == a:
                continue
            e, b = ends[a], sizes[a]
            if c > a:
                for m in range(a, c):
                    new_ends[m], new_sizes[m] = ends[m + 1], sizes[m + 1]
            else:
                for m in range(a, c, -1):
                    new_ends[m], new_sizes[m] = ends[m - 1], sizes[m - 1]
            new_ends[c], new_sizes[c] = e, b
        elif kind == 8:  # split a block, one part to any position
            if sizes[a] < 2:
                continue
            part = np.random.randint(1, sizes[a])
            c = np.random.randint(0, M + 1)
            new_ends[a] = ends[a] - part
            new_sizes[a] = sizes[a] - part
            for m in range(M, c, -1):
                new_ends[m], new_sizes[m] = new_ends[m - 1], new_sizes[m - 1]
            new_ends[c], new_sizes[c] = ends[a], part
            count = M + 1
        elif kind == 9 and M > 1:  # merge a block with its neighbour in sorted order
            after = -1
            for m in range(M):
                if ends[m] - sizes[m] == ends[a]:
                    after = m
            if after < 0 or not _block_fits(inputs, memory, outputs, ends[a] - sizes[a], ends[after]):
                continue
            keep, drop = (a, after) if np.random.randint(0, 2) == 0 else (after, a)
            new_ends[keep] = ends[after]
            new_sizes[keep] = sizes[a] + sizes[after]
            for m in range(drop, M - 1):
                new_ends[m], new_sizes[m] = new_ends[m + 1], new_sizes[m + 1]
            count = M - 1
        elif kind > 5 and M == 1:
            continue
        seconds = sequence_seconds(
            inputs, new_ends[:count], new_sizes[:count], l, L, N, draft, draft_pieces, verify, verify_pieces
        )
        if seconds <= current * (1.0 + heat * (1.0 - attempt / tries)):
            current = seconds
            M = count
            ends[:M] = new_ends[:M]
            sizes[:M] = new_sizes[:M]
            if current < best:
                best = current
                best_M = M
                best_ends[:M] = ends[:M]
                best_sizes[:M] = sizes[:M]
    blocks[0] = best_M
    ends[:] = best_ends
    sizes[:] = best_sizes
    return best


@njit("void(i8)", cache=True)
def seed_moves(seed):
    """Seed the random moves of the kernels."""
    np.random.seed(seed)


# ---------------------------------------------------------------------------- stage times by scenario


@njit(
    "void(f8[::1], i8, f8, i8, f8[::1], f8[:, ::1], f8[::1], f8[:, ::1], i8[::1], i8[::1],"
    "f8[:, :, ::1], f8[:, :, ::1])",
    cache=True,
)
def scenario_tables(inputs, l, L, N, draft, draft_pieces, verify, verify_pieces, width, starts, d, v):
    """Fill d[s, e, b] and v[s, e, b], the stage times of blocks (e, b) summed over the steps of scenario s.

    Scenario s covers the steps starts[s]..starts[s+1]-1; the first is the prefill step alone. Only blocks of at most
    width[e] tasks are filled.
    """
    S = d.shape[0]
    for e in range(1, len(inputs) + 1):
        padded = inputs[e - 1]
        for size in range(1, width[e] + 1):
            b = float(size)
            d[0, e, size] = draft_seconds(draft, draft_pieces, b, padded, l, L, 1)
            v[0, e, size] = verify_seconds(verify, verify_pieces, b, padded, l, L, 1)
            for s in range(1, S):
                count = starts[s + 1] - starts[s]
                if count < 1:
                    d[s, e, size] = v[s, e, size] = 0.0
                    continue
                step = b * draft[1] * L
                total = 0.0
                if len(draft_pieces) == 1:
                    total = l * sum_pass(
                        draft_pieces, draft_work(draft, b, padded, L, 0.5 * (1 + l), starts[s]), step, count
                    )
                else:
                    for i in range(1, l + 1):
                        total += sum_pass(draft_pieces, draft_work(draft, b, padded, L, i, starts[s]), step, count)
                d[s, e, size] = total
                v[s, e, size] = sum_pass(
                    verify_pieces, verify_work(verify, b, padded, l, L, starts[s]), b * (1 + l) * verify[1] * L, count
                )
