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
    while k < count:
        top = 0
        height = -INFINITY
        for p in range(q):
            at = lines[p] + slopes[p] * k
            if at > height or (at == height and slopes[p] > slopes[top]):
                top, height = p, at
        reach = count - 1.0 - k  # how far the line rules beyond k
        for p in range(q):
            if slopes[p] > slopes[top]:
                reach = min(reach, (height - lines[p] - slopes[p] * k) / (slopes[p] - slopes[top]))
        m = 1 + max(0, int(np.floor(reach)))
        total += m * (height + 0.5 * slopes[top] * (m - 1))
        k += m
    return total


@njit(cache=True)
def _prefill_seconds(batches, order, M):
    """Return the makespan of step 1 (Eq. 20-21)."""
    drafted = done = 0.0
    for m in range(M):
        drafted += batches[order[m], D1]
        done = max(drafted, done) + batches[order[m], V1]
    return done


@njit(cache=True)
def _decode_seconds(l, unit, rates, draft_pieces, verify_pieces, batches, order, M, n, work):
    """Return the sum of the makespans of the steps from n >= 2 on (Eq. 20-22); `work` (2, >= M) is scratch."""
    linear = len(draft_pieces) == 1 and len(verify_pieces) == 1
    lines, slopes = work[0], work[1]
    total = 0.0
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
def _take(batch, k, outputs, steps):
    """Add task k to a batch: its size, longest input, steps and outputs."""
    batch[SIZE] += 1.0
    batch[TOP] = max(batch[TOP], k)
    batch[STEPS] = max(batch[STEPS], steps[k])
    batch[OUTPUTS] = max(batch[OUTPUTS], outputs[k])


@njit(cache=True)
def _plan_seconds(overlap, l, unit, rates, draft_pieces, verify_pieces, batches, order, M, work):
    if overlap:
        decode = _decode_seconds(l, unit, rates, draft_pieces, verify_pieces, batches, order, M, 2, work)
        return _prefill_seconds(batches, order, M) + decode
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
    return _plan_seconds(
        overlap, l, unit, rates, draft_pieces, verify_pieces, batches, np.arange(M), M, np.empty((2, M))
    )


# ---------------------------------------------------------------------------- shortest paths over an order


@njit(
    "void(i8[::1], i8, i8, i8, f8[:, ::1], f8[::1], f8[:, ::1], f8[:, ::1], f8[::1], f8[::1], f8[::1], i8[::1],"
    "f8, f8, f8[::1], i8[::1])",
    cache=True,
)
def order_rows(
    tasks, row, stop, l, unit, rates, draft_pieces, verify_pieces, memory, inputs, outputs, steps,
    draft_weight, verify_weight, best, start,
):  # fmt: skip
    """Run rows of the shortest path over batches that are contiguous in the order `tasks`.

    A batch costs its weighted stage times over all its steps. Sizes above 128 are tried on a grid that widens with the
    size. Modified in place: best[i] and start[i], the first place of the last batch of the prefix of i tasks.
    """
    for i in range(row, stop):
        best[i] = INFINITY
        top = -1
        longest = 0.0
        count = 0
        due = 1
        for j in range(i - 1, -1, -1):
            k = tasks[j]
            top = max(top, k)
            longest = max(longest, outputs[k])
            count = max(count, steps[k])
            size = i - j
            b = float(size)
            if not _fits(memory, b, inputs[top] + longest):
                break
            if size < due and j > 0:
                continue
            due = size + max(1, size >> 7)
            cost = best[j]
            if draft_weight > 0.0:
                cost += draft_weight * (
                    _first_draft(l, unit, rates, draft_pieces, b, top)
                    + _draft_range(l, unit, rates, draft_pieces, b, top, 2, count - 1)
                )
            cost += verify_weight * (
                _affine(verify_pieces, b * unit[top, 3], 0.0, 0.0, 1, 1)[0]
                + _verify_range(unit, rates, verify_pieces, b, top, 2, count - 1)
            )
            if cost < best[i]:
                best[i] = cost
                start[i] = j


# ---------------------------------------------------------------------------- local search


@njit(cache=True)
def _below(random, n):
    """Return an integer in 0..n-1 (xorshift64)."""
    x = random[0]
    x ^= x << np.uint64(13)
    x ^= x >> np.uint64(7)
    x ^= x << np.uint64(17)
    random[0] = x
    return np.int64((x >> np.uint64(11)) % np.uint64(n))


