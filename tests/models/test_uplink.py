"""The uplink (Eq. 15)."""

from __future__ import annotations

import numpy as np
import pytest

from specopt.models.uplink import spectral_efficiency, upload_seconds


def test_spectral_efficiency() -> None:
    """Tests that log2(1 + snr) is right where it is an integer, and where 1 + snr would lose the
    snr.
    """
    assert spectral_efficiency(np.array([1.0, 3.0, 1023.0])) == pytest.approx(
        [1.0, 2.0, 10.0], rel=1e-14
    )
    assert spectral_efficiency(np.array([1e-20]))[0] == pytest.approx(1e-20 / np.log(2), rel=1e-12)


def test_upload_seconds_by_hand() -> None:
    """Tests that 1000 bits over a quarter of 100 Hz at 2 bit/s/Hz go at 50 bit/s."""
    found = upload_seconds(np.array([1000.0]), np.array([0.25]), 100.0, np.array([3.0]))
    assert found == pytest.approx([20.0], rel=1e-14)
