"""Simulated annealing over the batches of a plan and their pipeline order."""

import numpy as np

from specopt.solvers.kernels.kernel import helper, kernel
from specopt.solvers.kernels.random import draw, draw_below, draw_exponential
from specopt.solvers.serving_latency.kernels.plans import (
    BATCH_COLUMNS,
    LAST,
    LONGEST,
    SIZE,
    TOP,
    clear,
    fill,
    inference_seconds,
    take,
    work_space,
)
from specopt.solvers.serving_latency.kernels.stages import (
    INFINITY,
    INPUT,
    OUTPUT,
    STEPS,
    Data,  # noqa: F401  (named in a signature)
    copy_first,
    fits,
    overlaps,
)

# Rows of a plan: the batch of each task, and the batches in pipeline order followed by unused ones.
SLOT, ORDER, BEST_SLOT, BEST_ORDER = range(4)
# Moves of the annealer, as cumulative percentages of draws: move one task (any task, a task with
# its batch's longest output, or a task with its longest input), swap two tasks, move tasks beyond
# a threshold to another batch, divide two batches differently, move all tasks that another batch
# can accept without becoming longer, merge two batches, split a batch, exchange two batches in
# the order; otherwise, shift a batch in the order. Other percentages make `length-aware` end with
# other plans for many tasks.
ANY, LONGEST_OUTPUT, LONGEST_INPUT, SWAP, BEYOND = 30, 36, 42, 57, 67
CUT, ABSORB, MERGE, SPLIT, EXCHANGE = 77, 81, 85, 90, 95
# Moves of the annealer of blocks, as cumulative tenths of draws: exchange two blocks in the
# pipeline, or exchange the sizes of two blocks; otherwise, move a few tasks from one block to
# another. The blocks between the two keep their sizes, so their tasks change. Other tenths and
# other numbers of tasks make `exact` end with other plans for many tasks.
ORDERS, SIZES, MAX_MOVED = 3, 5, 8
HEAD, AFTER, BEFORE, TARGET, MOVED, OLD_ORDER = range(6)  # rows of the annealer's lists


@helper
def link(lists, k, a):
    """Insert task k at the front of the linked list of batch a's tasks."""
    first = lists[HEAD, a]
    lists[AFTER, k] = first
    lists[BEFORE, k] = -1
    if first >= 0:
        lists[BEFORE, first] = k
    lists[HEAD, a] = k


@helper
def unlink(lists, k, a):
    """Remove task k from the linked list of batch a's tasks."""
    before, after = lists[BEFORE, k], lists[AFTER, k]
    if before >= 0:
        lists[AFTER, before] = after
    else:
        lists[HEAD, a] = after
    if after >= 0:
        lists[BEFORE, after] = before


@helper
def shift(order, p, q):
    """Move the entry at position p of an array to position q, and shift the entries in between."""
    s = order[p]
    step = 1 if q > p else -1
    while p != q:
        order[p] = order[p + step]
        p += step
    order[q] = s


@helper
def collect(data, ranks, batches, lists, weight, limit, sign, strict, a, c, count):
    """Append the tasks of batch a that lie on one side of a threshold to the list of tasks to move.
    Return the new length of that list.

    If weight < 0, append all tasks that batch c can accept without becoming longer.
    """
    k = lists[HEAD, a]
    while k >= 0:
        if weight < 0.0:
            chosen = k <= batches[c, TOP] and data.task[k, STEPS] <= batches[c, LAST]
        else:
            beyond = sign * (weight * k + (1.0 - weight) * ranks[k] - limit)
            chosen = beyond > 0.0 or (beyond == 0.0 and not strict)
        if chosen:
            lists[MOVED, count] = k
            count += 1
        k = lists[AFTER, k]
    return count


@helper
def rebuild(data, batches, lists, a, c):
    """Recompute the data of batches a and c from the batch that `lists[TARGET]` assigns to each
    task.
    """
    clear(batches, a)
    clear(batches, c)
    for s in (a, c):
        k = lists[HEAD, s]
        while k >= 0:
            take(data, batches, lists[TARGET, k], k)
            k = lists[AFTER, k]


@helper
def keeps_memory(data, batches, m):
    """Return whether batch m satisfies the memory limits. An empty batch always does."""
    size = batches[m, SIZE]
    return size == 0.0 or fits(
        data, size, data.task[int(batches[m, TOP]), INPUT] + batches[m, LONGEST]
    )


