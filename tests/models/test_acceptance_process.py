"""Rates of acceptance that change from round to round."""

from __future__ import annotations

import numpy as np
import pytest

from specopt import InvalidInput
from specopt.models.acceptance_process import AcceptanceProcess


def test_waves_and_switches_by_hand() -> None:
    """Tests that waves reach both extremes, clients after one another, and switches go to all other
    regimes alike.
    """
    waves = AcceptanceProcess.drifting([0.2, 0.1], [0.6, 0.9], 2)
    assert waves.rates.shape == (2, 1, 2) and AcceptanceProcess.fixed([0.5] * 3).clients == 3
    assert waves.rates[:, 0].tolist() == [pytest.approx([0.2, 0.9]), pytest.approx([0.6, 0.1])]
    switching = AcceptanceProcess.switching([[0.1], [0.5], [0.9]], 4.0)
    assert switching.rates.tolist() == [[[0.1], [0.5], [0.9]]]
    np.testing.assert_allclose(switching.transition, 0.125 + 0.625 * np.eye(3))
    AcceptanceProcess.switching([[0.1], [0.5]], 1)
    with pytest.raises(InvalidInput, match=r"regimes: expected at least 2 regimes, got 1"):
        AcceptanceProcess.switching([[0.1]], 4.0)
