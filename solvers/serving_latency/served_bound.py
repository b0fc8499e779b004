r"""A lower bound on rebatched plans: prices of tokens that no step can beat.

Give every task k a price p_k >= 0 per token that it gains, and q_k >= 0 for its first step. If every step that a plan
can take lasts at least as long as what it earns,

    t >= sum over the tasks served of p_k L(alpha_k, l_k) + sum over those in their first step of q_k,      (1)

then finishing a set J of tasks takes at least the sum of p_k Q_k + q_k over J, idle time apart: each of its tasks
gains Q_k tokens at least, and what the step earns without the other tasks is no more. That holds for lengths as they
are reached, for any speculation lengths, changing from batch to batch and from step to step, and for arrivals.

What a step takes
-----------------
Let runs m = 1..M be served in this order, d_m and v_m their stage times. Eq. 20 says that the step lasts max over
positions p of (d_1 + ... + d_p) + (v_p + ... + v_M): at least any mixture of these with weights mu_p >= 0, sum 1, so

    t >= sum over m of u_m d_m + w_m v_m,    u_m = sum over p >= m of mu_p,    w_m = sum over p <= m of mu_p.

Without overlap this holds with u = w = 1, and autoregressive steps have d = 0. A run of speculation length l with
tasks k takes d_m >= l h + sum of its tasks' own work, v_m >= h' + the same, at any one piece of the runtimes (which
are maxima of their pieces): padding, growth beyond the first step, regrouping only add. So with M runs t is at least

    sum over m of (u_m h + w_m h') + sum over k of min over m and l of u_m D_k(l) + w_m V_k(l),

and (1) holds for a number a of tasks if, for every M from ceil(a / most tasks that fit) to a, some mu makes the sum
of the first term and the a smallest c_k = min over m, l of u_m D_k(l) + w_m V_k(l) - p_k L(alpha_k, l) non-negative,
with D and V of a decoding step. With one run, which has one l, the overhead of drafting counts l times. First steps
do more: q_k is what their c_k exceeds that of decoding by, least over all mu tried.

Weights mu_p proportional to x^p are enough: with x = drafting over verification they make all positions equally dear,
which is the dual solution of the step's linear relaxation. Prices are raised one after the other, the longest tasks
first, as high as (1) allows, then scaled by what the check of all a says.

Without arrivals all first steps are one step; its bound by shortest paths over padded batches, at l = 1, is usually
better. Larger l add at least (1 - x) of their verification and x of their drafting, x the weight of that path.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from specopt.models.fields import Floats
from specopt.solvers.budget import Budget
from specopt.solvers.serving_latency.prepare import Prepared

RATIOS = (0.5, 0.8, 1.0, 1.25, 2.0)
"""Ratios x that are tried besides that of the least l."""

MOST_RUNS = 6
"""Runs of one step that have weights of their own; more are charged as one more, at the weights of the middle."""

GROUPS = 60
"""Prices that differ, at most."""

HALVINGS = 20

ROUNDING = 1e-9
"""What is taken off the prices for the rounding of their sums."""


@dataclass(frozen=True)
class Weights:
    """A lower bound on steps of one sort: what they are charged for their runs, and for every task.

    Parameters
    ----------
    sort
        Number of the sort; steps of a sort take at least the most that its weights say.
    least, most
        Runs of a step of this sort.
    places
        Pairs u_m, w_m that differ.
    overhead
        What the runs take without any work.
    pieces
        Which piece of either runtime is counted.
    only
        The speculation length of all tasks, or None.
    """

    sort: int
    least: int
    most: float
    places: list[tuple[float, float]]
    overhead: float
    pieces: tuple[int, int]
    only: int | None = None


class Prices:
    """Prices of tokens and of first steps for one problem under one mechanism.

    Parameters
    ----------
    prepared
        The problem; tasks stay in its sorted order here.
    budget
        Checked between the steps of the search.
    """

    def __init__(self, prepared: Prepared, budget: Budget) -> None:
        self.prepared, self.budget = prepared, budget
        self.problem = prepared.problem
        self.lengths = list(prepared.lengths)
        self.tokens = np.stack(
            [self.problem.tokens_per_step(length)[prepared.order] for length in self.lengths], axis=1
        )
        self.weights = self._weights()
        shape = len(self.weights), prepared.tasks, len(self.lengths)
        self.decode, self.first = np.full(shape, math.inf), np.full(shape, math.inf)
        for row, weights in enumerate(self.weights):
            for column, length in enumerate(self.lengths):
                if weights.only in (None, length):
                    self.decode[row, :, column] = self._charge(weights, length, first=False)
                    self.first[row, :, column] = self._charge(weights, length, first=True)
        self.overheads = np.array([weights.overhead for weights in self.weights])
        sorts = np.array([weights.sort for weights in self.weights])
        rows = [np.flatnonzero(sorts == sort) for sort in np.unique(sorts)]
        self.sorts = [(group, self.weights[group[0]].least) for group in rows]

    # ------------------------------------------------------------------ what steps are charged

    def work(self, length: int, first: bool) -> tuple[Floats, Floats]:
        """Return each task's operations in drafting and verifying a step, at the fewest tokens that it can have."""
        inputs = self.prepared.inputs
        token, pair, logit = self.prepared.draft
        verify_token, verify_pair, verify_logit = self.prepared.verify
        reached = inputs if first else inputs + self.tokens[:, 0]
        draft = np.zeros_like(inputs)
        for guess in range(length):
            new = inputs if first and guess == 0 else np.ones_like(inputs)
            draft += new * (token + pair * (reached + guess)) + logit
        new = inputs + length if first else np.full_like(inputs, 1.0 + length)
        return draft, new * (verify_token + verify_pair * (reached + length)) + verify_logit * (1 + length)

    def _charge(self, weights: Weights, length: int, first: bool) -> Floats:
        draft, verify = self.work(length, first)
        draft = draft * self.prepared.draft_pieces[weights.pieces[0], 0]
        verify = verify * self.prepared.verify_pieces[weights.pieces[1], 0]
        return np.asarray(np.min([u * draft + w * verify for u, w in weights.places], axis=0))

    def _weights(self) -> list[Weights]:
        """Return the bounds that are tried, sort by sort."""
        found: list[Weights] = []
        overlap = self.prepared.mechanism == "pipelined"
        fewest, most = self.lengths[0], MOST_RUNS if overlap else 0
        for i, draft in enumerate(self.prepared.draft_pieces):
            for j, verify in enumerate(self.prepared.verify_pieces):
                for sort, length in enumerate(self.lengths):  # one run
                    found.append(Weights(sort, 1, 1, [(1.0, 1.0)], length * draft[1] + verify[1], (i, j), length))
                drafting, verifying = (float(part.mean()) for part in self.work(fewest, False))
                own = drafting * draft[0] / (verifying * verify[0]) if verifying * verify[0] > 0.0 else 1.0
                for ratio in (*RATIOS, own) if overlap else ():
                    for runs in range(2, most + 1):
                        mu = min(max(ratio, 1e-3), 1e3) ** np.arange(runs)
                        mu /= mu.sum()
                        u, w = np.cumsum(mu[::-1])[::-1], np.cumsum(mu)
                        overhead = float(u.sum()) * fewest * draft[1] + float(w.sum()) * verify[1]
                        places = list(zip(u.tolist(), w.tolist(), strict=True))
                        found.append(Weights(len(self.lengths) + runs, runs, runs, places, overhead, (i, j)))
                for share in (0.0, 0.25, 0.5, 0.75, 1.0) if overlap else (1.0,):  # any further number of runs
                    middle = (share, 1.0 - share) if overlap else (1.0, 1.0)
                    runs = most + 1 if overlap else 2
                    overhead = runs * (middle[0] * fewest * draft[1] + middle[1] * verify[1])
                    found.append(Weights(len(self.lengths), runs, math.inf, [middle], overhead, (i, j)))
        return found

    # ------------------------------------------------------------------ prices

    def raise_prices(self, outputs: Floats) -> tuple[Floats, Floats]:
        """Return the prices p and q of every task (sorted order) for lengths that tasks need."""
        tasks = len(outputs)
        order = np.argsort(-outputs / self.tokens[:, 0], kind="stable")
        prices = np.zeros(tasks)
        earned = np.zeros(len(self.weights))
        price = float(self.alone().max())
        for group in np.array_split(order, min(tasks, GROUPS)):
            self.budget.check()
            count = int(np.count_nonzero(prices)) + len(group)
            low, high = 0.0, price
            for _ in range(HALVINGS):
                if self._slack(self.overheads + earned + self._least(group, high).sum(axis=1), count) >= 0.0:
                    low = high
                    break
                middle = 0.5 * (low + high)
                if self._slack(self.overheads + earned + self._least(group, middle).sum(axis=1), count) >= 0.0:
                    low = middle
                else:
                    high = middle
            price = low
            prices[group] = price
            earned += self._least(group, price).sum(axis=1)
        low, high = 0.0, 1.0
        for _ in range(HALVINGS if not self.holds(prices) else 0):
            middle = 0.5 * (low + high)
            low, high = (middle, high) if self.holds(middle * prices) else (low, middle)
        prices *= (1.0 if self.holds(prices) else low) * (1.0 - ROUNDING)
        everyone = np.arange(tasks)
        more = (self.first - prices[:, None] * self.tokens).min(axis=2) - self._least(everyone, prices[:, None])
        return prices, np.maximum(0.0, more.min(axis=0)) * (1.0 - ROUNDING)

    def alone(self) -> Floats:
        """Return what a token of each task costs at least if its step serves nobody else."""
        found = np.zeros(self.prepared.tasks)
        for pieces in {weights.pieces for weights in self.weights}:
            rows = [row for row, one in enumerate(self.weights) if one.most == 1 and one.pieces == pieces]
            seconds = (self.overheads[rows, None, None] + self.decode[rows]) / self.tokens
            found = np.maximum(found, seconds.min(axis=(0, 2)))
        return found

    def _least(self, tasks: np.ndarray, price: float | Floats) -> Floats:
        """Return c_k of some tasks (columns) under each of the weights (rows)."""
        return np.asarray((self.decode[:, tasks] - price * self.tokens[tasks]).min(axis=2))

    def _slack(self, values: Floats, count: int) -> float:
        """Return what a step of so many tasks takes more than it earns, at least; `values` by weights."""
        worst = math.inf
        for rows, runs in self.sorts:
            if runs <= count:
                worst = min(worst, float(values[rows].max()))
        return worst

    def holds(self, prices: Floats) -> bool:
        """Tell whether no step earns more than it takes, whatever tasks it serves."""
        tasks = len(prices)
        least = np.sort(self._least(np.arange(tasks), prices[:, None]), axis=1)
        values = self.overheads[:, None] + np.cumsum(least, axis=1)
        return all(bool((values[rows].max(axis=0)[runs - 1 :] >= 0.0).all()) for rows, runs in self.sorts)