@helper
def draw_move(data, ranks, batches, lists, slot, order, M, stream):
    """Draw a random move of the annealer.

    Return a tuple (kind, a, c, count, place). The first three entries are the kind of move and its
    two batches. `count` is the number of tasks to move, or -1 if the move is not allowed. `place`
    is the pipeline position of a new batch, or -1 if there is none.
    """
    kind = draw_below(stream, 0, 100)
    if kind >= SPLIT and (not overlaps(data) or M == 1):
        kind = draw_below(stream, 0, SPLIT)
    if M == 1:
        kind = MERGE
    a = order[draw_below(stream, 0, M)]
    c = a
    count = 0
    place = -1
    if kind < LONGEST_INPUT:  # one task
        if kind < ANY:
            k = draw_below(stream, 0, len(slot))
            a = slot[k]
        elif kind < LONGEST_OUTPUT:
            k = lists[HEAD, a]
            while data.task[k, OUTPUT] < batches[a, LONGEST]:
                k = lists[AFTER, k]
        else:
            k = int(batches[a, TOP])
        lists[MOVED, 0] = k
        count = 1
    elif kind < SWAP:
        k, j = draw_below(stream, 0, len(slot)), draw_below(stream, 0, len(slot))
        a, c = slot[k], slot[j]
        if a == c:
            return kind, a, c, -1, place
        lists[MOVED, 0], lists[MOVED, 1] = k, j
        count = 2
    if a == c and kind < MERGE:
        while c == a:
            c = order[draw_below(stream, 0, M)]
    if SWAP <= kind < SPLIT:
        weight, limit, sign = 0.0, -1.0, 1.0  # all tasks: merge
        if kind < CUT or kind >= MERGE:  # tasks beyond a threshold
            mix = draw_below(stream, 0, 5)
            weight = 1.0 if mix == 0 else 0.0 if mix == 1 else 0.1 * (1 + draw_below(stream, 0, 9))
            k = lists[HEAD, a]
            for _ in range(draw_below(stream, 0, int(batches[a, SIZE]))):
                k = lists[AFTER, k]
            limit = weight * k + (1.0 - weight) * ranks[k]
            sign = 1.0 if draw_below(stream, 0, 2) == 0 else -1.0
            if kind >= MERGE:
                if len(slot) == M or batches[a, SIZE] < 2.0:
                    return kind, a, c, -1, place
                c = order[M]
                place = draw_below(stream, 0, M + 1)
        elif kind < ABSORB:
            weight = -1.0
        count = collect(data, ranks, batches, lists, weight, limit, sign, False, a, c, 0)
        if count == 0 or (count == batches[a, SIZE] and weight >= 0.0 and limit >= 0.0):
            return kind, a, c, -1, place
        if BEYOND <= kind < CUT:
            count = collect(data, ranks, batches, lists, weight, limit, -sign, True, c, a, count)
    return kind, a, c, count, place


@helper
def put_back(batches, lists, slot, a, c, count):
    """Undo a move: restore batches a and c to their state before `regroup`."""
    copy_first(batches[len(slot)], batches[a], BATCH_COLUMNS)
    copy_first(batches[len(slot) + 1], batches[c], BATCH_COLUMNS)
    for t in range(count):
        k = lists[MOVED, t]
        lists[TARGET, k] = slot[k]


@helper
def regroup(data, batches, lists, slot, order, M, a, c, count, place):
    """Move the selected tasks between batches a and c.

    Return the new number of batches. If one of the two batches does not fit in memory, undo the
    move and return 0.
    """
    for t in range(count):
        k = lists[MOVED, t]
        lists[TARGET, k] = c if slot[k] == a else a
    copy_first(batches[a], batches[len(slot)], BATCH_COLUMNS)
    copy_first(batches[c], batches[len(slot) + 1], BATCH_COLUMNS)
    k = lists[MOVED, 0]
    if count == 1 and k != batches[a, TOP] and data.task[k, OUTPUT] < batches[a, LONGEST]:
        batches[a, SIZE] -= 1.0  # the longest input and output stay
        take(data, batches, c, k)
    else:
        rebuild(data, batches, lists, a, c)
    if not (keeps_memory(data, batches, a) and keeps_memory(data, batches, c)):
        put_back(batches, lists, slot, a, c, count)
        return 0
    if place >= 0:
        shift(order, M, place)
        M += 1
    elif batches[a, SIZE] == 0.0:
        p = 0
        while order[p] != a:
            p += 1
        shift(order, p, M - 1)
        M -= 1
    for s in (a, c):
        if batches[s, SIZE] > 0.0:
            fill(data, batches, s)
    return M


