"""Time of a forward pass over a batch, from runtimes fitted against operations or against tokens, with their limits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, Literal

import numpy as np

from specopt.models.decoder import Decoder
from specopt.models.errors import InvalidInput
from specopt.models.fields import Floats, NonNegative, check, describe, parse
from specopt.models.runtime import LinearRuntime, PiecewiseRuntime, Runtime

Which = Literal["fitted", "lower", "upper"]

LEAST_SECONDS_PER_TOKEN = 1e-9
"""No hardware takes less for a token; what is faster must be meant per operation."""

MOST_PIECES_OF_CORNERS = 3
"""Up to so many pieces, 64 corners, all are tried."""


@dataclass(frozen=True, kw_only=True)
class TokenRuntime:
    """Seconds of a pass against all of its tokens: seconds_per_token tokens + overhead_seconds.

    Parameters
    ----------
    seconds_per_token
        Seconds per token of the batch.
    overhead_seconds
        Seconds of a pass without tokens.
    """

    seconds_per_token: NonNegative
    overhead_seconds: NonNegative

    def __post_init__(self) -> None:
        check(self)

    @staticmethod
    def is_marked(data: Mapping[str, Any]) -> bool:
        """Tell whether JSON-like data means this form."""
        return "seconds_per_token" in data


@dataclass(frozen=True, kw_only=True)
class PiecewiseTokenRuntime:
    """The maximum of several runtimes against tokens.

    Parameters
    ----------
    pieces
        At least one.
    """

    pieces: tuple[TokenRuntime, ...]

    def __post_init__(self) -> None:
        check(self)
        if not self.pieces:
            raise InvalidInput("pieces: expected at least one piece, got none")


@dataclass(frozen=True, eq=False)
class PassTime:
    """T(batch, new tokens per request) = max over pieces of slope x work of the batch + overhead.

    Parameters
    ----------
    pieces
        By limit: shape (P, 2), slope and overhead of each piece.
    decoder
        Turns tokens into operations; None: the slope is per token.
    context_tokens
        Tokens that every request has cached; matters with a decoder only.
    all_logits
        Whether every new position needs its logits, as in verification, or the last one alone.
    assumed_tokens
        Whether seconds_per_flop was taken as seconds per token, because there is no model to count operations with.
    """

    pieces: Mapping[Which, Floats]
    decoder: Decoder | None
    context_tokens: int
    all_logits: bool
    assumed_tokens: bool = False

    @property
    def has_limits(self) -> bool:
        """Whether the runtime came with confidence limits."""
        return self.pieces["lower"] is not self.pieces["upper"]

    def corners(self) -> Iterator[PassTime]:
        """Yield this pass time with slopes and overheads each at either of their limits, as the fitted ones.

        The limits are those of each coefficient by itself, so one may be low while another is high. Beyond
        `MOST_PIECES_OF_CORNERS` pieces, the slopes of all pieces go together, and so do the overheads.
        """
        lower, upper = self.pieces["lower"], self.pieces["upper"]
        shape = lower.shape if len(lower) <= MOST_PIECES_OF_CORNERS else (1, 2)
        for high in product((False, True), repeat=shape[0] * shape[1]):
            yield replace(self, pieces={"fitted": np.where(np.reshape(high, shape), upper, lower)})

    def seconds(self, batch: Floats, new_tokens: Floats, which: Which = "fitted") -> Floats:
        """Return seconds of passes of `batch` requests with `new_tokens` each; arrays are broadcast."""
        work = np.asarray(batch, dtype=np.float64) * self.work(np.asarray(new_tokens, dtype=np.float64))
        slopes, overheads = self.pieces[which].T
        return np.asarray((slopes * work[..., None] + overheads).max(axis=-1), dtype=np.float64)

    def work(self, new_tokens: Floats) -> Floats:
        """Return the work of one request: operations with a decoder, else tokens."""
        if self.decoder is None:
            return new_tokens
        m, t = new_tokens, self.context_tokens + new_tokens
        logits = m if self.all_logits else np.minimum(m, 1.0)
        return np.asarray(
            self.decoder.flops_per_token * m
            + self.decoder.flops_per_token_pair * m * t
            + self.decoder.flops_per_logit * logits,
            dtype=np.float64,
        )


def pass_time(data: object, where: str, *, decoder: Decoder | None, context_tokens: int, all_logits: bool) -> PassTime:
    """Build a pass time from JSON-like data: a runtime, or the file that a fit writes (`runtime`, `lower`, `upper`).

    Runtimes against operations are those of serving-latency, ``{"seconds_per_flop", "overhead_seconds"}``; against
    tokens they say ``seconds_per_token``. Either may be ``{"pieces": [...]}``, the maximum.

    Parameters
    ----------
    data, where
        What to read, and its path for messages.
    decoder
        Of the model; a ``model`` in the data counts first. Needed for runtimes against operations.
    context_tokens, all_logits
        As in `PassTime`.

    Raises
    ------
    InvalidInput
        If a field is unknown, missing or outside its domain, or the model is missing.
    """
    if not isinstance(data, Mapping):
        raise InvalidInput(f"{where}: expected a runtime, got {describe(data)}")
    fitted = data.get("runtime", data)
    model = data.get("model") if "runtime" in data else None
    if isinstance(model, Mapping):
        decoder = parse(Decoder, model, f"{where}.model")  # type: ignore[arg-type]
    pieces: dict[Which, Floats] = {}
    pieces["fitted"], per_token = _pieces(fitted, f"{where}.runtime" if "runtime" in data else where)
    limits: tuple[Which, Which] = ("lower", "upper")
    for name in limits:
        limit = data.get(name) if "runtime" in data else None
        if limit is None:
            pieces[name] = pieces["fitted"]
            continue
        pieces[name], limit_per_token = _pieces(limit, f"{where}.{name}")
        if pieces[name].shape != pieces["fitted"].shape:
            raise InvalidInput(f"{where}.{name}: expected as many pieces as in runtime")
        if limit_per_token != per_token:
            raise InvalidInput(
                f"{where}.{name}: expected seconds_per_{'token' if per_token else 'flop'}, as in runtime"
            )
        beyond = pieces[name] > pieces["fitted"] if name == "lower" else pieces[name] < pieces["fitted"]
        if beyond.any():
            raise InvalidInput(f"{where}.{name}: expected a limit of each coefficient in runtime, on its {name} side")
    assumed = False
    if not per_token and decoder is None:
        slope = float(pieces["fitted"][:, 0].max())
        assumed = slope > 0.0
        if 0.0 < slope < LEAST_SECONDS_PER_TOKEN:
            raise InvalidInput(
                f"{where}.seconds_per_flop: {slope:.3g} is per operation, so the model is needed to count operations; "
                "give draft_model and verify_model beside the runtimes (or --draft-model CONFIG --verify-model CONFIG) "
                "or runtimes with seconds_per_token"
            )
    return PassTime(
        pieces,
        None if per_token else decoder,
        context_tokens,
        all_logits,
        assumed,
    )


def _pieces(data: object, where: str) -> tuple[Floats, bool]:
    """Return slopes and overheads, and whether they are per token."""
    several = isinstance(data, Mapping) and "pieces" in data
    pieces = data["pieces"] if isinstance(data, Mapping) and several else [data]
    first = pieces[0] if isinstance(pieces, list) and pieces else None
    if isinstance(first, Mapping) and TokenRuntime.is_marked(first):
        parts = parse(PiecewiseTokenRuntime, data, where).pieces if several else (parse(TokenRuntime, data, where),)
        return np.array([(part.seconds_per_token, part.overhead_seconds) for part in parts]), True
    runtime: Runtime = parse(PiecewiseRuntime, data, where) if several else parse(LinearRuntime, data, where)
    return np.array([(part.seconds_per_flop, part.overhead_seconds) for part in runtime.pieces]), False
