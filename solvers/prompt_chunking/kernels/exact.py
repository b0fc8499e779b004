"""A labelling algorithm that decides whether some plan ends by a time T.

It uses the event model of paper 4.

A boundary is an index i = 0..M into `position`, which contains the number of tokens before each
boundary. After the chunk that ends at a boundary, the device, the uplink and the P stages have a
state (local, up, f_1, ..., f_P). In this state, the last upload ends at `up`, and stage q is free
from f_q on. Every next state is a componentwise monotone function of the state, and `local` follows
from the number of chunks and i.

With a deadline T for the first token, the downlink needs no state. The chunk that starts at token n
must leave the last stage by T - head - latency - (N - n) A/beta_down, because the link is then busy
with the tokens after n. So the decision problem is a shortest path with resources:

* `earliest` computes the minimum of each component at every boundary, minimised separately;
* `latest` computes the maximum of each component at every boundary from which T can still be met,
  maximised separately over the chunks that can follow the earliest state. If the start lies beyond
  these maxima, T is proven infeasible immediately;
* `extend` runs over the boundaries with non-dominated labels, and drops labels beyond `latest`. It
  raises each component to the largest value that does not delay the smallest possible next chunk,
  so that states that differ only in idle time coincide.

States are rows of 1 + P numbers, `up` first.
"""

import math

import numpy as np

from specopt.solvers.kernels.kernel import helper, kernel, record, rows
from specopt.solvers.prompt_chunking.kernels.play import advance

INFEASIBLE = 0
FOUND = 1
PAUSED = 2
FULL = 3

Tables = record(
    "Tables",
    floor="f8[:, ::1]",  # by boundary, shape (M + 1, 1 + P): lower bound on all states
    ceiling="f8[:, ::1]",  # upper bound on the states that can end by the deadline
    shortest="i8[::1]",  # end of the smallest chunk that can follow, 0 if none can
    fewest="i8[::1]",  # minimum number of chunks that can follow
)
Link = rows("Link", next="i8", parent="i8", end="i8", chunks="i8")
"""Links of a label.

The fields are the next label at the same boundary, the parent label, the boundary of the label, and
the number of chunks up to this boundary.
"""

Labels = record("Labels", states="f8[:, ::1]", links="Link[::1]", heads="i8[::1]")
"""All labels, and the index of the first label of each boundary, which is -1 if there is none."""

Where = rows(
    "Where", boundary="i8", label="i8", next="i8", used="i8", free="i8", goal="i8", seen="i8"
)
"""Current position of the search.

`boundary` and `label` are the current boundary and the current label, and `next` is the end of the
next chunk. `used` is the number of labels in use, and `free` is the first free label. `goal` is the
label that reaches the end, or -1 if there is none. `seen` is the number of labels seen.
"""


@kernel("void(i8, i8, Prompt, f8[:, ::1])")
def earliest(begin, end, prompt, floor):
    """Fill rows begin..end-1 of `floor` with a lower bound on each component of each state.

    Earlier rows must already be filled. The cost is O(M P) per row.
    """
    position, P = prompt.position, prompt.stages
    state = np.empty(P + 1)
    if begin == 0:
        floor[0] = 0.0
    for j in range(max(begin, 1), end):
        floor[j] = math.inf
        for i in range(j):
            x = position[j] - position[i]
            state[0], _ = advance(
                prompt, 1 if i == 0 else 2, x, position[j], floor[i][0], floor[i], state
            )
            for q in range(P + 1):
                floor[j, q] = min(floor[j, q], state[q])


@kernel("b1(i8, i8, Prompt, f8, Tables)")
def latest(begin, above, prompt, T, tables):
    """Fill rows begin..above-1 of `ceiling` with an upper bound on the states that can end by T.

    Later rows must already be filled. Each component is bounded separately, at a cost of O(M P) per
    row. The function also fills `shortest` and `fewest`. Return whether a chunk can start at
    boundary `begin`. If no chunk can start at boundary 0, no plan ends by T.
    """
    position, P = prompt.position, prompt.stages
    floor, ceiling, shortest, fewest = tables.floor, tables.ceiling, tables.shortest, tables.fewest
    M = position.size - 1
    N = position[M]
    state = np.empty(P + 1)
    limit = np.empty(P + 1)
    if above > M:
        ceiling[M] = math.inf
        fewest[M] = 0
        shortest[M] = 0
    end = T - prompt.head - prompt.latency
    for i in range(min(above, M) - 1, begin - 1, -1):
        ceiling[i] = -math.inf
        shortest[i] = 0
        fewest[i] = M + 1
        chunks = 1 if i == 0 else 2
        due = end - (prompt.down_token if prompt.last else (N - position[i]) * prompt.down_token)
        for j in range(i + 1, M + 1):
            x = position[j] - position[i]
            busy = prompt.stage[x]
            state[0], _ = advance(prompt, chunks, x, position[j], floor[i][0], floor[i], state)
            if state[P] > due:
                break
            good = True
            free = due
            for q in range(P, 0, -1):
                free = min(free, ceiling[j, q])
                if state[q] > free:
                    good = False
                    break
                free -= busy
                limit[q] = free
            if not good:
                continue
            limit[1] -= prompt.wait_start
            up = min(limit[1] - prompt.latency - prompt.wait_arrival, ceiling[j, 0])
            if state[0] > up:
                continue
            limit[0] = up - prompt.message - x * prompt.up_token
            for q in range(P + 1):
                if limit[q] > ceiling[i, q]:
                    ceiling[i, q] = limit[q]
            if shortest[i] == 0:
                shortest[i] = j
            fewest[i] = min(fewest[i], fewest[j] + 1)
    return shortest[begin] > 0


