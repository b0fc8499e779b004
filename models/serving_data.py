"""What a problem and a plan of serving latency hold; the judge stands on it, see `specopt.models.serving_latency`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from msgspec import Meta

from specopt.models.acceptance import expected_tokens, expected_tokens_per_step
from specopt.models.decoder import Decoder
from specopt.models.errors import InvalidInput
from specopt.models.fields import (
    Checked,
    Column,
    Floats,
    Ints,
    NonNegative,
    NonNegativeInt,
    OpenUnit,
    Positive,
    PositiveInt,
    TokenCount,
    describe,
)
from specopt.models.pass_time import Runtime, TabledRuntime, pass_seconds
from specopt.models.problem import Plan, Problem, Sense
from specopt.models.rates import Rates
from specopt.models.serving_stages import draft_seconds, verify_seconds
from specopt.models.token_samples import TokenSamples
from specopt.models.uplink import upload_seconds

Mechanism = Literal["pipelined", "sequential", "autoregressive"]
MECHANISMS: tuple[Mechanism, ...] = ("pipelined", "sequential", "autoregressive")

DRAFTING_FIELDS = ("draft", "draft_runtime", "draft_memory_bytes", "acceptance_rate", "max_speculation_length")
"""What every mechanism but the autoregressive one needs."""

MOST_COUNTED = 10_000
"""Output tokens up to which the law of the rounds of a response is computed."""

SHORTEST_SECONDS, LONGEST_SECONDS = 1e-100, 1e100
"""Seconds that a problem may ask for: floating-point numbers hold their sums, products with counts, and quotients."""


@dataclass(frozen=True, kw_only=True)
class Phase(Checked):
    """Batches that hold from a decoding step on, until the next phase begins.

    Parameters
    ----------
    first_step
        The step that it begins with, from 1.
    batches
        Every task once, in pipeline order; finished and unready ones are left out when their step comes.
    speculation_length
        Draft tokens per step in this phase, for all batches or for each; None: the plan's.
    """

    first_step: PositiveInt
    batches: tuple[tuple[int, ...], ...]
    speculation_length: NonNegativeInt | tuple[NonNegativeInt, ...] | None = None

    def lengths(self, default: int) -> tuple[int, ...]:
        """Return the speculation length of each batch; the plan's is the default."""
        given = default if self.speculation_length is None else self.speculation_length
        return given if isinstance(given, tuple) else (given,) * len(self.batches)


@dataclass(frozen=True, kw_only=True, eq=False)
class ServingLatencyPlan(Plan):
    """Which tasks run together and when, how long to guess, and who gets how much bandwidth.

    Parameters
    ----------
    speculation_length
        Draft tokens per decoding step, l; 0 for autoregressive decoding.
    batches
        Task indices (from 0) of each batch, batches in pipeline order; static batching.
    phases
        Batches that change between decoding steps; rebatched.
    bandwidth_share
        Share w_k of the uplink bandwidth of each task.
    mechanism
        The chosen mechanism; only for problems that leave the choice open.
    """

    speculation_length: NonNegativeInt
    batches: tuple[tuple[int, ...], ...] = ()
    phases: tuple[Phase, ...] = ()
    bandwidth_share: Annotated[Floats, Column(float, "task")]
    mechanism: Mechanism | None = None


