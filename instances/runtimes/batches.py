"""Measured batches: a table for the additive form (paper 2, Eq. 18), and which term takes their time (Fig. 11)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from specopt.instances.runtimes.table import RuntimeTable, TableColumns
from specopt.models.errors import InvalidInput
from specopt.models.fields import Floats, describe
from specopt.models.verification_time import COEFFICIENTS, VerificationTime, features

COLUMNS = ("batch_new_tokens", "batch_interactions", "batch_cached_tokens")
"""Names of the features, as `specopt measure` writes them."""

Batch = tuple[Any, Any]
"""New and cached tokens of a batch's requests, as two lists of one length."""


def batch_features(batches: Sequence[Batch]) -> Floats:
    """Return N_linear, N_interactions and N_cached of each batch (Eq. 18).

    Raises
    ------
    InvalidInput
        If a batch is empty, its lists differ in length, or a count is negative.

    Examples
    --------
    >>> batch_features([([100, 5], [0, 400])]).tolist()
    [[105.0, 12025.0, 400.0]]
    """
    rows = np.empty((len(batches), 3))
    for index, (one, other) in enumerate(batches):
        new, cached = np.asarray(one, dtype=np.float64), np.asarray(other, dtype=np.float64)
        if new.ndim != 1 or new.shape != cached.shape or len(new) == 0:
            raise InvalidInput(
                f"batches[{index}]: expected two lists of one length > 0, got {new.shape}, {cached.shape}"
            )
        if not (np.isfinite(new) & np.isfinite(cached) & (new >= 0) & (cached >= 0)).all():
            raise InvalidInput(f"batches[{index}]: expected token counts >= 0, got {describe((one, other))}")
        rows[index] = [column.sum() for column in features(new, cached)]
    return rows


def batch_table(batches: Sequence[Batch], seconds: Any) -> RuntimeTable:
    """Return measured batches as a table that `fit_runtime` takes; lines are numbers of batches, from 1.

    Raises
    ------
    InvalidInput
        If a batch is malformed, or there is not one time > 0 for each.
    """
    x, y = batch_features(batches), np.asarray(seconds, dtype=np.float64)
    if y.shape != (len(x),) or not len(x):
        raise InvalidInput(f"seconds: expected {len(x)} numbers, one per batch, got shape {y.shape}")
    good = np.isfinite(y) & (y > 0.0)
    if not good.all():
        row = int(np.argmin(good))
        raise InvalidInput(f"seconds[{row}]: expected seconds > 0, got {y[row]}")
    return RuntimeTable(
        columns=TableColumns(x=COLUMNS, y=("seconds",)),
        x=x,
        cached=np.zeros(len(x)),
        batch=np.ones(len(x)),
        seconds=y,
        lines=np.arange(1, len(x) + 1),
        source="batches",
        rows=(len(x), len(x)),
        warnings=(),
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class Regimes:
    """Which term takes the time of each batch (Fig. 11).

    Parameters
    ----------
    shares
        One row per batch: shares of the linear, interaction, cached and constant terms in the predicted time.
    names
        For each batch ``"compute-bound"`` (the linear and interaction terms take clearly more than the cached one),
        ``"memory-bound"`` (clearly less), or ``"mixed"``; the paper does not define the three.
    dominant
        For each batch the index of the largest term, in the order of `COEFFICIENTS`.
    """

    shares: Floats
    names: tuple[str, ...]
    dominant: NDArray[np.int64]

    def counts(self) -> dict[str, int]:
        """Return how many batches each regime has."""
        return {name: self.names.count(name) for name in ("compute-bound", "memory-bound", "mixed")}


def regimes(estimator: VerificationTime, batches: Sequence[Batch], *, margin: float = 0.1) -> Regimes:
    """Split the predicted time of batches by term.

    Parameters
    ----------
    estimator, batches
        Coefficients, and what they are asked for.
    margin
        A batch is mixed where compute takes between half minus and half plus this share of what is not constant.

    Raises
    ------
    InvalidInput
        If a batch is malformed, or takes no time.
    """
    if not 0.0 <= margin <= 0.5:
        raise InvalidInput(f"margin: expected a number >= 0 and <= 0.5, got {describe(margin)}")
    coefficients = np.array([getattr(estimator, name) for name in COEFFICIENTS])
    terms = np.column_stack([batch_features(batches), np.ones(len(batches))]) * coefficients
    total = terms.sum(axis=1)
    if not (total > 0.0).all():
        raise InvalidInput("batches: expected some that take time under the estimator, got one that takes none")
    moving = terms[:, :3].sum(axis=1)
    compute = np.divide(terms[:, :2].sum(axis=1), moving, out=np.full(len(terms), 0.5), where=moving > 0.0)
    names = tuple(
        "compute-bound" if one > 0.5 + margin else "memory-bound" if one < 0.5 - margin else "mixed" for one in compute
    )
    return Regimes(shares=terms / total[:, None], names=names, dominant=np.argmax(terms, axis=1).astype(np.int64))
