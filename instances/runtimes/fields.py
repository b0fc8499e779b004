"""Functions that convert the data in runtime files into fields of problems."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from specopt.models.errors import InvalidInput
from specopt.models.fields import describe


def of_serving_latency(data: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Return the fields of a `serving-latency` problem that describe both models' runtimes.

    The models with which operations were counted are included if the data contains them.

    Raises
    ------
    InvalidInput
        If a runtime is missing or is not a function of operations.
    """
    found: dict[str, Any] = {}
    for name in ("draft", "verify"):
        part = _part(data, name, where)
        runtime = part.get("runtime", part)
        pieces = runtime.get("pieces", [runtime]) if isinstance(runtime, Mapping) else None
        if not isinstance(pieces, list) or not all(isinstance(one, Mapping) for one in pieces):
            raise InvalidInput(f"{where}.{name}: expected a runtime, got {describe(runtime)}")
        if not pieces or not all("seconds_per_flop" in piece for piece in pieces):
            raise InvalidInput(
                f"{where}.{name}: expected seconds_per_flop, as in a linear or roofline fit against"
                f" operations, got {describe(', '.join(map(str, part)))}; fit with --draft-model"
                " CONFIG --verify-model CONFIG"
            )
        found[f"{name}_runtime"] = runtime
        model = part.get("model", data.get(f"{name}_model"))
        if model is not None:
            found[name] = model
    return found


def of_verification_batch(data: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Return the field of a `verification-batch` problem that contains the verify model's
    estimator.

    Raises
    ------
    InvalidInput
        If the file does not contain an estimator.
    """
    part = _part(data, "verify", where) if "verify" in data else data
    estimator = part.get("estimator", part)
    if not isinstance(estimator, Mapping) or "seconds_per_new_token" not in estimator:
        got = describe(", ".join(map(str, part)))
        raise InvalidInput(
            f"{where}: expected an estimator as written by fit --form additive, got {got}"
        )
    return {"estimator": estimator}


def _part(data: Mapping[str, Any], name: str, where: str) -> Mapping[str, Any]:
    part = data.get(name)
    if not isinstance(part, Mapping):
        raise InvalidInput(
            f"{where}.{name}: expected a runtime or a file written by fit, got {describe(part)}"
        )
    return part
