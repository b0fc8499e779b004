"""The fairest mixture of known rounds, computed by a primal-dual interior-point method.

The mixture is the solution of a small concave program.

The program is to maximise the common rate c(x) (`specopt.solvers.fair_goodput.common_rate`). Here,
x = V theta for shares theta >= 0 with sum 1, subject to x >= r for clients with a minimum rate r.
Let p be the gradient of log c at x, e >= 0 multipliers of the minimum rates, and R = V - r 1'. Then
p and e prove x optimal if no round has a value above 1, V' p + R' e <= 1.

A steep utility (fairness g > 1) has a well-behaved dual: maximise sum a_i p_i^(1-1/g) over these
prices. Here a_i = w_i^(1/g), and the price p_i corresponds to the rate x_i = a_i p_i^(-1/g).
Newton's method then follows the central path in about ten steps for any g. In terms of the rates
themselves, a step would be accurate only for relative changes up to 1/g. For g < 1, the roles are
reversed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from specopt.models.fields import Floats
from specopt.solvers.fair_goodput.common_rate import slope

ROUNDING = 2e-15
"""Error of the optimality conditions that may be due to rounding alone, per unit of steepness.

The value includes a small margin.
"""

ENOUGH = 1e-10
"""Relative tolerance for a mixture.

The solve is repeated if a violation exceeds this tolerance. A violation is the amount by which the
value of a round exceeds the value of the mixture, or by which a rate falls short of its minimum.
"""

INSIDE = 0.995
"""Longest step, as a fraction of the distance to the boundary."""

PATIENCE = 8
"""Number of steps without progress after which the search ends."""

CURVED = 0.3
"""Maximum error of a step's linear model, as a fraction of the gap."""

WHOLE = 256
"""Maximum problem size for which Newton's equations are solved directly.

The size is the number of clients, minimum rates and rounds together. In larger problems, the
equations of the clients are eliminated first. Elimination is fast, but loses digits if rounds are
nearly identical.
"""


@dataclass(frozen=True, eq=False)
class Mixture:
    """A mixture of rounds and its dual multipliers.

    Parameters
    ----------
    shares
        Share of each round.
    extra
        Multipliers of the minimum-rate constraints, in units in which the mixture has value 1.
    lack
        Final violation of the optimality conditions: the largest amount by which the value of a
        round exceeds the value of the mixture, or the largest shortfall of a rate. The amount is in
        scaled units.
    """

    shares: Floats
    extra: Floats
    lack: float


def fairest_mixture(rates: Floats, weights: Floats, fairness: float, spare: Floats) -> Mixture:
    """Return the mixture of rounds with the largest utility.

    Parameters
    ----------
    rates
        Positive rates, with one row per client and one column per round.
    weights, fairness
        Weights of the clients and fairness parameter of the utility.
    spare
        Excess of the rates over the minimum rates, in any unit, with one row per minimum rate and
        one column per round. Some mixture must reach all minimum rates.
    """
    if fairness == 0.0:
        return _largest_sum(rates, weights, spare)
    unit = rates.max(axis=1)
    path = partial(
        _Path,
        rates / unit[:, None],
        np.log(weights) + (1.0 - fairness) * np.log(unit),
        fairness,
        spare,
    )
    found = path().follow(careful=False)
    if found.lack > ENOUGH:
        found = min(found, path().follow(careful=True), key=lambda mixture: mixture.lack)
    return found


def best_shares(cost: Floats, rows: Floats, limits: Floats, *free: tuple[float, float]) -> Any:
    """Return SciPy's solution of a linear program over shares that sum to 1.

    The program minimises cost @ values subject to rows @ values <= limits. The values are the
    shares, followed by variables with the bounds `free`.
    """
    from scipy.optimize import linprog

    count = len(cost) - len(free)
    return linprog(
        cost,
        A_ub=rows,
        b_ub=limits,
        A_eq=np.append(np.ones(count), np.zeros(len(free)))[None],
        b_eq=[1.0],
        bounds=[*[(0.0, None)] * count, *free],
        options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
    )


