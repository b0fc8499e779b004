"""Prompt chunking again from the text of paper 4, in exact rational arithmetic; imports nothing of
ours.

Every resource is a list of jobs with a time each, played as a recursion over (chunk, resource): a
job starts when the chunk's job before it and the resource's job before it are done.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import combinations
from typing import Any


def number(problem: dict[str, Any], name: str) -> Fraction:
    """A field as a fraction; absent ones are 0."""
    return Fraction(problem.get(name, 0))


def line(x: Sequence[Any], y: Sequence[Any], tokens: Any) -> Any:
    """g through knots: the first value to the left of them, the last slope to the right."""
    if tokens <= x[0]:
        return y[0]
    k = next(k for k in range(1, len(x)) if tokens <= x[k] or k == len(x) - 1)
    return y[k - 1] + (y[k] - y[k - 1]) * (tokens - x[k - 1]) / (x[k] - x[k - 1])


def delay(problem: dict[str, Any], tokens: Fraction) -> Fraction:
    """g of a problem."""
    x, y = (list(map(Fraction, problem["cloud_delay"][name])) for name in ("tokens", "seconds"))
    return Fraction(line(x, y, tokens))


def first_token(problem: dict[str, Any], chunks: list[int]) -> Fraction:
    """Time to first token as a longest path, computed from its end: when is job r of chunk j
    done?
    """
    P, mu = problem["pipeline_length"], number(problem, "background_tokens")
    up = Fraction(problem["bytes_per_token"]) / Fraction(problem["uplink_bytes_per_second"])
    down = Fraction(problem["bytes_per_token"]) / Fraction(problem["downlink_bytes_per_second"])
    w = delay(problem, mu) / P
    wait, everything = problem.get("wait", "serial"), problem.get("download", "all") == "all"
    latency = number(problem, "link_latency_seconds")
    known: dict[tuple[int, int], Fraction] = {}

    def done(j: int, r: int) -> Fraction:
        """r = 0: computed on the device; 1: uploaded; 2 .. P + 1: left stage r - 1; P + 2:
        downloaded.
        """
        if j < 0:
            return Fraction(0)
        if (j, r) in known:
            return known[j, r]
        x = chunks[j]
        before = done(j - 1, r)
        if r == 0:
            out: Fraction = (
                before
                + number(problem, "local_overhead_seconds")
                + number(problem, "local_seconds_per_token") * x
            )
        elif r == 1:
            out = max(before, done(j, 0)) + number(problem, "message_overhead_seconds") + x * up
        elif r == 2:
            arrived = done(j, 1) + latency
            if wait == "serial":
                start = max(arrived, before) + w
            elif wait == "overlap":
                start = max(arrived + w, before)
            else:
                start = max(arrived, before)
            out = start + delay(problem, mu + x) / P
        elif r <= P + 1:
            out = max(done(j, r - 1), before) + delay(problem, mu + x) / P
        else:
            states = Fraction(x) if everything else Fraction(j == len(chunks) - 1)
            out = max(done(j, r - 1) + latency, before) + states * down
        known[j, r] = out
        return out

    return done(len(chunks) - 1, P + 2) + number(problem, "head_seconds")


def plans(problem: dict[str, Any]) -> Iterator[list[int]]:
    """Every plan that cap and grid allow."""
    N, grid = problem["prompt_tokens"], problem.get("grid_tokens", 1)
    places = list(range(grid, N, grid))
    for cuts in range(min(len(places) + 1, problem.get("max_chunks", N))):
        for ends in combinations(places, cuts):
            yield [b - a for a, b in zip((0, *ends), (*ends, N), strict=True)]


def optimum(problem: dict[str, Any]) -> Fraction:
    """The least time to first token of all plans."""
    return min(first_token(problem, chunks) for chunks in plans(problem))


def balance(problem: dict[str, Any], size: Fraction) -> Fraction:
    """Left minus right side of Eq. 3, with both sides multiplied by P."""
    up = Fraction(problem["bytes_per_token"]) / Fraction(problem["uplink_bytes_per_second"])
    mu = number(problem, "background_tokens")
    return (
        size * up * Fraction(problem["pipeline_length"])
        - delay(problem, mu)
        - delay(problem, mu + size)
    )
