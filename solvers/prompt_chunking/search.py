"""A search for short times to first token: geometric chunks and chunks by a deadline, polished by moves, then more.

Where chunks do not queue that is enough. What comes then is a kernel of its own: other prompts alone compile it.
"""

from __future__ import annotations

import math

import numpy as np

from specopt.models.errors import OutOfTime
from specopt.models.fields import Ints
from specopt.solvers.budget import Budget
from specopt.solvers.prompt_chunking.method import call, plan_of
from specopt.solvers.prompt_chunking.prepare import Prepared, work_space

MAX_GEOMETRIC = 32
"""Geometric chunks at most."""

LATE_KERNELS = "prompt_chunking_search:polish", "prompt_chunking_search:search"
"""What is compiled after the bound and the starts."""


def search(prepared: Prepared, effort: int, budget: Budget) -> Ints:
    """Return the chunks of the best plan of a short search; none if the time is up before there is any.

    effort: the most stages to play.
    """
    assert budget.bound is not None
    most, prompt = min(prepared.most, prepared.cells), prepared.prompt
    families = budget.load("prompt_chunking_families")
    kernels = budget.load("prompt_chunking_search")
    work = work_space(prepared, most)
    out, current = np.empty(prepared.cells + 2, dtype=np.int64), work.current
    value, chunks, spent = math.inf, 0, 0
    for start in range(2):
        work.left[0] = effort - spent
        if start == 0:
            few = min(most, MAX_GEOMETRIC)
            count = call(budget, families.best_geometric, few, prompt, work, current, partial=True)
        else:
            arguments = most, prompt, budget.bound, value, 1.0, work, current
            count = call(budget, kernels.earliest_deadline, *arguments, partial=True)
        spent = effort - int(work.left[0])
        if 0 < count <= most:
            work.left[0] = share = effort // 12
            count, found = call(budget, kernels.polish, count, most, prompt, False, work, current, partial=True)
            spent += max(1, share) - int(work.left[0])
            if found < value:
                value, chunks = found, count
                out[: count + 1] = current[: count + 1]
        if value <= budget.bound * (1.0 + kernels.PROVEN):
            return prepared.chunks(out[: chunks + 1])
    try:
        go_on = kernels.search
    except OutOfTime:
        if chunks:
            budget.offer(plan_of(prepared.chunks(out[: chunks + 1])))
        raise
    rest = chunks, most, effort, spent, value, budget.bound, prompt, work, out
    chunks = call(budget, go_on, *rest, partial=True)
    return prepared.chunks(out[: chunks + 1] if chunks else out[:0])
