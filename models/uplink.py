"""Upload times over the wireless uplink that the tasks in a cell share (paper 1, Eq. 15)."""

from __future__ import annotations

import numpy as np

from specopt.models.fields import Floats


def spectral_efficiency(snr: Floats) -> Floats:
    """Return the spectral efficiency log2(1 + snr), in bit/s per hertz. `snr` is a linear ratio,
    not in decibels.
    """
    return np.asarray(np.log1p(snr) / np.log(2.0))


def upload_seconds(bits: Floats, share: Floats, bandwidth_hz: float, snr: Floats) -> Floats:
    """Return how long each task takes to upload its bits with its share of the bandwidth, in
    seconds (Eq. 15).

    Parameters
    ----------
    bits
        Number of bits that each task sends.
    share
        Share of the bandwidth that each task receives, in (0, 1].
    bandwidth_hz
        Total bandwidth of the cell.
    snr
        Linear signal-to-noise ratio of each task.
    """
    return np.asarray(bits / (share * bandwidth_hz * spectral_efficiency(snr)))
