"""The method `exact` for `prompt-chunking`. Unless labels run out, its plan is proven optimal.

The method searches over deadlines for the first token. A labelling algorithm over chunk boundaries
decides whether any plan meets a deadline.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from specopt.models.fields import Ints, PositiveInt
from specopt.models.prompt_chunking.problem import PromptChunkingProblem
from specopt.solvers.budget import Budget
from specopt.solvers.method import Outcome, at_most
from specopt.solvers.prompt_chunking.deadline import enumerate_plans, search
from specopt.solvers.prompt_chunking.method import (
    PromptChunkingMethod,
    SearchingMethod,
    places,
    plan_of,
    prepare_and_bound,
)

CLOSE = 4e-10
"""Minimum relative improvement on the incumbent that a new deadline must require."""

SLIP = 1e-10
"""Total relative loss that may result from dropping labels that are slightly better than others.

The loss is summed along a path from the first token to the last.
"""

ENOUGH = 6e-10
"""Relative gap at which a plan counts as proven optimal. It exceeds CLOSE + SLIP, so one failed
attempt to improve a plan completes the proof.
"""

NEAR = 1e-4
"""Relative gap below which an attempt to improve the plan slightly is made first. The search for an
initial plan ends at this gap. If it is larger, small gaps are closed without the local search, and
the proofs of larger problems take longer.

At larger gaps, the first deadline halves the gap. Afterwards, the two kinds of deadlines alternate.
"""

FINE = 1e-5
"""Relative width to which the range of undecided deadlines is narrowed without labels."""

WORK = 2_000_000
"""Number of kernel steps between two checks of the clock. These steps take about 10 ms."""

WORK_SECONDS = 0.006
"""Mean time between two checks of the clock, in seconds, which is charged as work."""

ENUMERATED = 14
"""Maximum number of possible chunk ends for which all plans are tried. If it is larger, small
problems are solved sooner on first use, and later afterwards.
"""

STAGES_PLAYED = 2_000_000
"""Maximum number of stages that the local search simulates to find an initial plan."""

FIRST_LABELS = 1 << 14

NONE = np.empty(0, np.int64)

MAX_ENTRIES = 10_000_000
"""Maximum number of entries in the tables of earliest and latest states.

