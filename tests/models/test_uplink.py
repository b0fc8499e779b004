"""The uplink (Eq. 15)."""

from __future__ import annotations

import numpy as np
import pytest

from specopt.models.uplink import spectral_efficiency


def test_spectral_efficiency() -> None:
    """Tests that log2(1 + snr) is right where it is an integer, and where 1 + snr would lose the
    snr.
    """
    assert spectral_efficiency(np.array([1.0, 3.0, 1023.0])) == pytest.approx(
        [1.0, 2.0, 10.0], rel=1e-14
    )
    assert spectral_efficiency(np.array([1e-20]))[0] == pytest.approx(1e-20 / np.log(2), rel=1e-12)
