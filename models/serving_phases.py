"""A whole phase of a rebatched plan at once, for plans of so many steps that array by array takes too long.

The rules are those of `rebatched_serving`, task by task and step by step, in loops that Numba compiles; a test holds
both against each other. It is imported where it is used, as Numba takes long to import.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numba import njit

from specopt.models.fields import Floats, Ints, Truths

DRAFT, VERIFY = range(2)
INPUT, OUTPUT, TARGET, TOKENS, OTHERS, COUNT, UNSEEN = range(7)
"""Columns of tasks: I_k, Q_k, what g_k has to reach; tokens per step of this phase, what was gained at other lengths,
steps at this one; what the draft model lacks."""


def _kept(function: Callable[..., Any]) -> Any:
    """Return a function compiled when it is called, and kept for later processes where there is a place for it."""
    try:
        return njit(cache=True, nogil=True)(function)
    except RuntimeError:  # nowhere to write
        return njit(nogil=True)(function)


def _inlined(function: Callable[..., Any]) -> Any:
    """Return a function whose code is copied to every call: calls with many arrays took three times as long."""
    return njit(inline="always")(function)


@_inlined
def _stages(
    b: int, reached: float, first: float, length: int, prefill: bool, models: Floats, pieces: Floats
) -> tuple[float, float]:
    """Return T^d and T^v of a run of b tasks; `first` are the new tokens of the first draft pass after the prompt's."""
    drafting = verifying = 0.0
    for i in range(length + 1):  # drafts, then the verification
        which, logits = (DRAFT, 1) if i < length else (VERIFY, 1 + length)
        new = (reached if prefill else first) if i == 0 else 1.0
        if which == VERIFY:
            new = (reached if prefill else 1.0) + length
        flops = models[which, 0] * new + models[which, 1] * new * (reached + i) + models[which, 2] * logits
        slowest = 0.0
        for piece in range(pieces.shape[1]):
            slowest = max(slowest, pieces[which, piece, 0] * flops * b + pieces[which, piece, 1])
        if which == DRAFT:
            drafting += slowest
        else:
            verifying = slowest
    return drafting, verifying


@_inlined
def _enter(m: int, live: Ints, alive: int) -> int:
    """Give a batch its place in the pipeline; return how many are in it."""
    place = alive
    while place > 0 and live[place - 1] > m:
        live[place] = live[place - 1]
        place -= 1
    live[place] = m
    return alive + 1


@_inlined
def _run(
    run: tuple[int, int, int, int, bool], state: tuple[float, float, float, bool, float], task: Floats, finish: Floats,
    before: Ints, tally: Ints, members: Ints, models: Floats, pieces: Floats, needed: Floats,
) -> tuple[float, float, int]:  # fmt: skip
    """Serve a run in one step; return when the stages are free, and how many members are left, moved to its front.

    Parameters
    ----------
    run
        Its place among the members, its batch and speculation length, and whether this is their first step.
    state
        Clock, when the stages are free, whether those of batches overlap, and seconds to move a sequence.
    task, finish, before, models, pieces, needed
        As in `serve`.
    tally
        Work space: zeros.
    members
        Tasks.
    """
    low, high, m, length, prefill = run
    clock, drafted, done, overlap, regroup = state
    reached = unseen = held = 0.0
    together = 0
    for k in members[low:high]:
        gained = task[k, OTHERS] + task[k, COUNT] * task[k, TOKENS]
        after = task[k, OTHERS] + (task[k, COUNT] + 1.0) * task[k, TOKENS]
        reached = max(reached, task[k, INPUT] + gained)
        unseen = max(unseen, task[k, UNSEEN])
        held = max(held, task[k, INPUT] + min(task[k, OUTPUT], after))
        if regroup > 0.0:
            tally[before[k]] += 1
            together = max(together, tally[before[k]])
    drafting, verifying = _stages(high - low, reached, 1.0 + unseen, length, prefill, models, pieces)
    moved = regroup * (high - low - together)
    drafted = (drafted if overlap else done) + drafting + (moved if length > 0 else 0.0)
    done = max(drafted, done) + verifying + moved  # Eq. 20
    for which in range(VERIFY if length == 0 else DRAFT, 2):
        needed[which, m] = max(needed[which, m], (high - low) * models[which, 3] * held)
    left = 0
    for i in range(low, high):
        k = members[i]
        if regroup > 0.0:
            tally[before[k]] = 0
        task[k, COUNT] += 1.0
        task[k, UNSEEN] = 0.0 if length > 0 else task[k, UNSEEN] + 1.0
        if task[k, OTHERS] + task[k, COUNT] * task[k, TOKENS] >= task[k, TARGET]:
            finish[k] = clock + done
        else:
            members[low + left] = k
            left += 1
    return drafted, done, left


