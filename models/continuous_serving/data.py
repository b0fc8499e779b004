"""Problem fields and plan classes for `continuous-serving`. The judge is in `problem.py`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np
from msgspec import Meta

from specopt.models.errors import InvalidInput
from specopt.models.fields import (
    Checked,
    Floats,
    Given,
    IntsLike,
    NonNegative,
    NonNegativeInt,
    Objects,
    OptionalNonNegatives,
    PositiveInt,
    Positives,
    TokenCounts,
    optional,
    required,
)
from specopt.models.serving_data import (
    LONGEST_SECONDS,
    Mechanism,
    Samples,
    ServingData,
    ServingPlan,
    TaskRates,
    TaskShares,
)


@dataclass(frozen=True, kw_only=True)
class Phase(Checked):
    """A phase of a plan, which defines the batches in use until the next phase begins.

    Parameters
    ----------
    first_step
        First decoding step of the phase, counted from 1.
    batches
        Lists of task indices, one list per batch, in pipeline order. Every task is in exactly one
        batch. Each step skips the tasks that are finished or not ready.
    speculation_length
        Number of draft tokens per step in this phase: one number for all batches, or one for each
        batch. None means that the phase uses the plan's speculation length.
    """

    first_step: PositiveInt
    batches: Given[tuple[tuple[int, ...], ...], Sequence[IntsLike]] = required()
    speculation_length: Given[
        NonNegativeInt | tuple[NonNegativeInt, ...] | None, int | IntsLike | None
    ] = optional()

    def lengths(self, default: int) -> tuple[int, ...]:
        """Return the speculation length of each batch. If the phase does not specify a length, all
        batches use `default`.
        """
        given = default if self.speculation_length is None else self.speculation_length
        return given if isinstance(given, tuple) else (given,) * len(self.batches)


@dataclass(frozen=True, kw_only=True, eq=False)
class ContinuousServingPlan(ServingPlan):
    """A plan that consists of phases, a speculation length and bandwidth shares.

    Parameters
    ----------
    phases
        Phases of the plan. Each phase contains the batches that are used until the next phase
        begins.
    speculation_length
        Number l of draft tokens per decoding step; 0 means autoregressive decoding.
    bandwidth_share
        Share w_k of the uplink bandwidth that each task receives.
    mechanism
        Mechanism that the plan chooses. It is used only if the problem leaves the choice open.
    """

    bandwidth_share: TaskShares = required()
    phases: Objects[Phase] = required()


@dataclass(frozen=True, kw_only=True, eq=False)
class ContinuousServingData(ServingData[ContinuousServingPlan]):
    """Base class with the fields of `continuous-serving` problems. The fields are documented in
    `ContinuousServingProblem`.
    """

    plan_type = ContinuousServingPlan

    input_tokens: TokenCounts = required()
    output_tokens: TokenCounts = required()
    snr: Positives = required()
    acceptance_rate: TaskRates = optional()
    output_samples: Samples = optional()

    arrival_seconds: OptionalNonNegatives = optional()
    regroup_seconds: NonNegative = 0.0
    min_speculation_length: Annotated[int, Meta(ge=0, le=1)] = 1
    objective: Literal["makespan", "mean_latency"] = "makespan"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.tables:
            raise InvalidInput(
                f"{self.tables[0]}.passes: continuous-serving does not support measured passes; fit"
                " a line or pieces to them"
            )
        if self.arrival_seconds is not None and self.arrival_seconds.max() > LONGEST_SECONDS:
            raise InvalidInput(
                f"arrival_seconds[{int(np.argmax(self.arrival_seconds))}]: expected at most"
                f" {LONGEST_SECONDS:g} seconds, got {self.arrival_seconds.max():g}"
            )

    @property
    def moving_seconds(self) -> float:
        """Upper bound on the time, in seconds, that moving sequences between batches adds to a
        stage.
        """
        return self.regroup_seconds * self.tasks

    def readiness(self, plan: ContinuousServingPlan) -> tuple[Floats, Floats]:
        """Return each task's arrival time, and the time at which decoding may start for the task.

        Both arrays are in seconds since the earliest arrival. A task is ready when its upload ends.
        If `arrival_seconds` is None, all tasks are ready when the last upload ends.
        """
        return self.readiness_at(self.mechanism_of(plan), plan.bandwidth_share)

    def readiness_at(self, mechanism: Mechanism, shares: Floats) -> tuple[Floats, Floats]:
        """Return the result of `readiness` for a plan with this mechanism and these bandwidth
        shares.
        """
        upload = self.uploads(mechanism, shares)
        if self.arrival_seconds is None:
            return np.zeros(self.tasks), np.full(self.tasks, upload.max())
        arrival = self.arrival_seconds - self.arrival_seconds.min()
        return arrival, arrival + upload
