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
def _integer(a, L, w, g, lam, top, start):
    """Return the integer at or just above the best s up to `top` at a price; the search begins at `start`."""
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
    return above


@njit(cache=True)
def _rate(a, L, s):
    """Return f(s)."""
    n = np.floor(s)
    return _mu(a, L, n) + (s - n) * np.exp((n + 1) * L)


@njit(cache=True)
def _best(n, p, m, w, g, lam, lo, hi):
    """Return the best s where n is the integer at or just above it, p = a^n and m = mu(n)."""
    s = float(n)
    if n > 0 and g > 0.0 and w * p < lam * _to_the(m, g):
        want = w * p / lam if g == 1.0 else (w * p / lam) ** (1.0 / g)
        s = max(n - 1.0, n - max(0.0, m - want) / p)
    return min(max(s, lo), hi)


@njit("f8(f8[::1], f8[::1], f8[::1], f8, f8, f8[::1], f8[::1], f8, i8[::1], f8[:, ::1], f8[::1])", cache=True)
def demands(a, L, w, g, lam, lo, hi, C, near, state, s):
    """Fill s with every client's best at a price > 0 and return sum s - C.

    near[i] is the integer at or just above client i's best, state[i] = (a^n, mu(n)) for it: from one price to the next
    they change little, and need no exponentials. Zeros mean that they are unknown; near is then where to search.
    """
    total, lost = -C, 0.0
    for i in range(len(a)):
        n, p, m = near[i], state[i, 0], state[i, 1]
        top = int(hi[i])
        known = p > 0.0
        steps = 0
        while known and n < top and w[i] * p * a[i] > lam * _to_the(m, g):
            n += 1
            p *= a[i]
            m += p
            steps += 1
            known = steps <= 16
        while known and n > 0 and w[i] * p <= lam * _to_the(m - p, g):
            m -= p
            p /= a[i]
            n -= 1
            steps += 1
            known = steps <= 16
        if not known:
            n = _integer(a[i], L[i], w[i], g, lam, top, n)
            p, m = _power(L[i], n), _mu(a[i], L[i], n)
        near[i], state[i, 0], state[i, 1] = n, p, m
        value = _best(n, p, m, w[i], g, lam, lo[i], hi[i])
        s[i] = value
        new = total + value  # Neumaier's sum: the budget is met to the last digit even with millions of clients
        lost += (total - new) + value if abs(total) >= value else (value - new) + total
        total = new
    return total + lost


@njit(
    "void(f8[::1], f8[::1], f8[::1], f8, f8, f8[::1], f8[::1], f8, i8[::1], f8[:, ::1], f8[::1], f8[::1])", cache=True
)
def certify(a, L, w, g, lam, lo, hi, C, near, state, s, gaps):
    """Fill gaps with two bounds on what any plan can gain over the means s, sum s <= C, from one price.

    gaps[0]: max over y of U(y) - price sum s(y) + price C, minus U(x): the duality gap.
    gaps[1]: the same with grad U(x) . y for U(y), at least the largest grad U(x) . (y - x): the Frank-Wolfe gap.
    """
    dual, linear, spare = 0.0, 0.0, C
    for i in range(len(a)):
        spare -= s[i]
        n, p, m = near[i], state[i, 0], state[i, 1]
        inside = n - 1.0 <= s[i] <= n
        x = m - (n - s[i]) * p if inside else _rate(a[i], L[i], s[i])
        best = _best(n, p, m, w[i], g, lam, lo[i], hi[i])
        if best != s[i]:
            y = m - (n - best) * p if n - 1.0 <= best <= n else _rate(a[i], L[i], best)
            if g == 1.0:
                gain = np.log1p((y - x) / x)
            elif g == 0.0:
                gain = y - x
            else:
                gain = x ** (1.0 - g) * np.expm1((1.0 - g) * np.log1p((y - x) / x)) / (1.0 - g)
            dual += max(0.0, w[i] * gain - lam * (best - s[i]))
        c = w[i] / _to_the(x, g)
        here, after = c * p - lam, c * p * a[i] - lam  # what a token gains before n, and after it
        if inside and here >= 0.0 and (after <= 0.0 or n >= hi[i]):
            linear += here * (min(float(n), hi[i]) - s[i])
        elif inside and n > 0 and here < 0.0 and (c * p >= lam * a[i] or n - 1.0 <= lo[i]):
            linear += -here * (s[i] - max(n - 1.0, lo[i]))
        else:
            best = min(max(float(_integer(a[i], L[i], c, 0.0, lam, int(hi[i]), n)), lo[i]), hi[i])
            linear += max(0.0, c * (_rate(a[i], L[i], best) - x) - lam * (best - s[i]))
    gaps[0] = dual + lam * max(0.0, spare)
    gaps[1] = linear + lam * max(0.0, spare)


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