@njit(cache=True)
def _link(head, after, before, k, a):
    """Put task k in front of the list of batch a."""
    after[k] = head[a]
    before[k] = -1
    if head[a] >= 0:
        before[head[a]] = k
    head[a] = k


@njit(cache=True)
def _unlink(head, after, before, k, a):
    """Take task k out of the list of batch a."""
    if before[k] >= 0:
        after[before[k]] = after[k]
    else:
        head[a] = after[k]
    if after[k] >= 0:
        before[after[k]] = before[k]


@njit(cache=True)
def _member(random, head, after, batch, a):
    """Return a random task of batch a."""
    k = head[a]
    for _ in range(_below(random, int(batch[SIZE]))):
        k = after[k]
    return k


@njit(cache=True)
def _shift(order, p, q):
    """Move the entry at position p to position q."""
    s = order[p]
    step = 1 if q > p else -1
    while p != q:
        order[p] = order[p + step]
        p += step
    order[q] = s


@njit(cache=True)
def _inner(batch, k, outputs):
    """Tell whether a batch keeps its longest input and output without task k."""
    return k != batch[TOP] and outputs[k] < batch[OUTPUTS]


@njit(
    "void(b1, i8, f8[:, ::1], f8[::1], f8[:, ::1], f8[:, ::1], f8[::1], f8[::1], f8[::1], i8[::1], i8[::1],"
    "i8[::1], i8[::1], i8[::1], i8[::1], i8[::1], f8[::1], u8[::1], i8, i8, i8, f8)",
    cache=True,
)
def improve_batches(
    overlap, l, unit, rates, draft_pieces, verify_pieces, memory, inputs, outputs, steps, ranks,
    slot, order, best_slot, best_order, counts, seconds, random, first, stop, tries, heat,
):  # fmt: skip
    """Run the attempts first..stop-1 of `tries` of simulated annealing over batches and their pipeline order.

    Moves: a task to another batch, two tasks swapped, all tasks beyond a threshold (of input, output or a mixture
    of their ranks) to another or a new batch, two batches cut anew, merged, a batch to another position. Modified in
    place: slot (batch of each task), order (batches in pipeline order, unused ones behind), the same two of the best
    plan met, counts = (M, M of the best), seconds = (T_inf, T_inf of the best), and the random state.
    """
    K = len(slot)
    M = counts[0]
    current, best = seconds[0], seconds[1]
    head, after, before = np.full(K, -1), np.full(K, -1), np.full(K, -1)
    batches = np.zeros((K, 11))
    batches[:, TOP] = -1.0
    for k in range(K):
        _link(head, after, before, k, slot[k])
        _take(batches[slot[k]], k, outputs, steps)
    for m in range(M):
        _fill(l, unit, rates, draft_pieces, verify_pieces, not overlap, batches[order[m]])
    work = np.empty((2, K))
    old_a, old_c = np.empty(11), np.empty(11)
    old_order = np.empty(K, np.int64)
    target = slot.copy()
    moved = np.empty(K, np.int64)
    for attempt in range(first, stop):
        kind = _below(random, 100)
        if kind >= 90 and (not overlap or M == 1):
            kind = _below(random, 90)
        if M == 1:
            kind = 85
        a = order[_below(random, M)]
        c = a
        count = 0  # tasks moved
        place = -1  # pipeline position of a new batch
        if kind < 30:
            k = _below(random, K)
            a = slot[k]
            moved[0] = k
            count = 1
        elif kind < 42:
            k = int(batches[a, TOP])
            if kind < 36:
                k = head[a]
                while outputs[k] < batches[a, OUTPUTS]:
                    k = after[k]
            moved[0] = k
            count = 1
        elif kind < 57:
            k, j = _below(random, K), _below(random, K)
            a, c = slot[k], slot[j]
            if a == c:
                continue
            moved[0], moved[1] = k, j
            count = 2
        if a == c and kind < 85:
            while c == a:
                c = order[_below(random, M)]
        if 57 <= kind < 77 or 85 <= kind < 90:  # beyond a threshold
            mix = _below(random, 5)
            weight = 1.0 if mix == 0 else 0.0 if mix == 1 else 0.1 * (1 + _below(random, 9))
            k = _member(random, head, after, batches[a], a)
            limit = weight * k + (1.0 - weight) * ranks[k]
            upper = _below(random, 2) == 0
            if kind >= 85:  # to a new batch
                if M == K or batches[a, SIZE] < 2.0:
                    continue
                c = order[M]
                place = _below(random, M + 1)
            k = head[a]
            while k >= 0:
                beyond = weight * k + (1.0 - weight) * ranks[k]
                if (beyond >= limit) if upper else (beyond <= limit):
                    moved[count] = k
                    count += 1
                k = after[k]
            if count == batches[a, SIZE]:
                continue
            if kind >= 67 and kind < 77:  # cut both anew
                k = head[c]
                while k >= 0:
                    beyond = weight * k + (1.0 - weight) * ranks[k]
                    if (beyond < limit) if upper else (beyond > limit):
                        moved[count] = k
                        count += 1
                    k = after[k]
        elif 77 <= kind < 81:  # what c can take without growing in length
            k = head[a]
            while k >= 0:
                if k <= batches[c, TOP] and steps[k] <= batches[c, STEPS]:
                    moved[count] = k
                    count += 1
                k = after[k]
            if count == 0:
                continue
        elif 81 <= kind < 85:  # merge
            k = head[a]
            while k >= 0:
                moved[count] = k
                count += 1
                k = after[k]
        new_M = M
        if kind >= 90:
            old_order[: min(K, M + 1)] = order[: min(K, M + 1)]
            p, q = _below(random, M), _below(random, M)
            if p == q:
                continue
            if kind < 95:
                order[p], order[q] = order[q], order[p]
            else:
                _shift(order, p, q)
        else:
            for t in range(count):
                k = moved[t]
                target[k] = c if slot[k] == a else a
            old_a[:], old_c[:] = batches[a], batches[c]
            if count == 1 and _inner(batches[a], moved[0], outputs):
                batches[a, SIZE] -= 1.0
                _take(batches[c], moved[0], outputs, steps)
            else:
                for s in (a, c):
                    batches[s, SIZE] = batches[s, STEPS] = batches[s, OUTPUTS] = 0.0
                    batches[s, TOP] = -1.0
                for s in (a, c):
                    k = head[s]
                    while k >= 0:
                        _take(batches[target[k]], k, outputs, steps)
                        k = after[k]
            allowed = True
            for s in (a, c):
                if batches[s, SIZE] > 0.0:
                    tokens = inputs[int(batches[s, TOP])] + batches[s, OUTPUTS]
                    allowed = allowed and _fits(memory, batches[s, SIZE], tokens)
            if not allowed:
                batches[a], batches[c] = old_a, old_c
                for t in range(count):
                    target[moved[t]] = slot[moved[t]]
                continue
            old_order[: min(K, M + 1)] = order[: min(K, M + 1)]
            if place >= 0:
                _shift(order, M, place)
                new_M = M + 1
            elif batches[a, SIZE] == 0.0:
                p = 0
                while order[p] != a:
                    p += 1
                _shift(order, p, M - 1)
                new_M = M - 1
            for s in (a, c):
                if batches[s, SIZE] > 0.0:
                    _fill(l, unit, rates, draft_pieces, verify_pieces, not overlap, batches[s])
        rated = _plan_seconds(overlap, l, unit, rates, draft_pieces, verify_pieces, batches, order, new_M, work)
        accepted = rated <= current
        if not accepted:
            chance = (1.0 + _below(random, 1 << 30)) / (1 << 30)
            accepted = rated < current * (1.0 - heat * np.exp(-7.0 * attempt / tries) * np.log(chance))
        if accepted:
            current = rated
            M = new_M
            for t in range(count):
                k = moved[t]
                _unlink(head, after, before, k, slot[k])
                slot[k] = target[k]
                _link(head, after, before, k, slot[k])
            if current < best * (1.0 - 1e-13):
                best = current
                best_slot[:] = slot
                best_order[:] = order
                counts[1] = M
        else:
            order[: min(K, M + 1)] = old_order[: min(K, M + 1)]
            if kind < 90:
                batches[a], batches[c] = old_a, old_c
                for t in range(count):
                    target[moved[t]] = slot[moved[t]]
    counts[0] = M
    seconds[0], seconds[1] = current, best


