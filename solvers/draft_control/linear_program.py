"""Draft control as a linear program over occupation measures, solved by HiGHS."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from specopt.models.draft_control import DraftControlPlan, DraftControlProblem
from specopt.models.errors import OutOfTime
from specopt.models.fields import Floats, Ints
from specopt.solvers.budget import Budget
from specopt.solvers.draft_control.method import (
    DraftControlMethod,
    certify,
    offer_first_plan,
    shares_of,
    weigh,
)
from specopt.solvers.draft_control.prepare import Prepared, prepare
from specopt.solvers.method import Outcome

OPTIONS = {"primal_feasibility_tolerance": 1e-9, "dual_feasibility_tolerance": 1e-9}

VISITED = 1e-7
"""Share of a state below which the program's tolerances say nothing about its action."""


@dataclass(frozen=True)
class LinearProgram(DraftControlMethod):
    """Maximise sum N x over occupation measures x(s, a) >= 0, scaled so that the seconds sum to a constant.

    With y(s) = sum over a of x(s, a), the flow balance y = y P needs y alone, because the next state does not depend
    on the action: S^2 + 2 S A entries in place of S^2 A. The first multiplier is the price of a second, and the bound
    comes from it, not from HiGHS. Where it proves nothing, because transitions are as rare as HiGHS's tolerances, the
    program is solved once more with pi(s) x(s, a) for x(s, a), pi the stationary distribution: y is then constant.
    """

    name: ClassVar[str] = "linear-program"
    exact: ClassVar[bool] = True
    source: ClassVar[str] = "own; Eq. 12 of paper 3 as a linear fractional program (Charnes and Cooper 1962), HiGHS"
    guarantee: ClassVar[str] = "optimal, to 1e-6"
    complexity: ClassVar[str] = "a linear program of S A + S columns, 2 S + 1 rows"
    max_size: ClassVar[int] = 500_000
    tolerance: ClassVar[float] = 1e-6

    def run(self, problem: DraftControlProblem, budget: Budget) -> Outcome:
        """State the program in arrays, solve it, and read policy, price and relative values off."""
        prepared = prepare(problem)
        offer_first_plan(prepared, budget)
        kernels = budget.load("draft_control")
        highspy = budget.load_library("highspy")
        outcome = self._solved(highspy, kernels, prepared, prepared.transition, np.ones(prepared.states), budget)
        assert isinstance(outcome.plan, DraftControlPlan) and outcome.bound is not None
        if problem.gap(problem.evaluate(outcome.plan).objective, outcome.bound) <= self.tolerance:
            return outcome
        # HiGHS drops entries below 1e-9, and classes of states that hardly touch fall apart: a ring visits all alike
        ring = np.roll(np.eye(prepared.states), 1, axis=1)
        return self._solved(highspy, kernels, prepared, ring, shares_of(kernels, prepared), budget)

    def _solved(
        self, highspy: Any, kernels: Any, prepared: Prepared, chain: Floats, weights: Floats, budget: Budget
    ) -> Outcome:
        """Return the outcome of the program of a chain whose visits to each state count with a weight."""
        from specopt.solvers.highs import Highs

        tokens, seconds, lengths, indices = prepared.all_actions()
        typical = _typical_seconds(kernels, prepared)  # the measure then sums to about 1, whatever the unit of time
        model = Highs()
        for name, value in OPTIONS.items():
            if model.setOptionValue(name, value) != highspy.HighsStatus.kOk:
                raise AssertionError(f"HiGHS has no option {name}")
        if np.isfinite(budget.remaining):
            model.setOptionValue("time_limit", budget.remaining)
        _pass(highspy, model, chain, weights[:, None] * tokens, weights[:, None] * (seconds / typical))
        model.run()
        budget.check()
        if model.getModelStatus() != highspy.HighsModelStatus.kOptimal:
            if model.getModelStatus() == highspy.HighsModelStatus.kTimeLimit:
                raise OutOfTime  # by HiGHS's clock, a little before ours; the plan at hand is the result
            nothing = np.zeros(prepared.states, dtype=np.int64)  # numbers too far apart: say so, with a valid bound
            reason = model.modelStatusToString(model.getModelStatus())
            return certify(kernels, prepared, nothing + prepared.shortest, nothing, budget, highs=reason)
        solution = model.getSolution()
        measure = np.array(solution.col_value[: tokens.size]).reshape(tokens.shape)
        price = max(0.0, float(solution.row_dual[0]) / typical)
        choice = np.argmax(measure, axis=1)
        visits = weights * measure.sum(axis=1)
        rare = visits <= VISITED * visits.sum()
        choice[rare] = np.argmax(tokens[rare] - price * seconds[rare], axis=1)
        steps = int(model.getInfo().simplex_iteration_count)
        return certify(kernels, prepared, lengths[choice], indices[choice], budget, price, simplex_iterations=steps)


def _typical_seconds(kernels: Any, prepared: Prepared) -> float:
    """Return the mean seconds of an iteration under the myopic policy."""
    lengths, indices = np.empty(prepared.states, dtype=np.int64), np.empty(prepared.states, dtype=np.int64)
    kernels.most_at_once(prepared.for_kernels, lengths, indices)
    _, seconds = weigh(kernels, prepared, lengths, indices)
    return float(shares_of(kernels, prepared) @ seconds)


def _pass(highspy: Any, model: Any, chain: Floats, tokens: Floats, seconds: Floats) -> None:
    """Pass the program, column by column: x(s, a), then y(s); rows: seconds, x against y, balance of y."""
    S, A = tokens.shape
    state = np.repeat(np.arange(S), A)
    column = np.arange(S * A)
    flow = -chain
    np.fill_diagonal(flow, 0.0)
    np.fill_diagonal(flow, -flow.sum(axis=1))  # I - P
    start_state, next_state = np.nonzero(flow)
    parts: list[tuple[Ints, Ints, Floats]] = [
        (column, np.zeros(S * A, dtype=np.int64), seconds.ravel()),
        (column, 1 + state, np.ones(S * A)),
        (S * A + np.arange(S), 1 + np.arange(S), -np.ones(S)),
        (S * A + start_state, 1 + S + next_state, flow[start_state, next_state]),
    ]
    columns, rows, entries = (np.concatenate(group) for group in zip(*parts, strict=True))
    order = np.argsort(columns, kind="stable")
    starts = np.searchsorted(columns[order], np.arange(S * A + S + 1))
    sides = np.zeros(2 * S + 1)
    sides[0] = 1.0
    model.passModel(
        S * A + S, 2 * S + 1, len(entries), int(highspy.MatrixFormat.kColwise), int(highspy.ObjSense.kMaximize), 0.0,
        np.append(tokens.ravel(), np.zeros(S)), np.zeros(S * A + S), np.full(S * A + S, highspy.kHighsInf),
        sides, sides, starts.astype(np.int32), rows[order].astype(np.int32), entries[order],
        np.zeros(S * A + S, dtype=np.int32),
    )  # fmt: skip
