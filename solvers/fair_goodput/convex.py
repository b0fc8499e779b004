"""A reference formulation of the per-round problem in CVXPY, solved by Clarabel.

The convex program is to maximise U(x) subject to sum s_i <= C, the limits on each s_i, and x_i
below every line through two neighbouring points of mu_i. Lines beyond some number of draft tokens
are left out at first, and are added if a solution comes close to them. Leaving out lines only
relaxes the program. The program's price per token therefore yields an upper bound on the utility of
all plans.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np

from specopt.models.acceptance import expected_tokens
from specopt.models.errors import InvalidInput, Unsupported
from specopt.models.fair_goodput.problem import FairGoodputPlan, FairGoodputProblem
from specopt.models.fields import Floats, Ints, Positive
from specopt.models.result import Termination
from specopt.solvers.budget import Budget
from specopt.solvers.fair_goodput.method import (
    PER_ROUND,
    FairGoodputMethod,
    admitted,
    offer_first_plan,
)
from specopt.solvers.fair_goodput.region import Region, largest_where, plan_of, region_of
from specopt.solvers.formulation import Formulation, Value
from specopt.solvers.method import Outcome
from specopt.solvers.solver_status import termination_of

BYTES_PER_LINE = 1300.0

FIRST_LINES = 8
"""Initial number of lines per client, unless four times an even share of the budget is larger.

The number of a client's lines never exceeds the client's cap on draft tokens.
"""

CLARABEL_DEFAULT = 1e-8

MIN_RATE = 1.0
"""Minimum goodput of every client in tokens per round, which is the server's own token."""

NEAR_1 = 0.09
"""Limit on |g - 1| below which problems with fairness g are solved through logarithms.

In this range, x^(1-g) is almost constant, so its changes are smaller than Clarabel's tolerances.
"""


@dataclass(frozen=True)
class Convex(FairGoodputMethod):
    """Solve a readable reference formulation in CVXPY with Clarabel.

    Linear constraints represent the interpolated goodput, and cones represent the utility.

    Parameters
    ----------
    accuracy
        Tolerance passed to Clarabel for the duality gap and for feasibility. If Clarabel fails, it
        is run again with its default tolerance, 1e-8.
    """

    accuracy: Positive = 1e-11

    name = "convex"
    exact = True
    source = "specopt; problem (1) of paper 5 over the region (2), CVXPY and Clarabel"
    guarantee = "optimal, to 1e-6"
    complexity = "an interior-point method over N cones and about 4 (N + C) lines"
    takes = (PER_ROUND,)
    max_size = 20_000
    tolerance = 1e-6

    def bytes_needed(self, problem: FairGoodputProblem) -> dict[str, float]:
        """Return the required memory in bytes, including the memory for the program."""
        return super().bytes_needed(problem) | {
            "budget_tokens": BYTES_PER_LINE * float(_first_lines(problem).sum())
        }

    def run(self, problem: FairGoodputProblem, budget: Budget) -> Outcome:
        """Solve the program, adding lines until no client comes close to its last line."""
        region = region_of(problem)
        offer_first_plan(problem, budget, region)
        cp = budget.load_library("cvxpy")
        lines = _first_lines(problem)
        programs = 0
        while True:
            budget.check()
            budget.hold("budget_tokens", BYTES_PER_LINE * float(lines.sum()))
            tokens, price, status = solve_program(cp, problem, region, lines, budget, self.accuracy)
            programs += 1
            stats = {
                "programs": programs,
                "lines": int(lines.sum()),
                "price": price,
                "solver_status": status,
            }
            if tokens is None:
                budget.check()
                return Outcome(
                    plan=budget.incumbent, termination=termination_of(status), stats=stats
                )
            short = (tokens > lines - 0.5) & (lines < region.most)
            if not short.any():
                break
            lines = np.where(short, np.minimum(2 * lines, region.most), lines).astype(np.int64)
        plan = plan_of(problem, repaired(region, tokens, float(problem.budget_tokens)))
        budget.offer(plan)
        bound = price_bound(problem, region, price)
        return admitted(problem, Outcome(plan=budget.incumbent, bound=bound, stats=stats))


def _first_lines(problem: FairGoodputProblem) -> Ints:
    even = problem.budget_tokens / problem.clients
    return np.minimum(problem.max_tokens, max(FIRST_LINES, math.ceil(4.0 * even)))


