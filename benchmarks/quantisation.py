"""Quantised distributions: the nearest lattice point."""

from __future__ import annotations

import numpy as np
from papers.lattice_points import nearest_counts
from papers.softmax_pairs import softmax_pairs
from table import Benchmark, Row, median_seconds


def nearest(smoke: bool) -> list[Row]:
    """Measure milliseconds per distribution, in batches of 32."""
    vocabulary = 500 if smoke else 50_272
    rows = []
    for temperature in (0.2, 1.0):
        pairs = softmax_pairs(32, vocabulary_size=vocabulary, temperature=temperature, seed=0)
        for resolution in (100, 10_000):
            seconds = (
                median_seconds(lambda p=pairs.draft_laws, r=resolution: nearest_counts(p, r), 5)
                / 32
            )
            rows.append(
                Row(
                    f"nearest lattice point, V = {vocabulary:,}, T = {temperature:g}, resolution"
                    f" {resolution:,}",
                    f"{1e3 * seconds:.2f} ms per distribution",
                    "5 ms",
                    bool(np.isfinite(seconds)) and seconds <= 5e-3,
                )
            )
    return rows


BENCHMARKS = (Benchmark("quantisation: nearest lattice points", nearest),)
