"""The runtimes that a speculation table is computed from, and how files say them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from specopt.models.arguments import integer, number
from specopt.models.decoder import Decoder
from specopt.models.errors import InvalidInput
from specopt.models.fields import MAX_TOKENS, describe, parse
from specopt.models.pass_time import PassTime, pass_time

_FIELDS = {"draft", "verify", "draft_model", "verify_model", "context_tokens", "step_overhead_seconds"}


@dataclass(frozen=True, eq=False)
class Runtimes:
    """Times of the draft and the verify model's passes, and of what every step takes besides."""

    draft: PassTime
    verify: PassTime
    step_overhead_seconds: float = 0.0

    @classmethod
    def from_dict(cls, data: object, where: str = "runtime") -> Runtimes:
        """Build runtimes from JSON-like data.

        Parameters
        ----------
        data
            ``{"draft": runtime, "verify": runtime}``, each a runtime or the content of a fit's file; optionally
            ``draft_model`` and ``verify_model`` (as in serving-latency) to count operations with, ``context_tokens``
            that a request has cached (0), and ``step_overhead_seconds`` (0).
        where
            Path of the data, for messages.

        Raises
        ------
        InvalidInput
            If a field is unknown, missing or outside its domain.
        """
        if not isinstance(data, Mapping):
            raise InvalidInput(f"{where}: expected an object with draft and verify, got {describe(data)}")
        unknown = sorted(str(key) for key in set(data) - _FIELDS)
        if unknown:
            raise InvalidInput(f"{where}: unknown field {unknown[0]!r}; known: {', '.join(sorted(_FIELDS))}")
        context = integer(f"{where}.context_tokens", data.get("context_tokens", 0), 0, MAX_TOKENS)
        overhead = number(f"{where}.step_overhead_seconds", data.get("step_overhead_seconds", 0.0), 0, below=1e18)
        times = {}
        for name in ("draft", "verify"):
            if name not in data:
                raise InvalidInput(f"{where}.{name}: required field is missing")
            model = data.get(f"{name}_model")
            decoder = None if model is None else parse(Decoder, model, f"{where}.{name}_model")  # type: ignore[arg-type]
            times[name] = pass_time(
                data[name],
                f"{where}.{name}",
                decoder=decoder,
                context_tokens=context,
                all_logits=name == "verify",
            )
        return cls(times["draft"], times["verify"], float(overhead))
