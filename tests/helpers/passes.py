"""Pass times from data, and the seconds of one pass."""

from __future__ import annotations

from typing import Any

import numpy as np

from specopt.models.pass_time import PassTime, Which, pass_time

WHICH: tuple[Which, ...] = ("lower", "fitted", "upper")


def made(data: Any, **settings: Any) -> PassTime:
    """Return a pass time without a model unless one is given."""
    return pass_time(data, "file", **{"decoder": None, "all_logits": True, **settings})


def at(
    time: PassTime, batch: float, new: float, cached: float = 0.0, which: Which = "fitted"
) -> float:
    """Return the seconds of one pass."""
    return float(
        time.seconds(np.array(float(batch)), np.array(float(new)), np.array(float(cached)), which)
    )
