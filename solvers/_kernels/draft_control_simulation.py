"""Draft control, token by token: iterations of a policy over the Markov channel, and tabular double Q-learning on them.

Arrays as in `draft_control`: a[s, r] acceptance rates; per_draft[s, r] seconds of one more draft, the uplink included;
fixed[s] seconds of an iteration without drafts; per_count_bit[s] seconds of a bit of the count that comes back.
``cumulative`` has the rows of the transition matrix summed up, ``first`` the same of the distribution of the first
state. A policy is ``lengths`` and ``indices`` per state; with ``adaptive`` the length of an iteration follows from the
one before: one more when all drafts were accepted, else what was accepted, at least one, within ``low`` and ``high``.

Random numbers are SplitMix64 by counter: the draws of iteration i of replication r depend on (key, r, i) and on
nothing else. So policies that are simulated with one key meet the same channel and the same luck.
"""

import numpy as np
from numba import njit

GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_F2, _F1, _I2, _I1 = "f8[:,::1]", "f8[::1]", "i8[:,::1]", "i8[::1]"
_TABLES = f"{_F2}, {_F2}, {_F1}, {_F1}"


@njit(cache=True)
def _mixed(z):
    """Return the output function of SplitMix64."""
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@njit(cache=True)
def _uniform(z):
    """Return a number in [0, 1) from 53 bits."""
    return np.float64(_mixed(z) >> np.uint64(11)) * 1.1102230246251565e-16


@njit(cache=True)
def _bits(n):
    """Return ceil(log2(n + 1)), the bit length of n >= 0."""
    bits = 0
    while n > 0:
        n >>= 1
        bits += 1
    return bits


@njit(cache=True)
def _pick(cumulative, draw):
    """Return the first entry whose cumulative weight exceeds the draw's part of the whole: none of weight 0."""
    low, high = 0, len(cumulative) - 1
    level = draw * cumulative[high]
    while low < high:
        middle = (low + high) // 2
        if cumulative[middle] > level:
            high = middle
        else:
            low = middle + 1
    while low > 0 and cumulative[low] == cumulative[low - 1]:
        low -= 1
    return low


@njit(cache=True)
def _accepted(stream, rate, length):
    """Return how many drafts are accepted before the first rejection, one draw each."""
    count = 0
    while count < length and _uniform(stream + np.uint64(count + 1) * GOLDEN) < rate:
        count += 1
    return count


@njit(cache=True)
def _next_length(adaptive, drafted, accepted, low, high):
    if not adaptive:
        return drafted
    wanted = drafted + 1 if accepted == drafted else max(1, accepted)
    return min(max(wanted, low), high)


@njit(
    f"void({_TABLES}, {_F2}, {_F1}, {_I1}, {_I1}, b1, i8, i8, i8, u8, i8, i8, i8, {_I2}, {_F1}, {_I2})",
    cache=True,
)
def play(
    a, per_draft, fixed, per_count_bit, cumulative, first, lengths, indices, adaptive, start, low, high, key, offset,
    warm_up, iterations, counts, seconds, visits,
):  # fmt: skip
    """Play every replication for a number of iterations, after `warm_up` that do not count.

    Filled per replication: counts (tokens, drafts), seconds, and the visits of every state.
    """
    for r in range(len(seconds)):
        run = _mixed(key + np.uint64(offset + r + 1) * GOLDEN)
        state = _pick(first, _uniform(run))
        length = start
        counts[r, :] = 0
        visits[r, :] = 0
        seconds[r] = 0.0
        for i in range(warm_up + iterations):
            stream = _mixed(run + np.uint64(i + 1) * GOLDEN)
            if not adaptive:
                length = lengths[state]
            index = indices[state]
            accepted = _accepted(stream, a[state, index], length)
            if i >= warm_up:
                counts[r, 0] += accepted + 1
                counts[r, 1] += length
                visits[r, state] += 1
                seconds[r] += fixed[state] + length * per_draft[state, index] + _bits(length) * per_count_bit[state]
            length = _next_length(adaptive, length, accepted, low, high)
            state = _pick(cumulative[state], _uniform(stream))


