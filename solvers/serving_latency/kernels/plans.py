"""The latency of a plan in closed form, for every method of serving latency.

A batch takes part in the steps 1..max n_k over its tasks, then it has left the pipeline. On every
range of steps with the same active batches and the same pieces the makespan is an upper envelope of
lines in n, and its sum has a closed form.
"""

from specopt.solvers.kernels.kernel import helper, kernel
from specopt.solvers.serving_latency.kernels.stages import (
    DRAFT,
    INFINITY,
    OUTPUT,
    OVERLAP,
    STEPS,
    VERIFY,
    all_stages,
    decode_line,
    first_stages,
)
from specopt.solvers.serving_latency.kernels.step import served

# columns of a batch: size, longest input (a task), last step, longest output, T^d and T^v at step
# 1, at step 2 and their growth, and (without overlap) its own total
SIZE, TOP, LAST, LONGEST, D1, V1, D2, DS, V2, VS, OWN = range(11)
BATCH_COLUMNS = 11


@helper
def fill(task, setting, runtimes, batches, m):
    """Fill a batch's stage times from its size, longest input and steps."""
    if setting[OVERLAP] > 0.0:
        fill_pipelined(task, setting, runtimes, batches, m)
        return
    draft, verify = all_stages(
        task, setting, runtimes, batches[m, SIZE], int(batches[m, TOP]), int(batches[m, LAST])
    )
    batches[m, OWN] = draft + verify


@helper
def fill_pipelined(task, setting, runtimes, batches, m):
    """Fill a batch's stage times where stages overlap."""
    b, k = batches[m, SIZE], int(batches[m, TOP])
    batches[m, D1], batches[m, V1] = first_stages(task, setting, runtimes, b, k)
    if runtimes.shape[1] == 1:
        decode_lines(task, setting, runtimes, batches, m, 2, 2)


@helper
def decode_lines(task, setting, runtimes, batches, m, n, count):
    """Fill a batch's stage times at step n >= 2 and their growth; return how many steps (of
    `count`) they hold for.
    """
    b, k = batches[m, SIZE], int(batches[m, TOP])
    batches[m, D2], batches[m, DS], count = decode_line(
        task, setting, runtimes, DRAFT, b, k, n, count
    )
    batches[m, V2], batches[m, VS], count = decode_line(
        task, setting, runtimes, VERIFY, b, k, n, count
    )
    return count


@helper
def sum_of_envelope(lines, q, count):
    """Return the sum over k = 0..count-1 of the maximum of the first q lines, rows value and
    slope.
    """
    total = 0.0
    k = 0
    while k < count:
        top = 0
        height = -INFINITY
        for p in range(q):
            at = lines[0, p] + lines[1, p] * k
            if at > height or (at == height and lines[1, p] > lines[1, top]):
                top, height = p, at
        reach = count - 1.0 - k  # how far the line rules beyond k
        for p in range(q):
            if lines[1, p] > lines[1, top]:
                reach = min(
                    reach, (height - lines[0, p] - lines[1, p] * k) / (lines[1, p] - lines[1, top])
                )
        m = 1 + max(0, int(reach))
        total += m * (height + 0.5 * lines[1, top] * (m - 1))
        k += m
    return total


@helper
def prefill_seconds(batches, order, M):
    """Return the makespan of step 1 (Eq. 20-21)."""
    drafted = done = 0.0
    for m in range(M):
        drafted, done = served(True, drafted, done, batches[order[m], D1], batches[order[m], V1])
    return done


@helper
def decode_seconds(task, setting, runtimes, batches, order, M, n, lines):
    """Return the sum of the makespans of the steps from n >= 2 on (Eq. 20-22); `lines` (2, >= M) is
    scratch.
    """
    linear = runtimes.shape[1] == 1
    total = 0.0
    while True:
        end = 0
        for m in range(M):
            s = int(batches[order[m], LAST])
            if s >= n and (end == 0 or s < end):
                end = s
        if end == 0:
            return total
        while n <= end:
            count = end - n + 1
            if not linear:  # a first pass: how long the pieces hold
                for m in range(M):
                    if batches[order[m], LAST] >= n:
                        count = decode_lines(task, setting, runtimes, batches, order[m], n, count)
            past = n - 2 if linear else 0
            d = ds = v = vs = 0.0
            q = 0
            top = 0
            top_end = -INFINITY
            for m in range(M):
                at = order[m]
                if batches[at, LAST] < n:
                    continue
                d += batches[at, D2] + batches[at, DS] * past
                ds += batches[at, DS]
                lines[0, q] = d - v  # verification before this batch is not waited for
                lines[1, q] = ds - vs
                v += batches[at, V2] + batches[at, VS] * past
                vs += batches[at, VS]
                if lines[0, q] > lines[0, top]:
                    top = q
                top_end = max(top_end, lines[0, q] + lines[1, q] * (count - 1))
                q += 1
            if (
                lines[0, top] + lines[1, top] * (count - 1) >= top_end
            ):  # one line rules at both ends: in between, too
                total += 0.5 * count * (lines[0, top] + top_end)
            else:
                total += sum_of_envelope(lines, q, count)
            total += count * (v + 0.5 * vs * (count - 1))
            n += count


