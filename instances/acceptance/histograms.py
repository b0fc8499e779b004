"""Reader for per-request acceptance histograms, as in vLLM's ``metrics.speculative_decoding``.

A JSON or JSON Lines file contains one or more histograms.
``acceptance_histogram[j]`` counts the steps in which exactly j draft tokens were accepted. If draft
lengths vary, additional data is needed to determine the acceptance at every position.
``acceptance_histogram_by_draft_length`` contains, for each draft length K, the numbers of steps in
which 0, 1, ..., K draft tokens were accepted. It is an object keyed by K, or a list of lists.
Alternatively, ``per_step_drafted`` and ``per_step_accepted`` contain the counts of every step. In
either case, a position is counted only in the steps in which it was drafted and all earlier tokens
were accepted.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import zip_longest
from typing import Any

import numpy as np

from specopt.models.arguments import integer, number
from specopt.models.errors import InvalidInput
from specopt.models.fields import Floats, describe
from specopt.models.position_acceptance import LEVEL, PositionAcceptance

KEY = "acceptance_histogram"
BY_LENGTH = "acceptance_histogram_by_draft_length"
DRAFTED, ACCEPTED = "per_step_drafted", "per_step_accepted"
APART_LEVEL = 1.0 - (1.0 - LEVEL) / 10.0
"""Confidence level of the intervals by which two draft lengths are compared.

If the intervals are disjoint, the acceptance is considered different.
"""

MAX_POSITIONS = 1000

ByLength = dict[int, Floats]
"""Histograms keyed by draft length K.

Each histogram contains the numbers of steps in which 0, 1, ..., K draft tokens were accepted.
"""


def histograms_in(data: object, where: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield every object that contains a histogram, at any depth, together with its path."""
    stack = [(where, data)]
    while stack:
        path, value = stack.pop()
        if isinstance(value, Mapping):
            if KEY in value or BY_LENGTH in value:
                yield path, value
            else:
                stack.extend((f"{path}.{key}", item) for key, item in reversed(list(value.items())))
        elif isinstance(value, list):
            stack.extend((f"{path}[{i}]", item) for i, item in reversed(list(enumerate(value))))


def from_histograms(data: object, where: str) -> PositionAcceptance:
    """Return the acceptance by draft position, computed over all histograms combined.

    Raises
    ------
    InvalidInput
        If no histogram is found, or if a histogram is malformed.
    """
    known: ByLength = {}
    totals = [
        (path, request, _by_length(path, request)) for path, request in histograms_in(data, where)
    ]
    if not totals:
        raise InvalidInput(f"{where}: expected an {KEY}, got none")
    for _, _, lengths in totals:
        for length, counts in (lengths or {}).items():
            known[length] = known.get(length, np.zeros(length + 1)) + counts
    if all(lengths is not None for *_, lengths in totals):
        reached, accepted = at_risk(known)
        if not len(reached) or not reached[0]:
            raise InvalidInput(f"{where}: expected steps with drafts, got none")
        return PositionAcceptance.from_counts(reached, accepted, notes=length_notes(known))
    steps, drafted, taken = zip(
        *(
            _totals(path, request) if lengths is None else _summed(lengths)
            for path, request, lengths in totals
        ),
        strict=True,
    )
    if not sum(steps):
        raise InvalidInput(f"{where}: expected steps with drafts, got none")
    accepted = np.array(list(zip_longest(*taken, fillvalue=0.0))).sum(axis=1)
    return PositionAcceptance.from_totals(sum(steps), sum(drafted), accepted, name=where)


def at_risk(known: ByLength) -> tuple[Floats, Floats]:
    """Return the numbers of steps that reached each draft position and that accepted its token.

    A step reaches a position if the position was drafted and all earlier tokens were accepted.
    """
    reached, accepted = np.zeros((2, max(known, default=0)))
    for length, counts in known.items():
        at_least = np.cumsum(counts[::-1])[::-1]
        reached[:length] += at_least[:-1]
        accepted[:length] += at_least[1:]
    return reached, accepted


