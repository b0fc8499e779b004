"""Declaration of the kind `serving-latency` (paper 1), which determines batches, their order in the
pipeline, bandwidth shares and the speculation length.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from specopt.instances.runtimes.fields import of_serving_latency
from specopt.instances.serving_latency import FAMILIES
from specopt.instances.serving_latency.from_deployment import serving_latency
from specopt.instances.serving_latency.from_trace import FROM_TRACE
from specopt.kinds.kind import Interval, Kind, Row, Simulator, Uncertainty
from specopt.kinds.serving import PERTURBATIONS, UNCERTAINTY, choices, row, vary
from specopt.models.acceptance import expected_tokens_per_step, rate_that_yields
from specopt.models.errors import InvalidInput
from specopt.models.rates import Rates
from specopt.models.serving_latency.problem import ServingLatencyPlan, ServingLatencyProblem
from specopt.solvers.serving_latency import METHODS
from specopt.solvers.serving_latency.milp import FORMULATION


def _rows(plan: ServingLatencyPlan) -> Iterator[Row]:
    tasks = len(plan.bandwidth_share)
    places = sorted(
        (task, batch, i)
        for batch, members in enumerate(plan.batches)
        for i, task in enumerate(members)
    )
    if [task for task, *_ in places] != list(range(tasks)):
        raise InvalidInput(f"plan.batches: expected each of the {tasks} tasks in exactly one batch")
    for place in places:
        yield row(plan, *place, plan.speculation_length)


# -------------------------------------------------------------- intervals of acceptance and outputs

BEFORE = 2e-12
"""Relative distance between a breakpoint, which is a number of tokens per step at which a step is
saved, and the candidate for the worst case just below the breakpoint.

The distance exceeds 1e-12, because the judge rounds a number of steps that is within 1e-12 of an
integer.
"""

MAX_BREAKPOINTS = 4000
"""Maximum number of acceptance rates that are tried as the worst case.

If there are more breakpoints, the worst case is not exact.
"""


def _worst(
    problem: ServingLatencyProblem, plan: ServingLatencyPlan, acceptance: Interval, scale: float
) -> tuple[list[float], bool]:
    """Return candidates for the worst acceptance rate, and whether they include the worst rate.

    A breakpoint is an acceptance rate at which a decoding step is saved. The candidates are the
    ends of the interval and the rates just below each breakpoint. Only the ends are candidates if
    tasks have individual rates, if output lengths are predicted, or if `rounds` is "slowest".

    Between two breakpoints, a higher acceptance rate may increase the latency of a plan, because
    Eq. 8 rounds up the number of steps. The worst rate is therefore among the candidates, unless
    there are too many breakpoints to try.
    """
    low, high = acceptance
    variant, _ = vary(problem, plan, None, scale)
    if problem.mechanism_of(plan) == "autoregressive":
        return [low], True
    unclear = problem.output_lengths == "predicted" or problem.rounds == "slowest"
    if unclear or isinstance(problem.acceptance_rate, Rates):
        return [low, high], False
    outputs = {int(variant.planned_output_tokens[list(batch)].max()) for batch in plan.batches}
    length = plan.speculation_length
    found = [low, high]
    fewest = expected_tokens_per_step(low, length)
    most = expected_tokens_per_step(high, length)
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
    choices=choices,
    families=FAMILIES,
    rows=_rows,
    perturbations=PERTURBATIONS,
    uncertainty=Uncertainty(**UNCERTAINTY, worst=_worst),
    simulator=Simulator(
        world=ServingLatencyProblem, module="specopt.solvers.serving_latency.simulate"
    ),
    from_trace=FROM_TRACE,
    from_runtimes=of_serving_latency,
    from_deployment=serving_latency,
)