def served_bound(prepared: Prepared, budget: Budget) -> float:
    """Return a lower bound on the objective of every rebatched plan under this mechanism."""
    problem = prepared.problem
    prices = Prices(prepared, budget)
    bounds = [_bound(prices, np.asarray(outputs[prepared.order], dtype=np.float64)) for outputs in problem.scenarios]
    return float(np.mean(bounds))


def _bound(prices: Prices, outputs: Floats) -> float:
    """Return the bound for tasks (sorted order) that need so many tokens."""
    prepared = prices.prepared
    problem = prepared.problem
    token, first = prices.raise_prices(outputs)
    work = token * outputs + first
    alone = prices.alone() * outputs
    if problem.arrival_seconds is None:
        if problem.objective == "makespan":
            return prepared.communication_seconds + max(float(work.sum()), float(alone.max()))
        ends = np.maximum(np.cumsum(np.sort(work)), np.sort(alone))  # the j-th to finish ends no earlier
        return prepared.communication_seconds + float(ends.mean())
    upload = prepared.upload_seconds[prepared.order]  # over the whole band
    arrival = (problem.arrival_seconds - problem.arrival_seconds.min())[prepared.order]
    if problem.objective == "makespan":
        return max(float((arrival + upload).min() + work.sum()), float((arrival + upload + alone).max()))
    return float((upload + alone).mean())
