"""Serving latency: batches, pipeline order, speculation length and bandwidth shares (paper 1, problem (24)).

K tasks upload their inputs over a shared uplink, then run in batches through a two-stage pipeline, decoding
step by decoding step: the draft model guesses l tokens for a batch while the verify model checks the batch
before it. The objective is T_inf + T_com (Eq. 23): the sum over decoding steps of the pipeline's makespan,
plus the time until the last input has arrived.

The judge below (`evaluate`, `violations`) is written from the equations, array by array over the decoding
steps, and shares with the solvers only the primitives of Eq. 7-17.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import numpy as np

from specopt.models.acceptance import decoding_steps, expected_tokens_per_step
from specopt.models.decoder import Decoder
from specopt.models.errors import InvalidInput
from specopt.models.fields import Column, Floats, Ints, NonNegativeInt, OpenUnit, Positive, PositiveInt, TokenCount
from specopt.models.problem import Evaluation, Plan, Problem, exceeds
from specopt.models.runtime import Runtime
from specopt.models.uplink import upload_seconds

Mechanism = Literal["pipelined", "sequential", "autoregressive"]
MECHANISMS: tuple[Mechanism, ...] = ("pipelined", "sequential", "autoregressive")

SMALLEST_SHARE = 1e-201
"""Smallest share of the bandwidth that a plan may give: of uploads at the two ends of their range, and their sum."""

ENTRIES_AT_ONCE = 1 << 15
"""Batches times decoding steps that the judge holds at once: what fits a processor's cache."""

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
        Task indices (from 0) of each batch, batches in pipeline order.
    bandwidth_share
        Share w_k of the uplink bandwidth of each task.
    mechanism
        The chosen mechanism; only for problems that leave the choice open.
    """

    speculation_length: NonNegativeInt
    batches: tuple[tuple[int, ...], ...]
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
        Probability alpha that a draft token is accepted.
    max_speculation_length
        Largest l allowed.
    output_lengths
        "conservative": every task counts as `max_output_tokens` long; "known": as its own length.
    max_output_tokens
        O_max; None stands for the largest output length.
    mechanism
        "pipelined", "sequential", "autoregressive", or "any" to let the plan choose.
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
    output_lengths: Literal["conservative", "known"]
    draft: Decoder | None = None
    draft_runtime: Runtime | None = None
    draft_memory_bytes: Positive | None = None
    acceptance_rate: OpenUnit | None = None
    max_speculation_length: PositiveInt | None = None
    max_output_tokens: TokenCount | None = None
    mechanism: Literal["pipelined", "sequential", "autoregressive", "any"] = "pipelined"
    embedding_bits_per_token: Positive | None = None
    verify_memory_bytes: Positive | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.mechanism != "autoregressive":
            for name in ("draft", "draft_runtime", "draft_memory_bytes", "acceptance_rate", "max_speculation_length"):
                if getattr(self, name) is None:
                    raise InvalidInput(f"{name}: required field is missing (mechanism {self.mechanism!r} drafts)")
        longest = int(self.output_tokens.max())
        if self.max_output_tokens is not None and self.max_output_tokens < longest:
            raise InvalidInput(
                f"max_output_tokens: expected at least the largest of output_tokens, {longest}, "
                f"got {self.max_output_tokens}"
            )
        self._check_range()

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
            flops = _pass_flops(model, np.array([longest]), np.array([longest]), int(longest))
            with np.errstate(all="ignore"):
                slowest = float((passes * runtime.seconds(self.tasks, flops))[0])
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
        """O_max: as given, else the largest output length."""
        return self.max_output_tokens or int(self.output_tokens.max())

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
        """Return the total serving latency of a plan in seconds, T_inf + T_com (Eq. 23)."""
        defects = self._defects(plan)
        if defects:
            raise InvalidInput(defects[0])
        inference = self._inference_seconds(plan)
        bits = np.asarray(self.bits_per_token(self.mechanism_of(plan)) * self.input_tokens, dtype=np.float64)
        communication = float(upload_seconds(bits, plan.bandwidth_share, self.bandwidth_hz, self.snr).max())  # Eq. 16
        terms = {"inference_seconds": inference, "communication_seconds": communication}
        return Evaluation(inference + communication, terms)

    def violations(self, plan: ServingLatencyPlan) -> list[str]:
        """Return what the plan violates of constraints (24a)-(24g)."""
        found = self._defects(plan)
        if found:
            return found
        mechanism = self.mechanism_of(plan)
        if exceeds(float(plan.bandwidth_share.sum()), 1.0):  # (24a)
            found.append(f"bandwidth_share: sums to {plan.bandwidth_share.sum():.12g}, more than 1")
        if mechanism != "autoregressive":  # (24b)
            assert self.draft is not None and self.draft_memory_bytes is not None
            found += self._memory_violations(plan, "draft", self.draft, self.draft_memory_bytes)
            limit = self.max_speculation_length
            if not 1 <= plan.speculation_length <= (limit or 0):  # (24f)
                found.append(f"speculation_length: expected 1 to {limit}, got {plan.speculation_length}")
        if self.verify_memory_bytes is not None:
            found += self._memory_violations(plan, "verify", self.verify, self.verify_memory_bytes)
        return found

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

    def _memory_violations(self, plan: ServingLatencyPlan, which: str, model: Decoder, limit: float) -> list[str]:
        outputs = self.planned_output_tokens
        found = []
        for position, batch in enumerate(plan.batches):
            members = list(batch)
            tokens = int(self.input_tokens[members].max()) + int(outputs[members].max())
            needed = model.parameter_bytes + len(members) * model.kv_bytes_per_token * tokens  # Eq. 9-10
            if exceeds(needed, limit):
                found.append(
                    f"batches[{position}]: needs {needed / 1e9:.3f} GB of {which}-model memory, "
                    f"{limit / 1e9:.3f} GB are available"
                )
        return found

    def _inference_seconds(self, plan: ServingLatencyPlan) -> float:
        """Return T_inf (Eq. 18-22); every array runs over the decoding steps n = 1..N, or a range of them."""
        mechanism = self.mechanism_of(plan)
        length = plan.speculation_length
        tokens_per_step = 1.0
        if mechanism != "autoregressive":
            assert self.acceptance_rate is not None
            tokens_per_step = expected_tokens_per_step(self.acceptance_rate, length)  # Eq. 7
        outputs = self.planned_output_tokens
        steps = [decoding_steps(int(outputs[list(batch)].max()), tokens_per_step) for batch in plan.batches]  # Eq. 8
        sizes = [len(batch) for batch in plan.batches]
        padded_inputs = [float(self.input_tokens[list(batch)].max()) for batch in plan.batches]
        last = max(steps)
        width = min(last, ENTRIES_AT_ONCE)
        height = max(1, ENTRIES_AT_ONCE // width)
        seconds = 0.0
        for first in range(1, last + 1, width):
            n = np.arange(first, min(first + width, last + 1), dtype=np.float64)
            draft_done = np.zeros_like(n)
            done = np.zeros_like(n)
            for top in range(0, len(steps), height):
                rows = slice(top, top + height)
                size, padded_input = (np.array(column[rows])[:, None] for column in (sizes, padded_inputs))
                verify = self._verify_seconds(n, size, padded_input, length, tokens_per_step)
                draft = np.zeros_like(verify)
                if mechanism != "autoregressive":
                    draft = self._draft_seconds(n, size, padded_input, length, tokens_per_step)
                for batch_steps, T_d, T_v in zip(steps[rows], draft, verify, strict=True):
                    active = n <= batch_steps
                    if mechanism == "pipelined":
                        draft_done = np.where(active, draft_done + T_d, draft_done)
                        finished = np.maximum(draft_done, done) + T_v  # Eq. 20
                    else:
                        finished = done + T_d + T_v
                    done = np.where(active, finished, done)  # finished batches have left the pipeline, Eq. 21
            seconds += float(done.sum())  # Eq. 22
        return seconds

    def _draft_seconds(self, n: Floats, size: Ints, padded: Floats, length: int, tokens_per_step: float) -> Floats:
        """Return T^d of batches (rows) at decoding steps (columns), Eq. 13 and 19."""
        assert self.draft is not None and self.draft_runtime is not None
        seconds = np.zeros((len(size), len(n)))
        for i in range(1, length + 1):
            cached = padded + ((n - 1) * tokens_per_step - 1) + i - 1
            prefill = (n == 1) & (i == 1)
            new = np.where(prefill, padded, 1.0)
            total = np.where(prefill, padded, cached + 1)
            seconds += self.draft_runtime.seconds(size, _pass_flops(self.draft, new, total, 1))
        return seconds

    def _verify_seconds(self, n: Floats, size: Ints, padded: Floats, length: int, tokens_per_step: float) -> Floats:
        """Return T^v of batches (rows) at decoding steps (columns), Eq. 14 and 18."""
        cached = padded + (n - 1) * tokens_per_step - 1
        new = np.where(n == 1, padded + length, 1.0 + length)
        total = np.where(n == 1, padded + length, cached + length + 1)
        return self.verify_runtime.seconds(size, _pass_flops(self.verify, new, total, 1 + length))


def _pass_flops(model: Decoder, new: Floats, total: Floats, logits: int) -> Floats:
    """Return the operations of a forward pass per task (Eq. 11-12, or the exact counts)."""
    return model.flops_per_token * new + model.flops_per_token_pair * new * total + model.flops_per_logit * logits
