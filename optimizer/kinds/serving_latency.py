"""`serving-latency`: batches, their pipeline order, bandwidth shares, speculation length (paper 1)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from specopt.instances.deployment.serving_latency import serving_latency
from specopt.instances.runtimes.fields import of_serving_latency
from specopt.instances.serving_latency import FAMILIES
from specopt.instances.traces.serving_latency import FROM_TRACE
from specopt.kinds.kind import FASTER, Interval, Kind, Perturbation, Row, Simulator, Uncertainty, more
from specopt.models.acceptance import expected_tokens_per_step, rate_that_yields
from specopt.models.errors import InvalidInput
from specopt.models.pass_time import LinearRuntime, PiecewiseRuntime, Runtime, TabledRuntime
from specopt.models.rates import Rates
from specopt.models.serving_latency import DRAFTING_FIELDS, ServingLatencyPlan, ServingLatencyProblem
from specopt.models.token_samples import TokenSamples
from specopt.solvers.serving_latency import METHODS
from specopt.solvers.serving_latency.milp import FORMULATION


def _choices(problem: ServingLatencyProblem) -> list[dict[str, Any]]:
    """Return the other mechanisms that the problem has the data for; without overlap none is faster."""
    drafts = all(getattr(problem, name) is not None for name in DRAFTING_FIELDS)
    others = {"any": (), "autoregressive": ("pipelined",) if drafts else (), "pipelined": ("autoregressive",)}
    return [{"mechanism": name} for name in others.get(problem.mechanism, ("pipelined", "autoregressive"))]


def _rows(plan: ServingLatencyPlan) -> Iterator[Row]:
    share = plan.bandwidth_share
    mechanism = {} if plan.mechanism is None else {"mechanism": plan.mechanism}

    def row(task: int, batch: int, position: int, length: int) -> Row:
        place = {"task": task, "batch": batch, "position": position}
        return {**place, "bandwidth_share": float(share[task]), "speculation_length": length, **mechanism}

    for phase in plan.phases:
        lengths = phase.lengths(plan.speculation_length)
        for batch, (members, length) in enumerate(zip(phase.batches, lengths, strict=True)):
            for position, task in enumerate(members):
                if not 0 <= task < len(share):
                    raise InvalidInput(f"plan.phases: expected tasks 0 to {len(share) - 1}, got {task}")
                yield {"first_step": phase.first_step, **row(task, batch, position, length)}
    if plan.phases:
        return
    places = sorted((task, batch, i) for batch, members in enumerate(plan.batches) for i, task in enumerate(members))
    if [task for task, *_ in places] != list(range(len(share))):
        raise InvalidInput(f"plan.batches: expected each of the {len(share)} tasks of bandwidth_share in one batch")
    for place in places:
        yield row(*place, plan.speculation_length)


# ---------------------------------------------------------------------------- what one more unit is worth


def _drafting(one: Perturbation) -> Perturbation:
    """Return a perturbation of something that takes part only where drafts do."""
    return replace(one, apply=lambda problem: None if problem.mechanism == "autoregressive" else one.apply(problem))


def _faster(runtime: Runtime) -> Runtime:
    """Take one per cent off every pass of a runtime."""
    if isinstance(runtime, TabledRuntime):
        return TabledRuntime(passes=replace(runtime.passes, seconds=FASTER * runtime.passes.seconds))
    pieces = tuple(
        LinearRuntime(
            seconds_per_flop=FASTER * piece.seconds_per_flop, overhead_seconds=FASTER * piece.overhead_seconds
        )
        for piece in runtime.pieces
    )
    return pieces[0] if isinstance(runtime, LinearRuntime) else PiecewiseRuntime(pieces=pieces)


PERTURBATIONS = (
    more("bandwidth_hz", "+1 MHz bandwidth", lambda value: value + 1e6),
    _drafting(more("draft_memory_bytes", "+1 GB draft memory", lambda value: value + 1e9)),
    more("verify_memory_bytes", "+1 GB verify memory", lambda value: value + 1e9),
    _drafting(more("acceptance_rate", "+0.01 acceptance rate", lambda value: value + 0.01)),
    _drafting(more("max_speculation_length", "+1 longest speculation", lambda value: value + 1)),
    _drafting(more("draft_runtime", "draft passes 1 % faster", _faster)),
    more("verify_runtime", "verify passes 1 % faster", _faster),
)


# ---------------------------------------------------------------------------- acceptance and outputs in intervals

BEFORE = 2e-12
"""Relative distance to the tokens per step that save a step, for the worst case just before it: the judge rounds a
number of steps that is within 1e-12 of an integer to it."""

MAX_BREAKPOINTS = 4000


def _vary(
    problem: ServingLatencyProblem, plan: ServingLatencyPlan, rates: Any, scale: float
) -> tuple[ServingLatencyProblem, ServingLatencyPlan]:
    lengths = np.maximum(1, np.ceil(problem.output_tokens * scale - 1e-9)).astype(np.int64)
    longest = problem.max_output_tokens
    samples = problem.output_samples
    if samples is not None:
        samples = TokenSamples(np.maximum(1, np.ceil(samples.rows * scale - 1e-9)).astype(np.int64))
    return replace(
        problem,
        output_tokens=lengths,
        output_samples=samples,
        max_output_tokens=None if longest is None else max(1, math.ceil(longest * scale - 1e-9)),
        acceptance_rate=problem.acceptance_rate if rates is None else float(rates),
    ), plan


def _worst(
    problem: ServingLatencyProblem, plan: ServingLatencyPlan, acceptance: Interval, scale: float
) -> tuple[list[float], bool]:
    """Return the rates just before every step that is saved, and the ends.

    Rebatched plans, rates of every task and samples are tried at the ends alone.

    A higher acceptance rate may lengthen a plan while no step is saved, for Eq. 8 rounds up: among these rates the
    worst lies for certain, unless there are too many to try.
    """
    low, high = acceptance
    variant, _ = _vary(problem, plan, None, scale)
    if problem.mechanism_of(plan) == "autoregressive":
        return [low], True
    unclear = problem.output_lengths == "predicted" or problem.rounds == "slowest"
    if plan.phases or unclear or isinstance(problem.acceptance_rate, Rates):
        return [low, high], False
    outputs = {int(variant.planned_output_tokens[list(batch)].max()) for batch in plan.batches}
    length = plan.speculation_length
    found = [low, high]
    fewest, most = expected_tokens_per_step(low, length), expected_tokens_per_step(high, length)
    for tokens in outputs:
        for steps in range(max(1, math.floor(tokens / most)), math.ceil(tokens / fewest) + 1):
            before = tokens / steps * (1.0 - BEFORE)
            if fewest <= before <= most:
                found.append(rate_that_yields(before, length, low, high))
    found.sort()
    if len(found) <= MAX_BREAKPOINTS:
        return found, True
    return [found[i] for i in np.linspace(0, len(found) - 1, MAX_BREAKPOINTS).astype(int)], False


KIND = Kind(
    problem=ServingLatencyProblem,
    methods=METHODS,
    formulation=FORMULATION,
    choices=_choices,
    families=FAMILIES,
    rows=_rows,
    view="specopt.views.serving_latency",
    strategies="specopt.testing.strategies.serving_latency",
    relations="specopt.testing.relations.serving_latency",
    perturbations=PERTURBATIONS,
    uncertainty=Uncertainty(
        vary=_vary,
        shape=lambda problem: (),
        zero=False,
        longest_output=lambda problem: max(problem.max_output_tokens or 1, int(problem.output_tokens.max())),
        # A step of one task may end before the next one arrives, who then waits less, or in another batch.
        longer_is_worse=lambda problem: problem.arrival_seconds is None,
        worst=_worst,
    ),
    simulator=Simulator(world=ServingLatencyProblem, module="specopt.solvers.serving_latency.simulate"),
    from_trace=FROM_TRACE,
    from_runtimes=of_serving_latency,
    from_deployment=serving_latency,
)
