"""The region of attainable long-run goodput per round (paper 5, Eq. 2).

The region contains every x with 1 <= x_i <= f_i(s_i), s >= 0 and sum s_i <= C. The function f_i
interpolates mu_i linearly at the integers. Every such mean allocation s is a mixture of integer
allocations within the budget. Systematic sampling of the fractional parts constructs a mixture in
which each client changes at most twice.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from specopt.models.acceptance import expected_tokens
from specopt.models.errors import Infeasible
from specopt.models.fair_goodput.problem import FairGoodputPlan, FairGoodputProblem, Schedule
from specopt.models.fields import Floats, Ints, Truths
from specopt.models.problem import TOLERANCE
from specopt.models.result import Conflict

UNIT = 1 << 52
"""Number of units per token. Fractional parts are integers in these units, so shares are exact and
rounding cannot make an entry exceed the budget.
"""

SNAP = 1 << 8
"""Distance from 0 or 1, in units, below which a fractional part is rounded to 0 or 1."""


LAST_DIGITS = 2.0**-51
"""Relative rounding error of a computed minimum rate. If another token gains less than this error,
the error would correspond to many tokens.
"""


@dataclass(frozen=True)
class Region:
    """The mean allocations that a problem allows, as limits for each client.

    Parameters
    ----------
    least
        Mean draft tokens per round that each client needs to reach its minimum rate.
    most
        Maximum draft tokens of each client, given its cap and the budget.
    """

    least: Floats
    most: Floats


def region_of(problem: FairGoodputProblem) -> Region:
    """Return the allowed mean allocations per round.

    If the minimum rates are missed by no more than the judge tolerates, they are all lowered by the
    same factor, to the largest attainable level.

    Raises
    ------
    Infeasible
        If no allocation is allowed. The message names clients, and the rates or draft tokens that
        they need.
    """
    most = problem.max_tokens.astype(np.float64)
    if problem.min_goodput is None:
        return Region(np.zeros(problem.clients), most)
    due, rates = problem.min_goodput, problem.acceptance_rates
    best = expected_tokens(rates, most)
    short = np.flatnonzero(due * (1.0 - TOLERANCE) > best)
    if len(short):
        notes = [f" with {tokens:.0f} draft tokens" for tokens in most[short]]
        raise too_high("round", short, due[short], best[short], notes)

    def needed(part: float) -> tuple[Floats, float]:
        """Return the draft tokens needed to reach a fraction of the minimum rates.

        The result is a pair of the tokens by client and their total.
        """
        least = tokens_for(rates, np.minimum(part * due, best) - LAST_DIGITS * due, most)
        return least, float(least.sum(dtype=np.longdouble))

    least, total = needed(1.0)
    if total <= problem.budget_tokens:
        return Region(least, most)
    low, high = 1.0 - TOLERANCE, 1.0
    if needed(low)[1] > problem.budget_tokens:
        order = np.argsort(-least, kind="stable")
        order = order[least[order] > 0]
        parts = [
            f"client {i} needs {least[i]:.6g} draft tokens to reach {due[i]:.6g} tokens per round"
            for i in order[:3]
        ]
        raise Infeasible(
            f"the minimum rates need {total:.6g} draft tokens per round, but only"
            f" {problem.budget_tokens} are available: "
            + ", ".join(parts)
            + _and_more(len(order) - 3),
            [
                Conflict(
                    constraint="budget_tokens",
                    needs=total,
                    has=float(problem.budget_tokens),
                    least_change={"budget_tokens": float(math.ceil(needed(low)[1]))},
                )
            ],
        )
    while low < (middle := 0.5 * (low + high)) < high:
        low, high = (low, middle) if needed(middle)[1] > problem.budget_tokens else (middle, high)
    return Region(needed(low)[0], most)


def too_high(
    per: str, clients: Ints, needs: Floats, best: Floats, notes: Sequence[str]
) -> Infeasible:
    """Return an exception that names the clients that cannot reach their minimum rates even alone.

    `best` contains the highest achievable rate of each client, and `notes` contains the text that
    follows each rate in the message.
    """
    rows = list(zip(clients.tolist(), needs.tolist(), best.tolist(), notes, strict=True))
    parts = [
        f"client {i} needs {due:.6g} tokens per {per}, but gets at most {has:.6g}{note}"
        for i, due, has, note in rows[:3]
    ]
    return Infeasible(
        "; ".join(parts) + _and_more(len(rows) - 3),
        [
            Conflict(constraint="min_goodput", index=i, needs=due, has=has)
            for i, due, has, _ in rows
        ],
    )


def tokens_for(acceptance_rates: Floats, goodput: Floats, most: Floats) -> Floats:
    """Return the smallest mean number s of draft tokens with f(s) = goodput, for each client.

    The goodput must be attainable with `most` tokens. The server's own token and the first draft
    are subtracted from both sides, because their digits would otherwise hide the gains of the other
    tokens at low acceptance.
    """
    gain = goodput - 1.0
    short = largest_where(lambda tokens: gain_of(acceptance_rates, tokens) < gain, most - 1.0)
    high = 1.0 + short  # mu(short) < goodput <= mu(high) where goodput > 1
    slope = acceptance_rates**high
    over = acceptance_rates * gain_of(acceptance_rates, high - 1.0) - (gain - acceptance_rates)
    back = np.divide(over, slope, out=np.zeros_like(over), where=(over > 0) & (slope > 0))
    return np.asarray(np.where(gain <= 0.0, 0.0, high - np.clip(back, 0.0, 1.0)), np.float64)


def largest_where(holds: Callable[[Floats], Truths], most: Floats) -> Floats:
    """Return, for each entry, the largest integer from 1 to `most` that satisfies a condition.

    An entry is 0 if no such integer exists. The condition must hold up to some number and fail
    beyond it.
    """
    low, high = np.zeros_like(most), np.maximum(0.0, most)
    while (low < high).any():
        middle = np.maximum(1.0, np.ceil(0.5 * (low + high)))
        found = holds(middle) & (low < high)
        low = np.where(found, middle, low)
        high = np.where(found, high, np.minimum(high, middle - 1.0))
    return low


def gain_of(acceptance_rates: Floats, tokens: Floats) -> Floats:
    """Return the expected number of accepted draft tokens, not counting the server's own token."""
    gain = acceptance_rates * expected_tokens(acceptance_rates, np.maximum(0.0, tokens - 1.0))
    return np.asarray(np.where(tokens > 0.0, gain, 0.0), np.float64)