def solve_program(
    cp: Any,
    problem: FairGoodputProblem,
    region: Region,
    lines: Ints,
    budget: Budget,
    accuracy: float,
) -> tuple[Floats | None, float, str]:
    """Return a tuple (tokens, price, status) for the program with the first `lines` lines.

    The entries are the mean draft tokens, the price per token, and the solver's status. The tokens
    are None if no solution was found. `lines` is the number of lines in each client's
    interpolation, and `accuracy` is the solver's tolerance.

    At the optimum x, the gradient of the common rate is parallel to the gradient of the sum of
    w_i x_i^(1-g) log x_i with constant weights w_i x_i^(1-g). For g close to 1, the method
    therefore alternates between weights and rates. Each iteration multiplies the error by |1 - g|,
    because the best rates for logarithms change no more than the weights.
    """
    s, x, constraints = constrained(cp, problem, region, lines)
    log_weights, g = np.log(problem.weight), problem.fairness
    weights, turns, aim = log_weights, 1, g
    if g != 1.0 and abs(g - 1.0) < NEAR_1:
        turns, aim = 1 + math.ceil(math.log(1e-12) / math.log(abs(g - 1.0))), 1.0
    for _ in range(turns):
        program = cp.Problem(cp.Maximize(utility(cp, weights, aim, x)), constraints)
        status = run_clarabel(cp, program, budget, accuracy)
        if x.value is None or termination_of(status) is not Termination.CONVERGED:
            return None, 0.0, status
        rates = np.maximum(x.value, MIN_RATE)
        weights = log_weights + (1.0 - g) * np.log(rates)
    unit = float(problem.weight.sum())
    if g > 1.0 - NEAR_1:  # the slope of the utility where its logarithm was maximised
        unit = float((problem.weight * rates ** (1.0 - g)).sum())
    price = unit * max(0.0, float(constraints[0].dual_value))
    return np.asarray(s.value, np.float64), price, status


def constrained(
    cp: Any, problem: FairGoodputProblem, region: Region, lines: Ints
) -> tuple[Any, Any, list[Any]]:
    """Return a tuple (s, x, constraints) of CVXPY objects.

    The variables are the mean draft tokens s and the goodput x. The first constraint is the budget.
    The arguments have the same meaning as in `solve_program`.
    """
    client = np.repeat(np.arange(problem.clients), np.maximum(1, lines))
    line = np.arange(len(client)) - np.searchsorted(client, client)  # from mu(line) to mu(line + 1)
    rate = problem.acceptance_rates[client]
    s = cp.Variable(problem.clients, name="mean_draft_tokens")
    x = cp.Variable(problem.clients, name="goodput")
    return (
        s,
        x,
        [
            cp.sum(s) <= problem.budget_tokens,
            s >= region.least,
            s <= region.most,
            x[client]
            <= expected_tokens(rate, line) + cp.multiply(rate ** (line + 1.0), s[client] - line),
        ],
    )


def run_clarabel(cp: Any, program: Any, budget: Budget, accuracy: float) -> str:
    """Solve a program with Clarabel within the allowed time, and return the solver's status.

    Clarabel is run again with shorter steps or a lower accuracy if it fails. The status
    "optimal_inaccurate" is accepted, because the plan and its bound are computed from the problem's
    data.
    """
    status = "solver_error"
    for tolerance, step in (
        (accuracy, 0.99),
        (accuracy, 0.9),
        (max(accuracy, CLARABEL_DEFAULT), 0.9),
    ):
        options = {"max_step_fraction": step} | dict.fromkeys(
            ("tol_gap_abs", "tol_gap_rel", "tol_feas"), tolerance
        )
        if not math.isinf(budget.remaining):
            options["time_limit"] = max(1e-3, budget.remaining)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                program.solve(solver=cp.CLARABEL, **options)
        except cp.error.SolverError:
            continue  # numerical trouble: shorter steps or a lower accuracy help
        status = str(program.status)
        break
    return status


def utility(cp: Any, log_weights: Floats, g: float, x: Any) -> Any:
    """Return a CVXPY expression that increases with the utility of the rates `x`.

    The expression does not depend on the scale of the weights. A steep utility is replaced by the
    logarithm of the common rate, because the values of the utility are too small for any tolerance.
    """
    w = np.exp(log_weights - log_weights.max())
    w /= w.sum()
    if g == 1.0:
        return w @ cp.log(x)
    if g == 0.0:
        return w @ x
    if g > 1.0:
        return cp.log_sum_exp(log_weights - log_weights.max() + (1.0 - g) * cp.log(x)) / (1.0 - g)
    return (w @ cp.power(x, 1.0 - g)) / (1.0 - g)


