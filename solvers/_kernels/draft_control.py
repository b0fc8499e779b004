"""Draft control (paper 3): what the actions of each state yield, and the best ones at a price of time.

Arrays: a[s, r] acceptance rates; per_draft[s, r] seconds that one more draft takes, the uplink included; fixed[s]
seconds of an iteration without drafts, all but the bits that count what was accepted; per_count_bit[s] seconds of one
of those. An action is a draft length `low` to `high` and the index of a resolution.
"""

import numpy as np
from numba import njit

_F2, _F1, _I1, _I8, _F8 = "f8[:,::1]", "f8[::1]", "i8[::1]", "i8", "f8"


@njit(cache=True)
def _bits(n):
    """Return ceil(log2(n + 1)), the bit length of n >= 0."""
    bits = 0
    while n > 0:
        n >>= 1
        bits += 1
    return bits


@njit(f"void({_F2}, {_F2}, {_F1}, {_F1}, {_I1}, {_I1}, {_F1}, {_F1})", cache=True)
def weigh(a, per_draft, fixed, per_count_bit, lengths, indices, tokens, seconds):
    """Fill the expected tokens and the seconds of one action per state."""
    for s in range(len(fixed)):
        rate, count, power = a[s, indices[s]], 1.0, 1.0
        for _ in range(lengths[s]):
            power *= rate
            count += power
        tokens[s] = count
        seconds[s] = fixed[s] + lengths[s] * per_draft[s, indices[s]] + _bits(lengths[s]) * per_count_bit[s]


@njit(f"i8({_F2}, {_F2}, {_F1}, {_F1}, {_I8}, {_I8}, {_F8}, {_F8}, {_I1}, {_I1}, {_F1})", cache=True)
def improve(a, per_draft, fixed, per_count_bit, low, high, price, slack, lengths, indices, values):
    """Replace every action by the one of largest value, tokens - price seconds, and return how many changed.

    An action stays where none is better by more than `slack`. `lengths` and `indices` are read and written, `values`
    is filled with the largest value of each state, whether the action stays or not. Ties go to the lower resolution
    index, then to the shorter draft. price >= 0: once a draft yields no more tokens than its seconds cost, no longer
    one is better, as further tokens are less and less likely and the bits of the count never fewer.
    """
    changed = 0
    for s in range(len(fixed)):
        now, best, length, index = -np.inf, -np.inf, lengths[s], indices[s]
        for r in range(a.shape[1]):
            rate, count, power = a[s, r], 1.0, 1.0
            worth, cost = True, price * per_draft[s, r]
            mine = lengths[s] if r == indices[s] else -1
            for n in range(high + 1):
                if n > 0:
                    power *= rate
                    count += power
                    worth = worth and power > cost
                if n > low and n > mine and not worth:
                    break
                if n < low:
                    continue
                value = count - price * (fixed[s] + n * per_draft[s, r] + _bits(n) * per_count_bit[s])
                if n == mine:
                    now = value
                if value > best:
                    best, length, index = value, n, r
        if best > now + slack:
            lengths[s], indices[s] = length, index
            changed += 1
        values[s] = best
    return changed


@njit(f"void({_F2}, {_F2}, {_F1}, {_F1}, {_I8}, {_I8}, {_I1}, {_I1})", cache=True)
def most_at_once(a, per_draft, fixed, per_count_bit, low, high, lengths, indices):
    """Fill the action of every state that yields the most tokens per second of its own iteration."""
    for s in range(len(fixed)):
        best = -np.inf
        for r in range(a.shape[1]):
            rate, count, power = a[s, r], 1.0, 1.0
            for n in range(high + 1):
                if n > 0:
                    power *= rate
                    count += power
                if n < low:
                    continue
                ratio = count / (fixed[s] + n * per_draft[s, r] + _bits(n) * per_count_bit[s])
                if ratio > best:
                    best, lengths[s], indices[s] = ratio, n, r


@njit(f"UniTuple(f8, 3)({_F2}, {_F1}, {_F1}, {_F8}, {_I8})", cache=True)
def sweep(transition, rewards, values, step, most):
    """Sweep relative value iteration until rounding stops it, or `most` times.

    Adds step (rewards + P h - h) to the relative values h, in place, and subtracts what state 0 has: with
    0 < step < 1 that is value iteration on a chain that stays where it is with probability 1 - step, which is not
    periodic and has the same gain. Returns the smallest and the largest of rewards + P h - h, between which the gain
    lies, and the sweeps made.
    """
    S = len(rewards)
    change = np.empty(S)
    largest = np.abs(rewards).max()
    sweeps = 0
    while True:
        size = 0.0
        for s in range(S):
            total = rewards[s]
            for j in range(S):
                total += transition[s, j] * (values[j] - values[s])
            change[s] = total
            size = max(size, abs(values[s]))
        low, high = change.min(), change.max()
        if sweeps == most or high - low <= max(1e-15 * largest, 4e-15 * size):
            return low, high, float(sweeps)
        for s in range(S):
            values[s] += step * change[s]
        first = values[0]
        for s in range(S):
            values[s] -= first
        sweeps += 1


@njit(f"f8[::1]({_F2})", cache=True)
def stationary(transition):
    """Return the stationary distribution of an irreducible chain, whose matrix is overwritten: state reduction.

    Grassmann, Taksar and Heyman (1985): without subtractions, so small shares are as exact as large ones.
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
