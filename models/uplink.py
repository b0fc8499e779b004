"""Upload times over a wireless uplink that is shared by all tasks in a cell (paper 1, Eq. 15)."""

from __future__ import annotations

import numpy as np

from specopt.models.fields import Floats


def spectral_efficiency(snr: Floats) -> Floats:
    """Return the spectral efficiency log2(1 + snr), in bits per second per hertz. The
    signal-to-noise ratio `snr` is on a linear scale, not in decibels.
    """
    return np.asarray(np.log1p(snr) / np.log(2.0))


def upload_seconds(bits: Floats, share: Floats, bandwidth_hz: float, snr: Floats) -> Floats:
    """Return the time that each task takes to upload its input, in seconds (Eq. 15).

    Parameters
    ----------
    bits
        Number of bits that each task sends.
    share
        Share of the bandwidth that each task receives, in (0, 1].
    bandwidth_hz
        Total bandwidth of the cell, in hertz.
    snr
        Signal-to-noise ratio of each task's uplink on a linear scale.
    """
    return np.asarray(bits / (share * bandwidth_hz * spectral_efficiency(snr)))
