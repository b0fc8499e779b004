"""Serving latency, simulated: a plan replayed with random acceptances, one replication after the
other.

The draw of a task at its step n in replication r depends on (key, r, task, n) and on nothing else.
So plans simulated with one key meet the same luck, replications may be computed in any order, and
any of them can be replayed alone.
"""

import numpy as np

from specopt.solvers.kernels.kernel import helper, kernel, record
from specopt.solvers.kernels.random import GOLDEN, mixed, uniform
from specopt.solvers.serving_latency.kernels.stages import stage_seconds
from specopt.solvers.serving_latency.kernels.step import served

TASK, INPUT, OUTPUT = range(3)  # rows of members
MADE, RUNNING = range(2)  # rows of a batch's steps
DRAFTED, DONE = range(2)  # rows of the clock


@helper
def play_batch(powers, members, start, stop, drop, run, history):
    """Let every task of a batch run until it has its tokens; return the steps that the batch takes.

    Modified in place, for the steps n = 1..: ``history[MADE, n]``, the most tokens that a task of
    the batch has before step n, and ``history[RUNNING, n]``, the tasks that still work at step n.
    Tasks that have finished count as made unless ``drop``.
    """
    longest = 0
    for k in range(start, stop):
        longest = max(longest, members[OUTPUT, k])
    for n in range(longest + 2):
        history[MADE, n] = history[RUNNING, n] = 0
    last = 0
    for k in range(start, stop):
        stream = mixed(run + np.uint64(members[TASK, k] + 1) * GOLDEN)
        tokens = 0
        n = 0
        while tokens < members[OUTPUT, k]:
            n += 1
            history[MADE, n] = max(history[MADE, n], tokens)
            history[RUNNING, n] += 1
            stream += GOLDEN
            u = uniform(stream)
            accepted = 0
            while accepted < len(powers) and u < powers[accepted]:  # P(accepted >= i) = alpha^i
                accepted += 1
            tokens += accepted + 1
        if not drop:
            history[MADE, n + 1] = max(history[MADE, n + 1], members[OUTPUT, k])
        last = max(last, n)
    if not drop:
        for n in range(2, last + 1):
            history[MADE, n] = max(history[MADE, n], history[MADE, n - 1])
    return last


Plan = record(  # a plan to replay
    "Plan",
    overlap="b1",
    drop="b1",  # whether a task that has finished no longer counts in its batch's size and length
    starts="i8[::1]",  # batch m is members[:, starts[m]:starts[m + 1]]
    members="i8[:, ::1]",  # the tasks (who draws), batch by batch
    models="f8[:, ::1]",
    runtimes="f8[:, :, ::1]",
    powers="f8[::1]",  # powers[i - 1] is the probability that i draft tokens are accepted
)


@kernel("void(i8, u8, Plan, f8[::1], i8[::1], i8[::1])")
def replay(first, key, plan, seconds, steps, batch_steps):
    """Write the inference latency of replications first, first + 1, ... and the decoding steps that
    they take.

    Modified in place: ``seconds`` (R,), ``steps`` (R,), and ``batch_steps`` (M,), to which the
    steps are added.
    """
    overlap, drop, starts, members, models, runtimes, powers = plan
    l = len(powers)
    longest = members[OUTPUT].max()
    history, clock = np.zeros((2, longest + 2), np.int64), np.zeros((2, longest + 1))
    for r in range(len(seconds)):
        run = mixed(key + np.uint64(first + r + 1) * GOLDEN)
        reached = 0
        for m in range(len(starts) - 1):
            padded = 0
            for k in range(starts[m], starts[m + 1]):
                padded = max(padded, members[INPUT, k])
            last = play_batch(powers, members, starts[m], starts[m + 1], drop, run, history)
            batch_steps[m] += last
            for n in range(reached + 1, last + 1):
                clock[DRAFTED, n] = clock[DONE, n] = 0.0
            reached = max(reached, last)
            for n in range(1, last + 1):
                b = float(history[RUNNING, n] if drop else starts[m + 1] - starts[m])
                total = float(padded + history[MADE, n])
                draft, verify = stage_seconds(
                    models, runtimes, b, total, total if n == 1 else 1.0, l, n == 1
                )
                clock[DRAFTED, n], clock[DONE, n] = served(
                    overlap, clock[DRAFTED, n], clock[DONE, n], draft, verify
                )
        sum_of_steps = 0.0
        for n in range(1, reached + 1):
            sum_of_steps += clock[DONE, n]  # Eq. 22
        seconds[r] = sum_of_steps
        steps[r] = reached
