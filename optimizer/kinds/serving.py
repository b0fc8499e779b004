"""Declarations shared by the kinds `serving-latency` and `continuous-serving`.

They concern alternative mechanisms, perturbations and uncertainty.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from specopt.kinds.kind import FASTER, Perturbation, Row, added, more
from specopt.models.fields import Ints
from specopt.models.pass_time import LinearRuntime, PiecewiseRuntime, Runtime, TabledRuntime
from specopt.models.serving_data import DRAFTING_FIELDS, ServingData, ServingPlan
from specopt.models.token_samples import TokenSamples


def choices(problem: ServingData[Any]) -> list[dict[str, Any]]:
    """Return alternatives to a problem's decoding mechanism, as mappings of fields to replace.

    An alternative is included only if the problem has the necessary data. The mechanism without
    overlap is omitted, because it is never faster.
    """
    drafts = all(getattr(problem, name) is not None for name in DRAFTING_FIELDS)
    others = {
        "any": (),
        "autoregressive": ("pipelined",) if drafts else (),
        "pipelined": ("autoregressive",),
    }
    return [
        {"mechanism": name}
        for name in others.get(problem.mechanism, ("pipelined", "autoregressive"))
    ]


def row(plan: ServingPlan, task: int, batch: int, position: int, length: int) -> Row:
    """Return the table row for a task of a plan.

    The row contains the index of the task, the index of the batch, the position of the task in the
    batch, and the task's bandwidth share and draft length.
    """
    found = {
        "task": task,
        "batch": batch,
        "position": position,
        "bandwidth_share": float(plan.bandwidth_share[task]),
        "speculation_length": length,
    }
    return found if plan.mechanism is None else {**found, "mechanism": plan.mechanism}


def _drafting(one: Perturbation) -> Perturbation:
    """Return a copy of a perturbation that applies only to problems that use drafts."""
    return replace(
        one,
        apply=lambda problem: None if problem.mechanism == "autoregressive" else one.apply(problem),
    )


def _faster(runtime: Runtime) -> Runtime:
    """Return a runtime model in which all times are reduced by one per cent."""
    if isinstance(runtime, TabledRuntime):
        return TabledRuntime(
            passes=replace(runtime.passes, seconds=FASTER * runtime.passes.seconds)
        )
    pieces = tuple(
        LinearRuntime(
            seconds_per_flop=FASTER * piece.seconds_per_flop,
            overhead_seconds=FASTER * piece.overhead_seconds,
        )
        for piece in runtime.pieces
    )
    return pieces[0] if isinstance(runtime, LinearRuntime) else PiecewiseRuntime(pieces=pieces)


PERTURBATIONS = (
    added("bandwidth_hz", "+1 MHz bandwidth", 1e6),
    _drafting(added("draft_memory_bytes", "+1 GB draft memory", 1e9)),
    added("verify_memory_bytes", "+1 GB verify memory", 1e9),
    _drafting(added("acceptance_rate", "+0.01 acceptance rate", 0.01)),
    _drafting(added("max_speculation_length", "+1 maximum speculation length", 1)),
    _drafting(more("draft_runtime", "draft passes 1 % faster", _faster)),
    more("verify_runtime", "verify passes 1 % faster", _faster),
)


def vary(
    problem: ServingData[Any], plan: ServingPlan, rates: Any, scale: float
) -> tuple[ServingData[Any], ServingPlan]:
    """Return a pair: the problem with other acceptance rates and scaled output lengths, and the
    plan.

    The plan is unchanged. If `rates` is None, the acceptance rate of the problem is kept.
    """

    def scaled(tokens: Any) -> Ints:
        return np.asarray(np.maximum(1, np.ceil(tokens * scale - 1e-9)), np.int64)

    longest = problem.max_output_tokens
    samples = problem.output_samples
    return replace(
        problem,
        output_tokens=scaled(problem.output_tokens),
        output_samples=None if samples is None else TokenSamples(scaled(samples.rows)),
        max_output_tokens=None if longest is None else int(scaled(longest)),
        acceptance_rate=problem.acceptance_rate if rates is None else float(rates),
    ), plan


UNCERTAINTY: dict[str, Any] = {
    "vary": vary,
    "shape": lambda problem: (),
    "zero": False,
    "longest_output": lambda problem: max(
        problem.max_output_tokens or 1, int(problem.output_tokens.max())
    ),
}
"""Arguments of `Uncertainty` that the two serving kinds share."""
