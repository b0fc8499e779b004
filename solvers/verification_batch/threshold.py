"""The method `threshold` for `verification-batch`.

It solves a knapsack problem for each threshold, which is the tightest deadline of a batch. Bounds
rule out most thresholds. The remaining thresholds are settled by labels or, for the requests that
prices do not fix, by HiGHS.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from specopt.models.errors import OutOfTime, OutOfWork
from specopt.models.fields import Floats, Ints
from specopt.models.result import Termination
from specopt.solvers.budget import Budget
from specopt.solvers.method import Outcome
from specopt.solvers.solver_status import termination_of
from specopt.solvers.verification_batch.method import VerificationBatchMethod, enough, plan_of
from specopt.solvers.verification_batch.pareto import Labels
from specopt.solvers.verification_batch.prepare import SURE, Prepared

OPTIONS: dict[str, float | str] = {
    # not "threads": HiGHS rejects any number other than that of its first run in the process
    "parallel": "off",
    "mip_abs_gap": 0.0,
    "dual_feasibility_tolerance": 1e-9,
    "presolve": "off",  # it loses feasible points if rows are nearly tight, with any tolerance
}

SECONDS_PER_NODE = 3e-4
"""Estimated work of one HiGHS node on a knapsack problem, in seconds.

It is used when work is limited.
"""

FOUND = 2
"""HiGHS's code for a feasible solution."""

UNITS = 1e4
"""Scaled size of the limits on time and memory, and of the largest value, in a knapsack program.

The program is scaled because the tolerances of HiGHS are absolute.
"""

FEW_REQUESTS = 16
"""Maximum number of requests for which no good initial batch is needed.

Labels then settle every threshold just as fast, so the kernel that finds such a batch need not be
compiled.
"""

MEETING = 36
"""Maximum number of undecided requests for which no integer program is solved.

Instead, the subsets of the two halves of these requests are combined.
"""

ROUGH = 1e-4
"""Relative gap of the first program for each threshold, if there are several thresholds."""

MANY_REQUESTS = 10_000
"""Minimum number of requests for which the method takes shortcuts.

A good batch is then the best subset of a core, without exchanges, and thresholds are settled by
HiGHS alone.
"""


