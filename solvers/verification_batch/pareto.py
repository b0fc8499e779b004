"""The method `pareto` for `verification-batch`, a labelling algorithm over all thresholds.

A label is the time, memory and value of a batch. A threshold is the tightest deadline of a batch.
If there are few requests, the module can also enumerate all subsets.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from specopt.models.fields import Floats, Ints
from specopt.solvers.budget import Budget
from specopt.solvers.method import Outcome
from specopt.solvers.verification_batch.method import (
    SLACK,
    VerificationBatchMethod,
    enough,
    plan_of,
)
from specopt.solvers.verification_batch.prepare import MOST, SURE, Prepared
from specopt.solvers.verification_batch.sweep import sweep

MAX_LABELS = 2_000_000
SUBSETS_PER_CHECK = 1024


@dataclass(frozen=True)
class Pareto(VerificationBatchMethod):
    """Extend labels by requests in order of decreasing deadline.

    The last request of a label limits the label's time. A label is dropped if another label over
    the same requests has no more time, no more memory and no less value. A label is also dropped
    if, for every remaining threshold, the prices show that no completion is better than the
    incumbent.

    Labels only need to respect the looser limits of `Prepared`, so the best label bounds the value
    of every batch that the judge accepts. The judge may still reject a label's batch because of
    rounding errors. If so, all subsets are tried when there are few requests. Otherwise, a second
    pass finds the best batch within the tighter limits, and the bound stays above the value of that
    batch.
    """

    name = "pareto"
    exact = True
    source = (
        "specopt; paper 2, Eq. 13-15 at one epoch, a dynamic program over all thresholds at once"
    )
    guarantee = "optimal; a certified gap if more than 2,000,000 labels are needed"
    complexity = "O(n x labels log labels), exponential at worst"

    def search(self, prepared: Prepared, budget: Budget) -> Outcome:
        """Start from the batch of `sweep`, compute bounds, and extend the labels."""
        budget.offer(plan_of(sweep(prepared, budget)))
        budget.check()
        bound, *prices = prepared.bounds(budget, enough(budget))
        alive = np.flatnonzero(bound > enough(budget))
        search = Labels(prepared, alive, prices, enough(budget))
        if search.run(budget):
            budget.improve_bound(search.bound)
        return Outcome.of(
            budget,
            stats={"thresholds": len(alive), "labels": search.seen},
        )


MAX_REQUESTS = 16
"""Maximum number of requests for which all subsets are tried."""


class Labels:
    """A search that extends labels by the items of all thresholds that no bound rules out.

    Only the thresholds in `alive` are searched, each at its own prices of time and memory. Batches
    with a value of at most `enough` are ignored. The search stops early when it has created more
    than `most` labels.
    """

    def __init__(
        self,
        prepared: Prepared,
        alive: Ints,
        prices: Iterable[Floats],
        enough: float,
        most: float = math.inf,
    ) -> None:
        self.prepared = prepared
        self.ends = prepared.ends[alive]
        self.starts = np.where(alive > 0, prepared.ends[alive - 1], 0)
        self.prices = [price[alive] for price in prices]
        self.enough = enough
        self.refused = 0.0
        self.seen = 0
        self.most = most

    @property
    def bound(self) -> float:
        """Upper bound on the value of every batch of the thresholds, apart from the incumbent.

        It is valid after a complete search. The incumbent is the best batch known before the
        search.
        """
        return max(self.enough, self.refused)

    def run(self, budget: Budget) -> bool:
        """Search for better batches, and return whether the search is complete.

        Every batch that improves on the incumbent is recorded in the budget.
        """
        if len(self.ends) == 0:
            return True
        complete = self._pass(budget, MOST)
        if complete and self.refused > self.enough:
            if self.prepared.problem.requests <= MAX_REQUESTS:
                best, _ = best_subset(self.prepared, budget)
                budget.offer(plan_of(best))
                self.enough, self.refused = enough(budget), 0.0
            else:
                self._pass(budget, SURE)
        return complete

    def _pass(self, budget: Budget, which: int) -> bool:
        kernels = budget.load("verification_batch.labels")
        values, seconds, memory, rooms, memory_room = self.prepared.columns_within(which)
        last = int(self.ends[-1])
        budget.hold("requests times thresholds", 40.0 * len(values) * len(self.ends))
        binding = memory[:last].sum() > memory_room
        limits = rooms[self.ends - 1]
        a, b = self.prices
        gains = values[:, None] - a * seconds[:, None] - b * memory[:, None]
        able = (np.arange(len(values))[:, None] < self.ends) & (seconds[:, None] <= limits)
        paying = np.where(able, np.maximum(gains, 0.0), 0.0)
        rest = np.vstack([np.cumsum(paying[::-1], axis=0)[::-1], np.zeros(len(a))])
        # a batch of the threshold contains at least one of its own items
        for k, (start, end) in enumerate(zip(self.starts, self.ends, strict=True)):
            rest[: start + 1, k] += min(0.0, float(gains[start:end, k].max()))
        items = kernels.Items(
            values, seconds, memory if binding else np.zeros_like(memory), rooms, memory_room
        )
        thresholds = np.array([*zip(self.ends, limits, a, b, strict=True)], kernels.Threshold)
        labels, count, base = np.zeros(1, kernels.BatchLabel), 1, 1
        history: list[tuple[int, Ints]] = []  # first node, and the parents of each item's new nodes
        for item in range(last):
            budget.check()
            out, parents = np.empty(2 * count, kernels.BatchLabel), np.empty(count, np.int64)
            count, nodes, best, found = kernels.extend(
                item, count, base, labels, items, thresholds, rest, self.enough, out, parents
            )
            labels = out
            history.append((base, parents[:nodes].copy()))
            base += nodes
            if best > self.enough:
                batch = self._trace(found, history)
                if self.prepared.admits(batch):
                    budget.offer(plan_of(batch))
                    self.enough = enough(budget)
                else:
                    self.refused = max(self.refused, best * (1.0 + SLACK))
            self.seen += count
            if count == 0:
                return True
            if count > MAX_LABELS or self.seen > self.most:
                return False
        return True

    def _trace(self, node: int, history: list[tuple[int, Ints]]) -> list[int]:
        batch = []
        for item in range(len(history) - 1, -1, -1):
            first, parents = history[item]
            if node >= first:
                batch.append(int(self.prepared.items[item]))
                node = int(parents[node - first])
            if node == 0:
                break
        return batch


def best_subset(prepared: Prepared, budget: Budget) -> tuple[tuple[int, ...], int]:
    """Return the best batch over all subsets of the requests, and the number of batches tried."""
    problem = prepared.problem
    values = problem.expected_tokens.tolist()
    best, seen = 0.0, 1
    best_batch: tuple[int, ...] = ()
    for size in range(1, problem.requests + 1):
        for batch in combinations(range(problem.requests), size):
            seen += 1
            if seen % SUBSETS_PER_CHECK == 0:
                budget.check()
            value = sum(values[i] for i in batch)
            if value > best and prepared.admits(batch):
                best, best_batch = value, batch
    return best_batch, seen
