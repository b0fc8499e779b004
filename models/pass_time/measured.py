"""A table of measured passes, interpolated so that more work never takes less time."""

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
    NonNegative,
    NonNegativeInt,
    Positive,
    PositiveInt,
    Truths,
    optional,
    required,
)
from specopt.models.pass_time.monotone import isotonic, majorant, minorant
from specopt.models.pass_time.pass_time import PassTime, Which, interval

AXES = ("batch", "new_tokens", "cached_tokens")


@dataclass(frozen=True, kw_only=True)
class PassTable(Checked):
    """Measured passes in long format: columns of one length, a row per measured point; equal points
    are repeats.

    Parameters
    ----------
    batch, new_tokens
        Requests, and new tokens of each.
    cached_tokens
        Tokens that each request has cached; default: none.
    seconds
        Time of the pass.
    spread
        How far repeats of it lie apart, as from their 10 % to their 90 % quantile; default: not
        known.
    """

    batch: Given[Annotated[np.ndarray, Column(PositiveInt, "points")], FloatsLike] = required()
    new_tokens: Given[Annotated[np.ndarray, Column(PositiveInt, "points")], FloatsLike] = required()
    seconds: Given[Annotated[np.ndarray, Column(Positive, "points")], FloatsLike] = required()
    cached_tokens: Given[
        Annotated[np.ndarray, Column(NonNegativeInt, "points")] | None, FloatsLike | None
    ] = optional()
    spread: Given[
        Annotated[np.ndarray, Column(NonNegative, "points")] | None, FloatsLike | None
    ] = optional()

    @property
    def points(self) -> Floats:
        """Batch, new and cached tokens, shape (n, 3)."""
        cached = np.zeros(len(self.seconds)) if self.cached_tokens is None else self.cached_tokens
        return np.column_stack([self.batch, self.new_tokens, cached]).astype(np.float64)


@dataclass(frozen=True, eq=False)
class MeasuredPasses(Immutable, PassTime):
    """Times on a complete grid, linear between its points.

    At a point the limits hold every time measured there, its spread included. Between points they
    widen by the error of the interpolation where a measured point is left out, but not beyond what
    the points around allow. A pass takes no less than one of less work, and no more than one of
    more.

    Parameters
    ----------
    axes
        Measured batches, new tokens and cached tokens, increasing.
    grids
        Seconds, and their limits, each never decreasing.
    left_out
        By axis: largest error of the logarithm of a point's time, interpolated from its neighbours;
        infinite where no point has two.
    moved
        Largest relative difference between a measured time and the monotone one.
    """

    axes: tuple[Floats, ...]
    grids: Mapping[Which, Floats]
    left_out: tuple[float, ...]
    moved: float

    @classmethod
    def from_table(cls, table: PassTable, where: str) -> Self:
        """Return the interpolation of a table.

        Raises
        ------
        InvalidInput
            If points of the grid are missing.
        """
        points, seconds = table.points, np.asarray(table.seconds)
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
                f"{where}: expected a complete grid, a row for every combination of the batches,"
                f" new tokens and cached tokens in it; {len(missing)} of {np.prod(shape)} are"
                f" missing, the first at {at}"
            )
        # a spread widens times as a factor, downwards as well: no noise makes a pass take no time
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
        """Say where measurements were not monotone."""
        if self.moved <= 0.05:
            return ()
        return (
            (
                "some measured times fall where the work grows; made monotone, times moved by up"
                f" to {self.moved:.0%}, and the limits hold both"
            ),
        )

    @property
    def has_limits(self) -> bool:
        """A table always has limits: between its points, if nowhere else."""
        return True

    @property
    def contexts(self) -> tuple[float, ...]:
        """Return the cached tokens of the points."""
        return tuple(self.axes[2].tolist())

    @property
    def measured(self) -> str:
        """Return the range of every axis."""
        names = ("batches", "new tokens", "cached tokens")
        return ", ".join(
            interval(name, axis[0], axis[-1]) for name, axis in zip(names, self.axes, strict=True)
        )

    def covers(self, batch: Floats, new_tokens: Floats, cached_tokens: Floats) -> Truths:
        """Return which passes lie in the grid's box."""
        inside = [
            (axis[0] <= np.asarray(x)) & (np.asarray(x) <= axis[-1])
            for axis, x in zip(self.axes, (batch, new_tokens, cached_tokens), strict=True)
        ]
        return np.asarray(inside[0] & inside[1] & inside[2])

    def seconds(
        self, batch: Floats, new_tokens: Floats, cached_tokens: Floats, which: Which = "fitted"
    ) -> Floats:
        """Return the interpolation; beyond the last point the last slope goes on, below the first
        its value holds.
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
    """Return the cell that x is in, and how far it is through it: beyond 1 behind the last point,
    never below 0.
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