# ---------------------------------------------------------------------------- re-batching at every step


@njit(cache=True)
def _range_stages(l, unit, rates, draft_pieces, verify_pieces, b, k, n, count):
    """Return the sums of T^d and T^v over the steps n..n+count-1."""
    if n == 1:
        return (
            _first_draft(l, unit, rates, draft_pieces, b, k),
            _affine(verify_pieces, b * unit[k, 3], 0.0, 0.0, 1, 1)[0],
        )
    return (
        _draft_range(l, unit, rates, draft_pieces, b, k, n, count),
        _verify_range(unit, rates, verify_pieces, b, k, n, count),
    )


@njit(cache=True)
def _rebatch(
    overlap, strict, l, unit, rates, draft_pieces, verify_pieces, memory, inputs, outputs, least, active, A, n, count,
    mix, f, choice, alone,
):  # fmt: skip
    """Run the shortest path over contiguous batches of the active tasks for one range of steps.

    With overlap a batch costs mix T^d + (1 - mix) T^v; one batch is the first and adds (1 - mix) T^d, one the last and
    adds mix T^v. Without, a batch costs T^d + T^v. `strict`: a batch must fit with its own longest output, else with
    the least[b-1] that any b tasks have at least. Modified in place: f[i, s] and choice[i, s] = 4 b + the state before,
    s = 1 (first taken) + 2 (last taken). `alone` (A, 2) is scratch.
    """
    linear = len(draft_pieces) == 1 and len(verify_pieces) == 1
    dh = count * l * draft_pieces[0, 1]
    vh = count * verify_pieces[0, 1]
    if linear:
        for e in range(A):
            d, v = _range_stages(l, unit, rates, draft_pieces, verify_pieces, 1.0, active[e], n, count)
            alone[e, 0], alone[e, 1] = d - dh, v - vh
    f[0, 0] = 0.0
    f[0, 1] = f[0, 2] = f[0, 3] = INFINITY
    for e in range(1, A + 1):
        k = active[e - 1]
        for s in range(4):
            f[e, s] = INFINITY
        longest = 0.0
        for size in range(1, e + 1):
            b = float(size)
            longest = max(longest, outputs[active[e - size]]) if strict else least[size - 1]
            if not _fits(memory, b, inputs[k] + longest):
                break
            if linear:
                d, v = b * alone[e - 1, 0] + dh, b * alone[e - 1, 1] + vh
            else:
                d, v = _range_stages(l, unit, rates, draft_pieces, verify_pieces, b, k, n, count)
            j = e - size
            if not overlap:
                if f[j, 0] + d + v < f[e, 0]:
                    f[e, 0] = f[j, 0] + d + v
                    choice[e, 0] = 4 * size
                continue
            cost = mix * d + (1.0 - mix) * v
            for taken in range(4):
                role = cost
                if taken & 1:
                    role += (1.0 - mix) * d
                if taken & 2:
                    role += mix * v
                for s in range(4):
                    if s & taken == 0 and f[j, s] + role < f[e, s | taken]:
                        f[e, s | taken] = f[j, s] + role
                        choice[e, s | taken] = 4 * size + s


