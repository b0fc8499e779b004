"""The event model of prompt chunking (paper 4).

Chunks pass through the device, the uplink, the P stages and the downlink in order.

A plan is a list of boundaries 0 = b_0 < b_1 < ... < b_K = M, indices into `position`. A state is an
array that contains the end of the last upload, followed by the time at which each of the P stages
is free.
"""

import math

from specopt.solvers.kernels.kernel import inlined, record

Prompt = record(
    "Prompt",
    position="i8[::1]",  # number of tokens before each place where a chunk may end, 0 to N
    stage="f8[::1]",  # g(mu + x) / P, by number of tokens x in a chunk
    up_token="f8",  # in seconds, like all times below
    down_token="f8",
    message="f8",
    latency="f8",
    wait_arrival="f8",  # counted from the arrival in the cloud
    wait_start="f8",  # counted from the start on the first stage
    device_chunk="f8",
    device_token="f8",
    head="f8",
    stages="i8",
    last="b1",  # whether only the deep state of the last token comes back
    stop="u1[::1]",  # one entry: 1 if the call should stop
)

Work = record(
    "Work",
    # before each chunk of the current plan: the state, then the end of the downloads
    states="f8[:, ::1]",
    state="f8[::1]",
    weights="f8[::1]",
    current="i8[::1]",
    trial="i8[::1]",
    left="i8[::1]",  # one entry: number of stages that may still be simulated
)


@inlined
def advance(prompt, chunks, tokens, after, up, state, out):
    """Advance the pipeline by one chunk.

    Return the time at which the chunk has been uploaded, and the time at which it leaves the last
    stage. The previous upload ends at `up`. The state after the chunk is written to `out`. `chunks`
    and `after` are the numbers of chunks and of tokens up to the chunk's end. Entry 0 of `state`
    and `out` is not used.
    """
    computed = prompt.device_chunk * chunks + prompt.device_token * after
    up = max(up, computed) + prompt.message + tokens * prompt.up_token
    busy = prompt.stage[tokens]
    free = max(up + prompt.latency + prompt.wait_arrival, state[1]) + prompt.wait_start + busy
    out[1] = free
    for q in range(2, prompt.stages + 1):
        free = max(free, state[q]) + busy
        out[q] = free
    return up, free


@inlined
def play(prompt, bounds, chunks, state):
    """Return the time to first token of the plan with boundaries bounds[0..chunks].

    The simulation takes O(chunks P) time. `state` is scratch space with shape (1 + P,). The result
    is infinite if the call is stopped.
    """
    P = prompt.stages
    for q in range(P + 1):
        state[q] = 0.0
    up = 0.0
    down = 0.0
    before = 0
    for k in range(chunks):
        if prompt.stop[0]:
            return math.inf
        after = prompt.position[bounds[k + 1]]
        x = after - before
        before = after
        up, free = advance(prompt, k + 1, x, after, up, state, state)
        down = max(free + prompt.latency, down)
        if not prompt.last:
            down += x * prompt.down_token
        elif k == chunks - 1:
            down += prompt.down_token
    return down + prompt.head
