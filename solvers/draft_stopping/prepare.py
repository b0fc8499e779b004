"""Code shared by the methods for draft stopping: the arrays of a problem, the evaluation of rules
that stop at certain scores, plans as automata, and an upper bound on the rate.

The unit of time is the duration of a round without drafts. In this unit, a round that drafts D
tokens takes 1 + times[0] + ... + times[D - 1]. The time of a token is negative if drafting the
token makes the round shorter.

Dinkelbach's method finds the best ratio of means. At each price, it maximises
E[accepted] - price E[time]. The ratio of the maximiser is the next price, and prices rise to the
optimum.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from specopt.models.draft_stopping.problem import (
    STOP,
    DraftStoppingPlan,
    DraftStoppingProblem,
    Transitions,
)
from specopt.models.drafting import Scores
from specopt.models.fields import Floats, Ints, Truths
from specopt.solvers.drafting.pieces import CLOSE

Flags = Truths


@dataclass(frozen=True, eq=False)
class Prepared:
    """A draft-stopping problem as arrays, with C classes, B scores and up to L tokens per round.

    Parameters
    ----------
    prior
        Probability of each class, shape (C,). Classes that never occur are omitted.
    rates
        Acceptance rates by class and position, shape (C, L).
    scores
        Distributions of the scores, given the outcome of a token.
    times
        Time that the token at each position adds to a round, relative to a round without drafts,
        shape (L,).
    seconds
        Duration of a round without drafts, in seconds.
    """

    prior: Floats
    rates: Floats
    scores: Scores
    times: Floats
    seconds: float

    @property
    def most(self) -> int:
        """Maximum number of draft tokens per round, L."""
        return int(self.rates.shape[1])

    @property
    def none_flagged(self) -> Flags:
        """Flags of a rule that does not stop at any score, all false, shape (B,)."""
        return np.zeros(self.scores.bins, np.bool_)

    @property
    def averaged(self) -> Floats:
        """Acceptance rate of the judged tokens at each position, shape (L,).

        The rates are averaged over the classes of the rounds that reach the position.
        """
        reach = self.prior @ np.cumprod(
            np.column_stack([np.ones(len(self.prior)), self.rates]), axis=1
        )
        rates = np.divide(reach[1:], reach[:-1], out=np.zeros(self.most), where=reach[:-1] > 0.0)
        return np.minimum(rates, 1.0)

    @property
    def mean_rate(self) -> float:
        """Share of accepted tokens among the tokens that the verifier judges in rounds of L
        tokens."""
        alive = self.prior @ np.cumprod(self.rates, axis=1)
        return float(alive.sum() / (1.0 + alive[:-1].sum()))

    def windows(self, flagged: Flags) -> tuple[Floats, Floats]:
        """Return E[accepted] and E[time] of a rule that stops at flagged scores.

        Both arrays have one entry for each window 0, 1, ..., L.
        """
        on, on_rejected, on_after = (
            float(law[~flagged].sum())
            for law in (self.scores.accepted, self.scores.first_rejection, self.scores.after)
        )
        alive, rejected = self.prior, 0.0
        accepted, times = np.zeros(self.most + 1), np.zeros(self.most + 1)
        for t in range(self.most):
            survives = alive * self.rates[:, t]
            times[t + 1] = self.times[t] * (float(alive.sum()) + rejected)
            accepted[t + 1] = float(survives.sum())
            rejected = float((alive - survives).sum()) * on_rejected + rejected * on_after
            alive = survives * on
        return np.cumsum(accepted), np.cumsum(times)

    def ratio(self, accepted: Floats | np.float64, times: Floats | np.float64) -> Floats:
        """Return the number of tokens per unit of time, elementwise."""
        return np.asarray((1.0 + accepted) / (1.0 + times))

    def knowing_bound(self) -> float:
        """Return an upper bound on the rate of any policy, in tokens per second.

        The bound is the best rate of a device that observes the class of the round and every
        rejection.
        """
        price = 1.0
        rates = np.vstack([self.rates, np.zeros(self.most)])  # last row: a round with a rejection
        while True:
            stay, accepted, times = (np.zeros(len(rates)) for _ in range(3))
            for rate, time in zip(rates.T[::-1], self.times[::-1], strict=True):
                worth = rate * (1.0 + stay) + (1.0 - rate) * stay[-1] - price * time
                goes = worth > 0.0
                accepted = np.where(goes, rate * (1.0 + accepted), 0.0)
                times = np.where(goes, time + rate * times + (1.0 - rate) * times[-1], 0.0)
                stay = np.where(goes, worth, 0.0)
            value = max(0.0, 1.0 + float(self.prior @ stay[:-1]) - price)
            found = float(self.ratio(self.prior @ accepted[:-1], self.prior @ times[:-1]))
            if not found > price * (1.0 + CLOSE):
                return (price + value / min(1.0, shortest_round(self.times))) / self.seconds
            price = found


def shortest_round(times: Floats) -> float:
    """Return the shortest duration of a round with drafts, relative to a round without drafts."""
    return float((1.0 + np.cumsum(times)).min())


def prepare(problem: DraftStoppingProblem) -> Prepared:
    """Convert a draft-stopping problem to arrays."""
    prior, seconds = problem.probabilities, problem.round_by_length
    return Prepared(
        prior[prior > 0.0] / prior.sum(),
        problem.acceptance_rates[prior > 0.0],
        problem.scores,
        (problem.draft_seconds_per_token + np.diff(seconds)) / seconds[0],
        float(seconds[0]),
    )


def window_plan(window: int, flagged: Flags) -> DraftStoppingPlan:
    """Return the plan that drafts up to `window` tokens and stops at a flagged score."""
    rows = np.where(flagged, STOP, np.arange(1, window + 1)[:, None])
    rows[-1:] = STOP
    return DraftStoppingPlan(start=0 if window else STOP, next=Transitions(rows))


class Automaton:
    """The nodes of a plan, which is built from the last token to the first.

    Nodes with the same successors are stored only once.
    """

    def __init__(self) -> None:
        self._numbers: dict[tuple[int, ...], int] = {}

    def node(self, goes: tuple[int, ...]) -> int:
        """Return the number of the node with the successors `goes`, one per score.

        A new node is added if no node has these successors.
        """
        return self._numbers.setdefault(goes, len(self._numbers))

    def plan(self, start: int) -> DraftStoppingPlan:
        """Return the plan that starts at the node `start`.

        The plan contains only reachable nodes, ordered from the first token to the last.
        """
        rows = list(self._numbers)
        needed, waiting = {start} - {STOP}, [start] if start != STOP else []
        while waiting:
            for node in set(rows[waiting.pop()]) - needed - {STOP}:
                needed.add(node)
                waiting.append(node)
        forwards = {node: number for number, node in enumerate(sorted(needed, reverse=True))} | {
            STOP: STOP
        }
        found: Ints = np.array(
            [[forwards[node] for node in rows[one]] for one in forwards if one != STOP]
        )
        return DraftStoppingPlan(
            start=forwards[start], next=Transitions.parse(found.astype(np.int64), "next")
        )
