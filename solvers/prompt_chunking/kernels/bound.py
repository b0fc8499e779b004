"""A lower bound on the time to first token of every chunking: chunks meet in the cloud as little as
they can.
"""

import math

from specopt.solvers.kernels.kernel import helper, kernel
from specopt.solvers.prompt_chunking.kernels.play import Prompt  # noqa: F401  (named in a signature)

HALVINGS = 44
"""Of an interval of deadlines: down to a relative 1e-13."""


@helper
def done(prompt, i, j, k, first, queue):
    """Return the least time to first token of a plan whose k-th chunk runs from place i to j, by
    that chunk alone.
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
    """Return whether T is within reach when chunks meet in the cloud only as in `lower_bound`:
    False is a proof.
    """
    position, stage = prompt.position, prompt.stage
    M = position.size - 1
    N = position[M]
    arrive = prompt.latency + prompt.wait_arrival
    first = (
        prompt.device_chunk + prompt.device_token * position[1]
    )  # the device cannot send anything earlier
    ready = first + prompt.message + position[1] * prompt.up_token + arrive  # nor the cloud start
    least = stage[position[1]]
    rest = (
        stage[N - position[M - 1]] if prompt.last else 0.0
    )  # the last chunk may be smaller than the grid
    before = 0  # the furthest place after k - 2 chunks
    i = 0  # and after k - 1
    for k in range(1, most + 1):
        if prompt.stop[0]:
            return True
        # may the k-th be the last? Places up to `before` were tried with fewer chunks
        s = i
        while (s > before or k == 1) and not prompt.stop[0]:
            queue = (
                0.0
                if k == 1
                else ready + (k - 1) * (prompt.wait_start + offset) + slope * position[s]
            )
            if done(prompt, s, M, k, first, queue) > T:
                break  # an earlier place makes it worse
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
    """Return a lower bound on the time to first token of every plan: the largest T found to be out
    of reach.

    most: chunks; low: a lower bound; high: the time of some plan.

    A plan whose k-th chunk runs from token s to t cannot be done before
        max(uploaded(k, s, t) + latency + wait, queue(k, s)) + wait + P stage[t - s] + latency +
        download of s..N,
    where uploaded is the larger of "first token computed, then k messages and t tokens up without a
    break" and "k chunks with t tokens computed, then this chunk up". queue is "the first token
    there, then k - 1 chunks with s tokens on the first stage", a sum of stage[x] >= offset + slope
    x for some line with slope <= seconds down per token. For a fixed t all of this falls (or stays)
    as s grows, and it grows with t and k. By induction no plan that ends by T is further along
    after k chunks than the one that always takes the largest chunk that meets T. If that one gets
    stuck, or runs out of chunks, T is out of reach. (If the last token alone comes back, s..N is
    one token, and the slope is 0; a chunk that is not the last is followed by one more on the last
    stage.)

    The last chunk, from s <= that place to N, must also wait for the one before it. It is uploaded
    through s; then the least chunk and the last one pass the first stage, and the last one the
    others and the downlink. That does not fall with s, so all s are tried for which the other
    condition holds.

    Halvings of T, each O(chunks log M) and as many steps as the last chunk has places.
    """
    stage = prompt.stage
    down = 0.0 if prompt.last else prompt.down_token
    best = low
    least = prompt.position[1]  # tokens of the smallest chunk that is not the last
    steepest = math.inf  # of the lines below stage through its value there
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
