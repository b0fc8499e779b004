"""Fields and quantities that the two kinds of serving problems have in common (paper 1).

The kinds are `serving-latency` (fixed batches) and `continuous-serving` (batches that change
between decoding steps). A decoding step consists of two stages for each batch, drafting and
verifying. This module computes the durations of the stages and the times at which they end (Eq.
20).

Functions with an argument `reached` expect the length that each batch has reached before a step, in
tokens. This is the longest prompt before the first step, and I_m + (n - 1) L before step n of a
static batch. Arrays are broadcast, with one row per batch and one column per step.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Annotated, Any, ClassVar, Literal, TypeVar

import numpy as np

from specopt.models.acceptance import expected_tokens, expected_tokens_per_step
from specopt.models.decoder import Decoder
from specopt.models.errors import InvalidInput
from specopt.models.fields import (
    Column,
    Floats,
    FloatsLike,
    Given,
    Ints,
    IntsLike,
    NonNegativeInt,
    OpenUnit,
    Positive,
    PositiveInt,
    Positives,
    TokenCount,
    TokenCounts,
    describe,
    optional,
    required,
)
from specopt.models.pass_time import Runtime, TabledRuntime, pass_seconds
from specopt.models.problem import Plan, Problem, Sense, exceeds
from specopt.models.rates import Rates
from specopt.models.token_samples import TokenSamples
from specopt.models.uplink import upload_seconds

Mechanism = Literal["pipelined", "sequential", "autoregressive"]
MECHANISMS: tuple[Mechanism, ...] = ("pipelined", "sequential", "autoregressive")

DRAFTING_FIELDS = (
    "draft",
    "draft_runtime",
    "draft_memory_bytes",
    "acceptance_rate",
    "max_speculation_length",
)
"""Names of the fields that are required unless decoding is autoregressive."""

SHORTEST_SECONDS, LONGEST_SECONDS = 1e-100, 1e100
"""Minimum and maximum durations in seconds. Problems with durations outside these limits are
rejected, because sums, quotients or products with counts might not be finite.
"""


SMALLEST_SHARE = 1e-201
"""Minimum bandwidth share in a plan. With this limit, all upload times and their sum are finite."""


TaskShares = Given[Annotated[Floats, Column(float)], FloatsLike]
TaskRates = Given[OpenUnit | Rates | None, float | FloatsLike | Rates | None]
Samples = Given[TokenSamples | None, TokenSamples | Sequence[IntsLike] | Ints | None]
"""Types of fields in serving problems and plans. Subclasses declare fields of these types again.
Otherwise, mypy would infer the wrong type when such a field is read.
"""


def stage_ends(
    mechanism: Mechanism, draft_done: Any, done: Any, T_d: Any, T_v: Any, larger: Any = np.maximum
) -> tuple[Any, Any]:
    """Return the times at which the draft stage and the verify stage finish a batch (Eq. 20).

    The first time changes only with the mechanism "pipelined". With all other mechanisms,
    `draft_done` is returned unchanged.

    Parameters
    ----------
    mechanism
        Mechanism of the plan.
    draft_done
        Time at which the draft stage finishes the previous batch of the step, a number or an array.
    done
        Time at which the verify stage finishes the previous batch of the step.
    T_d
        Duration of the batch's draft stage.
    T_v
        Duration of the batch's verify stage.
    larger
        Function that returns the larger of two times: ``np.maximum`` for arrays, ``max`` for
        numbers.
    """
    if mechanism == "pipelined":
        draft_done = draft_done + T_d
        return draft_done, larger(draft_done, done) + T_v
    return draft_done, done + T_d + T_v


def too_much(needed: float, which: str, limit: float) -> str:
    """Return the end of an error message about a batch that does not fit in memory."""
    return (
        f"needs {needed / 1e9:.3f} GB of {which}-model memory, but only {limit / 1e9:.3f} GB"
        f" are available"
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class ServingPlan(Plan):
    """Base class for plans of `serving-latency` and `continuous-serving` problems, with the fields
    that they have in common. The fields are documented in the subclasses.
    """

    speculation_length: NonNegativeInt
    bandwidth_share: TaskShares = required()
    mechanism: Mechanism | None = None


S = TypeVar("S", bound=ServingPlan, covariant=True)


@dataclass(frozen=True, kw_only=True, eq=False)
class ServingData(Problem[S]):
    """Base class for `serving-latency` and `continuous-serving` problems, with the fields that they
    have in common. The fields are documented in the subclasses.
    """

    sense: ClassVar[Sense] = "minimize"
    objective_label = "total serving latency (s)"

    input_tokens: TokenCounts = required()
    output_tokens: TokenCounts = required()
    snr: Positives = required()
    bandwidth_hz: Positive
    verify: Decoder
    verify_runtime: Runtime
    output_lengths: Literal["conservative", "known", "predicted"]
    draft: Decoder | None = None
    draft_runtime: Runtime | None = None
    draft_memory_bytes: Positive | None = None
    acceptance_rate: TaskRates = optional()
    max_speculation_length: PositiveInt | None = None
    max_output_tokens: TokenCount | None = None
    mechanism: Literal[Mechanism, "any"] = "pipelined"
    embedding_bits_per_token: Positive | None = None
    verify_memory_bytes: Positive | None = None
    output_samples: Samples = optional()

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.mechanism != "autoregressive":
            for name in DRAFTING_FIELDS:
                if getattr(self, name) is None:
                    raise InvalidInput(
                        f"{name}: missing; required when mechanism is {self.mechanism!r}"
                    )
        longest = int(self.output_tokens.max())
        if self.max_output_tokens is not None and self.max_output_tokens < longest:
            raise InvalidInput(
                f"max_output_tokens: expected at least the largest value in output_tokens,"
                f" {longest}, got {self.max_output_tokens}"
            )
        self._check_samples()
        if isinstance(self.acceptance_rate, Rates) and self.acceptance_rate.values.max() >= 1.0:
            raise InvalidInput(
                f"acceptance_rate: expected numbers < 1, got {self.acceptance_rate.values.max():g}"
            )
        self._check_range()

    def _check_samples(self) -> None:
        """Raise an error if required samples are missing, or if acceptance rates or samples do not
        have one entry per task.
        """
        if self.output_lengths == "predicted" and self.output_samples is None:
            raise InvalidInput(
                "output_samples: missing; required when output_lengths is 'predicted'"
            )
        counts = {}
        if isinstance(self.acceptance_rate, Rates):
            counts["acceptance_rate"] = len(self.acceptance_rate.values)
        if self.output_samples is not None:
            counts["output_samples[0]"] = len(self.output_samples.rows[0])
        for name, count in counts.items():
            if count != self.tasks:
                raise InvalidInput(
                    f"{name}: expected {self.tasks} entries, as in input_tokens, got {count}"
                )

    def _check_range(self) -> None:
        """Raise an error if an upload time or a total runtime could be outside the supported range
        of durations.
        """
        with np.errstate(all="ignore"):
            alone = self.uploads("pipelined", np.ones(self.tasks))  # with the whole bandwidth
        if not (
            alone.min() >= SHORTEST_SECONDS and alone.sum() <= LONGEST_SECONDS
        ):  # also rejects NaN
            task = (
                int(np.argmin(alone)) if alone.min() < SHORTEST_SECONDS else int(np.argmax(alone))
            )
            raise InvalidInput(
                f"snr[{task}]: expected an upload time of {SHORTEST_SECONDS:g} to"
                f" {LONGEST_SECONDS:g} seconds, got {alone[task]:g}"
            )
        longest = float(
            self.input_tokens.max() + self.longest_output + (self.max_speculation_length or 0)
        )
        passes = longest * (1.0 + (self.max_speculation_length or 0)) * self.tasks * longest
        models = (
            ("draft", self.draft, self.draft_runtime),
            ("verify", self.verify, self.verify_runtime),
        )
        for name, model, runtime in models:
            if model is None or runtime is None:
                continue
            tokens = np.array([longest])
            with np.errstate(all="ignore"):
                one = pass_seconds(model, runtime, self.tasks, tokens, tokens, int(longest))
                slowest = float((passes * (one + self.moving_seconds))[0])
            if not slowest <= LONGEST_SECONDS:
                raise InvalidInput(
                    f"{name}_runtime: expected a total time of at most {LONGEST_SECONDS:g} seconds,"
                    f" got {slowest:g}"
                )

    def shared_fields(self) -> dict[str, Any]:
        """Return the fields that `serving-latency` and `continuous-serving` problems have in
        common, as a mapping from names to values.
        """
        return {field.name: getattr(self, field.name) for field in fields(ServingData)}

    @property
    def moving_seconds(self) -> float:
        """Upper bound on the time, in seconds, that moving sequences between batches adds to a
        stage. The value is 0 unless a subclass overrides it.
        """
        return 0.0

    @property
    def tables(self) -> list[str]:
        """Names of the runtime fields that contain tables of measured passes."""
        return [
            name
            for name in ("draft_runtime", "verify_runtime")
            if isinstance(getattr(self, name), TabledRuntime)
        ]

    @property
    def tasks(self) -> int:
        """Number of tasks K."""
        return len(self.input_tokens)

    @property
    def longest_output(self) -> int:
        """Maximum output length O_max, in tokens.

        If output lengths are predicted, this is the maximum over all samples. Otherwise, it is
        `max_output_tokens` or, if that is None, the largest entry of `output_tokens`.
        """
        if self.output_lengths == "predicted" and self.output_samples is not None:
            return int(self.output_samples.rows.max())
        return self.max_output_tokens or int(self.output_tokens.max())

    @property
    def scenarios(self) -> tuple[Ints, ...]:
        """Equally likely arrays of output lengths, over which a plan's objective is averaged. There
        is one array per sample if lengths are predicted, and a single array otherwise.
        """
        if self.output_lengths == "predicted" and self.output_samples is not None:
            return tuple(self.output_samples.rows)
        return (self.planned_output_tokens,)

    @property
    def common_rate(self) -> float:
        """Acceptance rate that applies to all tasks.

        Raises
        ------
        InvalidInput
            If the problem specifies one rate per task or no rates.
        """
        if not isinstance(self.acceptance_rate, float):
            raise InvalidInput(
                f"acceptance_rate: expected one number, got {describe(self.acceptance_rate)}"
            )
        return self.acceptance_rate

    @property
    def rates(self) -> Floats:
        """Acceptance rate of each task, shape (K,). The rates are 0 if the problem does not specify
        any.
        """
        rate = self.acceptance_rate
        return rate.values if isinstance(rate, Rates) else np.full(self.tasks, rate or 0.0)

    def tokens_per_step(self, length: int) -> Floats:
        """Return the mean number of tokens L_k that each task gains in a step with `length` draft
        tokens (Eq. 7), shape (K,).
        """
        if length == 0 or self.acceptance_rate is None:
            return np.ones(self.tasks)
        if isinstance(self.acceptance_rate, Rates):
            return expected_tokens(self.acceptance_rate.values, np.full(self.tasks, length))
        return np.full(self.tasks, expected_tokens_per_step(self.acceptance_rate, length))

    def stage_seconds(
        self, size: Any, reached: Floats, length: int, prefill: Any, unseen: Any = 1.0
    ) -> tuple[Floats, Floats]:
        """Return the durations T^d of draft stages and T^v of verify stages, in seconds.

        The durations follow Eq. 13-14 and 18-19. A verify pass processes the draft tokens and the
        last output token. The first draft pass processes `unseen` tokens, which the draft model has
        not processed yet, and every later draft pass processes one token. If `prefill` is true, the
        prompt replaces the last output token in the verify pass, and it replaces the `unseen`
        tokens in the first draft pass.

        Parameters
        ----------
        size
            Number of tasks in each batch.
        reached
            Length that each batch has reached before the step, in tokens.
        length
            Speculation length.
        prefill
            Whether the step is the batch's first step.
        unseen
            Number of tokens that the draft model has not processed, in steps without prefill.
        """
        new = np.where(prefill, reached + length, 1.0 + length)
        verify = pass_seconds(
            self.verify, self.verify_runtime, size, new, reached + length, 1 + length
        )
        draft = np.zeros_like(verify)
        for i in range(length):
            assert self.draft is not None and self.draft_runtime is not None, "it drafts"
            new = np.ones_like(reached) if i else np.where(prefill, reached, unseen)
            draft += pass_seconds(self.draft, self.draft_runtime, size, new, reached + i, 1)
        return draft, verify

    @property
    def planned_output_tokens(self) -> Ints:
        """Output length that is assumed for each task. This is `output_tokens` if output lengths
        are known, and O_max for every task otherwise.
        """
        if self.output_lengths == "known":
            return self.output_tokens
        return np.full(self.tasks, self.longest_output, np.int64)

    @property
    def mechanisms(self) -> tuple[Mechanism, ...]:
        """Mechanisms among which a plan may choose."""
        return MECHANISMS if self.mechanism == "any" else (self.mechanism,)

    def bits_per_token(self, mechanism: Mechanism) -> float:
        """Return the number lambda of bits sent per input token. Unless the problem specifies it,
        this is 16 times the sum of the hidden sizes of all models that `mechanism` uses.
        """
        if self.embedding_bits_per_token is not None:
            return self.embedding_bits_per_token
        hidden = self.verify.hidden
        if mechanism != "autoregressive" and self.draft is not None:
            hidden += self.draft.hidden
        return 16.0 * hidden

    def mechanism_of(self, plan: ServingPlan) -> Mechanism:
        """Return the mechanism that a plan uses, which is chosen by the problem or by the plan.

        Raises
        ------
        InvalidInput
            If the plan does not specify a mechanism although the problem leaves the choice open, or
            if the plan's mechanism differs from the problem's mechanism.
        """
        if self.mechanism == "any":
            if plan.mechanism is None:
                raise InvalidInput(
                    f"plan.mechanism: expected one of {', '.join(MECHANISMS)}, got none"
                )
            return plan.mechanism
        if plan.mechanism not in (None, self.mechanism):
            raise InvalidInput(
                f"plan.mechanism: expected {self.mechanism!r}, got {plan.mechanism!r}"
            )
        return self.mechanism

    def uploads(self, mechanism: Mechanism, shares: Floats) -> Floats:
        """Return each task's upload time in seconds if the tasks receive the bandwidth `shares`
        (Eq. 15).
        """
        bits = np.asarray(self.bits_per_token(mechanism) * self.input_tokens, np.float64)
        return upload_seconds(bits, shares, self.bandwidth_hz, self.snr)

    def limited_models(self, mechanism: Mechanism) -> list[tuple[str, Decoder, float]]:
        """Return a tuple (name, shape, limit) for each model whose memory is limited. The limit is
        in bytes. Only models that `mechanism` uses are included.
        """
        models = [("verify", self.verify, self.verify_memory_bytes)]
        if mechanism != "autoregressive":
            assert self.draft is not None
            models.insert(0, ("draft", self.draft, self.draft_memory_bytes))
        return [(name, model, limit) for name, model, limit in models if limit is not None]

    @abstractmethod
    def batch_defects(self, plan: Any) -> list[str]:
        """Return the reasons why a plan's batches are not valid for this problem."""

    def _defects(self, plan: ServingPlan) -> list[str]:
        """Return the reasons why the plan does not match this problem. These are violations of the
        constraints (24c)-(24e), and arrays of the wrong length.
        """
        try:
            mechanism = self.mechanism_of(plan)
        except InvalidInput as error:
            return [str(error)]
        found = []
        if (plan.speculation_length == 0) != (mechanism == "autoregressive"):
            expected = (
                "0 when mechanism is 'autoregressive'"
                if mechanism == "autoregressive"
                else f"at least 1 when mechanism is {mechanism!r}"
            )
            found.append(f"speculation_length: expected {expected}, got {plan.speculation_length}")
        if len(plan.bandwidth_share) != self.tasks:
            found.append(
                f"bandwidth_share: expected {self.tasks} entries, got {len(plan.bandwidth_share)}"
            )
        elif (plan.bandwidth_share <= 0).any():
            task = int(np.argmin(plan.bandwidth_share))
            found.append(
                f"bandwidth_share[{task}]: expected a number > 0, got {plan.bandwidth_share[task]}"
            )
        elif (plan.bandwidth_share < SMALLEST_SHARE).any() or (
            plan.bandwidth_share > 1 / SMALLEST_SHARE
        ).any():
            found.append(
                f"bandwidth_share: expected shares of at least {SMALLEST_SHARE:g}, so that each"
                " task's upload finishes"
            )
        return found + self.batch_defects(plan)

    def share_and_length_violations(self, plan: ServingPlan, total_share: float) -> list[str]:
        """Return messages about violations of the constraints (24a) on bandwidth and (24f) on the
        speculation length. `total_share` is the maximum total share that is in use at any time.
        """
        found = []
        if exceeds(total_share, 1.0):
            found.append(f"bandwidth_share: the shares sum to {total_share:.12g}, which exceeds 1")
        limit = self.max_speculation_length or 0
        if (
            self.mechanism_of(plan) != "autoregressive"
            and not 1 <= plan.speculation_length <= limit
        ):
            found.append(
                f"speculation_length: expected 1 to {limit}, got {plan.speculation_length}"
            )
        return found
