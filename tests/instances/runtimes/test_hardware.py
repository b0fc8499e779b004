"""What hardware can reach: published and honest coefficients against an A100."""

from __future__ import annotations

import numpy as np

from specopt import ExactDecoder
from specopt.instances.runtimes.hardware import A100_80GB, Hardware, least_seconds, roofline
from specopt.models.verification_time import VerificationTime

TABLE_12 = VerificationTime(
    seconds_per_new_token=3.314e-5,
    seconds_per_interaction=3.450e-8,
    seconds_per_cached_token=4.620e-6,
    overhead_seconds=1.486e-2,
)
QWEN3_32B = ExactDecoder(
    layers=64, hidden=5120, ffn=25600, heads=64, kv_heads=8, head_dim=128, gated=True, vocabulary=151936, tied=False
)

Batch = tuple[list[int], list[int]]


def test_roofline_flags_what_an_a100_cannot_reach() -> None:
    """Tests that both published coefficient sets beat an A100 on cold batches, and that honest ones do not."""
    cold: list[Batch] = [([length], [0]) for length in (150, 300, 600, 1200)]
    rows = {row.name: row for row in roofline(TABLE_12, QWEN3_32B, A100_80GB)}
    assert not rows["seconds_per_new_token"].reachable
    assert rows["seconds_per_new_token"].share_of_peak > 5
    assert not rows["overhead_seconds"].reachable  # one reading of 65 GB takes 32 ms
    assert rows["seconds_per_cached_token"].reachable
    least = [least_seconds(QWEN3_32B, A100_80GB, *batch) for batch in cold]

    def seconds(estimator: VerificationTime) -> list[float]:
        return [estimator.seconds(np.array(new), np.array(cached)) for new, cached in cold]

    assert all(np.less(seconds(TABLE_12), least))
    printed = VerificationTime(
        seconds_per_new_token=143.39e-6,
        seconds_per_interaction=2.53e-9,
        seconds_per_cached_token=2.67e-6,
        overhead_seconds=0.0,
    )
    assert all(np.less(seconds(printed), least))
    slow = VerificationTime(
        seconds_per_new_token=4e-4, seconds_per_interaction=1e-8, seconds_per_cached_token=1e-6, overhead_seconds=0.04
    )
    assert all(row.reachable for row in roofline(slow, QWEN3_32B, A100_80GB))
    assert all(np.greater_equal(seconds(slow), least))
    free = Hardware(flops_per_second=1e30, bytes_per_second=1e30)
    assert least_seconds(QWEN3_32B, free, [10], [10]) < 1e-12