def keep_least(rates: Floats, shares: Floats, spare: Floats) -> Floats:
    """Return shares that reach every minimum rate while the rates fall as little as possible.

    The largest fraction by which any rate falls is minimised. `shares` are returned unchanged if
    they already reach every minimum rate, or if no such shares are found.
    """
    if (spare @ shares >= 0.0).all():
        return shares
    part = rates / (rates @ shares)[:, None]
    found = best_shares(  # minimise the largest fraction of any rate that is lost
        np.append(np.zeros(len(shares)), 1.0),
        -np.block([[part, np.ones((len(part), 1))], [spare, np.zeros((len(spare), 1))]]),
        -np.append(np.ones(len(part)), np.zeros(len(spare))),
        (0.0, math.inf),
    )
    if found.x is None:
        return shares
    kept: Floats = np.maximum(0.0, found.x[:-1])
    return np.asarray(kept / kept.sum(), np.float64)


def _largest_sum(rates: Floats, weights: Floats, spare: Floats) -> Mixture:
    """Return the mixture with the largest weighted sum of rates, computed by a linear program."""
    values = (weights / weights.max()) @ rates
    extra = np.zeros(len(spare))
    shares = (np.arange(len(values)) == int(values.argmax())).astype(np.float64)
    if len(spare):
        found = best_shares(-values / values.max(), -spare, extra)
        if (
            found.x is None
        ):  # the minimum rates are reached to the last digit, but cannot be exceeded
            best = int(spare.min(axis=0).argmax())
            shares = (np.arange(len(values)) == best).astype(np.float64)
        else:
            shares = np.maximum(0.0, found.x) / np.maximum(0.0, found.x).sum()
            extra = np.maximum(0.0, -found.ineqlin.marginals) * values.max() / (values @ shares)
    return _checked(rates, np.log(weights), 0.0, spare, shares, extra)


def _checked(
    rates: Floats,
    log_weights: Floats,
    fairness: float,
    spare: Floats,
    shares: Floats,
    extra: Floats,
) -> Mixture:
    """Return a mixture together with the violation of its optimality conditions."""
    worth = slope(rates @ shares, log_weights, fairness) @ rates + extra @ spare
    short = float((-spare @ shares).max(initial=0.0))
    return Mixture(shares, extra, max(float(worth.max()) - 1.0, short))


