"""Code shared by the methods for `serving-latency` and `continuous-serving` problems.

The module converts problems to sorted tasks and arrays, and defines the applicability conditions of
the methods. It also determines the mechanisms for which plans exist, and explains why no plan
exists for the other mechanisms.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self, TypeVar

import numpy as np

from specopt.models.errors import Infeasible
from specopt.models.fields import Floats, Ints
from specopt.models.pass_time import Runtime
from specopt.models.problem import exceeds
from specopt.models.rates import Rates
from specopt.models.result import Conflict
from specopt.models.serving_data import Mechanism, ServingData, ServingPlan, stage_ends
from specopt.models.uplink import spectral_efficiency
from specopt.solvers.budget import Budget
from specopt.solvers.method import Condition, Method
from specopt.solvers.room import whole_room

MAX_LENGTHS = 64
"""Maximum number of speculation lengths that are tried for trivial plans, and for each step of an
adaptive plan.
"""


@dataclass(frozen=True)
class PreparedServing:
    """A serving problem under one mechanism, converted to arrays for the kernels.

    Tasks are sorted by input length, and tasks with equal input lengths are sorted by index.

    Parameters
    ----------
    problem, mechanism
        Problem and mechanism that the arrays represent.
    order
        Index of the task at each position of the sorted order, with shape (K,).
    inputs, outputs
        Input lengths and planned output lengths of the sorted tasks, as floats, with shape (K,).
    models
        Array with one row (flops_per_token, flops_per_token_pair, flops_per_logit) for the draft
        model and one for the verify model. The row of a model that the mechanism does not use is
        zero.
    memory
        KV bytes per token and free bytes of the draft model, followed by the same two numbers for
        the verify model. The free bytes include the tolerance of the memory constraint.
    """

    problem: ServingData[Any]
    mechanism: Mechanism
    order: Ints
    inputs: Floats
    outputs: Floats
    models: Floats
    memory: Floats

    @classmethod
    def of(cls, problem: ServingData[Any], mechanism: Mechanism | None = None) -> Self:
        """Convert a problem to arrays for one of its mechanisms. By default, the first mechanism is
        used.
        """
        chosen = mechanism or problem.mechanisms[0]
        order = np.argsort(problem.input_tokens, kind="stable")
        models, memory = [], []
        for model, limit in (
            (problem.draft if chosen != "autoregressive" else None, problem.draft_memory_bytes),
            (problem.verify, problem.verify_memory_bytes),
        ):
            models.append(
                [model.flops_per_token, model.flops_per_token_pair, model.flops_per_logit]
                if model
                else [0.0] * 3
            )
            if model is None or limit is None:
                memory += [0.0, math.inf]
            else:
                room = whole_room(limit) - model.parameter_bytes
                memory += [float(model.kv_bytes_per_token), room]
        return cls(
            problem=problem,
            mechanism=chosen,
            order=order,
            inputs=problem.input_tokens[order].astype(np.float64),
            outputs=problem.planned_output_tokens[order].astype(np.float64),
            models=np.array(models, np.float64),
            memory=np.array(memory, np.float64),
        )

    @cached_property
    def pieces(self) -> tuple[Floats, Floats]:
        """Runtimes of the draft stage and the verify stage, each as the upper envelope of linear
        pieces.

        Each of the P rows (c1, c2, largest work) describes a piece, whose runtime is c1 times the
        work plus c2. The work of a batch is its number of operations, b F.
        """
        problem, drafts = self.problem, self.mechanism != "autoregressive"
        return envelope(problem.draft_runtime if drafts else None), envelope(problem.verify_runtime)

    @property
    def overlap(self) -> bool:
        """Whether drafting for one batch can overlap with verification for another."""
        return self.mechanism == "pipelined"

    @property
    def tasks(self) -> int:
        """Number of tasks K."""
        return len(self.inputs)

    @property
    def least_length(self) -> int:
        """Minimum speculation length under a mechanism that uses drafts."""
        return 1

    @property
    def served_lengths(self) -> range:
        """Speculation lengths that a batch may use."""
        if self.mechanism == "autoregressive":
            return range(1)
        return range(self.least_length, (self.problem.max_speculation_length or 0) + 1)

    @cached_property
    def runtimes(self) -> Floats:
        """Runtimes of both stages as a single array of linear pieces, with shape (2, P, 3).

        The stage with fewer pieces is padded with copies of its last row, which are never used.
        """
        count = max(map(len, self.pieces))
        return np.stack(
            [np.pad(rows, ((0, count - len(rows)), (0, 0)), mode="edge") for rows in self.pieces]
        )

    @cached_property
    def kept(self) -> dict[Any, Any]:
        """Cache for arrays that are derived from this object."""
        return {}

    @cached_property
    def shares(self) -> Floats:
        """Optimal bandwidth share of each task, in the problem's task order (Eq. 27)."""
        need = self.problem.input_tokens / spectral_efficiency(self.problem.snr)
        return np.asarray(need / need.sum())

    @cached_property
    def upload_seconds(self) -> Floats:
        """Duration of each task's upload, in seconds, if the task uses the entire bandwidth."""
        return self.problem.uploads(self.mechanism, np.ones(self.tasks))

    @cached_property
    def communication_seconds(self) -> float:
        """Minimum communication latency over all bandwidth shares (below Eq. 26), in seconds."""
        return float(self.upload_seconds.sum())

    def shared_fields(self, length: int, shares: Floats | None) -> dict[str, Any]:
        """Return all fields of a plan except its batches, as a dictionary. If `shares` is None, the
        optimal bandwidth shares are used.
        """
        return {
            "speculation_length": length,
            "bandwidth_share": self.shares if shares is None else shares,
            "mechanism": self.mechanism if self.problem.mechanism == "any" else None,
        }

    def completed(
        self, stages: Iterable[tuple[Any, Any]], larger: Callable[..., Any] = max
    ) -> Iterator[Any]:
        """Yield, for each batch of a step, the time at which its verification ends (Eq. 20). Times
        are counted from the start of the step.

        Parameters
        ----------
        stages
            Draft time T^d and verify time T^v of each batch in pipeline order, as numbers or
            arrays.
        larger
            Function that returns the larger of two times. Use `np.maximum` for arrays.
        """
        drafted = done = 0.0
        for draft, verify in stages:
            drafted, done = stage_ends(self.mechanism, drafted, done, draft, verify, larger)
            yield done

    @cached_property
    def widest(self) -> int:
        """Upper bound on the size of a batch that fits in memory, computed from the shortest input
        and the shortest output.
        """
        most = self.room_for(float(self.inputs.min() + self.outputs.min()))
        return self.tasks if most >= self.tasks else max(1, math.ceil(most))

    def room_for(self, tokens: float) -> float:
        """Return how many tasks with `tokens` tokens each fit in memory. The result need not be an
        integer.
        """
        return min(
            (free / (kv * tokens) for kv, free in self.memory.reshape(2, 2).tolist() if kv > 0.0),
            default=math.inf,
        )

    def rows_end(self, row: int, work: int) -> int:
        """Return the row at which a kernel call that computes part of a shortest path should end.

        The call starts at `row` and may examine about `work` batches. In each row, it examines at
        most as many batches as there are tasks up to that row, and no batch larger than the widest
        batch.
        """
        ahead = row + 100
        return min(self.tasks + 1, row + max(1, min(ahead, work // min(row + ahead, self.widest))))

    def fits(self, size: int, padded: float, outputs: float) -> bool:
        """Return whether a batch fits in the memory of the models that the mechanism uses (Eq.
        9-10).

        The batch has `size` tasks, a longest input of `padded` tokens, and a longest output of
        `outputs` tokens.
        """
        tokens = padded + outputs
        kv_draft, free_draft, kv_verify, free_verify = self.memory.tolist()
        return bool(
            size * kv_draft * tokens <= free_draft and size * kv_verify * tokens <= free_verify
        )

    def shortages(self) -> list[tuple[str, int, float, float]]:
        """Return the tasks that do not fit in memory even if they are alone in a batch.

        Each entry is a tuple (model, task, needed, available): the name of the model, the task, the
        number of bytes that the task needs, and the number of bytes available.
        """
        alone, found = (self.inputs + self.outputs)[self.order.argsort()], []
        for name, model, limit in self.problem.limited_models(self.mechanism):
            kv, free = self.memory[2 * (name == "verify") :][:2]
            if name == "draft" and self.least_length == 0:
                continue  # the task may be served without drafts
            for task in np.flatnonzero(kv * alone > free).tolist():
                needs = model.parameter_bytes + model.kv_bytes_per_token * int(alone[task])
                found.append((name, task, float(needs), float(limit)))
        return found

    def misfit(self) -> str | None:
        """Return the reason why no plan exists under this mechanism, or None if plans exist.

        A plan exists unless some task does not fit in memory even if it is alone in a batch.
        """
        lacking = self.shortages()
        if not lacking:
            return None
        rank = self.order.argsort()
        name, task, needs, limit = max(lacking, key=lambda shortage: rank[shortage[1]])
        return (
            f"task {task} needs {needs / 1e9:.3f} GB ({needs:.0f} bytes) of {name}-model memory"
            f" alone, but only {limit / 1e9:.3f} GB ({limit:.0f} bytes) are available"
        )


def envelope(runtime: Runtime | None) -> Floats:
    """Return the upper envelope of a runtime's linear pieces for work >= 0.

    Each row (c1, c2, largest work) describes a piece, c1 times the work plus c2, and the largest
    work to which the piece applies. The rows are sorted by increasing c1.
    """
    if runtime is None:
        return np.array([[0.0, 0.0, math.inf]])
    lines = {(piece.seconds_per_flop, piece.overhead_seconds) for piece in runtime.pieces}
    height, slope = max((height, slope) for slope, height in lines)  # the largest at zero work
    rows = []
    while True:
        steeper = [((height - h) / (s - slope), -s, h) for s, h in lines if s > slope]
        end, negative, lower = min(steeper, default=(math.inf, 0.0, 0.0))
        rows.append((slope, height, end))
        if not steeper:
            return np.array(rows)
        slope, height = -negative, lower


def quick_batches(prepared: PreparedServing) -> list[list[int]] | None:
    """Divide the sorted tasks into contiguous batches, each as large as memory allows, starting
    from the longest input.

    Return None if a task does not fit in memory even if it is alone. The running time is linear in
    the number of tasks, and no compiled code is needed. These batches serve as a fallback if no
    time is left.
    """
    inputs, outputs = prepared.inputs.tolist(), prepared.outputs.tolist()
    batches: list[list[int]] = []
    padded, longest, size = 0.0, 0.0, 0
    for position in range(prepared.tasks - 1, -1, -1):
        output = max(longest, outputs[position])
        size += 1
        if size == 1 or not prepared.fits(size, padded, output):
            if not prepared.fits(1, inputs[position], outputs[position]):
                return None
            batches.append([])
            padded, output, size = inputs[position], outputs[position], 1
        batches[-1].append(position)
        longest = output
    return [batch[::-1] for batch in reversed(batches)]


P = TypeVar("P", bound=PreparedServing)

ONE_RATE = Condition(
    "one acceptance rate for all tasks",
    lambda method, problem: (
        "a rate for each task" if isinstance(problem.acceptance_rate, Rates) else None
    ),
)
GIVEN = Condition(
    "conservative or known output lengths",
    lambda method, problem: (
        "predicted output lengths" if problem.output_lengths == "predicted" else None
    ),
)


@dataclass(frozen=True)
class ServingMethod(Method):
    """Base class of the methods for `serving-latency` and `continuous-serving` problems."""

    size_unit = "tasks"
    bytes_per_number = 64.0
    bytes_per_part = 1700.0

    def size_of(self, problem: ServingData[Any]) -> float:
        """Return the number of tasks in the problem."""
        return problem.tasks


def able(problem: ServingData[Any], kind: type[P]) -> list[P]:
    """Convert a problem to an object of the class `kind` for each mechanism under which plans
    exist, and return these objects.

    Raises
    ------
    Infeasible
        If no plan exists under any mechanism. The message states the reason for the first
        mechanism.
    """
    options = [kind.of(problem, mechanism) for mechanism in problem.mechanisms]
    misfits = [prepared.misfit() for prepared in options]
    found = [prepared for prepared, misfit in zip(options, misfits, strict=True) if misfit is None]
    if not found:
        raise Infeasible(misfits[0], conflicts(options))
    return found


def offer_if_feasible(problem: ServingData[Any], plan: ServingPlan, budget: Budget) -> bool:
    """Record a plan in the budget if it is feasible. Return whether it is feasible."""
    budget.check(budget.longest_judging)
    feasible = not problem.violations(plan)
    if feasible:
        budget.offer(plan)
    return feasible


def planned_outputs(problem: ServingData[Any], quantiles: Iterable[float]) -> Iterator[Ints]:
    """Yield arrays of output lengths for which a method can plan.

    If output lengths are predicted, each array contains one of the given quantiles of every task's
    samples. Otherwise, there is a single array, which contains the planned output lengths.
    """
    if problem.output_lengths != "predicted":
        yield problem.planned_output_tokens
        return
    for share in quantiles:
        yield np.ceil(np.quantile(problem.scenarios, share, axis=0)).astype(np.int64)


def conflicts(options: Sequence[PreparedServing]) -> tuple[Conflict, ...]:
    """Return a conflict for each task that does not fit in memory under the first mechanism, even
    if it is alone.

    The changes that the conflicts suggest take all mechanisms into account. Under each mechanism, a
    plan exists if and only if every task fits in memory alone, so the conflicts prove that no plan
    exists.
    """
    problem = options[0].problem
    helpful: dict[str, float] = {}
    for prepared in options:
        lacking = prepared.shortages()
        for name, _, needs, _ in lacking:
            if len({model for model, *_ in lacking}) == 1:
                field = f"{name}_memory_bytes"
                helpful[field] = max(needs, helpful.get(field, 0.0))
        most = _longest_outputs(prepared)
        if problem.output_lengths == "conservative" and most >= int(problem.output_tokens.max()):
            helpful["max_output_tokens"] = max(most, helpful.get("max_output_tokens", 0))
    return tuple(
        Conflict(
            constraint=f"{name}_memory_bytes",
            index=task,
            needs=needs,
            has=has,
            least_change=helpful,
        )
        for name, task, needs, has in options[0].shortages()
    )


def _longest_outputs(prepared: PreparedServing) -> int:
    """Return the largest output length of the problem, reduced until a task with the longest input
    fits in the memory of every model. Return 0 if no length fits.
    """
    problem = prepared.problem
    longest = int(problem.input_tokens.max())
    most = problem.max_output_tokens or int(problem.output_tokens.max())
    for name, model, limit in problem.limited_models(prepared.mechanism):
        if model.kv_bytes_per_token and not (name == "draft" and prepared.least_length == 0):
            fitting = (
                math.floor((limit - model.parameter_bytes) / model.kv_bytes_per_token) + 1 - longest
            )
            while fitting > 0 and exceeds(
                model.parameter_bytes + model.kv_bytes_per_token * (longest + fitting), limit
            ):
                fitting -= 1
            most = min(most, fitting)
    return max(0, most)
