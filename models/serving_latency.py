"""Serving latency: batches, pipeline order, speculation length and bandwidth shares (paper 1, problem (24)).

K tasks upload their inputs over a shared uplink, then run in batches through a two-stage pipeline, decoding
step by decoding step: the draft model guesses l tokens for a batch while the verify model checks the batch
before it. The objective is T_inf + T_com (Eq. 23): the sum over decoding steps of the pipeline's makespan,
plus the time until the last input has arrived.

Batches are static, as in the paper, or change between the steps (`batching: "rebatched"`).

The judge (`evaluate`, `violations`) is written from the equations, array by array over the decoding steps, in
`static_serving` and `rebatched_serving`, and shares with the solvers only the primitives of Eq. 7-17.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import numpy as np
from msgspec import Meta

from specopt.models.acceptance import expected_tokens, expected_tokens_per_step
from specopt.models.decoder import Decoder
from specopt.models.errors import InvalidInput
from specopt.models.fields import (
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
from specopt.models.problem import Evaluation, Plan, Problem, exceeds
from specopt.models.rates import Rates
from specopt.models.rebatched_serving import Phase, Played, length_violations, phase_defects, play
from specopt.models.runtime import Runtime
from specopt.models.serving_stages import pass_flops
from specopt.models.static_serving import play_static, static_memory
from specopt.models.token_samples import TokenSamples
from specopt.models.uplink import upload_seconds

Mechanism = Literal["pipelined", "sequential", "autoregressive"]
MECHANISMS: tuple[Mechanism, ...] = ("pipelined", "sequential", "autoregressive")

DRAFTING_FIELDS = ("draft", "draft_runtime", "draft_memory_bytes", "acceptance_rate", "max_speculation_length")
"""What every mechanism but the autoregressive one needs."""

SMALLEST_SHARE = 1e-201
"""Smallest share of the bandwidth that a plan may give: of uploads at the two ends of their range, and their sum."""

SHORTEST_SECONDS, LONGEST_SECONDS = 1e-100, 1e100
"""Seconds that a problem may ask for: floating-point numbers hold their sums, products with counts, and quotients."""


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
class ServingLatencyProblem(Problem[ServingLatencyPlan]):
    """Minimise the total serving latency of K tasks under speculative decoding (paper 1).

    Parameters
    ----------
    input_tokens, output_tokens, snr
        Per task: prompt length I_k, output length O_k, linear signal-to-noise ratio of its uplink.
    bandwidth_hz
        Uplink bandwidth B_w shared by all tasks.
    embedding_bits_per_token
        Bits lambda sent per input token; None stands for 16 times the sum of the hidden sizes that take part.
    draft, verify
        Shapes of the draft and the verify model. `draft` may be None for autoregressive decoding.
    draft_runtime, verify_runtime
        Runtime of one forward pass of each model.
    draft_memory_bytes, verify_memory_bytes
        Memory for weights and KV cache of one batch; None for the verify model means ample.
    acceptance_rate
        Probability alpha that a draft token is accepted: one number, or one for each task.
    max_speculation_length, min_speculation_length
        Largest and smallest l allowed; 0: batches of a rebatched plan may guess nothing for a while.
    output_lengths
        "conservative": every task counts as `max_output_tokens` long; "known": as its own length; "predicted": as
        `output_samples` say, and the objective is the mean over them.
    output_samples
        Equally likely output lengths, a row for each sample.
    max_output_tokens
        O_max; None stands for the largest output length.
    mechanism
        "pipelined", "sequential", "autoregressive", or "any" to let the plan choose.
    batching
        "static": a batch stays together until its last member has finished; "rebatched": batches may change between
        decoding steps, and finished tasks leave at once.
    arrival_seconds
        When each task arrives; None: all at once, and nothing starts before every input is up. Rebatched only.
    regroup_seconds
        What every sequence that changes its batch costs, on each stage that moves it.
    objective
        "makespan": until the last task has finished; "mean_latency": from arrival to finish, on average.
    """

    kind: ClassVar[str] = "serving-latency"
    plan_type: ClassVar[type[Plan]] = ServingLatencyPlan
    sense: ClassVar[Literal["minimize", "maximize"]] = "minimize"
    objective_label: ClassVar[str] = "total serving latency (s)"

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
        if self.arrival_seconds is None:
            return
        if self.batching == "static":
            raise InvalidInput("arrival_seconds: expected none (batching 'static'), got a list")
        if self.arrival_seconds.max() > LONGEST_SECONDS:
            raise InvalidInput(
                f"arrival_seconds[{int(np.argmax(self.arrival_seconds))}]: expected at most {LONGEST_SECONDS:g}, "
                f"got {self.arrival_seconds.max():g}"
            )

    def _check_range(self) -> None:
        """Refuse runtimes and links whose seconds leave the range of floating-point numbers in any plan of use."""
        with np.errstate(all="ignore"):
            bits = np.asarray(self.bits_per_token("pipelined") * self.input_tokens, dtype=np.float64)
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
            flops = pass_flops(model, np.array([longest]), np.array([longest]), int(longest))
            with np.errstate(all="ignore"):
                slowest = float((passes * (runtime.seconds(self.tasks, flops) + self.regroup_seconds * self.tasks))[0])
            if not slowest <= LONGEST_SECONDS:
                raise InvalidInput(
                    f"{name}_runtime: expected at most {LONGEST_SECONDS:g} seconds in all, got {slowest:g}"
                )

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
        """Return the tokens L_k that each task gains in a step of so many guesses (Eq. 7), shape (K,)."""
        if length == 0 or self.acceptance_rate is None:
            return np.ones(self.tasks)
        if isinstance(self.acceptance_rate, Rates):
            return expected_tokens(self.acceptance_rate.values, np.full(self.tasks, length))
        return np.full(self.tasks, expected_tokens_per_step(self.acceptance_rate, length))

    @property
    def planned_output_tokens(self) -> Ints:
        """Output length that each task counts with: its own if known, else O_max."""
        if self.output_lengths == "known":
            return self.output_tokens
        return np.full(self.tasks, self.longest_output, dtype=np.int64)

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

    # ------------------------------------------------------------------ the judge

    def evaluate(self, plan: ServingLatencyPlan) -> Evaluation:
        """Return the latency of a plan in seconds: T_inf + T_com (Eq. 23), or as `objective` and `batching` say."""
        defects = self._defects(plan)
        if defects:
            raise InvalidInput(defects[0])
        rated = [self._latency(plan, number) for number in range(len(self.scenarios))]
        inference, communication = (sum(part) / len(rated) for part in zip(*rated, strict=True))
        terms = {"inference_seconds": inference, "communication_seconds": communication}
        return Evaluation(inference + communication, terms)

    def latencies(self, plan: ServingLatencyPlan) -> Floats:
        """Return what each task takes from arrival to finish, a row for each scenario (`objective: "mean_latency"`)."""
        arrival, ready = self.readiness(plan)
        if self.batching == "static":
            return np.array([play_static(self, plan, outputs)[1] + ready.max() for outputs in self.scenarios])
        return np.array([play(self, plan, outputs, ready).finish - arrival for outputs in self.scenarios])

    def _latency(self, plan: ServingLatencyPlan, number: int) -> tuple[float, float]:
        """Return inference, waiting included, and uploads, in seconds, in one of the scenarios."""
        arrival, ready = self.readiness(plan)
        if self.batching == "static":
            communication = float(ready.max())  # Eq. 16
            inference, finish = play_static(self, plan, self.scenarios[number])
            return inference if self.objective == "makespan" else float(finish.mean()), communication
        finish = self.played(plan)[number].finish
        waited = ready - arrival
        if self.objective == "makespan":
            return float(finish.max() - waited.max()), float(waited.max())
        return float((finish - arrival).mean() - waited.mean()), float(waited.mean())

    def played(self, plan: ServingLatencyPlan) -> tuple[Played, ...]:
        """Return what becomes of the tasks of a rebatched plan in every scenario; kept for the plan asked for last."""
        kept = self.__dict__.get("_played")
        if kept is None or kept[0] is not plan:
            ready = self.readiness(plan)[1]
            kept = plan, tuple(play(self, plan, outputs, ready) for outputs in self.scenarios)
            self.__dict__["_played"] = kept
        found: tuple[Played, ...] = kept[1]
        return found

    def readiness(self, plan: ServingLatencyPlan) -> tuple[Floats, Floats]:
        """Return when each task arrives, and when its input has, in seconds since the earliest arrival."""
        return self.readiness_at(self.mechanism_of(plan), plan.bandwidth_share)

    def readiness_at(self, mechanism: Mechanism, shares: Floats) -> tuple[Floats, Floats]:
        """Return the same for a mechanism and bandwidth shares."""
        bits = np.asarray(self.bits_per_token(mechanism) * self.input_tokens, dtype=np.float64)
        upload = upload_seconds(bits, shares, self.bandwidth_hz, self.snr)  # Eq. 15
        if self.arrival_seconds is None:
            return np.zeros(self.tasks), np.full(self.tasks, upload.max())
        arrival = self.arrival_seconds - self.arrival_seconds.min()
        return arrival, arrival + upload

    def most_at_once(self, mechanism: Mechanism, shares: Floats) -> float:
        """Return the largest sum of the shares that are held at one time, each from arrival to the upload's end."""
        return _most_at_once(*self.readiness_at(mechanism, shares), shares)

    def violations(self, plan: ServingLatencyPlan) -> list[str]:
        """Return what the plan violates of constraints (24a)-(24g)."""
        found = self._defects(plan)
        if found:
            return found
        mechanism = self.mechanism_of(plan)
        total = self.most_at_once(mechanism, plan.bandwidth_share)
        if exceeds(total, 1.0):  # (24a)
            found.append(f"bandwidth_share: sums to {total:.12g}, more than 1")
        if mechanism != "autoregressive":  # (24f)
            limit = self.max_speculation_length
            if not 1 <= plan.speculation_length <= (limit or 0):
                found.append(f"speculation_length: expected 1 to {limit}, got {plan.speculation_length}")
            found += length_violations(self, plan)
        if self.limited_models(mechanism):  # (24b)
            if self.batching == "static":
                found += [defect for outputs in self.scenarios for defect in static_memory(self, plan, outputs)]
            else:
                found += [defect for one in self.played(plan) for defect in one.breaches]
        return list(dict.fromkeys(found))

    def limited_models(self, mechanism: Mechanism) -> list[tuple[str, Decoder, float]]:
        """Return the models that take part and have a limit on their memory: name, shape, bytes."""
        models = [("verify", self.verify, self.verify_memory_bytes)]
        if mechanism != "autoregressive":
            assert self.draft is not None
            models.insert(0, ("draft", self.draft, self.draft_memory_bytes))
        return [(name, model, limit) for name, model, limit in models if limit is not None]

    def _defects(self, plan: ServingLatencyPlan) -> list[str]:
        """Return why the plan is no plan for this problem at all ((24c)-(24e), shapes)."""
        found = []
        try:
            mechanism = self.mechanism_of(plan)
        except InvalidInput as error:
            return [str(error)]
        if (plan.speculation_length == 0) != (mechanism == "autoregressive"):
            expected = "0 (autoregressive)" if mechanism == "autoregressive" else f"at least 1 ({mechanism})"
            found.append(f"speculation_length: expected {expected}, got {plan.speculation_length}")
        if len(plan.bandwidth_share) != self.tasks:
            found.append(f"bandwidth_share: expected {self.tasks} entries, got {len(plan.bandwidth_share)}")
        elif (plan.bandwidth_share <= 0).any():
            task = int(np.argmin(plan.bandwidth_share))
            found.append(f"bandwidth_share[{task}]: expected more than 0, got {plan.bandwidth_share[task]}")
        elif (plan.bandwidth_share < SMALLEST_SHARE).any() or (plan.bandwidth_share > 1 / SMALLEST_SHARE).any():
            found.append(f"bandwidth_share: expected shares from {SMALLEST_SHARE:g} on, each task's upload must end")
        wanted, other = ("batches", "phases") if self.batching == "static" else ("phases", "batches")
        if getattr(plan, other):
            found.append(f"{other}: expected none (batching {self.batching!r}), got {len(getattr(plan, other))}")
        if not getattr(plan, wanted):
            found.append(f"{wanted}: expected at least one (batching {self.batching!r}), got none")
        return found + (self._batch_defects(plan) if self.batching == "static" else phase_defects(self, plan))

    def _batch_defects(self, plan: ServingLatencyPlan) -> list[str]:
        found = []
        seen = [0] * self.tasks
        for position, batch in enumerate(plan.batches):
            if not batch:
                found.append(f"batches[{position}]: expected at least one task, got none")
            for task in batch:
                if not 0 <= task < self.tasks:
                    found.append(f"batches[{position}]: expected tasks 0 to {self.tasks - 1}, got {task}")
                else:
                    seen[task] += 1
        found += [f"batches: task {task} is in {n} batches instead of one" for task, n in enumerate(seen) if n != 1]
        return found


def _most_at_once(start: Floats, end: Floats, share: Floats) -> float:
    """Return the largest sum of the shares that are held at one time, each from its start up to its end."""
    if (start == start[0]).all():
        return float(share.sum())
    begun, over = np.argsort(start), np.argsort(end)
    taken = np.cumsum(share[begun])[np.searchsorted(start[begun], start[begun], side="right") - 1]
    returned = np.concatenate([[0.0], np.cumsum(share[over])])[np.searchsorted(end[over], start[begun], side="right")]
    return float((taken - returned).max())
