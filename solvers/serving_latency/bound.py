"""Lower bounds on the total serving latency of static plans, for the methods without their own
bound.

The sequential and autoregressive mechanisms are additive over batches: the shortest path over
contiguous batches is their optimum. For the pipelined mechanism the search behind `exact` is
stopped before it enumerates: stage sums, then Lagrangian bounds over pipeline positions, see
`specopt.solvers.serving_latency.pipelined`.

Known output lengths need another argument: form new batches at every decoding step.

A static plan's batches stay together until their longest member has finished. If tasks could be
batched again before every step, finished ones would leave at once and padding would shrink.

Take any plan and a range of steps with first step a and last step z. The tasks that take part in
all of them are A = {k : n_k >= z}. Remove all others from the plan's batches: sizes and maxima
shrink, batches vanish, stage times do not rise, memory is kept. The batches of A that are left are
the same at every step of the range, because no task of A finishes before z. At each step the
makespan (Eq. 20) is at least "all drafting, then the last verification" and at least "the first
drafting, then all verification". Hence it is at least any mixture of the two, which adds up over
batches and over the steps of the range. So the range takes at least the least such cost over

* all partitions of A into batches, one of them first and one last (maybe the same), where
* a batch of b tasks with longest input I must keep b kv (I + O_b) <= free, O_b the b-th smallest
  output length in A.

Contiguity in sorted input length holds *there*: keep the sizes and roles, and hand out the tasks in
sorted order to the batches sorted by longest input. No longest input grows, so neither costs nor
that relaxed memory grow. (It does not hold for plans: outputs matter to those.) The least cost is a
shortest path; the weight of the mixture is free in each range and chosen to raise it. Without
overlap a step lasts the sum of its stage times, and no mixture is needed.

Ranges end where tasks finish, so the cost does not depend on the number of steps; where there are
too many, several are taken together.

Of many tasks another bound is closer, and takes a sort of the tasks only. A step lasts at least as
long as all drafting in it, and as all verification. A pass of b tasks lasts at least as long as any
piece of the runtime says of their own operations, which padding only adds to, and of one overhead.
Each of them pays one share in so many of that as the largest batch has tasks that could hold it:
with its own lengths, as no longest ones in its batch are shorter.
"""

from __future__ import annotations

import numpy as np

from specopt.models.errors import OutOfMemory, OutOfTime
from specopt.models.fields import Ints
from specopt.solvers.budget import Budget
from specopt.solvers.serving_latency.contiguous import additive_batches
from specopt.solvers.serving_latency.pipelined import PipelinedSearch
from specopt.solvers.serving_latency.prepare import Prepared
from specopt.solvers.serving_latency.stages import Stages, stages

_ENTRIES = 3_000_000  # batches rated per speculation length, about: more ranges are taken together
_ENTRIES_PER_CALL = 500_000
_SECONDS_PER_STEP = 5e-7  # of `summed_bound`, for each decoding step
_SECONDS_PER_ENTRY = 2e-8, 2e-7  # of runtimes with one piece, with several, roughly


def lower_bound(prepared: Prepared, budget: Budget) -> float:
    """Return a bound on the objective of every plan under this mechanism.

    The budget must hold a plan; its objective is the largest bound that is worth proving.
    """
    if prepared.problem.output_lengths == "known":
        return rebatching_bound(prepared, budget)
    if prepared.mechanism != "pipelined":
        sums = (
            additive_batches(prepared, length, 1.0, 1.0, budget)[1] for length in prepared.lengths
        )
        return prepared.communication_seconds + min(sums)
    # plans that the search meets on the way are not the method's own and are not offered
    own = Budget(prepared.problem, time_limit=budget.remaining, memory_limit=budget.memory_limit)
    own.objective = budget.objective
    search = PipelinedSearch(prepared, own)
    try:
        return search.certify()
    except (OutOfMemory, OutOfTime) as error:
        budget.cut_short |= isinstance(error, OutOfTime)
        return search.bound