@_kept
def serve(
    task: Floats, ready: Floats, finish: Floats, served: Truths, batch_of: Ints, before: Ints, lengths: Ints,
    waiting: Ints, models: Floats, pieces: Floats, setting: tuple[float, int, int, bool, float, float], needed: Floats,
) -> tuple[float, int]:  # fmt: skip
    """Serve the steps of a phase; return the clock and the next step.

    Parameters
    ----------
    task
        A row for each task, see above; the last two columns are written to.
    ready, finish, served
        When each task is ready; where to write when it has finished; whether it has been served in a phase before.
    batch_of, before, lengths
        Batch of each task in this phase and in the one before; speculation length of each batch.
    waiting
        Unfinished tasks by readiness; those that are ready by batch, of a batch those first that have been served.
    models
        Operations per token, per pair and per logit, and bytes per token, of draft and verify model.
    pieces
        Seconds per operation and overhead of every piece, by model; zeros where one has fewer.
    setting
        Clock, step, last step of the phase, whether the stages of batches overlap, seconds to move a sequence, and
        the relative distance within which a clock is reached.
    needed
        Most bytes of cache of each batch, by model; written to.
    """
    clock, step, last, overlap, regroup, rounding = setting
    size_of, new_of = np.zeros(len(lengths), np.int64), np.zeros(len(lengths), np.int64)
    tally, start = np.zeros(len(task), np.int64), np.zeros(len(lengths) + 1, np.int64)
    for k in waiting:
        start[batch_of[k] + 1] += 1
    start = np.cumsum(start)
    members, live = np.empty(len(waiting), np.int64), np.empty(len(lengths), np.int64)
    alive = joined = 0
    while step <= last and alive + len(waiting) - joined > 0:
        if alive == 0:
            clock = max(clock, ready[waiting[joined]])
        while joined < len(waiting) and ready[waiting[joined]] <= clock * (1.0 + rounding):
            k = waiting[joined]
            m = batch_of[k]
            if size_of[m] == 0:
                alive = _enter(m, live, alive)
            members[start[m] + size_of[m]] = k
            size_of[m] += 1
            new_of[m] += not served[k]
            joined += 1
        drafted = done = 0.0
        there, alive = alive, 0
        for m in live[:there]:
            old = new = 0
            end = start[m] + size_of[m]
            middle = end - new_of[m]
            for low, high in ((middle, end), (start[m], middle)):  # members in their first step run before the rest
                if low == high:
                    continue
                prefill = low == middle
                drafted, done, left = _run(
                    (low, high, m, lengths[m], prefill),
                    (clock, drafted, done, overlap, 0.0 if prefill else regroup),
                    task, finish, before, tally, members, models, pieces, needed,
                )  # fmt: skip
                old, new = (old, left) if prefill else (left, new)
            for i in range(new):
                members[start[m] + old + i] = members[middle + i]
            size_of[m], new_of[m] = old + new, 0
            if old + new > 0:
                live[alive] = m
                alive += 1
        clock += done
        step += 1
        regroup = 0.0
    return clock, step
