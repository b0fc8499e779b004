"""Algorithm 1 (paper 1): the dynamic program over contiguous batches, its labels kept as functions of the step.

Functions of the step n are segments over n = 2..N (the prefill step n = 1 is apart): rows of an array, columns below.
Stage times are such functions: affine for one piece, convex piecewise linear for several; so are completion times, and
sums over n cost nothing that depends on N.
"""

from specopt.solvers._kernels.kernel import helper, kernel
from specopt.solvers._kernels.serving_latency.stages import (
    DRAFT,
    HEIGHT,
    INFINITY,
    INPUT,
    LENGTH,
    OUTPUT,
    STEPS,
    VERIFY,
    decode_line,
    fits,
    range_stages,
)  # fmt: skip

FROM, VALUE, GROWTH = range(3)  # columns of a segment: its first step, the value there, what is added per step
# columns of a prefix: Y[i,0,0], sum_n Y[i,n,0], Y[i,1,0], Y[i,1,1]
BEST, DRAFTED, DRAFT_READY, VERIFY_READY = range(4)
# where a label's segments lie in the pool: first and number of those of Y[i,n,0], the same of Y[i,n,1]
DRAFT_AT, DRAFT_COUNT, VERIFY_AT, VERIFY_COUNT = range(4)


@helper
def stage_segments(task, setting, runtimes, stage, b, k, N, segments):
    """Write the segments of a stage time; return how many."""
    count = 0
    n = 2
    while n <= N:
        value, slope, m = decode_line(task, setting, runtimes, stage, b, k, n, N - n + 1)
        segments[count, FROM], segments[count, VALUE], segments[count, GROWTH] = n, value, slope
        count += 1
        n += m
    return count


@helper
def at_step(segments, x, n):
    """Return a segment's value at step n."""
    return segments[x, VALUE] + segments[x, GROWTH] * (n - segments[x, FROM])


@helper
def first_after(segments, x, end, n):
    """Return the first step of the segment behind x, at most n; `end` is where the function's segments end."""
    if x + 1 < end and segments[x + 1, FROM] < n:
        return int(segments[x + 1, FROM])
    return n


@helper
def moved_on(segments, x, end, n):
    """Return the segment that holds from step n on: x or the one behind it."""
    return x + 1 if x + 1 < end and segments[x + 1, FROM] == n else x


@helper
def sum_of_max(a, sa, c, sc, m):
    """Return the sum over k = 0..m-1 of max(a + sa k, c + sc k)."""
    end_a = a + sa * (m - 1)
    end_c = c + sc * (m - 1)
    if a >= c and end_a >= end_c:
        return 0.5 * m * (a + end_a)
    if c >= a and end_c >= end_a:
        return 0.5 * m * (c + end_c)
    k = int((c - a) / (sa - sc))  # the larger at 0 rules up to k
    k = min(max(k, 0), m - 2)
    low = a if a > c else c
    low_slope = sa if a > c else sc
    high = c if a > c else a
    high_slope = sc if a > c else sa
    head = (k + 1) * (low + 0.5 * low_slope * k)
    tail = (m - 1 - k) * (high + 0.5 * high_slope * (k + m))
    return head + tail


@helper
def sum_of_waits(label, pool, drafts, count, N):
    """Return the sum over n = 2..N of max(Y0 + T^d, Y1) for a label and a new batch's draft times."""
    x, x_end = label[DRAFT_AT], label[DRAFT_AT] + label[DRAFT_COUNT]
    y, y_end = label[VERIFY_AT], label[VERIFY_AT] + label[VERIFY_COUNT]
    z = 0
    n = 2
    total = 0.0
    while n <= N:
        after = first_after(pool, x, x_end, first_after(pool, y, y_end, first_after(drafts, z, count, N + 1)))
        total += sum_of_max(
            at_step(pool, x, n) + at_step(drafts, z, n), pool[x, GROWTH] + drafts[z, GROWTH],
            at_step(pool, y, n), pool[y, GROWTH], after - n,
        )  # fmt: skip
        n = after
        x, y, z = moved_on(pool, x, x_end, n), moved_on(pool, y, y_end, n), moved_on(drafts, z, count, n)
    return total


@helper
def push(pool, first, at, n, value, slope):
    """Add a segment at `at`, unless it only continues the one before; return the new end."""
    if at > first:
        k = at - 1
        expected = at_step(pool, k, n)
        if abs(slope - pool[k, GROWTH]) <= 1e-15 * abs(slope) and abs(value - expected) <= 1e-15 * abs(value):
            return at
    pool[at, FROM], pool[at, VALUE], pool[at, GROWTH] = n, value, slope
    return at + 1


