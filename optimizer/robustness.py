"""Judge a plan when what it counts on is known only within limits: the worst case, and the mean over samples.

The plan stays as it is; acceptance rates and output lengths vary, and the judge rates it each time.

* `serving-latency`: a larger output scale never shortens a plan. A higher acceptance rate may lengthen it while no
  step is saved (Eq. 8 rounds up), so the worst case is sought just before every step that is saved, which is exact.
* `draft-control`, `draft-allocation`, `fair-goodput`: every rate lies in the interval, each by itself; the objective
  rises with every rate, so the worst case is the lower end.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from specopt.models.acceptance import expected_tokens_per_step
from specopt.models.draft_allocation import DraftAllocationProblem
from specopt.models.draft_control import DraftControlProblem
from specopt.models.errors import InvalidInput, Unsupported
from specopt.models.fair_goodput import FairGoodputPlan, FairGoodputProblem
from specopt.models.fields import MAX_TOKENS, Floats, describe
from specopt.models.judge import verify
from specopt.models.problem import Plan, Problem
from specopt.models.result import Result
from specopt.models.serving_latency import ServingLatencyPlan, ServingLatencyProblem
from specopt.solvers.samples import t_quantile

Interval = tuple[float, float]

BEFORE = 1e-9
"""Relative distance to an acceptance rate at which a step is saved, for the worst case just before it."""

MOST_BREAKPOINTS = 4000
QUANTILES = (0.05, 0.5, 0.95)


@dataclass(frozen=True, kw_only=True)
class Case:
    """One setting of what is uncertain, and what the judge says of the plan in it.

    Parameters
    ----------
    acceptance
        The rate, or the mean of the rates.
    output_scale
        Factor of all output lengths.
    objective, violations
        The judge's.
    """

    acceptance: float | None
    output_scale: float
    objective: float
    violations: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Robustness:
    """What a plan is worth over intervals.

    Parameters
    ----------
    acceptance, output_scale
        The intervals; None for the problem's own acceptance.
    nominal
        The objective without uncertainty.
    worst
        The case with the worst objective.
    worst_is_exact
        Whether no case in the intervals is worse (to 1e-9), or only none that was tried.
    mean, interval
        Over the samples: mean and its 95 % confidence interval.
    quantiles
        Of the samples, by level.
    samples, violated
        How many were drawn, and in how many the plan violates something.
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
        """Return everything as JSON-like data."""
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
    """Judge a plan over intervals of acceptance and of output lengths.

    Parameters
    ----------
    problem, result
        A problem, and a result or plan of it.
    acceptance
        Least and largest acceptance rate; None: as the problem has it.
    output_scale
        Least and largest factor of all output lengths (`serving-latency`).
    samples, seed
        Cases drawn uniformly, at least 2, for the mean.

    Raises
    ------
    InvalidInput
        If an interval is none, or the result is another problem's or has no plan.
    Unsupported
        If the problem has no such uncertainty.
    """
    _check(problem, acceptance, output_scale, samples)
    nominal = verify(problem, result).objective
    plan = result if isinstance(result, Plan) else result.plan
    if nominal is None or plan is None:
        raise InvalidInput("plan: expected a plan that the judge can rate, got one that does not fit the problem")
    vary = _VARIANTS[type(problem)]
    rng = np.random.default_rng(seed)

    def case(rates: float | Floats | None, scale: float) -> Case:
        variant, adapted = vary(problem, plan, rates, scale)
        return Case(
            acceptance=None if rates is None else float(np.mean(rates)),
            output_scale=scale,
            objective=variant.evaluate(adapted).objective,
            violations=tuple(variant.violations(adapted)),
        )

    drawn = []
    for _ in range(samples):
        rates = None if acceptance is None else _draw(problem, acceptance, rng)
        drawn.append(case(rates, float(rng.uniform(*output_scale))))
    candidates, exact = _worst_candidates(problem, plan, acceptance, output_scale[1])
    worse = max if problem.sense == "minimize" else min
    worst = worse((*(case(rates, output_scale[1]) for rates in candidates), *drawn), key=lambda one: one.objective)
    objectives = np.array([one.objective for one in drawn])
    half = t_quantile(samples - 1) * float(objectives.std(ddof=1)) / math.sqrt(samples)
    mean = float(objectives.mean())
    return Robustness(
        acceptance=acceptance,
        output_scale=output_scale,
        nominal=nominal,
        worst=worst,
        worst_is_exact=exact,
        mean=mean,
        interval=(mean - half, mean + half),
        quantiles={level: float(np.quantile(objectives, level)) for level in QUANTILES},
        samples=samples,
        violated=sum(bool(one.violations) for one in drawn),
    )