@njit(cache=True)
def _walk(l, unit, rates, draft_pieces, verify_pieces, active, A, n, count, overlap, choice, batches):
    """Write the batches of the shortest path; return how many and both of its stage sums, first and last included."""
    e, s = A, 3 if overlap else 0
    draft = verify = 0.0
    M = 0
    while e > 0:
        size, state = choice[e, s] // 4, choice[e, s] % 4
        k = active[e - 1]
        d, v = _range_stages(l, unit, rates, draft_pieces, verify_pieces, float(size), k, n, count)
        draft += d
        verify += v
        if (s & 1) > (state & 1):
            verify += d
        if (s & 2) > (state & 2):
            draft += v
        batches[M, :] = 0.0
        batches[M, SIZE], batches[M, TOP], batches[M, STEPS] = size, k, n + count - 1
        batches[M, OWN] = d + v
        batches[M, D1], batches[M, V1] = d, v
        M += 1
        e -= size
        s = state
    return M, draft, verify


@njit(cache=True)
def _execute(overlap, l, unit, rates, draft_pieces, verify_pieces, batches, M, n, count, order, work):
    """Return the latency of a range of steps with these batches in the order of Johnson's rule."""
    if not overlap:
        total = 0.0
        for m in range(M):
            total += batches[m, OWN]
        return total
    key = np.empty(M)
    for m in range(M):
        d, v = batches[m, D1], batches[m, V1]
        key[m] = d - 1e18 if d < v else -v
    order[:M] = np.argsort(key)
    if n == 1:
        return _prefill_seconds(batches, order, M)
    for m in range(M):
        _fill(l, unit, rates, draft_pieces, verify_pieces, False, batches[m])
    return _decode_seconds(l, unit, rates, draft_pieces, verify_pieces, batches, order, M, n, work)