class _Path:
    """One run of the interior-point method, whose iterates follow the central path.

    On the path, each pair of complementary variables has the same product mu. The first pair is the
    shares theta and the reduced costs z, by which the value of each round falls short of 1. The
    second pair is the prices y = (p, e) and the slacks s: the excess of the rates over those that
    correspond to p, and over the minimum rates. For g < 1, the prices p are the gradient at V
    theta, which needs no slacks.
    """

    def __init__(self, V: Floats, log_weights: Floats, fairness: float, spare: Floats) -> None:
        N, K = V.shape
        self.V, self.log_weights, self.fairness, self.spare = V, log_weights, fairness, spare
        self.B = np.vstack((V, spare))
        self.steep = fairness >= 1.0
        self.first = 0 if self.steep else N  # rows from here on are pairs
        self.theta = np.full(K, 1.0 / K)
        x = V @ self.theta
        if self.steep:
            p = 1.0 / x  # every client pays the same amount
            p /= 1.1 * float((V.T @ p).max())
            log_a = log_weights / fairness
            self.a = np.exp(log_a - (log_a + (1.0 - 1.0 / fairness) * np.log(p)).max())
            self.theta *= 2.0 * float((self.rates_at(p) / x).max())
        else:
            p = self.slope(x)
        self.y = np.concatenate((p, np.full(len(spare), 0.1 * p.mean())))
        self.z = np.maximum(0.1, 1.0 - self.B.T @ self.y)
        self.s = self.B @ self.theta
        self.s[:N] -= self.rates_at(p) if self.steep else self.s[:N]
        self.s[N:] = np.maximum(self.s[N:], float(self.theta @ self.z) / K / self.y[N:])

    def rates_at(self, p: Floats) -> Floats:
        """Return the rates x that correspond to the prices `p`, x_i = a_i p_i^(-1/g)."""
        return np.asarray(self.a * p ** (-1.0 / self.fairness), np.float64)

    def slope(self, x: Floats) -> Floats:
        """Return the gradient of the logarithm of the common rate at the rates `x`."""
        return slope(x, self.log_weights, self.fairness)

    @property
    def gap(self) -> float:
        """Complementarity gap, the sum of the products of all pairs of variables."""
        return float(self.theta @ self.z + self.y[self.first :] @ self.s[self.first :])

    def here(self, extra: Floats) -> Mixture:
        """Return the current mixture together with the violation of its optimality conditions."""
        shares = self.theta / self.theta.sum()
        return _checked(self.V, self.log_weights, self.fairness, self.spare, shares, extra)

    def follow(self, *, careful: bool) -> Mixture:
        """Follow the central path, and return the best mixture found.

        A careful run uses short steps without a corrector.
        """
        best, waited, least_gap = self.here(np.zeros(len(self.spare))), 0, math.inf
        patience = 10 * PATIENCE if careful else PATIENCE
        while best.lack > ROUNDING * (10.0 + self.fairness) and waited < patience:
            if not self.step(careful=careful):
                break
            found, gap = self.here(self.y[len(self.V) :]), self.gap
            waited = 0 if found.lack < 0.5 * best.lack or gap < 0.5 * least_gap else waited + 1
            least_gap = gap if waited == 0 else least_gap
            best = found if found.lack < best.lack else best
        return best

    def step(self, *, careful: bool) -> bool:
        """Make a Newton step towards a smaller gap by Mehrotra's rule.

        Return whether the step was made.
        """
        newton = _Newton(self)
        N, rows, g = len(self.V), len(self.y), self.fairness
        gap, count = self.gap, len(self.theta) + rows - self.first
        if careful:
            d = newton.direction(0.3 * gap / count, np.full(rows, 0.3 * gap / count))
            t = 0.7 * newton.longest(d)
        else:
            d = newton.direction(0.0, np.zeros(rows))
            mu = gap / count * min(1.0, max(0.0, newton.gap_after(newton.longest(d), d) / gap)) ** 3
            d = newton.direction(mu - d[0] * d[1], mu - d[2] * d[3])
            t = newton.longest(d)
        if not all(np.isfinite(change).all() for change in d):
            return False
        if self.steep:
            p, x = self.y[:N], newton.x
            straight = x / (g * p) * d[2][:N]
            while t > 0.0:
                new = p + t * d[2][:N]
                error = float(new @ np.abs(self.rates_at(new) - x + t * straight))
                if error <= max(CURVED * newton.gap_after(t, d), 1e-13 * float(p @ x)):
                    break
                t *= 0.7
        self.theta, self.z, self.y, self.s = (
            value + t * change
            for value, change in zip((self.theta, self.z, self.y, self.s), d, strict=True)
        )
        if not self.steep:
            self.y[:N] = self.slope(self.V @ self.theta)
        return True


Direction = tuple[Floats, Floats, Floats, Floats]
"""Changes of theta, z, y and s in one step."""


