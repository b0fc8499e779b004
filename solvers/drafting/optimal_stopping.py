"""The fastest policy on what the predictor says: exact optimal stopping of a draft.

Token speed is a ratio of means, (E[N] + 1) / (overhead + tau E[D]). Dinkelbach's method buys it at a price: for a price
lambda per second, maximise E[N] - lambda tau E[D]; the ratio of the maximiser is the next price, and prices rise to the
optimum in a few steps.

For one price, the belief pi (the probability that all tokens so far are accepted, given every score read) is all that
counts: the token drafted next adds the belief after it to E[N], whatever came before. So a backward recursion on
(position, belief) is exact. The value of going on is convex and piecewise linear in the belief, as the maximum over
plans of what each is worth with no rejection so far and with one; nothing is put on a grid. It is negative at belief 0
and does not fall, hence one threshold per position is the whole policy. Where pieces become many, plans that are worth
next to nothing are dropped: what is left is the value of a real policy, and the sum of what was dropped is the gap.

Every drafted token is sent: it costs drafting time whether it is sent or not.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from specopt.models.drafting import DraftingSetting, ExpectedRound, ScoredPredictor
from specopt.models.fields import Floats
from specopt.solvers.drafting.fixed_window import fixed_window
from specopt.solvers.drafting.policy import Drafting, DraftingPolicy

MOST_PRICES = 100

EXACT_PIECES = 256
"""Up to so many pieces nothing is dropped."""

WORTHLESS = 1e-7
"""Tokens of a round that a plan must be worth to be kept where pieces are many."""


@dataclass(frozen=True)
class _Pieces:
    """A convex piecewise linear function of the belief on [0, 1].

    Piece i holds from `starts[i]` on. Its plan accepts `accepted[i]` more tokens if none is rejected so far (0
    otherwise) and drafts `drafted[i]` more, or `drafted_after[i]` if one is.
    """

    starts: Floats
    accepted: Floats
    drafted: Floats
    drafted_after: Floats


def optimal_stopping(setting: DraftingSetting, predictor: ScoredPredictor) -> Drafting:
    """Return the policy of the highest token speed among all that stop by the scores read so far.

    Never slower than the best fixed window, nor than any rule on the same scores that counts the flagged token's
    drafting time.

    Parameters
    ----------
    setting
        Costs and acceptance.
    predictor
        Distribution of the score bins; two bins for a predictor that says only yes or no.
    """
    start = fixed_window(setting, bins=predictor.bins)
    price = start.tokens_per_second
    accepted, drafted, thresholds, lost = _solve(setting, predictor, price)
    for _ in range(MOST_PRICES):
        speed = setting.tokens_per_second(accepted, drafted)
        if not speed > price * (1.0 + 1e-13):
            break
        price = speed
        accepted, drafted, thresholds, lost = _solve(setting, predictor, price)
    speed = setting.tokens_per_second(accepted, drafted)
    gap = lost / (setting.overhead_seconds * price)
    if not speed > start.tokens_per_second * (1.0 + 1e-13):  # the scores are worth nothing here
        return Drafting(
            policy=DraftingPolicy(
                name="optimal-stopping",
                window=start.policy.window,
                flagged=np.zeros(predictor.bins, dtype=np.bool_),
                sends_flagged=True,
                thresholds=np.full(start.policy.window, -1.0),
            ),
            expected=start.expected,
            tokens_per_second=start.tokens_per_second,
            gap=gap,
        )
    policy = DraftingPolicy(
        name="optimal-stopping",
        window=setting.most_tokens,
        flagged=np.zeros(predictor.bins, dtype=np.bool_),
        sends_flagged=True,
        thresholds=thresholds,
    )
    expected = ExpectedRound(accepted=accepted, wasted=drafted - accepted, drafted=drafted)
    return Drafting(policy=policy, expected=expected, tokens_per_second=speed, gap=gap)


def _solve(setting: DraftingSetting, predictor: ScoredPredictor, price: float) -> tuple[float, float, Floats, float]:
    """Return E[N], E[D] and the thresholds that maximise E[N] - price tau E[D], up to so many tokens."""
    cost = price * setting.seconds_per_token
    zero = np.zeros(1)
    value = _Pieces(zero, zero, zero, zero)
    thresholds = np.empty(setting.most_tokens)
    lost = 0.0
    for k in range(setting.most_tokens - 1, -1, -1):
        going = _go_on(setting.acceptance_rate, predictor, value)
        thresholds[k], value = _or_stop(going, cost)
        value, dropped = _without_worthless(value, cost)
        lost += dropped
    return float(value.accepted[-1]), float(value.drafted[-1]), thresholds, lost


def _go_on(alpha: float, predictor: ScoredPredictor, value: _Pieces) -> _Pieces:
    """Return the value of drafting one token and going on as `value` says, before its cost is known."""
    u, v, w = alpha * predictor.accepted, (1.0 - alpha) * predictor.rejected, predictor.after
    knots = value.starts[1:]
    # the belief after bin s reaches knot b at pi = b w / (u - b (u + v - w))
    top = knots[None, :] * w[:, None]
    bottom = u[:, None] - knots[None, :] * (u + v - w)[:, None]
    inside = (bottom > 0.0) & (top > 0.0) & (top < bottom)
    starts = np.concatenate([[0.0], np.unique(top[inside] / bottom[inside])])
    middle = 0.5 * (starts + np.append(starts[1:], 1.0))
    accepted = np.zeros(len(starts))
    drafted, drafted_after = np.ones(len(starts)), np.ones(len(starts))
    for s in range(predictor.bins):
        good = middle * u[s]
        every = good + middle * v[s] + (1.0 - middle) * w[s]
        belief = np.divide(good, every, out=np.zeros(len(good)), where=every > 0.0)
        i = np.searchsorted(value.starts, belief, side="right") - 1
        accepted += u[s] * (1.0 + value.accepted[i])
        drafted += u[s] * value.drafted[i] + v[s] * value.drafted_after[i]
        drafted_after += w[s] * value.drafted_after[i]
    return _Pieces(starts, accepted, drafted, drafted_after)


def _or_stop(going: _Pieces, cost: float) -> tuple[float, _Pieces]:
    """Return the belief up to which it is best to stop, and the value of doing the better."""
    ends = np.append(going.starts[1:], 1.0)
    at_zero = -cost * going.drafted_after
    slope = going.accepted - cost * going.drafted - at_zero
    worth = np.flatnonzero(at_zero + slope * ends > 0.0)
    zero = np.zeros(1)
    if not len(worth):
        return 1.0, _Pieces(zero, zero, zero, zero)
    first = int(worth[0])
    threshold = min(max(-at_zero[first] / slope[first], going.starts[first]), ends[first])
    rest = slice(first, None)
    starts = np.concatenate([[0.0, threshold], going.starts[first + 1 :]])
    value = _Pieces(
        starts,
        np.concatenate([zero, going.accepted[rest]]),
        np.concatenate([zero, going.drafted[rest]]),
        np.concatenate([zero, going.drafted_after[rest]]),
    )
    return float(threshold), value


def _without_worthless(value: _Pieces, cost: float) -> tuple[_Pieces, float]:
    """Drop every other piece while pieces are many and lose little; return the most that this loses anywhere."""
    lost = 0.0
    while len(value.starts) > EXACT_PIECES:
        at_zero = -cost * value.drafted_after
        slope = value.accepted - cost * value.drafted - at_zero
        i = np.arange(1, len(value.starts) - 1, 2)  # the neighbours of each stay
        steeper = slope[i + 1] - slope[i - 1]
        crossing = np.divide(at_zero[i - 1] - at_zero[i + 1], steeper, out=value.starts[i].copy(), where=steeper > 0.0)
        crossing = np.clip(crossing, value.starts[i], value.starts[i + 1])
        best = np.maximum(at_zero[i - 1] + slope[i - 1] * crossing, at_zero[i + 1] + slope[i + 1] * crossing)
        loss = at_zero[i] + slope[i] * crossing - best
        small = loss <= WORTHLESS
        if not small.any():
            break
        lost += max(0.0, float(loss[small].max()))
        starts = value.starts.copy()
        starts[i[small] + 1] = crossing[small]
        keep = np.ones(len(starts), dtype=np.bool_)
        keep[i[small]] = False
        value = _Pieces(starts[keep], value.accepted[keep], value.drafted[keep], value.drafted_after[keep])
    return value, lost
