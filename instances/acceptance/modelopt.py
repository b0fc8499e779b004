"""Reader for ModelOpt's ``speculation_profile.json``.

The file contains rates by position and a histogram of acceptance lengths.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeGuard

from specopt.instances.acceptance.histograms import KEY, from_histograms
from specopt.models.arguments import integer
from specopt.models.errors import InvalidInput
from specopt.models.fields import describe
from specopt.models.position_acceptance import PositionAcceptance

RATES = "conditional_accept_rates"
COUNTS = "acceptance_length_histogram"


def is_profile(data: object) -> TypeGuard[Mapping[str, Any]]:
    """Return whether the data looks like a ModelOpt profile."""
    return isinstance(data, Mapping) and RATES in data and "schema_version" in data


def from_profile(data: Mapping[str, Any], where: str) -> PositionAcceptance:
    """Return the acceptance that a ModelOpt profile contains.

    If the profile contains counts, the result includes confidence limits. The histogram counts
    steps by the number of tokens that they yield: 1, 2, ... tokens mean that 0, 1, ... draft tokens
    were accepted.

    Raises
    ------
    InvalidInput
        If the acceptance was not measured, or if a required field is missing or malformed.
    """
    if data.get("measured") is not True:
        raise InvalidInput(f"{where}.measured: expected true, got {describe(data.get('measured'))}")
    counts = data.get(COUNTS)
    if not isinstance(counts, Mapping):
        return PositionAcceptance.exactly(data[RATES])
    drafts = integer(f"{where}.num_speculative_tokens", data.get("num_speculative_tokens"), 1, 1000)
    lengths = map(str, range(1, drafts + 2))
    return from_histograms({KEY: [counts.get(length, 0) for length in lengths]}, where)
