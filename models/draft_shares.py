"""Bounds on the share of drafts that reach each position, computed from an engine's totals.

An engine that varies its draft length counts D drafts, T drafted tokens, and A_j tokens accepted at
position j <= J. Let n_j be the number of drafts with at least j tokens, so that n_1 = D, and let
q_j = n_j / n_(j-1) in [0, 1]. The *hazard* h_j of position j is the probability that the token at
this position is accepted, given that it was drafted and all its predecessors were accepted. Draft
lengths are assumed to be independent of the tokens. For example, they may depend on the batch size.
Of the drafts whose first j - 1 tokens were accepted, a share q_j then has a token at position j.
Therefore A_j / A_(j-1) measures p_j = q_j h_j, and the hazard is h_j = p_j / q_j.

*Bounds on q.* The totals satisfy T / D = n_1 / D + ... + n_J / D = 1 + q_2 + q_2 q_3 + ... + q_2
... q_J =: f(q). Moreover, h_j <= 1 implies p_j <= q_j <= 1. These intervals form a box, in which f
is continuous and increases with every q_j. A value of q_j therefore belongs to a solution of f(q) =
T / D in the box exactly under two conditions. First, f is at most T / D if all other shares are at
their lower bounds. Second, f is at least T / D if all other shares are 1. The intermediate value
theorem proves that these conditions are sufficient, because the box is connected. The first
condition bounds q_j from above, and the second bounds q_j from below. Because f is linear in each
q_j, both bounds are quotients. The bounds are sharp.

*Bounds on yields.* A_j / D measures P_j = x_j S_j with x_j = n_j / D and S_j = h_1 ... h_j. A step
with K draft tokens yields 1 + S_1 + ... + S_K = 1 + P_1 / x_1 + ... + P_K / x_K tokens. This yield
is convex in x, and the possible vectors x form a polytope. A linear program with tangents of the
yield therefore bounds the minimum yield from below, and the bound is tight where the tangents are
dense. Because the x_j sum to T / D, they cannot all be large simultaneously. The bounds on yields
are therefore much tighter than bounds from products of the smallest hazards.

*If all drafts have J tokens*, then T / D = J and the second condition becomes q_j >= 1. The bounds
on the hazard then coincide at h_j = p_j.
"""

from __future__ import annotations

import numpy as np

from specopt.models.acceptance import bisected
from specopt.models.fields import Floats

TANGENTS = 60
"""Number of tangents per position in the linear programs. If the upper bound on the share x_j of
drafts with at least j tokens is 4 times its lower bound, 60 tangents bound the yield to within
0.01 %.
"""
SLACK = 1e-6
"""Amount subtracted from the minimum of a linear program to allow for the solver's tolerance."""


def share_limits(tokens_per_draft: float, lowest: Floats) -> tuple[Floats, Floats] | None:
    """Return lower and upper bounds on the shares q_1 = 1, q_2, ..., q_J.

    The share q_j is the number of drafts with at least j tokens, divided by the number of drafts
    with at least j - 1 tokens.

    Parameters
    ----------
    tokens_per_draft
        Mean number of tokens per draft T / D, between 1 and the number J of draft positions.
    lowest
        Lower bounds on p_1, ..., p_J, where p_j is the number of drafts with at least j accepted
        tokens, divided by the number of drafts with at least j - 1 accepted tokens. The first entry
        is ignored.

    Returns
    -------
    tuple or None
        Lower bounds and upper bounds, or None if no shares are consistent with the totals. The
        engine's draft lengths then cannot be independent of the tokens.
    """
    count = len(lowest)
    lows, highs = np.ones(count), np.ones(count)
    if tokens_per_draft < _drafted(lowest) * (1.0 - 1e-12):
        return None
    reached = np.cumprod(
        np.concatenate(([1.0], lowest[1:]))
    )  # n_j / D with every share at its lower bound
    for j in range(1, count):
        behind = 1.0 + float(np.cumprod(lowest[j + 1 :]).sum())
        free = tokens_per_draft - float(reached[:j].sum())
        slope = float(reached[j - 1]) * behind
        highs[j] = max(free / slope, lowest[j]) if free < slope else 1.0
        lows[j] = min(1.0, max(lowest[j], (tokens_per_draft - j) / (count - j)))
    return lows, highs


def even_hazards(tokens_per_draft: float, measured: Floats) -> Floats:
    """Return hazards that are consistent with the engine's totals and as equal as possible.

    The hazard h_j is the probability that token j is accepted, given that it was drafted and all
    its predecessors were accepted. The hazards are equal from position 2 on, except where p_j
    requires a larger value. Many other hazards are consistent with the totals, but these are
    correct if acceptance does not depend on the position. With h_j = max(c, p_j), the shares
    p_j / h_j decrease from 1 at c = 0 to p_j at c = 1. Bisection finds the value of c at which the
    shares agree with T / D.

    Parameters
    ----------
    tokens_per_draft
        Mean number of tokens per draft T / D, between 1 and the number J of draft positions.
    measured
        Measured values p_1, ..., p_J, where p_j is the number of drafts with at least j accepted
        tokens, divided by the number of drafts with at least j - 1 accepted tokens.
    """
    common = bisected(
        lambda hazard: _drafted(np.minimum(1.0, measured / hazard)) > tokens_per_draft
    )
    return np.concatenate((measured[:1], np.maximum(measured[1:], common)))


def yield_limits(
    tokens_per_draft: float, lowest: Floats, low: Floats, high: Floats
) -> tuple[Floats, Floats]:
    """Return lower and upper bounds on the mean number of tokens per step.

    Entry K of each array is the bound for steps with K draft tokens, K = 0, 1, ..., J.

    Parameters
    ----------
    tokens_per_draft
        Mean number of tokens per draft T / D, between 1 and the number J of draft positions. The
        value must be consistent with `lowest`.
    lowest
        Lower bounds on p_1, ..., p_J, where p_j is the number of drafts with at least j accepted
        tokens, divided by the number of drafts with at least j - 1 accepted tokens. The first entry
        is ignored.
    low
        Lower bounds on P_1, ..., P_J, where P_j is the share of all drafts in which token j is
        accepted.
    high
        Upper bounds on P_1, ..., P_J.
    """
    from scipy.optimize import linprog

    count = len(lowest)
    step = np.eye(count, k=-1)[1:]  # selects x_(j-1)
    order = np.concatenate((np.eye(count)[1:] - step, lowest[1:, None] * step - np.eye(count)[1:]))
    fixed = np.array([np.ones(count), np.eye(count)[0]])
    ends = np.array([tokens_per_draft, 1.0])

    def smallest(x: int) -> float:
        found = linprog(np.eye(count)[x], order, np.zeros(len(order)), fixed, ends)
        return max(0.0, float(found.fun) - SLACK) if found.status == 0 else 0.0

    lows = np.array([smallest(x) for x in range(count)])
    highs = np.minimum(1.0, tokens_per_draft / np.arange(1.0, count + 1.0))  # because x_j decreases
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
    """Return f(q), the mean number of tokens per draft if the shares are q. The first share is
    ignored, because it is always 1.
    """
    return 1.0 + float(np.cumprod(shares[1:]).sum())
