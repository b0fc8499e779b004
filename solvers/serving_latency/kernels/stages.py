"""Stage times of a batch, computed in closed form over ranges of decoding steps and shared by all
methods for `serving-latency` problems.

Notation: the K tasks are sorted by input length, and k is a task's position in this order. l is the
number of draft tokens per step, and b is the batch size.

All kernels accept the record `Data`. The array ``task`` (K, 8) of this record, with the columns
below, contains each task's lengths and operation counts. The array ``setting``, with the entries
below, contains the values that all tasks share. A stage's runtime is a piecewise linear, convex
function of the work, which is the number of operations. For each linear piece c1 work + c2,
``runtimes`` (2, P, 3) contains a row (c1, c2, largest work), with increasing c1. A batch of b tasks
whose longest input is that of task k, called "b tasks up to task k" below, needs b times the
operations of task k.

On every range of steps in which the same pieces apply, a stage time is affine in the step n. The
sum of the stage time over the range therefore has a closed form, and the computational cost does
not depend on the number of steps. If the entry TABLED of the setting is positive, ``runtimes`` (2,
(K + 1) K, N) contains the stage times themselves. Row b K + k contains the stage times of the b
tasks up to task k at every step. They are 0 after these tasks have finished.
"""

import numpy as np

from specopt.solvers.kernels.kernel import helper, inlined, record

# Columns of a task: tokens, decoding steps, operations of the first two draft passes of step 1, of
# the first draft pass of step 2, and of the verify passes of steps 1 and 2.
INPUT, OUTPUT, STEPS, DRAFT_1, AGAIN_1, DRAFT_2, VERIFY_1, VERIFY_2 = range(8)
# Entries of a setting: l, whether stages of different batches overlap, operations per further draft
# pass, per further step of a draft pass and of the verify pass, then KV bytes and free bytes of
# both models, and whether stage times are tabled.
(
    LENGTH,
    OVERLAP,
    MORE_PASS,
    MORE_DRAFT,
    MORE_VERIFY,
    KV_DRAFT,
    FREE_DRAFT,
    KV_VERIFY,
    FREE_VERIFY,
    TABLED,
) = range(10)
DRAFT, VERIFY = range(2)  # rows of runtimes
SLOPE, HEIGHT, UP_TO = range(3)  # columns of a piece
INFINITY = np.inf

Data = record("Data", task="f8[:, ::1]", setting="f8[::1]", runtimes="f8[:, :, ::1]")


@helper
def fits(data, b, tokens):
    """Return whether b tasks, each with `tokens` tokens, fit in the memory of both models (Eq.
    9-10).
    """
    return (
        b * data.setting[KV_DRAFT] * tokens <= data.setting[FREE_DRAFT]
        and b * data.setting[KV_VERIFY] * tokens <= data.setting[FREE_VERIFY]
    )


@inlined
def is_linear(data):
    """Return whether both runtimes have a single linear piece, which makes stage times affine in
    the batch size.
    """
    return data.runtimes.shape[1] == 1


@inlined
def overlaps(data):
    """Return whether drafting for one batch can overlap with verification for another."""
    return data.setting[OVERLAP] > 0.0


@inlined
def affine(runtimes, stage, work, step, gap, passes, count):
    """Compute the duration of several passes in one step, where pass g has `work` + g `gap`
    operations.

    Return a tuple (duration, growth, steps). If `work` grows by `step` from one decoding step to
    the next, the duration grows by `growth` per decoding step. These values are valid for the
    number `steps` of decoding steps, which is at most `count`.
    """
    if runtimes.shape[1] == 1:
        slope = runtimes[stage, 0, SLOPE]
        mean = work + 0.5 * (passes - 1) * gap
        return passes * (slope * mean + runtimes[stage, 0, HEIGHT]), passes * slope * step, count
    value = 0.0
    slope = 0.0
    for g in range(passes):
        now = work + g * gap
        k = 0
        while now > runtimes[stage, k, UP_TO]:
            k += 1
        value += runtimes[stage, k, SLOPE] * now + runtimes[stage, k, HEIGHT]
        slope += runtimes[stage, k, SLOPE] * step
        if step > 0.0 and runtimes[stage, k, UP_TO] < now + step * (count - 1):
            count = min(count, 1 + max(0, int((runtimes[stage, k, UP_TO] - now) / step)))
    return value, slope, count


