"""What hardware can reach: published and honest coefficients against an A100."""

from __future__ import annotations

import numpy as np
import pytest
from papers.paper_2_audits import SECTION_4_4, least_seconds

from specopt.instances.verification_batch.workload import TABLE_12
from specopt.models.pass_time import VerificationTime

pytestmark = pytest.mark.nightly

COLD = [([length], [0]) for length in (150, 300, 600, 1200)]


def test_published_coefficients_beat_an_a100() -> None:
    """Tests that both published sets of coefficients beat an A100 on cold batches, and that honest
    ones do not.
    """
    least = [least_seconds(*batch) for batch in COLD]

    def seconds(estimator: VerificationTime) -> list[float]:
        return [estimator.seconds(np.array(new), np.array(cached)) for new, cached in COLD]

    assert all(np.less(seconds(TABLE_12), least))
    printed = VerificationTime(
        seconds_per_new_token=SECTION_4_4.seconds_per_new_token,
        seconds_per_interaction=SECTION_4_4.seconds_per_interaction,
        seconds_per_cached_token=SECTION_4_4.seconds_per_cached_token,
        overhead_seconds=0.0,
    )
    assert all(np.less(seconds(printed), least))
    slow = VerificationTime(
        seconds_per_new_token=4e-4,
        seconds_per_interaction=1e-8,
        seconds_per_cached_token=1e-6,
        overhead_seconds=0.04,
    )
    assert all(np.greater_equal(seconds(slow), least))


def test_least_seconds_by_hand() -> None:
    """Tests that one token takes one reading of the 64 GB of weights, and a long prompt its
    operations.
    """
    weights = 2 * (
        64 * (5120 * 64 * 128 * 2 + 5120 * 8 * 128 * 2 + 3 * 5120 * 25600) + 151936 * 5120
    )
    assert least_seconds([1], [0]) == pytest.approx(weights / 2.039e12, rel=1e-3)
    assert least_seconds([1], [1000]) - least_seconds([1], [0]) == pytest.approx(
        1000 * 64 * 2 * 8 * 128 * 2 / 2.039e12
    )
    assert least_seconds([10_000], [0]) > 10_000 * weights / 312e12
