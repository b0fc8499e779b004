"""Approximation of measured passes by the maximum of several linear functions.

In this module, the linear functions are called lines. A line is linear in the numbers of sequences,
new tokens and cached tokens.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from specopt.models.fields import Floats
from specopt.models.pass_time import PassTime
from specopt.models.pass_time.fitted import FittedPasses, Operations, Tokens
from specopt.models.pass_time.pieces import PassPieces

MAX_PIECES = 4
BATCHES = np.exp2(np.arange(11.0))
CONTEXTS = (0.0, 512.0, 2048.0)
"""Numbers of cached tokens at which passes are sampled if the measured range is unknown."""

WORTH_A_PIECE, ROUNDING = 0.9, 1e-9
"""Thresholds for adding a line to the approximation.

A line is added if the error with the line is less than `WORTH_A_PIECE` times the previous error and
the difference exceeds `ROUNDING`.
"""


@dataclass(frozen=True, eq=False)
class Pieces:
    """The lines that approximate measured passes, and the errors of the approximation.

    Parameters
    ----------
    passes
        Lines whose maximum is the time of a pass.
    fitted
        Whether the lines were fitted. If false, the passes were given in the form of lines.
    misfit
        Minimum and maximum difference between the measured passes and the lines, relative to the
        lines.
    """

    passes: PassPieces
    fitted: bool
    misfit: tuple[float, float]

    @property
    def text(self) -> str:
        """Description of the lines, as shown in a list of sources."""
        lines = f"{len(self.passes.rows)} lines" if len(self.passes.rows) > 1 else "one line"
        low, high = self.misfit
        off = (
            f", from which passes differ by {low:+.1%} to {high:+.1%}"
            if max(-low, high) > 1e-3
            else ""
        )
        return f"{'fitted by ' if self.fitted else ''}{lines}{off}"


def pieces_of(
    times: PassTime, new_tokens: Sequence[float], contexts: Sequence[float] | None = None
) -> Pieces:
    """Return lines whose maximum approximates the duration of a pass.

    The passes have `new_tokens` new tokens per sequence and `contexts` cached tokens. If `contexts`
    is None, the measured contexts are used.

    A runtime that is already linear in tokens keeps its lines. Runtimes per operation are linear in
    tokens except for the attention among new tokens, which is counted as for a single new token.
    For all other runtimes, passes are sampled within the measured range, and lines are fitted by
    least squares of relative errors.
    """
    points = _samples(times, new_tokens, contexts or times.contexts or CONTEXTS)
    batch, new, cached = points.T
    seconds = times.seconds(batch, new, cached)
    work = np.column_stack([np.ones(len(points)), batch, batch * new, batch * cached])
    rows = _lines(times)
    fitted = rows is None
    if rows is None:
        rows = fit_lines(work, seconds)
    off = seconds / (work @ rows.T).max(axis=1) - 1.0
    return Pieces(
        PassPieces(rows), fitted, (float(min(0.0, off.min())), float(max(0.0, off.max())))
    )


def _lines(times: PassTime) -> Floats | None:
    """Return the lines that make up a fitted runtime, or None if the runtime is not made up of
    lines.
    """
    if not isinstance(times, FittedPasses) or not isinstance(times.work, Tokens | Operations):
        return None
    slope, overhead, reading = times.coefficients["fitted"].T
    if isinstance(times.work, Tokens):
        return np.column_stack([overhead, np.zeros(len(slope)), slope, reading])
    decoder = times.work.decoder
    logits = times.work.all_logits
    token = (
        decoder.flops_per_token + decoder.flops_per_token_pair + decoder.flops_per_logit * logits
    )
    sequence = decoder.flops_per_logit * (not logits)
    cached = decoder.flops_per_token_pair if times.work.attends else 0.0
    return np.column_stack([overhead, slope * sequence, slope * token, reading + slope * cached])


def _samples(times: PassTime, new: Sequence[float], contexts: Sequence[float]) -> Floats:
    """Return triples of batch size, new tokens and cached tokens within the measured range."""
    axes = np.meshgrid(BATCHES, np.asarray(new, np.float64), contexts, indexing="ij")
    points = np.column_stack([axis.ravel() for axis in axes])
    inside = np.broadcast_to(times.covers(*points.T), len(points))
    return points[inside] if inside.any() else points


def fit_lines(work: Floats, seconds: Floats) -> Floats:
    """Fit lines whose maximum is close to the measured times.

    Each line is fitted to the passes at which that line exceeds all other lines.

    Parameters
    ----------
    work
        Amounts of work by which the coefficients are multiplied, shape (passes, columns).
    seconds
        Measured duration of each pass, in seconds.

    Returns
    -------
    Floats
        Coefficients >= 0, shape (lines, columns), fitted by least squares of relative errors.
    """
    from scipy.optimize import nnls

    best, least = np.zeros((1, work.shape[1])), np.inf
    relative = work / seconds[:, None]
    ones = np.ones(len(seconds))
    for count in range(1, MAX_PIECES + 1):
        rows, error = best, least
        for start in (seconds, work[:, 2]):
            of = np.empty(len(seconds), np.int64)
            for piece, part in enumerate(np.array_split(np.argsort(start, kind="stable"), count)):
                of[part] = piece
            for _ in range(30):
                tried = np.array(
                    [nnls(relative[of == one], ones[of == one])[0] for one in np.unique(of)]
                )
                times = relative @ tried.T
                found = float(np.square(times.max(axis=1) - 1.0).mean()) ** 0.5
                if found < error:
                    rows, error = tried, found
                before, of = of, times.argmax(axis=1)
                if np.array_equal(before, of):
                    break
        if error < WORTH_A_PIECE * least - ROUNDING:
            best, least = rows, error
    return best
