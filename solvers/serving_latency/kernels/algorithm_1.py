"""Algorithm 1 of paper 1, a dynamic program over contiguous batches whose labels are functions of
the decoding step.

A label holds the completion times for a prefix of the tasks, as functions of the step n. Each
function is piecewise linear and is stored as segments over n = 2..N. A segment is a row of an
array, with the columns below. The prefill step n = 1 is stored separately.

Stage times are affine in n if runtimes have one linear piece, and convex and piecewise linear if
they have several pieces. Completion times are also convex and piecewise linear, so the cost of
computing sums over n does not depend on N.
"""

from specopt.solvers.kernels.kernel import helper, inlined, kernel
from specopt.solvers.serving_latency.kernels.stages import (
    DRAFT,
    INFINITY,
    INPUT,
    OUTPUT,
    STEPS,
    VERIFY,
    Data,  # noqa: F401  (named in a signature)
    all_stages,
    decode_line,
    fits,
    is_linear,
    range_stages,
)

# Columns of a segment of stage times, or of the times when the stages are free: its first step, the
# value of the draft stage there and its growth per step, and the same for the verify stage.
FROM, DRAFT_AT, DRAFT_GROWTH, VERIFY_AT, VERIFY_GROWTH = range(5)
# Columns of a prefix: Y[i,0,0], sum_n Y[i,n,0], Y[i,1,0], Y[i,1,1]
BEST, DRAFTED, DRAFT_READY, VERIFY_READY = range(4)


@helper
def stage_segments(data, b, k, N, segments):
    """Compute the stage times of a batch as linear segments. Write them to `segments`, and return
    their number.
    """
    count = 0
    n = 2
    while n <= N:
        value, slope, m = decode_line(data, DRAFT, b, k, n, N - n + 1)
        segments[count, FROM], segments[count, DRAFT_AT], segments[count, DRAFT_GROWTH] = (
            n,
            value,
            slope,
        )
        value, slope, m = decode_line(data, VERIFY, b, k, n, m)
        segments[count, VERIFY_AT], segments[count, VERIFY_GROWTH] = value, slope
        count += 1
        n += m
    return count


@inlined
def at_step(segments, x, stage, n):
    """Return the value at step n of the function stored in segment x of `segments`.

    `stage` selects the draft stage (`DRAFT_AT`) or the verify stage (`VERIFY_AT`).
    """
    return segments[x, stage] + segments[x, stage + 1] * (n - segments[x, FROM])


@inlined
def first_after(segments, x, end, n):
    """Return the first step of the segment that follows segment x, but at most n.

    The segments of the function are in the rows before `end`. If x is the last segment, return n.
    """
    return min(n, int(segments[x + 1, FROM])) if x + 1 < end else n


@inlined
def moved_on(segments, x, end, n):
    """Return the index of the segment that applies at step n, which is either x or x + 1.

    The segments of the function are in the rows before `end`.
    """
    return x + 1 if x + 1 < end and segments[x + 1, FROM] == n else x


@helper
def sum_of_max(a, sa, c, sc, m):
    """Return the sum over k = 0..m-1 of max(a + sa k, c + sc k), in closed form."""
    if a < c or (a == c and sa < sc):
        a, sa, c, sc = c, sc, a, sa
    end = a + sa * (m - 1)
    if end >= c + sc * (m - 1):
        return 0.5 * m * (a + end)
    k = min(max(int((c - a) / (sa - sc)), 0), m - 2)  # the line larger at 0 is larger up to k
    return (k + 1) * (a + 0.5 * sa * k) + (m - 1 - k) * (c + 0.5 * sc * (k + m))


@helper
def sum_of_waits(pool, x, end, stages, count, N):
    """Return the sum over n = 2..N of max(Y0 + T^d, Y1), the time at which a new batch can be
    verified in step n.

    Y0 and Y1 are the completion times of the two stages in a label, and T^d is the draft time of
    the new batch.
    """
    z = 0
    n = 2
    total = 0.0
    while n <= N:
        after = first_after(pool, x, end, first_after(stages, z, count, N + 1))
        total += sum_of_max(
            at_step(pool, x, DRAFT_AT, n) + at_step(stages, z, DRAFT_AT, n),
            pool[x, DRAFT_GROWTH] + stages[z, DRAFT_GROWTH],
            at_step(pool, x, VERIFY_AT, n),
            pool[x, VERIFY_GROWTH],
            after - n,
        )
        n = after
        x, z = moved_on(pool, x, end, n), moved_on(stages, z, count, n)
    return total


@helper
def push(pool, first, at, n, drafted, draft_slope, done, slope):
    """Append a segment in row `at`, unless it merely continues the previous segment. Return the row
    after the last segment.
    """
    if at > first:
        k = at - 1
        same = abs(draft_slope - pool[k, DRAFT_GROWTH]) <= 1e-15 * abs(draft_slope)
        same = same and abs(slope - pool[k, VERIFY_GROWTH]) <= 1e-15 * abs(slope)
        same = same and abs(drafted - at_step(pool, k, DRAFT_AT, n)) <= 1e-15 * abs(drafted)
        if same and abs(done - at_step(pool, k, VERIFY_AT, n)) <= 1e-15 * abs(done):
            return at
    pool[at, FROM], pool[at, DRAFT_AT], pool[at, DRAFT_GROWTH] = n, drafted, draft_slope
    pool[at, VERIFY_AT], pool[at, VERIFY_GROWTH] = done, slope
    return at + 1


