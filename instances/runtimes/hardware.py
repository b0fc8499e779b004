"""What a verifier's hardware can do at most, and which fitted coefficients (paper 2, Eq. 19) it cannot reach."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from specopt.models.decoder import Decoder, ExactDecoder
from specopt.models.fields import Positive, check
from specopt.models.verification_time import COEFFICIENTS, VerificationTime


@dataclass(frozen=True, kw_only=True)
class Hardware:
    """What a verifier's hardware can do at most, all devices together.

    Parameters
    ----------
    flops_per_second
        Peak rate of dense operations in the precision used.
    bytes_per_second
        Peak memory bandwidth.
    name
        Any label.
    """

    flops_per_second: Positive
    bytes_per_second: Positive
    name: str | None = None

    def __post_init__(self) -> None:
        check(self)


A100_80GB = Hardware(flops_per_second=312e12, bytes_per_second=2.039e12, name="A100 80GB SXM, BF16")
"""NVIDIA's data sheet: 312 TFLOP/s dense, 2039 GB/s."""


@dataclass(frozen=True, kw_only=True)
class RooflineRow:
    """One coefficient against the least time that the hardware needs for what it stands for.

    Parameters
    ----------
    name
        The coefficient.
    fitted, least
        Its value, and the least that the hardware can reach.
    """

    name: str
    fitted: float
    least: float

    @property
    def share_of_peak(self) -> float:
        """least / fitted: above 1 it cannot be reached; infinite where the fit is 0."""
        return self.least / self.fitted if self.fitted > 0.0 else float("inf")

    @property
    def reachable(self) -> bool:
        """Whether the hardware can do it."""
        return self.fitted >= self.least


def roofline(estimator: VerificationTime, decoder: Decoder, hardware: Hardware) -> tuple[RooflineRow, ...]:
    """Compare fitted coefficients with what peak operations and bandwidth allow, one by one.

    A new token costs its operations, a query-key interaction its attention operations (half of them in a causal block
    of new tokens: the lesser figure is taken), a cached token its bytes read, and any batch one reading of the weights.
    One coefficient below its least may be made up for by another: regression trades correlated terms. `least_seconds`
    judges whole batches, where nothing can be traded.
    """
    least = (
        decoder.flops_per_token / hardware.flops_per_second,
        0.5 * decoder.flops_per_token_pair / hardware.flops_per_second,
        decoder.kv_bytes_per_token / hardware.bytes_per_second,
        _weight_bytes(decoder) / hardware.bytes_per_second,
    )
    return tuple(
        RooflineRow(name=name, fitted=getattr(estimator, name), least=one)
        for name, one in zip(COEFFICIENTS, least, strict=True)
    )


def least_seconds(decoder: Decoder, hardware: Hardware, new_tokens: Any, cached_tokens: Any) -> float:
    """Return the least time that a batch can take: its operations at peak, or its bytes at full bandwidth.

    Operations count every new token, half of the square among new tokens, and all of their pairs with cached ones;
    bytes count the weights and the caches once.
    """
    new, cached = np.asarray(new_tokens, dtype=np.float64), np.asarray(cached_tokens, dtype=np.float64)
    pairs = float((new * cached + 0.5 * new**2).sum())
    flops = decoder.flops_per_token * float(new.sum()) + decoder.flops_per_token_pair * pairs
    moved = _weight_bytes(decoder) + decoder.kv_bytes_per_token * float(cached.sum())
    return max(flops / hardware.flops_per_second, moved / hardware.bytes_per_second)


def _weight_bytes(decoder: Decoder) -> int:
    """Return the bytes that a forward pass must read: all weights but input embeddings of their own."""
    if isinstance(decoder, ExactDecoder) and not decoder.tied:
        return decoder.parameter_bytes - decoder.hidden * decoder.vocabulary * decoder.bytes_per_value
    return decoder.parameter_bytes
