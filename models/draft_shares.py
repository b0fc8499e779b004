"""Shares of drafts that were long enough for each position, derived from totals alone.

An engine that varies its draft length counts D drafts, T drafted tokens, and A_j tokens accepted at
position j <= J. Let n_j drafts have j tokens or more (n_1 = D), and q_j = n_j / n_(j-1) in [0, 1].
Let h_j be the hazard of position j: the probability that its token is accepted, given that it was
drafted and all its predecessors were accepted. Lengths are assumed independent of the tokens, for
example chosen by the batch size. Of the drafts that were accepted up to j - 1, a share q_j then has
a token at j. Therefore A_j / A_(j-1) measures p_j = q_j h_j, and the hazard is h_j = p_j / q_j.

*What totals imply for q.* T / D = n_1 / D + ... + n_J / D = 1 + q_2 + q_2 q_3 + ... + q_2 ... q_J
=: f(q), and h_j <= 1 gives p_j <= q_j <= 1. *The limits below are sharp.* f is continuous and rises
with every q_j. A value q_j belongs to a solution of f(q) = T / D in the box under two conditions. f
is at most T / D with all others at their lower limits, and at least T / D with all others at 1. In
between the intermediate value theorem applies, because the box is connected. The first condition
holds up to a largest q_j, the second from a smallest one on. As f is linear in each q_j, both are
quotients.

*What totals imply for yields.* A_j / D measures P_j = x_j S_j with x_j = n_j / D and S_j = h_1 ...
h_j, and a step of K drafts yields 1 + S_1 + ... + S_K = 1 + P_1 / x_1 + ... + P_K / x_K. This is
convex in x, whose solutions form a polytope. Tangents therefore bound its smallest value from below
by a linear program, tightly where they are dense. As the x_j sum up to T / D, not all can be large
at once: the limits of yields are much tighter than the product of the smallest hazards.

*If all drafts had J tokens*, then T / D = J, the second condition is q_j >= 1, and h_j = p_j is a
point.
"""

from __future__ import annotations

import numpy as np

from specopt.models.fields import Floats

TANGENTS = 60
"""Each position has this many tangents. With 60, a yield over a range of 4 is bounded within
0.01 %.
"""
SLACK = 1e-6
"""The value of a linear program is reduced by this amount to cover its tolerance."""


def share_limits(tokens_per_draft: float, lowest: Floats) -> tuple[Floats, Floats] | None:
    """Return the smallest and the largest q_1 = 1, q_2, ..., q_J that the totals allow.

    Parameters
    ----------
    tokens_per_draft
        Mean tokens per draft T / D, from 1 to J.
    lowest
        Lower limits of p_1, ..., p_J; the first is not used.

    Returns
    -------
    tuple or None
        None if no shares fit: more tokens were accepted than lengths independent of the tokens
        allow.
    """
    count = len(lowest)
    lows, highs = np.ones(count), np.ones(count)
    if tokens_per_draft < _drafted(lowest) * (1.0 - 1e-12):
        return None
    reached = np.cumprod(
        np.concatenate(([1.0], lowest[1:]))
    )  # n_j / D with every share at its lower limit
    for j in range(1, count):
        behind = 1.0 + float(np.cumprod(lowest[j + 1 :]).sum())
        free = tokens_per_draft - float(reached[:j].sum())
        slope = float(reached[j - 1]) * behind
        highs[j] = max(free / slope, lowest[j]) if free < slope else 1.0
        lows[j] = min(1.0, max(lowest[j], (tokens_per_draft - j) / (count - j)))
    return lows, highs


def even_hazards(tokens_per_draft: float, measured: Floats) -> Floats:
    """Return hazards that fit the totals and have one value from position 2 on, larger only where
    p_j requires it.

    This is one of many solutions, and the correct one if acceptance does not depend on the
    position. With h_j = max(c, p_j) the shares p_j / h_j fall in c, from 1 at c = 0 to p_j at c =
    1. Bisection finds the c at which they fit T / D.

    Parameters
    ----------
    tokens_per_draft
        Mean tokens per draft T / D, from 1 to J.
    measured
        Measured products p_1, ..., p_J.
    """
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = 0.5 * (low + high)
        shares = np.minimum(1.0, measured / middle)
        low, high = (middle, high) if _drafted(shares) > tokens_per_draft else (low, middle)
    return np.concatenate((measured[:1], np.maximum(measured[1:], high)))


def yield_limits(
    tokens_per_draft: float, lowest: Floats, low: Floats, high: Floats
) -> tuple[Floats, Floats]:
    """Return the smallest and the largest mean tokens of a step with 0, 1, ..., J drafts that the
    totals allow.

    Parameters
    ----------
    tokens_per_draft
        Mean tokens per draft T / D, from 1 to J, and allowed by `lowest`.
    lowest
        Lower limits of p_1, ..., p_J; the first is not used.
    low
        Lower limits of P_1, ..., P_J.
    high
        Upper limits of P_1, ..., P_J.
    """
    from scipy.optimize import linprog

    count = len(lowest)
    step = np.eye(count, k=-1)[1:]  # picks x_(j-1)
    order = np.concatenate((np.eye(count)[1:] - step, lowest[1:, None] * step - np.eye(count)[1:]))
    fixed = np.array([np.ones(count), np.eye(count)[0]])
    ends = np.array([tokens_per_draft, 1.0])

    def smallest(x: int) -> float:
        found = linprog(np.eye(count)[x], order, np.zeros(len(order)), fixed, ends)
        return max(0.0, float(found.fun) - SLACK) if found.status == 0 else 0.0

    lows = np.array([smallest(x) for x in range(count)])
    highs = np.minimum(1.0, tokens_per_draft / np.arange(1.0, count + 1.0))  # as x falls
    survival = np.minimum.accumulate(np.divide(high, lows, out=np.ones(count), where=lows > high))
    upper = 1.0 + np.concatenate(([0.0], np.cumsum(survival)))
    rows = [np.hstack((order, np.zeros((len(order), count))))]
    right = [np.zeros(len(order))]
    for x in range(count):  # y_x >= P_x (2 / at - x / at^2), the tangent of P_x / x
        at = np.geomspace(max(lows[x], 1e-6), max(highs[x], 1e-6), TANGENTS)
        cut = np.zeros((TANGENTS, 2 * count))
        cut[:, x], cut[:, count + x] = -low[x] / at**2, -1.0
        rows.append(cut)
        right.append(-2.0 * low[x] / at)
    both = np.hstack((fixed, np.zeros((2, count))))
    lower = np.ones(count + 1)
    for drafts in range(1, count + 1):
        cost = np.concatenate((np.zeros(count), np.arange(count) < drafts))
        found = linprog(cost, np.concatenate(rows), np.concatenate(right), both, ends)
        lower[drafts] = (
            1.0 + max(0.0, float(found.fun) - SLACK) if found.status == 0 else lower[drafts - 1]
        )
    return lower, upper


def _drafted(shares: Floats) -> float:
    """Return f, the tokens per draft with these shares; the first share counts as 1."""
    return 1.0 + float(np.cumprod(shares[1:]).sum())