@helper
def append(pool, x, end, first, stages, count, N):
    """Compute the label of a prefix that is extended by one batch (Eq. 31-32).

    The inputs are the label of the shorter prefix, in rows `x` to `end` - 1 of the pool, and the
    stage times of the batch. Store the new label in rows from `first` onwards, and return the row
    after its last segment.
    """
    at = first
    z = 0
    n = 2
    while n <= N:  # Y[i,n,0] = Y[j,n,0] + T^d, Y[i,n,1] = max(Y[i,n,0], Y[j,n,1]) + T^v
        after = first_after(pool, x, end, first_after(stages, z, count, N + 1))
        drafted = a = at_step(pool, x, DRAFT_AT, n) + at_step(stages, z, DRAFT_AT, n)
        slope = sa = pool[x, DRAFT_GROWTH] + stages[z, DRAFT_GROWTH]
        c, sc = at_step(pool, x, VERIFY_AT, n), pool[x, VERIFY_GROWTH]
        v, sv = at_step(stages, z, VERIFY_AT, n), stages[z, VERIFY_GROWTH]
        m = after - 1 - n
        crossing = (a >= c) != (a + sa * m >= c + sc * m)
        k = min(max(int((c - a) / (sa - sc)), 0), m - 1) + 1 if crossing else 0
        if a < c:
            a, sa, c, sc = c, sc, a, sa
        at = push(pool, first, at, n, drafted, slope, a + v, sa + sv)
        if crossing:
            at = push(
                pool, first, at, n + k, drafted + slope * k, slope, c + sc * k + v + sv * k, sc + sv
            )
        n = after
        x, z = moved_on(pool, x, end, n), moved_on(stages, z, count, n)
    return at


@kernel(
    "i8(i8, i8, Data, f8[:, ::1], i8[::1], f8[:, ::1], i8[::1], f8[:, ::1])",
    steps=lambda row, stop, data, *_: 5 * (stop - row) * stop * data.runtimes.shape[1],
)
def algorithm_1_rows(row, stop, data, stages, start, prefix, begins, pool):
    """Run rows i = row..stop-1 of Algorithm 1, and return the first row that was not run.

    The function returns early if the pool is full. The function compares all batches j..i-1 that
    may come last. A batch is evaluated only if a lower bound on the resulting total does not exceed
    a reference value, which is the total for the previous row's last batch extended by one task.
    The lower bound, sum_n T^v + max(sum_n Y[j,n,1], sum_n (Y[j,n,0] + T^d)), takes only a few
    operations.

    The work space `stages` has at least 1 + (l + 1) (P - 1) rows, which is enough for the segments
    of a batch's stage times. The arrays `start`, `prefix`, `begins` and `pool` are modified in
    place. start[i] is the first task of the last batch of i tasks, or -1 if no batches fit. The
    rows begins[i]..begins[i + 1] - 1 of the pool are Y[i,n,:].
    """
    linear = is_linear(data)
    N = int(data.task[0, STEPS])
    largest = row - 1  # number of tasks that fit together; fewer for longer tasks
    for i in range(row, stop):
        k = i - 1
        largest += 1
        tokens = data.task[k, INPUT] + data.task[k, OUTPUT]
        while largest > 0 and not fits(data, float(largest), tokens):
            largest -= 1
        prefix[i, BEST] = INFINITY
        start[i] = -1
        begins[i + 1] = begins[i]
        # with one-piece runtimes, stage times are affine in the size
        one_d, one_v = all_stages(data, 1.0, k, N)
        two_d, two_v = all_stages(data, 2.0, k, N)
        first = i - largest
        likely = max(first, start[i - 1])
        enough = INFINITY
        for turn in range(first - 1, i):
            j = likely if turn < first else turn
            if prefix[j, BEST] == INFINITY:
                continue
            b = float(i - j)
            drafted = one_d + (b - 1.0) * (two_d - one_d)
            verified = one_v + (b - 1.0) * (two_v - one_v)
            if not linear:
                drafted, verified = all_stages(data, b, k, N)
            if verified + max(prefix[j, BEST], prefix[j, DRAFTED] + drafted) > enough:
                continue
            d1, v1 = range_stages(data, b, k, 1, 1)
            total = max(prefix[j, DRAFT_READY] + d1 - prefix[j, VERIFY_READY], 0.0)
            total += prefix[j, VERIFY_READY] + verified
            if N > 1:
                count = stage_segments(data, b, k, N, stages)
                total += sum_of_waits(pool, begins[j], begins[j + 1], stages, count, N)
            if turn < first:
                enough = total * (1.0 + 1e-9)
            elif total <= prefix[i, BEST] * (1.0 + 1e-12):
                prefix[i, BEST] = total
                start[i] = j
        j = start[i]
        if j < 0:
            continue
        b = float(i - j)
        d1, v1 = range_stages(data, b, k, 1, 1)
        prefix[i, DRAFTED] = prefix[j, DRAFTED] + all_stages(data, b, k, N)[0]
        prefix[i, DRAFT_READY] = prefix[j, DRAFT_READY] + d1
        prefix[i, VERIFY_READY] = max(prefix[i, DRAFT_READY], prefix[j, VERIFY_READY]) + v1
        if N > 1:
            count = stage_segments(data, b, k, N, stages)
            if begins[i] + 2 * (begins[j + 1] - begins[j] + count) > len(pool):
                prefix[i, BEST] = INFINITY
                return i
            begins[i + 1] = append(pool, begins[j], begins[j + 1], begins[i], stages, count, N)
    return stop
