"""What drafts: a model of its own, a head, one pass for the block, a search in the text, another machine."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from specopt.models.arguments import number
from specopt.models.errors import InvalidInput
from specopt.models.fields import Floats, describe
from specopt.models.pass_time import PassTime, Which
from specopt.models.pass_time.pass_time import Truths


@dataclass(frozen=True, eq=False)
class Drafter(ABC):
    """Time of a step's drafts.

    Parameters
    ----------
    passes
        Times of its passes; None: there are none.
    """

    passes: PassTime | None

    @property
    def contexts(self) -> tuple[float, ...]:
        """Cached tokens that its passes were measured with, if these matter."""
        return () if self.passes is None else self.passes.contexts

    @abstractmethod
    def seconds(self, batch: Floats, drafts: Floats, cached_tokens: Floats, which: Which = "fitted") -> Floats:
        """Return the time of `drafts` >= 1 tokens for each request of a batch; the arrays are broadcast."""

    def covers(self, batch: Floats, drafts: Floats, cached_tokens: Floats) -> Truths:
        """Tell which drafts need no pass beyond what was measured."""
        if self.passes is None:
            return np.ones((), dtype=np.bool_)
        return self.passes.covers(batch, *self.work(drafts, cached_tokens))

    def work(self, drafts: Floats, cached_tokens: Floats) -> tuple[Floats, Floats]:
        """Return new and cached tokens of each pass."""
        return np.ones(()), cached_tokens


class SeparateModel(Drafter):
    """A model with a cache of its own that drafts token by token: a pass for each."""

    def seconds(self, batch: Floats, drafts: Floats, cached_tokens: Floats, which: Which = "fitted") -> Floats:
        """Return the time of the passes."""
        assert self.passes is not None
        return drafts * self.passes.seconds(batch, *self.work(drafts, cached_tokens), which)


class Head(SeparateModel):
    """A head on the verify model's hidden state, such as EAGLE's or MTP: a pass for each token, and no cache to read.

    The passes measured with the fewest cached tokens count.
    """

    @property
    def contexts(self) -> tuple[float, ...]:
        """None matters."""
        return ()

    def work(self, drafts: Floats, cached_tokens: Floats) -> tuple[Floats, Floats]:
        """Return one token on the least that was measured."""
        assert self.passes is not None
        return np.ones(()), np.asarray(min(self.passes.contexts, default=0.0))


class Parallel(Drafter):
    """A model that drafts the block in one pass."""

    def seconds(self, batch: Floats, drafts: Floats, cached_tokens: Floats, which: Which = "fitted") -> Floats:
        """Return the time of the pass."""
        assert self.passes is not None
        return self.passes.seconds(batch, *self.work(drafts, cached_tokens), which)

    def work(self, drafts: Floats, cached_tokens: Floats) -> tuple[Floats, Floats]:
        """Return the block."""
        return drafts, cached_tokens


@dataclass(frozen=True, eq=False)
class Lookup(Drafter):
    """N-grams or suffixes of the text so far: no model.

    Parameters
    ----------
    seconds_per_step
        Of the search, whatever the drafts.
    """

    seconds_per_step: float = 0.0

    def seconds(self, batch: Floats, drafts: Floats, cached_tokens: Floats, which: Which = "fitted") -> Floats:
        """Return the time of the search."""
        return np.asarray(self.seconds_per_step)


@dataclass(frozen=True, eq=False)
class Remote(Drafter):
    """A drafter on another machine.

    Parameters
    ----------
    drafter
        How it drafts there.
    round_trip_seconds
        Of the link, per step.
    bits_per_token
        What a drafted token sends, its distribution included where that goes along.
    bits_per_second
        Of the link, which the whole batch shares.
    """

    drafter: Drafter
    round_trip_seconds: float
    bits_per_token: float
    bits_per_second: float

    @property
    def contexts(self) -> tuple[float, ...]:
        """Those of the drafter there."""
        return self.drafter.contexts

    def seconds(self, batch: Floats, drafts: Floats, cached_tokens: Floats, which: Which = "fitted") -> Floats:
        """Return the time of the drafts there and on the link."""
        sent = batch * drafts * self.bits_per_token / self.bits_per_second
        return self.drafter.seconds(batch, drafts, cached_tokens, which) + self.round_trip_seconds + sent

    def work(self, drafts: Floats, cached_tokens: Floats) -> tuple[Floats, Floats]:
        """Return that of the drafter there."""
        return self.drafter.work(drafts, cached_tokens)


WITH_PASSES = {"model": SeparateModel, "head": Head, "parallel": Parallel}
LOOKUPS = ("ngram", "suffix")
TYPES = (*WITH_PASSES, *LOOKUPS, "remote")


def drafter(data: object, passes: PassTime | None, where: str) -> Drafter:
    """Build a drafter from JSON-like data: ``{"type": ...}``, and what the type needs.

    ``model``, ``head`` and ``parallel`` need passes and nothing else. ``ngram`` and ``suffix`` take
    ``seconds_per_step`` (0) and no passes. ``remote`` takes ``round_trip_seconds``, ``bits_per_token``,
    ``bits_per_second``, and a ``drafter`` (a model).

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
        takes = ", ".join(("type", *known))
        raise InvalidInput(f"{where}: unknown field {unknown[0]!r}; {kind} takes {takes}")
    if kind == "remote":
        inner = drafter(data.get("drafter", {"type": "model"}), passes, f"{where}.drafter")
        if isinstance(inner, Remote):
            raise InvalidInput(f"{where}.drafter.type: expected a drafter on the other machine, got 'remote'")
        trip, bits = (number(f"{where}.{name}", data.get(name), 0, below=1e18) for name in known[:2])
        speed = number(f"{where}.bits_per_second", data.get("bits_per_second"), above=0, below=1e30)
        return Remote(inner.passes, inner, trip, bits, speed)
    if kind in LOOKUPS:
        if passes is not None:
            raise InvalidInput(f"{where}.type: {kind} drafts without a model: expected no draft runtime beside it")
        return Lookup(None, number(f"{where}.seconds_per_step", data.get("seconds_per_step", 0.0), 0, below=1e18))
    if passes is None:
        raise InvalidInput(f"{where}.type: {kind} needs a draft runtime beside it, got none")
    return WITH_PASSES[kind](passes)
