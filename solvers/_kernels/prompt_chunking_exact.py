"""Prompt chunking (paper 4, event model): is there a chunking that ends by a time T, decided by labels.

A boundary is an index i = 0..M into `position`, the tokens before it. After the chunk that ends there a device, an
uplink and P stages are in a state (local, up, f_1, ..., f_P): `up` ends the last upload, f_q frees stage q. Every
next state is a componentwise monotone function of the state, and `local` follows from the number of chunks and i.

With a deadline T for the first token the downlink needs no state: the chunk that starts at token n must leave the
last stage by T - head - latency - (N - n) A/beta_down, since the link is then busy with the tokens from n on at
best. So the decision is a shortest path with resources:

* `earliest` gives per boundary the least value of each component, each minimised on its own;
* `latest` gives per boundary the largest value of each component from which T can still be met, each maximised on
  its own over the chunks that can follow the earliest state. A start beyond them proves T infeasible at once;
* `extend` runs over the boundaries with non-dominated labels, drops those beyond `latest`, and raises components
  that cannot delay the smallest chunk that can follow up to the value at which they would: states that differ only
  in idle time become one.

States are rows of 1 + P numbers, `up` first. `cost` holds what the link and the device take (see `COSTS`).
"""

import math

import numpy as np
from numba import njit, types

COSTS = (
    "seconds up per token",
    "seconds down per token",
    "seconds per message",
    "latency in seconds",
    "wait from the arrival in seconds",
    "wait from the start on the first stage in seconds",
    "device seconds per chunk",
    "device seconds per token",
    "head in seconds",
)
"""Meaning of the entries of `cost`."""

INFEASIBLE = 0
FOUND = 1
PAUSED = 2
FULL = 3

AT, LABEL, NEXT, USED, FREE, GOAL, SEEN = range(7)
"""Entries of `control`: boundary, label and end of the chunk to go on with, room taken, first free label, label at the
end, labels seen."""


@njit(cache=True)
def step(state, chunks, tokens, after, stage, cost, P, out):
    """Write the state after a chunk: `chunks` and `after` count the chunks and the tokens up to its end."""
    up = max(state[0], cost[6] * chunks + cost[7] * after) + cost[2] + tokens * cost[0]
    out[0] = up
    free = max(up + cost[3] + cost[4], state[1]) + cost[5] + stage
    out[1] = free
    for q in range(2, P + 1):
        free = max(free, state[q]) + stage
        out[q] = free


@njit(
    [
        types.void(
            types.int64[::1],
            types.float64[::1],
            types.float64[::1],
            types.int64,
            types.float64[:, ::1],
            types.int64,
            types.int64,
        )
    ],
    cache=True,
)
def earliest(position, stage, cost, P, floor, begin, end):
    """Fill rows begin..end-1 of `floor`, after those before them: a lower bound on each component of each state.

    Shape (M + 1, 1 + P); O(M P) per row.
    """
    state = np.empty(P + 1)
    if begin == 0:
        floor[0] = 0.0
    for j in range(max(begin, 1), end):
        floor[j] = math.inf
        for i in range(j):
            x = position[j] - position[i]
            chunks = 1 if i == 0 else 2
            step(floor[i], chunks, x, position[j], stage[x], cost, P, state)
            for q in range(P + 1):
                floor[j, q] = min(floor[j, q], state[q])


@njit(
    [
        types.boolean(
            types.int64[::1],
            types.float64[::1],
            types.float64[::1],
            types.int64,
            types.boolean,
            types.float64,
            types.float64[:, ::1],
            types.float64[:, ::1],
            types.int64[::1],
            types.int64[::1],
            types.int64,
            types.int64,
        )
    ],
    cache=True,
)
def latest(position, stage, cost, P, last, T, floor, ceiling, shortest, fewest, begin, above):
    """Fill rows begin..above-1 of `ceiling`, after those behind them: an upper bound on the states that can end by T.

    Each component on its own, shape (M + 1, 1 + P); O(M P) per row. Also where the smallest chunk ends that can follow
    each boundary (0 where none can) and the fewest chunks that can. Return whether a chunk can follow row `begin`; if
    none can follow row 0, nothing ends by T.
    """
    M = position.size - 1
    N = position[M]
    state = np.empty(P + 1)
    limit = np.empty(P + 1)
    if above > M:
        ceiling[M] = math.inf
        fewest[M] = 0
        shortest[M] = 0
    end = T - cost[8] - cost[3]
    for i in range(min(above, M) - 1, begin - 1, -1):
        ceiling[i] = -math.inf
        shortest[i] = 0
        fewest[i] = M + 1
        chunks = 1 if i == 0 else 2
        due = end - (cost[1] if last else (N - position[i]) * cost[1])
        for j in range(i + 1, M + 1):
            x = position[j] - position[i]
            p = stage[x]
            step(floor[i], chunks, x, position[j], p, cost, P, state)
            if state[P] > due:
                break
            good = True
            free = due
            for q in range(P, 0, -1):
                free = min(free, ceiling[j, q])
                if state[q] > free:
                    good = False
                    break
                free -= p
                limit[q] = free
            if not good:
                continue
            limit[1] -= cost[5]
            up = min(limit[1] - cost[3] - cost[4], ceiling[j, 0])
            if state[0] > up:
                continue
            limit[0] = up - cost[2] - x * cost[0]
            for q in range(P + 1):
                if limit[q] > ceiling[i, q]:
                    ceiling[i, q] = limit[q]
            if shortest[i] == 0:
                shortest[i] = j
            fewest[i] = min(fewest[i], fewest[j] + 1)
    return shortest[begin] > 0


