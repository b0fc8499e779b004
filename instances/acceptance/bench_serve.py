"""Reader for the ``spec_decode_*`` keys in the JSON output of ``vllm bench serve``.

``spec_decode_per_position_acceptance_rates`` contains, for each position, the fraction of drafts
that were accepted up to and including that position. ``spec_decode_acceptance_rate`` is not used,
because that key contains the fraction of drafted tokens that were accepted, which is not an
acceptance rate alpha.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeGuard

import numpy as np

from specopt.models.arguments import number
from specopt.models.errors import InvalidInput
from specopt.models.fields import describe
from specopt.models.position_acceptance import PositionAcceptance

PREFIX = "spec_decode_"
RATES = f"{PREFIX}per_position_acceptance_rates"
MOST = 1e18
"""Largest count that is considered valid."""


def is_bench(data: object) -> TypeGuard[Mapping[str, Any]]:
    """Return whether the data looks like the output of ``vllm bench serve`` with speculative
    decoding.
    """
    return isinstance(data, Mapping) and any(
        isinstance(key, str) and key.startswith(PREFIX) for key in data
    )


def from_bench(data: Mapping[str, Any], where: str) -> PositionAcceptance:
    """Return the acceptance by draft position from the output of ``vllm bench serve``.

    The result includes confidence limits if the data contains ``spec_decode_num_drafts``.

    Raises
    ------
    InvalidInput
        If the rates per position are missing or malformed, or if they contradict the totals.
    """
    rates = data.get(RATES)
    if not isinstance(rates, list) or not rates:
        raise InvalidInput(f"{where}.{RATES}: expected a list of rates, got {describe(rates)}")
    known = PositionAcceptance.from_cumulative(
        [number(f"{where}.{RATES}[{i}]", rate, 0, 1) for i, rate in enumerate(rates)]
    )
    drafts = _count(data, "num_drafts", where)
    tokens = _count(data, "draft_tokens", where)
    accepted = _count(data, "accepted_tokens", where)
    if drafts is None:
        return known
    if drafts == 0.0:
        raise InvalidInput(f"{where}.{PREFIX}num_drafts: expected drafts, got none")
    counts = np.round(np.array(rates) * drafts)
    if accepted is not None and abs(counts.sum() - accepted) > 0.5 * len(counts) + 1e-6 * accepted:
        raise InvalidInput(
            f"{where}.{PREFIX}accepted_tokens: expected {counts.sum():.0f}, the rates times"
            f" {drafts:.0f} drafts, got {accepted:.0f}"
        )
    return PositionAcceptance.from_totals(
        drafts, drafts * len(rates) if tokens is None else tokens, counts, name=where
    )


def _count(data: Mapping[str, Any], name: str, where: str) -> float | None:
    value = data.get(f"{PREFIX}{name}")
    return None if value is None else number(f"{where}.{PREFIX}{name}", value, 0, below=MOST)
