"""Serving latency, simulated: a plan replayed with random acceptances, one replication after the other.

Letters as in `serving_latency`: l draft tokens per step, b batch size. A model is ``work = (per_token,
per_token_pair, per_logit)``: m new tokens over a total length t cost F = per_token m + per_token_pair m t +
per_logit logits. A runtime is ``pieces``, shape (P, 3): rows (c1, c2, upto) of its upper envelope, c1 increasing;
a row holds while b F <= upto.

Random numbers are SplitMix64 by counter: the draw of a task at its step n in replication r depends on (key, r, task,
n) and on nothing else. So plans simulated with one key meet the same luck, replications may be computed in any
order, and any of them can be replayed alone.
"""

import numpy as np
from numba import boolean, float64, int64, njit, uint64, void

PIPELINED, SEQUENTIAL, AUTOREGRESSIVE = 0, 1, 2
GOLDEN = np.uint64(0x9E3779B97F4A7C15)


@njit(cache=True)
def _mixed(z):
    """Return the output function of SplitMix64."""
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@njit(cache=True)
def _pass_seconds(pieces, work):
    """Return the runtime of one forward pass of b F = work operations."""
    k = 0
    while work > pieces[k, 2]:
        k += 1
    return pieces[k, 0] * work + pieces[k, 1]


@njit(cache=True)
def _draft_seconds(work, pieces, b, total, l, prefill):
    """Return T^d of a step (Eq. 13, 19); `total` is the length that pass 1 of a decode step attends to."""
    seconds = 0.0
    first = 1
    if prefill:
        seconds += _pass_seconds(pieces, b * (work[0] * total + work[1] * total * total + work[2]))
        first = 2
    if len(pieces) == 1:  # affine: every pass as the mean one
        mean = b * (work[0] + work[1] * (total + 0.5 * (first + l) - 1.0) + work[2])
        return seconds + (l - first + 1) * (pieces[0, 0] * mean + pieces[0, 1])
    for i in range(first, l + 1):
        seconds += _pass_seconds(pieces, b * (work[0] + work[1] * (total + i - 1) + work[2]))
    return seconds


@njit(cache=True)
def _verify_seconds(work, pieces, b, total, l, prefill):
    """Return T^v of a step (Eq. 14, 18)."""
    m = total + l if prefill else 1.0 + l
    return _pass_seconds(pieces, b * (work[0] * m + work[1] * m * (total + l) + work[2] * (1 + l)))


@njit(cache=True)
def _play_batch(powers, outputs, tasks, start, stop, drop, run, made, running):
    """Let every task of a batch run until it has its tokens; return the steps that the batch takes.

    Modified in place, for the steps n = 1..: ``made[n]``, the most tokens that a task of the batch has before step
    n, and ``running[n]``, the tasks that still work at step n. Tasks that have finished count in ``made`` unless
    ``drop``.
    """
    longest = 0
    for k in range(start, stop):
        longest = max(longest, outputs[k])
    made[: longest + 2] = 0
    running[: longest + 2] = 0
    last = 0
    for k in range(start, stop):
        stream = _mixed(run + np.uint64(tasks[k] + 1) * GOLDEN)
        tokens = 0
        n = 0
        while tokens < outputs[k]:
            n += 1
            made[n] = max(made[n], tokens)
            running[n] += 1
            stream += GOLDEN
            u = np.float64(_mixed(stream) >> np.uint64(11)) * 2.0**-53
            accepted = 0
            while accepted < len(powers) and u < powers[accepted]:  # P(accepted >= i) = alpha^i
                accepted += 1
            tokens += accepted + 1
        if not drop:
            made[n + 1] = max(made[n + 1], outputs[k])
        last = max(last, n)
    if not drop:
        for n in range(2, last + 1):
            made[n] = max(made[n], made[n - 1])
    return last


@njit(
    void(
        int64, int64, float64, float64[:], int64[:], int64[:], int64[:], float64[:], float64[:, :], float64[:],
        float64[:, :], boolean, uint64, int64, float64[:], int64[:], int64[:],
    ),
    cache=True,
    nogil=True,
)  # fmt: skip
def replay(
    mechanism, l, alpha, inputs, outputs, tasks, starts, draft, draft_pieces, verify, verify_pieces, drop, key,
    first, seconds, steps, batch_steps,
):  # fmt: skip
    """Write the inference latency of replications first, first + 1, ... and the decoding steps that they take.

    `inputs`, `outputs` and `tasks` (who draws) list the tasks batch by batch; batch m is starts[m]..starts[m + 1].
    `drop`: a task that has finished no longer counts in its batch's size and length.

    Modified in place: ``seconds`` (R,), ``steps`` (R,), and ``batch_steps`` (M,), to which the steps are added.
    """
    powers = np.empty(l)
    for i in range(l):
        powers[i] = alpha ** (i + 1)
    longest = 0
    for k in range(len(outputs)):
        longest = max(longest, outputs[k])
    made = np.zeros(longest + 2, dtype=np.int64)
    running = np.zeros(longest + 2, dtype=np.int64)
    drafted = np.zeros(longest + 1)
    done = np.zeros(longest + 1)
    for r in range(len(seconds)):
        run = _mixed(key + np.uint64(first + r + 1) * GOLDEN)
        reached = 0
        for m in range(len(starts) - 1):
            padded = 0.0
            for k in range(starts[m], starts[m + 1]):
                padded = max(padded, inputs[k])
            last = _play_batch(powers, outputs, tasks, starts[m], starts[m + 1], drop, run, made, running)
            batch_steps[m] += last
            for n in range(reached + 1, last + 1):
                drafted[n] = 0.0
                done[n] = 0.0
            reached = max(reached, last)
            for n in range(1, last + 1):
                b = np.float64(running[n] if drop else starts[m + 1] - starts[m])
                total = padded + made[n]
                second = _verify_seconds(verify, verify_pieces, b, total, l, n == 1)
                if mechanism == AUTOREGRESSIVE:
                    done[n] += second
                elif mechanism == SEQUENTIAL:
                    done[n] += _draft_seconds(draft, draft_pieces, b, total, l, n == 1) + second
                else:
                    drafted[n] += _draft_seconds(draft, draft_pieces, b, total, l, n == 1)
                    done[n] = max(drafted[n], done[n]) + second  # Eq. 20
        sum_of_steps = 0.0
        for n in range(1, reached + 1):
            sum_of_steps += done[n]  # Eq. 22
        seconds[r] = sum_of_steps
        steps[r] = reached
