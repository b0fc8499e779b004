"""Read acceptance by position from a file, whatever reported it."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any

import numpy as np

from specopt.instances.acceptance.bench_serve import from_bench, is_bench
from specopt.instances.acceptance.histograms import from_histograms, histograms_in
from specopt.instances.acceptance.prometheus import counters, from_scrapes, is_scrape
from specopt.models.arguments import boolean, is_number
from specopt.models.errors import InvalidInput
from specopt.models.fields import describe
from specopt.models.files import refuse_constant
from specopt.models.position_acceptance import LEVEL, PositionAcceptance
from specopt.models.reading import read_bytes

KNOWN = (
    "a Prometheus scrape, an acceptance_histogram, the JSON of vllm bench serve, "
    'or {"acceptance_rates": [...]} or {"acceptance_rate": a}'
)
_PLAIN = {"acceptance_rates", "acceptance_rate", "lower", "upper", "level", "extends", "reached", "notes"}


def read_acceptance(
    path: str | os.PathLike[str],
    before: str | os.PathLike[str] | None = None,
    *,
    model: str | None = None,
    level: float = LEVEL,
) -> PositionAcceptance:
    """Return acceptance rates by draft position from what an engine reported.

    Parameters
    ----------
    path
        A Prometheus scrape of vLLM, a file of acceptance histograms (JSON or JSON lines), the JSON of ``vllm bench
        serve``, or rates of one's own: ``{"acceptance_rates": [alpha_1, ...]}``, conditional, optionally with
        ``lower`` and ``upper``, or ``{"acceptance_rate": alpha}`` for every position.
    before
        An earlier scrape; the difference counts.
    model
        The ``model_name`` to take from scrapes of an engine with several.
    level
        Confidence of the intervals.

    Raises
    ------
    InvalidInput
        If a file cannot be read or is none of these; the message names what was expected and what came.
    """
    text = _text(path)
    if is_scrape(text) and not text.lstrip().startswith(("{", "[")):
        earlier = None if before is None else counters(_text(before), str(before), model)
        return from_scrapes(earlier, counters(text, str(path), model), str(path), level)
    if before is not None:
        raise InvalidInput(f"{path}: expected a Prometheus scrape, to take the difference to {before}")
    data = _json(text, path)
    if isinstance(data, list) and data and all(is_bench(run) for run in data):  # vllm bench serve --append-result
        if len(data) > 1:
            raise InvalidInput(f"{path}: expected one run of vllm bench serve, got {len(data)}; keep the one to take")
        (data,) = data
    if is_bench(data):
        assert isinstance(data, Mapping)
        return from_bench(data, str(path), level)
    if isinstance(data, Mapping) and _PLAIN & set(data):
        return _plain(data, str(path))
    if next(histograms_in(data, ""), None) is not None:
        return from_histograms(data, str(path), level)
    raise InvalidInput(f"{path}: expected {KNOWN}; got {describe(data)}")


def _text(path: str | os.PathLike[str]) -> str:
    try:
        return read_bytes(path).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidInput(f"{path}: expected text in UTF-8: {error}") from None


def _json(text: str, path: str | os.PathLike[str]) -> object:
    if not text.strip():
        raise InvalidInput(f"{path}: expected {KNOWN}; got an empty file")
    try:
        return json.loads(text, parse_constant=refuse_constant)
    except (ValueError, RecursionError) as error:
        whole = error
    rows = []
    for number, line in enumerate(text.splitlines(), start=1):
        if line.strip():
            try:
                rows.append(json.loads(line, parse_constant=refuse_constant))
            except (ValueError, RecursionError) as error:
                if number == 1:  # no JSON lines either: the first message says more
                    raise InvalidInput(f"{path}: expected {KNOWN}; as JSON: {whole}") from None
                raise InvalidInput(f"{path}, line {number}: expected JSON: {error}") from None
    return rows


def _plain(data: Mapping[str, Any], where: str) -> PositionAcceptance:
    unknown = sorted(set(data) - _PLAIN)
    if unknown:
        raise InvalidInput(f"{where}: unknown field {unknown[0]!r}; known: {', '.join(sorted(_PLAIN))}")
    if ("acceptance_rate" in data) == ("acceptance_rates" in data):
        raise InvalidInput(f"{where}: expected either acceptance_rate or acceptance_rates")
    single = "acceptance_rate" in data
    rates = [data["acceptance_rate"]] if single else data["acceptance_rates"]
    columns = {"rates": rates}
    for name in ("lower", "upper"):
        given = data.get(name, rates)
        columns[name] = [given] if single and not isinstance(given, list) else given
    for name, values in columns.items():
        field = name if name != "rates" else "acceptance_rate" if single else "acceptance_rates"
        if not isinstance(values, list) or not values or not all(_is_rate(value) for value in values):
            raise InvalidInput(f"{where}.{field}: expected numbers in [0, 1], got {describe(data.get(field))}")
    extends = boolean(f"{where}.extends", data.get("extends", single))
    try:
        rates, lower, upper = (np.array(columns[name], dtype=np.float64) for name in ("rates", "lower", "upper"))
        return PositionAcceptance(rates=rates, lower=lower, upper=upper, extends=extends, notes=_notes(data))
    except (InvalidInput, OverflowError) as error:
        raise InvalidInput(f"{where}: {error}") from None


def _is_rate(value: object) -> bool:
    return is_number(value) and 0 <= value <= 1


def _notes(data: Mapping[str, Any]) -> tuple[str, ...]:
    notes = data.get("notes", [])
    return tuple(str(note) for note in notes) if isinstance(notes, list) else (str(notes),)
