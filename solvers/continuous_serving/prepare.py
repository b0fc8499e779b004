"""Conversion of `continuous-serving` problems to sorted tasks and arrays for the methods and
compiled kernels.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from specopt.models.continuous_serving.problem import (
    ContinuousServingPlan,
    ContinuousServingProblem,
    Phase,
)
from specopt.models.fields import Floats, Ints, Truths
from specopt.solvers.serving_method import PreparedServing


@dataclass(frozen=True)
class Prepared(PreparedServing):
    """A `continuous-serving` problem under one mechanism, converted to arrays for the kernels."""

    problem: ContinuousServingProblem

    @property
    def least_length(self) -> int:
        """Minimum speculation length under a mechanism that uses drafts."""
        return self.problem.min_speculation_length

    @property
    def lengths(self) -> range:
        """Speculation lengths that are allowed as the default of a plan. They are at least 1 if the
        mechanism uses drafts.
        """
        return (
            self.served_lengths
            if self.mechanism == "autoregressive"
            else range(1, self.served_lengths.stop)
        )

    def plan(
        self, phases: Iterable[Phase], length: int, shares: Floats | None = None
    ) -> ContinuousServingPlan:
        """Build a plan with the given phases. If `shares` is None, the optimal bandwidth shares are
        used.

        `length` is the plan's default speculation length, which applies to all phases that do not
        specify a length.
        """
        return ContinuousServingPlan(phases=tuple(phases), **self.shared_fields(length, shares))

    def step_ends(
        self, runs: Sequence[tuple[Sequence[int] | Ints, int]], gained: Floats, begins: Truths
    ) -> list[float]:
        """Return the time, in seconds from the start of a step, at which each batch has been
        verified (Eq. 20).

        Parameters
        ----------
        runs
            Tasks and number of draft tokens of each batch, in pipeline order.
        gained, begins
            Number of tokens that each task has gained so far, and whether the step is the task's
            first step.
        """
        reached = self.problem.input_tokens + gained
        rows = np.array(
            [(length, len(tasks), reached[tasks].max(), begins[tasks[0]]) for tasks, length in runs]
        )
        draft, verify = np.zeros((2, len(runs)))
        for length in np.unique(rows[:, 0]).tolist():
            some = rows[:, 0] == length
            _, size, longest, first = rows[some].T
            times = self.problem.stage_seconds(size, longest, int(length), first > 0.0)
            draft[some], verify[some] = times
        return [*self.completed(zip(draft.tolist(), verify.tolist(), strict=True))]


prepare = Prepared.of
