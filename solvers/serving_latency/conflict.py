"""Why no task may run alone, as data, and the least change of one field that would help."""

from __future__ import annotations

import math
from collections.abc import Sequence

from specopt.models.problem import exceeds
from specopt.models.result import Conflict
from specopt.solvers.serving_latency.prepare import Prepared


def conflicts(options: Sequence[Prepared]) -> tuple[Conflict, ...]:
    """Return what the tasks lack that fit no batch under the first mechanism; what would help holds for all of them.

    A plan exists under a mechanism just if every task fits alone, so that it is proven.
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
        Conflict(constraint=f"{name}_memory_bytes", index=task, needs=needs, has=has, least_change=helpful)
        for name, task, needs, has in options[0].shortages()
    )


def _longest_outputs(prepared: Prepared) -> int:
    """Return the longest output that fits every model beside the longest input; 0 if none does."""
    problem = prepared.problem
    longest = int(problem.input_tokens.max())
    most = problem.max_output_tokens or int(problem.output_tokens.max())
    for name, model, limit in problem.limited_models(prepared.mechanism):
        if model.kv_bytes_per_token and not (name == "draft" and problem.min_speculation_length == 0):
            fitting = math.floor((limit - model.parameter_bytes) / model.kv_bytes_per_token) + 1 - longest
            while fitting > 0 and exceeds(
                model.parameter_bytes + model.kv_bytes_per_token * (longest + fitting), limit
            ):
                fitting -= 1
            most = min(most, fitting)
    return max(0, most)
