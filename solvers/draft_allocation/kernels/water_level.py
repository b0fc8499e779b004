"""Kernels that allocate draft tokens (paper 5, Eq. 5) by water-filling. Within the caps and the
budget, all tokens whose marginal value exceeds a level, called the water level, are allocated.

Token n = 1, 2, ... of client i adds its marginal value w_i a_i^n, called a marginal below, to the
objective. The marginals of a client decrease, so the C largest marginals of all clients, where C is
the budget, form an optimal plan. Marginals are ordered by the floating-point product of w_i (scaled
by a power of two) and pow(a_i, n), and ties go to the client with the lower index. A heap that
allocates one token at a time yields the same plan, bit for bit.

The number of marginals above a level is approximated by a continuous count, which is piecewise
linear in the logarithm of the level. Newton's method finds a level that about C marginals exceed.
Logarithms serve only as estimates: every count that rounding could change is decided by comparing
products. The marginals above a level come first in the order of marginals. A heap therefore adds
the few missing tokens, or removes the few excess tokens, and ends with exactly C tokens. The
running time does not grow with the budget.
"""

import math

import numpy as np

from specopt.solvers.kernels.heap import before, heapify, place, pop, push
from specopt.solvers.kernels.kernel import helper, kernel

SMALLEST = 2.2250738585072014e-308
"""Threshold, relative to the largest weight (within a factor of 2), below which marginal values are
treated as 0.
"""
LOG_SMALLEST = math.log(SMALLEST)

ROUNDING = 1e-13
"""Upper bound on the relative error of every logarithm, product and quotient in this module."""

MAX_PASSES = 256
"""Maximum number of iterations in `find_level`. Each iteration halves the smallest error so far (at
most 75 times) or the bracket (at most 120 times).
"""


@helper
def above(w, a, level, low, high):
    """Return how many of the marginal values w a^n, n = 1, 2, ..., exceed a level.

    The caller guarantees that this number lies between `low` and `high`.
    """
    while low < high:
        middle = high - (high - low) // 2
        if w * math.pow(a, float(middle)) > level:
            low = middle
        else:
            high = middle - 1
    return low


@helper
def next_marginal(w, a, most, drafts, sign):
    """Return the marginal value of a client's next token if `sign` is 1, or of its last token if
    `sign` is -1.

    Return 0 if there is no such token.
    """
    if sign > 0:
        return w * math.pow(a, float(drafts + 1)) if drafts < most else 0.0
    return w * math.pow(a, float(drafts)) if drafts > 0 else 0.0


@helper
def settle(w, a, most, missing, out):
    """Add `missing` tokens to an allocation in order of decreasing marginal value. If `missing` is
    negative, remove tokens in the reverse order.

    `w` contains the scaled weights, and `most` contains the maximum number of tokens for each
    client. On entry, `out` must allocate the tokens with the largest marginal values. It is
    modified in place. Return how many tokens are still missing.
    """
    sign = 1 if missing > 0 else -1
    most_asked = min(abs(missing), len(w))  # upper bound on clients that change
    moments, numbers = np.empty(most_asked), np.empty(most_asked, np.int64)
    size = 0
    for i in range(len(w)):
        marginal = next_marginal(w[i], a[i], most[i], out[i], sign)
        if marginal >= SMALLEST:
            if size < most_asked:  # the top of this heap is the least preferred candidate
                size = push(moments, numbers, size, sign * marginal, -sign * i)
            elif before(moments, numbers, 0, sign * marginal, -sign * i):
                place(moments, numbers, size, 0, sign * marginal, -sign * i)
    for k in range(size):
        moments[k], numbers[k] = -moments[k], -numbers[k]
    heapify(moments, numbers, size)
    while missing != 0 and size > 0:
        i = sign * numbers[0]
        out[i] += sign
        missing -= sign
        marginal = next_marginal(w[i], a[i], most[i], out[i], sign)
        if marginal >= SMALLEST:
            place(moments, numbers, size, 0, -sign * marginal, sign * i)
        else:
            size = pop(moments, numbers, size)
    return missing


