"""Kernels for fair goodput (paper 5) that compute the demand for draft tokens at a price, and the
optimality bounds that follow from a price.

Notation: a is the acceptance rate, with L = log a (-inf for a = 0). w is the weight, and g is the
fairness. The mean number of draft tokens is s in [lo, hi], and x = f(s) is the goodput. The
function f interpolates mu(n) = (1 - a^(n+1)) / (1 - a) linearly between the integers.

At a price `lam` per token, the best s of a client maximises w U(f(s)) - lam s. Either the best s is
an integer, or w a^n x^-g = lam on the segment from mu(n-1) to mu(n).
"""

import math

import numpy as np

from specopt.solvers.kernels.acceptance import expected_tokens
from specopt.solvers.kernels.heap import place, push
from specopt.solvers.kernels.kernel import helper, kernel, record, rows

Client = rows("Client", a="f8", L="f8", w="f8", lo="f8", hi="f8", n="i8", p="f8", m="f8", s="f8")
"""A client (see the notation above) and the current state of its search for the best s.

The integer n is the best s rounded up, with p = a^n and m = mu(n). Between similar prices, n, p
and m change little, so they are updated without exponentials. If p = 0, then p and m are unknown,
and n is only the start of the search.
"""


@helper
def power(L, n):
    """Return the power a^n, given L = log a."""
    return 1.0 if n == 0 else math.exp(n * L)


@helper
def to_the(x, g):
    """Return x^g, computing common powers without a logarithm."""
    if g == 1.0:
        return x
    if g == 0.0:
        return 1.0
    return x * x if g == 2.0 else x**g


@helper
def enough(a, L, w, g, lam, n):
    """Return whether the marginal utility of draft token n + 1 is at most the price `lam`."""
    return w * math.exp((n + 1) * L) <= lam * to_the(expected_tokens(a, L, n), g)


@helper
def integer(a, L, w, g, lam, top, start):
    """Return the best s at price `lam`, rounded up to an integer and limited to `top`.

    The search begins at `start`.
    """
    n = min(start, top)
    step = 1
    if n == top or enough(a, L, w, g, lam, n):
        above, below = n, n - 1  # token `above` + 1 does not pay off, or does not exist
        while below >= 0 and enough(a, L, w, g, lam, below):
            above = below
            below -= step
            step *= 2
        below = max(below, -1)
    else:
        below, above = n, n + 1
        while above < top and not enough(a, L, w, g, lam, above):
            below = above
            above += step
            step *= 2
        above = min(above, top)
    while above - below > 1:
        middle = (above + below) // 2
        if enough(a, L, w, g, lam, middle):
            above = middle
        else:
            below = middle
    return above


@helper
def rate(a, L, s):
    """Return the goodput f(s) of a client with s mean draft tokens."""
    n = math.floor(s)
    return expected_tokens(a, L, n) + (s - n) * math.exp((n + 1) * L)


@helper
def best(n, p, m, w, g, lam, lo, hi):
    """Return the best mean number of draft tokens s at price `lam`.

    The arguments include n, which is the best s rounded up, p = a^n and m = mu(n).
    """
    s = float(n)
    if n > 0 and g > 0.0 and w * p < lam * to_the(m, g):
        want = w * p / lam if g == 1.0 else (w * p / lam) ** (1.0 / g)
        s = max(n - 1.0, n - max(0.0, m - want) / p)
    return min(max(s, lo), hi)


@kernel("f8(f8, f8, f8, Client[::1])")
def demands(g, C, lam, clients):
    """Set `s` for each client to its optimal value at a price `lam` > 0, and return sum s - C."""
    total, lost = -C, 0.0
    for i in range(len(clients)):
        client = clients[i]
        a, w = client.a, client.w
        n, p, m = client.n, client.p, client.m
        top = int(client.hi)
        known = p > 0.0
        steps = 0
        while known and n < top and w * p * a > lam * to_the(m, g):
            n += 1
            p *= a
            m += p
            steps += 1
            known = steps <= 16
        while known and n > 0 and w * p <= lam * to_the(m - p, g):
            m -= p
            p /= a
            n -= 1
            steps += 1
            known = steps <= 16
        if not known:
            n = integer(a, client.L, w, g, lam, top, n)
            p, m = power(client.L, n), expected_tokens(a, client.L, n)
        s = best(n, p, m, w, g, lam, client.lo, client.hi)
        client.n, client.p, client.m, client.s = n, p, m, s
        new = (
            total + s
        )  # Neumaier's summation: accurate to the last digit even with millions of clients
        lost += (total - new) + s if abs(total) >= s else (s - new) + total
        total = new
    return total + lost


