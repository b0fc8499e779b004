"""Reader for files that report acceptance by position or by draft length, in any known format."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from specopt.instances.acceptance.bench_serve import from_bench, is_bench
from specopt.instances.acceptance.golden import from_golden, from_own, is_golden
from specopt.instances.acceptance.histograms import from_histograms, histograms_in
from specopt.instances.acceptance.modelopt import from_profile, is_profile
from specopt.instances.acceptance.prometheus import counters, from_scrapes, is_scrape
from specopt.instances.acceptance.sglang import from_gauges, is_gauges
from specopt.instances.acceptance.speculators import from_acceptance_table, is_acceptance_table
from specopt.instances.reading.json_documents import documents_in
from specopt.models.acceptance_lengths import Acceptance
from specopt.models.arguments import boolean, is_number, number, only_fields, sequence
from specopt.models.errors import InvalidInput
from specopt.models.fields import Floats, describe
from specopt.models.files import refuse_constant
from specopt.models.position_acceptance import PositionAcceptance
from specopt.models.reading import StrPath, read_text

KNOWN = (
    "a Prometheus scrape of vLLM or SGLang, an acceptance_histogram, the JSON of vllm bench serve,"
    " ModelOpt's speculation_profile.json, speculators' acceptance CSV, golden acceptance"
    ' lengths, or {"acceptance_rates": [...]}, {"acceptance_rate": a} or {"acceptance_lengths":'
    ' {"1": tokens, ...}}'
)

_PLAIN = {
    "acceptance_rates",
    "acceptance_rate",
    "lower",
    "upper",
    "tokens_lower",
    "tokens_upper",
    "level",
    "extends",
    "reached",
    "notes",
}


def read_acceptance(
    path: StrPath,
    before: StrPath | None = None,
    *,
    model: str | None = None,
    mode: str | None = None,
    extrapolate: bool = False,
) -> Acceptance:
    """Read acceptance by draft position or by draft length from an engine's report.

    Parameters
    ----------
    path
        Path of the report, in one of these formats:

        - a Prometheus scrape of vLLM or SGLang;
        - speculators' acceptance CSV;
        - ModelOpt's ``speculation_profile.json``;
        - acceptance histograms (JSON or JSON Lines);
        - the JSON output of ``vllm bench serve``;
        - golden acceptance lengths (YAML or JSON);
        - the user's own values, optionally with ``lower`` and ``upper``. The values are conditional
          rates, ``{"acceptance_rates": [alpha_1, ...]}``; one rate for all positions,
          ``{"acceptance_rate": alpha}``; or mean tokens by draft length,
          ``{"acceptance_lengths": {"1": tokens, ...}}``.
    before
        Path of an earlier scrape. If given, the difference between the two scrapes is used.
    model
        Model to select. In scrapes of an engine with several models, this is the ``model_name``; in
        a file of golden lengths, this is the name of the model.
    mode
        Mode to select in a file of golden lengths, such as ``thinking_on``, or subset to select in
        an acceptance CSV.
    extrapolate
        Whether to allow draft lengths that were not measured. If so, positions beyond the last
        measured position have the same rate as that position, and acceptance lengths are
        interpolated and extrapolated.

    Raises
    ------
    InvalidInput
        If a file cannot be read or has an unknown format. The message states what was expected and
        what was found.
    """
    found = _read(path, before, model, mode)
    if not extrapolate:
        return found
    change = {"extends": True} if isinstance(found, PositionAcceptance) else {"extrapolate": True}
    return replace(found, **change)  # type: ignore[arg-type]  # each has its own field


def _read(path: StrPath, before: StrPath | None, model: str | None, mode: str | None) -> Acceptance:
    text = read_text(path)
    where = str(path)
    if is_scrape(text) and not text.lstrip().startswith(("{", "[")):
        earlier = None if before is None else counters(read_text(before), str(before), model)
        return from_scrapes(earlier, counters(text, where, model), where)
    if is_gauges(text) and before is None:
        return from_gauges(text, where)
    if is_acceptance_table(text):
        return from_acceptance_table(text, where, mode)
    if before is not None:
        raise InvalidInput(
            f"{path}: expected a Prometheus scrape from which {before} can be subtracted"
        )
    if Path(path).suffix in (".yaml", ".yml"):
        from specopt.instances.reading.yaml_document import yaml_document

        data = yaml_document(text, path)
    else:
        if not text.strip():
            raise InvalidInput(f"{path}: expected {KNOWN}; got an empty file")
        documents = documents_in(text, path, KNOWN, refuse_constant)
        data = documents[0] if len(documents) == 1 else documents
    # vllm bench serve --append-result
    if isinstance(data, list) and data and all(map(is_bench, data)):
        if len(data) > 1:
            raise InvalidInput(
                f"{path}: expected one run of vllm bench serve, got {len(data)} runs; keep only one"
            )
        (data,) = data
    if is_bench(data):
        return from_bench(data, where)
    if is_profile(data):
        return from_profile(data, where)
    if isinstance(data, Mapping) and {"acceptance_rates", "acceptance_rate"} & set(data):
        return _plain(data, where)
    if isinstance(data, Mapping) and "acceptance_lengths" in data:
        return from_own(data, where)
    if next(histograms_in(data, ""), None) is not None:
        return from_histograms(data, where)
    if is_golden(data):
        return from_golden(data, where, model, mode)
    raise InvalidInput(f"{path}: expected {KNOWN}; got {describe(data)}")


def _plain(data: Mapping[str, Any], where: str) -> PositionAcceptance:
    only_fields(data, _PLAIN, where)
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
        if (
            not isinstance(values, list)
            or not values
            or not all(is_number(one) and 0 <= one <= 1 for one in values)
        ):
            raise InvalidInput(
                f"{where}.{field}: expected numbers in [0, 1], got {describe(data.get(field))}"
            )
    extends = boolean(f"{where}.extends", data.get("extends", single))
    notes = data.get("notes", [])
    try:
        rates, lower, upper = (np.array(column, np.float64) for column in columns.values())
        return PositionAcceptance(
            rates=rates,
            lower=lower,
            upper=upper,
            extends=extends,
            tokens_lower=_tokens("tokens_lower", data),
            tokens_upper=_tokens("tokens_upper", data),
            notes=tuple(map(str, notes if isinstance(notes, list) else [notes])),
        )
    except (InvalidInput, OverflowError) as error:
        raise InvalidInput(f"{where}: {error}") from None


def _tokens(name: str, data: Mapping[str, Any]) -> Floats | None:
    return (
        np.array([number(name, value, 1) for value in sequence(name, data[name])])
        if name in data
        else None
    )
