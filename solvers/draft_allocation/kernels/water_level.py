"""Draft allocation (paper 5, Eq. 5): the largest marginals w_i a_i^n within budget and caps, by a
water level.

Token n = 1, 2, ... of client i adds w_i a_i^n to the objective. Marginals fall within a client, so
the C largest of all of them are an optimal plan. They are ordered by the floating-point product of
w_i (scaled by a power of two) and pow(a_i, n); ties go to the client with the lower index. A heap
that takes one token after the other ends with the same plan, bit for bit.

Newton's method on a continuous count of the marginals above a level, piecewise linear in its
logarithm, finds a level that about C of them exceed. Logarithms only guess: every count that
rounding could change is settled by comparing products. What is above a level is a prefix of the
order, so a heap that adds (or takes away) the few tokens that are missing (or too many) ends at
exactly C of them. Nothing grows with the budget.
"""

import math

import numpy as np

from specopt.solvers.kernels.heap import before, heapify, place, pop, push
from specopt.solvers.kernels.kernel import helper, kernel

SMALLEST = 2.2250738585072014e-308
"""Marginals below this (relative to the largest weight, within a factor of 2) count as nothing."""
LOG_SMALLEST = math.log(SMALLEST)

ROUNDING = 1e-13
"""More than the relative error of any logarithm, product or quotient here."""

MAX_PASSES = 256
"""Of `find_level`: each halves the least error so far (at most 75 times) or the bracket (at most
120 times).
"""


@helper
def above(w, a, level, guess, most):
    """Return how many of the marginals w a^n, n = 1..most, are larger than a level, searching from
    a guess.
    """
    low = min(max(guess, 0), most)
    if low > 0 and not w * math.pow(a, float(low)) > level:
        high = low
        step = 1
        while True:  # low is known to hold at the end, high not to
            low = max(high - step, 0)
            if low == 0 or w * math.pow(a, float(low)) > level:
                break
            high = low
            step *= 2
    else:
        step = 1
        while True:
            if low == most:
                return low
            high = min(low + step, most)
            if not w * math.pow(a, float(high)) > level:
                break
            low = high
            step *= 2
    while high - low > 1:
        middle = low + (high - low) // 2
        if w * math.pow(a, float(middle)) > level:
            low = middle
        else:
            high = middle
    return low


@helper
def next_marginal(w, a, most, drafts, sign):
    """Return the value of one more token of a client (sign 1), or of its last one (-1); 0 if there
    is none.
    """
    if sign > 0:
        return w * math.pow(a, float(drafts + 1)) if drafts < most else 0.0
    return w * math.pow(a, float(drafts)) if drafts > 0 else 0.0


@helper
def settle(w, a, most, missing, out):
    """Add the `missing` next tokens of the order, or take the last -missing away; return how many
    remain missing.

    w: scaled weights; most: per client; out: a prefix of the order, modified in place.
    """
    sign = 1 if missing > 0 else -1
    most_asked = min(abs(missing), len(w))  # clients that can have one of so few tokens
    moments, numbers = np.empty(most_asked), np.empty(most_asked, np.int64)
    size = 0
    for i in range(len(w)):
        marginal = next_marginal(w[i], a[i], most[i], out[i], sign)
        if marginal >= SMALLEST:
            if size < most_asked:  # the last of them comes first in this heap
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
    """Return x such that about `budget` marginals exceed exp(x).

    Client i counts max(0, min((log_w - x) per_log - 1/2, most)): per_log = -1 / log(a_i), 0 for
    those without marginals; rounding down takes one half on average. The counts sum to more
    than the budget for x low enough. Newton steps within a bracket; a step that does not halve the
    error is followed by a bisection.
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
    )  # without caps the count is convex: Newton's steps then only rise
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
    """Fill scaled weights, their logarithms, -1 / log(rate) and the most per client; tell whether
    all of it fits.

    Clients that add nothing have most = per_log = 0. caps: may be empty.
    """
    top = 0.0
    for i in range(len(w)):
        top = max(top, weights[i])
    exponent = -math.frexp(top)[1] if top > 0.0 else 0
    half = exponent // 2
    first, second = (
        math.ldexp(1.0, half),
        math.ldexp(1.0, exponent - half),
    )  # one factor alone may overflow
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
    """Fill how many marginals of each client are larger than level = exp(x), and return the sum."""
    total = 0
    for i in range(len(w)):
        out[i] = 0
        if most[i] > 0:
            t = (log_w[i] - x) * per_log[i]  # off by less than `unsure`
            unsure = ROUNDING * (4.0 - x) * per_log[i]
            if t >= most[i] + 1.0 + unsure:
                out[i] = most[i]
            elif t > -unsure:
                n = int(max(t, 0.0))
                if min(t - n, n + 1 - t) > unsure:
                    out[i] = min(n, most[i])
                else:
                    out[i] = above(w[i], rates[i], level, n, most[i])
            total += out[i]
    return total


@kernel("i8(const f8[::1], const f8[::1], i8, const i8[::1], i8[::1])", nogil=False)
def allocate(weights, rates, budget, caps, out):
    """Fill `out` with the drafts of each client and return their sum: at most the budget.

    caps: the most per client, or empty: no limit but the budget. Tokens that would add nothing stay
    unused.
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
