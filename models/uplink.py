"""The wireless uplink shared by the tasks of one cell (paper 1, Eq. 15)."""

from __future__ import annotations

import numpy as np

from specopt.models.fields import Floats


def spectral_efficiency(snr: Floats) -> Floats:
    """Return log2(1 + snr), in bit/s per hertz; `snr` is linear, not in decibels."""
    return np.asarray(np.log1p(snr) / np.log(2.0))


def upload_seconds(bits: Floats, share: Floats, bandwidth_hz: float, snr: Floats) -> Floats:
    """Return the seconds that each task needs to upload its bits over its share of the band (Eq.
    15).

    Parameters
    ----------
    bits
        Number of bits to send, for each task.
    share
        Share of the bandwidth in (0, 1], for each task.
    bandwidth_hz
        Bandwidth of the whole cell.
    snr
        Linear signal-to-noise ratio of each task.
    """
    return np.asarray(bits / (share * bandwidth_hz * spectral_efficiency(snr)))