@helper
def append(ranges, i, j, pool, used, drafts, nd, verifies, nv, N):
    """Store the label of prefix i (Eq. 31-32) behind the pool, from the label of prefix j and a batch's stage times."""
    first = at = used[0]
    x, x_end = ranges[j, DRAFT_AT], ranges[j, DRAFT_AT] + ranges[j, DRAFT_COUNT]
    z = 0
    n = 2
    while n <= N:  # Y[i,n,0] = Y[j,n,0] + T^d
        value = at_step(pool, x, n) + at_step(drafts, z, n)
        at = push(pool, first, at, n, value, pool[x, GROWTH] + drafts[z, GROWTH])
        n = first_after(pool, x, x_end, first_after(drafts, z, nd, N + 1))
        x, z = moved_on(pool, x, x_end, n), moved_on(drafts, z, nd, n)
    ranges[i, DRAFT_AT], ranges[i, DRAFT_COUNT] = first, at - first
    x, x_end = first, at
    y, y_end = ranges[j, VERIFY_AT], ranges[j, VERIFY_AT] + ranges[j, VERIFY_COUNT]
    first = at
    z = 0
    n = 2
    while n <= N:  # Y[i,n,1] = max(Y[i,n,0], Y[j,n,1]) + T^v
        after = first_after(pool, x, x_end, first_after(pool, y, y_end, first_after(verifies, z, nv, N + 1)))
        a, sa = at_step(pool, x, n), pool[x, GROWTH]
        c, sc = at_step(pool, y, n), pool[y, GROWTH]
        v, sv = at_step(verifies, z, n), verifies[z, GROWTH]
        m = after - 1 - n
        crossing = (a >= c) != (a + sa * m >= c + sc * m)
        k = min(max(int((c - a) / (sa - sc)), 0), m - 1) + 1 if crossing else 0
        if a < c:
            a, sa, c, sc = c, sc, a, sa
        at = push(pool, first, at, n, a + v, sa + sv)
        if crossing:
            at = push(pool, first, at, n + k, c + sc * k + v + sv * k, sc + sv)
        n = after
        x, y, z = moved_on(pool, x, x_end, n), moved_on(pool, y, y_end, n), moved_on(verifies, z, nv, n)
    ranges[i, VERIFY_AT], ranges[i, VERIFY_COUNT] = first, at - first
    used[0] = at


@kernel(
    "i8(i8, i8, const f8[:, ::1], const f8[::1], const f8[:, :, ::1], f8[:, ::1], f8[:, ::1], i8[::1], f8[:, ::1],"
    " i8[:, ::1], f8[:, ::1], i8[::1])",
)
def algorithm_1_rows(row, stop, task, setting, runtimes, drafts, verifies, boundary, prefix, ranges, pool, used):
    """Run rows i = row..stop-1 of Algorithm 1 and return the first row not run: the pool may be full.

    A boundary j is looked at closely only if sum_n T^v + max(sum_n Y[j-1,n,1], sum_n (Y[j-1,n,0] + T^d)), which costs
    a few operations, is not above the total of the boundary one row before, extended by a task.

    Work space: drafts and verifies, the segments of a batch's stage times (at least 1 + passes (P - 1)). Modified in
    place: boundary S[i] (the start j of the last batch), prefix, ranges, and the pool with the segments of Y[i,n,:].
    """
    linear = runtimes.shape[1] == 1
    N = int(task[0, STEPS])
    largest = row - 1  # how many tasks fit together; fewer for longer ones
    for i in range(row, stop):
        k = i - 1
        largest += 1
        tokens = task[k, INPUT] + task[k, OUTPUT]
        while largest > 0 and not fits(setting, float(largest), tokens):
            largest -= 1
        prefix[i, BEST] = INFINITY
        boundary[i] = 0
        # work of a batch of one; with one-piece runtimes a batch of b costs the overheads and b times that
        d1, v1 = range_stages(task, setting, runtimes, 1.0, k, 1, 1)
        one_d, one_v = range_stages(task, setting, runtimes, 1.0, k, 2, N - 1)
        fixed_d, fixed_v = N * setting[LENGTH] * runtimes[DRAFT, 0, HEIGHT], N * runtimes[VERIFY, 0, HEIGHT]
        one_d, one_v = one_d + d1 - fixed_d, one_v + v1 - fixed_v
        start = i - largest + 1
        likely = max(start, boundary[i - 1])
        enough = INFINITY
        for turn in range(start - 1, i + 1):
            j = likely if turn < start else turn
            if prefix[j - 1, BEST] == INFINITY:
                continue
            b = float(i - j + 1)
            drafted, verified = fixed_d + b * one_d, fixed_v + b * one_v
            if not linear:
                d1, v1 = range_stages(task, setting, runtimes, b, k, 1, 1)
                drafted, verified = range_stages(task, setting, runtimes, b, k, 2, N - 1)
                drafted, verified = drafted + d1, verified + v1
            if verified + max(prefix[j - 1, BEST], prefix[j - 1, DRAFTED] + drafted) > enough:
                continue
            if linear:
                d1, v1 = range_stages(task, setting, runtimes, b, k, 1, 1)
            total = max(prefix[j - 1, DRAFT_READY] + d1 - prefix[j - 1, VERIFY_READY], 0.0)
            total += prefix[j - 1, VERIFY_READY] + verified
            if N > 1:
                nd = stage_segments(task, setting, runtimes, DRAFT, b, k, N, drafts)
                total += sum_of_waits(ranges[j - 1], pool, drafts, nd, N)
            if turn < start:
                enough = total * (1.0 + 1e-9)
            elif total <= prefix[i, BEST] * (1.0 + 1e-12):
                prefix[i, BEST] = total
                boundary[i] = j
        j = boundary[i]
        if j == 0:
            continue
        b = float(i - j + 1)
        d1, v1 = range_stages(task, setting, runtimes, b, k, 1, 1)
        drafted, _ = range_stages(task, setting, runtimes, b, k, 2, N - 1)
        prefix[i, DRAFTED] = prefix[j - 1, DRAFTED] + d1 + drafted
        prefix[i, DRAFT_READY] = prefix[j - 1, DRAFT_READY] + d1
        prefix[i, VERIFY_READY] = max(prefix[i, DRAFT_READY], prefix[j - 1, VERIFY_READY]) + v1
        if N > 1:
            nd = stage_segments(task, setting, runtimes, DRAFT, b, k, N, drafts)
            nv = stage_segments(task, setting, runtimes, VERIFY, b, k, N, verifies)
            needed = 4 * (ranges[j - 1, DRAFT_COUNT] + ranges[j - 1, VERIFY_COUNT] + nd + nv + 2)
            if used[0] + needed > len(pool):
                prefix[i, BEST] = INFINITY
                return i
            append(ranges, i, j - 1, pool, used, drafts, nd, verifies, nv, N)
    return stop
