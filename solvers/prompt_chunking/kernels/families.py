"""Kernels that search families of chunkings: equal chunks, geometric chunks, and all plans."""

import math

import numpy as np

from specopt.solvers.kernels.kernel import helper, kernel
from specopt.solvers.prompt_chunking.kernels.play import Work, play  # noqa: F401  (named in a signature)

PATIENCE = 4
"""Number of chunk counts in a row without improvement that end the search for geometric chunks."""


@kernel("i8(i8, Prompt)")
def best_equal(least, prompt):
    """Return the best size of equal chunks, in O(P M log M) time.

    Sizes are in cells, which are the spans between neighbouring possible chunk ends. The size is at
    least `least`. The last chunk contains the remaining cells, and ties go to the larger size.
    """
    M = prompt.position.size - 1
    state = np.empty(prompt.stages + 1)
    bounds = np.empty(M // least + 2, np.int64)
    best = math.inf
    found = M
    for size in range(M, least - 1, -1):
        chunks = -(-M // size)
        for k in range(chunks):
            bounds[k] = k * size
        bounds[chunks] = M
        value = play(prompt, bounds, chunks, state)
        if value < best:
            best = value
            found = size
    return found


@kernel("i8(i8, Prompt, i8[::1])")
def enumerate_plans(most, prompt, out):
    """Fill `out` with the best of all plans in O(2^M M P) time, and return its number of chunks."""
    M = prompt.position.size - 1
    state = np.empty(prompt.stages + 1)
    bounds = np.zeros(M + 1, np.int64)
    best = math.inf
    found = 0
    for cuts in range(1 << (M - 1)):
        chunks = 0
        for at in range(1, M):
            if (cuts >> (at - 1)) & 1:
                chunks += 1
                bounds[chunks] = at
        chunks += 1
        bounds[chunks] = M
        if chunks > most:
            continue
        value = play(prompt, bounds, chunks, state)
        if value < best:
            best = value
            found = chunks
            for k in range(chunks + 1):
                out[k] = bounds[k]
    return found


@helper
def spread(chunks, M, peak, growth, ratio, weights, bounds):
    """Fill `bounds` with chunks whose sizes form a geometric sequence before and after a peak.

    The size changes by the factor `growth` from chunk to chunk up to the chunk `peak`, and by the
    factor `ratio` after it. Boundaries are rounded to integers, and no chunk is empty. `weights` is
    scratch space, shape (chunks,).
    """
    total = 0.0
    for k in range(chunks):
        weights[k] = (growth if k < peak else ratio) ** (k - peak)
        total += weights[k]
    part = 0.0
    bounds[0] = 0
    for k in range(1, chunks):
        part += weights[k - 1]
        at = int(M * part / total + 0.5)
        bounds[k] = min(max(at, bounds[k - 1] + 1), M - (chunks - k))
    bounds[chunks] = M


@kernel("i8(i8, Prompt, Work, i8[::1])")
def best_geometric(most, prompt, work, out):
    """Fill `out` with the best geometric chunks, and return their number.

    The search tries numbers of chunks and ratios. For each number of chunks, it tries 17 ratios,
    which lie between 1/4 and 4 for two chunks and closer to 1 for more chunks. Four rounds of finer
    steps around the best ratio follow. The number of chunks increases until `PATIENCE` consecutive
    numbers have brought no improvement.
    """
    M = prompt.position.size - 1
    trial = work.trial
    found = math.inf
    number = 0
    since = 0
    for chunks in range(1, min(most, M) + 1):
        centre = 0.0
        best = math.inf
        width = math.log(64.0) / chunks / 8
        for r in range(1 if chunks == 1 else 5):
            middle = centre
            for step in range(-8, 9):
                if step != 0 and (chunks == 1 or (r > 0 and step % 4 == 0)):
                    continue
                log_ratio = middle + step * width
                spread(chunks, M, 0, 1.0, math.exp(log_ratio), work.weights, trial)
                value = play(prompt, trial, chunks, work.state)
                if value < best:
                    best = value
                    centre = log_ratio
                if value < found:
                    found = value
                    number = chunks
                    since = -1
                    for k in range(chunks + 1):
                        out[k] = trial[k]
            width /= 8
        since += 1
        if since >= PATIENCE:
            break
    return number
