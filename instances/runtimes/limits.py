"""Confidence limits for fitted coefficients.

The limits are designed for few rows and for noise of any distribution.
"""

from __future__ import annotations

import numpy as np

from specopt.models.fields import Floats

METHOD = "Student's t with HC2 variances and Bell-McCaffrey degrees of freedom"

OWN = 1e-9
"""Smallest fraction of a row's noise that its residual must retain.

If the residual retains less, the fit passes through the row regardless of the measured time.
"""


def confidence_limits(
    design: Floats, coefficients: Floats, seconds: Floats, weights: Floats, level: float
) -> tuple[Floats, Floats]:
    """Return lower and upper confidence limits for nonnegative coefficients.

    The fitted values lie between the limits.

    The variance of each row is estimated from that row's squared residual, whose expectation a fit
    multiplies by 1 - leverage (HC2, MacKinnon and White, 1985). The noise may therefore be larger
    for longer passes, regardless of which errors the fit minimised. The degrees of freedom of
    Student's t are those that such variances would have under equal noise (Bell and McCaffrey,
    2002), so few rows yield wide limits. In tests, bootstrap percentile intervals were too wide for
    8 or 12 rows and too narrow for 40 rows.

    If the rows do not determine a coefficient, its lower limit is 0. Its upper limit is the largest
    value for which the coefficient's own term does not exceed the predicted time of any row.

    Parameters
    ----------
    design
        Derivatives of the predictions with respect to the coefficients, shape (n, p). Multiplied by
        the coefficients, they yield the predictions.
    coefficients
        Fitted coefficients, shape (p,).
    seconds
        Measured duration of each row, in seconds, shape (n,).
    weights
        Weight of each row in the fit, shape (n,).
    level
        Confidence level.
    """
    from scipy.special import stdtrit

    predicted = design @ coefficients
    most = np.divide(
        predicted[:, None], design, out=np.full(design.shape, np.inf), where=design > 0.0
    ).min(axis=0)
    lower = np.zeros_like(coefficients)
    upper = np.where(np.isfinite(most), most, coefficients)

    weighted = design * weights[:, None]
    scale = np.abs(weighted).max(axis=0)
    scale[scale == 0.0] = 1.0
    u, sizes, v = np.linalg.svd(weighted / scale, full_matrices=False)
    kept = sizes > 1e-10 * sizes[0]
    free = len(seconds) - int(kept.sum())
    known = (np.abs(v[~kept]) < 1e-6).all(axis=0)
    if free:
        u, inverse = u[:, kept], v[kept].T / sizes[kept] @ u[:, kept].T
        centre = inverse @ (weights * seconds)
        residuals = weights * seconds - weighted / scale @ centre
        keeps = 1.0 - (u**2).sum(axis=1)
        own = keeps > OWN
        shares = inverse**2  # share of each row's variance in that of a coefficient, shape (p, n)
        pooled = float(residuals @ residuals) / free
        variances = shares @ np.where(own, residuals**2 / np.where(own, keeps, 1.0), pooled)
        of = np.where(own, shares / np.where(own, keeps, 1.0), 0.0)
        spread = (of**2 * (2.0 * keeps - 1.0)).sum(axis=1) + (
            np.einsum("kn,ni,nj->kij", of, u, u, optimize=True) ** 2
        ).sum(axis=(1, 2))
        spread += (shares * ~own).sum(axis=1) ** 2 / free
        freedom = np.clip(shares.sum(axis=1) ** 2 / np.maximum(spread, 1e-300), 1.0, free)
        half = stdtrit(freedom, 0.5 * (1.0 + level)) * np.sqrt(variances)
        lower = np.where(known, (centre - half) / scale, lower)
        upper = np.where(known, (centre + half) / scale, upper)
    return np.clip(lower, 0.0, coefficients), np.maximum(upper, coefficients)
