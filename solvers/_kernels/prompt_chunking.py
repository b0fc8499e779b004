"""Prompt chunking (paper 4, event model): play a plan, equal and geometric chunks, chunks by a deadline, local search.

A plan is a list of boundaries 0 = b_0 < b_1 < ... < b_K = M, indices into `position`, the tokens before each place
where a chunk may end. `stage` holds g(mu + x) / P by the tokens x of a chunk. `cost` holds what the link and the
device take (see `COSTS`); `last` says whether the deep state of the last token alone comes back.
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

HALVINGS = 44
"""Of an interval of deadlines: down to a relative 1e-13."""

CLOSE = 2e-4
"""Gap to the lower bound from which on `search` is content with the best of its starts."""

KICKS = 8
"""Plans at random around the best one that `search` polishes in the end."""

_FLOATS = types.float64[::1]
_INTS = types.int64[::1]
_PROBLEM = (_INTS, _FLOATS, _FLOATS, types.int64, types.boolean)


@njit(types.float64(_INTS, types.int64, *_PROBLEM, _FLOATS), cache=True)
def play(bounds, chunks, position, stage, cost, P, last, free):
    """Return the time to first token of the plan bounds[0..chunks]; O(chunks P). free: scratch, shape (P,)."""
    for q in range(P):
        free[q] = 0.0
    up = 0.0
    down = 0.0
    before = 0
    for k in range(chunks):
        after = position[bounds[k + 1]]
        x = after - before
        before = after
        busy = stage[x]
        up = max(cost[6] * (k + 1) + cost[7] * after, up) + cost[2] + x * cost[0]
        f = max(up + cost[3] + cost[4], free[0]) + cost[5] + busy
        free[0] = f
        for q in range(1, P):
            f = max(f, free[q]) + busy
            free[q] = f
        down = max(f + cost[3], down)
        if not last:
            down += x * cost[1]
        elif k == chunks - 1:
            down += cost[1]
    return down + cost[8]


@njit(types.int64(types.int64, types.int64, types.int64, *_PROBLEM, _FLOATS, _INTS), cache=True)
def best_equal(largest, least, work, position, stage, cost, P, last, free, out):
    """Try equal chunks of `largest` cells and fewer, down to `least`; return the next size to try, the best in out[0].

    The last chunk takes the rest; the larger size wins a tie. work: about how many chunks to play before returning.
    """
    M = position.size - 1
    bounds = np.empty(M // max(least, 1) + 2, np.int64)
    best = math.inf
    found = largest
    size = largest
    while size >= least and work > 0:
        chunks = -(-M // size)
        for k in range(chunks):
            bounds[k] = k * size
        bounds[chunks] = M
        value = play(bounds, chunks, position, stage, cost, P, last, free)
        if value < best:
            best = value
            found = size
        work -= chunks
        size -= 1
    out[0] = found
    return size


@njit(types.int64(*_PROBLEM, types.int64, _INTS), cache=True)
def enumerate_plans(position, stage, cost, P, last, most, out):
    """Fill `out` with the best of all plans and return its number of chunks; O(2^M M P)."""
    M = position.size - 1
    free = np.empty(P)
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
        value = play(bounds, chunks, position, stage, cost, P, last, free)
        if value < best:
            best = value
            found = chunks
            for k in range(chunks + 1):
                out[k] = bounds[k]
    return found


@njit(types.void(types.int64, types.float64, types.int64, _INTS), cache=True)
def spread(chunks, ratio, M, bounds):
    """Fill bounds with sizes proportional to 1, ratio, ratio^2, ..., each boundary rounded, no chunk empty."""
    total = 0.0
    for k in range(chunks):
        total += ratio**k
    part = 0.0
    bounds[0] = 0
    for k in range(1, chunks):
        part += ratio ** (k - 1)
        at = int(M * part / total + 0.5)
        bounds[k] = min(max(at, bounds[k - 1] + 1), M - (chunks - k))
    bounds[chunks] = M


@njit(types.int64(types.int64, types.int64, *_PROBLEM, _FLOATS, _INTS), cache=True)
def best_geometric(fewest, most, position, stage, cost, P, last, free, out):
    """Fill `out` with the best geometric chunks and return their number: a search over the number and the ratio.

    For each number 17 ratios between 1/4 and 4 for two chunks (closer to 1 for more), then four rounds of finer
    steps around the best. The number goes on growing until four in a row have not helped.
    """
    M = position.size - 1
    trial = np.empty(most + 1, np.int64)
    found = math.inf
    number = 0
    since = 0
    for chunks in range(max(1, fewest), min(most, M) + 1):
        reach = math.log(64.0) / chunks
        centre = 0.0
        best = math.inf
        width = reach / 8
        rounds = 1 if chunks == 1 else 5
        for r in range(rounds):
            middle = centre
            for step in range(-8, 9):
                if (chunks == 1 or r > 0) and step % 4 == 0 and step != 0 and r > 0:
                    continue
                if chunks == 1 and step != 0:
                    continue
                log_ratio = middle + step * width
                spread(chunks, math.exp(log_ratio), M, trial)
                value = play(trial, chunks, position, stage, cost, P, last, free)
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
        if since >= 4:
            break
    return number


@njit(cache=True)
def done(i, j, k, first, queue, position, stage, cost, P, last):
    """Return the least time to first token of a plan whose k-th chunk runs from place i to j, by that chunk alone."""
    x = position[j] - position[i]
    up = max(first + k * cost[2] + position[j] * cost[0], k * cost[6] + cost[7] * position[j] + cost[2] + x * cost[0])
    end = max(up + cost[3] + cost[4], queue) + cost[5] + P * stage[x] + cost[3] + cost[8]
    return end + (cost[1] if last else (position[-1] - position[i]) * cost[1])


@njit(cache=True)
def relaxed(T, position, stage, cost, P, last, most, offset, slope):
    """Tell whether T is within reach when chunks meet in the cloud only as in `lower_bound`: False is a proof."""
    M = position.size - 1
    N = position[M]
    first = cost[6] + cost[7] * position[1]  # the device cannot have anything to send earlier
    ready = first + cost[2] + position[1] * cost[0] + cost[3] + cost[4]  # nor the cloud anything to do
    least = stage[position[1]]
    rest = stage[N - position[M - 1]] if last else 0.0  # the last chunk may be smaller than the grid
    if done(0, M, 1, first, 0.0, position, stage, cost, P, last) <= T:
        return True
    before = 0  # the furthest place after k - 2 chunks
    i = 0  # and after k - 1
    for k in range(1, most + 1):
        # may the k-th be the last? Places up to `before` were tried with fewer chunks
        for s in range(i, before, -1):
            queue = ready + (k - 1) * (cost[5] + offset) + slope * position[s]
            if done(s, M, k, first, queue, position, stage, cost, P, last) > T:
                break  # an earlier place makes it worse
            up = first + (k - 1) * cost[2] + position[s] * cost[0] + cost[3] + cost[4]
            x = N - position[s]
            end = up + 2 * cost[5] + least + P * stage[x] + cost[3] + cost[8] + cost[1] * (1 if last else x)
            if end <= T:
                return True
        queue = ready + (k - 1) * (cost[5] + offset) + slope * position[i] if k > 1 else 0.0
        low = i
        high = M
        while high - low > 1:
            j = low + (high - low) // 2
            if done(i, j, k, first, queue, position, stage, cost, P, last) + rest <= T:
                low = j
            else:
                high = j
        if low == i:
            return False
        before = i
        i = low
    return False


@njit(types.float64(*_PROBLEM, types.int64, types.float64, types.float64), cache=True)
def lower_bound(position, stage, cost, P, last, most, low, high):
    """Return a lower bound on the time to first token of every plan: the largest T found to be out of reach.

    low: a lower bound; high: the time of some plan.

    A plan whose k-th chunk runs from token s to t cannot be done before
        max(uploaded(k, s, t) + latency + wait, queue(k, s)) + wait + P stage[t - s] + latency + download of s..N,
    where uploaded is the larger of "first token computed, then k messages and t tokens up without a break" and "k
    chunks with t tokens computed, then this chunk up", and queue is "the first token there, then k - 1 chunks with s
    tokens on the first stage", a sum of stage[x] >= offset + slope x for some line with slope <= seconds down per
    token. For a fixed t all of this falls (or stays) as s grows, and it grows with t and k: by induction no plan that
    ends by T is further along after k chunks than the one that always takes the largest chunk that meets T. If that
    one gets stuck, or runs out of chunks, T is out of reach. (If the last token alone comes back, s..N is one token,
    and the slope is 0; a chunk that is not the last is followed by one more on the last stage.)

    The last chunk, from s <= that place to N, must also wait for the one before it: uploaded through s, then the
    least chunk and the last one through the first stage, the last one through the others and down. That does not
    fall with s, so all s are tried for which the other condition holds.

    Halvings of T, each O(chunks log M) and as many steps as the last chunk has places.
    """
    down = 0.0 if last else cost[1]
    best = low
    least = position[1]  # tokens of the smallest chunk that is not the last
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
            if relaxed(T, position, stage, cost, P, last, most, offset, slope):
                top = T
            else:
                best = T
    return best


@njit(cache=True)
def by_deadline(T, share, position, stage, cost, P, last, most, free, out):
    """Fill `out` with chunks that take `share` of the largest size with which T can still be met; return how many.

    The state of the device, the link and the stages is the plan's own; what is still to come counts at its least.
    Returns 0 if T is not met.
    """
    M = position.size - 1
    N = position[M]
    for q in range(P):
        free[q] = 0.0
    least = stage[min(position[1], N - position[M - 1])]
    up = 0.0
    i = 0
    out[0] = 0
    for k in range(1, most + 1):
        low = i
        high = M + 1
        j = M
        if k < most:
            while True:
                x = position[j] - position[i]
                busy = stage[x]
                sent = max(k * cost[6] + cost[7] * position[j], up) + cost[2] + x * cost[0]
                f = max(sent + cost[3] + cost[4], free[0]) + cost[5] + busy
                queue = f + cost[5] + P * least
                for q in range(1, P):
                    f = max(f, free[q]) + busy
                    queue = max(queue, f + (P - q) * least)
                left = (N - position[j]) * cost[1]
                if last:
                    end = f + cost[1] if j == M else queue + cost[1]
                else:
                    end = f + (N - position[i]) * cost[1]
                    if j < M:
                        end = max(end, queue + left)
                if j < M:
                    rest = sent + cost[2] + (N - position[j]) * cost[0] + cost[3] + cost[4] + cost[5] + P * least
                    end = max(end, rest + cost[1])
                if end + cost[3] + cost[8] <= T:
                    low = j
                else:
                    high = j
                if high - low <= 1:
                    break
                j = low + (high - low) // 2
            if low == i:
                return 0
            if low < M and share < 1.0:
                low = i + max(1, int((low - i) * share))
        else:
            low = M
        x = position[low] - position[i]
        busy = stage[x]
        up = max(k * cost[6] + cost[7] * position[low], up) + cost[2] + x * cost[0]
        f = max(up + cost[3] + cost[4], free[0]) + cost[5] + busy
        free[0] = f
        for q in range(1, P):
            f = max(f, free[q]) + busy
            free[q] = f
        out[k] = low
        i = low
        if i == M:
            return k
    return 0


@njit(cache=True)
def play_from(start, bounds, chunks, limit, save, position, stage, cost, P, last, free, states, work):
    """Return the time to first token of a plan whose first `start` chunks are those of `states`.

    Infinite as soon as the time is known not to be below `limit`. states, shape (chunks + 1, P + 2): the uplink, the
    downlink and the stages before each chunk; what comes after `start` is filled if `save`. work[0] falls by the
    stages that were played.
    """
    N = position[-1]
    up = states[start, 0]
    down = states[start, 1]
    for q in range(P):
        free[q] = states[start, 2 + q]
    before = position[bounds[start]]
    for k in range(start, chunks):
        after = position[bounds[k + 1]]
        x = after - before
        before = after
        busy = stage[x]
        up = max(cost[6] * (k + 1) + cost[7] * after, up) + cost[2] + x * cost[0]
        f = max(up + cost[3] + cost[4], free[0]) + cost[5] + busy
        free[0] = f
        for q in range(1, P):
            f = max(f, free[q]) + busy
            free[q] = f
        down = max(f + cost[3], down)
        if not last:
            down += x * cost[1]
            end = down + (N - after) * cost[1]
        else:
            if k == chunks - 1:
                down += cost[1]
            end = down
        if save:
            states[k + 1, 0] = up
            states[k + 1, 1] = down
            for q in range(P):
                states[k + 1, 2 + q] = free[q]
        elif end + cost[8] >= limit:
            work[0] -= (k + 1 - start) * (P + 8)
            return math.inf
    work[0] -= (chunks - start) * (P + 8)
    return down + cost[8]


@njit(cache=True)
def polish(bounds, chunks, wide, position, stage, cost, P, last, most, free, states, trial, work):
    """Improve a plan in place by moving, merging and splitting; return the number of chunks and the value.

    A move takes some cells from one chunk and gives them to another: to any if `wide`, else to a neighbour, or from
    or to the first or the last chunk. Step sizes halve once no move helps. work[0]: the most stages to play.
    """
    states[0] = 0.0
    value = play_from(0, bounds, chunks, math.inf, True, position, stage, cost, P, last, free, states, work)
    delta = 1
    for k in range(chunks):
        delta = max(delta, (bounds[k + 1] - bounds[k]) // 4)
    while work[0] > 0:
        improved = False
        for gap in range(1, chunks):
            for a in range(1, chunks - gap + 1):  # boundaries a .. b move together
                b = a + gap - 1
                if not wide and gap > 1 and a > 1 and b < chunks - 1:
                    continue
                for sign in (-1, 1):
                    while work[0] > 0:
                        if sign < 0 and bounds[a] - delta <= bounds[a - 1]:
                            break
                        if sign > 0 and bounds[b] + delta >= bounds[b + 1]:
                            break
                        for k in range(a, b + 1):
                            bounds[k] += sign * delta
                        new = play_from(
                            a - 1, bounds, chunks, value, False, position, stage, cost, P, last, free, states, work
                        )
                        if new < value:
                            improved = True
                            value = play_from(
                                a - 1, bounds, chunks, value, True, position, stage, cost, P, last, free, states, work
                            )
                            continue
                        for k in range(a, b + 1):
                            bounds[k] -= sign * delta
                        break
        j = 1
        while j < chunks and work[0] > 0:  # merge two neighbours
            for k in range(chunks):
                trial[k] = bounds[k] if k < j else bounds[k + 1]
            new = play_from(j - 1, trial, chunks - 1, value, False, position, stage, cost, P, last, free, states, work)
            if new < value:
                improved = True
                chunks -= 1
                for k in range(j, chunks + 1):
                    bounds[k] = trial[k]
                value = play_from(
                    j - 1, bounds, chunks, value, True, position, stage, cost, P, last, free, states, work
                )
            j += 1
        j = 0
        while j < chunks and chunks < most and work[0] > 0:  # split one in three ways
            width = bounds[j + 1] - bounds[j]
            for part in range(1, 4):
                cut = bounds[j] + (width * part) // 4
                if cut <= bounds[j]:
                    continue
                for k in range(chunks + 1):
                    trial[k if k <= j else k + 1] = bounds[k]
                trial[j + 1] = cut
                new = play_from(j, trial, chunks + 1, value, False, position, stage, cost, P, last, free, states, work)
                if new < value:
                    improved = True
                    chunks += 1
                    for k in range(j + 1, chunks + 1):
                        bounds[k] = trial[k]
                    value = play_from(
                        j, bounds, chunks, value, True, position, stage, cost, P, last, free, states, work
                    )
                    break
            j += 1
        if not improved:
            if delta == 1:
                break
            delta = max(1, delta // 2)
    return chunks, value


@njit(cache=True)
def tent(chunks, peak, growth, ratio, M, bounds):
    """Fill bounds with sizes that grow by a factor up to the chunk `peak` and follow a ratio from there."""
    total = 0.0
    for k in range(chunks):
        total += growth ** (k - peak) if k < peak else ratio ** (k - peak)
    part = 0.0
    bounds[0] = 0
    for k in range(1, chunks):
        part += growth ** (k - 1 - peak) if k - 1 < peak else ratio ** (k - 1 - peak)
        at = int(M * part / total + 0.5)
        bounds[k] = min(max(at, bounds[k - 1] + 1), M - (chunks - k))
    bounds[chunks] = M


@njit(cache=True)
def neighbour(bounds, chunks, move, trial):
    """Fill `trial` with a plan of one chunk less (merge the move-th and the next) or more (halve one); its chunks.

    Moves 0 .. chunks - 2 merge, the next `chunks` halve. Returns 0 if the chunk cannot be halved.
    """
    if move < chunks - 1:
        for k in range(chunks):
            trial[k] = bounds[k] if k <= move else bounds[k + 1]
        return chunks - 1
    j = move - (chunks - 1)
    if bounds[j + 1] - bounds[j] < 2:
        return 0
    for k in range(chunks + 1):
        trial[k if k <= j else k + 1] = bounds[k]
    trial[j + 1] = bounds[j] + (bounds[j + 1] - bounds[j]) // 2
    return chunks + 1


@njit(cache=True)
def kick(bounds, chunks, limit, seed, trial):
    """Fill `trial` with the chunks of a plan, each times a factor between 1/2 and 2; return how many, and a new seed.

    The factors come from a linear congruential generator. About half of the plans have a chunk less (two neighbours
    are merged) or more (one is halved).
    """
    M = bounds[chunks]
    a, c = np.uint64(6364136223846793005), np.uint64(1442695040888963407)
    for k in range(chunks + 1):
        trial[k] = bounds[k]
    seed = seed * a + c
    draw = np.int64(seed >> np.uint64(33))
    kind = draw % 4
    at = (draw // 4) % chunks
    count = chunks
    if kind == 0 and chunks > 2:
        count = neighbour(bounds, chunks, at % (chunks - 1), trial)
    elif kind == 1 and chunks < limit and bounds[at + 1] - bounds[at] > 1:
        count = neighbour(bounds, chunks, chunks - 1 + at, trial)
    sizes = np.empty(count)
    for k in range(count):
        seed = seed * a + c
        sizes[k] = (trial[k + 1] - trial[k]) * 4.0 ** (np.float64(seed >> np.uint64(11)) * 2.0**-53 - 0.5)
    total = sizes.sum()
    part = 0.0
    for k in range(1, count):
        part += sizes[k - 1]
        trial[k] = min(max(int(M * part / total + 0.5), trial[k - 1] + 1), M - (count - k))
    trial[count] = M
    return count, seed


@njit(types.int64(*_PROBLEM, types.int64, types.float64, types.int64, _INTS), cache=True)
def search(position, stage, cost, P, last, most, bound, effort, out):
    """Fill `out`, shape (M + 2,), with the best plan of a short search and return its number of chunks.

    Starts: the best geometric chunks, chunks by the earliest deadline that they meet (halving between `bound`, a
    lower bound, and the best time) at several shares of the largest size, and chunks that grow to the second or third
    one and shrink from there. All of them are polished. Then the best one is left by one merge or one cut and
    polished again, as long as that helps and the bound is not close, and in the end so are a few plans at random around
    it; effort: the most stages to play.
    """
    M = position.size - 1
    free = np.empty(P)
    current = np.empty(M + 2, np.int64)
    trial = np.empty(M + 2, np.int64)
    limit = min(most, M)
    states = np.empty((limit + 2, P + 2))
    work = np.zeros(1, np.int64)
    left = effort
    value = math.inf
    chunks = 0
    enough = bound * (1.0 + 1e-10)
    starts = 8
    ratio = 0.6 if last else min(max(cost[1] / max(cost[0], 1e-300), 0.3), 0.95)
    for s in range(starts):
        if s == 0:
            count = best_geometric(1, min(limit, 32), position, stage, cost, P, last, free, current)
        elif s >= 6:  # a start that grows: chunks fewer, as many, or more than the best ones
            count = 0
            least = math.inf
            for length in range(max(1, chunks - 1), min(limit, chunks + 1) + 1):
                for growth in range(2, 7, 2):
                    tent(length, s - 5, float(growth), ratio, M, trial)
                    new = play(trial, length, position, stage, cost, P, last, free)
                    left -= length * (P + 8)
                    if new < least:
                        least = new
                        count = length
                        for k in range(length + 1):
                            current[k] = trial[k]
        else:
            share = 1.0 - 0.12 * (s - 1)
            low = bound
            high = value
            count = 0
            for _ in range(20):
                T = low + 0.5 * (high - low)
                if not low < T < high:
                    break
                found = by_deadline(T, share, position, stage, cost, P, last, limit, free, trial)
                left -= limit if found == 0 and limit < 16 else 16
                if found > 0:
                    new = play(trial, found, position, stage, cost, P, last, free)
                    left -= found * (P + 8)
                    if new <= T * (1.0 + 1e-12):
                        high = T
                        count = found
                        for k in range(found + 1):
                            current[k] = trial[k]
                        continue
                low = T
            if count == 0:
                continue
        work[0] = effort // 12
        left -= work[0]
        count, new = polish(current, count, False, position, stage, cost, P, last, limit, free, states, trial, work)
        left += work[0]
        if new < value:
            value = new
            chunks = count
            for k in range(count + 1):
                out[k] = current[k]
        if value <= enough:
            return chunks
    move = -1
    tried = 0
    enough = bound * (1.0 + CLOSE)
    while left > 0 and tried < 2 * chunks and value > enough:
        if move < 0:  # the best plan itself, by all moves
            count = chunks
            for k in range(count + 1):
                current[k] = out[k]
        else:
            count = neighbour(out, chunks, move, current)
        wide = move < 0
        tried += 1
        move = (move + 1) % (2 * chunks - 1)
        if count == 0 or count > limit:
            continue
        work[0] = left // 3 if wide else left // 6
        left -= max(1, work[0])
        count, new = polish(current, count, wide, position, stage, cost, P, last, limit, free, states, trial, work)
        left += work[0]
        if new < value * (1.0 - 1e-12):
            value = new
            chunks = count
            for k in range(count + 1):
                out[k] = current[k]
            move = move % (2 * chunks - 1)
            tried = 0
    seed = np.uint64(1)
    for _ in range(KICKS):
        if left <= 0 or value <= enough or chunks == 1:
            break
        count, seed = kick(out, chunks, limit, np.uint64(seed), current)
        work[0] = left // 6
        left -= max(1, work[0])
        count, new = polish(current, count, False, position, stage, cost, P, last, limit, free, states, trial, work)
        left += work[0]
        if new < value * (1.0 - 1e-12):
            value = new
            chunks = count
            for k in range(count + 1):
                out[k] = current[k]
    return chunks
