"""The method `length-aware` for known output lengths, which puts tasks with similar input and
output lengths into the same batch.

A batch is padded to its longest input and runs until its longest output is complete, so its tasks
should be similar in both lengths. Batches that finish early leave the pipeline, so the pipeline
order and the overlap vary over time. For every speculation length, the method

1. computes a bound from a relaxation with new batches at every step (see `bound`), which rules out
   many speculation lengths;
2. sorts the tasks by input, by output and by mixtures of both. In each order, it finds the
   contiguous batches with the smallest sum of stage times (a shortest path), and evaluates them in
   several pipeline orders;
3. improves the remaining plans by simulated annealing over single tasks, swaps, threshold cuts,
   splits, merges and the pipeline order, and spends most moves on the plans with the lowest
   latency;
4. raises the bound by column generation (see `column_bound`), normally for the speculation length
   with the lowest bound. For many tasks, step 4 precedes the annealing, because annealing then
   gains little.

Evaluating a plan costs O(M^2) for M batches, independent of the number of decoding steps (see
`specopt.solvers.serving_latency.kernels.plans`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from specopt.models.errors import OutOfTime, Stopped
from specopt.models.fields import Floats, Ints, NonNegativeInt, PositiveInt
from specopt.models.serving_latency.problem import ServingLatencyPlan, ServingLatencyProblem
from specopt.solvers.budget import Budget
from specopt.solvers.method import Outcome
from specopt.solvers.serving_latency.bound import (
    entries,
    inference_bound,
    seconds_to_bound,
    summed_bound,
)
from specopt.solvers.serving_latency.contiguous import additive_batches
from specopt.solvers.serving_latency.method import KNOWN, ServingLatencyMethod, begun
from specopt.solvers.serving_latency.prepare import Prepared
from specopt.solvers.serving_latency.stages import Stages, rate, stages
from specopt.solvers.simulation import random_key

if TYPE_CHECKING:
    from specopt.solvers.serving_latency.column_bound import ColumnBound

# Other values make plans and bounds for many tasks slightly better or worse, or later.
_MANY = 300  # tasks above which bounds gain more than annealing or additional path weights
_MAX_ORDERED = 2000  # maximum number of tasks for which every order is tried
# batches rated per range of steps above which the bound of `rebatching` takes too long
_DEAR_BOUND = 1e7
# the same, below which more ranges of steps before annealing gain more than that bound
_CHEAP_BOUND = 4e5
# relative latency above the best at which a speculation length gets no construction of its own
_HOPELESS = 1.05
# per kernel call, some 0.02 s: limited by work, not time, so that a seed determines the plan
_WORK_PER_CALL = 3_000_000
_WEIGHTS = ((1.0, 0.0), (0.5, 0.5), (0.0, 1.0))  # draft and verify weights in shortest paths
_MAX_RANGES = 9  # maximum number of ranges of steps, for the bounds
_HEAT, _HEAT_OF_MANY = 0.01, 3e-5  # relative worsening at the start of annealing


@dataclass(frozen=True)
class LengthAware(ServingLatencyMethod):
    """A method that finds plans by shortest paths over several task orders and improves them by
    simulated annealing.

    Parameters
    ----------
    moves
        Total number of local-search moves over all speculation lengths. Fewer moves are used if
        there are few tasks.
    rounds
        Maximum total number of linear programs that are built or solved to raise the bound, over
        all speculation lengths.
    """

    moves: PositiveInt = 2_100_000
    rounds: NonNegativeInt = 1500

    name = "length-aware"
    source = "specopt; problem (24) of paper 1 with each task's own output length"
    guarantee = "a lower bound; the gap is certified, not closed"
    complexity = "O(l_max K^2) shortest paths, then O(K + M^2) per move, M batches"
    takes = (KNOWN,)
    supports_warm_start = True

    def run(self, problem: ServingLatencyProblem, budget: Budget) -> Outcome:
        """Search over all mechanisms and speculation lengths together, and return the best plan
        found.
        """
        budget.offer_warm_start()
        able = begun(problem, budget)
        budget.check()
        search = _Search(self, able, budget)
        try:
            search.run()
        except (OutOfTime, Stopped, KeyboardInterrupt):
            search.offer()
            raise
        return Outcome.of(budget, stats=search.stats)


@dataclass
class _Candidate:
    """A mechanism and a speculation length, with the best plan found for them and a lower bound."""

    at: Stages
    seconds: float = np.inf  # T_inf of the best plan so far
    slot: Any = None  # batch of every sorted position in that plan
    order: Any = None  # batches in pipeline order; later entries are unused
    batches: int = 0
    bound: float = 0.0  # lower bound on T_inf
    columns: ColumnBound | None = None  # raises the bound, once started

    @property
    def objective(self) -> float:
        """Total latency, in seconds, of the best plan found so far."""
        return self.seconds + self.at.prepared.communication_seconds

    @property
    def objective_bound(self) -> float:
        """Lower bound on the total latency of the candidate's plans, in seconds."""
        return self.bound + self.at.prepared.communication_seconds

    def plan(self) -> ServingLatencyPlan:
        """Return the best plan found so far for this mechanism and speculation length."""
        return self.at.prepared.plan(self.members(), self.at.length)

    def members(self) -> list[Ints]:
        """Return the tasks of each batch of the best plan, as positions in the sorted order."""
        return [np.flatnonzero(self.slot == m) for m in self.order[: self.batches]]


