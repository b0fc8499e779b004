"""Shortest paths over contiguous batches in an order of the tasks, with costs that are additive
over batches and steps.

These paths yield the optimum of `exact` without overlap, bounds for conservative output lengths,
and the initial plans of `length-aware`.
"""

from specopt.solvers.kernels.kernel import kernel
from specopt.solvers.serving_latency.kernels.stages import (
    DRAFT,
    HEIGHT,
    INFINITY,
    INPUT,
    LENGTH,
    OUTPUT,
    STEPS,
    VERIFY,
    Data,  # noqa: F401  (named in a signature)
    all_stages,
    fits,
    is_linear,
)


@kernel(
    "void(i8, i8, Data, f8, f8, f8[::1], i8[::1])",
    steps=lambda row, stop, data, *_: (stop - row) * stop * data.runtimes.shape[1],
)
def additive_rows(row, stop, data, draft_weight, verify_weight, best, boundary):
    """Run rows of the shortest path over batches contiguous in sorted order, for equal output
    lengths.

    A batch costs draft_weight sum_n T^d + verify_weight sum_n T^v. Modified in place: best[i] (+inf
    if no batches fit) and boundary[i], the start j >= 1 of the last batch of prefix i.
    """
    linear = is_linear(data)
    for i in range(row, stop):
        k, steps = i - 1, int(data.task[i - 1, STEPS])
        tokens = data.task[k, INPUT] + data.task[k, OUTPUT]
        best[i] = INFINITY
        boundary[i] = 0
        # with one-piece runtimes, a batch of b costs the overheads plus b times the rest of a batch
        # of one
        draft, verify = all_stages(data, 1.0, k, steps)
        one = draft_weight * draft + verify_weight * verify
        fixed = steps * (
            draft_weight * data.setting[LENGTH] * data.runtimes[DRAFT, 0, HEIGHT]
            + verify_weight * data.runtimes[VERIFY, 0, HEIGHT]
        )
        for j in range(i, 0, -1):
            b = float(i - j + 1)
            if not fits(data, b, tokens):
                break
            cost = fixed + b * (one - fixed)
            if not linear:
                draft, verify = all_stages(data, b, k, steps)
                cost = draft_weight * draft + verify_weight * verify
            if best[j - 1] + cost < best[i]:
                best[i] = best[j - 1] + cost
                boundary[i] = j


@kernel(
    "void(i8, i8, Data, i8[::1], f8, f8, f8[::1], i8[::1])",
)
def order_rows(row, stop, data, tasks, draft_weight, verify_weight, best, start):
    """Run rows of the shortest path over batches that are contiguous in the order `tasks`.

    A batch costs its weighted stage times over all its steps. Sizes above 128 are tried on a grid
    that widens with the size. Modified in place: best[i] and start[i], the first place of the last
    batch of the prefix of i tasks.
    """
    for i in range(row, stop):
        best[i] = INFINITY
        top = -1
        longest = steps = 0.0
        due = 1
        for j in range(i - 1, -1, -1):
            k = tasks[j]
            top = max(top, k)
            longest = max(longest, data.task[k, OUTPUT])
            steps = max(steps, data.task[k, STEPS])
            size = i - j
            b = float(size)
            if not fits(data, b, data.task[top, INPUT] + longest):
                break
            if size < due and j > 0:
                continue
            due = size + max(1, size >> 7)
            draft, verify = all_stages(data, b, top, int(steps))
            cost = best[j] + draft_weight * draft + verify_weight * verify
            if cost < best[i]:
                best[i] = cost
                start[i] = j
