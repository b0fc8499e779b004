"""Fair goodput (paper 5): demand for draft tokens at a price, and what a price proves.

Letters: a acceptance rate, L = log a (-inf for a = 0), w weight, g fairness, s mean draft tokens in [lo, hi],
x = f(s) goodput, f the piecewise-linear interpolation of mu(n) = (1 - a^(n+1)) / (1 - a) at the integers.
At a price `lam` per token a client wants the s that maximises w U(f(s)) - lam s: either an integer, or where
w a^n x^-g = lam on the segment from mu(n-1) to mu(n).
"""

import numpy as np
from numba import njit


@njit(cache=True)
def _power(L, n):
    """Return a^n."""
    return 1.0 if n == 0 else np.exp(n * L)


@njit(cache=True)
def _mu(a, L, n):
    """Return mu(n); no digits are lost for a near 1."""
    p = np.exp((n + 1) * L)
    return (1.0 - p if p < 0.5 else -np.expm1((n + 1) * L)) / (1.0 - a)


@njit(cache=True)
def _to_the(x, g):
    """Return x^g; the common powers without a logarithm."""
    if g == 1.0:
        return x
    if g == 0.0:
        return 1.0
    return x * x if g == 2.0 else x**g


@njit(cache=True)
def _enough(a, L, w, g, lam, n):
    """Tell whether token n + 1 is not worth its price."""
    return w * np.exp((n + 1) * L) <= lam * _to_the(_mu(a, L, n), g)


@njit(cache=True)
def _demand(a, L, w, g, lam, lo, hi, start):
    """Return the best s at a price > 0, and the integer at or just above it; the search begins at `start`."""
    top = int(hi)
    n = min(start, top)
    step = 1
    if n == top or _enough(a, L, w, g, lam, n):
        above, below = n, n - 1  # token `above` + 1 is not worth it, or there is none
        while below >= 0 and _enough(a, L, w, g, lam, below):
            above = below
            below -= step
            step *= 2
        below = max(below, -1)
    else:
        below, above = n, n + 1
        while above < top and not _enough(a, L, w, g, lam, above):
            below = above
            above += step
            step *= 2
        above = min(above, top)
    while above - below > 1:
        middle = (above + below) // 2
        if _enough(a, L, w, g, lam, middle):
            above = middle
        else:
            below = middle
    n = above
    s = float(n)
    if n > 0 and g > 0.0:
        p = np.exp(n * L)
        x = _mu(a, L, n)
        if w * p < lam * _to_the(x, g):  # inside the segment that ends at n
            want = w * p / lam if g == 1.0 else (w * p / lam) ** (1.0 / g)
            s = max(n - 1.0, n - max(0.0, x - want) / p)
    return min(max(s, lo), hi), n


@njit(cache=True)
def _rate(a, L, s):
    """Return f(s)."""
    n = np.floor(s)
    return _mu(a, L, n) + (s - n) * np.exp((n + 1) * L)


@njit("f8(f8[::1], f8[::1], f8[::1], f8, f8, f8[::1], f8[::1], f8, i8[::1], f8[::1])", cache=True)
def demands(a, L, w, g, lam, lo, hi, C, near, s):
    """Fill s with every client's best at a price and return sum s - C; `near` holds where to search, and is updated."""
    total, lost = -C, 0.0
    for i in range(len(a)):
        value, near[i] = _demand(a[i], L[i], w[i], g, lam, lo[i], hi[i], near[i])
        s[i] = value
        new = total + value  # Neumaier's sum: the budget is met to the last digit even with millions of clients
        lost += (total - new) + value if abs(total) >= value else (value - new) + total
        total = new
    return total + lost


@njit("f8(f8[::1], f8[::1], f8[::1], f8, f8, f8[::1], f8[::1], f8, i8[::1], f8[::1])", cache=True)
def duality_gap(a, L, w, g, lam, lo, hi, C, near, s):
    """Return by how much the best value at a price exceeds that of the means s, sum s <= C: no plan gains more."""
    gap, spare = 0.0, C
    for i in range(len(a)):
        best, _ = _demand(a[i], L[i], w[i], g, lam, lo[i], hi[i], near[i])
        spare -= s[i]
        x = _rate(a[i], L[i], s[i])
        y = _rate(a[i], L[i], best)
        if g == 1.0:
            gain = np.log1p((y - x) / x)
        elif g == 0.0:
            gain = y - x
        else:
            gain = x ** (1.0 - g) * np.expm1((1.0 - g) * np.log1p((y - x) / x)) / (1.0 - g)
        gap += max(0.0, w[i] * gain - lam * (best - s[i]))
    return gap + lam * max(0.0, spare)


@njit("void(f8[::1], f8[::1], f8)", cache=True)
def fill(s, more, spare):
    """Raise s towards `more`, client by client, until `spare` tokens are spent."""
    for i in range(len(s)):
        if spare <= 0.0:
            return
        step = min(more[i] - s[i], spare)
        if step > 0.0:
            s[i] += step
            spare -= step


@njit("void(f8[::1], f8[::1], f8)", cache=True)
def trim(s, less, over):
    """Lower s towards `less`, client by client, until `over` tokens are taken back."""
    for i in range(len(s)):
        if over <= 0.0:
            return
        step = min(s[i] - less[i], over)
        if step > 0.0:
            s[i] -= step
            over -= step


# ---------------------------------------------------------------------------- rounds that last as long as their slowest


@njit(cache=True)
def _score(value, seconds, weight, g):
    """Return the utility of rates mu / seconds where that of mu is `value`; it falls with the seconds."""
    if g == 0.0:
        return value / seconds
    if g == 1.0:
        return value - weight * np.log(seconds)
    return value * seconds ** (g - 1.0)


@njit("b1(f8[::1], f8[::1], f8[::1], f8[::1], i8, i8, f8, f8, f8, f8, i8, f8[::1])", cache=True)
def best_round(finish, gain, prefix, limits, first, last, overhead, per_token, weight, g, C, best):
    """Improve `best` = (score, limit's index, tokens) over the rounds that end drafting within limits first..last-1.

    The tokens come by falling gain, `finish` says when each is drafted; prefix[t]: value of the first t of them with
    no limit, prefix[0] of no token at all. Limits rise. Returns whether no later limit can be better.
    """
    for j in range(first, last):
        limit = limits[j]
        bound = -np.inf
        for t in range(len(prefix)):
            bound = max(bound, _score(prefix[t], limit + overhead + per_token * t, weight, g))
        if bound <= best[0]:
            return True
        value, t, k = prefix[0], 0, 0
        while True:
            score = _score(value, limit + overhead + per_token * t, weight, g)
            if score > best[0]:
                best[0], best[1], best[2] = score, j, t
            while k < len(gain) and finish[k] > limit:
                k += 1
            if k == len(gain) or t == C:
                break
            value += gain[k]
            t += 1
            k += 1
    return False
