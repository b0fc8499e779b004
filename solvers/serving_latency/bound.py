"""Lower bounds on the total latency of static plans, for methods that do not compute a bound
themselves.

For the sequential and autoregressive mechanisms, the latency is additive over batches, so a
shortest path over contiguous batches is optimal. For the pipelined mechanism, the search of the
method `exact` runs until it would start to enumerate plans. It computes bounds from stage sums and
then Lagrangian bounds over pipeline positions (see `specopt.solvers.serving_latency.pipelined`).

For known output lengths, the bound comes from a relaxation in which new batches are formed at every
decoding step.

The batches of a static plan stay together until their longest task has finished. If new batches
could be formed before every step, finished tasks would leave immediately and padding would shrink.

Consider any plan and a range of steps with first step a and last step z. The set of tasks that take
part in every step of the range is A = {k : n_k >= z}. Remove all other tasks from the plan's
batches. Batch sizes and longest lengths do not increase, so stage times do not increase and memory
limits still hold. The remaining batches of A are the same at every step of the range, because no
task of A finishes before z. At each step, the makespan (Eq. 20) is at least "all drafting, then the
last verification" and at least "the first drafting, then all verification". Hence the makespan is
at least any mixture of these two durations, which is additive over batches and over the steps of
the range. So the duration of the range is at least the minimum of this cost over

* all partitions of A into batches, with one first batch and one last batch (possibly the same),
  where
* a batch of b tasks with longest input I must satisfy b kv (I + O_b) <= free, where O_b is the b-th
  smallest output length in A.

In this relaxation, batches can be assumed contiguous in sorted input length: keep the sizes and
roles, and distribute the tasks in sorted order to the batches sorted by longest input. No longest
input grows, so neither costs nor the relaxed memory grow. (The assumption is not valid for plans,
because outputs matter to them.) The minimum cost is the length of a shortest path. The weight of
the mixture is free in each range and is chosen to raise the bound. Without overlap, the duration of
a step is the sum of its stage times, and no mixture is needed.

Ranges end where tasks finish, so the computational cost does not depend on the number of steps. If
there are too many ranges, some ranges are combined.

For many tasks, a second bound is tighter and requires only sorting the tasks. A step lasts at least
as long as all drafting in the step, and at least as long as all verification. A runtime is the
maximum of several affine functions of the operation count, called pieces. For each piece, a pass of
b tasks lasts at least as long as the operations of the tasks without padding, plus one overhead.
Each task is charged an equal share of the overhead, as if its batch were the largest that could
contain the task. That size follows from the task's own lengths, since the longest lengths of its
batch are no shorter.
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

_ENTRIES = 3_000_000  # batches rated per speculation length, roughly; above it, ranges are combined
_ENTRIES_PER_CALL = 500_000
_SECONDS_PER_STEP = 5e-7  # per decoding step, for `summed_bound`
_SECONDS_PER_ENTRY = 2e-8, 2e-7  # for runtimes with one piece and with several pieces, roughly


def lower_bound(prepared: Prepared, budget: Budget) -> float:
    """Return a lower bound on the total latency, in seconds, of every plan with this mechanism.

    The budget must already hold a plan. The search for a bound may stop once it reaches the
    objective of that plan.
    """
    if prepared.problem.output_lengths == "known":
        return rebatching_bound(prepared, budget)
    if prepared.mechanism != "pipelined":
        sums = (
            additive_batches(stages(prepared, length), (1.0, 1.0), budget)[1]
            for length in prepared.lengths
        )
        return prepared.communication_seconds + min(sums)
    # plans found during the search are not the calling method's, so they are not offered
    own = Budget(prepared.problem, time_limit=budget.remaining, memory_limit=budget.memory_limit)
    own.objective = budget.objective
    search = PipelinedSearch(prepared, own)
    try:
        return search.certify()
    except (OutOfMemory, OutOfTime) as error:
        budget.cut_short |= isinstance(error, OutOfTime)
        return search.bound


def rebatching_bound(prepared: Prepared, budget: Budget) -> float:
    """Return a lower bound on the total latency, in seconds, of every plan with this mechanism, for
    known output lengths.
    """
    bounds = []
    for length in prepared.lengths:
        budget.check(seconds_to_bound(prepared, length))
        summed = summed_bound(prepared, length)
        bounds.append(max(summed, inference_bound(stages(prepared, length), budget)))
    return prepared.communication_seconds + min(bounds)


def seconds_to_bound(prepared: Prepared, length: int) -> float:
    """Estimate how long a call of `summed_bound` takes, in seconds."""
    return 0.0 if prepared.tabled else _SECONDS_PER_STEP * stages(prepared, length).steps.max()


def summed_bound(prepared: Prepared, length: int, alone: bool = False) -> float:
    """Return a lower bound on the inference time T_inf, in seconds, of every plan at one
    speculation length.

    If `alone` is true, the bound holds only for plans in which every batch contains a single task.
    The bound is zero if runtimes are given as tables.
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
    """Return a lower bound on the inference time T_inf, in seconds, of every plan at one
    speculation length.

    The bound comes from a relaxation in which new batches are formed at every decoding step.
    """
    ends = ends_of(at.steps)
    room = max(8, int(_ENTRIES / entries(at)))
    if len(ends) - 1 > room:  # the prefill, then ranges in which about equally many tasks finish
        ends = np.unique(
            np.concatenate([ends[:2], ends[np.linspace(1, len(ends) - 1, room, dtype=np.int64)]])
        )
    kernels = budget.load("serving_latency.rebatching")
    found = np.full((2, len(ends) - 1), 0.5)
    by_output = np.argsort(at.prepared.outputs, kind="stable")
    first = 0
    while first < len(ends) - 1:
        budget.check(_SECONDS_PER_ENTRY[not at.linear] * entries(at))
        stop = min(len(ends) - 1, first + max(1, int(_ENTRIES_PER_CALL / entries(at))))
        kernels.rebatching_ranges(first, stop, at.data, ends, by_output, found)
        first = stop
    return float(found[kernels.BOUND].sum())


def ends_of(steps: Ints) -> Ints:
    """Return the ends of the step ranges: 0, 1, and every step at which some task finishes."""
    return np.unique(np.concatenate([[0, 1], steps]))


def entries(at: Stages) -> float:
    """Estimate the number of batches of consecutive sorted tasks that fit in memory."""
    prepared = at.prepared
    room = prepared.room_for(float(prepared.inputs.mean() + prepared.outputs.min()))
    return max(1.0, prepared.tasks * max(1.0, min(prepared.tasks / 2, room)))