@njit(cache=True)
def raise_idle(state, chunks, i, j, position, stage, cost, P):
    """Raise components to the value below which they delay no chunk that ends at boundary j or later."""
    x = position[j] - position[i]
    state[0] = max(state[0], cost[6] * (chunks + 1) + cost[7] * position[j])
    free = state[0] + cost[2] + x * cost[0] + cost[3] + cost[4]
    for q in range(1, P + 1):
        state[q] = max(state[q], free)
        free = state[q] + stage[x]
        if q == 1:
            free += cost[5]


@njit(
    [
        types.int64(
            types.int64[::1],
            types.float64[::1],
            types.float64[::1],
            types.int64,
            types.boolean,
            types.float64,
            types.float64[:, ::1],
            types.int64[::1],
            types.int64[::1],
            types.int64,
            types.boolean,
            types.float64,
            types.float64[:, ::1],
            types.int64[:, ::1],
            types.int64[::1],
            types.int64[::1],
            types.int64,
        )
    ],
    cache=True,
)
def extend(
    position,
    stage,
    cost,
    P,
    last,
    T,
    ceiling,
    shortest,
    fewest,
    most,
    counted,
    slack,
    values,
    links,
    heads,
    control,
    work,
):
    """Extend labels, boundary by boundary, for about `work` steps; return INFEASIBLE, FOUND, PAUSED or FULL.

    Parameters
    ----------
    most
        The cap on chunks.
    counted
        Whether fewer chunks are worth something: a cap, or device seconds per chunk.
    slack
        Seconds by which a label that is dropped may be better than the one that dominates it; and the seconds by
        which a label may exceed a ceiling.
    values, links
        Labels: states, and (next label of the boundary, parent, boundary, chunks). FULL leaves room to the caller:
        copy them into larger arrays and call again.
    heads, control
        First label of each boundary, or -1; and where the search stands.
    """
    M = position.size - 1
    N = position[M]
    capacity = links.shape[0]
    state = np.empty(P + 1)
    end = T - cost[8] - cost[3]
    while control[AT] < M:
        i = control[AT]
        due = end - (cost[1] if last else (N - position[i]) * cost[1]) + slack
        label = control[LABEL] if control[LABEL] >= 0 else heads[i]
        while label >= 0:
            control[LABEL] = label
            chunks = links[label, 3] + 1
            first = shortest[i]
            if first == 0:
                first = M + 1
            for j in range(max(first, control[NEXT]), M + 1):
                control[NEXT] = j
                if work <= 0:
                    return PAUSED
                work -= 1
                if chunks + fewest[j] > most:
                    continue
                x = position[j] - position[i]
                step(values[label], chunks, x, position[j], stage[x], cost, P, state)
                if state[P] > due:
                    break
                good = True
                for q in range(P + 1):
                    if state[q] > ceiling[j, q] + slack:
                        good = False
                        break
                if not good:
                    continue
                if j < M:
                    if shortest[j] == 0:
                        continue
                    raise_idle(state, chunks, j, shortest[j], position, stage, cost, P)
                    for q in range(P + 1):
                        if state[q] > ceiling[j, q] + slack:
                            good = False
                            break
                    if not good:
                        continue
                # against the labels that are there
                previous = -1
                other = heads[j]
                while other >= 0:
                    work -= 1
                    following = links[other, 0]
                    below = not counted or links[other, 3] <= chunks
                    above = not counted or links[other, 3] >= chunks
                    for q in range(P + 1):
                        v = values[other, q]
                        if v > state[q] + slack:
                            below = False
                            if not above:
                                break
                        if v < state[q]:
                            above = False
                            if not below:
                                break
                    if below:
                        good = False
                        break
                    if above:
                        if previous < 0:
                            heads[j] = following
                        else:
                            links[previous, 0] = following
                        links[other, 0] = control[FREE]
                        control[FREE] = other
                    else:
                        previous = other
                    other = following
                if not good:
                    continue
                new = control[FREE]
                if new >= 0:
                    control[FREE] = links[new, 0]
                else:
                    new = control[USED]
                    if new == capacity:
                        return FULL
                    control[USED] += 1
                control[SEEN] += 1
                for q in range(P + 1):
                    values[new, q] = state[q]
                links[new, 0] = heads[j]
                links[new, 1] = label
                links[new, 2] = j
                links[new, 3] = chunks
                heads[j] = new
                if j == M:
                    control[GOAL] = new
                    return FOUND
            control[NEXT] = 0
            label = links[label, 0]
        control[AT] = i + 1
        control[LABEL] = -1
    return INFEASIBLE
