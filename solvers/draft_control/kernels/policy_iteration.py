"""Draft control (paper 3): what the actions of each state yield, and the best ones at a price of
time.

An action is a draft length and the index of a resolution; of ``lengths`` and ``indices`` there is
one per state.
"""

import numpy as np

from specopt.solvers.kernels.kernel import helper, kernel, record

Actions = record(
    "Actions",
    rates="f8[:, ::1]",
    per_draft="f8[:, ::1]",
    verify="f8[::1]",
    fixed="f8[::1]",
    per_count_bit="f8[::1]",
    low="i8",
    high="i8",
    falls="i8",
)
"""What an iteration yields and takes in state s, with resolution r: acceptance rates [s, r] and
seconds of one more draft, uplink included [s, r]. Seconds to verify by the number of drafts, of the
token sent down [s], and of a bit that counts what was accepted [s]. The shortest and the longest
draft, and the longest whose verification is quicker than that of one draft less, or 0."""


@helper
def bit_length(n):
    """Return ceil(log2(n + 1)), the bit length of n >= 0."""
    bits = 0
    while n > 0:
        n >>= 1
        bits += 1
    return bits


@helper
def seconds_of(actions, s, r, n):
    """Return the seconds of an iteration of state s with n drafts at resolution r."""
    return (
        actions.verify[n]
        + actions.fixed[s]
        + n * actions.per_draft[s, r]
        + bit_length(n) * actions.per_count_bit[s]
    )


@kernel("void(Actions, i8[::1], i8[::1], f8[::1], f8[::1])")
def weigh(actions, lengths, indices, tokens, seconds):
    """Fill the expected tokens and the seconds of one action per state."""
    for s in range(len(lengths)):
        rate, count, power = actions.rates[s, indices[s]], 1.0, 1.0
        for _ in range(lengths[s]):
            power *= rate
            count += power
        tokens[s] = count
        seconds[s] = seconds_of(actions, s, indices[s], lengths[s])


@kernel("i8(Actions, f8, f8, i8[::1], i8[::1], f8[::1])")
def improve(actions, price, slack, lengths, indices, values):
    """Replace every action by the one of largest value, tokens - price seconds, and return how many
    changed.

    An action stays where none is better by more than `slack`. `lengths` and `indices` are read and
    written, `values` is filled with the largest value of each state, whether the action stays or
    not. Ties go to the lower resolution index, then to the shorter draft. With price >= 0, once a
    draft yields no more tokens than its seconds cost, no longer one is better: further tokens are
    less likely and the bits of the count never fewer. From `falls` on verification is never
    quicker, either.
    """
    changed = 0
    for s in range(len(lengths)):
        now, best, length, index = -np.inf, -np.inf, lengths[s], indices[s]
        for r in range(actions.rates.shape[1]):
            rate, count, power = actions.rates[s, r], 1.0, 1.0
            worth, cost = True, price * actions.per_draft[s, r]
            mine = lengths[s] if r == indices[s] else -1
            for n in range(actions.high + 1):
                if n > 0:
                    power *= rate
                    count += power
                    worth = worth and power > cost
                if n > max(actions.low, actions.falls, mine) and not worth:
                    break
                if n < actions.low:
                    continue
                value = count - price * seconds_of(actions, s, r, n)
                if n == mine:
                    now = value
                if value > best:
                    best, length, index = value, n, r
        if best > now + slack:
            lengths[s], indices[s] = length, index
            changed += 1
        values[s] = best
    return changed


@kernel("f8[::1](f8[:, ::1])")
def stationary(transition):
    """Return the stationary distribution of an irreducible chain, whose matrix is overwritten:
    state reduction.

    Grassmann, Taksar and Heyman (1985): without subtractions, so small shares are as exact as large
    ones.
    """
    S = len(transition)
    shares = np.zeros(S)
    for last in range(S - 1, 0, -1):
        leaving = 0.0
        for j in range(last):
            leaving += transition[last, j]
        for i in range(last):
            transition[i, last] /= leaving
            into = transition[i, last]
            if into > 0.0:
                for j in range(last):
                    transition[i, j] += into * transition[last, j]
    shares[0] = 1.0
    total = 1.0
    for j in range(1, S):
        for i in range(j):
            shares[j] += shares[i] * transition[i, j]
        total += shares[j]
    for j in range(S):
        shares[j] /= total
    return shares
