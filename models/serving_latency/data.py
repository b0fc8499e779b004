"""The fields and the plan of `serving-latency`; the judge,
`specopt.models.serving_latency.problem`, stands on them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Self

from specopt.models.errors import InvalidInput
from specopt.models.fields import Given, IntsLike, optional, required
from specopt.models.serving_data import (
    Samples,
    ServingData,
    ServingPlan,
    TaskRates,
    TaskRatios,
    TaskShares,
    TaskTokens,
)

MAX_COUNTED_TOKENS = 10_000
"""Output tokens up to which the distribution of the rounds of a response is computed."""


@dataclass(frozen=True, kw_only=True, eq=False)
class ServingLatencyPlan(ServingPlan):
    """Which tasks run together, how long to guess, and who gets how much bandwidth.

    Parameters
    ----------
    batches
        Task indices (from 0) of each batch, batches in pipeline order.
    speculation_length
        Draft tokens per decoding step, l; 0 for autoregressive decoding.
    bandwidth_share
        Share w_k of the uplink bandwidth of each task.
    mechanism
        The chosen mechanism; only for problems that leave the choice open.
    """

    bandwidth_share: TaskShares = required()
    batches: Given[tuple[tuple[int, ...], ...], Sequence[IntsLike]] = required()


@dataclass(frozen=True, kw_only=True, eq=False)
class ServingLatencyData(ServingData[ServingLatencyPlan]):
    """The fields of a problem; its class describes them."""

    plan_type = ServingLatencyPlan

    input_tokens: TaskTokens = required()
    output_tokens: TaskTokens = required()
    snr: TaskRatios = required()
    acceptance_rate: TaskRates = optional()
    output_samples: Samples = optional()

    rounds: Literal["mean", "slowest"] = "mean"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.rounds == "mean":
            return
        if self.output_lengths == "predicted":
            raise InvalidInput(
                "rounds: expected 'mean' unless output_lengths is 'conservative' or 'known', got"
                " 'slowest'"
            )
        if self.longest_output > MAX_COUNTED_TOKENS:
            raise InvalidInput(
                f"rounds: expected 'mean' beyond {MAX_COUNTED_TOKENS:,} output tokens, "
                f"got 'slowest' at {self.longest_output}"
            )

    @classmethod
    def from_dict(cls, data: object) -> Self:
        """Build it from JSON-like data.

        Raises
        ------
        InvalidInput
            If a field is unknown, missing, of the wrong type or outside its domain; or if batches
            may change.
        """
        if isinstance(data, Mapping) and "batching" in data:
            raise InvalidInput(
                "batching: serving-latency has no such field, its batches are fixed; batches that"
                " change between decoding steps are the kind continuous-serving"
            )
        return super().from_dict(data)
