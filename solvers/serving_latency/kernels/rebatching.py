"""Bounds on ranges of decoding steps with the tasks batched again in each."""

from specopt.solvers.kernels.kernel import helper, kernel, record
from specopt.solvers.serving_latency.kernels.plans import (
    D1,
    LAST,
    SIZE,
    TOP,
    V1,
    decode_seconds,
    fill,
    prefill_seconds,
)
from specopt.solvers.serving_latency.kernels.stages import (
    DRAFT,
    HEIGHT,
    INFINITY,
    INPUT,
    LENGTH,
    OUTPUT,
    OVERLAP,
    STEPS,
    VERIFY,
    fits,
    range_stages,
)

# entries of a search for the weight between the stages: the weight, the best value met and its
# weight, the interval that holds the best weight, then whether a line is known on either side and
# what all drafting exceeds all verification by there
WEIGHT, VALUE, VALUE_WEIGHT, LOW, HIGH, LOW_KNOWN, HIGH_KNOWN, LOW_EXCESS, HIGH_EXCESS = range(9)
LOW_VERIFY, HIGH_VERIFY = 9, 10
SEARCH_ENTRIES = 11
SEARCHES = 6  # weights tried for a range

Workspace = record(  # work space for K tasks
    "Workspace",
    places="i8[:, ::1]",  # (2, K)
    lines="f8[:, ::1]",  # (3, K)
    f="f8[:, ::1]",  # (K + 1, 4)
    choice="i8[:, ::1]",  # (K + 1, 4)
    batches="f8[:, ::1]",  # (K, BATCH_COLUMNS)
)


@helper
def active_tasks(task, by_output, end, active, least):
    """List the tasks that take part in step `end`, and their output lengths in rising order; return
    how many.
    """
    A = 0
    for k in range(len(task)):
        if task[k, STEPS] >= end:
            active[A] = k
            A += 1
    count = 0
    for k in by_output:
        if task[k, STEPS] >= end:
            least[count] = task[k, OUTPUT]
            count += 1
    return A


@helper
def shortest_path(task, setting, runtimes, strict, active, least, A, n, count, mix, f, choice):
    """Run the shortest path over contiguous batches of the active tasks for one range of steps.

    With overlap a batch costs mix T^d + (1 - mix) T^v; one batch is the first and adds (1 - mix)
    T^d, one the last and adds mix T^v. Without, a batch costs T^d + T^v. `strict`: a batch must fit
    with its own longest output, else with the least[b-1] that any b tasks have at least. Modified
    in place: f[i, s] and choice[i, s] = 4 b + the state before, s = 1 (first taken) + 2 (last
    taken). Returns the cost of all tasks; `walk` has no path where it is infinite, as a task fits
    no batch.
    """
    linear = runtimes.shape[1] == 1
    overlap = setting[OVERLAP] > 0.0
    dh = count * setting[LENGTH] * runtimes[DRAFT, 0, HEIGHT]
    vh = count * runtimes[VERIFY, 0, HEIGHT]
    f[0, 0] = 0.0
    f[0, 1] = f[0, 2] = f[0, 3] = INFINITY
    for e in range(1, A + 1):
        k = active[e - 1]
        for s in range(4):
            f[e, s] = INFINITY
        one_d, one_v = range_stages(task, setting, runtimes, 1.0, k, n, count)
        longest = 0.0
        for size in range(1, e + 1):
            b = float(size)
            longest = max(longest, task[active[e - size], OUTPUT]) if strict else least[size - 1]
            if not fits(setting, b, task[k, INPUT] + longest):
                break
            if linear:
                d, v = b * (one_d - dh) + dh, b * (one_v - vh) + vh
            else:
                d, v = range_stages(task, setting, runtimes, b, k, n, count)
            j = e - size
            if not overlap:
                if f[j, 0] + d + v < f[e, 0]:
                    f[e, 0] = f[j, 0] + d + v
                    choice[e, 0] = 4 * size
                continue
            cost = mix * d + (1.0 - mix) * v
            for taken in range(4):
                role = cost
                if taken & 1:
                    role += (1.0 - mix) * d
                if taken & 2:
                    role += mix * v
                for s in range(4):
                    if s & taken == 0 and f[j, s] + role < f[e, s | taken]:
                        f[e, s | taken] = f[j, s] + role
                        choice[e, s | taken] = 4 * size + s
    return f[A, 3 if overlap else 0]