@helper
def raise_idle(prompt, chunks, i, j, state):
    """Raise each component of a state as far as possible without delaying a later chunk.

    The later chunk starts at boundary i and ends at boundary j or beyond.
    """
    position, P = prompt.position, prompt.stages
    x = position[j] - position[i]
    state[0] = max(state[0], prompt.device_chunk * (chunks + 1) + prompt.device_token * position[j])
    free = state[0] + prompt.message + x * prompt.up_token + prompt.latency + prompt.wait_arrival
    for q in range(1, P + 1):
        state[q] = max(state[q], free)
        free = state[q] + prompt.stage[x]
        if q == 1:
            free += prompt.wait_start


@helper
def within(state, ceiling, slack):
    """Return whether each component of a state is at most its ceiling plus `slack`."""
    q = 0
    while q < len(state) and state[q] <= ceiling[q] + slack:
        q += 1
    return q == len(state)


@kernel("i8(i8, i8, Prompt, Tables, f8, b1, f8, Labels, Where[::1])")
def extend(most, work, prompt, tables, T, counted, slack, labels, where):
    """Extend labels boundary by boundary for about `work` steps.

    Return INFEASIBLE if no plan ends by T, FOUND if a label reaches the end, PAUSED if the steps
    are used up, or FULL if there is no space for another label.

    Parameters
    ----------
    most
        Maximum number of chunks.
    counted
        Whether the number of chunks matters, because it is limited or because each chunk costs
        device time.
    slack
        Tolerance in seconds. A dropped label may be better, by at most this time, than the label
        that dominates it. A label may exceed a ceiling by at most this time.
    labels, where
        Labels, and current position of the search. After FULL, the caller copies the labels into
        larger arrays and calls the function again.
    """
    position, P = prompt.position, prompt.stages
    ceiling, shortest, fewest = tables.ceiling, tables.shortest, tables.fewest
    values, links, heads, control = labels.states, labels.links, labels.heads, where[0]
    M = position.size - 1
    N = position[M]
    capacity = len(links)
    state = np.empty(P + 1)
    end = T - prompt.head - prompt.latency
    while control.boundary < M:
        i = control.boundary
        due = (
            end
            - (prompt.down_token if prompt.last else (N - position[i]) * prompt.down_token)
            + slack
        )
        label = control.label if control.label >= 0 else heads[i]
        while label >= 0:
            control.label = label
            chunks = links[label].chunks + 1
            first = shortest[i]
            if first == 0:
                first = M + 1
            for j in range(max(first, control.next), M + 1):
                control.next = j
                if work <= 0:
                    return PAUSED
                work -= 1
                if chunks + fewest[j] > most:
                    continue
                x = position[j] - position[i]
                state[0], _ = advance(
                    prompt, chunks, x, position[j], values[label][0], values[label], state
                )
                if state[P] > due:
                    break
                if not within(state, ceiling[j], slack):
                    continue
                if j < M:
                    if shortest[j] == 0:
                        continue
                    raise_idle(prompt, chunks, j, shortest[j], state)
                    if not within(state, ceiling[j], slack):
                        continue
                # compare with the existing labels
                good = True
                previous = -1
                other = heads[j]
                while other >= 0:
                    work -= 1
                    following = links[other].next
                    below = not counted or links[other].chunks <= chunks
                    above = not counted or links[other].chunks >= chunks
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
                            links[previous].next = following
                        links[other].next = control.free
                        control.free = other
                    else:
                        previous = other
                    other = following
                if not good:
                    continue
                new = control.free
                if new >= 0:
                    control.free = links[new].next
                else:
                    new = control.used
                    if new == capacity:
                        return FULL
                    control.used += 1
                control.seen += 1
                for q in range(P + 1):
                    values[new, q] = state[q]
                links[new].next = heads[j]
                links[new].parent = label
                links[new].end = j
                links[new].chunks = chunks
                heads[j] = new
                if j == M:
                    control.goal = new
                    return FOUND
            control.next = 0
            label = links[label].next
        control.boundary = i + 1
        control.label = -1
    return INFEASIBLE
