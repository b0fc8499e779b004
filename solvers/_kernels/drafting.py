"""Rounds of drafting, drawn one after the other (paper 2, Sec. 3.2): the Monte Carlo twin of the closed forms.

One kernel plays every policy: a token is drafted while fewer than `window` are, no flagged score was read, and the
probability that all tokens so far are accepted exceeds the position's threshold.
"""

import numpy as np

from specopt.solvers._kernels.kernel import helper, kernel, record
from specopt.solvers._kernels.random import GOLDEN, mixed, uniform

Scores = record(
    "Scores", acceptance_rate="f8", accepted="const f8[::1]", rejected="const f8[::1]", after="const f8[::1]"
)
"""The chance that a token is accepted, and the probability of each bin of its score: if it is, if it is the first that
is not, and after that one."""

DraftingPolicy = record(
    "DraftingPolicy", window="i8", flagged="const b1[::1]", sends_flagged="b1", thresholds="const f8[::1]"
)
"""Most tokens of a draft; bins that end it, and whether a token of one is sent; drafting token k + 1 needs a belief
above thresholds[k], -1 if any will do."""


@helper
def pick(cumulative, draw):
    """Return the first bin whose cumulative probability exceeds a draw from [0, 1)."""
    s = 0
    while s < len(cumulative) - 1 and not draw < cumulative[s]:
        s += 1
    return s


@kernel("void(Scores, DraftingPolicy, u8, i8[::1], i8[::1], i8[::1])")
def play(scores, policy, key, accepted, wasted, drafted):
    """Fill the accepted, wasted and drafted tokens of every round; the draws of round r depend on (key, r) alone."""
    alpha = scores.acceptance_rate
    u, v, w = np.cumsum(scores.accepted), np.cumsum(scores.rejected), np.cumsum(scores.after)
    for r in range(len(accepted)):
        stream = mixed(key + np.uint64(r + 1) * GOLDEN)
        alive, belief = True, 1.0
        n, sent, count = 0, 0, 0
        while count < policy.window and belief > policy.thresholds[count]:
            count += 1
            stream += np.uint64(2) * GOLDEN
            draw = uniform(stream)
            if not alive:
                s = pick(w, draw)
            elif uniform(stream + GOLDEN) < alpha:
                s = pick(u, draw)
            else:
                alive = False
                s = pick(v, draw)
            if policy.flagged[s] and not policy.sends_flagged:
                break
            sent += 1
            if alive:
                n += 1
            if policy.flagged[s]:
                break
            good = belief * alpha * scores.accepted[s]
            bad = belief * (1.0 - alpha) * scores.rejected[s] + (1.0 - belief) * scores.after[s]
            belief = good / (good + bad) if good > 0.0 else 0.0
        accepted[r], wasted[r], drafted[r] = n, sent - n, count
