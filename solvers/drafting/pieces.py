"""Exact value functions for drafting, which are convex and piecewise linear in the belief.

The belief pi is the probability that all draft tokens so far will be accepted, given the scores
observed so far. For a fixed price of time, the value depends on the past only through pi. Drafting
one more token increases the expected number of accepted tokens by the belief after that token. A
backward recursion on (position, belief) is therefore exact, even if the acceptance rate differs
between positions.

A plan prescribes how to continue drafting. Its value is linear in the belief: it interpolates
between the plan's value after a rejection (belief 0) and its value without a rejection (belief 1).
The value of continuing is the maximum over all plans, computed without a grid. In general, this
value is not positive at belief 0. Otherwise, continuing would pay off at every belief, and no round
would ever stop. Hence the policy is fully described by one threshold per position. Each linear
piece of the value function corresponds to one plan.

If the number of pieces becomes large, plans that improve the value only negligibly are dropped. The
remaining function is still the value of a feasible policy, and the sum of the losses bounds the
optimality gap.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from specopt.models.drafting import Scores
from specopt.models.fields import Floats, Ints

EXACT_PIECES = 256
"""Number of pieces of a value function up to which no plan is dropped."""

WORTHLESS = 1e-7
"""Gain, in tokens per round, at or below which a plan is dropped if a value function has many
pieces.
"""

CLOSE = 1e-13
"""Largest relative increase of a price that is attributed to rounding errors."""

MAX_ENTRIES = 2_000_000
"""Limit on the number of pieces times the number of scores, which bounds the memory use. Above this
limit, plans are dropped even if their gain is not negligible.
"""


def beliefs_after(scores: Scores, score: int, rate: float, beliefs: Floats) -> Floats:
    """Return the beliefs after one more token, updated by Bayes' rule with the score that was
    observed.
    """
    good = (rate * scores.accepted[score]) * beliefs
    bad = ((1.0 - rate) * scores.first_rejection[score]) * beliefs + scores.after[score] * (
        1.0 - beliefs
    )
    every = good + bad
    return np.asarray(np.divide(good, every, out=np.zeros_like(good), where=every > 0.0))


@dataclass(frozen=True)
class Pieces:
    """A convex piecewise linear function of the belief on [0, 1].

    Piece i starts at the belief `starts[i]` and contains the belief `inside[i]`. Its plan has an
    expected duration of `time[i]` if no token has been rejected so far, and of `time_after[i]`
    after a rejection. In the first case, the expected number of additional accepted tokens is
    `accepted[i]`, and in the second case no more tokens are accepted. The first piece of a value
    function represents stopping.
    """

    starts: Floats
    inside: Floats
    accepted: Floats
    time: Floats
    time_after: Floats

    def __getitem__(self, which: object) -> Pieces:
        return Pieces(*(getattr(self, name)[which] for name in self.__dataclass_fields__))

    def at(self, beliefs: Floats) -> Ints:
        """Return the index of the piece that contains each of the given beliefs."""
        return np.asarray(np.searchsorted(self.starts, beliefs, side="right") - 1, np.int64)


_STOP = Pieces(*(np.zeros(1) for _ in range(5)))


def solve_pieces(
    rates: Floats,
    scores: Scores,
    times: Floats,
    price: float,
    worthless: float,
    check: Callable[[], None],
) -> tuple[list[Pieces], float]:
    """Solve the backward recursion. Return the value functions before each token and after the last
    token, and the total loss from dropped plans.

    `rates` and `times` have shape (L,). They contain the acceptance rate and the duration of the
    token at each position, where the unit of time is the duration of a round without drafts.
    `price` is the price of this unit in accepted tokens. If there are many pieces, a plan is kept
    only if it gains more than `worthless` tokens per round. `check` raises an exception if the time
    limit is exceeded.
    """
    values, lost = [_STOP], 0.0
    for rate, time in zip(rates.tolist()[::-1], times.tolist()[::-1], strict=True):
        value = _or_stop(_go_on(rate, time, scores, values[-1], check), price)
        most = max(EXACT_PIECES, MAX_ENTRIES // scores.bins)
        value, dropped = _without_worthless(value, price, worthless, most, check)
        values.append(value)
        lost += dropped
    return values[::-1], lost


def _go_on(
    rate: float, time: float, scores: Scores, value: Pieces, check: Callable[[], None]
) -> Pieces:
    """Return the pieces of the value of drafting one more token and then following the value
    function `value`.

    The cost of the token's time is not subtracted.
    """
    u, v, w = rate * scores.accepted, (1.0 - rate) * scores.first_rejection, scores.after
    knots = value.starts[1:]
    # the belief after bin s equals the breakpoint b at pi = b w / (u - b (u + v - w))
    top = knots[None, :] * w[:, None]
    bottom = u[:, None] - knots[None, :] * (u + v - w)[:, None]
    inside = (bottom > 0.0) & (top > 0.0) & (top < bottom)
    starts = np.concatenate([[0.0], np.unique(top[inside] / bottom[inside])])
    middle = 0.5 * (starts + np.append(starts[1:], 1.0))
    accepted = np.zeros(len(starts))
    spent, spent_after = np.full(len(starts), time), np.full(len(starts), time)
    for s in range(len(u)):
        check()
        i = value.at(beliefs_after(scores, s, rate, middle))
        accepted += u[s] * (1.0 + value.accepted[i])
        spent += u[s] * value.time[i] + v[s] * value.time_after[i]
        spent_after += w[s] * value.time_after[i]
    return Pieces(starts, middle, accepted, spent, spent_after)


def _or_stop(going: Pieces, price: float) -> Pieces:
    """Return the value function of the optimal choice between stopping and continuing.

    It is optimal to stop below a threshold belief and to continue above it. `going` contains the
    pieces of the value of continuing, and `price` is the price of time.
    """
    ends = np.append(going.starts[1:], 1.0)
    at_zero = -price * going.time_after
    slope = going.accepted - price * going.time - at_zero
    worth = np.flatnonzero(at_zero + slope * ends > 0.0)
    if not len(worth):
        return _STOP
    first = int(worth[0])
    below = going.starts[first]
    if at_zero[first] + slope[first] * below < 0.0:
        below = min(max(-at_zero[first] / slope[first], below), ends[first])
    value = Pieces(
        *(
            np.concatenate([[0.0], getattr(going, name)[first:]])
            for name in going.__dataclass_fields__
        )
    )
    value.starts[1] = below
    return value


def _without_worthless(
    value: Pieces, price: float, worthless: float, most: int, check: Callable[[], None]
) -> tuple[Pieces, float]:
    """Drop pieces whose contribution is negligible, as long as there are more than `EXACT_PIECES`
    pieces.

    Each pass considers every second piece and drops those whose loss is at most `worthless`. If
    there is no such piece and the number of pieces exceeds `most`, the threshold `worthless` is
    raised. Return the remaining pieces and an upper bound on the loss at any belief.
    """
    lost = 0.0
    while len(value.starts) > EXACT_PIECES:
        check()
        at_zero = -price * value.time_after
        slope = value.accepted - price * value.time - at_zero
        i = np.arange(1, len(value.starts) - 1, 2)  # the neighbours of each of these pieces stay
        steeper = slope[i + 1] - slope[i - 1]
        crossing = np.divide(
            at_zero[i - 1] - at_zero[i + 1],
            steeper,
            out=value.starts[i].copy(),
            where=steeper > 0.0,
        )
        crossing = np.clip(crossing, value.starts[i], value.starts[i + 1])
        best = np.maximum(
            at_zero[i - 1] + slope[i - 1] * crossing, at_zero[i + 1] + slope[i + 1] * crossing
        )
        loss = at_zero[i] + slope[i] * crossing - best
        small = loss <= worthless
        if not small.any():
            if len(value.starts) <= most:
                break
            worthless *= 10.0
            continue
        lost += max(0.0, float(loss[small].max()))
        value.starts[i[small] + 1] = crossing[small]
        keep = np.ones(len(value.starts), np.bool_)
        keep[i[small]] = False
        value = value[keep]
    return value, lost
