"""Drafters: a separate model, a head, one pass for the block, a search in the text, or another
machine.
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
    """Time of a step's drafts, here or on another machine.

    Parameters
    ----------
    kind
        "model": a model with its own cache that drafts token by token, one pass for each token.
        "head": a head on the hidden state of the verify model, such as EAGLE's or MTP, with one
        pass for each token. It has no cache to read, so the passes measured with the fewest cached
        tokens are used. "parallel": a model that drafts the block in one pass. "ngram", "suffix": a
        search in the text so far.
    passes
        Times of its passes; None: it has no passes.
    seconds_per_step
        Time of a step's search or link, independent of the number of drafts.
    bits_per_token
        Bits that a drafted token sends, including its distribution if this is sent.
    bits_per_second
        Speed of the link, which the whole batch shares.
    """

    kind: str
    passes: PassTime | None = None
    seconds_per_step: float = 0.0
    bits_per_token: float = 0.0
    bits_per_second: float = 1.0

    @property
    def contexts(self) -> tuple[float, ...]:
        """Numbers of cached tokens that its passes were measured with, if these matter."""
        return () if self.passes is None or self.kind == "head" else self.passes.contexts

    def seconds(
        self, batch: Floats, drafts: Floats, cached_tokens: Floats, which: Which = "fitted"
    ) -> Floats:
        """Return the time of `drafts` >= 1 tokens for each request of a batch; the arrays are
        broadcast.
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
        """Return which drafts need no pass beyond the measured ones."""
        if self.passes is None:
            return np.ones((), np.bool_)
        return self.passes.covers(batch, *self.work(drafts, cached_tokens))

    def work(self, drafts: Floats, cached_tokens: Floats) -> tuple[Floats, Floats]:
        """Return new and cached tokens of each pass."""
        if self.kind == "head":
            assert self.passes is not None
            cached_tokens = np.asarray(min(self.passes.contexts, default=0.0))
        return drafts if self.kind == "parallel" else np.ones(()), cached_tokens


def drafter(data: object, passes: PassTime | None, where: str) -> Drafter:
    """Build a drafter from JSON-like data: ``{"type": ...}`` and the fields of its type.

    ``model``, ``head`` and ``parallel`` need passes and nothing else. ``ngram`` and ``suffix`` take
    ``seconds_per_step`` (0) and no passes. ``remote`` takes ``round_trip_seconds``,
    ``bits_per_token``, ``bits_per_second``, and a ``drafter`` (a model).

    Raises
    ------
    InvalidInput
        If there is no such type, or a field is unknown, missing or outside its domain.
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