@njit(
    "void(b1, b1, i8, f8[:, ::1], f8[::1], f8[:, ::1], f8[:, ::1], f8[::1], f8[::1], f8[::1], i8[::1], i8[::1],"
    "i8, i8, f8[::1], f8[::1])",
    cache=True,
)
def rebatching_ranges(
    overlap, strict, l, unit, rates, draft_pieces, verify_pieces, memory, inputs, outputs, steps, ends,
    first, stop, mix, seconds,
):  # fmt: skip
    """Bound (or, if `strict`, execute) the ranges r = first..stop-1 of steps, with tasks batched anew in each.

    Range r are the steps ends[r]+1..ends[r+1]; its tasks are those that take part in all of them. The weight
    between the stages is the one that raises the bound most. Modified in place: mix[0], where the search of the weight
    starts, and seconds[r].
    """
    K = len(inputs)
    active = np.empty(K, np.int64)
    f = np.empty((K + 1, 4))
    choice = np.zeros((K + 1, 4), np.int64)
    alone = np.empty((K, 2))
    batches = np.zeros((K, 11))
    order = np.empty(K, np.int64)
    work = np.empty((2, K))
    for r in range(first, stop):
        n, count = ends[r] + 1, ends[r + 1] - ends[r]
        A = 0
        for k in range(K):
            if steps[k] >= ends[r + 1]:
                active[A] = k
                A += 1
        least = np.sort(outputs[active[:A]])
        low, high = 0.0, 1.0  # the best weight is between
        low_line = high_line = False
        low_draft = low_verify = high_draft = high_verify = 0.0
        weight = mix[0]
        bound = 0.0
        executed = INFINITY
        for _ in range(6):
            _rebatch(
                overlap, strict, l, unit, rates, draft_pieces, verify_pieces, memory, inputs, outputs, least,
                active, A, n, count, weight, f, choice, alone,
            )  # fmt: skip
            value = f[A, 3 if overlap else 0]
            M, draft, verify = _walk(
                l, unit, rates, draft_pieces, verify_pieces, active, A, n, count, overlap, choice, batches
            )
            if value > bound:
                bound = value
                mix[0] = weight
            if strict:
                executed = min(
                    executed,
                    _execute(overlap, l, unit, rates, draft_pieces, verify_pieces, batches, M, n, count, order, work),
                )
            if not overlap or abs(draft - verify) <= 1e-3 * value:
                break
            if draft > verify:  # a larger weight of drafting gives more
                low, low_line, low_draft, low_verify = weight, True, draft, verify
                if weight >= 1.0:
                    break
            else:
                high, high_line, high_draft, high_verify = weight, True, draft, verify
                if weight <= 0.0:
                    break
            if low_line and high_line:  # where the two paths cost the same
                a, c = low_draft - low_verify, high_draft - high_verify
                weight = (high_verify - low_verify) / (a - c)
                weight = min(max(weight, low), high)
            elif low_line:
                weight = min(1.0, weight + 0.1)
                if weight > 0.9:
                    weight = 1.0
            else:
                weight = max(0.0, weight - 0.1)
                if weight < 0.1:
                    weight = 0.0
        seconds[r] = executed if strict else bound


# ---------------------------------------------------------------------------- columns: batches at dual prices


@njit(
    "void(i8, f8[:, ::1], f8[::1], f8[:, ::1], f8[:, ::1], i8[::1], i8[::1], i8[::1], i8[::1], f8[:, :, ::1])",
    cache=True,
)
def batch_stages(l, unit, rates, draft_pieces, verify_pieces, sizes, tops, last, ends, out):
    """Fill out[m] = (T^d, T^v, steps, T^d at the first step, T^v there) of batches, by range of steps.

    Range r are the steps ends[r]+1..ends[r+1]; batch m takes part up to step last[m]; the first two are sums.
    """
    for m in range(len(sizes)):
        b, k = float(sizes[m]), tops[m]
        for r in range(len(ends) - 1):
            n, count = ends[r] + 1, min(ends[r + 1], last[m]) - ends[r]
            if count < 1:
                out[m, :, r] = 0.0
                continue
            out[m, 2, r] = count
            out[m, 0, r], out[m, 1, r] = _range_stages(l, unit, rates, draft_pieces, verify_pieces, b, k, n, count)
            out[m, 3, r], out[m, 4, r] = _range_stages(l, unit, rates, draft_pieces, verify_pieces, b, k, n, 1)