def _check(problem: Problem, acceptance: Interval | None, output_scale: Interval, samples: int) -> None:
    if type(problem) not in _VARIANTS:
        able = ", ".join(kind.kind for kind in _VARIANTS)
        raise Unsupported(f"{problem.kind} counts on no acceptance rate or output length; these do: {able}")
    if acceptance is not None:
        low, high = acceptance
        if not 0.0 <= low <= high <= 1.0:
            raise InvalidInput(f"acceptance: expected LOW:HIGH in [0, 1], got {low:g}:{high:g}")
        if not isinstance(problem, DraftControlProblem) and high == 1.0:
            raise InvalidInput(f"acceptance: expected less than 1 for {problem.kind}, got {low:g}:{high:g}")
        if isinstance(problem, ServingLatencyProblem) and low == 0.0:
            raise InvalidInput(f"acceptance: expected more than 0 for {problem.kind}, got {low:g}:{high:g}")
    low, high = output_scale
    if not 0.0 < low <= high < math.inf:
        raise InvalidInput(f"output_scale: expected factors LOW:HIGH above 0, got {low:g}:{high:g}")
    if output_scale != (1.0, 1.0) and not isinstance(problem, ServingLatencyProblem):
        raise Unsupported(f"output_scale: {problem.kind} has no output lengths; {ServingLatencyProblem.kind} has")
    if isinstance(problem, ServingLatencyProblem):
        longest = max(problem.max_output_tokens or 1, int(problem.output_tokens.max()))
        if not high * longest <= MAX_TOKENS:
            raise InvalidInput(
                f"output_scale: expected outputs of at most {MAX_TOKENS:,} tokens, got {high:g} x {longest}"
            )
    if isinstance(samples, bool) or not isinstance(samples, int) or samples < 2:
        raise InvalidInput(f"samples: expected an integer >= 2, got {describe(samples)}")


# ---------------------------------------------------------------------------- variants of a problem


def _serving_latency(problem: ServingLatencyProblem, plan: Plan, rates: Any, scale: float) -> tuple[Problem, Plan]:
    lengths = np.maximum(1, np.ceil(problem.output_tokens * scale - 1e-9)).astype(np.int64)
    longest = problem.max_output_tokens
    return dataclasses.replace(
        problem,
        output_tokens=lengths,
        max_output_tokens=None if longest is None else max(1, math.ceil(longest * scale - 1e-9)),
        acceptance_rate=problem.acceptance_rate if rates is None else float(rates),
    ), plan


def _draft_control(problem: DraftControlProblem, plan: Plan, rates: Any, scale: float) -> tuple[Problem, Plan]:
    if rates is None:
        return problem, plan
    states = tuple(
        dataclasses.replace(state, acceptance_rates=row) for state, row in zip(problem.states, rates, strict=True)
    )
    return dataclasses.replace(problem, states=states), plan


def _draft_allocation(problem: DraftAllocationProblem, plan: Plan, rates: Any, scale: float) -> tuple[Problem, Plan]:
    return (problem if rates is None else dataclasses.replace(problem, acceptance_rates=rates)), plan


def _fair_goodput(problem: FairGoodputProblem, plan: Plan, rates: Any, scale: float) -> tuple[Problem, Plan]:
    """Other rates realise another goodput: what the plan declares follows, so that only real violations show."""
    assert isinstance(plan, FairGoodputPlan)
    if rates is None:
        return problem, plan
    variant = dataclasses.replace(problem, acceptance_rates=rates)
    goodput, tokens = variant.realised(plan.schedule)
    return variant, dataclasses.replace(plan, goodput=goodput, mean_draft_tokens=tokens)


_VARIANTS: dict[type[Problem], Callable[[Any, Plan, Any, float], tuple[Problem, Plan]]] = {
    ServingLatencyProblem: _serving_latency,
    DraftControlProblem: _draft_control,
    DraftAllocationProblem: _draft_allocation,
    FairGoodputProblem: _fair_goodput,
}


def _shape(problem: Any) -> tuple[int, ...]:
    if isinstance(problem, ServingLatencyProblem):
        return ()
    if isinstance(problem, DraftControlProblem):
        return (len(problem.states), len(problem.resolutions))
    return (len(problem.acceptance_rates),)


def _draw(problem: Problem, acceptance: Interval, rng: np.random.Generator) -> Any:
    return rng.uniform(*acceptance, size=_shape(problem) or None)


def _worst_candidates(
    problem: Problem, plan: Plan, acceptance: Interval | None, scale: float
) -> tuple[list[Any], bool]:
    """Return acceptance rates among which the worst lies, and whether that is certain."""
    if acceptance is None:
        return [None], True
    if not isinstance(problem, ServingLatencyProblem):
        return [np.full(_shape(problem), acceptance[0])], True
    assert isinstance(plan, ServingLatencyPlan)
    low, high = acceptance
    variant, _ = _serving_latency(problem, plan, None, scale)
    assert isinstance(variant, ServingLatencyProblem)
    if problem.mechanism_of(plan) == "autoregressive":
        return [low], True
    outputs = {int(variant.planned_output_tokens[list(batch)].max()) for batch in plan.batches}
    length = plan.speculation_length
    found = [low, high]
    for tokens in outputs:
        first = math.floor(tokens / expected_tokens_per_step(high, length))
        last = math.ceil(tokens / expected_tokens_per_step(low, length))
        for steps in range(max(1, first), last + 1):
            rate = _rate_at(tokens / steps, length, low, high)
            if rate is not None:
                found.append(max(low, rate * (1.0 - BEFORE)))
    found.sort()
    if len(found) <= MOST_BREAKPOINTS:
        return found, True
    return [found[i] for i in np.linspace(0, len(found) - 1, MOST_BREAKPOINTS).astype(int)], False


def _rate_at(tokens_per_step: float, length: int, low: float, high: float) -> float | None:
    """Return the acceptance rate in an interval at which a step yields so many tokens (Eq. 7), or None."""
    if not (expected_tokens_per_step(low, length) <= tokens_per_step <= expected_tokens_per_step(high, length)):
        return None
    for _ in range(60):
        middle = 0.5 * (low + high)
        if expected_tokens_per_step(middle, length) < tokens_per_step:
            low = middle
        else:
            high = middle
    return high
