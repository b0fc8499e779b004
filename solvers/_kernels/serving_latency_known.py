"""Serving latency with known output lengths (paper 1): plans rated in closed form, local search, re-batching paths.

Letters: K tasks sorted by input length, a task is its sorted position k; l draft tokens per step; n_k the decoding
steps of task k. A batch takes part in the steps 1..max n_k over its tasks, then it has left the pipeline.

``unit`` (K, 5) holds a task's operations: the first draft pass of step 1, its second one, the first draft pass of step
2, the verify passes of steps 1 and 2. ``rates`` = (per further draft pass, per further step of a draft pass, per
further step of the verify pass). A batch of b tasks whose longest input is that of task k takes b times those of k.
A runtime is ``pieces``, shape (P, 3): rows (c1, c2, largest work) of its upper envelope, c1 increasing. ``memory`` =
(kv_d, free_d, kv_v, free_v): b tasks fit if b kv (I + O) <= free for both models.

On every range of steps with the same active batches and the same pieces, all stage times are affine in n, so the
makespan is an upper envelope of lines and its sum has a closed form: no cost depends on the number of steps.
"""

import numpy as np
from numba import njit

INFINITY = np.inf
SIZE, TOP, STEPS, OUTPUTS, D1, V1, D2, DS, V2, VS, OWN = range(11)  # columns of a batch


# ---------------------------------------------------------------------------- stage times


@njit(cache=True)
def _affine(pieces, work, step, gap, passes, count):
    """Return value, slope and how many steps (of `count`) they hold for: passes of work + g gap, growing by step."""
    if len(pieces) == 1:
        mean = work + 0.5 * (passes - 1) * gap
        return passes * (pieces[0, 0] * mean + pieces[0, 1]), passes * pieces[0, 0] * step, count
    value = 0.0
    slope = 0.0
    for g in range(passes):
        now = work + g * gap
        k = 0
        while now > pieces[k, 2]:
            k += 1
        value += pieces[k, 0] * now + pieces[k, 1]
        slope += pieces[k, 0] * step
        if step > 0.0 and pieces[k, 2] < now + step * (count - 1):
            count = min(count, 1 + max(0, int(np.floor((pieces[k, 2] - now) / step))))
    return value, slope, count


@njit(cache=True)
def _sum_affine(pieces, work, step, gap, passes, count):
    """Return the sum over `count` steps."""
    total = 0.0
    k = 0
    while k < count:
        value, slope, m = _affine(pieces, work + k * step, step, gap, passes, count - k)
        total += m * (value + 0.5 * slope * (m - 1))
        k += m
    return total


@njit(cache=True)
def _first_draft(l, unit, rates, pieces, b, k):
    """Return T^d at step 1."""
    if l == 0:
        return 0.0
    total = _affine(pieces, b * unit[k, 0], 0.0, 0.0, 1, 1)[0]
    if l > 1:
        total += _affine(pieces, b * unit[k, 1], 0.0, b * rates[0], l - 1, 1)[0]
    return total


@njit(cache=True)
def _draft_range(l, unit, rates, pieces, b, k, n, count):
    """Return the sum of T^d over the steps n..n+count-1, n >= 2."""
    if l == 0:
        return 0.0
    work = b * (unit[k, 2] + (n - 2) * rates[1])
    return _sum_affine(pieces, work, b * rates[1], b * rates[0], l, count)


@njit(cache=True)
def _verify_range(unit, rates, pieces, b, k, n, count):
    """Return the sum of T^v over the steps n..n+count-1, n >= 2."""
    return _sum_affine(pieces, b * (unit[k, 4] + (n - 2) * rates[2]), b * rates[2], 0.0, 1, count)


@njit(cache=True)
def _fits(memory, b, tokens):
    """Tell whether b tasks of so many tokens fit both models' memory (Eq. 9-10)."""
    return b * memory[0] * tokens <= memory[1] and b * memory[2] * tokens <= memory[3]


@njit(cache=True)
def _fill(l, unit, rates, draft_pieces, verify_pieces, own, batch):
    """Fill a batch's stage times from its size, longest input and steps; its own total only if `own`."""
    b, k = batch[SIZE], int(batch[TOP])
    batch[D1] = _first_draft(l, unit, rates, draft_pieces, b, k)
    batch[V1] = _affine(verify_pieces, b * unit[k, 3], 0.0, 0.0, 1, 1)[0]
    if own:
        count = int(batch[STEPS]) - 1
        batch[OWN] = (
            batch[D1]
            + batch[V1]
            + _draft_range(l, unit, rates, draft_pieces, b, k, 2, count)
            + _verify_range(unit, rates, verify_pieces, b, k, 2, count)
        )
    elif len(draft_pieces) == 1 and len(verify_pieces) == 1:
        batch[D2] = batch[DS] = 0.0
        if l > 0:
            batch[D2], batch[DS], _ = _affine(draft_pieces, b * unit[k, 2], b * rates[1], b * rates[0], l, 2)
        batch[V2], batch[VS], _ = _affine(verify_pieces, b * unit[k, 4], b * rates[2], 0.0, 1, 2)


