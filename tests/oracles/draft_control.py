"""Draft control again, from paper 3 and in exact rational numbers; imports nothing of the package.

Slow and obvious: every policy, every equation.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import cache
from itertools import product
from math import factorial, prod
from typing import Any

from oracles.quantisation import bits

Action = tuple[int, int]
"""Draft length and resolution."""


@cache
def points(V: int, resolution: int) -> int:
    """How many vectors of V counts sum to the resolution: a binomial coefficient."""
    return prod(range(V, V + resolution)) // factorial(resolution)


def distribution_bits(problem: dict[str, Any], state: int, resolution: int) -> Fraction:
    """Bits of a quantised distribution: of Eq. 6, or as the state says."""
    if problem.get("distribution_code", "lattice") == "support":
        return Fraction(
            problem["states"][state]["distribution_bits"][problem["resolutions"].index(resolution)]
        )
    V = problem["vocabulary_size"]
    return Fraction(bits(points(V, resolution)))


def seconds(problem: dict[str, Any], state: int, action: Action) -> Fraction:
    """T of an iteration (Eq. 7-9)."""
    L, resolution = action
    now, token = problem["states"][state], bits(problem["vocabulary_size"])
    up = (
        L
        * (token + distribution_bits(problem, state, resolution))
        / Fraction(now["uplink_bits_per_second"])
    )
    down = Fraction(0)
    if "downlink_bits_per_second" in now:
        down = (bits(L + 1) + token) / Fraction(now["downlink_bits_per_second"])
    verify = problem["verify_seconds"]
    verify = Fraction(verify[L] if isinstance(verify, list) else verify)
    return L * Fraction(problem["draft_seconds_per_token"]) + up + verify + down


def tokens(problem: dict[str, Any], state: int, action: Action) -> Fraction:
    """N of an iteration: the sum of Eq. 14 with one acceptance rate, as the paper prints it for N^t
    and N^t + 1.
    """
    L, resolution = action
    a = Fraction(
        problem["states"][state]["acceptance_rates"][problem["resolutions"].index(resolution)]
    )
    return sum(((n + 1) * a**n * (1 - a) for n in range(L)), Fraction(0)) + (L + 1) * a**L


def actions(problem: dict[str, Any]) -> list[Action]:
    """Every action of a state."""
    low, high = problem["draft_lengths"]
    return list(product(range(low, high + 1), problem["resolutions"]))


def chain(problem: dict[str, Any]) -> list[list[Fraction]]:
    """The transition matrix, rows scaled to sum to 1 exactly."""
    rows = [[Fraction(p) for p in row] for row in problem["transition"]]
    return [[p / sum(row) for p in row] for row in rows]


def completed(rows: Sequence[Sequence[float]]) -> list[list[Fraction]]:
    """A transition matrix, its diagonal one minus the rest of the row exactly."""
    rest = [
        [Fraction(p) if i != j else Fraction(0) for j, p in enumerate(row)]
        for i, row in enumerate(rows)
    ]
    return [
        [p if i != j else 1 - sum(row, Fraction(0)) for j, p in enumerate(row)]
        for i, row in enumerate(rest)
    ]


def stationary(P: list[list[Fraction]]) -> list[Fraction]:
    """Solve pi P = pi, sum pi = 1, by Gaussian elimination."""
    S = len(P)
    rows = [[P[i][j] - (i == j) for i in range(S)] + [Fraction(0)] for j in range(S)]
    rows.append([Fraction(1)] * (S + 1))
    for column in range(S):
        pivot = next(r for r in range(column, S + 1) if rows[r][column] != 0)
        rows[column], rows[pivot] = rows[pivot], rows[column]
        rows[column] = [x / rows[column][column] for x in rows[column]]
        for r in range(S + 1):
            if r != column and rows[r][column] != 0:
                rows[r] = [
                    x - rows[r][column] * y for x, y in zip(rows[r], rows[column], strict=True)
                ]
    return [rows[s][S] for s in range(S)]


def recurrent_classes(P: Sequence[Sequence[Any]]) -> list[list[int]]:
    """Sets of states that reach each other and nothing else, by the closure of the possible
    transitions.
    """
    S = len(P)
    reach = [[i == j or P[i][j] > 0 for j in range(S)] for i in range(S)]
    for k, i, j in product(range(S), repeat=3):
        reach[i][j] = reach[i][j] or (reach[i][k] and reach[k][j])
    found = {tuple(j for j in range(S) if reach[i][j]) for i in range(S)}
    return sorted(
        list(members) for members in found if all(reach[j][i] for i in members for j in members)
    )


def objective(problem: dict[str, Any], policy: Sequence[Action]) -> Fraction:
    """E[N] / E[T] under the stationary distribution."""
    shares = stationary(chain(problem))
    mean_tokens = sum(
        share * tokens(problem, s, a)
        for s, (share, a) in enumerate(zip(shares, policy, strict=True))
    )
    mean_seconds = sum(
        share * seconds(problem, s, a)
        for s, (share, a) in enumerate(zip(shares, policy, strict=True))
    )
    return Fraction(mean_tokens / mean_seconds)


def rates(problem: dict[str, Any]) -> Iterator[tuple[Fraction, tuple[Action, ...]]]:
    """The objective of every policy."""
    shares = stationary(chain(problem))
    able = actions(problem)
    table = [
        [(share * tokens(problem, s, a), share * seconds(problem, s, a), a) for a in able]
        for s, share in enumerate(shares)
    ]
    for chosen in product(*table):
        total = sum((c[1] for c in chosen), Fraction(0))
        yield sum((c[0] for c in chosen), Fraction(0)) / total, tuple(c[2] for c in chosen)


def optimum(problem: dict[str, Any]) -> Fraction:
    """The largest objective of all policies."""
    return max(rate for rate, _ in rates(problem))


def optimum_by_price(problem: dict[str, Any], P: list[list[Fraction]]) -> Fraction:
    """The largest objective again, for many policies and any chain: the best actions at a rising
    price of a second.
    """
    shares, price, before = stationary(P), Fraction(0), Fraction(-1)
    while price > before:
        before, mean_tokens, mean_seconds = price, Fraction(0), Fraction(0)
        for s, share in enumerate(shares):
            pairs = [(tokens(problem, s, a), seconds(problem, s, a)) for a in actions(problem)]
            best = max(pairs, key=lambda pair: pair[0] - before * pair[1])
            mean_tokens += share * best[0]
            mean_seconds += share * best[1]
        price = mean_tokens / mean_seconds
    return price


def best_static(problem: dict[str, Any]) -> Fraction:
    """The largest objective of the policies that are the same in every state."""
    return max(objective(problem, [action] * len(problem["states"])) for action in actions(problem))


def largest_ratio(problem: dict[str, Any], state: int) -> Fraction:
    """The most tokens per second of one iteration in a state (Eq. 13)."""
    return max(tokens(problem, state, a) / seconds(problem, state, a) for a in actions(problem))
