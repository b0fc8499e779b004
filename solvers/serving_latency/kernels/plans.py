"""Closed-form computation of a plan's latency, shared by all methods for `serving-latency`
problems.

A batch takes part in the steps 1..max n_k over its tasks, and then leaves the pipeline. Consider a
range of steps in which the active batches and the linear pieces of their runtimes stay the same.
The makespan of a step is then the upper envelope of lines in n, and its sum over the range has a
closed form.
"""

import numpy as np

from specopt.solvers.kernels.kernel import helper, kernel
from specopt.solvers.serving_latency.kernels.stages import (
    DRAFT,
    INFINITY,
    OUTPUT,
    STEPS,
    VERIFY,
    Data,  # noqa: F401  (named in a signature)
    all_stages,
    decode_line,
    first_stages,
    is_linear,
    overlaps,
)
from specopt.solvers.serving_latency.kernels.step import served

# Columns of a batch: size, longest input (as a task), last step, longest output, T^d and T^v at
# step 1, both at step 2 with their growth (as lines, and the first and the last step at which these
# lines are valid), and (without overlap) its own total.
SIZE, TOP, LAST, LONGEST, D1, V1, D2, DS, V2, VS, FROM, UNTIL, OWN = range(13)
BATCH_COLUMNS = 13


@helper
def fill(data, batches, m):
    """Compute the stage times of batch m from its size, longest input and number of steps."""
    b, k = batches[m, SIZE], int(batches[m, TOP])
    if not overlaps(data):
        draft, verify = all_stages(data, b, k, int(batches[m, LAST]))
        batches[m, OWN] = draft + verify
        return
    batches[m, D1], batches[m, V1] = first_stages(data, b, k)
    decode_lines(data, batches, m, 2)


@helper
def decode_lines(data, batches, m, n):
    """Compute the lines of a batch's stage times that are valid at step n >= 2, and the steps from
    n at which they are valid.
    """
    b, k, count = batches[m, SIZE], int(batches[m, TOP]), int(batches[m, LAST]) - n + 1
    draft, batches[m, DS], count = decode_line(data, DRAFT, b, k, n, count)
    verify, batches[m, VS], count = decode_line(data, VERIFY, b, k, n, count)
    batches[m, D2] = draft - batches[m, DS] * (n - 2)
    batches[m, V2] = verify - batches[m, VS] * (n - 2)
    batches[m, FROM], batches[m, UNTIL] = n, n + count - 1


@helper
def sum_of_envelope(lines, q, count):
    """Return the sum over k = 0..count-1 of the maximum of the first q lines at the point k.

    The rows of `lines` contain the value of each line at k = 0 and its slope.
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
        reach = count - 1.0 - k  # how far beyond k the line is largest
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
def decode_seconds(data, batches, order, M, lines):
    """Return the sum of the makespans of all steps after the first, in seconds (Eq. 20-22).

    `lines` is scratch space with shape (2, >= M).
    """
    linear = is_linear(data)
    total = 0.0
    n = 2
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
            if not linear:  # first, find for how many steps the pieces hold
                for m in range(M):
                    at = order[m]
                    if batches[at, LAST] >= n:
                        if not batches[at, FROM] <= n <= batches[at, UNTIL]:
                            decode_lines(data, batches, at, n)
                        count = min(count, int(batches[at, UNTIL]) - n + 1)
            past = n - 2
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
                lines[0, q] = d - v  # the maximum does not count verification before this batch
                lines[1, q] = ds - vs
                v += batches[at, V2] + batches[at, VS] * past
                vs += batches[at, VS]
                if lines[0, q] > lines[0, top]:
                    top = q
                top_end = max(top_end, lines[0, q] + lines[1, q] * (count - 1))
                q += 1
            # a line that is largest at both ends is largest in between
            if lines[0, top] + lines[1, top] * (count - 1) >= top_end:
                total += 0.5 * count * (lines[0, top] + top_end)
            else:
                total += sum_of_envelope(lines, q, count)
            total += count * (v + 0.5 * vs * (count - 1))
            n += count


@helper
def clear(batches, m):
    """Remove all tasks from batch m, and reset its data."""
    batches[m] = 0.0
    batches[m, TOP] = -1.0


@helper
def take(data, batches, m, k):
    """Add task k to batch m, and update the batch's size, longest input, number of steps and
    longest output.
    """
    batches[m, SIZE] += 1.0
    batches[m, TOP] = max(batches[m, TOP], float(k))
    batches[m, LAST] = max(batches[m, LAST], data.task[k, STEPS])
    batches[m, LONGEST] = max(batches[m, LONGEST], data.task[k, OUTPUT])


@helper
def inference_seconds(data, batches, order, M, lines):
    """Return the inference time T_inf, in seconds (Eq. 22), for batches in pipeline order.

    The stage times of the batches must already have been computed.
    """
    total = 0.0
    if overlaps(data):
        total = decode_seconds(data, batches, order, M, lines)
        drafted = done = 0.0
        for m in range(M):  # the prefill step
            b = order[m]
            drafted, done = served(True, drafted, done, batches[b, D1], batches[b, V1])
        return done + total
    for m in range(M):
        total += batches[order[m], OWN]
    return total


@helper
def work_space(M):
    """Allocate work space for at most M batches.

    Return a tuple (batches, order, lines): empty batches, their order, and scratch space for lines.
    """
    batches, order = np.zeros((M, BATCH_COLUMNS)), np.arange(M)
    batches[:, TOP] = -1.0
    return batches, order, np.empty((2, M))


@kernel("f8(i8, Data, const i8[::1])")
def plan_seconds(M, data, slot):
    """Return the inference time T_inf, in seconds, of the plan in which task k belongs to batch
    slot[k] < M. The batches run in the order of their indices.
    """
    batches, order, lines = work_space(M)
    for k in range(len(slot)):
        take(data, batches, slot[k], k)
    for m in range(M):
        fill(data, batches, m)
    return inference_seconds(data, batches, order, M, lines)


@kernel(
    "void(i8, i8, Data, i8[:, ::1], i8[:, ::1], f8[::1])", steps=lambda count, M, *_: 20 * count * M
)
def sequences_seconds(count, M, data, ends, sizes, out):
    """Compute the inference time T_inf, in seconds, of the first `count` sequences of M pipelined
    blocks, and write it to out[k] for sequence k.

    Block m of sequence k contains the sizes[k, m] tasks up to sorted position ends[k, m]. All tasks
    are assumed to have the same output length.
    """
    batches, order, lines = work_space(M)
    for row in range(count):
        for m in range(M):
            k, size = ends[row, m] - 1, sizes[row, m]
            if batches[m, TOP] != k or batches[m, SIZE] != size:  # not as in the row before
                batches[m, SIZE], batches[m, TOP], batches[m, LAST] = size, k, data.task[k, STEPS]
                fill(data, batches, m)
        out[row] = inference_seconds(data, batches, order, M, lines)
