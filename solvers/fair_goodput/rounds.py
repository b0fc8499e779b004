"""The best single allocation per second, computed exactly, and plans that consist of a few rounds.

A round lasts max_i(S_i draft_i + network_i) + overhead + verify sum S. Once the time at which
drafting ends is fixed, every client has a cap, and choosing tokens by decreasing gain is optimal.
Only the times at which some client finishes a token need to be tried. For a weighted sum per
second, one pass over these times suffices for each guess of the sum. For any other utility, each
time needs a separate pass.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from specopt.models.acceptance import expected_tokens
from specopt.models.fair_goodput.problem import FairGoodputPlan, FairGoodputProblem, Schedule
from specopt.models.fields import Floats, Ints
from specopt.solvers.budget import Budget

SECONDS_PER_TOKEN = 3e-7
"""Approximate work per token in `best_sum`, in seconds. It is used when work is limited."""


def best_sum(problem: FairGoodputProblem, prices: Floats, budget: Budget) -> tuple[float, Ints]:
    """Return the largest weighted sum of rates per second, and an allocation that attains it.

    `prices` contains the weights of the clients' rates. The sum is an upper bound that is tight
    except for rounding errors.
    """
    kernels = budget.load("fair_goodput.dual")
    assert problem.draft_seconds_per_token is not None and problem.network_seconds is not None
    assert problem.verify_overhead_seconds is not None
    assert problem.verify_seconds_per_token is not None
    rates, base = problem.acceptance_rates, float(prices.sum())
    first = float(problem.network_seconds.max())
    shortest = first + problem.verify_overhead_seconds
    # Tokens are left out if they finish so late, or gain so little, that rounds without drafts
    # would yield more in the same time.
    with np.errstate(divide="ignore", invalid="ignore"):
        end = float((prices / (1.0 - rates)).sum()) * shortest / base
        end -= problem.verify_overhead_seconds
        in_time = (end - problem.network_seconds) / problem.draft_seconds_per_token
        paid = np.log(base / shortest * problem.verify_seconds_per_token / prices) / np.log(rates)
    # `fmin` ignores limits that are not a number
    limit = np.maximum(0.0, np.ceil(np.fmin(in_time, paid)) + 1.0)
    most = np.fmin(limit, useful_drafts(problem) * (prices > 0.0))
    total = float(most.sum())
    budget.hold("draft tokens", 80.0 * total)
    budget.spend(SECONDS_PER_TOKEN * total)
    clients, tokens = drafts_of(most.astype(np.int64))
    gain = prices[clients] * rates[clients] ** tokens
    finish = finish_of(problem, clients, tokens)
    order = finish.argsort(kind="stable")  # within a client by rising token, too
    best = np.empty(4)
    kernels.best_ratio(
        kernels.Tokens(
            finish[order],
            gain[order],
            problem.verify_overhead_seconds,
            problem.verify_seconds_per_token,
            problem.budget_tokens,
        ),
        base,
        first,
        best,
    )
    able = np.flatnonzero(finish <= best[1])
    taken = able[(-gain[able]).argsort(kind="stable")[: int(best[2])]]
    return float(best[0] + best[3] / shortest), _allocation(problem, clients[taken])


def best_utility(problem: FairGoodputProblem, budget: Budget) -> Ints:
    """Return the single allocation with the largest utility.

    For a steep utility, the contributions of tokens and of durations may each leave the
    floating-point range even if the utility of the rates does not. Both contributions are therefore
    measured in units near the middle of their ranges.
    """
    assert problem.network_seconds is not None
    assert problem.verify_overhead_seconds is not None
    assert problem.verify_seconds_per_token is not None
    g, weight = problem.fairness, problem.weight / problem.weight.sum()
    useful = useful_drafts(problem)
    clients, tokens = drafts_of(useful)
    finish, rates = finish_of(problem, clients, tokens), problem.acceptance_rates[clients]
    most = expected_tokens(problem.acceptance_rates, useful)
    least = float(problem.network_seconds.max())
    shortest = least + problem.verify_overhead_seconds
    seconds = math.sqrt(shortest * problem.round_seconds(useful))
    unit = math.sqrt(float(most.max())) if g > 1.0 else 1.0
    gain = token_gain(rates, tokens, g, unit)
    if g > 1.0:
        end = float((weight * (most / unit) ** (1.0 - g)).sum()) / (1.0 - g)
    else:
        end = 0.0 if g == 1.0 else 1.0 / (1.0 - g)
    gain *= weight[clients]
    order = np.argsort(-gain, kind="stable")  # within a client by rising token, too
    order = order[gain[order] > 0]
    finish, gain = finish[order], gain[order]
    if g > 1.0:  # summed from the smallest, so that no digits are lost
        prefix = np.cumsum(np.concatenate(([end], -gain[::-1])))[::-1].copy()
    else:
        prefix = np.cumsum(np.concatenate(([end], gain)))
    room = min(len(gain), problem.budget_tokens)
    verifying = problem.verify_overhead_seconds + problem.verify_seconds_per_token * np.arange(
        room + 1.0
    )

    def per_second(values: Floats, end: float) -> Floats:
        """Return the utility per second of rounds with 0, 1, 2, ... tokens.

        `values` contains the values of their tokens, and `end` is the time at which drafting ends.
        """
        lasts = (end + verifying[: len(values)]) / seconds
        return values - np.log(lasts) if g == 1.0 else values * lasts ** (g - 1.0)

    best, taken = -math.inf, order[:0]
    for limit in [least, *np.unique(finish[finish > least]).tolist()]:
        budget.check()
        if per_second(prefix[: room + 1], limit).max() <= best:
            break  # later ends are not better either
        able = finish <= limit
        if g > 1.0:  # summing a steep utility from zero tokens would lose its digits
            values = (prefix[1:] - np.cumsum(np.where(able, 0.0, gain)))[able]
        else:
            values = prefix[0] + np.cumsum(gain[able])
        found = per_second(np.append(prefix[0], values)[: room + 1], limit)
        count = int(found.argmax())
        if found[count] > best:
            best, taken = float(found[count]), order[able][:count]
    return _allocation(problem, clients[taken])


def token_gain(rates: Floats, tokens: Floats | Ints, g: float, unit: float = 1.0) -> Floats:
    """Return the gain in utility from the draft tokens with the numbers `tokens`, at weight 1.

    Tokens are numbered from 1, and rates are measured in units of `unit`.
    """
    before, gain = expected_tokens(rates, tokens - 1) / unit, rates**tokens / unit
    if g == 0.0:
        return gain
    grown: Floats = np.log1p(gain / before)
    return grown if g == 1.0 else before ** (1.0 - g) * np.expm1((1.0 - g) * grown) / (1.0 - g)


def drafts_of(most: Ints) -> tuple[Ints, Ints]:
    """List the draft tokens up to each client's limit, and return the client and number of each.

    The tokens of each client are numbered from 1.
    """
    clients = np.arange(len(most)).repeat(most)
    return clients, np.arange(len(clients)) - (most.cumsum() - most)[clients] + 1


def finish_of(problem: FairGoodputProblem, clients: Ints, tokens: Ints) -> Floats:
    """Return the time at which each token is drafted, in seconds since the start of the round."""
    assert problem.draft_seconds_per_token is not None and problem.network_seconds is not None
    drafting: Floats = tokens * problem.draft_seconds_per_token[clients]
    return drafting + problem.network_seconds[clients]


def _allocation(problem: FairGoodputProblem, clients: Ints) -> Ints:
    """Return the allocation with one draft token for each entry of `clients`.

    A client may occur several times.
    """
    return np.bincount(clients, minlength=problem.clients).astype(np.int64)


def useful_drafts(problem: FairGoodputProblem) -> Ints:
    """Return the number of draft tokens of each client beyond which more tokens have no effect.

    The number is limited by the cap, the budget and the floating-point range.
    """
    with np.errstate(divide="ignore"):
        worth = math.log(1e-300) / np.log(problem.acceptance_rates)
    useful: Ints = np.minimum(problem.max_tokens, np.minimum(worth, 2.0**53).astype(np.int64))
    return useful


def rates_of(problem: FairGoodputProblem, allocation: Ints) -> Floats:
    """Return the long-run rates of all clients if every round uses `allocation`."""
    rates = expected_tokens(problem.acceptance_rates, allocation)
    return rates / problem.round_seconds(allocation) if problem.per == "second" else rates


def mixture(problem: FairGoodputProblem, shares: Floats, allocations: Ints) -> FairGoodputPlan:
    """Return the plan that mixes `allocations`, one per row, in the proportions `shares`.

    The proportions are shares of rounds if rates are per round, and shares of time if rates are per
    second.
    """
    return declared(problem, Schedule.of(shares / shares.sum(), allocations))


def constant(problem: FairGoodputProblem, allocation: Ints) -> FairGoodputPlan:
    """Return the plan that uses one allocation in every round."""
    return mixture(problem, np.ones(1), allocation[None])


def plain_allocations(problem: FairGoodputProblem) -> list[Ints]:
    """Return allocations in which every client drafts the same number of tokens, up to its cap.

    One allocation uses the number floor(C / N), for C tokens and N clients. If rates are per
    second, there are also allocations for zero and for the powers of two up to floor(C / N).
    """
    each = problem.budget_tokens // problem.clients
    numbers = {each}
    if problem.per == "second":
        numbers |= {0, *(1 << k for k in range(each.bit_length()))}
    return [np.minimum(number, problem.max_tokens) for number in sorted(numbers)]


def declared(problem: FairGoodputProblem, schedule: Schedule) -> FairGoodputPlan:
    """Return the plan with a schedule, and compute its goodput and mean drafts from the entries."""
    goodput, tokens = np.zeros((2, problem.clients))
    rounds = 0.0
    for share, allocation in schedule.allocations():
        count = share / problem.round_seconds(allocation) if problem.per == "second" else share
        goodput += count * expected_tokens(problem.acceptance_rates, allocation)
        tokens += count * allocation
        rounds += count
    return FairGoodputPlan(goodput=goodput, mean_draft_tokens=tokens / rounds, schedule=schedule)


def in_time(problem: FairGoodputProblem, schedule: Schedule) -> Schedule:
    """Convert a schedule with shares of rounds to the same schedule with shares of time."""
    seconds = schedule.share * [
        problem.round_seconds(allocation) for _, allocation in schedule.allocations()
    ]
    return replace(schedule, share=seconds / seconds.sum())