@njit(
    "i8(b1, i8, f8[:, ::1], f8[::1], f8[:, ::1], f8[:, ::1], f8[::1], f8[::1], f8[::1], i8[::1], i8[::1], i8[::1],"
    "f8[::1], f8[::1], f8[::1], f8[::1], i8, i8, f8, f8[::1], i8[:, ::1])",
    cache=True,
)
def price_batches(
    overlap, l, unit, rates, draft_pieces, verify_pieces, memory, inputs, outputs, steps, ends, dear,
    price, weight, first_price, last_price, start, stop, noticeable, worst, found,
):  # fmt: skip
    """Find, for each longest input top = start..stop-1, the batch of least reduced cost; return how many matter.

    Range r are the steps ends[r]+1..ends[r+1]. A batch of b tasks with longest input `top` and longest output that of
    task q costs, over its steps, weight[r] T^d + (1 - weight[r]) T^v (without overlap: T^d + T^v), less the prices of
    its tasks and, wherever that gains, first_price[r] - (1 - weight[r]) T^d or last_price[r] - weight[r] T^v per step,
    the stage times of the range's first step. It holds `top`, q and the dearest others that do not exceed them; `dear`
    are the tasks by falling price. Modified in place: worst, the least reduced cost per task met and the least ratio of
    cost to the price of the tasks; rows (top, q, b) of found, for reduced costs below -noticeable.
    """
    K = len(inputs)
    R = len(ends) - 1
    base = np.empty((K + 1, R + 1))  # cost over the ranges before r, for every size
    gain = np.empty((K + 1, R))  # what the roles gain per step
    linear = len(draft_pieces) == 1 and len(verify_pieces) == 1  # then costs are affine in the size
    below = np.empty(K, np.int64)
    total = 0
    for top in range(start, stop):
        widest = 0
        for b in range(1, K + 1):
            if not _fits(memory, float(b), inputs[top] + outputs[top]) or b > top + 1:
                break
            widest = b
        for size in range(1, widest + 1):
            b = float(size)
            base[size, 0] = 0.0
            for r in range(R):
                n, count, w = ends[r] + 1, ends[r + 1] - ends[r], weight[r]
                d, v = _range_stages(l, unit, rates, draft_pieces, verify_pieces, b, top, n, count)
                gain[size, r] = 0.0
                if overlap:
                    d1, v1 = _range_stages(l, unit, rates, draft_pieces, verify_pieces, b, top, n, 1)
                    gain[size, r] = max(0.0, first_price[r] - (1.0 - w) * d1) + max(0.0, last_price[r] - w * v1)
                    d, v = w * d, (1.0 - w) * v
                base[size, r + 1] = base[size, r] + d + v - gain[size, r] * count
        others = 0  # tasks with shorter inputs, dearest first
        for t in range(K):
            if dear[t] < top:
                below[others] = dear[t]
                others += 1
        least = 0.0
        least_q = least_b = -1
        for q in range(top + 1):
            if outputs[q] < outputs[top] or (outputs[q] == outputs[top] and q != top):
                continue
            r = 0  # the range in which the batch ends
            while ends[r + 1] < steps[q]:
                r += 1
            count = steps[q] - ends[r]
            whole = count == ends[r + 1] - ends[r]
            tokens = inputs[top] + outputs[q]
            paid = price[top] if q == top else price[top] + price[q]
            b = 1 if q == top else 2
            if not _fits(memory, float(b), tokens):
                continue
            tail = growth = 0.0  # the cost within the range in which the batch ends, for the size `known`
            known = 0
            for t in range(-1, others):  # first these two alone
                if t >= 0:
                    k = below[t]
                    if k == q or outputs[k] > outputs[q]:
                        continue
                    b += 1
                    if not _fits(memory, float(b), tokens):
                        break
                    paid += price[k]
                if whole:
                    cost = base[b, r + 1]
                else:
                    if known == 0 or not linear or growth == 0.0:
                        d, v = _range_stages(
                            l, unit, rates, draft_pieces, verify_pieces, float(b), top, ends[r] + 1, count
                        )
                        if overlap:
                            d, v = weight[r] * d, (1.0 - weight[r]) * v
                        if known > 0:
                            growth = d + v - tail
                        tail = d + v
                        known = b
                    cost = base[b, r] + tail + growth * (b - known) - gain[b, r] * count
                rest = cost - paid
                worst[0] = min(worst[0], rest / b)
                if paid > 0.0:
                    worst[1] = min(worst[1], cost / paid)
                elif cost < 0.0:
                    worst[1] = -INFINITY
                if rest < least:
                    least, least_q, least_b = rest, q, b
        if least < -noticeable:
            found[total, 0], found[total, 1], found[total, 2] = top, least_q, least_b
            total += 1
    return total
