"""The lines of paper 1's figures: every scheme of Sec. IV, and ours, on one problem.

"SD without pipeline" keeps the batches of the proposed scheme, as the paper says; "autoregressive" starts with two
tasks per batch and goes on until the latency rises. With the batches that suit them best, both are lines more. All plan
with O_max, as Sec. III-B does, but for two that know the output lengths: `length-aware`, and beside it what the plan
of Algorithm 1 really lasts.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

from specopt.models.problem import Plan
from specopt.models.result import Result
from specopt.models.serving_latency import ServingLatencyProblem
from specopt.solve import solve
from specopt.solvers.method import Method
from specopt.solvers.serving_latency.exact import Exact
from specopt.solvers.serving_latency.fixed_length import FixedLength
from specopt.solvers.serving_latency.length_aware import LengthAware

PROPOSED = "proposed (Algorithm 1)"
WITHOUT_PIPELINE = "SD w/o pipeline"
OWN_BATCHES = "SD w/o pipeline, own batches"
NO_BATCHING = "no batching"
FIXED_LENGTH = "fixed length 7"
AUTOREGRESSIVE, OWN_AUTOREGRESSIVE = "autoregressive", "autoregressive, own batches"
STATIC, MAX, HEURISTIC = "static batching", "max batching", "heuristic batching"
UNIFORM = "uniform bandwidth"
EXACT = "exact"
REAL, LENGTH_AWARE = "proposed, real lengths", "length-aware, real lengths"

EXACT_SECONDS = 1.0
"""Time limit of the exact method on one problem; its gap is then small, and known."""


class Schemes:
    """Every scheme on one problem, each solved when first asked for.

    Parameters
    ----------
    problem
        A pipelined problem that plans with O_max.
    """

    def __init__(self, problem: ServingLatencyProblem) -> None:
        self.problem = problem
        self._seconds: dict[str, float] = {}
        self._proposed: Plan | None = None

    def seconds(self, scheme: str) -> float:
        """Return the total latency of a scheme."""
        if scheme not in self._seconds:
            self._seconds[scheme] = _SCHEMES[scheme](self)
        return self._seconds[scheme]

    def proposed(self) -> Plan:
        """Return the plan of Algorithm 1."""
        if self._proposed is None:
            self._proposed = _solve(self.problem, "algorithm-1").plan
            assert self._proposed is not None, "single tasks fit the memory in every setting of the paper"
        return self._proposed

    def solved(self, method: Method | str, time_limit: float | None = None, **fields: str) -> float:
        """Return what a method reaches on the problem with some fields replaced."""
        result = _solve(dataclasses.replace(self.problem, **fields), method, time_limit)  # type: ignore[arg-type]
        assert result.objective is not None, "single tasks fit the memory in every setting of the paper"
        return result.objective

    def judged(self, **fields: str) -> float:
        """Return what the plan of Algorithm 1 takes on the problem with some fields replaced."""
        return dataclasses.replace(self.problem, **fields).evaluate(self.proposed()).objective  # type: ignore[arg-type]


def _solve(problem: ServingLatencyProblem, method: Method | str, time_limit: float | None = None) -> Result:
    """Solve; Ctrl-C ends everything instead of this solve alone, whose result would be a poor line."""
    result = solve(problem, method, time_limit=time_limit)
    if result.termination == "interrupted":
        raise KeyboardInterrupt
    return result


_SCHEMES: dict[str, Callable[[Schemes], float]] = {
    PROPOSED: lambda schemes: schemes.judged(),
    WITHOUT_PIPELINE: lambda schemes: schemes.judged(mechanism="sequential"),
    OWN_BATCHES: lambda schemes: schemes.solved(Exact(), EXACT_SECONDS, mechanism="sequential"),
    NO_BATCHING: lambda schemes: schemes.solved("no-batching"),
    FIXED_LENGTH: lambda schemes: schemes.solved(FixedLength(length=7)),
    AUTOREGRESSIVE: lambda schemes: schemes.solved("heuristic-batching", mechanism="autoregressive"),
    OWN_AUTOREGRESSIVE: lambda schemes: schemes.solved(Exact(), EXACT_SECONDS, mechanism="autoregressive"),
    STATIC: lambda schemes: schemes.solved("static-batching"),
    MAX: lambda schemes: schemes.solved("max-batching"),
    HEURISTIC: lambda schemes: schemes.solved("heuristic-batching"),
    UNIFORM: lambda schemes: schemes.solved("uniform-bandwidth"),
    EXACT: lambda schemes: schemes.solved(Exact(), EXACT_SECONDS),
    REAL: lambda schemes: schemes.judged(output_lengths="known"),
    LENGTH_AWARE: lambda schemes: schemes.solved(LengthAware(), EXACT_SECONDS, output_lengths="known"),
}
