"""The fairest mixture of some given rounds: a small concave program, by a primal-dual interior-point method.

Maximise sum w_i U(x_i) over x = V theta, theta >= 0, sum theta = 1, x_i >= r_i where a least rate r_i > 0 is due.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from specopt.models.fields import Floats

STEPS = 80
TO_THE_BOUNDARY = 0.995
CLOSE = 1e-14
"""Relative error of the optimality conditions at which the method stops."""

PATIENCE = 6
"""Steps without progress, near the end, after which rounding is taken to have won."""

NEAR = 1e-6
"""Relative error from which on the end is near; a steep utility takes many steps to come here."""


ACCURATE = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
"""For HiGHS, whose own tolerances are 1e-7."""


@dataclass(frozen=True, eq=False)
class Mixture:
    """A mixture and its multipliers.

    Parameters
    ----------
    shares
        theta, one per given round.
    extra
        Multipliers of the least rates, zero where none is due.
    """

    shares: Floats
    extra: Floats


def fairest_mixture(rates: Floats, weights: Floats, fairness: float, least: Floats) -> Mixture:
    """Return the best mixture of rounds.

    Parameters
    ----------
    rates
        One row per client, one column per round; all positive.
    weights, fairness
        Of the utility.
    least
        Least rate of each client; 0 for none. They must be reachable.
    """
    if fairness == 0.0:
        return _largest_sum(rates, weights, least)
    scale = rates.max(axis=1)  # rates in units of the largest one; it changes weights only
    V = rates / scale[:, None]
    w = weights * scale ** (1.0 - fairness)
    w = w / w.max()
    due = np.flatnonzero(least > 0)
    r = least[due] / scale[due]
    R = V[due]
    K, due_count = V.shape[1], len(due)
    theta = np.full(K, 1.0 / K)
    z = np.maximum(R @ theta - r, 1e-3)
    x = V @ theta
    c = V.T @ (w * x**-fairness) / float(w @ x ** (1.0 - fairness))  # the slope; see the loop
    nu = float(c.max()) * 1.1
    lam = np.maximum(nu - c, 1e-3 * max(1.0, nu))
    y = np.full(len(due), 1e-1)
    best, best_error, since = (theta, y), math.inf, 0
    for _ in range(STEPS):
        x = V @ theta
        # The same maximum, without steep slopes: log(sum w x^(1-g)) / (1-g), concave for every g, its slope . x = 1.
        slope = w * x**-fairness
        slope /= float(slope @ x)
        curve = fairness * slope / x
        dual = -(V.T @ slope) - R.T @ y - lam + nu
        primal = float(theta.sum()) - 1.0
        short = R @ theta - z - r
        gap = float(lam @ theta) + float(y @ z)
        error = (gap + float(np.abs(dual).max())) / max(1.0, float(slope @ x)) + float(np.abs(short).max(initial=0.0))
        if error < best_error / 2.0:
            best, best_error, since = (theta, y), error, 0
        else:
            since += 1
        if error <= CLOSE or (since >= PATIENCE and best_error <= NEAR) or not math.isfinite(error):
            break
        # Newton's equations for (d_theta / S, d_y, d_nu); this scaling keeps them solvable as lam theta -> 0.
        S = np.sqrt(theta / lam)
        M = np.zeros((K + due_count + 1, K + due_count + 1))
        VS, RS = V * S, R * S
        toward = slope @ VS
        M[:K, :K] = (VS.T * curve) @ VS + (1.0 - fairness) * np.outer(toward, toward)
        M[np.arange(K), np.arange(K)] += 1.0
        M[:K, K:-1], M[K:-1, :K] = -RS.T, RS
        M[np.arange(K, K + due_count), np.arange(K, K + due_count)] = z / y
        M[:K, -1] = M[-1, :K] = S
        try:
            inverse = np.linalg.inv(M)
        except np.linalg.LinAlgError:
            break
        state = (theta, lam, z, y, S, R, dual, short, primal)
        d_theta, d_lam, d_z, d_y, d_nu = _direction(M, inverse, state, 0.0, 0.0)
        p, q = _step(theta, d_theta, z, d_z), _step(lam, d_lam, y, d_y)
        after = float((lam + q * d_lam) @ (theta + p * d_theta)) + float((y + q * d_y) @ (z + p * d_z))
        mu = gap / (K + due_count) * min(1.0, max(0.0, after / gap)) ** 3
        d_theta, d_lam, d_z, d_y, d_nu = _direction(M, inverse, state, mu - d_theta * d_lam, mu - d_z * d_y)
        p, q = _step(theta, d_theta, z, d_z), _step(lam, d_lam, y, d_y)
        if fairness > 0.0:
            p = q = min(p, q)  # one step length where the dual residual is not linear
        theta, z = theta + p * d_theta, z + p * d_z
        lam, y, nu = lam + q * d_lam, y + q * d_y, nu + q * d_nu
    theta, y = best
    unit = (weights * scale ** (1.0 - fairness)).max()
    extra = np.zeros(len(weights))
    x = V @ theta
    extra[due] = y * float(w @ x ** (1.0 - fairness)) * unit / scale[due]
    return Mixture(theta / theta.sum(), extra)


def keep_least(rates: Floats, shares: Floats, least: Floats) -> Floats:
    """Return shares near some that give every least rate exactly: those themselves if they do."""
    x = rates @ shares
    if (x >= least).all():
        return shares
    from scipy.optimize import linprog

    unit = rates.max(axis=1)
    count = len(shares)
    found = linprog(  # the smallest part of any rate to give up
        np.append(np.zeros(count), 1.0),
        A_ub=np.block(
            [[-rates / unit[:, None], -(x / unit)[:, None]], [-rates / unit[:, None], np.zeros((len(x), 1))]]
        ),
        b_ub=-np.concatenate((x, least)) / np.concatenate((unit, unit)),
        A_eq=np.append(np.ones(count), 0.0)[None],
        b_eq=[1.0],
        options=ACCURATE,
    )
    if found.x is None:
        return shares
    kept: Floats = np.maximum(0.0, found.x[:-1])
    return np.asarray(kept / kept.sum(), dtype=np.float64)


def _largest_sum(rates: Floats, weights: Floats, least: Floats) -> Mixture:
    """Return the best mixture for a weighted sum: a linear program."""
    values = weights @ rates
    extra = np.zeros(len(weights))
    due = np.flatnonzero(least > 0)
    if not len(due):
        return Mixture((np.arange(len(values)) == int(values.argmax())).astype(np.float64), extra)
    from scipy.optimize import linprog

    unit = values.max()
    found = linprog(
        -values / unit,
        A_ub=-rates[due] / least[due, None],
        b_ub=-np.ones(len(due)),
        A_eq=np.ones((1, len(values))),
        b_eq=[1.0],
        options=ACCURATE,
    )
    if found.x is None:  # the least rates are reached to the last digit, and not beyond
        reach = (rates[due] / least[due, None]).min(axis=0)
        return Mixture((np.arange(len(values)) == int(reach.argmax())).astype(np.float64), extra)
    extra[due] = np.maximum(0.0, -found.ineqlin.marginals) * unit / least[due]
    shares = np.maximum(0.0, found.x)
    return Mixture(shares / shares.sum(), extra)


def _direction(
    M: Floats, inverse: Floats, state: tuple[Any, ...], target: float | Floats, target_z: float | Floats
) -> tuple[Floats, Floats, Floats, Floats, float]:
    """Return Newton's direction towards lam theta = target and y z = target_z."""
    theta, lam, z, y, S, R, dual, short, primal = state
    K = len(theta)
    push = target / theta - lam
    right = np.concatenate((S * (push - dual), target_z / y - z - short, [-primal]))
    solved = inverse @ right
    solved += inverse @ (right - M @ solved)
    d_theta = S * solved[:K]
    return d_theta, push - lam / theta * d_theta, R @ d_theta + short, solved[K:-1], float(solved[-1])


def _step(u: Floats, du: Floats, v: Floats, dv: Floats) -> float:
    """Return the longest step up to 1 that keeps both positive."""
    step = 1.0
    for value, change in ((u, du), (v, dv)):
        falls = change < 0
        if falls.any():
            step = min(step, TO_THE_BOUNDARY * float((-value[falls] / change[falls]).min()))
    return step
