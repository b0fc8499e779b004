"""Kernels that simulate draft control token by token: play a policy over the Markov channel, and
learn from the iterations by tabular double Q-learning.

``cumulative`` contains the cumulative sums of the rows of the transition matrix, and ``first``
contains the cumulative sums of the initial distribution. The draws of iteration i of replication r
depend only on (key, r, i). Policies simulated with the same key therefore share the channel and the
random draws.
"""

import numpy as np

from specopt.solvers.kernels.kernel import helper, kernel, record, rows
from specopt.solvers.kernels.random import GOLDEN, mixed, pick, uniform

Actions = record("Actions", rates="f8[::1]", seconds="f8[:, ::1]", low="i8", high="i8")
"""The acceptance rate and the iteration durations in each state s, at the resolution that the
policy uses in that state.

``rates`` [s] is the acceptance rate, and ``seconds`` [s, n] is the duration of an iteration with n
drafts, in seconds. ``low`` and ``high`` are the minimum and maximum draft length.
"""

Policy = record("Policy", lengths="i8[::1]", adaptive="b1", start="i8")
"""A policy, which is either a draft length for each state or an adaptive rule.

If ``adaptive`` is true, ``start`` is the first length and ``lengths`` is not used. The next length
is larger by one if all drafts were accepted. Otherwise, the next length is the number of accepted
drafts, but at least one. Every length is clipped to the range of draft lengths.
"""

Learning = record(
    "Learning",
    lengths="i8[::1]",
    indices="i8[::1]",
    seconds="f8[:, ::1]",
    per_time="b1",
    discount="f8",
    step_power="f8",
    explore_from="f8",
    explore_to="f8",
    forget="f8",
)
"""Settings of one call that learns by double Q-learning.

``lengths`` and ``indices`` define the actions, and ``seconds`` [s, k] is the duration of an
iteration in state s with action k, in seconds. The reward is N - rho T if ``per_time`` is true, and
N / T otherwise (Eq. 13). Here rho is the ratio of tokens to seconds over greedy steps, and each
greedy step discards the fraction ``forget`` of both running sums. The k-th update of a value has
step size k ** -step_power. The exploration probability is linear over the steps of a call.
"""

Learned = record(
    "Learned", values="f8[:, :, ::1]", seen="i8[:, :, ::1]", tokens_and_seconds="f8[::1]"
)
"""The current state of the learning.

``values`` contains the two tables of action values by state and action, and ``seen`` contains the
number of updates of each entry. ``tokens_and_seconds`` contains the running sums that define rho.
"""


@helper
def accepted_of(stream, rate, length):
    """Return the number of drafts accepted before the first rejection, using one draw per draft."""
    count = 0
    while count < length and uniform(stream + np.uint64(count + 1) * GOLDEN) < rate:
        count += 1
    return count


Played = rows("Played", tokens="i8", drafted="i8", seconds="f8")
"""Totals of the counted iterations of one replication.

The fields are the number of tokens, the number of drafted tokens, and the duration in seconds.
"""


@kernel("void(Actions, f8[:, ::1], f8[::1], Policy, u8, i8, i8, i8, i8, Played[::1], i8[::1])")
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
    played,
    visits,
):
    """Simulate a policy in independent replications. The first replication has the number `offset`.

    Each replication runs `warm_up` uncounted iterations and then at least `iterations` counted
    iterations. It continues until it has at least `least_tokens` tokens (Eq. 11). The function adds
    the totals of the counted iterations to ``played``, by replication. It also adds the number of
    counted iterations to ``visits``, by state.
    """
    for r in range(len(played)):
        one = played[r]
        run = mixed(key + np.uint64(offset + r + 1) * GOLDEN)
        state = pick(first, uniform(run))
        length = policy.start if policy.adaptive else policy.lengths[state]
        i = 0
        while i < warm_up + iterations or one.tokens < least_tokens:
            i += 1
            stream = mixed(run + np.uint64(i) * GOLDEN)
            accepted = accepted_of(stream, actions.rates[state], length)
            if i > warm_up:
                one.tokens += accepted + 1
                one.drafted += length
                one.seconds += actions.seconds[state, length]
                visits[state] += 1
            state = pick(cumulative[state], uniform(stream))
            if policy.adaptive:
                wanted = length + 1 if accepted == length else max(1, accepted)
                length = min(max(wanted, actions.low), actions.high)
            else:
                length = policy.lengths[state]


@helper
def best_action(first, second):
    """Return the action with the largest sum of its values in the two tables.

    `first` and `second` are one state's rows of the tables. Ties go to the lowest index.
    """
    best = 0
    for k in range(len(first)):
        if first[k] + second[k] > first[best] + second[best]:
            best = k
    return best


@kernel("void(f8[:, ::1], f8[:, ::1], Learning, u8, i8, i8, i8, Learned)")
def learn(rates, cumulative, learning, key, done, steps, state, learned):
    """Perform `steps` steps of double Q-learning from `state`, after `done` earlier steps.

    ``rates`` [s, r] are acceptance rates by state and resolution index. The function updates
    `learned` in place.
    """
    choices = len(learning.lengths)
    running = learned.tokens_and_seconds
    for k in range(steps):
        stream = mixed(key + np.uint64(done + k + 1) * GOLDEN)
        luck = mixed(stream ^ np.uint64(0xD1B54A32D192ED03))  # independent of the draft draws
        explore = learning.explore_from + (learning.explore_to - learning.explore_from) * k / steps
        greedy = uniform(luck + GOLDEN) >= explore
        if greedy:
            action = best_action(learned.values[0, state], learned.values[1, state])
        else:
            action = min(choices - 1, int(uniform(luck + np.uint64(2) * GOLDEN) * choices))
        length, index = learning.lengths[action], learning.indices[action]
        tokens = 1.0 + accepted_of(stream, rates[state, index], length)
        seconds = learning.seconds[state, action]
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
