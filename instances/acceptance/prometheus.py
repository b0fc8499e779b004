"""Reader for vLLM's Prometheus counters for speculative decoding.

The acceptance comes from one scrape of ``/metrics``, or from the difference between two scrapes.
The counters are ``vllm:spec_decode_num_drafts_total``, ``..._num_draft_tokens_total``,
``..._num_accepted_tokens_total`` and ``..._num_accepted_tokens_per_pos_total{position="0"}``. They
count the drafts, the drafted tokens, the accepted tokens, and the accepted tokens at each position
(starting at 0). Counters of all engines that serve the same model are added.
"""

from __future__ import annotations

import re
from typing import NamedTuple

import numpy as np

from specopt.instances.reading.fields import decimal
from specopt.models.errors import InvalidInput
from specopt.models.position_acceptance import PositionAcceptance

PREFIX = "vllm:spec_decode_num_"
TOTALS = ("drafts", "draft_tokens", "accepted_tokens")
_SAMPLE = re.compile(
    r"(?P<name>[A-Za-z_:][\w:]*)\s*(?:\{(?P<labels>(?:[^\"}]|\"(?:[^\"\\]|\\.)*\")*)\})?\s+(?P<value>\S+)"
    r"(?:\s+[-+]?\d+(?:\.\d+)?)?\s*\Z",
    re.ASCII,
)
_LABEL = re.compile(r"([A-Za-z_]\w*)\s*=\s*\"((?:[^\"\\]|\\.)*)\"", re.ASCII)


class Counters(NamedTuple):
    """The speculative-decoding counters for one model.

    The fields are the number of drafts, the number of drafted tokens, the number of accepted
    tokens, and the number of accepted tokens at each position.
    """

    drafts: float
    draft_tokens: float
    accepted_tokens: float
    accepted_at: tuple[float, ...]


def is_scrape(text: str) -> bool:
    """Return whether `text` looks like a scrape of a vLLM engine that uses speculative decoding."""
    return PREFIX in text


def counters(text: str, where: str, model: str | None = None) -> Counters:
    """Return one model's counters from a scrape.

    Parameters
    ----------
    text
        The scrape as a string in the Prometheus text format.
    where
        Name of the file, used in messages.
    model
        Value of the label ``model_name`` that selects the model; None if the scrape contains only
        one model.

    Raises
    ------
    InvalidInput
        If a line is malformed, if a counter is missing or occurs twice, or if the model is
        ambiguous or unknown.
    """
    found: dict[str, dict[str, dict[int, float]]] = {}
    seen: set[tuple[str, frozenset[tuple[str, str]]]] = set()
    for number, line in enumerate(text.splitlines(), start=1):
        line = line.strip()
        if not line.startswith(PREFIX):
            continue
        match = _SAMPLE.match(line)
        if match is None:
            raise InvalidInput(
                f"{where}, line {number}: expected name{{labels}} value, got {line[:80]!r}"
            )
        name = match["name"].removeprefix(PREFIX).removesuffix("_total")
        if name.endswith("_created"):
            continue
        labels = dict(_LABEL.findall(match["labels"] or ""))
        key = (name, frozenset(labels.items()))
        if key in seen:
            raise InvalidInput(
                f"{where}, line {number}: {PREFIX}{name} appears twice with the same labels; write"
                " each scrape to a separate file"
            )
        seen.add(key)
        value = _value(match["value"], where, number)
        position = 0
        if name == "accepted_tokens_per_pos":
            text_position = labels.get("position", "")
            if not (
                text_position.isascii() and text_position.isdecimal() and int(text_position) < 1000
            ):
                raise InvalidInput(
                    f'{where}, line {number}: expected position="0", "1", ..., got'
                    f" {text_position!r}"
                )
            position = int(text_position)
        series = found.setdefault(labels.get("model_name", ""), {}).setdefault(name, {})
        series[position] = series.get(position, 0.0) + value
    if not found:
        raise InvalidInput(
            f"{where}: expected counters {PREFIX}*, got none; is speculative decoding enabled?"
        )
    if model is None:
        if len(found) > 1:
            raise InvalidInput(
                f"{where}: expected exactly one model, got several ({', '.join(sorted(found))});"
                " select one by name"
            )
        (model,) = found
    if model not in found:
        raise InvalidInput(
            f"{where}: expected model_name {model!r}, got {', '.join(sorted(found))}"
        )
    return _counters(found[model], where)


def from_scrapes(before: Counters | None, after: Counters, where: str) -> PositionAcceptance:
    """Return the acceptance between two scrapes, or since the engine started if `before` is None.

    Raises
    ------
    InvalidInput
        If a counter decreased, if nothing was drafted, or if the counters contradict each other.
    """
    before = before or Counters(0.0, 0.0, 0.0, ())
    for name, old, new in zip(TOTALS, before[:3], after[:3], strict=True):
        if new < old:
            raise InvalidInput(
                f"{where}: {PREFIX}{name} decreased from {old:.0f} to {new:.0f}: the scrapes are in"
                " the wrong order, or the engine restarted between them"
            )
    further = len(after.accepted_at) - len(before.accepted_at)
    if further < 0:
        raise InvalidInput(
            f"{where}: expected at least {len(before.accepted_at)} positions, got"
            f" {len(after.accepted_at)}"
        )
    accepted = np.array(after.accepted_at) - np.pad(before.accepted_at, (0, further))
    drafts = after.drafts - before.drafts
    if drafts <= 0.0:
        raise InvalidInput(f"{where}: expected drafts between the scrapes, got none")
    if (accepted < 0.0).any() or (accepted > np.concatenate(([drafts], accepted[:-1]))).any():
        raise InvalidInput(
            f"{where}: expected accepted-token counts that do not increase with position and do not"
            f" exceed the number of drafts ({drafts:.0f}), got"
            f" {', '.join(f'{count:.0f}' for count in accepted)}"
        )
    total = after.accepted_tokens - before.accepted_tokens
    if abs(float(accepted.sum()) - total) > 0.5:
        raise InvalidInput(
            f"{where}: the positions' accepted tokens sum to {accepted.sum():.0f}, but {total:.0f}"
            " were accepted in total"
        )
    return PositionAcceptance.from_totals(
        drafts, after.draft_tokens - before.draft_tokens, accepted, name=where
    )


def _counters(series: dict[str, dict[int, float]], where: str) -> Counters:
    at = series.get("accepted_tokens_per_pos", {})
    if sorted(at) != list(range(len(at))) or not at:
        raise InvalidInput(
            f"{where}: expected {PREFIX}accepted_tokens_per_pos_total for the positions 0, 1, ..., "
            f"got {', '.join(map(str, sorted(at))) or 'none'}"
        )
    for name in TOTALS:
        if name not in series:
            raise InvalidInput(f"{where}: expected a counter {PREFIX}{name}_total, got none")
    drafts, draft_tokens, accepted_tokens = (series[name][0] for name in TOTALS)
    return Counters(drafts, draft_tokens, accepted_tokens, tuple(at[j] for j in sorted(at)))


def _value(text: str, where: str, number: int) -> float:
    value = decimal(text)
    if value is None or value < 0.0:
        raise InvalidInput(f"{where}, line {number}: expected a count >= 0, got {text[:40]!r}")
    return value
