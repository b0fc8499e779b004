"""Evaluation of a plan under uncertainty: the worst case over intervals of uncertain values, and
the mean over random samples.

The plan is fixed. Acceptance rates and output lengths vary, and the judge evaluates the plan for
each candidate for the worst case and for each sample. The `Uncertainty` of a kind in
`specopt.kinds` defines the uncertain fields and the candidates for the worst case.
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from specopt.api.scan import scan
from specopt.kinds import kind_of, kinds, names_with
from specopt.kinds.kind import Interval, Uncertainty
from specopt.models.arguments import integer
from specopt.models.errors import InvalidInput, Unsupported
from specopt.models.fields import MAX_TOKENS
from specopt.models.judge import verify
from specopt.models.late import Shown
from specopt.models.problem import Plan, Problem
from specopt.models.result import Result
from specopt.solvers.simulation import Estimate

QUANTILES = (0.05, 0.5, 0.95)
"""Probability levels of the reported quantiles of the objective."""


@dataclass(frozen=True, kw_only=True)
class Case:
    """One combination of uncertain values, with the judge's evaluation of the plan for it.

    Parameters
    ----------
    acceptance
        Acceptance rate, or the mean of several acceptance rates; None if the rates do not vary.
    output_scale
        Factor applied to all output lengths.
    objective
        Objective of the plan.
    violations
        Constraints that the plan violates.
    """

    acceptance: float | None
    output_scale: float
    objective: float
    violations: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Robustness(Shown):
    """Statistics of a plan's objective when uncertain values vary over intervals.

    Parameters
    ----------
    acceptance
        Interval over which the acceptance rates vary; None if the problem's rates are used.
    output_scale
        Interval over which the factor applied to all output lengths varies.
    nominal
        Objective of the plan for the unmodified problem.
    worst
        Case with the worst objective.
    worst_is_exact
        Whether it is certain, to within 1e-9, that no case in the intervals is worse than `worst`.
        If False, `worst` is only the worst of the evaluated cases.
    mean
        Mean objective over the samples.
    interval
        95 % confidence interval of the mean.
    quantiles
        Quantiles of the objective over the samples, by level.
    samples
        Number of samples.
    violated
        Number of samples in which the plan violates a constraint.
    """

    acceptance: Interval | None
    output_scale: Interval
    nominal: float
    worst: Case
    worst_is_exact: bool
    mean: float
    interval: Interval
    quantiles: dict[float, float]
    samples: int
    violated: int

    def to_dict(self) -> dict[str, Any]:
        """Return all fields as JSON-compatible data."""
        data = dataclasses.asdict(self)
        data["quantiles"] = {f"{level:g}": value for level, value in self.quantiles.items()}
        return data


def robustness(
    problem: Problem,
    result: Result | Plan,
    *,
    acceptance: Interval | None = None,
    output_scale: Interval = (1.0, 1.0),
    samples: int = 200,
    seed: int = 0,
) -> Robustness:
    """Evaluate a plan while acceptance rates and output lengths vary over intervals.

    Parameters
    ----------
    problem
        Problem that the plan solves.
    result
        Plan for the problem, or result that contains a plan.
    acceptance
        Lowest and highest acceptance rate; None for the rates in the problem.
    output_scale
        Smallest and largest factor by which all output lengths are multiplied. Only kinds with
        output lengths support factors other than 1.
    samples
        Number of cases that are drawn uniformly to estimate the mean. At least 2 are required.
    seed
        Random seed for the samples.

    Raises
    ------
    InvalidInput
        If an interval is invalid, if the result belongs to another problem, or if the result has no
        plan.
    Unsupported
        If acceptance rates or output lengths cannot vary for problems of this kind.
    """
    uncertainty = _check(problem, acceptance, output_scale, samples)
    nominal = verify(problem, result).objective
    plan = result if isinstance(result, Plan) else result.plan
    if nominal is None or plan is None:
        raise InvalidInput(
            "plan: expected a plan that the judge can evaluate, got a plan that does not fit the"
            " problem"
        )
    shape = uncertainty.shape(problem)
    rng = np.random.default_rng(seed)

    def case(change: tuple[Any, float], *_: object) -> Case:
        rates, scale = change
        variant, adapted = problem, plan
        if rates is not None or scale != 1.0:
            variant, adapted = uncertainty.vary(problem, plan, rates, scale)
        return Case(
            acceptance=None if rates is None else float(np.mean(rates)),
            output_scale=scale,
            objective=variant.evaluate(adapted).objective,
            violations=tuple(variant.violations(adapted)),
        )

    draws = []
    for _ in range(samples):
        rates = None if acceptance is None else rng.uniform(*acceptance, size=shape or None)
        draws.append(("sample", (rates, float(rng.uniform(*output_scale)))))
    candidates: tuple[list[Any], bool] = (
        [None if acceptance is None else np.full(shape, acceptance[0])],
        True,
    )
    if acceptance is not None and uncertainty.worst is not None:
        candidates = uncertainty.worst(problem, plan, acceptance, output_scale[1])
    corners = [
        ("corner", (rates, scale)) for rates in candidates[0] for scale in sorted({*output_scale})
    ]
    tried, drawn = scan(corners, case), scan(draws, case)
    worse = max if problem.sense == "minimize" else min
    is_largest_worst = output_scale[0] == output_scale[1] or uncertainty.longer_is_worse(problem)
    worst = worse(tried + drawn, key=lambda one: one.objective)
    objectives = np.array([one.objective for one in drawn])
    estimate = Estimate.of(objectives)
    return Robustness(
        acceptance=acceptance,
        output_scale=output_scale,
        nominal=nominal,
        worst=worst,
        worst_is_exact=candidates[1] and is_largest_worst,
        mean=estimate.mean,
        interval=estimate.confidence_interval,
        quantiles={level: float(np.quantile(objectives, level)) for level in QUANTILES},
        samples=samples,
        violated=sum(bool(one.violations) for one in drawn),
    )


def _check(
    problem: Problem, acceptance: Interval | None, output_scale: Interval, samples: int
) -> Uncertainty:
    kind = kind_of(problem)
    if kind.uncertainty is None:
        raise Unsupported(
            f"{kind.name} has no acceptance rate or output length to vary; these kinds have one:"
            f" {names_with('uncertainty')}"
        )
    if acceptance is not None:
        low, high = acceptance
        if not 0.0 <= low <= high <= 1.0:
            raise InvalidInput(f"acceptance: expected LOW:HIGH in [0, 1], got {low:g}:{high:g}")
        expected = "LOW > 0" if low == 0.0 and not kind.uncertainty.zero else ""
        if high == 1.0 and not kind.uncertainty.one:
            expected = "HIGH < 1"
        if expected:
            raise InvalidInput(
                f"acceptance: expected {expected} for {kind.name}, got {low:g}:{high:g}"
            )
    low, high = output_scale
    if not 0.0 < low <= high < math.inf:
        raise InvalidInput(f"output_scale: expected factors LOW:HIGH above 0, got {low:g}:{high:g}")
    if kind.uncertainty.longest_output is not None:
        longest = kind.uncertainty.longest_output(problem)
        if not high * longest <= MAX_TOKENS:
            raise InvalidInput(
                f"output_scale: expected outputs of at most {MAX_TOKENS:,} tokens, got {high:g} x"
                f" {longest}"
            )
    elif output_scale != (1.0, 1.0):
        have = (
            one.name
            for one in kinds()
            if one.uncertainty is not None and one.uncertainty.longest_output is not None
        )
        raise Unsupported(
            f"output_scale: {kind.name} has no output lengths; kinds with them: {', '.join(have)}"
        )
    integer("samples", samples, 2)
    return kind.uncertainty
