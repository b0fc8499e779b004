"""Kernels for a local search for plans with a short time to first token.

Starting plans are geometric, follow from deadlines, or have chunks that grow at first. They are
improved by local moves.
"""

import math

import numpy as np

from specopt.solvers.kernels.kernel import helper, inlined, kernel
from specopt.solvers.kernels.random import GOLDEN, mixed, uniform
from specopt.solvers.prompt_chunking.kernels.families import spread
from specopt.solvers.prompt_chunking.kernels.play import (
    Prompt,  # noqa: F401  (named in a signature)
    Work,  # noqa: F401  (named in a signature)
    advance,
    play,
)

CLOSE = 2e-4
"""Relative gap to the lower bound below which `search` accepts the best of its starting plans."""

STARTS = 8
"""Number of plans from which a search starts.

They are geometric chunks, chunks that follow from a deadline at five fractions of the largest size,
and chunks that grow up to the second or third chunk.
"""

KICKS = 8
"""Number of random variations of the best plan that `search` polishes at the end."""

CHUNK_WORK = 8
"""Cost of simulating a chunk, in addition to the stages that the chunk passes.

The cost is expressed as a number of stages.
"""

PROVEN = 1e-10
"""Relative gap to the lower bound below which a search ends immediately."""


@helper
def by_deadline(most, prompt, T, share, state, out):
    """Fill `out` with chunks that are as large as a deadline T allows, times `share`.

    Return the number of chunks, or 0 if T is not met. The state of the device, the link and the
    stages is exact, while later chunks are assumed to take the minimum time. `state` is scratch
    space, shape (2, 1 + P).
    """
    position, P = prompt.position, prompt.stages
    M = position.size - 1
    N = position[M]
    here, there = state[0], state[1]
    for q in range(P + 1):
        here[q] = 0.0
    least = prompt.stage[min(position[1], N - position[M - 1])]
    up = 0.0
    i = 0
    out[0] = 0
    for k in range(1, most + 1):
        if prompt.stop[0]:
            return 0
        low = i if k < most else M
        high = M + 1
        j = M
        while high - low > 1:
            x = position[j] - position[i]
            sent, free = advance(prompt, k, x, position[j], up, here, there)
            end = free + (
                prompt.down_token if prompt.last else (N - position[i]) * prompt.down_token
            )
            if (
                j < M and end + prompt.latency + prompt.head <= T
            ):  # the remaining tokens may be late as well
                queue = 0.0
                for q in range(1, P + 1):
                    before = there[q] + prompt.wait_start if q == 1 else there[q]
                    queue = max(queue, before + (P + 1 - q) * least)
                left = (N - position[j]) * prompt.down_token
                end = queue + prompt.down_token if prompt.last else max(end, queue + left)
                sent = sent + prompt.message + (N - position[j]) * prompt.up_token
                rest = sent + prompt.latency + prompt.wait_arrival + prompt.wait_start + P * least
                end = max(end, rest + prompt.down_token)
            if end + prompt.latency + prompt.head <= T:
                low = j
            else:
                high = j
            j = low + (high - low) // 2
        if low == i:
            return 0
        if low < M and share < 1.0:
            low = i + max(1, int((low - i) * share))
        up, _ = advance(prompt, k, position[low] - position[i], position[low], up, here, here)
        out[k] = low
        i = low
        if i == M:
            return k
    return 0


@inlined
def replay(start, chunks, prompt, bounds, value, is_better, work):
    """Simulate a changed plan from its first changed chunk, and return its time to first token.

    Return `value` if the time is not smaller than `value`. If the time is smaller, the intermediate
    states are stored. `is_better` is true if the time is known to be smaller.
    """
    P = prompt.stages
    N = prompt.position[-1]
    states, state = work.states, work.state
    for keeps in range(1 if is_better else 0, 2):
        up = states[start, 0]
        for q in range(1, P + 1):
            state[q] = states[start, q]
        down = states[start, P + 1]
        before = prompt.position[bounds[start]]
        for k in range(start, chunks):
            if prompt.stop[0]:
                work.left[0] = 0
                return value
            after = prompt.position[bounds[k + 1]]
            x = after - before
            before = after
            up, free = advance(prompt, k + 1, x, after, up, state, state)
            down = max(free + prompt.latency, down)
            end = down
            if not prompt.last:
                down += x * prompt.down_token
                end = down + (N - after) * prompt.down_token
            elif k == chunks - 1:
                down += prompt.down_token
                end = down
            if keeps:
                states[k + 1, 0] = up
                for q in range(1, P + 1):
                    states[k + 1, q] = state[q]
                states[k + 1, P + 1] = down
            elif end + prompt.head >= value:
                work.left[0] -= (k + 1 - start) * (P + CHUNK_WORK)
                return value
        work.left[0] -= (chunks - start) * (P + CHUNK_WORK)
    return down + prompt.head