def rebatching_bound(prepared: Prepared, budget: Budget) -> float:
    """Return a lower bound on the objective of every plan under this mechanism; known output
    lengths.
    """
    bounds = []
    for length in prepared.lengths:
        budget.check(seconds_to_bound(prepared, length))
        summed = summed_bound(prepared, length)
        bounds.append(max(summed, inference_bound(stages(prepared, length), budget)))
    return prepared.communication_seconds + min(bounds)


def seconds_to_bound(prepared: Prepared, length: int) -> float:
    """Return about how many seconds `summed_bound` takes."""
    return 0.0 if prepared.tabled else _SECONDS_PER_STEP * stages(prepared, length).steps.max()


def summed_bound(prepared: Prepared, length: int, alone: bool = False) -> float:
    """Return a lower bound on T_inf of every plan at one speculation length, or of tasks alone in
    their batches; zero where runtimes are tabled.
    """
    if prepared.tabled:
        return 0.0
    at = stages(prepared, length)
    inputs, outputs, _, first_draft, again, draft, first_verify, verify = at.arrays[0].T
    more_pass, more_draft, more_verify = at.arrays[1][2:5]
    most = np.floor(prepared.room_for(1.0) * (1.0 + 1e-9) / (inputs + outputs))
    size = np.ones(len(inputs)) if alone else np.maximum(1.0, most)
    n = np.arange(1, at.steps.max() + 1)
    order = np.argsort(-at.steps, kind="stable")
    active = np.searchsorted(-at.steps[order], -n, side="right")
    sums = np.cumsum(np.stack([draft, verify, 1.0 / size])[:, order], axis=1)[:, active - 1]
    drafted = length * (sums[0] + active * ((n - 2) * more_draft + 0.5 * (length - 1) * more_pass))
    verified = sums[1] + active * (n - 2) * more_verify
    again = (length - 1) * (again + 0.5 * (length - 2) * more_pass)
    drafted[0], verified[0] = (first_draft + again).sum() * (length > 0), first_verify.sum()
    batches = np.maximum(1.0, sums[2])
    seconds = [
        np.max([slope * work + height * passes * batches for slope, height, _ in rows], axis=0)
        for rows, work, passes in zip(
            prepared.pieces, (drafted, verified), (length, 1), strict=True
        )
    ]
    return float((np.maximum(*seconds) if at.overlap else np.add(*seconds)).sum() * (1.0 - 1e-9))


def inference_bound(at: Stages, budget: Budget) -> float:
    """Return a lower bound on T_inf of every plan at one speculation length."""
    ends = ends_of(at.steps)
    room = max(8, int(_ENTRIES / entries(at)))
    if len(ends) - 1 > room:  # the prefill step, then ranges of about equally many finishing tasks
        ends = np.unique(
            np.concatenate([ends[:2], ends[np.linspace(1, len(ends) - 1, room, dtype=np.int64)]])
        )
    kernels = budget.load("serving_latency.rebatching")
    seconds = np.zeros(len(ends) - 1)
    by_output = np.argsort(at.prepared.outputs, kind="stable")
    search = np.zeros(kernels.SEARCH_ENTRIES)
    search[kernels.VALUE_WEIGHT] = 0.5
    first = 0
    while first < len(seconds):
        budget.check(_SECONDS_PER_ENTRY[not at.linear] * entries(at))
        stop = min(len(seconds), first + max(1, int(_ENTRIES_PER_CALL / entries(at))))
        kernels.rebatching_ranges(first, stop, at.data, ends, by_output, search, seconds)
        first = stop
    return float(seconds.sum())


def ends_of(steps: Ints) -> Ints:
    """Return 0, 1 and every step after which a task has finished."""
    return np.unique(np.concatenate([[0, 1], steps]))


def entries(at: Stages) -> float:
    """Return about how many batches of sorted tasks fit the memory."""
    prepared = at.prepared
    room = prepared.room_for(float(prepared.inputs.mean() + prepared.outputs.min()))
    return max(1.0, prepared.tasks * max(1.0, min(prepared.tasks / 2, room)))