@dataclass(frozen=True)
class Threshold(VerificationBatchMethod):
    """Solve a knapsack problem for every tightest deadline that no bound rules out.

    The knapsack problem has the constraints time and memory, and the bounds are Lagrangian.

    Unless there are few requests, good batches for the best thresholds are found first. Such a
    batch is the best subset of the requests with the smallest absolute reduced values, improved by
    exchanges. If a small number of labels, as in `pareto`, settles the remaining thresholds, the
    search ends.

    Otherwise, reduced costs fix each request whose exchange would cost more than the amount by
    which the bound exceeds the incumbent. The remaining problem is solved by combining subsets of
    its two halves if it is small, and otherwise by HiGHS. If there are several thresholds, HiGHS
    first solves each of them to a larger gap. If the judge rejects a solution, the solution is
    discarded, and its threshold is searched completely with labels.
    """

    name = "threshold"
    exact = True
    source = (
        "specopt; paper 2, Eq. 13-15 at one epoch, Lagrangian bounds, labels, reduced-cost fixing,"
        " HiGHS"
    )
    guarantee = "optimal"
    complexity = "O(n^2) for the bounds; exponential at worst for the remaining integer programs"
    supports_warm_start = True
    polished: ClassVar[int] = 6
    core: ClassVar[int] = 15
    few_labels: ClassVar[int] = 1_000_000

    def search(self, prepared: Prepared, budget: Budget) -> Outcome:
        """Compute bounds, fix requests, and solve the subproblems of the thresholds.

        The most promising thresholds come first.
        """
        few = prepared.problem.requests <= FEW_REQUESTS
        budget.offer_warm_start()
        if not few:  # bounds need to be tight only above the value of a good batch
            self._polish(prepared, prepared.bounds(budget, enough(budget), 1), 1, budget)
        bound, *prices = found = prepared.bounds(budget, enough(budget))
        assert budget.objective is not None
        stats: dict[str, Any] = {"thresholds": 0, "largest_program": 0}
        if not few:
            self._polish(prepared, found, self.polished - 1, budget)
        alive = np.flatnonzero(bound > enough(budget))
        search = Labels(prepared, alive, prices, enough(budget), self.few_labels)
        if prepared.problem.requests < MANY_REQUESTS and search.run(budget):
            stats |= {"thresholds": len(alive), "labels": search.seen}
            budget.improve_bound(search.bound)
            return Outcome.of(budget, stats=stats)
        # A good batch of one threshold rules out other thresholds, so all thresholds are first
        # solved roughly.
        limits = bound.copy()
        for gap in (ROUGH, 0.0) if len(alive) > 1 else (0.0,):
            for k in np.argsort(-limits, kind="stable").tolist():
                if limits[k] <= enough(budget):
                    break
                budget.improve_bound(max(budget.objective, float(limits.max())))
                budget.check()
                stats["thresholds"] += 1
                size, most = self._solve(prepared, k, found, gap, budget)
                limits[k] = min(limits[k], most)
                stats["largest_program"] = max(stats["largest_program"], size)
        budget.improve_bound(max(budget.objective, float(limits.max(initial=0.0))))
        if not budget.is_proven(self.tolerance):
            budget.check()  # HiGHS was stopped in one of the programs
        return Outcome.of(budget, stats=stats)

    def _polish(self, prepared: Prepared, found: Floats, most: int, budget: Budget) -> None:
        """Record good batches for the thresholds with the best bounds.

        Most requests are chosen or rejected by the sign of their reduced value. Of the requests
        with the smallest absolute reduced values, the best subset is chosen. Exchanges then improve
        the batch. `found` contains the bound and the prices of each threshold.
        """
        kernels = budget.load("verification_batch.sweep")
        items = kernels.Items(*prepared.columns_within(SURE))
        for k in np.argsort(-found[0], kind="stable")[:most].tolist():
            bound, *prices = found[:, k].tolist()
            if bound <= enough(budget):
                break
            taken, end = np.zeros(len(items.value), np.bool_), int(prepared.ends[k])
            arguments = end, self.core, items, float(items.room[end - 1]), *prices, taken
            if prepared.problem.requests < MANY_REQUESTS:
                value = prepared.call(budget, kernels.polish, *arguments, partial=True)
            else:  # stopped before the exchanges
                value = kernels.polish(*arguments, np.ones(1, np.uint8))
            batch = prepared.items[taken].tolist()
            if value >= 0 and prepared.admits(batch):
                budget.offer(plan_of(batch))

    def _solve(
        self,
        prepared: Prepared,
        k: int,
        found: Floats,
        gap: float,
        budget: Budget,
    ) -> tuple[int, float]:
        """Solve the program for one threshold, and record its best batch if it is better.

        The batch is compared with the incumbent. Return the size of the program, and an upper bound
        on the threshold's batches. `found` contains the bound and the prices of each threshold.
        """
        assert budget.objective is not None
        bound, per_second, per_byte = found[:, k].tolist()
        end = int(prepared.ends[k])
        *columns, memory_room = prepared.columns
        values, seconds, memory, rooms = (column[:end] for column in columns)
        able = seconds <= rooms[-1]
        reduced = values - per_second * seconds - per_byte * memory
        spare = np.full(end, bound - budget.objective)
        fixed_in = able & (reduced > spare)
        own = slice(int(prepared.ends[k - 1]) if k else 0, end)
        spare[own] -= min(
            0.0, float(reduced[own].max())
        )  # a batch contains one of these requests, and the bound already includes its loss
        inside = np.flatnonzero(fixed_in)
        room = float(rooms[-1]) - math.fsum(seconds[inside])
        space = memory_room - math.fsum(memory[inside])
        left = np.flatnonzero(
            able & (np.abs(reduced) <= spare) & (seconds <= room) & (memory <= space)
        )
        if room < 0 or space < 0:
            return len(left), enough(budget)  # the requests of any better batch do not fit
        table = values[left], seconds[left], memory[left], room, space
        if len(left) <= MEETING:
            budget.spend(SECONDS_PER_NODE * 2.0 ** (0.5 * len(left) - 8.0))
            budget.check()
            bits = budget.load("verification_batch.labels").best_of_few(*table)
            chosen, most = np.flatnonzero(bits >> np.arange(len(left)) & 1), None
        else:
            chosen, most = knapsack(*table, gap, budget)
        batch = [int(i) for i in prepared.items[np.concatenate([inside, left[chosen]])]]
        if prepared.admits(batch):
            budget.offer(plan_of(batch))
            missed = (
                float(values[left].max(initial=0.0)) * (1e-6 + 1e-9 * len(left)) / UNITS
            )  # upper bound on what HiGHS may overlook
            if most is not None:
                most = min(bound, math.fsum([*values[inside], most]))
            return len(left), max(most or 0.0, enough(budget)) + missed
        search = Labels(prepared, np.array([k]), found[1:], budget.objective)
        if not search.run(budget):
            raise MemoryError("too many labels for one threshold")
        return len(left), search.bound