@kernel("UniTuple(f8, 2)(f8, f8, f8, Client[::1])")
def certify(g, C, lam, clients):
    """Return two upper bounds on the improvement of any plan over the current means s.

    The first bound is the duality gap: max over y of U(y) - price sum s(y) + price C, minus U(x).
    The second bound is the Frank-Wolfe gap, which replaces U(y) - U(x) by grad U(x) . (y - x) and
    is an upper bound on the maximum of that product over all plans y.
    """
    dual, linear, spare = 0.0, 0.0, C
    for i in range(len(clients)):
        client = clients[i]
        a, L, w, lo, hi, s = client.a, client.L, client.w, client.lo, client.hi, client.s
        n, p, m = client.n, client.p, client.m
        spare -= s
        inside = n - 1.0 <= s <= n
        x = m - (n - s) * p if inside else rate(a, L, s)
        other = best(n, p, m, w, g, lam, lo, hi)
        if other != s:
            y = m - (n - other) * p if n - 1.0 <= other <= n else rate(a, L, other)
            if g == 1.0:
                gain = math.log1p((y - x) / x)
            elif g == 0.0:
                gain = y - x
            else:
                gain = x ** (1.0 - g) * math.expm1((1.0 - g) * math.log1p((y - x) / x)) / (1.0 - g)
            dual += max(0.0, w * gain - lam * (other - s))
        c = w / to_the(x, g)
        here, after = (
            c * p - lam,
            c * p * a - lam,
        )  # net gain of a token just below n, and just above n
        if inside and here >= 0.0 and (after <= 0.0 or n >= hi):
            linear += here * (min(float(n), hi) - s)
        elif inside and n > 0 and here < 0.0 and (c * p >= lam * a or n - 1.0 <= lo):
            linear += -here * (s - max(n - 1.0, lo))
        else:
            other = min(max(float(integer(a, L, c, 0.0, lam, int(hi), n)), lo), hi)
            linear += max(0.0, c * (rate(a, L, other) - x) - lam * (other - s))
    return dual + lam * max(0.0, spare), linear + lam * max(0.0, spare)


# -------------------------------------------------------- rounds that last as long as their slowest


Tokens = record("Tokens", finish="f8[::1]", gain="f8[::1]", overhead="f8", per_token="f8", C="i8")
"""Draft tokens sorted by the time at which they are drafted, and the parameters of a round.

`finish` contains the time at which each token is drafted, in seconds, and `gain` contains the gain
of each token. Verification takes `overhead` seconds plus `per_token` seconds for each token. A
round has at most C tokens.
"""


@kernel("void(Tokens, f8, f8, f8[::1])")
def best_ratio(tokens, base, first, best):
    """Find the round with the largest value per second, and write it to `best`.

    The entries of `best` are the value per second, the end of drafting, the number of tokens, and
    the excess.

    A round without drafts has the value `base`, and its drafting ends at `first`. Dinkelbach's
    method sets the price of a second to the value per second of the best round so far. For a given
    end of drafting, the best round consists of the tokens with the largest gains net of their
    verification. A heap maintains these tokens as the end of drafting increases. The value of a
    round exceeds its cost by at most the excess. Sums use Neumaier's summation.
    """
    finish, gain = tokens.finish, tokens.gain
    room = min(len(gain), tokens.C)
    heap, taken = np.empty(room), np.empty(room, np.int64)
    best[0], best[1], best[2] = base / (first + tokens.overhead), first, 0.0
    while True:
        ratio = best[0]
        cost = ratio * tokens.per_token
        total, lost, size, at = base - ratio * (first + tokens.overhead), 0.0, 0, first
        excess = max(0.0, total)
        for k in range(len(gain)):
            net = gain[k] - cost
            if net <= 0.0 or tokens.C == 0:
                continue
            out = 0.0
            if size < tokens.C:
                size = push(heap, taken, size, net, k)
            else:
                out = heap[0]
                if net <= out:
                    continue
                place(heap, taken, size, 0, net, k)
            later = max(at, finish[k])
            for term in (net, -out, ratio * (at - later)):
                new = total + term
                lost += (total - new) + term if abs(total) >= abs(term) else (term - new) + total
                total = new
            at = later
            if total + lost > excess:
                excess = total + lost
                best[1], best[2] = at, size
        best[3] = excess
        value = excess + ratio * (best[1] + tokens.overhead + tokens.per_token * best[2])
        value /= best[1] + tokens.overhead + tokens.per_token * best[2]
        if not value > ratio * (1.0 + 1e-15):
            return
        best[0] = value
