"""Least squares with coefficients at or above 0, exactly, for the few columns that runtimes have."""

from __future__ import annotations

from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from specopt.models.fields import Floats

RIDGE = 1e-13
"""Added to the unit diagonal of normal equations: resamples may leave columns dependent."""


def nonnegative_least_squares(design: Floats, y: Floats) -> tuple[Floats, float]:
    """Return the coefficients >= 0 that minimise |design b - y|^2, and that sum.

    The optimum is the ordinary solution on the columns where it is positive, so that trying every set of columns finds
    it: exact up to rounding, for any rank. O(n p^2 + 2^p p^3); meant for p <= 4.

    Parameters
    ----------
    design
        Shape (n, p).
    y
        Shape (n,).
    """
    columns = design.shape[1]
    scale = np.abs(design).max(axis=0)
    scale[scale == 0.0] = 1.0
    reduced = np.asarray(np.linalg.qr(np.column_stack([design / scale, y]), mode="r"))
    matrix, right = reduced[:, :columns], reduced[:, columns]
    best, least = np.zeros(columns), float(right @ right)
    for size in range(1, columns + 1):
        for chosen in combinations(range(columns), size):
            part = matrix[:, chosen]
            found = np.linalg.lstsq(part, right, rcond=None)[0]
            if (found < 0.0).any():
                continue
            rest = right - part @ found
            if (error := float(rest @ rest)) < least:
                best, least = np.zeros(columns), error
                best[list(chosen)] = found
    return best / scale, least


def nonnegative_normal_equations(gram: Floats, right: Floats) -> tuple[Floats, Floats]:
    """Solve many problems at once from their normal equations; less accurate, for resamples and for screening.

    Parameters
    ----------
    gram
        design^T design, shape (..., p, p).
    right
        design^T y, shape (..., p).

    Returns
    -------
    tuple
        Coefficients, shape (..., p), and by how much each fit lessens |y|^2, shape (...).
    """
    columns = gram.shape[-1]
    scale = np.sqrt(np.einsum("...ii->...i", gram))
    scale = np.where(scale > 0.0, scale, 1.0)
    unit = gram / (scale[..., :, None] * scale[..., None, :]) + RIDGE * np.eye(columns)
    target = right / scale
    best, most = np.zeros_like(target), np.zeros(target.shape[:-1])
    for size in range(1, columns + 1):
        for chosen in combinations(range(columns), size):
            index = list(chosen)
            part: NDArray[np.float64] = unit[..., index, :][..., :, index] + RIDGE * np.eye(size)
            found = np.linalg.solve(part, target[..., index][..., None])[..., 0]
            gain = np.einsum("...i,...i->...", found, target[..., index])
            better = (found >= 0.0).all(axis=-1) & (gain > most)
            most = np.where(better, gain, most)
            full = np.zeros_like(target)
            full[..., index] = found
            best = np.where(better[..., None], full, best)
    return best / scale, most
