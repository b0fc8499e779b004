"""Draft control, token by token: iterations of a policy over the Markov channel, and tabular double
Q-learning on them.

``cumulative`` has the rows of the transition matrix summed up, ``first`` the same of the
distribution of the first state. The draws of iteration i of replication r depend on (key, r, i) and
on nothing else: policies that are simulated with one key meet the same channel and the same luck.
"""

import numpy as np

from specopt.solvers.kernels.kernel import helper, kernel, record
from specopt.solvers.kernels.random import GOLDEN, mixed, pick, uniform

Actions = record(
    "Actions",
    rates="f8[:, ::1]",
    per_draft="f8[:, ::1]",
    verify="f8[::1]",
    fixed="f8[::1]",
    per_count_bit="f8[::1]",
    low="i8",
    high="i8",
)
"""What an iteration yields and takes in state s, with resolution r: acceptance rates [s, r] and
seconds of one more draft, uplink included [s, r]. Seconds to verify by the number of drafts, of the
token sent down [s], and of a bit of the count of accepted drafts [s]. The shortest and the longest
draft."""


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


Policy = record("Policy", lengths="i8[::1]", indices="i8[::1]", adaptive="b1", start="i8")
"""Draft length and resolution index per state; or, adaptive, the first length. The next one is one
more if all drafts were accepted, else the number accepted, at least one, within the actions'
range.
"""

Learning = record(
    "Learning",
    lengths="i8[::1]",
    indices="i8[::1]",
    per_time="b1",
    discount="f8",
    step_power="f8",
    explore_from="f8",
    explore_to="f8",
    forget="f8",
)
"""The actions to choose from; whether the reward is N - rho T, else it is N / T (Eq. 13). rho is
the tokens over the seconds of greedy steps, of which every step forgets the share `forget`. Then
the discount; the power of visits that divides a step; the chance to explore, linear over the steps
of a call."""

Learned = record(
    "Learned", values="f8[:, :, ::1]", seen="i8[:, :, ::1]", tokens_and_seconds="f8[::1]"
)
"""Both tables of values by state and action, how often each entry was updated, and the running sums
behind rho.
"""


@helper
def accepted_of(stream, rate, length):
    """Return how many drafts are accepted before the first rejection, one draw each."""
    count = 0
    while count < length and uniform(stream + np.uint64(count + 1) * GOLDEN) < rate:
        count += 1
    return count


@kernel(
    "void(Actions, f8[:, ::1], f8[::1], Policy, u8, i8, i8, i8, i8, i8[:, ::1], f8[::1], i8[:,"
    " ::1])"
)
def play(
    actions,
    cumulative,
    first,
    policy,
    key,
    offset,
    warm_up,
    iterations,
    least_tokens,
    counts,
    seconds,
    visits,
):
    """Play replications from `offset` on: `warm_up` iterations that do not count, then at least
    `iterations` more.

    They go on until they have `least_tokens` tokens (Eq. 11). Filled per replication: counts
    (tokens, drafts), seconds, and the visits of every state.
    """
    for r in range(len(seconds)):
        run = mixed(key + np.uint64(offset + r + 1) * GOLDEN)
        state = pick(first, uniform(run))
        length = policy.start if policy.adaptive else policy.lengths[state]
        counts[r, :] = 0
        visits[r, :] = 0
        seconds[r] = 0.0
        i = 0
        while i < warm_up + iterations or counts[r, 0] < least_tokens:
            i += 1
            stream = mixed(run + np.uint64(i) * GOLDEN)
            index = policy.indices[state]
            accepted = accepted_of(stream, actions.rates[state, index], length)
            if i > warm_up:
                counts[r, 0] += accepted + 1
                counts[r, 1] += length
                visits[r, state] += 1
                seconds[r] += seconds_of(actions, state, index, length)
            state = pick(cumulative[state], uniform(stream))
            if policy.adaptive:
                wanted = length + 1 if accepted == length else max(1, accepted)
                length = min(max(wanted, actions.low), actions.high)
            else:
                length = policy.lengths[state]


@helper
def best_action(first, second):
    """Return the action of largest sum of both tables' rows; the lowest index of equal ones."""
    best = 0
    for k in range(len(first)):
        if first[k] + second[k] > first[best] + second[best]:
            best = k
    return best


@kernel("void(Actions, f8[:, ::1], Learning, u8, i8, i8, i8, Learned)")
def learn(actions, cumulative, learning, key, done, steps, state, learned):
    """Take `steps` steps of double Q-learning from a state, after `done` earlier ones; what is
    learned is updated.
    """
    choices = len(learning.lengths)
    running = learned.tokens_and_seconds
    for k in range(steps):
        stream = mixed(key + np.uint64(done + k + 1) * GOLDEN)
        luck = mixed(stream ^ np.uint64(0xD1B54A32D192ED03))  # apart from the draws of the drafts
        explore = learning.explore_from + (learning.explore_to - learning.explore_from) * k / steps
        greedy = uniform(luck + GOLDEN) >= explore
        if greedy:
            action = best_action(learned.values[0, state], learned.values[1, state])
        else:
            action = min(choices - 1, int(uniform(luck + np.uint64(2) * GOLDEN) * choices))
        length, index = learning.lengths[action], learning.indices[action]
        tokens = 1.0 + accepted_of(stream, actions.rates[state, index], length)
        seconds = seconds_of(actions, state, index, length)
        if greedy:
            running[0] += tokens - learning.forget * running[0]
            running[1] += seconds - learning.forget * running[1]
        reward = (
            tokens - running[0] / running[1] * seconds if learning.per_time else tokens / seconds
        )
        follower = pick(cumulative[state], uniform(stream))
        which = 0 if uniform(luck + np.uint64(3) * GOLDEN) < 0.5 else 1
        mine, other, seen = learned.values[which], learned.values[1 - which], learned.seen[which]
        best = np.argmax(mine[follower])
        seen[state, action] += 1
        size = seen[state, action] ** -learning.step_power
        target = reward + learning.discount * other[follower, best]
        mine[state, action] += size * (target - mine[state, action])
        state = follower
