"""Known output lengths: batches as columns of a linear program, their stage times, and the worst at dual prices."""

from specopt.solvers._kernels.kernel import helper, kernel
from specopt.solvers._kernels.serving_latency.stages import (
    INFINITY,
    INPUT,
    OUTPUT,
    OVERLAP,
    STEPS,
    fits,
    range_stages,
)  # fmt: skip

DRAFT_SUM, VERIFY_SUM, STEP_COUNT, DRAFT_FIRST, VERIFY_FIRST = range(5)  # rows of a batch's stage times
WEIGHT, FIRST_PRICE, LAST_PRICE = range(3)  # rows of roles
TOP, LONGEST, SIZE = range(3)  # columns of a found batch
MOST_COST, MOST_RATIO = range(2)  # entries of worst


@kernel(
    "void(const f8[:, ::1], const f8[::1], const f8[:, :, ::1], i8[::1], i8[::1], i8[::1], i8[::1], f8[:, :, ::1])",
)
def batch_stages(task, setting, runtimes, sizes, tops, last, ends, out):
    """Fill out[m] = (T^d, T^v, steps, T^d at the first step, T^v there) of batches, by range of steps.

    Range r are the steps ends[r]+1..ends[r+1]; batch m takes part up to step last[m]; the first two are sums.
    """
    for m in range(len(sizes)):
        b, k = float(sizes[m]), tops[m]
        for r in range(len(ends) - 1):
            n, count = ends[r] + 1, min(ends[r + 1], last[m]) - ends[r]
            for row in range(5):
                out[m, row, r] = 0.0
            if count >= 1:
                out[m, STEP_COUNT, r] = count
                out[m, DRAFT_SUM, r], out[m, VERIFY_SUM, r] = range_stages(task, setting, runtimes, b, k, n, count)
                out[m, DRAFT_FIRST, r], out[m, VERIFY_FIRST, r] = range_stages(task, setting, runtimes, b, k, n, 1)


@helper
def widest(task, setting, top):
    """Return how many tasks fit beside each other with the longest input and the output of task `top`."""
    size = 0
    while size <= top and fits(setting, float(size + 1), task[top, INPUT] + task[top, OUTPUT]):
        size += 1
    return size


@helper
def weighted_cost(task, setting, runtimes, b, top, n, count, weight):
    """Return weight T^d + (1 - weight) T^v of a batch over a range of steps; T^d + T^v without overlap."""
    d, v = range_stages(task, setting, runtimes, b, top, n, count)
    return weight * d + (1.0 - weight) * v if setting[OVERLAP] > 0.0 else d + v


@kernel(
    "i8(i8, i8, const f8[:, ::1], const f8[::1], const f8[:, :, ::1], i8[::1], i8[::1], f8[::1], f8[:, ::1], f8,"
    " f8[:, ::1], f8[:, ::1], i8[::1], f8[::1], i8[:, ::1])",
)
def price_batches(
    start, stop, task, setting, runtimes, ends, dear, price, roles, noticeable, base, gain, below, worst, found
):
    """Find, for each longest input top = start..stop-1, the batch of least reduced cost; return how many matter.

    Range r are the steps ends[r]+1..ends[r+1]. A batch of b tasks with longest input `top` and longest output that of
    task q costs, over its steps, weight[r] T^d + (1 - weight[r]) T^v (without overlap: T^d + T^v), less the prices of
    its tasks and, wherever that gains, first_price[r] - (1 - weight[r]) T^d or last_price[r] - weight[r] T^v per step,
    the stage times of the range's first step. It holds `top`, q and the dearest others that do not exceed them; `dear`
    are the tasks by falling price. Work space: base (K + 1, R + 1), the cost over the ranges before r for every size,
    gain (K + 1, R), what the roles gain per step, and below (K). Modified in place: worst, the least reduced cost per
    task met and the least ratio of cost to the price of the tasks; rows of found, for reduced costs below -noticeable.
    """
    K = len(task)
    R = len(ends) - 1
    linear = runtimes.shape[1] == 1  # then costs are affine in the size
    total = 0
    for top in range(start, stop):
        for size in range(1, widest(task, setting, top) + 1):
            b = float(size)
            base[size, 0] = 0.0
            for r in range(R):
                n, count, w = ends[r] + 1, ends[r + 1] - ends[r], roles[WEIGHT, r]
                gain[size, r] = 0.0
                if setting[OVERLAP] > 0.0:
                    d, v = range_stages(task, setting, runtimes, b, top, n, 1)
                    gain[size, r] = max(0.0, roles[FIRST_PRICE, r] - (1.0 - w) * d)
                    gain[size, r] += max(0.0, roles[LAST_PRICE, r] - w * v)
                cost = weighted_cost(task, setting, runtimes, b, top, n, count, w)
                base[size, r + 1] = base[size, r] + cost - gain[size, r] * count
        others = 0  # tasks with shorter inputs, dearest first
        for t in range(K):
            if dear[t] < top:
                below[others] = dear[t]
                others += 1
        least = 0.0
        least_q = least_b = -1
        for q in range(top + 1):
            if task[q, OUTPUT] < task[top, OUTPUT] or (task[q, OUTPUT] == task[top, OUTPUT] and q != top):
                continue
            r = 0  # the range in which the batch ends
            while ends[r + 1] < task[q, STEPS]:
                r += 1
            count = int(task[q, STEPS]) - ends[r]
            whole = count == ends[r + 1] - ends[r]
            tokens = task[top, INPUT] + task[q, OUTPUT]
            paid = price[top] if q == top else price[top] + price[q]
            b = 1 if q == top else 2
            if not fits(setting, float(b), tokens):
                continue
            tail = growth = 0.0  # the cost within the range in which the batch ends, for the size `known`
            known = 0
            for t in range(-1, others):  # first these two alone
                if t >= 0:
                    k = below[t]
                    if k == q or task[k, OUTPUT] > task[q, OUTPUT]:
                        continue
                    b += 1
                    if not fits(setting, float(b), tokens):
                        break
                    paid += price[k]
                if whole:
                    cost = base[b, r + 1]
                else:
                    if known == 0 or not linear or growth == 0.0:
                        cost = weighted_cost(
                            task, setting, runtimes, float(b), top, ends[r] + 1, count, roles[WEIGHT, r]
                        )
                        if known > 0:
                            growth = cost - tail
                        tail = cost
                        known = b
                    cost = base[b, r] + tail + growth * (b - known) - gain[b, r] * count
                rest = cost - paid
                worst[MOST_COST] = min(worst[MOST_COST], rest / b)
                if paid > 0.0:
                    worst[MOST_RATIO] = min(worst[MOST_RATIO], cost / paid)
                elif cost < 0.0:
                    worst[MOST_RATIO] = -INFINITY
                if rest < least:
                    least, least_q, least_b = rest, q, b
        if least < -noticeable:
            found[total, TOP], found[total, LONGEST], found[total, SIZE] = top, least_q, least_b
            total += 1
    return total
