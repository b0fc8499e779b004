"""Kernels that compute a lower bound on the time to first token of every plan.

The bound relaxes the contention between chunks in the cloud.
"""

import math

from specopt.solvers.kernels.kernel import helper, kernel
from specopt.solvers.prompt_chunking.kernels.play import Prompt  # noqa: F401  (named in a signature)

HALVINGS = 44
"""Number of times that an interval of deadlines is halved.

The final relative width is about 1e-13.
"""


@helper
def done(prompt, i, j, k, first, queue):
    """Return a lower bound on the time to first token if the k-th chunk spans boundaries i to j.

    The bound takes only the k-th chunk into account. `queue` is the earliest time at which the
    first stage is free for this chunk, and `first` is the earliest time of the first upload.
    """
    start, end = prompt.position[i], prompt.position[j]
    x = end - start
    up = max(
        first + k * prompt.message + end * prompt.up_token,
        k * prompt.device_chunk + prompt.device_token * end + prompt.message + x * prompt.up_token,
    )
    through = max(up + prompt.latency + prompt.wait_arrival, queue) + prompt.wait_start
    through += prompt.stages * prompt.stage[x]
    back = prompt.down_token if prompt.last else (prompt.position[-1] - start) * prompt.down_token
    return through + prompt.latency + prompt.head + back


@helper
def is_within_reach(prompt, most, offset, slope, T):
    """Return whether T is attainable under the relaxed cloud contention of `lower_bound`.

    False proves that no plan ends by T.
    """
    position, stage = prompt.position, prompt.stage
    M = position.size - 1
    N = position[M]
    arrive = prompt.latency + prompt.wait_arrival
    first = (
        prompt.device_chunk + prompt.device_token * position[1]
    )  # the device cannot send earlier
    ready = first + prompt.message + position[1] * prompt.up_token + arrive  # nor can the cloud
    least = stage[position[1]]
    rest = (
        stage[N - position[M - 1]] if prompt.last else 0.0
    )  # the last chunk may be smaller than the grid
    before = 0  # the furthest place after k - 2 chunks
    i = 0  # the furthest place after k - 1 chunks
    for k in range(1, most + 1):
        if prompt.stop[0]:
            return True
        # May the k-th chunk be the last? Places up to `before` were tried with fewer chunks.
        s = i
        while (s > before or k == 1) and not prompt.stop[0]:
            queue = (
                0.0
                if k == 1
                else ready + (k - 1) * (prompt.wait_start + offset) + slope * position[s]
            )
            if done(prompt, s, M, k, first, queue) > T:
                break  # an earlier place is worse
            if k == 1:
                return True
            x = N - position[s]
            end = first + (k - 1) * prompt.message + position[s] * prompt.up_token + arrive
            end += (
                2 * prompt.wait_start
                + least
                + prompt.stages * stage[x]
                + prompt.latency
                + prompt.head
            )
            if end + prompt.down_token * (1 if prompt.last else x) <= T:
                return True
            s -= 1
        queue = (
            ready + (k - 1) * (prompt.wait_start + offset) + slope * position[i] if k > 1 else 0.0
        )
        low = i
        high = M
        while high - low > 1:
            j = low + (high - low) // 2
            if done(prompt, i, j, k, first, queue) + rest <= T:
                low = j
            else:
                high = j
        if low == i:
            return False
        before = i
        i = low
    return False


@kernel(
    "f8(i8, Prompt, f8, f8)",
    steps=lambda most, prompt, *_: 2 * HALVINGS * min(most, 20) * 20 + 4 * len(prompt.stage),
)
def lower_bound(most, prompt, low, high):
    """Return a lower bound on the time to first token of every plan.

    The bound is the largest T that is found to be unattainable.

    `most` is the maximum number of chunks. `low` is a lower bound on the time, and `high` is the
    time of some plan.

    A plan whose k-th chunk runs from token s to t cannot be done before

        max(uploaded(k, s, t) + latency + wait, queue(k, s)) + wait + P stage[t - s] + latency +
        download of s..N.

    Here, `uploaded` is the larger of two times: "first token computed, then k messages and t tokens
    uploaded without a break" and "k chunks with t tokens computed, then this chunk uploaded".
    `queue` is the time "first token in the cloud, then k - 1 chunks with s tokens on the first
    stage". It is bounded with stage[x] >= offset + slope x, for some line whose slope is at most
    the download time per token. For a fixed t, the bound does not increase with s, and it increases
    with t and k. By induction, no plan that ends by T covers more tokens with the first k chunks
    than the plan that always uses the largest chunk that meets T. If the latter plan cannot
    continue, or exceeds the maximum number of chunks, T is unattainable. If only the last token is
    downloaded, s..N is one token and the slope is 0, and every chunk but the last is followed by
    another chunk on the last stage.

    The last chunk runs from s to N, where s is at most the boundary that this plan reaches, and
    must also wait for the previous chunk. After the previous chunk has been uploaded up to s, the
    smallest chunk and the last chunk pass the first stage, and the last chunk passes the other
    stages and the downlink. This time does not decrease with s, so all s that satisfy the other
    condition are tried.

    The kernel halves the interval of T repeatedly. Each halving needs O(chunks log M) steps, and
    one additional step for each boundary at which the last chunk may start.
    """
    stage = prompt.stage
    down = 0.0 if prompt.last else prompt.down_token
    best = low
    least = prompt.position[1]  # tokens of the smallest chunk before the last
    steepest = math.inf  # slope of the lines below stage through its value there
    for x in range(least + 1, stage.size):
        steepest = min(steepest, (stage[x] - stage[least]) / (x - least))
    for tilt in range(2):
        slope = 0.0 if tilt == 0 else min(down, steepest)
        if tilt == 1 and slope <= 0.0:
            break
        offset = math.inf
        for x in range(least, stage.size):
            offset = min(offset, stage[x] - slope * x)
        top = high
        for _ in range(HALVINGS):
            T = best + 0.5 * (top - best)
            if not best < T < top:
                break
            if is_within_reach(prompt, most, offset, slope, T):
                top = T
            else:
                best = T
    return best