@helper
def walk(task, setting, runtimes, active, A, n, count, choice, batches):
    """Write the batches of the shortest path; return how many and both of its stage sums, first and
    last included.
    """
    e, s = A, 3 if setting[OVERLAP] > 0.0 else 0
    draft = verify = 0.0
    M = 0
    while e > 0:
        size, state = choice[e, s] >> 2, choice[e, s] & 3
        d, v = range_stages(task, setting, runtimes, float(size), active[e - 1], n, count)
        draft += d
        verify += v
        if (s & 1) > (state & 1):
            verify += d
        if (s & 2) > (state & 2):
            draft += v
        batches[M, SIZE], batches[M, TOP], batches[M, LAST] = size, active[e - 1], n + count - 1
        batches[M, D1], batches[M, V1] = d, v
        M += 1
        e -= size
        s = state
    return M, draft, verify


@helper
def sort_by_johnson(batches, M, order):
    """Order batches by Johnson's rule: those that draft faster, shortest draft first, then by
    falling verify time.
    """
    for m in range(M):
        d, v = batches[m, D1], batches[m, V1]
        p = m
        while p > 0:
            other_d, other_v = batches[order[p - 1], D1], batches[order[p - 1], V1]
            if min(other_d, v) <= min(d, other_v):  # the other one may stay in front
                break
            order[p] = order[p - 1]
            p -= 1
        order[p] = m


@helper
def execute(task, setting, runtimes, batches, M, n, order, lines):
    """Return the latency of a range of steps with these batches in the order of Johnson's rule."""
    if setting[OVERLAP] == 0.0:
        total = 0.0
        for m in range(M):
            total += batches[m, D1] + batches[m, V1]
        return total
    sort_by_johnson(batches, M, order)
    if n == 1:
        return prefill_seconds(batches, order, M)
    for m in range(M):
        fill(task, setting, runtimes, batches, m)
    return decode_seconds(task, setting, runtimes, batches, order, M, n, lines)


@helper
def begin_search(search, weight):
    """Begin a search for the weight that raises a range's bound most."""
    for k in range(len(search)):
        search[k] = 0.0
    search[WEIGHT], search[HIGH] = weight, 1.0


@helper
def learn(search, value, draft, verify):
    """Take in the value and the stage sums at the search's weight, and choose the next; tell
    whether there is one.
    """
    weight = search[WEIGHT]
    if value > search[VALUE]:
        search[VALUE], search[VALUE_WEIGHT] = value, weight
    if abs(draft - verify) <= 1e-3 * value:
        return False
    if draft > verify:  # a larger weight of drafting gives more
        if weight >= 1.0:
            return False
        search[LOW], search[LOW_KNOWN], search[LOW_EXCESS], search[LOW_VERIFY] = (
            weight,
            1.0,
            draft - verify,
            verify,
        )
    else:
        if weight <= 0.0:
            return False
        search[HIGH], search[HIGH_KNOWN], search[HIGH_EXCESS], search[HIGH_VERIFY] = (
            weight,
            1.0,
            draft - verify,
            verify,
        )
    if search[LOW_KNOWN] > 0.0 and search[HIGH_KNOWN] > 0.0:  # where the two paths cost the same
        weight = (search[HIGH_VERIFY] - search[LOW_VERIFY]) / (
            search[LOW_EXCESS] - search[HIGH_EXCESS]
        )
        weight = min(max(weight, search[LOW]), search[HIGH])
    elif search[LOW_KNOWN] > 0.0:
        weight = weight + 0.1 if weight <= 0.8 else 1.0
    else:
        weight = weight - 0.1 if weight >= 0.2 else 0.0
    search[WEIGHT] = weight
    return True


@kernel(
    "void(i8, i8, const f8[:, ::1], const f8[::1], const f8[:, :, ::1], i8[::1], i8[::1],"
    " Workspace, f8[::1], f8[::1])",
)
def rebatching_ranges(first, stop, task, setting, runtimes, ends, by_output, room, search, seconds):
    """Bound the ranges r = first..stop-1 of steps, with tasks batched again in each.

    Range r are the steps ends[r]+1..ends[r+1]; its tasks are those that take part in all of them.
    The weight between the stages is the one that raises the bound most; search[VALUE_WEIGHT] is
    where its search starts. Modified in place: search and seconds[r].
    """
    places, lines, f, choice, batches = room
    active = places[0]
    for r in range(first, stop):
        n, count = ends[r] + 1, ends[r + 1] - ends[r]
        A = active_tasks(task, by_output, ends[r + 1], active, lines[2])
        begin_search(search, search[VALUE_WEIGHT])
        for _ in range(SEARCHES):
            mix = search[WEIGHT]
            cost = shortest_path(
                task, setting, runtimes, False, active, lines[2], A, n, count, mix, f, choice
            )
            if cost == INFINITY:
                search[VALUE] = cost
                break
            _, draft, verify = walk(task, setting, runtimes, active, A, n, count, choice, batches)
            if not learn(search, cost, draft, verify) or setting[OVERLAP] == 0.0:
                break
        seconds[r] = search[VALUE]