# ---------------------------------------------------------------------------- the latency of a plan


@njit(cache=True)
def _sum_of_envelope(lines, slopes, q, count):
    """Return the sum over k = 0..count-1 of the maximum of the first q lines."""
    total = 0.0
    k = 0
    top = 0
    for p in range(1, q):
        if lines[p] > lines[top] or (lines[p] == lines[top] and slopes[p] > slopes[top]):
            top = p
    while True:
        height = lines[top] + slopes[top] * k
        last = count - 1  # the steps up to which line `top` rules
        after = top
        for p in range(q):
            if slopes[p] > slopes[top]:
                cross = k + (height - lines[p] - slopes[p] * k) / (slopes[p] - slopes[top])
                if cross < last:
                    last, after = max(k, int(np.floor(cross))), p
                elif after != top and cross < last + 1 and slopes[p] > slopes[after]:
                    after = p
        m = last - k + 1
        total += m * (height + 0.5 * slopes[top] * (m - 1))
        k = last + 1
        if k >= count:
            return total
        top = after
        for p in range(q):  # the crossing lines may meet within one step
            if lines[p] + slopes[p] * k > lines[top] + slopes[top] * k:
                top = p


@njit(cache=True)
def _pipelined_seconds(l, unit, rates, draft_pieces, verify_pieces, batches, order, M, work):
    """Return T_inf (Eq. 20-22) of batches in pipeline order; `work` (2, >= M) is scratch."""
    linear = len(draft_pieces) == 1 and len(verify_pieces) == 1
    lines, slopes = work[0], work[1]
    drafted = 0.0
    total = 0.0
    for m in range(M):
        batch = batches[order[m]]
        drafted += batch[D1]
        total = max(drafted, total) + batch[V1]
    n = 2
    while True:
        end = 0
        for m in range(M):
            s = int(batches[order[m], STEPS])
            if s >= n and (end == 0 or s < end):
                end = s
        if end == 0:
            return total
        while n <= end:
            count = end - n + 1
            if not linear:  # a first pass: how long the pieces hold
                for m in range(M):
                    batch = batches[order[m]]
                    if batch[STEPS] >= n:
                        b, k = batch[SIZE], int(batch[TOP])
                        if l > 0:
                            at = b * (unit[k, 2] + (n - 2) * rates[1])
                            batch[D2], batch[DS], count = _affine(
                                draft_pieces, at, b * rates[1], b * rates[0], l, count
                            )
                        at = b * (unit[k, 4] + (n - 2) * rates[2])
                        batch[V2], batch[VS], count = _affine(verify_pieces, at, b * rates[2], 0.0, 1, count)
            past = n - 2 if linear else 0
            d = ds = v = vs = 0.0
            q = 0
            top = 0
            top_end = -INFINITY
            for m in range(M):
                batch = batches[order[m]]
                if batch[STEPS] < n:
                    continue
                d += batch[D2] + batch[DS] * past
                ds += batch[DS]
                lines[q] = d - v  # verification before this batch is not waited for
                slopes[q] = ds - vs
                v += batch[V2] + batch[VS] * past
                vs += batch[VS]
                if lines[q] > lines[top]:
                    top = q
                top_end = max(top_end, lines[q] + slopes[q] * (count - 1))
                q += 1
            if lines[top] + slopes[top] * (count - 1) >= top_end:  # one line rules at both ends: in between, too
                total += 0.5 * count * (lines[top] + top_end)
            else:
                total += _sum_of_envelope(lines, slopes, q, count)
            total += count * (v + 0.5 * vs * (count - 1))
            n += count


@njit(cache=True)
def _plan_seconds(overlap, l, unit, rates, draft_pieces, verify_pieces, batches, order, M, work):
    if overlap:
        return _pipelined_seconds(l, unit, rates, draft_pieces, verify_pieces, batches, order, M, work)
    total = 0.0
    for m in range(M):
        total += batches[order[m], OWN]
    return total


@njit(
    "f8(b1, i8, f8[:, ::1], f8[::1], f8[:, ::1], f8[:, ::1], f8[::1], i8[::1], i8[::1], i8)",
    cache=True,
)
def known_seconds(overlap, l, unit, rates, draft_pieces, verify_pieces, outputs, steps, slot, M):
    """Return T_inf of the plan that runs task k in batch slot[k] = 0..M-1, batches in that order."""
    batches = np.zeros((M, 11))
    batches[:, TOP] = -1.0
    for k in range(len(slot)):
        _take(batches[slot[k]], k, outputs, steps)
    for m in range(M):
        _fill(l, unit, rates, draft_pieces, verify_pieces, not overlap, batches[m])
    order = np.arange(M)
    return _plan_seconds(
        overlap, l, unit, rates, draft_pieces, verify_pieces, batches, order, M, np.empty((2, M))
    )  # fmt: skip
