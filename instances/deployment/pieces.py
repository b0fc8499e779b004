"""Measured passes as the largest of several lines in sequences, new tokens and cached tokens."""

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
"""Contexts that are sampled if the measured range is unknown."""

WORTH_A_PIECE, ROUNDING = 0.9, 1e-9
"""One more piece has to bring the error down to this share, and by more than rounding."""


@dataclass(frozen=True, eq=False)
class Pieces:
    """Lines, and how far passes lie from them.

    Parameters
    ----------
    passes
        The lines.
    fitted
        Whether they were fitted to the passes; else they have their form.
    misfit
        Least and largest difference of a pass from the lines, relative to these.
    """

    passes: PassPieces
    fitted: bool
    misfit: tuple[float, float]

    @property
    def text(self) -> str:
        """What a list of sources says of them."""
        lines = f"{len(self.passes.rows)} lines" if len(self.passes.rows) > 1 else "one line"
        low, high = self.misfit
        off = f", passes lie {low:+.1%} to {high:+.1%} from it" if max(-low, high) > 1e-3 else ""
        return f"{'fitted by ' if self.fitted else ''}{lines}{off}"


def pieces_of(
    times: PassTime, new_tokens: Sequence[float], contexts: Sequence[float] | None = None
) -> Pieces:
    """Return passes as lines, close to those with some numbers of new tokens per sequence, and with
    some contexts; None: those that were measured.

    A form that is linear in tokens keeps its lines; operations are, but for the attention among new
    tokens, which counts as that of one. All else is sampled within what was measured and fitted,
    with least squares of relative errors.
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
    """Return the lines that a fitted form has; None: it has none."""
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
    """Return batches, new and cached tokens that were measured, or lie between such."""
    axes = np.meshgrid(BATCHES, np.asarray(new, np.float64), contexts, indexing="ij")
    points = np.column_stack([axis.ravel() for axis in axes])
    inside = np.broadcast_to(times.covers(points[:, 0], points[:, 1], points[:, 2]), len(points))
    return points[inside] if inside.any() else points


def fit_lines(work: Floats, seconds: Floats) -> Floats:
    """Return lines whose largest comes close to the times: each is fitted to the passes at which it
    is the largest.

    Parameters
    ----------
    work
        What the lines count, a column each, shape (passes, columns).
    seconds
        Of the passes.

    Returns
    -------
    Floats
        Coefficients >= 0, shape (lines, columns), by least squares of relative errors.
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
