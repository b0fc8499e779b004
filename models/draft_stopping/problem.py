"""Draft stopping: a device decides when to stop drafting, based on a rejection predictor's scores.

Each round belongs to a hidden class, for example easy or hard. The class determines the probability
that the token at position t is accepted, given that all its predecessors were accepted. After each
draft token, the predictor assigns a score to the token. The distribution of the score depends only
on whether the token is accepted, is the first rejection, or follows the first rejection. A policy
is a finite automaton that reads the scores.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from msgspec import Meta

from specopt.models.drafting import Scores, check_sum
from specopt.models.errors import InvalidInput
from specopt.models.fields import (
    Checked,
    Floats,
    FloatsLike,
    Given,
    Ints,
    IntsLike,
    NonNegative,
    Positive,
    SomeObjects,
    Unit,
    required,
)
from specopt.models.integer_table import IntegerTable
from specopt.models.problem import Evaluation, Plan, Problem
from specopt.models.rates import ClosedRates, SecondsByLength, by_length

MAX_NODES = 1_000_000
MAX_BINS = 1000
STOP = -1
MAX_RATIO = 1_000_000
"""Maximum ratio of the largest entry of `round_seconds` to the smallest. With a larger ratio, the
time that a token adds to a round would be inaccurate in floating point.
"""

Probability = Unit
DraftLimit = Annotated[int, Meta(ge=1, le=1000)]


@dataclass(frozen=True, eq=False)
class AcceptanceRate(ClosedRates):
    """Acceptance probabilities of draft tokens. There is one value for all positions of a draft, or
    one value per position. The JSON form is a number or a list.

    Parameters
    ----------
    values
        Acceptance probabilities, shape () or (L,), in [0, 1].
    """


@dataclass(frozen=True, eq=False)
class RoundSeconds(SecondsByLength):
    """Time per round for everything except drafting, in seconds, as a function of the number of
    draft tokens. The JSON form is a number or a list.
    """

    closed = False


@dataclass(frozen=True, eq=False)
class Transitions(IntegerTable):
    """Transition table of an automaton: the successor of each node for each score. The JSON form is
    a list of rows.

    Parameters
    ----------
    rows
        Index of the next node for each node and score, or -1 to stop drafting. The shape is
        (nodes, B), where B is the number of scores.
    """

    size = f"at most {MAX_NODES:,} rows"
    max_rows = MAX_NODES
    entry = "a node or -1"
    min_entry = STOP
    max_entry = MAX_NODES - 1

    @classmethod
    def schema(cls) -> dict[str, Any]:
        """Return the JSON Schema for the list of rows."""
        node = {"type": "integer", "minimum": STOP}
        return {
            "type": "array",
            "items": {"type": "array", "items": node, "minItems": 1},
            "maxItems": MAX_NODES,
        }


@dataclass(frozen=True, kw_only=True, eq=False)
class RoundClass(Checked):
    """A hidden class of rounds that have the same acceptance rates.

    Parameters
    ----------
    probability
        Probability that a round is in this class.
    acceptance_rate
        Probability that a token is accepted, given that all its predecessors were accepted. This is
        one number, or one number per position.
    """

    probability: Probability
    acceptance_rate: Given[AcceptanceRate, AcceptanceRate | float | FloatsLike] = required()


@dataclass(frozen=True, kw_only=True, eq=False)
class DraftStoppingPlan(Plan):
    """A stopping policy, represented as an automaton. Each node drafts one token and reads the
    token's score, which determines the next node.

    Parameters
    ----------
    start
        Index of the first node, or -1 to draft nothing.
    next
        Index of the next node for each node and score, or -1 to stop. A next node always has a
        larger index.
    """

    start: Annotated[int, Meta(ge=STOP, le=MAX_NODES)]
    next: Given[Transitions, Transitions | Sequence[IntsLike] | Ints] = required()


@dataclass(frozen=True, kw_only=True, eq=False)
class DraftStoppingProblem(Problem):
    """Maximise the number of tokens per second by stopping each draft based on its tokens' scores.

    Parameters
    ----------
    max_draft_tokens
        Maximum number L of draft tokens per round.
    draft_seconds_per_token
        Drafting time per token in seconds, including the time to compute the score.
    round_seconds
        Time per round in seconds for everything except drafting, such as network, queueing and
        verification. This is one number, or one number for each draft length from 0 to the maximum.
    rounds
        Hidden classes of rounds, whose probabilities sum to 1.
    scores
        Distributions of the predictor's score at accepted tokens, at the first rejection, and after
        the first rejection.

    Examples
    --------
    >>> from specopt import DraftStoppingProblem, RoundClass, Scores, solve
    >>> problem = DraftStoppingProblem(
    ...     max_draft_tokens=4,
    ...     draft_seconds_per_token=0.01,
    ...     round_seconds=0.05,
    ...     rounds=[
    ...         RoundClass(probability=0.5, acceptance_rate=0.9),
    ...         RoundClass(probability=0.5, acceptance_rate=0.4),
    ...     ],
    ...     scores=Scores(accepted=[0.8, 0.2], first_rejection=[0.3, 0.7], after=[0.5, 0.5]),
    ... )
    >>> solve(problem).status.value
    'optimal'
    """

    kind = "draft-stopping"
    plan_type = DraftStoppingPlan
    sense = "maximize"
    objective_label = "tokens per second"

    max_draft_tokens: DraftLimit
    draft_seconds_per_token: NonNegative
    round_seconds: Given[Positive | RoundSeconds, float | FloatsLike | RoundSeconds] = required()
    rounds: SomeObjects[RoundClass] = required()
    scores: Scores

    def __post_init__(self) -> None:
        super().__post_init__()
        check_sum("rounds.probability", self.probabilities)
        if self.scores.bins > MAX_BINS:
            raise InvalidInput(
                f"scores.accepted: expected at most {MAX_BINS} entries, got {self.scores.bins}"
            )
        for index, one in enumerate(self.rounds):
            size = one.acceptance_rate.values.size
            if one.acceptance_rate.values.ndim and size != self.max_draft_tokens:
                raise InvalidInput(
                    f"rounds[{index}].acceptance_rate: expected 1 or max_draft_tokens ="
                    f" {self.max_draft_tokens} numbers, got {size}"
                )
        with np.errstate(over="ignore"):
            seconds = self.round_by_length
            slowest = seconds.max() + self.draft_seconds_per_token * self.max_draft_tokens
            fastest = (1.0 + self.max_draft_tokens) / seconds.min()
        if not (math.isfinite(slowest) and np.isfinite(fastest)):
            raise InvalidInput(
                "round_seconds: the times of rounds and the resulting rates must be finite; the"
                f" shortest time is {seconds.min():g} seconds"
            )
        if seconds.max() > MAX_RATIO * seconds.min():
            raise InvalidInput(
                f"round_seconds: expected the largest value to be at most {MAX_RATIO:,} times the"
                f" smallest, got {seconds.max():g} and {seconds.min():g}"
            )

    @property
    def round_by_length(self) -> Floats:
        """Time per round for everything except drafting, in seconds. Entry K of the array, shape
        (L + 1,), is the time of a round with K draft tokens.
        """
        return by_length(self.round_seconds, self.max_draft_tokens, "round_seconds")

    @property
    def probabilities(self) -> Floats:
        """Probability of each class of rounds, shape (classes,)."""
        return np.array([one.probability for one in self.rounds])

    @property
    def acceptance_rates(self) -> Floats:
        """Acceptance rates by class and position, shape (classes, L)."""
        return np.array(
            [
                np.broadcast_to(one.acceptance_rate.values, self.max_draft_tokens)
                for one in self.rounds
            ]
        )

    # ------------------------------------------------------------------ the judge

    def evaluate(self, plan: DraftStoppingPlan) -> Evaluation:
        """Return the exact long-run number of tokens per second under a policy.

        The rate is (1 + E[accepted]) / (E[round_seconds] + draft_seconds_per_token E[drafted]). It
        is computed by propagating the joint distribution of node, class and acceptance from one
        position to the next.
        """
        self.expect_fit(plan)
        rates, scores = self.acceptance_rates, self.scores
        next_node = plan.next.rows
        ended = np.zeros(
            self.max_draft_tokens + 1
        )  # probability that a round ends with each number of draft tokens
        ended[0] = plan.start == STOP
        drafted = accepted = 0.0
        nodes = np.array([plan.start] if plan.start != STOP else [], np.int64)
        alive = self.probabilities[None, :].repeat(len(nodes), axis=0)  # (nodes, classes)
        rejected = np.zeros(len(nodes))
        for position in range(self.max_draft_tokens):
            if not len(nodes):
                break
            drafted += float(alive.sum() + rejected.sum())
            survives = alive * rates[:, position]
            fails = (alive * (1.0 - rates[:, position])).sum(axis=1)
            accepted += float(survives.sum())
            goes = next_node[nodes]  # (nodes, scores)
            node, score = np.nonzero(goes == STOP)
            ended[position + 1] = (
                survives.sum(axis=1)[node] @ scores.accepted[score]
                + fails[node] @ scores.first_rejection[score]
                + rejected[node] @ scores.after[score]
            )
            node, score = np.nonzero(goes != STOP)
            nodes, to = np.unique(goes[node, score], return_inverse=True)
            moves, move = np.unique(
                node * len(nodes) + to, return_inverse=True
            )  # pairs of a node and its successor, for any score
            node, to = np.divmod(moves, max(1, len(nodes)))
            on, on_rejected, on_after = (
                np.bincount(move, distribution[score], len(moves))
                for distribution in (scores.accepted, scores.first_rejection, scores.after)
            )
            moved_alive = np.zeros((len(nodes), len(rates)))
            moved_rejected = np.zeros(len(nodes))
            np.add.at(moved_alive, to, survives[node] * on[:, None])
            np.add.at(moved_rejected, to, fails[node] * on_rejected + rejected[node] * on_after)
            alive, rejected = moved_alive, moved_rejected
        round_seconds = self.round_seconds
        if isinstance(round_seconds, RoundSeconds):
            round_seconds = float(ended @ round_seconds.values / ended.sum())
        seconds = round_seconds + self.draft_seconds_per_token * drafted
        terms = {
            "own_tokens_per_second": 1.0 / seconds,
            "accepted_draft_tokens_per_second": accepted / seconds,
        }
        return Evaluation((1.0 + accepted) / seconds, terms)

    def violations(self, plan: DraftStoppingPlan) -> list[str]:
        """Return the reasons why the plan is not a valid automaton for this problem. Examples are
        wrong shapes, nodes that are out of order, and paths that are too long.
        """
        return super().violations(plan)

    def _defects(self, plan: DraftStoppingPlan) -> list[str]:
        """Return the reasons why the plan is not a valid automaton for this problem."""
        rows, count = plan.next.rows, len(plan.next)
        if count and rows.shape[1] != self.scores.bins:
            return [
                f"next: expected {self.scores.bins} entries per row, one per score, got"
                f" {rows.shape[1]}"
            ]
        if plan.start >= count:
            return [f"start: expected a node below {count} or -1, got {plan.start}"]
        wrong = (rows >= count) | ((rows != STOP) & (rows <= np.arange(count)[:, None]))
        if wrong.any():
            node, score = np.argwhere(wrong)[0].tolist()
            return [
                f"next[{node}][{score}]: expected -1 or a node from {node + 1} to {count - 1}, got"
                f" {rows[node, score]}"
            ]
        longest = np.zeros(
            count + 1, np.int64
        )  # maximum number of tokens drafted from each node on; the last entry is for stopping
        for node in range(count - 1, -1, -1):
            longest[node] = 1 + longest[rows[node]].max()
        if plan.start != STOP and longest[plan.start] > self.max_draft_tokens:
            return [
                f"next: a path drafts {longest[plan.start]} tokens, but the maximum is"
                f" {self.max_draft_tokens}"
            ]
        return []