Together, the tables then need 160 megabytes.
"""


@dataclass(frozen=True)
class ExactChunking(SearchingMethod):
    """Find the earliest deadline that some plan meets, by bracketing it from both sides.

    A deadline implies a due time for each chunk, which depends only on where the chunk starts. The
    state at a boundary therefore consists only of the uplink and the stages. The earliest and
    latest states at every boundary, computed separately for each component, rule out most
    deadlines. The remaining deadlines are decided by labels between these states. Dominated labels
    are dropped, and states that differ only in idle time that no later chunk can use are merged.
    The search starts from the plan of `deadline`. It alternates between deadlines that halve the
    gap and deadlines that are only slightly earlier than the time of the plan.

    Parameters
    ----------
    max_labels
        Maximum number of labels in memory. Each label needs about 32 + 8 (1 + P) bytes. If more
        labels are needed, the result is the best plan found and its gap.
    """

    name = "exact"
    exact = True
    source = "specopt; paper 4, Sec. 3.3, dominance between pipeline states, bounds from both ends"
    guarantee = "optimal; a certified gap if more than max_labels labels are needed"
    complexity = (
        "O(B^2 P) per deadline over B boundaries if the bounds suffice; exponential at worst"
    )
    supports_warm_start = True
    max_size = 50_000
    takes = (
        at_most(
            MAX_ENTRIES,
            "positions where a chunk may end times GPUs",
            lambda method, problem: places(problem) * problem.pipeline_length,
            PromptChunkingMethod.size_hint,
        ),
    )

    max_labels: PositiveInt = 5_000_000

    def run(self, problem: PromptChunkingProblem, budget: Budget) -> Outcome:
        """Narrow the bracket around the optimum until the plan and the lower bound meet."""
        budget.offer_warm_start()
        found = Search(problem, budget, self.max_labels)
        if places(problem) <= ENUMERATED:
            enumerate_plans(found.prepared, budget)
        elif len(chunks := search(found.prepared, STAGES_PLAYED, budget, NEAR)):
            budget.offer(plan_of(chunks))
        budget.check()
        found.bracket()
        stats = {
            "deadlines": found.deadlines,
            "label_passes": found.passes,
            "labels": found.labels,
        }
        return Outcome.of(budget, stats=stats)


class Search:
    """State of a search over deadlines: its tables, the best plan and bound, and counters."""

    def __init__(self, problem: PromptChunkingProblem, budget: Budget, max_labels: int) -> None:
        self.budget = budget
        self.max_labels = max_labels
        # whether fewer chunks can be better; otherwise, their number matters only if it is limited
        self.counts = problem.local_overhead_seconds > 0
        self.prepared = prepare_and_bound(problem, budget)
        self.kernels = budget.load("prompt_chunking.exact")
        self.deadlines = self.passes = self.labels = 0
        self.capped = False
        rows, columns = self.prepared.cells + 1, problem.pipeline_length + 1
        self.floor = np.empty((rows, columns))
        self.tables = self.kernels.Tables(
            self.floor, np.empty((rows, columns)), *np.zeros((2, rows), np.int64)
        )
        self.rows_at_once = max(1, WORK // (rows * columns))

    @property
    def plan_seconds(self) -> float:
        """Time to first token of the incumbent, in seconds."""
        assert self.budget.objective is not None
        return self.budget.objective

    @property
    def bound(self) -> float:
        """Best lower bound on the time to first token so far, in seconds."""
        assert self.budget.bound is not None
        return self.budget.bound

    @property
    def distance(self) -> float:
        """Relative gap between the incumbent and the lower bound."""
        spread = self.plan_seconds - self.bound
        return spread / self.plan_seconds if spread > 0 else 0.0

    def bracket(self) -> None:
        """Try deadlines until the gap is small enough, or until the label limit is reached."""
        enough = max(ENOUGH, self.budget.gap)
        if self.distance > enough:
            rows = len(self.floor)
            for first in range(0, rows, self.rows_at_once):
                behind = min(first + self.rows_at_once, rows)
                self.kernels.earliest(first, behind, self.prepared.prompt, self.floor)
                self.tick()
        high = self.plan_seconds
        # use the bounds from both ends alone
        while self.distance > enough and high - self.bound > FINE * high:
            deadline = self.bound + (high - self.bound) / 2
            if self.may_meet(deadline):
                high = deadline
            else:
                self.rule_out(deadline)
        # the plan is often already optimal, so try to improve it slightly
        at_once = self.distance < NEAR
        while self.distance > enough:
            best = self.plan_seconds
            deadline = self.bound + (best - self.bound) / 2
            surely = best * (1.0 - CLOSE)
            if at_once or deadline > surely:
                deadline = surely
            chunks = self.meet(deadline) if self.may_meet(deadline) else NONE
            if chunks is None:
                return
            if len(chunks) == 0:
                self.rule_out(deadline)
            elif self.budget.offer(plan_of(chunks)) >= best:
                return  # rounding at the scale of CLOSE, from numbers of very different magnitude
            at_once = not at_once

    def rule_out(self, deadline: float) -> None:
        """Record that no plan meets a deadline, which raises the lower bound."""
        self.budget.improve_bound(min(self.plan_seconds, deadline * (1.0 - SLIP)))
        self.budget.check()

    def may_meet(self, deadline: float) -> bool:
        """Compute the latest states for a deadline, and return False if no plan can meet it."""
        self.deadlines += 1
        possible = True
        for behind in range(self.prepared.cells + 1, 0, -self.rows_at_once):
            possible = self.kernels.latest(
                max(0, behind - self.rows_at_once),
                behind,
                self.prepared.prompt,
                deadline,
                self.tables,
            )
            self.tick()
        return possible

    def meet(self, deadline: float) -> Ints | None:
        """Search for chunks that meet a deadline.

        Return the chunks, an empty array if no chunks meet the deadline, or None if too many labels
        are needed. The maximum number of chunks is ignored until it turns out to matter. This
        avoids labels that differ only in their number of chunks.
        """
        if not self.capped:
            chunks = self.label(deadline, capped=False)
            if chunks is None or len(chunks) <= self.prepared.most:
                return chunks
            self.capped = True
        return self.label(deadline, capped=True)

    def label(self, deadline: float, *, capped: bool) -> Ints | None:
        """Run the labelling algorithm once for a deadline. The results are those of `meet`.

        If `capped` is true, the maximum number of chunks is respected.
        """
        prepared, kernels = self.prepared, self.kernels
        rows = prepared.cells + 1
        self.passes += 1
        most = prepared.most if capped else prepared.cells
        counted = capped or self.counts
        slack = SLIP / 2 * deadline / rows
        size, columns = min(FIRST_LABELS, self.max_labels), prepared.prompt.stages + 1
        bytes_per_label = 8 * columns + kernels.Link.itemsize
        self.budget.hold("labels times pipeline_length", size * bytes_per_label)
        labels = kernels.Labels(
            np.zeros((size, columns)),
            np.zeros(size, kernels.Link),
            np.full(rows, -1, np.int64),
        )
        labels.links[0] = (-1, -1, 0, 0)
        labels.heads[0] = 0
        where = np.zeros(1, kernels.Where)
        where[["label", "free", "goal"]] = -1
        where["used"] = 1
        while True:
            state = kernels.extend(
                most, WORK, prepared.prompt, self.tables, deadline, counted, slack, labels, where
            )
            if state == kernels.FULL:
                if size == self.max_labels:
                    self.labels += int(where["seen"][0])
                    return None
                before, size = size, min(2 * size, self.max_labels)
                # the old arrays also need memory while they are copied
                self.budget.hold("labels times pipeline_length", (before + size) * bytes_per_label)
                labels = kernels.Labels(
                    enlarged(labels.states, size), enlarged(labels.links, size), labels.heads
                )
            elif state != kernels.PAUSED:
                break
            self.tick()
        self.labels += int(where["seen"][0])
        if state == kernels.INFEASIBLE:
            return NONE
        ends = []
        label = int(where["goal"][0])
        while label >= 0:
            ends.append(int(labels.links["end"][label]))
            label = int(labels.links["parent"][label])
        return prepared.chunks(np.array(ends[::-1]))

    def tick(self) -> None:
        """Report the progress, and raise an exception if the time or work limit is reached."""
        self.budget.report()
        self.budget.spend(WORK_SECONDS)
        self.budget.check()


def enlarged(array: NDArray[Any], rows: int) -> NDArray[Any]:
    """Return a copy of an array that is extended to `rows` rows. The new rows are zero."""
    larger = np.zeros((rows, *array.shape[1:]), array.dtype)
    larger[: len(array)] = array
    return larger
