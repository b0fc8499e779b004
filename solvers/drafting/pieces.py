"""What drafting on is worth, as a function of the belief that no token was rejected: convex,
piecewise linear, exact.

For one price of time, only the belief pi counts: the probability that all tokens so far are
accepted, given every score read. The token drafted next adds the belief after it to E[accepted],
whatever came before. So a backward recursion on (position, belief) is exact, also where acceptance
differs from position to position. The value of going on is the maximum over plans of their
values with no rejection so far and with one; nothing is put on a grid. Either it is not positive at
belief 0, or a plan that reads no score makes rounds shorter there, as it does at every belief, and
no round stops. Hence one threshold per position is the whole policy, and each piece is a node of
it. Where pieces become many, plans that are worth next to nothing are dropped: the rest is the
value of a real policy, and the sum of the losses is the gap.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from specopt.models.drafting import Scores
from specopt.models.fields import Floats, Ints

EXACT_PIECES = 256
"""Number of pieces up to which nothing is dropped."""

WORTHLESS = 1e-7
"""Tokens of a round that a plan must be worth to be kept where pieces are many."""

CLOSE = 1e-13
"""Relative rise of a price that is none, to rounding."""

MAX_ENTRIES = 2_000_000
"""Pieces times scores beyond which plans are dropped whatever they are worth, so that memory is
bounded.
"""


def beliefs_after(scores: Scores, score: int, rate: float, beliefs: Floats) -> Floats:
    """Return the beliefs after one more token with this score."""
    good = (rate * scores.accepted[score]) * beliefs
    bad = ((1.0 - rate) * scores.first_rejection[score]) * beliefs + scores.after[score] * (
        1.0 - beliefs
    )
    every = good + bad
    return np.asarray(np.divide(good, every, out=np.zeros_like(good), where=every > 0.0))


@dataclass(frozen=True)
class Pieces:
    """A convex piecewise linear function of the belief on [0, 1].

    Piece i holds from `starts[i]` on; `inside[i]` is a belief in it. Its plan accepts `accepted[i]`
    more tokens if none is rejected so far (0 otherwise) and takes the time `time[i]`, or
    `time_after[i]` if one is. The first piece of a value is to stop.
    """

    starts: Floats
    inside: Floats
    accepted: Floats
    time: Floats
    time_after: Floats

    def __getitem__(self, which: object) -> Pieces:
        return Pieces(*(getattr(self, name)[which] for name in self.__dataclass_fields__))

    def at(self, beliefs: Floats) -> Ints:
        """Return the piece of each belief."""
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
    """Return the value before each token and after the last, and the loss.

    `rates` are by position, and so are `times`, what each token adds to a round, in rounds without
    drafts, shape (L,); `price` is in accepted tokens that such a round must be worth. Where pieces
    are many a plan must be worth `worthless` tokens of a round to be kept. `check` raises when
    there is no time left.
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
    """Return the value of drafting one token and going on as `value` says, before the price is
    known.
    """
    u, v, w = rate * scores.accepted, (1.0 - rate) * scores.first_rejection, scores.after
    knots = value.starts[1:]
    # the belief after bin s reaches knot b at pi = b w / (u - b (u + v - w))
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
    """Return the value of doing the better: to stop, up to a belief, or to go on."""
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
    """Drop every other piece while pieces are many and lose little; return the most that this loses
    anywhere.
    """
    lost = 0.0
    while len(value.starts) > EXACT_PIECES:
        check()
        at_zero = -price * value.time_after
        slope = value.accepted - price * value.time - at_zero
        i = np.arange(1, len(value.starts) - 1, 2)  # the neighbours of each stay
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