def repaired(region: Region, tokens: Floats, budget_tokens: float) -> Floats:
    """Return mean draft tokens that are close to an inexact solution and satisfy all limits.

    If the solution leaves part of the budget unused, tokens are added within the limits.
    """
    inside = np.clip(tokens, region.least, region.most)
    total = float(inside.sum())
    if total > budget_tokens:
        above = inside - region.least
        inside = region.least + above * max(0.0, 1.0 - (total - budget_tokens) / float(above.sum()))
    elif total < budget_tokens:
        below = region.most - inside
        inside = inside + below * min(
            1.0, (budget_tokens - total) / max(float(below.sum()), 1e-300)
        )
    return np.asarray(np.clip(inside, region.least, region.most), np.float64)


def price_bound(problem: FairGoodputProblem, region: Region, price: float) -> float:
    """Return an upper bound on the utility of any plan, given any price >= 0 of a draft token.

    The bound is the sum over clients of max_s (w U(f(s)) - price s), plus price C.

    Each additional token of a client gains no more than the previous token. The client's best s
    thus lies in the last segment whose gain at the start exceeds the price. The best s is an end of
    this segment, a limit of s, or the point where the slope of the utility equals the price.
    """
    g, w, a = problem.fairness, problem.weight, problem.acceptance_rates
    lines = largest_where(
        lambda number: w * a**number * expected_tokens(a, number - 1.0) ** -g > price, region.most
    )
    line = np.maximum(0.0, lines - 1.0)
    slope = a ** (line + 1.0)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        meets = (
            line
            + (np.divide(w * slope, price) ** np.divide(1.0, g) - expected_tokens(a, line)) / slope
        )
    meets = np.clip(np.nan_to_num(meets, nan=0.0), line, line + 1.0)
    candidates = [line, line + 1.0, meets]
    values = [
        _value(problem, price, np.clip(tokens, region.least, region.most)) for tokens in candidates
    ]
    return float(np.max(values, axis=0).sum()) + price * problem.budget_tokens


def _value(problem: FairGoodputProblem, price: float, tokens: Floats) -> Floats:
    whole = np.floor(tokens)
    a, g = problem.acceptance_rates, problem.fairness
    x = expected_tokens(a, whole) + (tokens - whole) * a ** (whole + 1.0)
    gain = np.log(x) if g == 1.0 else x ** (1.0 - g) / (1.0 - g)
    return np.asarray(problem.weight * gain - price * tokens, np.float64)


def formulate(problem: FairGoodputProblem) -> Any:
    """Return the convex program with the lines of all draft tokens, as a CVXPY problem.

    Its objective is an increasing function of the utility.

    Raises
    ------
    Unsupported
        If rates are per second, or if the fairness is close to 1 but not equal to 1.
    """
    import cvxpy as cp

    clash = PER_ROUND.clash(None, problem)
    if clash is not None:
        raise Unsupported(f"formulation: a problem with {clash} is not supported")
    if 0.0 < abs(problem.fairness - 1.0) < NEAR_1:
        raise Unsupported(
            f"formulation: at fairness {problem.fairness!r} rates change the utility by less than"
            f" solver precision; use 1, or a fairness that differs from 1 by at least {NEAR_1:g},"
            " or solve with convex"
        )
    region = region_of(problem)
    lines = np.maximum(1, region.most).astype(np.int64)
    _, x, constraints = constrained(cp, problem, region, lines)
    return cp.Problem(
        cp.Maximize(utility(cp, np.log(problem.weight), problem.fairness, x)), constraints
    )


def read(problem: FairGoodputProblem, program: Any, value: Value) -> FairGoodputPlan:
    """Return the plan that corresponds to a program's solution.

    The plan is a mixture of rounds with the solution's mean draft tokens.
    """
    tokens = program.var_dict["mean_draft_tokens"].value
    if tokens is None:
        raise InvalidInput("model: mean_draft_tokens has no value; solve the program first")
    return plan_of(
        problem, repaired(region_of(problem), np.asarray(tokens), float(problem.budget_tokens))
    )


FORMULATION = Formulation(formulate, read, is_linear=False)
