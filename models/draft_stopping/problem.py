"""Draft stopping: a device stops drafting depending on the scores that a rejection predictor gives
its tokens.

A round belongs to a hidden class, for example easy or hard. Its token at position t is accepted
with the probability of the class, given that all its predecessors were. After each draft token the
device reads a score. The distribution of the score depends only on whether the token is accepted,
is the first rejection, or comes after it. A policy is a finite automaton over the scores.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Self

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
    Unit,
    required,
)
from specopt.models.integer_table import IntegerTable
from specopt.models.problem import Evaluation, Plan, Problem
from specopt.models.rates import Rates, SecondsByLength, by_length

MAX_NODES = 1_000_000
MAX_BINS = 1000
STOP = -1
MAX_RATIO = 1_000_000
"""The largest entry of a list may be this many times the smallest. With a larger ratio, the seconds
that a token adds to a round would lose digits.
"""

Probability = Unit
DraftLimit = Annotated[int, Meta(ge=1, le=1000)]


@dataclass(frozen=True, eq=False)
class AcceptanceRate(Rates):
    """An acceptance probability: one for all positions of a draft, or one for each. JSON: a number
    or a list.

    Parameters
    ----------
    values
        Acceptance probabilities, shape () or (L,), in [0, 1].
    """

    closed = True

    @classmethod
    def parse(cls, data: object, where: str) -> Self:
        """Build the rate from a number, a list or an array."""
        found = super().parse(data, where)
        return found if isinstance(found, cls) else cls(np.array(found))

    def dump(self) -> Any:
        """Return the number or the list."""
        return self.values.tolist()


@dataclass(frozen=True, eq=False)
class RoundSeconds(SecondsByLength):
    """Seconds of a round by the number of draft tokens in it; JSON: a number or a list."""

    closed = False


@dataclass(frozen=True, eq=False)
class Transitions(IntegerTable):
    """Successor of each node for each score; JSON: the list of rows.

    Parameters
    ----------
    rows
        Number of the next node, shape (nodes, B), or -1 to stop.
    """

    size = f"at most {MAX_NODES:,} rows"
    max_rows = MAX_NODES
    entry = "a node or -1"
    min_entry = STOP
    max_entry = MAX_NODES - 1

    @classmethod
    def schema(cls) -> dict[str, Any]:
        """Return the JSON Schema of the list of rows."""
        node = {"type": "integer", "minimum": STOP}
        return {
            "type": "array",
            "items": {"type": "array", "items": node, "minItems": 1},
            "maxItems": MAX_NODES,
        }


@dataclass(frozen=True, kw_only=True, eq=False)
class RoundClass(Checked):
    """A hidden class of rounds.

    Parameters
    ----------
    probability
        Probability that a round is in this class.
    acceptance_rate
        Probability that a token is accepted, given that all its predecessors were: one number, or
        one per position.
    """

    probability: Probability
    acceptance_rate: Given[AcceptanceRate, AcceptanceRate | float | FloatsLike] = required()


@dataclass(frozen=True, kw_only=True, eq=False)
class DraftStoppingPlan(Plan):
    """An automaton over scores: a node drafts one token, reads its score and goes to the next node.

    Parameters
    ----------
    start
        First node, or -1 to draft nothing.
    next
        Next node for each node and score, or -1 to stop. Successors have larger numbers.
    """

    start: Annotated[int, Meta(ge=STOP, le=MAX_NODES)]
    next: Given[Transitions, Transitions | Sequence[IntsLike] | Ints] = required()


@dataclass(frozen=True, kw_only=True, eq=False)
class DraftStoppingProblem(Problem):
    """Maximise the tokens per second of rounds that stop drafting by the scores read so far.

    Parameters
    ----------
    max_draft_tokens
        Maximum number L of draft tokens per round.
    draft_seconds_per_token
        Drafting time of a token, including the reading of its score.
    round_seconds
        Time of a round in addition to drafting: network, queue and verification. One number, or one
        for each number of draft tokens from 0 to the maximum.
    rounds
        Classes of rounds; their probabilities sum to 1.
    scores
        Score distributions of the predictor at accepted tokens, at first rejections and after them.

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
    rounds: Given[Annotated[tuple[RoundClass, ...], Meta(min_length=1)], Sequence[RoundClass]] = (
        required()
    )
    scores: Scores

    def __post_init__(self) -> None:
        super().__post_init__()
        check_sum("rounds.probability", np.array([one.probability for one in self.rounds]))
        if self.scores.bins > MAX_BINS:
            raise InvalidInput(
                f"scores.accepted: expected at most {MAX_BINS} entries, got {self.scores.bins}"
            )
        for index, one in enumerate(self.rounds):
            size = one.acceptance_rate.values.size
            if one.acceptance_rate.values.ndim and size != self.max_draft_tokens:
                raise InvalidInput(
                    f"rounds[{index}].acceptance_rate: expected one number or max_draft_tokens = "
                    f"{self.max_draft_tokens} of them, got {size}"
                )
        with np.errstate(over="ignore"):
            seconds = self.round_by_length
            slowest = seconds.max() + self.draft_seconds_per_token * self.max_draft_tokens
            fastest = (1.0 + self.max_draft_tokens) / seconds.min()
        if not (math.isfinite(slowest) and np.isfinite(fastest)):
            raise InvalidInput(
                f"round_seconds: expected finite rates and times, got {seconds.min():g} seconds"
            )
        if seconds.max() > MAX_RATIO * seconds.min():
            raise InvalidInput(
                f"round_seconds: expected numbers of at most {MAX_RATIO:,} times the smallest, "
                f"got {seconds.min():g} and {seconds.max():g}"
            )

    @property
    def round_by_length(self) -> Floats:
        """Time of a round in addition to drafting, by the number of draft tokens, shape (L +
        1,).
        """
        return by_length(self.round_seconds, self.max_draft_tokens, "round_seconds")

    @property
    def probabilities(self) -> Floats:
        """Probability of each class, shape (classes,)."""
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
        """Return (1 + E[accepted]) / (E[round_seconds] + draft_seconds_per_token E[drafted]),
        exactly.

        The probability mass of rounds moves through (node, class, still accepted), position by
        position.
        """
        self.expect_plan(plan)
        self._refuse(self.violations(plan))
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
            )  # from a node to a node, for any score
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
        """Return the reasons why the plan is not an automaton for this problem: shapes, order or
        path lengths.
        """
        self.expect_plan(plan)
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
                f"next[{node}][{score}]: expected -1 or a node in {node + 1}..{count - 1}, got"
                f" {rows[node, score]}"
            ]
        longest = np.zeros(
            count + 1, np.int64
        )  # number of tokens that a path from a node drafts; the last entry is for stopping
        for node in range(count - 1, -1, -1):
            longest[node] = 1 + longest[rows[node]].max()
        if plan.start != STOP and longest[plan.start] > self.max_draft_tokens:
            return [
                f"next: a path drafts {longest[plan.start]} tokens, but the maximum is"
                f" {self.max_draft_tokens}"
            ]
        return []
