"""Kernels that choose the batches of one online serving step: which tasks use drafts, how many
tokens they draft, and how they are batched.

Output lengths are unknown, so a choice is evaluated as if every active task had a fixed number of
tokens left to gain. The cost of a choice is the sum of two durations. The first is the duration of
the current step, including prompts and all tokens that the draft model has not processed. The
second is the time for the remaining tokens, at the pace of the next step with the same choice.
Tasks that join in the meantime are assumed to wait for half a step. Tasks without drafts are served
first, because their verification overlaps with the drafting of other tasks.
"""

import math

import numpy as np

from specopt.solvers.kernels.acceptance import expected_tokens
from specopt.solvers.kernels.kernel import helper, inlined, kernel, record
from specopt.solvers.kernels.sorting import sort_by
from specopt.solvers.serving_latency.kernels.stages import (
    DRAFT,
    INFINITY,
    VERIFY,
    stage_seconds,
)
from specopt.solvers.serving_latency.kernels.step import served

ENDS = 16  # maximum number of positions at which the batches of one group may end
BATCHES = 5  # maximum number of batches of a group past its first step, unless memory requires more
SEEN = 1.5  # tokens: a task with fewer unseen tokens needs no extra processing

Server = record(
    "Server",
    models="f8[:, ::1]",  # operations per token, per pair of tokens and per logit, for both models
    # KV bytes per token and free bytes of the draft model, then the same for the verify model
    memory="f8[::1]",
    runtimes="f8[:, :, ::1]",
    overlap="b1",
)
Active = record(
    "Active",  # the active tasks
    reached="f8[::1]",  # tokens reached
    unseen="f8[::1]",  # tokens that the draft model must process in its next pass
    first="b1[::1]",  # whether this is the task's first step
    rate="f8[::1]",  # acceptance rate
)
Room = record(
    "Room",
    drafted="f8[:, ::1]",
    done="f8[:, ::1]",
    before="i8[:, ::1]",
    times="f8[:, :, ::1]",
    blocks="f8[:, ::1]",
    order="i8[::1]",
    group="i8[:, ::1]",
    count="i8[::1]",
    cuts="i8[:, ::1]",
    finish="f8[:, ::1]",
    gain="f8[:, ::1]",
    most="i8",
)
"""Work space for choosing the batches of a step.

The first five fields are tables for batching one group of tasks. `order` contains the tasks sorted
by the number of tokens reached. `group` and `count` contain the groups of tasks and their sizes.
For each group, `cuts` contains the ends of the batches, and `finish` contains the times at which
the verification of these batches ends. `gain` contains the number of tokens that each task gains,
without and with drafts. `most` is the maximum number of batches in a group of tasks that are past
their first step.
"""


@helper
def room_for(active, most_ends, most):
    """Allocate the work space for the active tasks. In each group, batches may end at up to
    `most_ends` positions.
    """
    A, size = len(active.reached), most_ends + 1
    order = np.arange(A)
    sort_by(active.reached, order)
    return Room(
        np.empty((size, size)),
        np.empty((size, size)),
        np.empty((size, size), np.int64),
        np.empty((size, size, 2)),
        np.empty((2, size)),
        order,
        np.empty((4, A), np.int64),
        np.empty(4, np.int64),
        np.empty((4, A + 1), np.int64),
        np.empty((4, A + 1)),
        np.ones((2, A)),
        most,
    )


@inlined
def holds(server, b, tokens, l):
    """Return whether a batch of b tasks fits in the memory of the models that it uses.

    Each task has `tokens` tokens, and l is the number of draft tokens per step. The draft model is
    used if l > 0.
    """
    memory = server.memory
    return b * memory[2] * tokens <= memory[3] and (l == 0 or b * memory[0] * tokens <= memory[1])


@helper
def set_gains(active, l, room):
    """Compute the expected number of tokens that each task gains in a step with l draft tokens (Eq.
    7), and store it in the work space.
    """
    for k in range(len(active.rate)):
        a = active.rate[k]
        room.gain[1, k] = expected_tokens(a, math.log(a) if a > 0.0 else -INFINITY, l)


@helper
def first_verified(overlap, most, times, G, drafted, done, before):
    """Combine the blocks 0..G-1, in order, into at most `most` batches such that the verification
    of the last batch ends as early as possible.

    A block is a set of consecutive tasks that stay together. For every number m of batches and
    every end e, the sequence of batches whose verification ends first is kept. The first batch
    begins when the stages become free, at drafted[0, 0] and done[0, 0]. times[e, j] contains the
    stage times of a batch of the blocks j..e-1. The verify time is infinite if the batch does not
    fit in memory, and longer batches with the same end are then assumed not to fit either.

    Return the best number of batches, or 0 if no sequence fits. Batch m ends at before[m + 1, end
    of batch m + 1].
    """
    for m in range(most + 1):
        for e in range(G + 1):
            if m + e > 0:
                done[m, e] = INFINITY
    best = 0
    for m in range(1, most + 1):
        for e in range(m, G + 1):
            for j in range(
                e - 1, m - 2, -1
            ):  # short runs first: stop at the first run that does not fit
                if times[e, j, VERIFY] == INFINITY:
                    break
                if done[m - 1, j] == INFINITY:
                    continue
                ready, end = served(
                    overlap,
                    drafted[m - 1, j],
                    done[m - 1, j],
                    times[e, j, DRAFT],
                    times[e, j, VERIFY],
                )
                if end < done[m, e]:
                    drafted[m, e], done[m, e], before[m, e] = ready, end, j
        if done[m, G] < done[best, G]:
            best = m
    return best


