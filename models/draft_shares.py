"""How many drafts were long enough for each position, where only totals say so.

An engine that varies its draft length counts D drafts, T drafted tokens, and A_j tokens accepted at position j <= J.
Let n_j drafts have j tokens or more (n_1 = D), q_j = n_j / n_(j-1) in [0, 1], and h_j be the hazard of position j: the
probability that its token is accepted, given that it was drafted and all before it were accepted. Lengths are chosen
without regard to the tokens, as by the batch size. Then of the drafts that were accepted up to j - 1 a share q_j has a
token at j, so that A_j / A_(j-1) measures p_j = q_j h_j, and what is wanted is h_j = p_j / q_j.

*What totals say about q.* T / D = n_1 / D + ... + n_J / D = 1 + q_2 + q_2 q_3 + ... + q_2 ... q_J =: f(q), and h_j <= 1
gives p_j <= q_j <= 1. *The limits below are sharp.* f is continuous and rises with every q_j. A value q_j therefore
belongs to a solution of f(q) = T / D in the box if and only if f is at most T / D with all others at their lowest and
at least T / D with all others at 1 (in between by the intermediate value theorem, as the box is connected). The first
holds up to a largest q_j, the second from a smallest one on; as f is linear in each q_j, both are quotients.

*If all drafts had J tokens* then T / D = J, the second condition reads q_j >= 1, and h_j = p_j is a point.
"""

from __future__ import annotations

import numpy as np

from specopt.models.fields import Floats


def share_limits(tokens_per_draft: float, least: Floats) -> tuple[Floats, Floats] | None:
    """Return the smallest and the largest q_1 = 1, q_2, ..., q_J that totals allow.

    Parameters
    ----------
    tokens_per_draft
        T / D, from 1 to J.
    least
        Lower ends of p_1, ..., p_J; the first is not used.

    Returns
    -------
    tuple or None
        None if no shares fit: more was accepted than lengths chosen without regard to the tokens allow.
    """
    count = len(least)
    lows, highs = np.ones(count), np.ones(count)
    if tokens_per_draft < _drafted(least) * (1.0 - 1e-12):
        return None
    reached = np.cumprod(np.concatenate(([1.0], least[1:])))  # n_j / D with every share at its lowest
    for j in range(1, count):
        behind = 1.0 + float(np.cumprod(least[j + 1 :]).sum())
        free = tokens_per_draft - float(reached[:j].sum())
        slope = float(reached[j - 1]) * behind
        highs[j] = max(free / slope, least[j]) if free < slope else 1.0
        lows[j] = min(1.0, max(least[j], (tokens_per_draft - j) / (count - j)))
    return lows, highs


def even_hazards(tokens_per_draft: float, measured: Floats) -> Floats:
    """Return the hazards that fit the totals with one value from position 2 on, more only where p_j alone needs more.

    One of many solutions, and the right one where acceptance does not depend on the position. With h_j = max(c, p_j)
    the shares p_j / h_j fall in c, from 1 at c = 0 to p_j at c = 1: bisection finds where they fit T / D.

    Parameters
    ----------
    tokens_per_draft
        T / D, from 1 to J.
    measured
        p_1, ..., p_J.
    """
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = 0.5 * (low + high)
        shares = np.minimum(1.0, measured / middle)
        low, high = (middle, high) if _drafted(shares) > tokens_per_draft else (low, middle)
    return np.concatenate((measured[:1], np.maximum(measured[1:], high)))


def _drafted(shares: Floats) -> float:
    """Return f: tokens per draft with these shares; the first counts as 1."""
    return 1.0 + float(np.cumprod(shares[1:]).sum())