@helper
def merge(j, chunks, bounds, out):
    """Fill `out` with a copy of a plan in which chunks j and j + 1 are merged.

    Return the new number of chunks.
    """
    for k in range(chunks):
        out[k] = bounds[k] if k <= j else bounds[k + 1]
    return chunks - 1


@helper
def cut(j, cells, chunks, bounds, out):
    """Fill `out` with a copy of a plan in which chunk j is cut after `cells` cells.

    Return the new number of chunks.
    """
    for k in range(chunks + 1):
        out[k if k <= j else k + 1] = bounds[k]
    out[j + 1] = bounds[j] + cells
    return chunks + 1


@helper
def copy(chunks, bounds, out):
    """Copy the boundaries of a plan with `chunks` chunks to `out`."""
    for k in range(chunks + 1):
        out[k] = bounds[k]


@kernel(
    "Tuple((i8, f8))(i8, i8, Prompt, b1, Work, i8[::1])",
    steps=lambda chunks, most, prompt, wide, work, bounds: work.left[0],
)
def polish(chunks, most, prompt, wide, work, bounds):
    """Improve a plan in place by moving cells between chunks and by merging and cutting chunks.

    Return the plan's number of chunks and its time to first token. A move transfers cells from one
    chunk to another. If `wide` is true, any two chunks can be chosen. Otherwise, the chunks are
    neighbours, or one of them is the first or the last chunk. Step sizes are halved when no move
    helps.
    """
    left, trial = work.left, work.trial
    for q in range(prompt.stages + 2):
        work.states[0, q] = 0.0
    value = replay(0, chunks, prompt, bounds, math.inf, True, work)
    delta = 1
    for k in range(chunks):
        delta = max(delta, (bounds[k + 1] - bounds[k]) // 4)
    while left[0] > 0:
        before = value
        for gap in range(1, chunks):
            for a in range(1, chunks - gap + 1):  # boundaries a .. b move together
                b = a + gap - 1
                if not wide and gap > 1 and a > 1 and b < chunks - 1:
                    continue
                for shift in (-delta, delta):
                    while (
                        left[0] > 0
                        and bounds[a] + shift > bounds[a - 1]
                        and bounds[b] + shift < bounds[b + 1]
                    ):
                        for k in range(a, b + 1):
                            bounds[k] += shift
                        new = replay(a - 1, chunks, prompt, bounds, value, False, work)
                        if not new < value:
                            for k in range(a, b + 1):
                                bounds[k] -= shift
                            break
                        value = new
        j = 0
        while j < chunks - 1 and left[0] > 0:
            count = merge(j, chunks, bounds, trial)
            new = replay(j, count, prompt, trial, value, False, work)
            if new < value:
                value = new
                chunks = count
                copy(chunks, trial, bounds)
            j += 1
        place = 0  # position of a cut, in quarters of chunks
        while place < 4 * chunks and chunks < most and left[0] > 0:
            j = place // 4
            cells = (bounds[j + 1] - bounds[j]) * (place % 4) // 4
            place += 1
            if cells == 0:
                continue
            count = cut(j, cells, chunks, bounds, trial)
            new = replay(j, count, prompt, trial, value, False, work)
            if new < value:
                value = new
                chunks = count
                copy(chunks, trial, bounds)
                place = 4 * (j + 1)
        if value == before:
            if delta == 1:
                break
            delta = max(1, delta // 2)
    return chunks, value


@helper
def kick(number, chunks, most, bounds, out):
    """Fill `out` with a random variation of a plan, in which each chunk is scaled by a factor
    between 1/2 and 2.

    Return the number of chunks. About half of the plans have one chunk fewer (two neighbours are
    merged) or one chunk more (a chunk is halved).
    """
    M = bounds[chunks]
    stream = mixed(np.uint64(number + 1) * GOLDEN)
    luck = np.int64(mixed(stream) >> np.uint64(33))
    j = (luck // 4) % chunks
    half = (bounds[j + 1] - bounds[j]) // 2
    count = chunks
    if luck % 4 == 0 and chunks > 2:
        count = merge(j % (chunks - 1), chunks, bounds, out)
    elif luck % 4 == 1 and chunks < most and half > 0:
        count = cut(j, half, chunks, bounds, out)
    else:
        copy(chunks, bounds, out)
    total = 0.0
    for k in range(count):
        total += (out[k + 1] - out[k]) * 4.0 ** (uniform(stream + np.uint64(k + 1) * GOLDEN) - 0.5)
    part = 0.0
    before = 0
    for k in range(1, count):
        part += (out[k] - before) * 4.0 ** (uniform(stream + np.uint64(k) * GOLDEN) - 0.5)
        before = out[k]
        out[k] = min(max(int(M * part / total + 0.5), out[k - 1] + 1), M - (count - k))
    out[count] = M
    return count


@kernel(
    "i8(i8, Prompt, f8, f8, f8, Work, i8[::1])",
    # assumes that the number of chunks is about the square root of the number of places
    steps=lambda most, prompt, *_: 2000 * min(most, len(prompt.position) ** 0.5),
)
def earliest_deadline(most, prompt, bound, value, share, work, out):
    """Fill `out` with chunks that meet a deadline as early as possible.

    Return the number of chunks, or 0 if no chunks are found. The deadline is found by bisection
    between a lower bound and the time of a plan. The meaning of `share` is explained in
    `by_deadline`.
    """
    low, high = bound, value
    count = 0
    for _ in range(20):
        T = low + 0.5 * (high - low)
        if not low < T < high:
            break
        found = by_deadline(most, prompt, T, share, work.states, work.trial)
        work.left[0] -= most if found == 0 and most < 16 else 16
        low, middle = T, low
        if found > 0:
            work.left[0] -= found * (prompt.stages + CHUNK_WORK)
            if play(prompt, work.trial, found, work.state) <= T * (1.0 + 1e-12):
                low, high = middle, T
                count = found
                copy(count, work.trial, out)
    return count


@helper
def best_growing(chunks, most, prompt, peak, work, out):
    """Fill `out` with the best chunks found whose sizes rise up to chunk `peak` and then fall.

    Return the number of chunks, which differs from `chunks` by at most one.
    """
    ratio = (
        0.6
        if prompt.last
        else min(max(prompt.down_token / max(prompt.up_token, 1e-300), 0.3), 0.95)
    )
    count = 0
    least = math.inf
    for length in range(max(1, chunks - 1), min(most, chunks + 1) + 1):
        for growth in range(2, 7, 2):
            spread(
                length,
                prompt.position.size - 1,
                peak,
                float(growth),
                ratio,
                work.weights,
                work.trial,
            )
            new = play(prompt, work.trial, length, work.state)
            work.left[0] -= length * (prompt.stages + CHUNK_WORK)
            if new < least:
                least = new
                count = length
                copy(length, work.trial, out)
    return count


@kernel("i8(i8, i8, i8, i8, f8, f8, Prompt, Work, i8[::1])")
def search(chunks, most, effort, spent, value, bound, prompt, work, out):
    """Fill `out` with the best plan found in a short search, and return its number of chunks.

    `out` has shape (M + 2,). Initially, it contains the better of two polished starting plans.
    `chunks` and `value` are the number of chunks and the time of this plan, and `spent` is the
    number of stages simulated for the two plans. Additional starting plans use smaller fractions of
    the largest chunks that a deadline allows, or have chunks that grow up to the second or third
    chunk and then shrink. `bound` is a lower bound on the time. Every starting plan is polished.
    Then the best plan is changed by one merge or one cut and polished again, as long as this helps
    and the bound is not close. At the end, a few random plans around the best plan are polished as
    well. `effort` is the maximum number of stages to simulate.
    """
    current, left = work.current, work.left
    start, kicks = 2, 0
    move, tried = -1, 0  # a merge or a cut of the best plan; -1: the plan itself
    while value > bound * (1.0 + PROVEN):
        left[0] = effort - spent  # for the current polishing
        wide, margin = False, 1e-12
        if start < STARTS:
            if start < 6:
                count = earliest_deadline(
                    most, prompt, bound, value, 1.0 - 0.12 * (start - 1), work, current
                )
            else:
                count = best_growing(chunks, most, prompt, start - 5, work, current)
            spent = effort - left[0]
            start += 1
            share, margin = effort // 12, 0.0
        elif prompt.stop[0] or spent >= effort or value <= bound * (1.0 + CLOSE):
            break
        elif tried < 2 * chunks and kicks == 0:
            wide = move < 0
            if wide:
                count = chunks
                copy(chunks, out, current)
            elif move < chunks - 1:
                count = merge(move, chunks, out, current)
            else:
                j = move - (chunks - 1)
                half = (out[j + 1] - out[j]) // 2
                count = cut(j, half, chunks, out, current) if half > 0 else 0
            tried += 1
            move = (move + 1) % (2 * chunks - 1)
            share = (effort - spent) // (3 if wide else 6)
        elif kicks < KICKS and chunks > 1:
            count = kick(kicks, chunks, most, out, current)
            kicks += 1
            share = (effort - spent) // 6
        else:
            break
        if count == 0 or count > most:
            continue
        left[0] = share
        count, new = polish(count, most, prompt, wide, work, current)
        spent += max(1, share) - left[0]
        if new < value * (1.0 - margin):
            value = new
            chunks = count
            copy(chunks, current, out)
            if start == STARTS and kicks == 0 and margin > 0.0:
                move = move % (2 * chunks - 1)
                tried = 0
    return chunks