@helper
def chain(server, active, tasks, l, first, caught_up, falling, drafted, done, room, g):
    """Divide a group of tasks into contiguous batches, which are served after the batches of
    earlier groups. The tasks are sorted by the number of tokens reached, in increasing order.

    For every number of batches and every prefix of the tasks, the sequence of batches whose
    verification ends first is kept. The first batch begins when the stages become free, at
    `drafted` and `done`. Return the times at which the stages become free again. The number of
    batches is stored in cuts[0], and the batches end at cuts[1], cuts[2], ...
    """
    n = len(tasks)
    cuts, finish = room.cuts[g], room.finish[g]
    cuts[0] = 0
    if n == 0:
        return drafted, done
    G = min(n, room.blocks.shape[1] - 1)
    most = G if first else min(G, room.most)
    for j in range(G):
        room.blocks[0, j], room.blocks[1, j] = 0.0, 1.0
        for p in range(j * n // G, (j + 1) * n // G):
            k = tasks[n - 1 - p if falling else p]
            room.blocks[0, j] = max(room.blocks[0, j], active.reached[k] + room.gain[int(l > 0), k])
            if not caught_up:
                room.blocks[1, j] = max(room.blocks[1, j], active.unseen[k])
    for e in range(1, G + 1):
        end = e * n // G
        unseen = 1.0
        tokens = 0.0
        for j in range(e - 1, -1, -1):
            begin = j * n // G
            longest = active.reached[tasks[n - 1 - begin if falling else end - 1]]
            tokens, unseen = max(tokens, room.blocks[0, j]), max(unseen, room.blocks[1, j])
            b = float(end - begin)
            if b > 1.0 and not holds(server, b, tokens, l):
                room.times[e, j, VERIFY] = INFINITY
                break
            d, v = stage_seconds(server.models, server.runtimes, b, longest, unseen, l, first)
            room.times[e, j, DRAFT], room.times[e, j, VERIFY] = d, v
    room.drafted[0, 0], room.done[0, 0] = drafted, done
    best = first_verified(server.overlap, most, room.times, G, room.drafted, room.done, room.before)
    if best == 0:  # memory is scarce
        return fill_up(server, active, tasks, l, first, caught_up, falling, drafted, done, room, g)
    cuts[0] = best
    e = G
    for m in range(best, 0, -1):
        cuts[m], finish[m] = e * n // G, room.done[m, e]
        e = room.before[m, e]
    return room.drafted[best, G], room.done[best, G]


@helper
def fill_up(server, active, tasks, l, first, caught_up, falling, drafted, done, room, g):
    """Divide a group of tasks into batches like `chain`, but make each batch as large as memory
    allows.

    A task that is alone in its batch is assumed to fit in memory.
    """
    n, cuts = len(tasks), room.cuts[g]
    begin = 0
    while begin < n:
        longest = tokens = 0.0
        unseen = 1.0
        end = begin
        while end < n:
            k = tasks[n - 1 - end if falling else end]
            more = max(tokens, active.reached[k] + room.gain[int(l > 0), k])
            if end > begin and not holds(server, end + 1.0 - begin, more, l):
                break
            tokens = more
            longest = max(longest, active.reached[k])
            if not caught_up:
                unseen = max(unseen, active.unseen[k])
            end += 1
        d, v = stage_seconds(
            server.models, server.runtimes, float(end - begin), longest, unseen, l, first
        )
        drafted, done = served(server.overlap, drafted, done, d, v)
        cuts[0] += 1
        cuts[cuts[0]], room.finish[g, cuts[0]] = end, done
        begin = end
    return drafted, done


@helper
def groups(server, active, room, drafting, may_pause, steady):
    """Divide the active tasks into four groups. Each group is sorted by the number of tokens
    reached, in increasing order.

    The groups distinguish tasks that draft from tasks that do not draft, and first steps from later
    steps. `drafting` selects the tasks that draft: no tasks (0), tasks whose tokens the draft model
    has processed (1), those tasks and newcomers (2), or all tasks (3). If `may_pause` is true, a
    task that does not fit in the draft model's memory, even when it is alone, does not draft. In a
    `steady` step, no task is treated as being in its first step.
    """
    room.count[:] = 0
    for k in room.order:
        first = active.first[k]
        seen = not first and active.unseen[k] <= SEEN
        drafts = drafting == 3 or (drafting == 2 and first) or (drafting >= 1 and seen)
        drafts = drafts and (
            not may_pause or holds(server, 1.0, active.reached[k] + room.gain[1, k], 1)
        )
        g = 2 * int(drafts) + int(first and not steady)
        room.group[g, room.count[g]] = k
        room.count[g] += 1


@helper
def tokens(room):
    """Return the total number of tokens that all active tasks gain in a step."""
    total = 0.0
    for g in range(4):
        for k in room.group[g, : room.count[g]]:
            total += room.gain[g // 2, k]
    return total


@helper
def serve(server, active, room, l, falling, swapped, steady):
    """Form the batches of all groups, record them in the work space, and return the duration of the
    step in seconds.
    """
    drafted = done = 0.0
    for place in range(4):
        g = place if place < 2 or not swapped else 5 - place
        tasks = room.group[g, : room.count[g]]
        first = g & 1 == 1 and not steady
        drafted, done = chain(
            server,
            active,
            tasks,
            l if g >= 2 else 0,
            first,
            steady,
            falling,
            drafted,
            done,
            room,
            g,
        )
    return done


@helper
def arrange(server, active, room, l, members, ends, guesses, finish):
    """Form the batches of all groups in the fastest of four orders. Return the duration of the
    step, in seconds, and the number of batches. The four arrays are modified as in `choose`.
    """
    least, form = INFINITY, 0
    # if the order takes no time, short tasks first; swapping needs two groups that draft
    for choice in range(4 if room.count[2] * room.count[3] > 0 else 2):
        seconds = serve(server, active, room, l, choice & 1 == 1, choice & 2 == 2, False)
        if seconds < least:
            least, form = seconds, choice
    falling, swapped = form & 1 == 1, form & 2 == 2
    seconds = serve(server, active, room, l, falling, swapped, False)
    M = filled = 0
    for place in range(4):
        g = place if place < 2 or not swapped else 5 - place
        n, begin = room.count[g], 0
        for m in range(1, room.cuts[g, 0] + 1):
            for p in range(begin, room.cuts[g, m]):
                members[filled] = room.group[g, n - 1 - p if falling else p]
                filled += 1
            begin = room.cuts[g, m]
            ends[M], finish[M], guesses[M] = filled, room.finish[g, m], l if g >= 2 else 0
            M += 1
    return seconds, M


@kernel(
    "Tuple((f8, i8))(Server, Active, const i8[::1], f8, f8, i8[::1], i8[::1], i8[::1], f8[::1])"
)
def choose(server, active, lengths, stay, joining, members, ends, guesses, finish):
    """Choose the batches of a step. Return the duration of the step, in seconds, and the number of
    batches.

    `lengths` contains the allowed speculation lengths in increasing order. If it includes 0, tasks
    may skip drafting. `stay` is the number of tokens that each task is expected to gain until it
    finishes. `joining` is the number of tasks that join per second of service.

    The arrays `members`, `ends`, `finish` and `guesses` are modified in place. Batch m contains the
    tasks members[ends[m - 1]:ends[m]] and has guesses[m] draft tokens. The verification of batch m
    ends at finish[m].
    """
    A, room = len(active.reached), room_for(active, ENDS, BATCHES)
    # tasks that the draft model has seen, newcomers, tasks with unseen tokens
    has = np.zeros(3, np.bool_)
    for k in range(A):
        has[1 if active.first[k] else 2 if active.unseen[k] > SEEN else 0] = True
    best, best_drafting, best_length = INFINITY, 0, 0
    for l in lengths:
        set_gains(active, l, room)
        for drafting in range(4):
            if (l == 0) != (drafting == 0) or (
                0 < drafting < 3 and (lengths[0] > 0 or not has[drafting - 1])
            ):
                continue
            if drafting == 3 and lengths[0] == 0 and not has[2]:
                continue  # identical to another choice
            groups(server, active, room, drafting, lengths[0] == 0, True)
            gained = tokens(room)
            seconds = serve(server, active, room, l, True, False, True)
            pace = seconds / gained
            rated = pace * A * stay * (1.0 + 0.5 * joining * seconds / A)
            if has[1] or drafting == 3:
                groups(server, active, room, drafting, lengths[0] == 0, False)
                rated += serve(server, active, room, l, True, False, False) - pace * gained
            if rated < best:
                best, best_drafting, best_length = rated, drafting, l
    set_gains(active, best_length, room)
    groups(server, active, room, best_drafting, lengths[0] == 0, False)
    return arrange(server, active, room, best_length, members, ends, guesses, finish)


@kernel(
    "Tuple((f8, i8))(Server, Active, f8[::1], i8, i8, i8, i8[::1], i8[::1])",
    steps=lambda server, active, gain, l, most_ends, most, members, ends: (
        150 + most * min(len(members), most_ends) ** 2
    ),
)
def form(server, active, gain, l, most_ends, most, members, ends):
    """Form pipelined batches of tasks that draft l tokens. Return the duration of the step, in
    seconds, and the number of batches.

    `gain` contains the number of tokens by which each task grows in memory. The arrays `members`
    and `ends` are modified in place. Batch m contains the tasks members[ends[m - 1]:ends[m]].
    """
    A, room = len(members), room_for(active, most_ends, most)
    for k in range(A):
        room.gain[:, k] = gain[k]
    groups(server, active, room, 3 * int(l > 0), False, False)
    return arrange(server, active, room, l, members, ends, np.empty(A, np.int64), np.empty(A))