@njit(
    f"void({_TABLES}, {_F2}, {_F1}, {_I1}, {_I1}, b1, i8, i8, i8, u8, i8, i8, {_I1}, {_F1})",
    cache=True,
)
def respond(
    a, per_draft, fixed, per_count_bit, cumulative, first, lengths, indices, adaptive, start, low, high, key, offset,
    most_tokens, tokens, seconds,
):  # fmt: skip
    """Play every replication until it has `most_tokens` tokens (Eq. 11); fill its tokens and seconds."""
    for r in range(len(seconds)):
        run = _mixed(key + np.uint64(offset + r + 1) * GOLDEN)
        state = _pick(first, _uniform(run))
        length = start
        tokens[r] = 0
        seconds[r] = 0.0
        i = 0
        while tokens[r] < most_tokens:
            i += 1
            stream = _mixed(run + np.uint64(i) * GOLDEN)
            if not adaptive:
                length = lengths[state]
            index = indices[state]
            accepted = _accepted(stream, a[state, index], length)
            tokens[r] += accepted + 1
            seconds[r] += fixed[state] + length * per_draft[state, index] + _bits(length) * per_count_bit[state]
            length = _next_length(adaptive, length, accepted, low, high)
            state = _pick(cumulative[state], _uniform(stream))


@njit(cache=True)
def _best_action(first, second, state):
    """Return the action of largest sum of both tables; the lowest index of equal ones."""
    best, value = 0, -np.inf
    for k in range(first.shape[1]):
        total = first[state, k] + second[state, k]
        if total > value:
            best, value = k, total
    return best


@njit(
    f"void({_TABLES}, {_F2}, {_I1}, {_I1}, b1, f8, f8, f8, f8, f8, u8, i8, i8, i8, {_F2}, {_F2}, {_I2}, {_I2}, {_F1})",
    cache=True,
)
def learn(
    a, per_draft, fixed, per_count_bit, cumulative, action_lengths, action_indices, per_time, discount, step_power,
    explore_from, explore_to, forget, key, done, steps, state, first, second, first_seen, second_seen, running,
):  # fmt: skip
    """Take `steps` steps of double Q-learning from a state, after `done` earlier ones; tables are updated in place.

    per_time: the reward is N - rho T, with rho = running[0] / running[1], the tokens and seconds of greedy steps, of
    which every step forgets the share `forget`; else it is N / T (Eq. 13). The chance to explore goes linearly from
    `explore_from` to `explore_to` within the call. The step size is visits^-step_power.
    """
    actions = len(action_lengths)
    for k in range(steps):
        stream = _mixed(key + np.uint64(done + k + 1) * GOLDEN)
        luck = _mixed(stream ^ np.uint64(0xD1B54A32D192ED03))  # apart from the draws of the drafts
        explore = explore_from + (explore_to - explore_from) * k / steps
        greedy = _uniform(luck + GOLDEN) >= explore
        if greedy:
            action = _best_action(first, second, state)
        else:
            action = min(actions - 1, int(_uniform(luck + np.uint64(2) * GOLDEN) * actions))
        length, index = action_lengths[action], action_indices[action]
        tokens = 1.0 + _accepted(stream, a[state, index], length)
        seconds = fixed[state] + length * per_draft[state, index] + _bits(length) * per_count_bit[state]
        if greedy:
            running[0] += tokens - forget * running[0]
            running[1] += seconds - forget * running[1]
        reward = tokens - running[0] / running[1] * seconds if per_time else tokens / seconds
        follower = _pick(cumulative[state], _uniform(stream))
        if _uniform(luck + np.uint64(3) * GOLDEN) < 0.5:
            mine, other, seen = first, second, first_seen
        else:
            mine, other, seen = second, first, second_seen
        best, value = 0, -np.inf
        for k2 in range(actions):
            if mine[follower, k2] > value:
                best, value = k2, mine[follower, k2]
        seen[state, action] += 1
        size = seen[state, action] ** -step_power
        target = reward + discount * other[follower, best]
        mine[state, action] += size * (target - mine[state, action])
        state = follower
