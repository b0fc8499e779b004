"""Pricing of batches, which are the columns of a linear program for known output lengths.

The kernels compute the stage times of batches and find the batch with the lowest reduced cost at
dual prices.
"""

import numpy as np

from specopt.solvers.kernels.kernel import helper, kernel, record
from specopt.solvers.serving_latency.kernels.stages import (
    INFINITY,
    INPUT,
    OUTPUT,
    STEPS,
    Data,  # noqa: F401  (named in a signature)
    fits,
    is_linear,
    overlaps,
    range_stages,
)

DRAFT_SUM, VERIFY_SUM, DRAFT_FIRST, VERIFY_FIRST = range(4)  # rows of a batch's stage times
WEIGHT, FIRST_PRICE, LAST_PRICE = range(3)  # rows of roles
INPUT_CLASS, OUTPUT_CLASS, SIZE = range(3)  # columns of an array of found batches
# rows of classes: a task with the shortest length, end of the class, smallest place in the other
# order
LEAST, END, OTHER = range(3)
HEAD = 0  # head of a linked list; task k is its entry k + 1
MAX_COST, MAX_RATIO = range(2)  # entries of worst
EITHER, BOTH = range(2)  # gain of the better role per step, and additional gain of the other role

Classes = record(
    "Classes", ends="i8[::1]", inputs="i8[:, ::1]", outputs="i8[:, ::1]", by_output="i8[::1]"
)
"""Record with the ends of the ranges of steps, the classes of similar input lengths, the classes of
similar output lengths, and the order of the tasks by output length.

The rows of a class array are as in `LEAST`. The input classes partition the sorted positions of the
tasks, and the output classes partition `by_output`.
"""

Prices = record("Prices", dear="i8[::1]", task="f8[::1]", roles="f8[:, ::1]", noticeable="f8")
"""Record with dual prices: tasks in order of decreasing price, the price of every task, the prices
of the roles in every range, and the magnitude of rounding errors.
"""


@kernel(
    "void(Data, i8[::1], i8[::1], i8[::1], i8[::1], f8[:, :, ::1])",
)
def batch_stages(data, sizes, tops, last, ends, out):
    """Compute the stage times of each batch m in each range r of steps, and write them to out[m].

    The first two rows of out[m] contain the draft times T^d and the verify times T^v, summed over
    each range. The other two rows contain T^d and T^v at the first step of each range. Range r
    contains the steps ends[r]+1..ends[r+1], and batch m takes part up to step last[m].
    """
    for m in range(len(sizes)):
        b, k = float(sizes[m]), tops[m]
        for r in range(len(ends) - 1):
            n, count = ends[r] + 1, min(ends[r + 1], last[m]) - ends[r]
            out[m, DRAFT_SUM, r] = out[m, VERIFY_SUM, r] = 0.0
            if count >= 1:
                out[m, DRAFT_SUM, r], out[m, VERIFY_SUM, r] = range_stages(data, b, k, n, count)
            out[m, DRAFT_FIRST, r], out[m, VERIFY_FIRST, r] = range_stages(data, b, k, n, 1)


@helper
def weighted_cost(data, b, top, n, count, weight):
    """Return weight T^d + (1 - weight) T^v for a batch, summed over a range of steps. T^d and T^v
    are the draft time and the verify time.

    Without overlap, return the sum of T^d + T^v.
    """
    d, v = range_stages(data, b, top, n, count)
    return weight * d + (1.0 - weight) * v if overlaps(data) else d + v


@helper
def role_gain(ends, gain, size, r, most, alone):
    """Return how much a batch earns from its roles as the first or the last batch in range r.

    The batch takes part up to step `most` and is alone after step `alone`.
    """
    stop = min(most, ends[r + 1])
    active, sole = max(0, stop - ends[r]), max(0, stop - max(ends[r], alone))
    return active * gain[EITHER, size, r] + sole * gain[BOTH, size, r]


@helper
def gains_alone(ends, gain, size, most):
    """Return whether a batch that takes part up to step `most` would earn more at some step if it
    were alone there.
    """
    found = False
    for r in range(len(ends) - 1):
        found = found or (gain[BOTH, size, r] > 0.0 and ends[r] < most)
    return found


@helper
def fill_base(data, ends, roles, top, size, alone, base, gain):
    """Fill the rows of `base` and `gain` for one batch size, as described in `price_batches`."""
    b = float(size)
    base[size, 0] = 0.0
    for r in range(len(ends) - 1):
        n, count, w = ends[r] + 1, ends[r + 1] - ends[r], roles[WEIGHT, r]
        gain[EITHER, size, r] = gain[BOTH, size, r] = 0.0
        if overlaps(data):
            d, v = range_stages(data, b, top, n, 1)
            first, last = (
                max(0.0, roles[FIRST_PRICE, r] - (1.0 - w) * d),
                max(0.0, roles[LAST_PRICE, r] - w * v),
            )
            gain[EITHER, size, r], gain[BOTH, size, r] = max(first, last), min(first, last)
        cost = weighted_cost(data, b, top, n, count, w)
        base[size, r + 1] = (
            base[size, r] + cost - role_gain(ends, gain, size, r, ends[r + 1], alone)
        )


