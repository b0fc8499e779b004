"""Reader for SGLang's gauges ``sglang:spec_accept_length`` and ``sglang:spec_accept_rate``.

The gauges report the mean number of tokens per step and the fraction of drafted tokens that were
accepted. Together they determine the draft length K, since length = 1 + rate K. They do not show
the acceptance by position.
"""

from __future__ import annotations

import re

import numpy as np

from specopt.models.acceptance import rate_that_yields
from specopt.models.errors import InvalidInput
from specopt.models.position_acceptance import PositionAcceptance

LENGTH = "sglang:spec_accept_length"
RATE = "sglang:spec_accept_rate"
WHOLE = 0.1
"""Maximum distance between the computed draft length and the nearest integer.

If the distance is larger, the gauges are rejected.
"""


def is_gauges(text: str) -> bool:
    """Return whether `text` looks like a scrape of SGLang with speculative decoding."""
    return LENGTH in text


def from_gauges(text: str, where: str) -> PositionAcceptance:
    """Return the acceptance, assuming that all K draft positions have the same acceptance rate.

    Raises
    ------
    InvalidInput
        If a gauge is missing or has several values, or if the draft length is not an integer.
    """
    found = []
    for name in (LENGTH, RATE):
        values = re.findall(rf"^{name}(?:\{{[^\n]*\}})?[ \t]+([\d.]+)", text, re.MULTILINE)
        if len(set(values)) != 1:
            raise InvalidInput(
                f"{where}: expected one value of {name}, got {', '.join(values) or 'none'}"
            )
        found.append(float(values[0]))
    length, share = found
    drafts = (length - 1.0) / share if share > 0.0 else 0.0
    count = round(drafts)
    if count < 1 or abs(drafts - count) > WHOLE:
        raise InvalidInput(
            f"{where}: expected {LENGTH} = 1 + {RATE} x an integer draft length, got {length:g} and"
            f" {share:g}; scrape both values while the draft length is constant"
        )
    rates = np.full(count, rate_that_yields(length, count))
    note = (
        f"{LENGTH} is a mean over drafts of {count}, so the same rate is assumed at every position"
    )
    return PositionAcceptance.exactly(rates, (note,))
