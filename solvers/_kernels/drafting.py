"""Rounds of drafting, drawn one after the other (paper 2, Sec. 3.2): the Monte Carlo twin of the closed forms.

One kernel plays every policy: a token is drafted while fewer than `window` are, no flagged score was read, and the
probability that all tokens so far are accepted exceeds the position's threshold.
"""

import numpy as np

from specopt.solvers._kernels.kernel import helper, kernel


@helper
def pick(cumulative, draw):
    """Return the first bin whose cumulative probability exceeds a draw from [0, 1)."""
    s = 0
    while s < len(cumulative) - 1 and not draw < cumulative[s]:
        s += 1
    return s


@kernel(
    "void(f8, const f8[::1], const f8[::1], const f8[::1], i8, const b1[::1], b1, const f8[::1], i8, i8[::1], i8[::1],"
    " i8[::1])"
)
def play(alpha, accepted, rejected, after, window, flagged, sends_flagged, thresholds, seed, N, W, D):
    """Fill the accepted, wasted and drafted tokens of every round.

    accepted, rejected, after: probability of each score bin; flagged: bins that end the draft; thresholds: drafting
    token k + 1 needs a belief above thresholds[k], -1 if any will do.
    """
    np.random.seed(seed)
    u, v, w = np.cumsum(accepted), np.cumsum(rejected), np.cumsum(after)
    for round_ in range(len(N)):
        alive, belief = True, 1.0
        n, sent, drafted = 0, 0, 0
        while drafted < window and belief > thresholds[drafted]:
            drafted += 1
            draw = np.random.random()
            if not alive:
                s = pick(w, draw)
            elif np.random.random() < alpha:
                s = pick(u, draw)
            else:
                alive = False
                s = pick(v, draw)
            if flagged[s] and not sends_flagged:
                break
            sent += 1
            if alive:
                n += 1
            if flagged[s]:
                break
            good = belief * alpha * accepted[s]
            bad = belief * (1.0 - alpha) * rejected[s] + (1.0 - belief) * after[s]
            belief = good / (good + bad) if good > 0.0 else 0.0
        N[round_], W[round_], D[round_] = n, sent - n, drafted