class _Newton:
    """The factorised Newton equations at the current point of the path."""

    def __init__(self, path: _Path) -> None:
        from scipy.linalg.lapack import dgetrf  # lu_factor calls it with more overhead than work

        self.path = path
        theta, z, y, s, first, g = path.theta, path.z, path.y, path.s, path.first, path.fairness
        N, rows, K = len(path.V), len(y), len(theta)
        p = y[:N]
        self.x = x = path.rates_at(p) if path.steep else path.V @ theta
        pull = np.concatenate((x / (g * p), np.zeros(rows - N)))
        pull[first:] += s[first:] / y[first:]
        self.lack_s = s - path.B @ theta
        self.lack_s[:N] = self.lack_s[:N] + x if path.steep else 0.0
        self.lack_z = 1.0 - path.B.T @ y - z
        # The equations for (sqrt(pull) dy, dtheta / S) stay solvable as theta z and y s vanish:
        # [[D, A], [-A', 1]] with D = 1 - bend root root'.
        self.E, self.S = E, S = 1.0 / np.sqrt(pull), np.sqrt(theta / z)
        self.A = A = path.B * E[:, None] * S
        self.bend, self.root = 0.0 if path.steep else 1.0 - g, np.zeros(rows)
        self.root[:N] = np.sqrt(x * p)
        self.straighten = self.bend / (1.0 - self.bend * float(self.root @ self.root))
        self.is_whole = rows + K <= WHOLE
        if self.is_whole:
            M = np.eye(rows + K)
            M[:rows, rows:], M[rows:, :rows] = A, -A.T
            M[:rows, :rows] -= self.bend * np.outer(self.root, self.root)
        else:  # the equations for dtheta; the inverse of D is 1 + straighten root root'
            pressed = A.T @ self.root
            M = np.eye(K) + A.T @ A + self.straighten * np.outer(pressed, pressed)
        self.factors, self.pivots, _ = dgetrf(M)

    def solve(self, upper: Floats, lower: Floats) -> tuple[Floats, Floats]:
        """Return the solution of the scaled Newton equations for the given right-hand sides."""
        from scipy.linalg.lapack import dgetrs

        if self.is_whole:
            found = dgetrs(self.factors, self.pivots, np.concatenate((upper, lower)))[0]
            return found[: len(upper)], found[len(upper) :]
        root, A = self.root, self.A
        straight = upper + self.straighten * float(root @ upper) * root
        second = dgetrs(self.factors, self.pivots, lower + A.T @ straight)[0]
        first = upper - A @ second
        return first + self.straighten * float(root @ first) * root, second

    def direction(self, target: float | Floats, target_y: Floats) -> Direction:
        """Return the Newton direction towards given products of the pairs of variables."""
        path, E, S, A = self.path, self.E, self.S, self.A
        theta, z, y, s, first = path.theta, path.z, path.y, path.s, path.first
        upper = self.lack_s.copy()
        upper[first:] += (target_y / y - s)[first:]
        upper, lower = E * upper, S * (target / theta - z - self.lack_z)
        d_y, d_theta = self.solve(upper, lower)
        bent = self.bend * float(self.root @ d_y) * self.root
        more_y, more_theta = self.solve(
            upper - d_y + bent - A @ d_theta, lower + A.T @ d_y - d_theta
        )
        d_y, d_theta = E * (d_y + more_y), S * (d_theta + more_theta)
        d_s = (target_y - s * d_y) / y - s
        d_s[:first] = 0.0
        return d_theta, (target - z * d_theta) / theta - z, d_y, d_s

    def gap_after(self, t: float, d: Direction) -> float:
        """Return the complementarity gap after a step of length t in direction d."""
        path, first = self.path, self.path.first
        pairs = (path.theta + t * d[0]) @ (path.z + t * d[1])
        return float(pairs + (path.y + t * d[2])[first:] @ (path.s + t * d[3])[first:])

    def longest(self, d: Direction) -> float:
        """Return the length of the longest step, at most 1, that keeps all pairs positive."""
        path, first = self.path, self.path.first
        changes = np.concatenate((d[0], d[1], d[2][first:], d[3][first:]))
        values = np.concatenate((path.theta, path.z, path.y[first:], path.s[first:]))
        falls = changes < 0
        return min(1.0, INSIDE * float((-values[falls] / changes[falls]).min(initial=math.inf)))
