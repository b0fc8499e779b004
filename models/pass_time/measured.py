"""Tables of measured passes, and an interpolant in which more work never takes less time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product
from typing import Annotated, Self

import numpy as np

from specopt.models.errors import InvalidInput
from specopt.models.fields import (
    Checked,
    Column,
    Floats,
    FloatsLike,
    Given,
    Immutable,
    NonNegativeInt,
    OptionalNonNegatives,
    PositiveInt,
    Positives,
    Truths,
    optional,
    required,
)
from specopt.models.pass_time.monotone import isotonic, majorant, minorant
from specopt.models.pass_time.pass_time import PassTime, Which, interval

AXES = ("batch", "new_tokens", "cached_tokens")
Counts = Given[Annotated[np.ndarray, Column(PositiveInt)], FloatsLike]


@dataclass(frozen=True, kw_only=True)
class PassTable(Checked):
    """A table of measured forward passes. Each field is a column with one entry per measurement.

    A table may contain several measurements of the same kind of pass.

    Parameters
    ----------
    batch
        Number of requests in each pass.
    new_tokens
        Number of new tokens per request.
    cached_tokens
        Number of cached tokens per request. None means 0 in every pass.
    seconds
        Duration of each pass, in seconds.
    spread
        Spread of each pass's duration over repetitions, in seconds, for example the difference
        between the 90 % and 10 % quantiles. None means that the spread is not known.
    """

    batch: Counts = required()
    new_tokens: Counts = required()
    seconds: Positives = required()
    cached_tokens: Given[
        Annotated[np.ndarray, Column(NonNegativeInt)] | None, FloatsLike | None
    ] = optional()
    spread: OptionalNonNegatives = optional()

    @property
    def points(self) -> Floats:
        """Batch size, new tokens per request and cached tokens per request of every measurement,
        shape (n, 3).
        """
        cached = np.zeros(len(self.seconds)) if self.cached_tokens is None else self.cached_tokens
        return np.column_stack([self.batch, self.new_tokens, cached]).astype(np.float64)


@dataclass(frozen=True, eq=False)
class MeasuredPasses(Immutable, PassTime):
    """Pass times on a complete grid, with linear interpolation between grid points.

    At a grid point, the lower and upper limits enclose every measured time and its spread. Between
    grid points, the limits are wider by the cross-validation error, which is the error of
    interpolating a measured point from its neighbours. Limits never extend beyond the limits at
    the surrounding grid points, because a pass with more work never takes less time.

    Parameters
    ----------
    axes
        Measured batch sizes, numbers of new tokens and numbers of cached tokens. Each array is in
        increasing order.
    grids
        Fitted times and their limits at the grid points, in seconds. No grid decreases along any
        axis.
    left_out
        Maximum cross-validation error for each axis, measured in the logarithm of the time. The
        error is infinite if the axis has fewer than three points.
    moved
        Maximum relative difference between a measured time and its monotone approximation.
    """

    axes: tuple[Floats, ...]
    grids: Mapping[Which, Floats]
    left_out: tuple[float, ...]
    moved: float

    @classmethod
    def from_table(cls, table: PassTable, where: str) -> Self:
        """Build an interpolant from a table of measured passes.

        Raises
        ------
        InvalidInput
            If grid points are missing.
        """
        points = table.points
        seconds = np.asarray(table.seconds)
        spread = np.zeros(len(seconds)) if table.spread is None else table.spread
        axes, places = zip(
            *(np.unique(column, return_inverse=True) for column in points.T), strict=True
        )
        shape = tuple(len(axis) for axis in axes)
        cell = np.ravel_multi_index(places, shape)
        missing = np.setdiff1d(np.arange(np.prod(shape)), cell)
        if len(missing):
            first = (
                axis[place]
                for axis, place in zip(axes, np.unravel_index(missing[0], shape), strict=True)
            )
            at = ", ".join(f"{name} = {value:g}" for name, value in zip(AXES, first, strict=True))
            raise InvalidInput(
                f"{where}: expected a complete grid with one row for every combination of batches,"
                f" new tokens and cached tokens; {len(missing)} of {np.prod(shape)} rows are"
                f" missing, the first at {at}"
            )
        # the spread is a factor both upwards and downwards, so that lower limits remain positive
        factor = 1.0 + spread / seconds
        logs = [np.log(seconds[cell == one]) for one in range(int(np.prod(shape)))]
        middle = np.reshape([np.median(of) for of in logs], shape)
        fitted = isotonic(middle)
        low, high = np.full(shape, np.inf), np.zeros(shape)
        np.minimum.at(low.reshape(-1), cell, seconds / factor)
        np.maximum.at(high.reshape(-1), cell, seconds * factor)
        grids: dict[Which, Floats] = {
            "fitted": np.exp(fitted),
            "lower": minorant(low),
            "upper": majorant(high),
        }
        return cls(
            axes=axes,
            grids=grids,
            left_out=tuple(_left_out(grids["fitted"], axis, at) for at, axis in enumerate(axes)),
            moved=float(np.abs(np.expm1(fitted - middle)).max()),
        )

    @property
    def notes(self) -> tuple[str, ...]:  # type: ignore[override]
        """Note for the user if measured times decrease noticeably as the work increases."""
        if self.moved <= 0.05:
            return ()
        return (
            (
                "some measured times decrease as the work increases; making them monotone changed"
                f" them by up to {self.moved:.0%}, and the limits include both values"
            ),
        )

    @property
    def has_limits(self) -> bool:
        """Whether limits are known. Always true, because every grid point has limits."""
        return True

    @property
    def contexts(self) -> tuple[float, ...]:
        """Numbers of cached tokens per request at the grid points."""
        return tuple(self.axes[2].tolist())

    @property
    def measured(self) -> str:
        """Description of the measured range of every axis, used in error messages."""
        names = ("batches", "new tokens", "cached tokens")
        return ", ".join(
            interval(name, axis[0], axis[-1]) for name, axis in zip(names, self.axes, strict=True)
        )

    def covers(self, batch: Floats, new_tokens: Floats, cached_tokens: Floats) -> Truths:
        """Return a Boolean mask that is true for passes within the measured range of every axis."""
        inside = [
            (axis[0] <= np.asarray(x)) & (np.asarray(x) <= axis[-1])
            for axis, x in zip(self.axes, (batch, new_tokens, cached_tokens), strict=True)
        ]
        return np.asarray(inside[0] & inside[1] & inside[2])

    def seconds(
        self, batch: Floats, new_tokens: Floats, cached_tokens: Floats, which: Which = "fitted"
    ) -> Floats:
        """Return the interpolated duration of each pass, in seconds. Before the first point of an
        axis, the duration is constant. Beyond the last point, it is extrapolated linearly.
        """
        grid = self.grids[which]
        cells, shares = zip(
            *(
                _place(axis, x)
                for axis, x in zip(self.axes, (batch, new_tokens, cached_tokens), strict=True)
            ),
            strict=True,
        )
        found = np.zeros(np.broadcast_shapes(*(share.shape for share in shares)))
        for corner in product((0, 1), repeat=len(AXES)):
            weight, at = np.ones(()), []
            for cell, share, one, axis in zip(cells, shares, corner, self.axes, strict=True):
                weight = weight * (share if one else 1.0 - share)
                at.append(np.minimum(cell + one, len(axis) - 1))
            found = found + weight * grid[tuple(at)]
        if which == "fitted":
            return found
        between = sum(
            np.where((share > 0.0) & (share != 1.0), error, 0.0)
            for share, error in zip(shares, self.left_out, strict=True)
        )
        beyond = np.any(np.broadcast_arrays(*(share > 1.0 for share in shares)), axis=0)
        step = np.greater_equal if which == "lower" else np.greater
        edge = grid[
            tuple(
                np.minimum(cell + step(share, 1.0 if which == "lower" else 0.0), len(axis) - 1)
                for cell, share, axis in zip(cells, shares, self.axes, strict=True)
            )
        ]
        if which == "lower":
            return np.asarray(np.maximum(found * np.exp(-between), edge))
        return np.where(beyond, found, np.minimum(found * np.exp(between), edge))


def _place(axis: Floats, x: Floats) -> tuple[np.ndarray, Floats]:
    """Return the index of the interval of `axis` that contains x, and the relative position of x in
    this interval. The position exceeds 1 beyond the last point, and is 0 before the first point.
    """
    x = np.asarray(x, np.float64)
    if len(axis) == 1:
        return np.zeros(x.shape, np.int64), np.zeros(x.shape)
    cell = np.clip(np.searchsorted(axis, x, side="right") - 1, 0, len(axis) - 2)
    return cell, np.maximum((x - axis[cell]) / (axis[cell + 1] - axis[cell]), 0.0)


def _left_out(grid: Floats, axis: Floats, at: int) -> float:
    if len(axis) < 3:
        return np.inf
    values = np.moveaxis(grid, at, -1)
    share = (axis[1:-1] - axis[:-2]) / (axis[2:] - axis[:-2])
    guess = values[..., :-2] * (1.0 - share) + values[..., 2:] * share
    return float(np.abs(np.log(guess / values[..., 1:-1])).max())
