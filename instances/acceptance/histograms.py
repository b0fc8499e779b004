"""Acceptance histograms per request: vLLM's ``metrics.speculative_decoding``, one or many, as JSON or JSON lines.

``acceptance_histogram[j]`` counts the steps in which exactly j drafts were accepted. With ``per_step_drafted`` and
``per_step_accepted`` beside it, shorter drafts are counted exactly.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from specopt.instances.acceptance.prometheus import length_note
from specopt.models.arguments import integer, number
from specopt.models.errors import InvalidInput
from specopt.models.fields import Floats, describe
from specopt.models.position_acceptance import LEVEL, PositionAcceptance

KEY = "acceptance_histogram"
MOST_POSITIONS = 1000


def histograms_in(data: object, where: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield every object that holds a histogram, with its path, however deep it lies."""
    stack: list[tuple[str, object]] = [(where, data)]
    while stack:
        path, value = stack.pop()
        if isinstance(value, Mapping):
            if KEY in value:
                yield path, value
            else:
                stack.extend((f"{path}.{key}", item) for key, item in reversed(list(value.items())))
        elif isinstance(value, list):
            stack.extend((f"{path}[{i}]", item) for i, item in reversed(list(enumerate(value))))


def from_histograms(data: object, where: str, level: float = LEVEL) -> PositionAcceptance:
    """Return the acceptance of all requests together.

    Raises
    ------
    InvalidInput
        If there is no histogram, or one is malformed.
    """
    reached = accepted = np.zeros(0)
    drafts = tokens = 0.0
    requests = 0
    exact = True
    for path, request in histograms_in(data, where):
        n, k, known = _counts(path, request)
        size = max(len(reached), len(n))
        reached, accepted = _padded(reached, size) + _padded(n, size), _padded(accepted, size) + _padded(k, size)
        steps = float(np.sum(request[KEY]))
        drafts += steps
        tokens += float(request.get("num_draft_tokens", steps * len(n)))
        exact &= known
        requests += 1
    if not requests:
        raise InvalidInput(f"{where}: expected an {KEY}, got none")
    if not len(reached) or not reached[0]:
        raise InvalidInput(f"{where}: expected steps with drafts, got none")
    notes = () if exact else length_note(drafts, tokens, len(reached))
    return PositionAcceptance.from_counts(reached, accepted, level, notes)


def _counts(path: str, request: Mapping[str, Any]) -> tuple[Floats, Floats, bool]:
    """Return how often each position was reached and accepted, and whether draft lengths are known step by step."""
    histogram = _column(f"{path}.{KEY}", request[KEY])
    number(f"{path}.num_draft_tokens", request.get("num_draft_tokens", 0), 0, below=1e18)
    drafted, taken = request.get("per_step_drafted"), request.get("per_step_accepted")
    if drafted is not None and taken is not None:
        length, yielded = _column(f"{path}.per_step_drafted", drafted), _column(f"{path}.per_step_accepted", taken)
        if len(length) != len(yielded) or (yielded > length).any() or (length > MOST_POSITIONS).any():
            raise InvalidInput(f"{path}.per_step_accepted: expected one count per step, at most what was drafted")
        positions = np.arange(1, int(length.max(initial=0.0)) + 1)[:, None]
        reached = ((length >= positions) & (yielded >= positions - 1)).sum(axis=1).astype(np.float64)
        return reached, (yielded >= positions).sum(axis=1).astype(np.float64), True
    at_least = np.cumsum(histogram[::-1])[::-1]  # steps with at least j accepted
    return at_least[:-1], at_least[1:], False


def _column(name: str, values: object) -> Floats:
    if not isinstance(values, list) or len(values) > 10_000_000:
        raise InvalidInput(f"{name}: expected a list of counts, got {describe(values)}")
    for i, value in enumerate(values):
        integer(f"{name}[{i}]", value, 0, 2**53)
    if name.endswith(KEY) and not 2 <= len(values) <= MOST_POSITIONS:
        raise InvalidInput(
            f"{name}: expected counts of steps with 0, 1, ... accepted drafts, got {len(values)} entries"
        )
    return np.array(values, dtype=np.float64)


def _padded(values: Floats, size: int) -> Floats:
    return np.append(values, np.zeros(size - len(values)))
