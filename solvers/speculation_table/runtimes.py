"""Runtimes from which speculation tables are computed, and their JSON format."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from specopt.models.arguments import integer, number, only_fields
from specopt.models.decoder import Decoder
from specopt.models.errors import InvalidInput
from specopt.models.fields import MAX_TOKENS, Floats, Truths, describe, parse
from specopt.models.pass_time import PassTime, Which, pass_time
from specopt.solvers.speculation_table.drafters import Drafter, drafter
from specopt.solvers.speculation_table.prices import IDLE

_FIELDS = {
    "draft",
    "verify",
    "drafter",
    "draft_model",
    "verify_model",
    "context_tokens",
    "step_overhead_seconds",
    "zero_draft_cost",
}

ZERO_DRAFT_COST = (IDLE.least[0], IDLE.most[-1])
"""Default cost of steps without drafts while speculation is enabled.

The values are the minimum and maximum of the reported shares of throughput that are lost.
"""


@dataclass(frozen=True, eq=False)
class Runtimes:
    """The durations of the parts of a speculative decoding step.

    Parameters
    ----------
    drafter
        Drafter with its durations.
    verify
        Durations of the passes of the verify model.
    contexts
        Numbers of cached tokens per request, weighted equally.
    step_overhead_seconds
        Fixed duration that is added to every step, for example for scheduling and sampling, in
        seconds.
    zero_draft_cost
        Minimum and maximum share of throughput lost in steps without drafts while speculation is
        enabled, compared with running without speculation.
    notes
        Remarks on the data, for users.
    """

    drafter: Drafter
    verify: PassTime
    contexts: tuple[float, ...] = (0.0,)
    step_overhead_seconds: float = 0.0
    zero_draft_cost: tuple[float, float] = ZERO_DRAFT_COST
    notes: tuple[str, ...] = ()

    @classmethod
    def from_dict(cls, data: object, where: str = "runtime") -> Self:
        """Build runtimes from JSON-like data.

        Parameters
        ----------
        data
            Object ``{"draft": runtime, "verify": runtime}``, with runtimes in the form that
            `pass_time` accepts. All other fields are optional. ``drafter`` describes the drafter
            (default ``{"type": "model"}``). ``draft_model`` and ``verify_model`` (as in
            `serving-latency`) are used to count operations. ``context_tokens`` is the number of
            cached tokens per request (default: all measured numbers, or 0).
            ``step_overhead_seconds`` is a duration (default 0), and ``zero_draft_cost`` is a share
            or a list [minimum, maximum].
        where
            Path of the data, used in error messages.

        Raises
        ------
        InvalidInput
            If a field is unknown, missing or outside its domain.
        """
        if not isinstance(data, Mapping):
            raise InvalidInput(
                f"{where}: expected an object with draft and verify, got {describe(data)}"
            )
        only_fields(data, _FIELDS, where)
        times: dict[str, PassTime] = {}
        for name in [one for one in ("draft", "verify") if one in data]:
            model = data.get(f"{name}_model")
            decoder = None if model is None else parse(Decoder, model, f"{where}.{name}_model")  # type: ignore[arg-type]
            times[name] = pass_time(
                data[name], f"{where}.{name}", decoder=decoder, all_logits=name == "verify"
            )
        if "verify" not in times or ("draft" not in times and "drafter" not in data):
            missing = "verify" if "verify" not in times else "draft"
            raise InvalidInput(f"{where}.{missing}: required field is missing")
        found = cls(
            drafter(data.get("drafter", {"type": "model"}), times.get("draft"), f"{where}.drafter"),
            times["verify"],
            step_overhead_seconds=number(
                f"{where}.step_overhead_seconds",
                data.get("step_overhead_seconds", 0.0),
                0,
                below=1e18,
            ),
            zero_draft_cost=_shares(
                data.get("zero_draft_cost", list(ZERO_DRAFT_COST)), f"{where}.zero_draft_cost"
            ),
            notes=tuple(f"{name}: {note}" for name, time in times.items() for note in time.notes),
        )
        given = data.get("context_tokens")
        if given is None:
            return found._at_every_context()
        context = integer(f"{where}.context_tokens", given, 0, MAX_TOKENS)
        return replace(found, contexts=(float(context),))

    def _at_every_context(self) -> Self:
        """Return the runtimes with every measured context within the range of both models."""
        tables = [of for of in (self.verify.contexts, self.drafter.contexts) if of]
        if not tables:
            return self
        low, high = max(min(of) for of in tables), min(max(of) for of in tables)
        common = tuple(
            sorted({context for of in tables for context in of if low <= context <= high})
        )
        if not common:
            raise InvalidInput(
                "context_tokens: draft and verify passes must be measured with the same numbers of"
                " cached tokens"
            )
        if len(common) == 1:
            return replace(self, contexts=common)
        listed = ", ".join(f"{context:g}" for context in common)
        note = (
            f"context_tokens is not given, so the measured contexts ({listed} tokens) are weighted"
            " equally"
        )
        return replace(self, contexts=common, notes=(*self.notes, note))

    @property
    def has_limits(self) -> bool:
        """Whether the measured pass durations have confidence limits."""
        drafts = self.drafter.passes
        return self.verify.has_limits or (drafts is not None and drafts.has_limits)

    @property
    def measured(self) -> str:
        """Description of the measured range of the passes, used in error messages."""
        verify, drafts = self.verify.measured, self.drafter.passes
        parts = {"verify": verify, "draft": drafts.measured if drafts else ""}
        if len(set(parts.values())) == 1:
            return verify
        return "; ".join(f"{name}: {text}" for name, text in parts.items() if text)

    def covers(self, most_requests: int, most_drafts: int) -> Truths:
        """Return whether the passes of every kind of step lie within the measured range.

        The steps have 1..B requests and 0..K drafts per request. The result has shape (B, K + 1).
        """
        context, batch, drafts = self._grid(most_requests, most_drafts)
        inside = np.ones((context.size, batch.size, drafts.size), np.bool_)
        inside &= self.verify.covers(batch, 1.0 + drafts, context)
        inside[..., 1:] &= self.drafter.covers(batch, drafts[..., 1:], context)
        return np.asarray(inside.all(axis=0))

    def seconds(
        self, most_requests: int, most_drafts: int, which: Which = "fitted"
    ) -> tuple[Floats, Floats]:
        """Return the duration of a step by context and batch size, in seconds.

        The first array, with shape (C, B, 1), is for steps without speculation. The second array,
        with shape (C, B, K + 1), is for steps with 0..K drafts. Steps with 0 drafts include the
        cost of enabled speculation. `which` selects the fitted durations, or their lower or upper
        limits.
        """
        context, batch, drafts = self._grid(most_requests, most_drafts)
        found = np.full((context.size, batch.size, drafts.size), self.step_overhead_seconds)
        found += self.verify.seconds(batch, 1.0 + drafts, context, which)
        alone = found[..., :1].copy()
        found[..., 1:] += self.drafter.seconds(batch, drafts[..., 1:], context, which)
        least, most = self.zero_draft_cost
        found[..., :1] /= (
            1.0 - {"lower": least, "fitted": 0.5 * (least + most), "upper": most}[which]
        )
        return alone, found

    def _grid(self, most_requests: int, most_drafts: int) -> Sequence[Floats]:
        """Return the contexts, batch sizes 1..B and numbers of drafts 0..K for broadcasting."""
        sizes = np.arange(1.0, most_requests + 1.0), np.arange(most_drafts + 1.0)
        return np.meshgrid(self.contexts, *sizes, indexing="ij", sparse=True)


def _shares(data: object, where: str) -> tuple[float, float]:
    ends = data if isinstance(data, list) and len(data) == 2 else [data, data]
    least = number(where, ends[0], 0, below=1)
    return least, number(where, ends[1], least, below=1)
