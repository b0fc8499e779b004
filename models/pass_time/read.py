"""Functions that build pass times from JSON-like data. The data may be a runtime written by hand,
the output of a fit, or a table of measured passes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np

from specopt.models.arguments import number, only_fields
from specopt.models.decoder import Decoder
from specopt.models.errors import InvalidInput
from specopt.models.fields import MAX_TOKENS, Floats, describe, parse
from specopt.models.pass_time.fitted import BATCH, Additive, FittedPasses, Operations, Tokens, Work
from specopt.models.pass_time.form import Coefficients, read_form
from specopt.models.pass_time.measured import MeasuredPasses, PassTable
from specopt.models.pass_time.pass_time import PassTime, Which
from specopt.models.pass_time.staircase import Staircase

MAX_COEFFICIENT = 1e100
"""Maximum coefficient, in seconds per unit of work. With this limit, the duration of every pass is
finite.
"""

MIN_SECONDS_PER_TOKEN = 1e-9
"""Minimum plausible time per token, in seconds. A smaller value is assumed to be the time per
operation.
"""


def pass_time(data: object, where: str, *, decoder: Decoder | None, all_logits: bool) -> PassTime:
    """Build a pass time from JSON-like data.

    The following forms are accepted:

    * a linear runtime, ``{"seconds_per_token", "overhead_seconds"}``, or with ``seconds_per_flop``
      as in `serving-latency`;
    * the maximum of several linear runtimes, ``{"pieces": [...]}``;
    * the estimator in `verification-batch` problems;
    * the output of a fit, which contains ``runtime`` or ``estimator`` and may contain limits,
      misfit, ranges, contexts and the model;
    * a table of measured passes, ``{"table": {"batch", "new_tokens", "cached_tokens", "seconds",
      "spread"}}``.

    Runtimes may contain the time to read the KV cache, which each pass reads once per request. The
    time is specified as ``seconds_per_cached_token``, or as ``seconds_per_kv_byte`` if the model is
    known. If the data contains ``captured_batches``, each batch is padded to the smallest captured
    size that can hold it. The times of batches above the largest captured size are multiplied by
    ``beyond``.

    Parameters
    ----------
    data
        JSON-like data that specifies the pass time.
    where
        Path of the data, used in error messages.
    decoder
        Shape of the decoder, required if coefficients are per operation. The field ``model`` in the
        data takes precedence.
    all_logits
        Whether logits are computed at every new position, as in verification, or only at the last
        position.

    Raises
    ------
    InvalidInput
        If a field is unknown, missing or outside its domain, or if the model is missing.
    """
    if not isinstance(data, Mapping):
        raise InvalidInput(f"{where}: expected a runtime, got {describe(data)}")
    rest = {key: value for key, value in data.items() if key not in ("captured_batches", "beyond")}
    sizes = _sizes(data, where)
    if "table" not in rest:
        found: PassTime = _fitted(rest, where, decoder, all_logits)
    else:
        table = parse(PassTable, rest["table"], f"{where}.table")
        only_fields(rest, ("form", "table", "warnings", "source"), where)
        larger = table.batch > (np.inf if sizes is None else sizes[-1])
        if larger.all():
            raise InvalidInput(
                f"{where}.captured_batches: the table contains no passes with captured batch sizes;"
                " measure some"
            )
        found = MeasuredPasses.from_table(_rows(table, ~larger), f"{where}.table")
        if sizes is not None and larger.any():
            if "beyond" in data:
                raise InvalidInput(
                    f"{where}.beyond: omit this factor, because the table has batches beyond"
                    f" {sizes[-1]:g}, the largest captured batch"
                )
            outside = MeasuredPasses.from_table(_rows(table, larger), f"{where}.table")
            return Staircase(sizes, found, outside, start=float(table.batch[larger].min()))
    if sizes is None:
        return found
    return Staircase(
        sizes, found, found, number(f"{where}.beyond", data.get("beyond", 1.0), 1, below=1e6)
    )


def _rows(table: PassTable, of: np.ndarray) -> PassTable:
    columns = {name: getattr(table, name) for name in PassTable.__dataclass_fields__}
    return replace(
        table, **{name: column[of] for name, column in columns.items() if column is not None}
    )


def _sizes(data: Mapping[str, Any], where: str) -> Floats | None:
    """Return the captured batch sizes, or None if the data does not specify any."""
    given = data.get("captured_batches")
    if given is None:
        if "beyond" in data:
            raise InvalidInput(f"{where}.captured_batches: missing; required when beyond is given")
        return None
    good = (
        isinstance(given, list)
        and given
        and all(type(one) is int and 1 <= one <= MAX_TOKENS for one in given)
    )
    if not good or any(one >= other for one, other in pairwise(given)):
        raise InvalidInput(
            f"{where}.captured_batches: expected increasing integers >= 1, got {describe(given)}"
        )
    return np.array(given, np.float64)


def _fitted(
    data: Mapping[str, Any], where: str, decoder: Decoder | None, all_logits: bool
) -> PassTime:
    key = next((name for name in ("runtime", "estimator") if name in data), None)
    form = read_form(data if key is None else data[key], where if key is None else f"{where}.{key}")
    file = {} if key is None else data  # fields that a fit writes next to the coefficients
    if isinstance(file.get("model"), Mapping):
        decoder = parse(Decoder, file["model"], f"{where}.model")  # type: ignore[arg-type]
    work, notes = _work(form, where, decoder, all_logits)
    coefficients: dict[Which, Floats] = {"fitted": form.with_reading(decoder, where)}
    limits: tuple[Which, Which] = ("lower", "upper")
    for name in limits:
        limit = file.get(name)
        if limit is None:
            coefficients[name] = coefficients["fitted"]
            continue
        of = read_form(limit, f"{where}.{name}")
        if of.coefficients.shape != form.coefficients.shape:
            raise InvalidInput(f"{where}.{name}: expected the same number of pieces as in {key}")
        if (of.unit, of.reading) != (form.unit, form.reading):
            raise InvalidInput(f"{where}.{name}: expected {form.unit}, as in {key}")
        coefficients[name] = of.with_reading(decoder, where)
        apart = coefficients[name] - coefficients["fitted"]
        if ((apart > 0.0) if name == "lower" else (apart < 0.0)).any():
            raise InvalidInput(
                f"{where}.{name}: the {name} limits contradict the coefficients in {key}"
            )
    largest = max(float(column.max()) for column in coefficients.values())
    if largest > MAX_COEFFICIENT:
        raise InvalidInput(
            f"{where}: expected coefficients of at most {MAX_COEFFICIENT:g}, got {largest:g}"
        )
    misfit = file.get("misfit")
    counted = form.unit == "seconds_per_flop" and isinstance(
        work, Tokens
    )  # operations are counted as tokens, so the measured range is not known
    ranges = None if counted else file.get("range")
    contexts = file.get("contexts", [])
    if not isinstance(contexts, list):
        raise InvalidInput(
            f"{where}.contexts: expected a list of cached tokens, got {describe(contexts)}"
        )
    if key is not None and misfit is None:
        notes += (
            (
                "the file does not contain the misfit, so the limits do not include model errors;"
                " fit the runtime again"
            ),
        )
    return FittedPasses(
        coefficients,
        work,
        (0.0, 0.0) if misfit is None else _misfit(misfit, f"{where}.misfit"),
        {} if ranges is None else _ranges(ranges, work, f"{where}.range"),
        tuple(
            number(f"{where}.contexts[{at}]", one, 0, MAX_TOKENS) for at, one in enumerate(contexts)
        ),
        notes,
    )


def _work(
    form: Coefficients, where: str, decoder: Decoder | None, all_logits: bool
) -> tuple[Work, tuple[str, ...]]:
    if form.unit == "an estimator":
        return Additive(), ()
    if form.unit == "seconds_per_token":
        return Tokens(), ()
    if decoder is not None:
        return Operations(decoder, all_logits, attends=form.reading is None), ()
    slope = float(form.coefficients[:, 0].max())
    if 0.0 < slope < MIN_SECONDS_PER_TOKEN:
        raise InvalidInput(
            f"{where}.seconds_per_flop: {slope:.3g} is per operation, so the model is required to"
            " count operations; specify draft_model and verify_model with the runtimes (or"
            " --draft-model CONFIG --verify-model CONFIG), or use runtimes with seconds_per_token"
        )
    if slope == 0.0:
        return Tokens(), ()
    return Tokens(), (
        "seconds_per_flop is applied per token, because operations cannot be counted without a"
        " model",
    )


def _misfit(data: object, where: str) -> tuple[float, float]:
    if not isinstance(data, Mapping):
        raise InvalidInput(f"{where}: expected an object with low and high, got {describe(data)}")
    only_fields(data, ("low", "high"), where)
    low = number(f"{where}.low", data.get("low"), high=0, above=-1)
    return low, number(f"{where}.high", data.get("high"), 0, below=1e18)


def _ranges(data: object, work: Work, where: str) -> dict[str, tuple[float, float]]:
    known = (*work.ranged, BATCH)
    if not isinstance(data, Mapping):
        raise InvalidInput(f"{where}: expected ranges of {', '.join(known)}, got {describe(data)}")
    only_fields(data, known, where)
    found = {}
    for name, ends in data.items():
        if not isinstance(ends, list) or len(ends) != 2:
            raise InvalidInput(f"{where}.{name}: expected [minimum, maximum], got {describe(ends)}")
        least = number(f"{where}.{name}[0]", ends[0], 0, below=1e300)
        found[name] = (least, number(f"{where}.{name}[1]", ends[1], least, below=1e300))
    return found
