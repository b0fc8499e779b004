"""Quantised distributions: the bits of Eq. 6 at all resolutions, and the nearest lattice point."""

from __future__ import annotations

import math
import time

import numpy as np
from table import Benchmark, Row, median_seconds

from specopt.instances.drafts.softmax_pairs import softmax_pairs
from specopt.models.codes.lattice import all_distribution_bits, nearest_counts


def bits(smoke: bool) -> list[Row]:
    """Exact bits against Python's big integers, one binomial per resolution."""
    vocabulary, most = (100, 50) if smoke else (50_272, 10_000)
    ours = median_seconds(lambda: all_distribution_bits(most, vocabulary), 11)
    few = range(1, most + 1, max(1, most // 20))
    started = time.perf_counter()
    for resolution in few:
        (math.comb(resolution + vocabulary - 1, resolution) - 1).bit_length()
    rival = (time.perf_counter() - started) / len(few) * most
    return [
        Row(
            f"exact bits of all {most:,} resolutions, V = {vocabulary:,}, against big integers (extrapolated)",
            f"{1e3 * ours:.2f} ms; {rival / ours:.0f} times faster",
            "100 ms",
            ours <= 0.1,
        )
    ]


def nearest(smoke: bool) -> list[Row]:
    """Milliseconds per distribution, in batches of 32."""
    vocabulary = 500 if smoke else 50_272
    rows = []
    for temperature in (0.2, 1.0):
        pairs = softmax_pairs(32, vocabulary_size=vocabulary, temperature=temperature, seed=0)
        for resolution in (100, 10_000):
            seconds = median_seconds(lambda p=pairs.draft_laws, r=resolution: nearest_counts(p, r), 5) / 32
            rows.append(
                Row(
                    f"nearest lattice point, V = {vocabulary:,}, T = {temperature:g}, resolution {resolution:,}",
                    f"{1e3 * seconds:.2f} ms per distribution",
                    "5 ms",
                    bool(np.isfinite(seconds)) and seconds <= 5e-3,
                )
            )
    return rows


BENCHMARKS = (
    Benchmark("quantisation: bits of Eq. 6", bits),
    Benchmark("quantisation: nearest lattice points", nearest),
)
