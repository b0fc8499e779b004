"""ModelOpt's ``speculation_profile.json``: rates by position, and counts of accepted lengths."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from specopt.instances.acceptance.histograms import KEY, from_histograms
from specopt.models.arguments import integer
from specopt.models.errors import InvalidInput
from specopt.models.fields import describe
from specopt.models.position_acceptance import LEVEL, PositionAcceptance

RATES, COUNTS = "conditional_accept_rates", "acceptance_length_histogram"


def is_profile(data: object) -> bool:
    """Return whether data looks like a profile."""
    return isinstance(data, Mapping) and RATES in data and "schema_version" in data


def from_profile(data: Mapping[str, Any], where: str, level: float = LEVEL) -> PositionAcceptance:
    """Return the acceptance that was measured; with counts, also how sure it is.

    A step that yields 1, 2, ... tokens had 0, 1, ... accepted ones.

    Raises
    ------
    InvalidInput
        If it was not measured on chains, or the counts are those of another draft length.
    """
    rule = data.get("verification_method", "longest_prefix")
    if data.get("measured") is not True or rule != "longest_prefix":
        raise InvalidInput(
            f"{where}: expected measured to be true and verification_method longest_prefix, got"
            f" {describe(data.get('measured'))} and {describe(rule)}"
        )
    counts = data.get(COUNTS)
    if not isinstance(counts, Mapping):
        return PositionAcceptance.exactly(data[RATES])
    drafts = integer(f"{where}.num_speculative_tokens", data.get("num_speculative_tokens"), 1, 1000)
    steps = [counts.get(str(length), 0) for length in range(1, drafts + 2)]
    if set(counts) - {str(length) for length in range(1, drafts + 2)}:
        raise InvalidInput(
            f"{where}.{COUNTS}: expected lengths from 1 to {drafts + 1}, got {', '.join(counts)}"
        )
    return from_histograms({KEY: steps}, where, level)