def length_notes(known: ByLength) -> tuple[str, ...]:
    """Return a note if the acceptance at any position depends significantly on the draft length."""
    rates = {
        length: PositionAcceptance.from_counts(*at_risk({length: counts}), level=APART_LEVEL)
        for length, counts in known.items()
        if length and counts.sum() > 0.0
    }
    for position in range(max(rates, default=0)):
        here = [(length, found) for length, found in rates.items() if position < len(found.rates)]
        if len(here) < 2:
            continue
        low, worst = min(here, key=lambda entry: entry[1].upper[position])
        high, best = max(here, key=lambda entry: entry[1].lower[position])
        if worst.upper[position] < best.lower[position]:
            note = (
                f"acceptance depends on the draft length: position {position + 1} has"
                f" {best.rates[position]:.3f} in drafts of {high} and"
                f" {worst.rates[position]:.3f} in drafts of {low}; the rates are means over the"
                " lengths that were drafted"
            )
            return (note,)
    return ()


def _by_length(path: str, request: Mapping[str, Any]) -> ByLength | None:
    """Return a request's counts by draft length, or None if the request contains only totals."""
    if request.get(BY_LENGTH) is not None:
        found = request[BY_LENGTH]
        name = f"{path}.{BY_LENGTH}"
        if isinstance(found, list):  # the length of a row determines the draft length
            rows = [(len(row) - 1 if isinstance(row, list) else 0, row) for row in found]
        elif isinstance(found, Mapping) and all(str(key).isdecimal() for key in found):
            rows = [(int(key), row) for key, row in found.items()]
        else:
            raise InvalidInput(f"{name}: expected counts by draft length, got {describe(found)}")
        known: ByLength = {}
        for length, row in rows:
            counts = _column(f"{name}.{length}", row)
            if len(counts) != length + 1 or not 0 <= length <= MAX_POSITIONS:
                raise InvalidInput(
                    f"{name}.{length}: expected counts of steps with 0 to {length} accepted drafts,"
                    f" got {len(counts)} entries"
                )
            known[length] = known.get(length, 0.0) + counts
        return known
    drafted = request.get(DRAFTED)
    accepted = request.get(ACCEPTED)
    if drafted is None or accepted is None:
        return None
    lengths, taken = (
        _column(f"{path}.{name}", request[name]).astype(np.int64) for name in (DRAFTED, ACCEPTED)
    )
    if len(lengths) != len(taken) or (taken > lengths).any() or (lengths > MAX_POSITIONS).any():
        raise InvalidInput(
            f"{path}.{ACCEPTED}: expected one count per step, each at most the number of drafted"
            " tokens"
        )
    return {
        length: np.bincount(taken[lengths == length], minlength=length + 1).astype(np.float64)
        for length in np.unique(lengths).tolist()
    }


def _totals(path: str, request: Mapping[str, Any]) -> tuple[float, float, Floats]:
    """Return a tuple (drafts, drafted tokens, accepted tokens) with the totals of a request.

    The first two items are numbers. The last item is an array with the number of accepted tokens at
    each position.
    """
    histogram = _column(f"{path}.{KEY}", request.get(KEY))
    if not 2 <= len(histogram) <= MAX_POSITIONS:
        raise InvalidInput(
            f"{path}.{KEY}: expected counts of steps with 0, 1, ... accepted drafts, got"
            f" {len(histogram)} entries"
        )
    steps = float(histogram.sum())
    accepted = np.cumsum(histogram[::-1])[::-1][1:]
    tokens = request.get("num_draft_tokens", steps * len(accepted))
    return steps, number(f"{path}.num_draft_tokens", tokens, 0, below=1e18), accepted


def _summed(known: ByLength) -> tuple[float, float, Floats]:
    _, accepted = at_risk(known)
    steps = {length: float(counts.sum()) for length, counts in known.items() if length}
    return sum(steps.values()), sum(length * count for length, count in steps.items()), accepted


def _column(name: str, values: object) -> Floats:
    if not isinstance(values, list) or len(values) > 10_000_000:
        raise InvalidInput(f"{name}: expected a list of counts, got {describe(values)}")
    for i, value in enumerate(values):
        integer(f"{name}[{i}]", value, 0, 2**53)
    return np.array(values, np.float64)
