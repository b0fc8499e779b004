"""Pictures of fitted runtimes: measurements with the fit, and residuals below."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from specopt.instances.runtime_fit import WORTH_TELLING, RuntimeFit
from specopt.models.errors import InvalidInput
from specopt.pictures import new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def fit_figure(fits: Mapping[str, RuntimeFit]) -> Figure:
    """Return a column of two panels for each fit: times, and errors relative to the measurement.

    Raises
    ------
    MissingDependency
        If matplotlib is not installed.
    """
    figure = new_figure(6.5 * len(fits), 6.0)
    axes = figure.subplots(2, len(fits), squeeze=False, height_ratios=(2, 1), sharex="col")
    for column, (name, fit) in enumerate(fits.items()):
        above, below = axes[:, column]
        x, y = fit.inputs[:, 0], fit.table.seconds
        most = float(y.max())
        scale, unit = (1.0, "s") if most >= 2.0 else (1e3, "ms") if most >= 2e-3 else (1e6, "µs")
        above.plot(x, y * scale, "o", ms=3, color="#33658a", alpha=0.6, mew=0, label="measured")
        order = np.argsort(x, kind="stable")
        style = "." if fit.form == "additive" else "-"  # it has no single abscissa
        above.plot(
            x[order], fit.predicted_seconds[order] * scale, style, color="#b5495b", ms=3, label=f"{fit.form} fit"
        )
        above.set_ylabel(f"time of a pass ({unit})")
        above.set_ylim(bottom=0.0)
        above.legend(frameon=False, loc="upper left")
        title = f"{name}: " if name else ""
        r2 = "" if fit.metrics.r2 is None else f"R² {fit.metrics.r2:.4f}, "
        above.set_title(f"{title}{fit.form}, {r2}MAPE {fit.metrics.mape:.2%}", loc="left", fontsize=10)
        below.plot(x, 100.0 * fit.relative_errors, "o", ms=3, color="#33658a", alpha=0.6, mew=0)
        below.axhline(0.0, color="#b5495b", lw=1.0)
        for bound in (-WORTH_TELLING, WORTH_TELLING):
            below.axhline(100.0 * bound, color="grey", lw=0.7, ls=":")
        below.set_ylabel("fit too slow by (%)")
        words = {"seconds_per_token": "tokens of the pass", "seconds_per_flop": "operations of the pass (FLOPs)"}
        below.set_xlabel("new tokens of the pass" if fit.form == "additive" else words[fit.slope])
        for axis in (above, below):
            axis.spines[["top", "right"]].set_visible(False)
    return figure


def draw_fits(fits: Mapping[str, RuntimeFit], path: Path) -> None:
    """Write the picture of some fits to a file.

    Raises
    ------
    InvalidInput
        If the file cannot be written.
    """
    figure = fit_figure(fits)
    try:
        figure.savefig(path)
    except OSError as error:
        raise InvalidInput(f"{path}: cannot be written ({error.strerror or error})") from None