@kernel(
    "void(i8, i8, i8, Data, i8[::1], f8, i8[:, ::1], i8[::1], f8[::1], u8[::1])",
)
def improve_batches(first, stop, tries, data, ranks, heat, plan, counts, seconds, stream):
    """Run the attempts first..stop-1, out of `tries`, of simulated annealing over batches and their
    order.

    In moves that select tasks by a threshold, the threshold applies to the input length, the output
    length or a mixture of their ranks. The arrays `plan` (with rows as in `SLOT`), `counts`
    (numbers of batches) and `seconds` (inference times T_inf) are modified in place. Each of them
    contains entries for the current plan and for the best plan.
    """
    slot, order, best_slot, best_order = plan[SLOT], plan[ORDER], plan[BEST_SLOT], plan[BEST_ORDER]
    K = len(slot)
    batches, _, lines = work_space(K + 2)
    lists = np.full((6, K), -1)
    old_order = lists[OLD_ORDER]
    M = counts[0]
    current, best = seconds[0], seconds[1]
    for k in range(K):
        link(lists, k, slot[k])
        take(data, batches, slot[k], k)
        lists[TARGET, k] = slot[k]
    for m in range(M):
        fill(data, batches, order[m])
    for attempt in range(first, stop):
        kind, a, c, count, place = draw_move(data, ranks, batches, lists, slot, order, M, stream)
        if count < 0:
            continue
        new_M = M
        copy_first(order, old_order, min(K, M + 1))
        if kind >= SPLIT:
            p, q = draw_below(stream, 0, M), draw_below(stream, 0, M)
            if p == q:
                continue
            if kind < EXCHANGE:
                order[p], order[q] = order[q], order[p]
            else:
                shift(order, p, q)
        else:
            new_M = regroup(data, batches, lists, slot, order, M, a, c, count, place)
            if new_M == 0:
                continue
        rated = inference_seconds(data, batches, order, new_M, lines)
        accepted = rated <= current
        if not accepted:
            accepted = rated < current * (
                1.0 + draw_exponential(stream, 0, heat * np.exp(-7.0 * attempt / tries))
            )
        if accepted:
            current = rated
            M = new_M
            for t in range(count):
                k = lists[MOVED, t]
                unlink(lists, k, slot[k])
                slot[k] = lists[TARGET, k]
                link(lists, k, slot[k])
            if current < best * (1.0 - 1e-13):
                best = current
                copy_first(slot, best_slot, K)
                copy_first(order, best_order, K)
                counts[1] = M
        else:
            copy_first(old_order, order, min(K, M + 1))
            if kind < SPLIT:
                put_back(batches, lists, slot, a, c, count)
    counts[0] = M
    seconds[0], seconds[1] = current, best


@helper
def fill_blocks(data, batches, width, ends, first, last):
    """Compute the stage times of the blocks first..last from their ends.

    Return whether these blocks are not empty and fit in memory. If not, the result is incomplete.
    """
    for m in range(last, first - 1, -1):  # descending, so that no index is out of range
        size = ends[m] - (ends[m - 1] if m > 0 else 0)
        if not 0 < size <= width[ends[m]]:
            return False
        batches[m, SIZE], batches[m, TOP] = size, ends[m] - 1
        batches[m, LAST] = data.task[0, STEPS]
        fill(data, batches, m)
    return True


@kernel("f8(i8, Data, i8[::1], f8, i8[:, ::1], u8[::1])")
def improve_blocks(tries, data, width, heat, plan, stream):
    """Run `tries` attempts of simulated annealing over contiguous blocks of sorted tasks and their
    pipeline order. Return the inference time T_inf of the best plan.

    All tasks are assumed to have the same output length. The number of blocks stays the same, and
    a block that ends after e tasks has at most width[e] tasks. The rows of `plan` contain the ends
    of the blocks in sorted order, and the blocks in pipeline order. They are replaced with those of
    the best plan.
    """
    ends, order = plan[0], plan[1]
    M = len(ends)
    batches, _, lines = work_space(M)
    fill_blocks(data, batches, width, ends, 0, M - 1)
    current = best = inference_seconds(data, batches, order, M, lines)
    before, best_plan = plan.copy(), plan.copy()
    for attempt in range(tries):
        before[:] = plan
        i = draw_below(stream, 0, M)
        j = min(M - 1, i + int(M ** draw(stream, 0)))  # more often near i than far from it
        kind = draw_below(stream, 0, 10)
        if kind < ORDERS:
            order[i], order[j] = order[j], order[i]
        elif kind < SIZES:
            ends[i:j] += int(batches[j, SIZE] - batches[i, SIZE])
        else:
            ends[i:j] += int(MAX_MOVED ** draw(stream, 0)) * (2 * draw_below(stream, 0, 2) - 1)
        rated = INFINITY
        if kind < ORDERS or fill_blocks(data, batches, width, ends, i, j):
            rated = inference_seconds(data, batches, order, M, lines)
        warmth = draw_exponential(stream, 0, heat * np.exp(-7.0 * attempt / tries))
        if rated <= current * (1.0 + warmth):
            current = rated
            if current < best:
                best = current
                best_plan[:] = plan
        else:
            plan[:] = before
            if kind >= ORDERS:
                fill_blocks(data, batches, width, ends, i, j)
    plan[:] = best_plan
    return best
