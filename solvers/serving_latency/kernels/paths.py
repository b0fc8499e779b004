"""Shortest paths over batches that are contiguous in some order of the tasks. Costs are additive
over batches and steps.

The paths yield the optimum for mechanisms without overlap, bounds for conservative output lengths,
and the initial plans of the method `length-aware`.
"""

from specopt.solvers.kernels.kernel import helper, kernel
from specopt.solvers.serving_latency.kernels.stages import (
    INFINITY,
    INPUT,
    OUTPUT,
    STEPS,
    Data,  # noqa: F401  (named in a signature)
    all_stages,
    fits,
    is_linear,
)


@helper
def weighted(data, b, k, steps, draft_weight, verify_weight):
    """Return the weighted sum of a batch's draft times T^d and verify times T^v over all of its
    steps.
    """
    draft, verify = all_stages(data, b, k, int(steps))
    return draft_weight * draft + verify_weight * verify


@kernel(
    "void(i8, i8, Data, i8[::1], f8, f8, i8, f8[::1], i8[::1])",
    steps=lambda row, stop, data, *_: (stop - row) * stop * data.runtimes.shape[1],
)
def path_rows(row, stop, data, tasks, draft_weight, verify_weight, grid, best, start):
    """Compute shortest paths to the prefixes of row..stop-1 tasks, over batches that are contiguous
    in the order `tasks`.

    The cost of a batch is the weighted sum of its stage times over all of its steps. From size
    2^(grid + 1) upwards, not every batch size is tried, and the distance between the sizes that are
    tried grows with the size. The arrays `best` and `start` are modified in place. best[i] is the
    minimum cost for the prefix of i tasks (+inf if no batches fit). start[i] is the index in
    `tasks` at which the last batch of that prefix starts.
    """
    linear = is_linear(data)
    for i in range(row, stop):
        best[i] = INFINITY
        top = -1
        longest = steps = one = growth = 0.0
        due = 1
        for j in range(i - 1, -1, -1):
            k = tasks[j]
            if k > top or data.task[k, OUTPUT] > longest:
                top = max(top, k)
                longest = max(longest, data.task[k, OUTPUT])
                steps = max(steps, data.task[k, STEPS])
                if linear:  # costs are affine in the size
                    one = weighted(data, 1.0, top, steps, draft_weight, verify_weight)
                    growth = weighted(data, 2.0, top, steps, draft_weight, verify_weight) - one
            size = i - j
            b = float(size)
            if not fits(data, b, data.task[top, INPUT] + longest):
                break
            if size < due and j > 0:
                continue
            due = size + max(1, size >> grid)
            cost = one + growth * (b - 1.0)
            if not linear:
                cost = weighted(data, b, top, steps, draft_weight, verify_weight)
            if best[j] + cost < best[i]:
                best[i] = best[j] + cost
                start[i] = j
