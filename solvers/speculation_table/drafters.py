"""Drafters and the time that they need in each step.

A drafter is a separate model, a head, a parallel drafter, a text search, or a remote machine.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from specopt.models.arguments import number
from specopt.models.errors import InvalidInput
from specopt.models.fields import Floats, Truths, describe
from specopt.models.pass_time import PassTime, Which

WITH_PASSES = ("model", "head", "parallel")
LOOKUPS = ("ngram", "suffix")
TYPES = (*WITH_PASSES, *LOOKUPS, "remote")


@dataclass(frozen=True, eq=False)
class Drafter:
    """A drafter, with the data that determine how long drafting takes in a step.

    Parameters
    ----------
    kind
        Type of the drafter. "model" is a model with its own cache that drafts one token per pass.
        "head" is a head on the hidden state of the verify model, such as EAGLE or MTP, that drafts
        one token per pass. A head reads no cache, so the passes that were measured with the fewest
        cached tokens are used. "parallel" is a model that drafts all tokens in one pass. "ngram"
        and "suffix" search the preceding text.
    passes
        Durations of the drafter's passes, or None if the drafter runs no model.
    seconds_per_step
        Duration of the search or of the round trip in each step, in seconds. The duration does not
        depend on the number of drafts.
    bits_per_token
        Number of bits sent per drafted token, including the token's distribution if it is sent.
    bits_per_second
        Bandwidth of the link, which all requests of a batch share.
    """

    kind: str
    passes: PassTime | None = None
    seconds_per_step: float = 0.0
    bits_per_token: float = 0.0
    bits_per_second: float = 1.0

    @property
    def contexts(self) -> tuple[float, ...]:
        """Numbers of cached tokens for which the passes were measured.

        The tuple is empty if the number of cached tokens does not matter.
        """
        return () if self.passes is None or self.kind == "head" else self.passes.contexts

    def seconds(
        self, batch: Floats, drafts: Floats, cached_tokens: Floats, which: Which = "fitted"
    ) -> Floats:
        """Return the duration of drafting `drafts` >= 1 tokens per request of a batch, in seconds.

        The arrays are broadcast against each other.
        """
        found = np.zeros(())
        if self.passes is not None:
            found = self.passes.seconds(batch, *self.work(drafts, cached_tokens), which)
        return (
            (found if self.kind == "parallel" else drafts * found)
            + self.seconds_per_step
            + batch * drafts * self.bits_per_token / self.bits_per_second
        )

    def covers(self, batch: Floats, drafts: Floats, cached_tokens: Floats) -> Truths:
        """Return, elementwise, whether all passes for drafting lie within the measured range."""
        if self.passes is None:
            return np.ones((), np.bool_)
        return self.passes.covers(batch, *self.work(drafts, cached_tokens))

    def work(self, drafts: Floats, cached_tokens: Floats) -> tuple[Floats, Floats]:
        """Return the numbers of new and cached tokens per request in each pass of the drafter."""
        if self.kind == "head":
            assert self.passes is not None
            cached_tokens = np.asarray(min(self.passes.contexts, default=0.0))
        return drafts if self.kind == "parallel" else np.ones(()), cached_tokens


def drafter(data: object, passes: PassTime | None, where: str) -> Drafter:
    """Build a drafter from JSON-like data, which is a dictionary with the fields of its type.

    The field ``type`` selects the type. The types ``model``, ``head`` and ``parallel`` require
    `passes` and accept no other fields. ``ngram`` and ``suffix`` accept ``seconds_per_step``
    (default 0) and no passes. ``remote`` accepts ``round_trip_seconds``, ``bits_per_token``,
    ``bits_per_second`` and ``drafter`` (by default a model).

    Raises
    ------
    InvalidInput
        If the type is unknown, or if a field is unknown, missing or outside its domain.
    """
    kind = data.get("type") if isinstance(data, Mapping) else None
    if not isinstance(data, Mapping) or kind not in TYPES:
        got = describe(data if kind is None else kind)
        raise InvalidInput(f"{where}.type: expected one of {', '.join(TYPES)}, got {got}")
    fields = {"remote": ("round_trip_seconds", "bits_per_token", "bits_per_second", "drafter")}
    known = fields.get(kind, ("seconds_per_step",) if kind in LOOKUPS else ())
    unknown = sorted(str(key) for key in set(data) - {"type", *known})
    if unknown:
        raise InvalidInput(
            f"{where}: unknown field {unknown[0]!r}; the fields of {kind} are"
            f" {', '.join(('type', *known))}"
        )
    if kind == "remote":
        inner = drafter(data.get("drafter", {"type": "model"}), passes, f"{where}.drafter")
        if data.get("drafter", {}).get("type") == "remote":
            raise InvalidInput(
                f"{where}.drafter.type: a remote drafter cannot contain another 'remote' drafter"
            )
        trip, bits = (
            number(f"{where}.{name}", data.get(name), 0, below=1e18) for name in known[:2]
        )
        speed = number(f"{where}.bits_per_second", data.get("bits_per_second"), above=0, below=1e30)
        step = inner.seconds_per_step + trip
        return replace(inner, seconds_per_step=step, bits_per_token=bits, bits_per_second=speed)
    if kind in LOOKUPS:
        if passes is not None:
            raise InvalidInput(
                f"{where}.type: {kind} drafts without a model; omit the draft runtime"
            )
        step = number(f"{where}.seconds_per_step", data.get("seconds_per_step", 0.0), 0, below=1e18)
        return Drafter(kind, seconds_per_step=step)
    if passes is None:
        raise InvalidInput(f"{where}.type: {kind} requires a draft runtime")
    return Drafter(kind, passes)