class _Search:
    """A search over all mechanisms and speculation lengths, called candidates, which share one
    budget.
    """

    def __init__(self, method: LengthAware, able: list[Prepared], budget: Budget) -> None:
        self.budget = budget
        self.able = able
        self.moves, self.rounds = method.moves, method.rounds
        self.plans: Any = budget.load("serving_latency.plans")
        self.annealing: Any = budget.load("serving_latency.annealing")
        self.candidates: list[_Candidate] = []
        self.stream = np.array([random_key(budget.seed)])
        self.stats: dict[str, object] = {}
        self.rounds_done = 0

    def run(self) -> None:
        """Compute bounds, construct plans, discard unpromising candidates, and improve the rest."""
        self.candidates = [
            _Candidate(stages(prepared, n)) for prepared in self.able for n in prepared.lengths
        ]
        tasks = self.able[0].tasks
        for candidate in self.candidates:
            prepared, length = candidate.at.prepared, candidate.at.length
            self.budget.check(seconds_to_bound(prepared, length))
            candidate.bound = summed_bound(prepared, length)
        known = self.budget.objective or np.inf
        for candidate in self.candidates:
            if candidate.objective_bound < known and entries(candidate.at) <= _DEAR_BOUND:
                candidate.bound = max(candidate.bound, inference_bound(candidate.at, self.budget))
        self.candidates.sort(key=lambda candidate: candidate.objective_bound)
        self.budget.improve_bound(self.candidates[0].objective_bound)
        self._adopt_warm_start()
        for candidate in self._promising(self.candidates):
            if (
                tasks <= _MANY
                or not candidate.batches
                or candidate.objective < _HOPELESS * self._best
            ):
                self._construct(candidate)
                self.offer()
        if tasks > _MANY:
            self._certify(_MAX_RANGES if entries(self.candidates[0].at) <= _CHEAP_BOUND else 0)
        alive = [candidate for candidate in self.candidates if candidate.batches]
        moves = min(self.moves, 2000 * tasks * tasks)
        tried = 0
        warm = _HEAT if tasks <= _MANY else _HEAT_OF_MANY
        for part, (share, heat) in enumerate(
            ((0.07, warm), (0.1, warm), (0.16, 0.5 * warm), (0.67, warm))
        ):
            alive = sorted(self._promising(alive), key=lambda candidate: candidate.objective)
            if part > 0:
                alive = alive[: 4 if part == 1 else 2]
                alive = [
                    candidate
                    for candidate in alive
                    if candidate.objective < alive[0].objective * 1.03
                ]
            for candidate in alive:
                if self.budget.is_proven(0.0):
                    return
                tries = max(1, int(moves * share / len(alive)))
                tried += tries
                self._improve(candidate, tries, heat)
            self.offer()
            if part == 1 and tasks <= _MANY:
                self._certify()
        self._certify(_MAX_RANGES)
        self.stats = {
            "moves": tried,
            "rounds": self.rounds_done,
            "candidates": len(self.candidates),
            "searched": len(alive),
        }

    def _promising(self, candidates: list[_Candidate]) -> Iterator[_Candidate]:
        """Yield the candidates whose lower bound is below the objective of the best plan found so
        far.
        """
        for candidate in candidates:
            if candidate.objective_bound < self._best * (1 - 1e-12):
                yield candidate

    @property
    def _best(self) -> float:
        """Total latency, in seconds, of the best plan found so far for any candidate."""
        return min(candidate.objective for candidate in self.candidates)

    def offer(self) -> None:
        """Record the best plan in the budget if it improves on the budget's incumbent."""
        best = min(self.candidates, key=lambda candidate: candidate.objective, default=None)
        if best is None or not best.batches:
            return
        if self.budget.objective is None or best.objective < self.budget.objective * (1 - 1e-12):
            self.budget.offer(best.plan())

    # ------------------------------------------------------------------ certificate

    def _certify(self, ranges: int = 0) -> None:
        """Raise the lowest bound by column generation for as long as the bound increases.

        At most `ranges` ranges of steps are used, or `RANGES` if that number is larger. The
        candidate with the best plan comes first, because its prices also raise the bounds of the
        other candidates.
        """
        from specopt.solvers.serving_latency.column_bound import RANGES, ColumnBound

        latest = None
        leader = min(self.candidates, key=lambda candidate: candidate.objective)
        while self.rounds_done < self.rounds and not self.budget.is_proven(0.0):
            lowest = min(self.candidates, key=lambda candidate: candidate.objective_bound)
            if leader.objective_bound < self._best * (1 - 1e-12) and not (
                leader.columns and leader.columns.near
            ):
                lowest = leader
            if lowest.objective_bound >= self._best * (1 - 1e-12):
                return
            if lowest.columns is None or lowest.columns.done:
                if lowest.columns and lowest.columns.ranges >= ranges:
                    return
                latest = lowest.columns or latest
                lowest.columns = ColumnBound(
                    lowest.at,
                    lowest.members(),
                    lowest.seconds,
                    self.budget,
                    ranges if lowest.columns else RANGES,
                )
                if latest is not None:
                    lowest.columns.borrow(latest)
            else:
                lowest.columns.improve()
            latest = lowest.columns
            lowest.bound = max(lowest.bound, lowest.columns.bound)
            self.rounds_done += 1
            self.budget.improve_bound(
                min(candidate.objective_bound for candidate in self.candidates)
            )

    # ------------------------------------------------------------------ construction

    def _construct(self, candidate: _Candidate) -> None:
        """Find a shortest path for each of several task orders, and keep the best. Also evaluate
        its batches at speculation lengths that have no plan yet.
        """
        few = candidate.at.prepared.tasks <= _MANY
        for order in _orders(candidate.at):
            for weights in _WEIGHTS if few and candidate.at.overlap else _WEIGHTS[1:2]:
                batches = additive_batches(candidate.at, weights, self.budget, order)[0]
                assert batches is not None, "every task fits alone"
                self._rate_orders(candidate, batches)
        for other in self.candidates:
            if not other.batches and other.at.prepared is candidate.at.prepared:
                self._take(other, candidate.slot, candidate.batches)

    def _rate_orders(self, candidate: _Candidate, batches: list[Ints]) -> None:
        """Evaluate batches in several pipeline orders, and keep the best plan."""
        at, count = candidate.at, len(batches)
        orders = [np.arange(count)]
        if at.overlap and count > 1:
            steps, inputs, sizes = np.array(
                [(at.steps[one].max(), at.prepared.inputs[one].max(), len(one)) for one in batches]
            ).T
            keys = inputs, steps, -steps, sizes
            orders += [orders[0][::-1], *(np.argsort(key, kind="stable") for key in keys)]
        for order in orders:
            slot = np.empty(at.prepared.tasks, np.int64)
            for position, m in enumerate(order):
                slot[batches[m]] = position
            self._take(candidate, slot, count)

    def _take(self, candidate: _Candidate, slot: Ints, count: int) -> None:
        seconds = rate(candidate.at, slot, count, self.plans)
        if seconds < candidate.seconds:
            candidate.seconds, candidate.slot, candidate.batches = seconds, slot, count
            candidate.order = np.arange(len(slot))

    def _adopt_warm_start(self) -> None:
        plan = self.budget.warm_start
        if not isinstance(plan, ServingLatencyPlan):
            return
        problem = self.able[0].problem
        for candidate in self.candidates:
            prepared = candidate.at.prepared
            if (
                prepared.mechanism == problem.mechanism_of(plan)
                and candidate.at.length == plan.speculation_length
            ):
                self._take(candidate, prepared.slots(plan), len(plan.batches))

    # ------------------------------------------------------------------ local search

    def _improve(self, candidate: _Candidate, tries: int, heat: float) -> None:
        """Run simulated annealing from the candidate's best plan."""
        at, prepared = candidate.at, candidate.at.prepared
        ranks = np.argsort(prepared.outputs, kind="stable").argsort()
        plan = np.stack([candidate.slot, candidate.order] * 2)
        counts = np.array([candidate.batches, candidate.batches], np.int64)
        seconds: Floats = np.array([candidate.seconds, candidate.seconds])
        done = 0
        while done < tries:
            self.budget.check()
            work = 200 + prepared.tasks + int(counts[0]) ** 2  # work of one move
            stop = min(tries, done + max(50, _WORK_PER_CALL // work))
            self.annealing.improve_batches(
                done, stop, tries, at.data, ranks, heat, plan, counts, seconds, self.stream
            )
            done = stop
            if seconds[1] < candidate.seconds:
                candidate.seconds = float(seconds[1])
                candidate.slot, candidate.order = plan[self.annealing.BEST_SLOT :].copy()
                candidate.batches = int(counts[1])
            known = self.budget.objective
            if known is not None and candidate.objective < known * (1 - 1e-3):
                self.offer()
            else:
                self.budget.report()


def _orders(at: Stages) -> list[Ints]:
    """Return several orders of the tasks, as arrays of positions in the sorted task order.

    Tasks are ordered by input, by output, and by mixtures of the two ranks. In other orders, tasks
    are grouped into classes by one length and sorted by the other length within each class.
    """
    outputs = at.prepared.outputs
    tasks = len(outputs)
    by_output = np.argsort(outputs, kind="stable")
    ranks = by_output.argsort()
    position = np.arange(tasks)
    if tasks > _MAX_ORDERED:
        return [np.lexsort((ranks, position * classes // tasks)) for classes in (3, 9)]
    orders = [
        np.argsort(w * position + (1 - w) * ranks, kind="stable")
        for w in (1.0, 0.0, 0.2, 0.4, 0.6, 0.8)
    ]
    orders += [np.lexsort((position, ranks * classes // tasks)) for classes in (2, 3, 4, 6)]
    return orders + [np.lexsort((ranks, position * classes // tasks)) for classes in (2, 3, 4, 6)]