@helper
def clear(batches, m):
    """Empty a batch."""
    batches[m, SIZE] = batches[m, LAST] = batches[m, LONGEST] = 0.0
    batches[m, TOP] = -1.0


@helper
def take(task, batches, m, k):
    """Add task k to a batch: its size, longest input, steps and outputs."""
    batches[m, SIZE] += 1.0
    batches[m, TOP] = max(batches[m, TOP], float(k))
    batches[m, LAST] = max(batches[m, LAST], task[k, STEPS])
    batches[m, LONGEST] = max(batches[m, LONGEST], task[k, OUTPUT])


@helper
def pipelined_seconds(task, setting, runtimes, batches, order, M, lines):
    """Return T_inf of filled batches in pipeline order where stages overlap."""
    decode = decode_seconds(task, setting, runtimes, batches, order, M, 2, lines)
    return prefill_seconds(batches, order, M) + decode


@helper
def inference_seconds(task, setting, runtimes, batches, order, M, lines):
    """Return T_inf (Eq. 22) of filled batches in pipeline order."""
    if setting[OVERLAP] > 0.0:
        return pipelined_seconds(task, setting, runtimes, batches, order, M, lines)
    total = 0.0
    for m in range(M):
        total += batches[order[m], OWN]
    return total


@helper
def block_seconds(task, setting, runtimes, batches, order, M, lines, ends, sizes):
    """Return T_inf of pipelined blocks in order: block m holds the sizes[m] tasks up to sorted
    position ends[m].

    Blocks that `batches` holds already, from a call before, are not filled again; order[m] = m.
    """
    for m in range(M):
        k = ends[m] - 1
        if batches[m, TOP] != k or batches[m, SIZE] != sizes[m]:
            batches[m, SIZE], batches[m, TOP], batches[m, LAST] = sizes[m], k, task[k, STEPS]
            fill_pipelined(task, setting, runtimes, batches, m)
    return pipelined_seconds(task, setting, runtimes, batches, order, M, lines)


@helper
def fill_growth(task, setting, runtimes, batches):
    """Fill row k with the stage times that each task adds to a block up to k, row K with those of
    no task: affine.
    """
    K = len(task)
    for m in range(K, -1, -1):
        k = min(m, K - 1)
        batches[m, SIZE], batches[m, TOP], batches[m, LAST] = min(1.0, K - m), k, task[k, STEPS]
        fill_pipelined(task, setting, runtimes, batches, m)
        if m < K:
            for column in range(D1, VS + 1):
                batches[m, column] -= batches[K, column]


@helper
def affine_block_seconds(batches, M, steps, lines, ends, sizes):
    """Return T_inf of blocks as `block_seconds` does, from the growth that `batches` holds."""
    K = len(batches) - 1
    drafted = done = d = ds = v = vs = 0.0
    first = last = at_last = -INFINITY
    count = steps - 1.0
    for m in range(M):
        b, k = float(sizes[m]), ends[m] - 1
        first_draft, first_verify = (
            b * batches[k, D1] + batches[K, D1],
            b * batches[k, V1] + batches[K, V1],
        )
        drafted, done = served(True, drafted, done, first_draft, first_verify)
        d += b * batches[k, D2] + batches[K, D2]
        ds += b * batches[k, DS]
        start, slope = d - v, ds - vs  # verification before this block is not waited for
        lines[0, m], lines[1, m] = start, slope
        v += b * batches[k, V2] + batches[K, V2]
        vs += b * batches[k, VS]
        end = start + slope * (count - 1.0)
        if start > first:
            first, at_last = start, end
        last = max(last, end)
    if at_last >= last:  # one line rules at both ends: in between, too
        done += 0.5 * count * (first + last)
    else:
        done += sum_of_envelope(lines, M, count)
    return done + count * (v + 0.5 * vs * (count - 1.0))


@kernel(
    "f8(i8, const f8[:, ::1], const f8[::1], const f8[:, :, ::1], const i8[::1], f8[:, ::1],"
    " i8[::1], f8[:, ::1])"
)
def plan_seconds(M, task, setting, runtimes, slot, batches, order, lines):
    """Return T_inf of the plan that runs task k in batch slot[k] = 0..M-1, batches in that order.

    Work space: batches (>= M, BATCH_COLUMNS), order (>= M), lines (2, >= M).
    """
    for m in range(M):
        clear(batches, m)
        order[m] = m
    for k in range(len(slot)):
        take(task, batches, slot[k], k)
    for m in range(M):
        fill(task, setting, runtimes, batches, m)
    return inference_seconds(task, setting, runtimes, batches, order, M, lines)


@kernel(
    "void(i8, i8, const f8[:, ::1], const f8[::1], const f8[:, :, ::1], i8[:, ::1], i8[:, ::1],"
    " f8[:, ::1], i8[::1], f8[:, ::1], f8[::1])",
    steps=lambda count, M, *_: 20 * count * M,
)
def sequences_seconds(count, M, task, setting, runtimes, ends, sizes, batches, order, lines, out):
    """Fill out[k] with T_inf of the first `count` sequences of M blocks each; tasks count as
    equally long in output.

    Work space as for `plan_seconds`.
    """
    for m in range(M):
        clear(batches, m)
        order[m] = m
    for k in range(count):
        out[k] = block_seconds(task, setting, runtimes, batches, order, M, lines, ends[k], sizes[k])
