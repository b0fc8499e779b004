"""A whole phase of a rebatched plan at once, for plans of so many steps that array by array takes too long.

The rules are those of `rebatched_serving`, task by task and step by step, as a loop that Numba compiles; a test holds
both against each other.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from specopt.models.fields import Floats, Ints

DRAFT, VERIFY = range(2)
INPUT, OUTPUT, TARGET, TOKENS, OTHERS, COUNT, UNSEEN, JOINED = range(8)
"""Columns of tasks: I_k, Q_k, what g_k has to reach; tokens per step of this phase, what was gained at other lengths,
steps at this one; what the draft model lacks, and the first step served, or 0."""


def serve(
    task: Floats, ready: Floats, finish: Floats, batch_of: Ints, before: Ints, lengths: Ints, waiting: Ints,
    models: Floats, pieces: Floats, setting: tuple[float, int, int, bool, float, float], needed: Floats,
) -> tuple[float, int]:  # fmt: skip
    """Serve the steps of a phase; return the clock and the next step.

    Parameters
    ----------
    task
        A row for each task, see above; columns from COUNT on are written to.
    ready, finish
        When each task is ready; where to write when it has finished.
    batch_of, before, lengths
        Batch of each task in this phase and in the one before; speculation length of each batch.
    waiting
        Unfinished tasks by readiness, those that are ready by batch.
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
    size_of, new_of = np.zeros(len(lengths), dtype=np.int64), np.zeros(len(lengths), dtype=np.int64)
    tally, times = np.zeros(len(task), dtype=np.int64), np.zeros(2)
    start = np.zeros(len(lengths) + 1, dtype=np.int64)
    for k in waiting:
        start[batch_of[k] + 1] += 1
    start = np.cumsum(start)
    members, live = np.empty(len(waiting), dtype=np.int64), np.empty(len(lengths), dtype=np.int64)
    alive = joined = 0
    while step <= last and alive + len(waiting) - joined > 0:
        if alive == 0:
            clock = max(clock, ready[waiting[joined]])
        while joined < len(waiting) and ready[waiting[joined]] <= clock * (1.0 + rounding):
            k = waiting[joined]
            m = batch_of[k]
            if size_of[m] == 0:  # it takes its place in the pipeline
                place = alive
                while place > 0 and live[place - 1] > m:
                    live[place] = live[place - 1]
                    place -= 1
                live[place] = m
                alive += 1
            members[start[m] + size_of[m]] = k
            size_of[m] += 1
            new_of[m] += task[k, JOINED] == 0.0
            joined += 1
        drafted = done = 0.0
        kept = 0
        for place in range(alive):
            m = live[place]
            length = lengths[m]
            for prefill in (True, False):  # members in their first step run before the rest
                if prefill and new_of[m] == 0:
                    continue
                b, reached, unseen, held, together = 0, 0.0, 0.0, 0.0, 0
                for i in range(start[m], start[m] + size_of[m]):
                    k = members[i]
                    if (task[k, JOINED] == 0.0) if prefill else (0.0 < task[k, JOINED] < step):
                        gained = task[k, OTHERS] + task[k, COUNT] * task[k, TOKENS]
                        after = task[k, OTHERS] + (task[k, COUNT] + 1.0) * task[k, TOKENS]
                        b += 1
                        reached = max(reached, task[k, INPUT] + gained)
                        unseen = max(unseen, task[k, UNSEEN])
                        held = max(held, task[k, INPUT] + min(task[k, OUTPUT], after))
                        if regroup > 0.0:
                            tally[before[k]] += 1
                            together = max(together, tally[before[k]])
                if b == 0:
                    continue
                times[:] = 0.0
                for i in range(length + 1):  # drafts, then the verification
                    which = DRAFT if i < length else VERIFY
                    first = reached if prefill else 1.0 + unseen
                    new = (first if i == 0 else 1.0) if i < length else (reached if prefill else 1.0) + length
                    flops = models[which, 0] * new + models[which, 1] * new * (reached + i)
                    flops += models[which, 2] * (1 if i < length else 1 + length)
                    slowest = 0.0
                    for piece in range(pieces.shape[1]):
                        slowest = max(slowest, pieces[which, piece, 0] * flops * b + pieces[which, piece, 1])
                    times[which] += slowest
                moved = 0.0 if prefill else regroup * (b - together)
                drafted = (drafted if overlap else done) + times[DRAFT] + (moved if length > 0 else 0.0)
                done = max(drafted, done) + times[VERIFY] + moved  # Eq. 20
                for which in range(VERIFY if length == 0 else DRAFT, 2):
                    needed[which, m] = max(needed[which, m], b * models[which, 3] * held)
                some = 0
                for i in range(start[m], start[m] + size_of[m]):
                    k = members[i]
                    if (task[k, JOINED] == 0.0) if prefill else (0.0 < task[k, JOINED] < step):
                        new_of[m] = 0
                        if regroup > 0.0:
                            tally[before[k]] = 0
                        task[k, COUNT] += 1.0
                        task[k, UNSEEN] = 0.0 if length > 0 else task[k, UNSEEN] + 1.0
                        if prefill:
                            task[k, JOINED] = step
                        if task[k, OTHERS] + task[k, COUNT] * task[k, TOKENS] >= task[k, TARGET]:
                            finish[k] = clock + done
                            continue
                    members[start[m] + some] = k
                    some += 1
                size_of[m] = some
            if size_of[m] > 0:
                live[kept] = m
                kept += 1
        alive = kept
        clock += done
        step += 1
        regroup = 0.0
    return clock, step


@cache
def compiled() -> Any:
    """Return `serve`, compiled, and kept for later processes where there is a place for it."""
    from numba import njit

    try:
        return njit(serve, cache=True, nogil=True)
    except RuntimeError:  # nowhere to write
        return njit(serve, nogil=True)