def knapsack(
    values: Floats,
    seconds: Floats,
    memory: Floats,
    room: float,
    space: float,
    gap: float,
    budget: Budget,
) -> tuple[Ints, float | None]:
    """Solve a knapsack problem, given as plain arrays, with HiGHS.

    `room` is the time limit, and `space` is the memory limit. An extra column counts the chosen
    requests. If values are nearly proportional to costs plus a constant, the number of chosen
    requests is decisive, and HiGHS branches on it first.

    HiGHS may exceed a row by 1e-6, overlook smaller gains, and be off by its dual tolerance in each
    column. The scaling makes such errors negligible. Choices that meet a limit exactly leave ten
    times as much slack in a row, because the limits include the judge's tolerance of 1e-9. Such
    choices are therefore not lost to these errors.

    Returns
    -------
    tuple
        Positions of the best choice found, and an upper bound on the value of all choices. The
        second entry is None if the choice is proven best. The bound holds within a relative gap, or
        is as tight as time or work allowed. If HiGHS fails, the positions are empty and the bound
        is infinite.

    Raises
    ------
    OutOfTime, OutOfWork
        If the time or work limit is reached before a choice is found.
    """
    import highspy

    from specopt.solvers.highs import Highs

    count = len(values)
    if count == 0:
        return np.empty(0, np.int64), None
    model = Highs()
    for name, value in OPTIONS.items():
        assert model.setOptionValue(name, value) == highspy.HighsStatus.kOk, name
    model.setOptionValue("mip_rel_gap", gap)
    if math.isfinite(budget.remaining):
        model.setOptionValue("time_limit", budget.remaining)
    if math.isfinite(budget.work_left):
        model.setOptionValue("mip_max_nodes", int(budget.work_left / SECONDS_PER_NODE))
    model.setOptionValue("random_seed", budget.seed % 2**31)
    lp = highspy.HighsLp()
    lp.num_col_ = count + 1
    lp.sense_ = highspy.ObjSense.kMaximize
    lp.col_cost_ = np.append(UNITS * (values / values.max()), 0.0)
    lp.col_lower_ = np.zeros(count + 1)
    lp.col_upper_ = np.append(
        np.ones(count), float(count)
    )  # the last column: number of chosen requests
    lp.integrality_ = [highspy.HighsVarType.kInteger] * (count + 1)
    model.passModel(lp)
    columns = np.arange(count + 1, dtype=np.int32)
    for costs, limit in ((seconds, room), (memory, space)):
        row = UNITS * costs / (limit or 1.0)
        model.addRow(-highspy.kHighsInf, UNITS * float(limit > 0), count, columns[:count], row)
    model.addRow(0.0, 0.0, count + 1, columns, np.append(np.ones(count), -1.0))
    model.run()
    info, ended = model.getInfo(), termination_of(model.getModelStatus())
    is_spent = ended is Termination.WORK_LIMIT  # the last node is counted in full
    budget.spend(budget.work_left if is_spent else max(0, info.mip_node_count) * SECONDS_PER_NODE)
    if ended not in (Termination.CONVERGED, Termination.TIME_LIMIT, Termination.WORK_LIMIT):
        return np.empty(0, np.int64), math.inf
    if info.primal_solution_status != FOUND:
        raise OutOfWork if is_spent else OutOfTime
    chosen = np.flatnonzero(np.array(model.getSolution().col_value)[:count] > 0.5)
    proven = ended is Termination.CONVERGED and gap == 0.0
    return chosen, None if proven else info.mip_dual_bound * float(values.max()) / UNITS
