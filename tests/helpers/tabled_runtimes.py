"""Hypothesis strategy for measured passes."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
from hypothesis import strategies as st

from specopt.kinds.columns import lists_of
from specopt.kinds.serving_latency.strategies import magnitudes, runtimes
from specopt.models.pass_time import TabledRuntime
from specopt.models.pass_time.measured import PassTable
from specopt.models.pass_time.monotone import majorant


@st.composite
def tabled_runtimes(draw: st.DrawFn) -> TabledRuntime:
    """Measured passes: a small grid, times that never fall."""
    axes = [
        sorted(draw(st.sets(st.integers(least, 12), min_size=1, max_size=3))) for least in (1, 1, 0)
    ]
    points = np.array(list(itertools.product(*axes)))
    seconds = majorant(
        np.array(draw(lists_of(magnitudes(-3, 1), len(points)))).reshape(list(map(len, axes)))
    )
    batch, new, cached = points.T
    return TabledRuntime(
        passes=PassTable(batch=batch, new_tokens=new, cached_tokens=cached, seconds=seconds.ravel())
    )


MEASURED: Any = {"runtime": tabled_runtimes() | runtimes, "rounds": ("mean", "slowest")}
"""What problems of static batches may have: every form of a runtime, every count of rounds."""