@helper
def find_level(log_w, per_log, most, budget):
    """Return x such that about `budget` marginal values exceed exp(x).

    The number of client i's marginal values that exceed exp(x) is approximated by max(0, min((log_w
    - x) per_log - 1/2, most)). Here per_log is -1 / log(a_i), or 0 for clients that can add no
    value, and 1/2 is the average amount lost by rounding down. For small enough x, the sum of these
    numbers must exceed the budget. Newton steps stay within a bracket, and a step that does not
    halve the error is followed by a bisection.
    """
    high = -np.inf
    low = np.inf
    moment, slope = -float(budget), 0.0
    for i in range(len(log_w)):
        if per_log[i] > 0.0:
            high = max(high, log_w[i])
            low = min(low, log_w[i] - (most[i] + 0.5) / per_log[i])
            moment += log_w[i] * per_log[i] - 0.5
            slope += per_log[i]
    x = min(
        max(moment / slope, low), high
    )  # without caps the count is convex, so Newton's steps only increase x
    best = np.inf
    for _ in range(MAX_PASSES):
        count, slope = 0.0, 0.0
        for i in range(len(log_w)):
            t = (log_w[i] - x) * per_log[i] - 0.5
            if t > 0.0:
                if t < most[i]:
                    count += t
                    slope += per_log[i]
                else:
                    count += most[i]
        error = abs(count - budget)
        if error <= 0.25:
            break
        if count > budget:
            low = x
        else:
            high = x
        x = x + (count - budget) / slope if slope > 0.0 else low
        if error > 0.5 * best or not low < x < high:
            x = low + 0.5 * (high - low)
            if not low < x < high:
                break
        best = min(best, error)
    return x


@helper
def prepare(weights, rates, budget, caps, w, log_w, per_log, most):
    """Compute the scaled weights, their logarithms, -1 / log(rate) and the maximum number of tokens
    for each client.

    The results are written to `w`, `log_w`, `per_log` and `most`. For clients that add no value,
    `most` and `per_log` are 0. `caps` may be empty. Return whether the maximum numbers of all
    clients together fit within the budget.
    """
    top = 0.0
    for i in range(len(w)):
        top = max(top, weights[i])
    exponent = -math.frexp(top)[1] if top > 0.0 else 0
    half = exponent // 2
    first, second = (
        math.ldexp(1.0, half),
        math.ldexp(1.0, exponent - half),
    )  # a single factor may overflow
    all_fit = True
    room = budget
    for i in range(len(w)):
        w[i] = weights[i] * first * second
        most[i] = budget if len(caps) == 0 else max(0, min(caps[i], budget))
        if most[i] > 0 and w[i] * rates[i] >= SMALLEST:
            log_w[i] = math.log(w[i])
            per_log[i] = -1.0 / math.log(rates[i])
            all_fit = all_fit and most[i] <= room
            room -= min(most[i], room)
        else:
            log_w[i] = 0.0
            per_log[i] = 0.0
            most[i] = 0
    return all_fit


@helper
def count_above(w, rates, log_w, per_log, most, x, level, out):
    """Count the marginal values of each client that exceed level = exp(x). Write the counts to
    `out`, and return their sum.
    """
    total = 0
    for i in range(len(w)):
        out[i] = 0
        if most[i] > 0:
            t = (log_w[i] - x) * per_log[i]  # accurate to within `unsure`
            unsure = ROUNDING * (4.0 - x) * per_log[i]
            low = min(int(max(t - unsure, 0.0)), most[i])
            high = min(int(max(t + unsure, 0.0)), most[i])
            out[i] = above(w[i], rates[i], level, low, high)
            total += out[i]
    return total


@kernel("i8(const f8[::1], const f8[::1], i8, const i8[::1], i8[::1])", nogil=False)
def allocate(weights, rates, budget, caps, out):
    """Compute the optimal number of draft tokens for each client, write it to `out`, and return the
    total.

    The total is at most the budget. `caps` contains the maximum number for each client. If `caps`
    is empty, only the budget limits the clients. Tokens that add no value are not allocated.
    """
    N = len(weights)
    if len(rates) != N or len(out) != N or (len(caps) != N and len(caps) != 0):
        raise ValueError(
            "weights, rates, caps and out must all have the same length (caps may be empty)"
        )
    w, log_w, per_log, most = np.empty(N), np.empty(N), np.empty(N), np.empty(N, np.int64)
    all_fit = prepare(weights, rates, budget, caps, w, log_w, per_log, most)
    x = LOG_SMALLEST if all_fit else find_level(log_w, per_log, most, budget)
    level = math.exp(x)
    if level <= SMALLEST:
        x, level = LOG_SMALLEST, SMALLEST
    missing = budget - count_above(w, rates, log_w, per_log, most, x, level, out)
    if missing != 0:
        missing = settle(w, rates, most, missing, out)
    return budget - missing