@dataclass(frozen=True, kw_only=True, eq=False)
class ServingData(Problem[ServingLatencyPlan]):
    """The fields of a problem, and what follows from them without a plan's timing."""

    plan_type = ServingLatencyPlan
    sense: ClassVar[Sense] = "minimize"
    objective_label = "total serving latency (s)"

    input_tokens: Annotated[Ints, Column(TokenCount, "task")]
    output_tokens: Annotated[Ints, Column(TokenCount, "task")]
    snr: Annotated[Floats, Column(Positive, "task")]
    bandwidth_hz: Positive
    verify: Decoder
    verify_runtime: Runtime
    output_lengths: Literal["conservative", "known", "predicted"]
    draft: Decoder | None = None
    draft_runtime: Runtime | None = None
    draft_memory_bytes: Positive | None = None
    acceptance_rate: OpenUnit | Rates | None = None
    max_speculation_length: PositiveInt | None = None
    max_output_tokens: TokenCount | None = None
    mechanism: Literal["pipelined", "sequential", "autoregressive", "any"] = "pipelined"
    embedding_bits_per_token: Positive | None = None
    verify_memory_bytes: Positive | None = None
    batching: Literal["static", "rebatched"] = "static"
    arrival_seconds: Annotated[Floats, Column(NonNegative, "task")] | None = None
    regroup_seconds: NonNegative = 0.0
    min_speculation_length: Annotated[int, Meta(ge=0, le=1)] = 1
    objective: Literal["makespan", "mean_latency"] = "makespan"
    output_samples: TokenSamples | None = None
    rounds: Literal["mean", "slowest"] = "mean"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.mechanism != "autoregressive":
            for name in DRAFTING_FIELDS:
                if getattr(self, name) is None:
                    raise InvalidInput(f"{name}: required field is missing (mechanism {self.mechanism!r} drafts)")
        longest = int(self.output_tokens.max())
        if self.max_output_tokens is not None and self.max_output_tokens < longest:
            raise InvalidInput(
                f"max_output_tokens: expected at least the largest of output_tokens, {longest}, "
                f"got {self.max_output_tokens}"
            )
        self._check_serving()
        if isinstance(self.acceptance_rate, Rates) and self.acceptance_rate.values.max() >= 1.0:
            raise InvalidInput(f"acceptance_rate: expected numbers < 1, got {self.acceptance_rate.values.max():g}")
        self._check_range()

    def _check_serving(self) -> None:
        """Refuse lists of another length than the tasks', samples that are missing, arrivals at static batches."""
        if self.output_lengths == "predicted" and self.output_samples is None:
            raise InvalidInput("output_samples: required field is missing (output_lengths 'predicted')")
        for name, values in (
            ("acceptance_rate", self.acceptance_rate.values if isinstance(self.acceptance_rate, Rates) else None),
            ("output_samples[0]", None if self.output_samples is None else self.output_samples.rows[0]),
        ):
            if values is not None and len(values) != self.tasks:
                raise InvalidInput(f"{name}: expected {self.tasks} entries, as in input_tokens, got {len(values)}")
        if self.min_speculation_length == 0 and self.batching == "static":
            raise InvalidInput("min_speculation_length: expected 1 (batching 'static'), got 0")
        self._check_forms()
        if self.arrival_seconds is None:
            return
        if self.batching == "static":
            raise InvalidInput("arrival_seconds: expected none (batching 'static'), got a list")
        if self.arrival_seconds.max() > LONGEST_SECONDS:
            raise InvalidInput(
                f"arrival_seconds[{int(np.argmax(self.arrival_seconds))}]: expected at most {LONGEST_SECONDS:g}, "
                f"got {self.arrival_seconds.max():g}"
            )

    def _check_forms(self) -> None:
        """Refuse what is there for static batches alone: measured passes, and the rounds of the slowest task."""
        if self.batching != "static" and self.tables:
            raise InvalidInput(f"{self.tables[0]}.passes: expected lines or pieces (batching 'rebatched'), got a table")
        if self.rounds == "mean":
            return
        if self.batching != "static" or self.output_lengths == "predicted":
            raise InvalidInput(
                "rounds: expected 'mean' unless batching is 'static' and output_lengths 'conservative' or 'known', "
                "got 'slowest'"
            )
        if self.longest_output > MOST_COUNTED:
            raise InvalidInput(
                f"rounds: expected 'mean' beyond {MOST_COUNTED:,} output tokens, got 'slowest' at {self.longest_output}"
            )

    def _check_range(self) -> None:
        """Refuse runtimes and links whose seconds leave the range of floating-point numbers in any plan of use."""
        with np.errstate(all="ignore"):
            bits = np.asarray(self.bits_per_token("pipelined") * self.input_tokens, np.float64)
            alone = upload_seconds(bits, np.ones(self.tasks), self.bandwidth_hz, self.snr)  # over the whole band
        if not (alone.min() >= SHORTEST_SECONDS and alone.sum() <= LONGEST_SECONDS):  # not a number is refused, too
            task = int(np.argmin(alone)) if alone.min() < SHORTEST_SECONDS else int(np.argmax(alone))
            raise InvalidInput(
                f"snr[{task}]: expected uploads of {SHORTEST_SECONDS:g} to {LONGEST_SECONDS:g} seconds, "
                f"got {alone[task]:g}"
            )
        longest = float(self.input_tokens.max() + self.longest_output + (self.max_speculation_length or 0))
        passes = longest * (1.0 + (self.max_speculation_length or 0)) * self.tasks * longest
        models = (("draft", self.draft, self.draft_runtime), ("verify", self.verify, self.verify_runtime))
        for name, model, runtime in models:
            if model is None or runtime is None:
                continue
            tokens = np.array([longest])
            with np.errstate(all="ignore"):
                one = pass_seconds(model, runtime, self.tasks, tokens, tokens, int(longest))
                slowest = float((passes * (one + self.regroup_seconds * self.tasks))[0])
            if not slowest <= LONGEST_SECONDS:
                raise InvalidInput(
                    f"{name}_runtime: expected at most {LONGEST_SECONDS:g} seconds in all, got {slowest:g}"
                )

    @property
    def tables(self) -> list[str]:
        """Which runtimes are measured passes."""
        return [name for name in ("draft_runtime", "verify_runtime") if isinstance(getattr(self, name), TabledRuntime)]

    @property
    def tasks(self) -> int:
        """Number of tasks K."""
        return len(self.input_tokens)

    @property
    def longest_output(self) -> int:
        """O_max: as given, else the largest output length; the largest sampled one where they are predicted."""
        if self.output_lengths == "predicted" and self.output_samples is not None:
            return int(self.output_samples.rows.max())
        return self.max_output_tokens or int(self.output_tokens.max())

    @property
    def scenarios(self) -> tuple[Ints, ...]:
        """The output lengths that a plan is judged with, equally likely: one array, or every sample."""
        if self.output_lengths == "predicted" and self.output_samples is not None:
            return tuple(self.output_samples.rows)
        return (self.planned_output_tokens,)

    @property
    def common_rate(self) -> float:
        """The acceptance rate where all tasks have the same.

        Raises
        ------
        InvalidInput
            If they have not, or nothing is drafted.
        """
        if not isinstance(self.acceptance_rate, float):
            raise InvalidInput(f"acceptance_rate: expected one number, got {describe(self.acceptance_rate)}")
        return self.acceptance_rate

    @property
    def rates(self) -> Floats:
        """Acceptance rate of each task, shape (K,); 0 where nothing is drafted."""
        rate = self.acceptance_rate
        return rate.values if isinstance(rate, Rates) else np.full(self.tasks, rate or 0.0)

    def tokens_per_step(self, length: int) -> Floats:
        """Return the tokens L_k that each task gains in a step with a given draft length (Eq. 7), shape (K,)."""
        if length == 0 or self.acceptance_rate is None:
            return np.ones(self.tasks)
        if isinstance(self.acceptance_rate, Rates):
            return expected_tokens(self.acceptance_rate.values, np.full(self.tasks, length))
        return np.full(self.tasks, expected_tokens_per_step(self.acceptance_rate, length))

    def stage_seconds(
        self, size: Any, reached: Floats, length: int, prefill: Any, unseen: Any = 1.0
    ) -> tuple[Floats, Floats]:
        """Return T^d and T^v of batches in one step (Eq. 13-14); where nothing is drafted T^d is 0."""
        verify = verify_seconds(self.verify, self.verify_runtime, size, reached, length, prefill)
        if length == 0:
            return np.zeros_like(verify), verify
        assert self.draft is not None and self.draft_runtime is not None, "the problem has checked them"
        return draft_seconds(self.draft, self.draft_runtime, size, reached, length, prefill, unseen), verify

    @property
    def planned_output_tokens(self) -> Ints:
        """Output length that each task counts with: its own if known, else O_max."""
        if self.output_lengths == "known":
            return self.output_tokens
        return np.full(self.tasks, self.longest_output, np.int64)

    @property
    def mechanisms(self) -> tuple[Mechanism, ...]:
        """The mechanisms that a plan may use."""
        return MECHANISMS if self.mechanism == "any" else (self.mechanism,)

    def bits_per_token(self, mechanism: Mechanism) -> float:
        """Return lambda: as given, else 16 bits per hidden dimension of every model that takes part."""
        if self.embedding_bits_per_token is not None:
            return self.embedding_bits_per_token
        hidden = self.verify.hidden
        if mechanism != "autoregressive" and self.draft is not None:
            hidden += self.draft.hidden
        return 16.0 * hidden

    def mechanism_of(self, plan: ServingLatencyPlan) -> Mechanism:
        """Return the mechanism that a plan runs with.

        Raises
        ------
        InvalidInput
            If the plan names none where the problem leaves the choice, or another one than the problem's.
        """
        if self.mechanism == "any":
            if plan.mechanism is None:
                raise InvalidInput(f"plan.mechanism: expected one of {', '.join(MECHANISMS)}, got none")
            return plan.mechanism
        if plan.mechanism not in (None, self.mechanism):
            raise InvalidInput(f"plan.mechanism: expected {self.mechanism!r}, got {plan.mechanism!r}")
        return self.mechanism

    def readiness(self, plan: ServingLatencyPlan) -> tuple[Floats, Floats]:
        """Return when each task arrives, and when its input has, in seconds since the earliest arrival."""
        return self.readiness_at(self.mechanism_of(plan), plan.bandwidth_share)

    def readiness_at(self, mechanism: Mechanism, shares: Floats) -> tuple[Floats, Floats]:
        """Return the same for a mechanism and bandwidth shares."""
        bits = np.asarray(self.bits_per_token(mechanism) * self.input_tokens, np.float64)
        upload = upload_seconds(bits, shares, self.bandwidth_hz, self.snr)  # Eq. 15
        if self.arrival_seconds is None:
            return np.zeros(self.tasks), np.full(self.tasks, upload.max())
        arrival = self.arrival_seconds - self.arrival_seconds.min()
        return arrival, arrival + upload

    def limited_models(self, mechanism: Mechanism) -> list[tuple[str, Decoder, float]]:
        """Return the models that take part and have a limit on their memory: name, shape, bytes."""
        models = [("verify", self.verify, self.verify_memory_bytes)]
        if mechanism != "autoregressive":
            assert self.draft is not None
            models.insert(0, ("draft", self.draft, self.draft_memory_bytes))
        return [(name, model, limit) for name, model, limit in models if limit is not None]