def plan_of(problem: FairGoodputProblem, tokens: Floats) -> FairGoodputPlan:
    """Return the plan in which the clients' mean draft tokens per round are `tokens`.

    The fractional parts are realised by systematic sampling.
    """
    whole, part = in_units(tokens, problem.budget_tokens)
    fraction = part / UNIT
    rates = problem.acceptance_rates
    return FairGoodputPlan(
        goodput=expected_tokens(rates, whole) + fraction * rates ** (whole + 1.0),
        mean_draft_tokens=whole + fraction,
        schedule=systematic(whole, part),
    )


def in_units(tokens: Floats, budget_tokens: int) -> tuple[Ints, Ints]:
    """Split mean draft tokens into whole tokens and fractional parts.

    Fractional parts are integers in units of 1 / UNIT token. The exact sum does not exceed the
    budget.
    """
    floor = np.floor(tokens)
    whole = floor.astype(np.int64)
    part = ((tokens - floor) * UNIT).astype(np.int64)
    whole += part > UNIT - SNAP
    part[(part < SNAP) | (part > UNIT - SNAP)] = 0
    high = int((part >> 26).sum())  # exact where the plain sum would overflow
    low = int((part & ((1 << 26) - 1)).sum())
    excess = ((int(whole.sum()) - budget_tokens) << 52) + (high << 26) + low
    while excess > 0:  # remove the excess due to rounding evenly
        able = np.flatnonzero(part)
        step = np.minimum(part[able], -(-excess // len(able)))
        spent = np.minimum(step, np.maximum(0, excess - (np.cumsum(step) - step)))
        part[able] -= spent
        excess -= int(spent.sum())
    return whole, part


def systematic(whole: Ints, part: Ints) -> Schedule:
    """Return a schedule of integer allocations whose means are whole + part / UNIT.

    The allocations change at most 2 N times.

    The fractional parts are arcs laid end to end on a circle of circumference UNIT. A client
    receives its extra token while a pointer that turns once around the circle is on its arc. At any
    time, the number of arcs over the pointer is the sum of the parts, rounded up or down.
    """
    able = np.flatnonzero(part)
    ends = np.cumsum(part[able].astype(np.uint64)) & np.uint64(
        UNIT - 1
    )  # uint64 wraps at a multiple of UNIT
    ends = ends.astype(np.int64)
    begins = np.concatenate((np.zeros(1, np.int64), ends[:-1]))[: len(ends)]
    first = whole.copy()
    first[able[(begins == 0) | ((ends > 0) & (ends < begins))]] += 1
    places, clients = np.concatenate((begins, ends)), np.concatenate((able, able))
    order = np.argsort(places, kind="stable")
    order = order[places[order] > 0]
    tokens = whole[clients] + (np.arange(len(places)) < len(able))
    places, clients, tokens = places[order], clients[order], tokens[order]
    new = np.flatnonzero(places != np.concatenate((np.zeros(1, np.int64), places))[:-1])
    bounds = np.concatenate((np.zeros(1, np.int64), places[new], np.full(1, UNIT)))
    size = len(whole)
    return Schedule(
        share=np.diff(bounds) / UNIT,
        starts=np.concatenate((np.zeros(1, np.int64), size + new, np.full(1, size + len(places)))),
        clients=np.concatenate((np.arange(size), clients)),
        tokens=np.concatenate((first, tokens)),
        full=np.arange(len(new) + 1) == 0,
    )


def _and_more(count: int) -> str:
    return f", and {count} more" if count > 0 else ""