@inlined
def step_seconds(runtimes, stage, work, gap, passes):
    """Return the total duration of several passes, in seconds, where pass g has `work` + g `gap`
    operations.
    """
    return affine(runtimes, stage, work, 0.0, gap, passes, 1)[0]


@inlined
def stage_seconds(models, runtimes, b, reached, unseen, l, first):
    """Return the draft time T^d and the verify time T^v, in seconds, for one step of b tasks (Eq.
    13-14).

    The first draft pass processes `unseen` tokens. The array `models` (2, 3) contains the number of
    operations of each model per token, per pair of tokens and per logit.
    """
    new = reached + l if first else 1.0 + l
    work = (models[VERIFY, 0] + models[VERIFY, 1] * (reached + l)) * new + models[VERIFY, 2] * (
        1.0 + l
    )
    verify = step_seconds(runtimes, VERIFY, b * work, 0.0, 1)
    if l == 0:
        return 0.0, verify
    token, pair, logit = models[DRAFT, 0], models[DRAFT, 1], models[DRAFT, 2]
    work = (token + pair * reached) * unseen + logit
    if unseen == 1.0:
        return step_seconds(runtimes, DRAFT, b * work, b * pair, l), verify
    draft = step_seconds(runtimes, DRAFT, b * work, 0.0, 1)
    return draft + step_seconds(
        runtimes, DRAFT, b * (token + pair * (reached + 1.0) + logit), b * pair, l - 1
    ), verify


@inlined
def first_stages(data, b, k):
    """Return the draft time T^d and the verify time T^v at step 1, for b tasks up to task k."""
    task, setting, runtimes = data
    if setting[TABLED] > 0.0:
        row = int(b) * len(task) + k
        return runtimes[DRAFT, row, 0], runtimes[VERIFY, row, 0]
    l = int(setting[LENGTH])
    verify = step_seconds(runtimes, VERIFY, b * task[k, VERIFY_1], 0.0, 1)
    if l == 0:
        return 0.0, verify
    draft = step_seconds(runtimes, DRAFT, b * task[k, DRAFT_1], 0.0, 1)
    return draft + step_seconds(
        runtimes, DRAFT, b * task[k, AGAIN_1], b * setting[MORE_PASS], l - 1
    ), verify


@inlined
def decode_line(data, stage, b, k, n, count):
    """Compute the draft time or the verify time of b tasks up to task k at step n >= 2.

    Return a tuple (value, growth, steps): the time, its growth per step, and the number of steps,
    at most `count`, for which these values are valid.
    """
    task, setting, runtimes = data
    if setting[TABLED] > 0.0:
        return runtimes[stage, int(b) * len(task) + k, n - 1], 0.0, 1
    if stage == VERIFY:
        work = b * (task[k, VERIFY_2] + (n - 2) * setting[MORE_VERIFY])
        return affine(runtimes, VERIFY, work, b * setting[MORE_VERIFY], 0.0, 1, count)
    l = int(setting[LENGTH])
    work = b * (task[k, DRAFT_2] + (n - 2) * setting[MORE_DRAFT])
    return affine(runtimes, DRAFT, work, b * setting[MORE_DRAFT], b * setting[MORE_PASS], l, count)


@helper
def sum_of_lines(data, stage, b, k, n, count):
    """Return the total draft time or verify time of b tasks up to task k over the steps
    n..n+count-1, where n >= 2.
    """
    total = 0.0
    while count > 0:
        value, slope, m = decode_line(data, stage, b, k, n, count)
        total += m * (value + 0.5 * slope * (m - 1))
        n += m
        count -= m
    return total


@helper
def range_stages(data, b, k, n, count):
    """Return the total draft time and the total verify time of b tasks up to task k over the steps
    n..n+count-1.
    """
    if n == 1:
        return first_stages(data, b, k)
    draft = 0.0
    if data.setting[LENGTH] > 0.0:
        draft = sum_of_lines(data, DRAFT, b, k, n, count)
    return draft, sum_of_lines(data, VERIFY, b, k, n, count)


@helper
def all_stages(data, b, k, steps):
    """Return the total draft time and the total verify time of b tasks up to task k over the steps
    1..steps.
    """
    draft, verify = range_stages(data, b, k, 1, 1)
    more_draft, more_verify = range_stages(data, b, k, 2, steps - 1)
    return draft + more_draft, verify + more_verify


@helper
def copy_first(source, target, count):
    """Copy the first `count` entries of `source` to `target`."""
    for k in range(count):
        target[k] = source[k]