@kernel("i8(i8, i8, Data, Classes, Prices, f8[::1], i8[:, ::1])")
def price_batches(start, stop, data, classes, prices, worst, found):
    """For each input class start..stop-1, find the batch with the lowest reduced cost whose longest
    input is in that class.

    Return the number of batches found with a reduced cost below -noticeable. T^d and T^v denote the
    draft time and the verify time.

    Range r contains the steps ends[r]+1..ends[r+1]. The cost of a batch is the sum of weight[r] T^d
    + (1 - weight[r]) T^v over its steps or, without overlap, the sum of T^d + T^v. The stage times
    are those of a batch with the shortest lengths of the classes. The reduced cost is this cost
    minus the prices of the batch's tasks and its earnings as the first or the last batch. As the
    first batch, it earns first_price[r] - (1 - weight[r]) T^d per step. As the last batch, it earns
    last_price[r] - weight[r] T^v per step. Negative amounts are replaced by zero, and the stage
    times are those of the range's first step. The batch earns the larger amount at all steps that
    its output class allows. If a step is reached by no more tasks than the batch contains, the
    batch may be alone at that step and earns both amounts.

    A batch contains the highest-priced tasks that exceed neither class. Stage times are convex in
    the size, so a task whose price is below the cost of adding a second task is not added, unless
    the batch earns more by being alone. The arrays `worst` and `found` are modified in place.
    `worst` contains the minimum reduced cost per task, and the minimum ratio of a batch's cost to
    the price of its tasks, at most 1. Rows of `found` contain the batches with reduced costs below
    -noticeable.
    """
    ends, inputs, outputs, by_output = classes
    price, roles = prices.task, prices.roles
    K, R = len(by_output), len(ends) - 1
    # cost over the ranges before r, by size (row 0: of the second task); gain of the roles per
    # step, with rows as `EITHER`
    base, gain = np.empty((K + 1, R + 1)), np.empty((2, K + 1, R))
    base[0, 0] = 0.0
    after, before = np.empty(K + 1, np.int64), np.empty(K + 1, np.int64)
    linear = is_linear(data)  # if so, costs are affine in the size
    total = 0
    for c in range(start, stop):
        top = inputs[LEAST, c]
        filled = 0
        for r in range(R):
            n, count, w = ends[r] + 1, ends[r + 1] - ends[r], roles[WEIGHT, r]
            base[0, r + 1] = base[0, r] + weighted_cost(data, 2.0, top, n, count, w)
            base[0, r + 1] -= weighted_cost(data, 1.0, top, n, count, w)
        last = HEAD  # link the tasks with inputs in the class or shorter, most expensive first
        for k in prices.dear:
            if k < inputs[END, c]:
                after[last], before[k + 1] = k + 1, last
                last = k + 1
        after[last] = -1
        least = 0.0
        least_q = least_b = -1
        remaining = K
        for q in range(outputs.shape[1] - 1, -1, -1):
            if inputs[OTHER, c] >= outputs[END, q]:
                break  # no task of this class has so short an output
            while remaining > outputs[END, q]:  # unlink tasks with longer outputs
                remaining -= 1
                k = by_output[remaining]
                if k < inputs[END, c]:
                    after[before[k + 1]] = after[k + 1]
                    if after[k + 1] >= 0:
                        before[after[k + 1]] = before[k + 1]
            if outputs[OTHER, q] >= inputs[END, c]:
                continue
            longest = outputs[LEAST, q]
            steps = int(data.task[longest, STEPS])
            most = int(data.task[by_output[outputs[END, q] - 1], STEPS])
            tokens = data.task[top, INPUT] + data.task[longest, OUTPUT]
            r = 0  # the range in which the batch ends
            while ends[r + 1] < steps:
                r += 1
            n, count, w = ends[r] + 1, steps - ends[r], roles[WEIGHT, r]
            one = weighted_cost(data, 1.0, top, n, count, w)
            growth = weighted_cost(data, 2.0, top, n, count, w) - one
            more = base[0, r] + growth
            paid = 0.0
            size = 0
            at = after[HEAD]
            while at >= 0:
                size += 1
                b = float(size)
                if not fits(data, b, tokens):
                    break
                dear = size == 1 or price[at - 1] >= more * (1.0 - 1e-9)
                if not dear and not gains_alone(ends, gain, size - 1, most):
                    break
                paid += price[at - 1]
                alone = int(data.task[by_output[K - 1 - size], STEPS]) if size < K else 0
                if size > filled:
                    fill_base(data, ends, roles, top, size, alone, base, gain)
                    filled = size
                tail = one + growth * (b - 1.0)
                if not linear:
                    tail = weighted_cost(data, b, top, n, count, w)
                cost = base[size, r] + tail
                for p in range(r, R):
                    cost -= role_gain(ends, gain, size, p, most, alone)
                rest = cost - paid
                worst[MAX_COST] = min(worst[MAX_COST], rest / b)
                if paid > cost:
                    worst[MAX_RATIO] = min(
                        worst[MAX_RATIO], cost / paid if cost >= 0.0 and paid > 0.0 else -INFINITY
                    )
                if rest < least:
                    least, least_q, least_b = rest, q, size
                at = after[at]
        if least < -prices.noticeable:
            found[total, INPUT_CLASS], found[total, OUTPUT_CLASS], found[total, SIZE] = (
                c,
                least_q,
                least_b,
            )
            total += 1
    return total
