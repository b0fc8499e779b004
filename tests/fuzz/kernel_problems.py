"""Problem number n of the fuzz of kernels: small, of every kind in turn, with sub-steps that
nothing fits.

Problems come from the strategies of their kind or from its families. Half of them are then spoilt:
memory that holds some batches or none, rates and budgets of zero, samples of very different
lengths, ties.
"""

from __future__ import annotations

import copy
import dataclasses
import random
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

from fuzz.seed_problems import families_of, seed_problem
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from specopt import ContinuousServingProblem, InvalidInput, Problem, generate
from specopt.kinds import KINDS, kind_of
from specopt.kinds.continuous_serving import strategies as continuous_serving
from specopt.kinds.fair_goodput import strategies as fair_goodput
from specopt.kinds.serving_latency import strategies as serving_latency
from specopt.kinds.serving_latency.strategies import served_problems
from specopt.testing.strategies import problems

BYTES = 6000
"""Random bytes per drawn problem: the largest problems of the strategies need about half of them.
"""

FACTORS = (0.0, 0.0, 0.5, 0.9, 1.0 + 1e-12, 2.0, 30.0)
"""Factors on numbers of a problem that is spoilt."""

LONGEST = 3000
"""Maximum whole number in a problem that is spoilt: tokens, for example, whose number decides the
work.
"""


def kernel_problem(number: int) -> Problem:
    """Return the problem of a number: the same whenever and wherever it is asked for."""
    rng = random.Random(number)
    kind = KINDS[number % len(KINDS)].name
    source = rng.random()
    if source < 0.04:  # more tasks, requests, clients or states than any method tries one by one
        found: Problem | None = generate(rng.choice(families_of(kind)), seed=rng.randrange(100))
    else:
        found = _drawn(kind, rng) if source < 0.75 else None
    if found is None:
        found = kind_of(kind).problem.from_dict(seed_problem(kind, rng))
    if isinstance(found, ContinuousServingProblem) and rng.random() < 0.3:
        found = _hardly_drafting(found, rng)
    return _spoilt(found, rng) if rng.random() < 0.5 else found


def _hardly_drafting(
    problem: ContinuousServingProblem, rng: random.Random
) -> ContinuousServingProblem:
    """Return a problem whose draft model has memory for some tasks or none, and may be left out."""
    if problem.draft is None:
        return problem
    tokens = rng.choice(
        (0, 1, int(problem.input_tokens.min()), int(problem.input_tokens.max()))
    ) * rng.choice((1, 2))
    memory = float(problem.draft.parameter_bytes + problem.draft.kv_bytes_per_token * tokens)
    return dataclasses.replace(problem, min_speculation_length=0, draft_memory_bytes=memory)


@cache
def _strategies() -> dict[str, st.SearchStrategy[Problem]]:
    lengths = st.sampled_from([3, 8, 40])
    sizes: dict[str, Any] = {"tasks": (1, 7), "max_length": 5, "feasible": False}
    rounds = ("mean", "mean", "slowest")
    served = lengths.flatmap(
        lambda longest: served_problems(max_output=longest, rounds=rounds, **sizes)
    )
    continuous = lengths.flatmap(
        lambda longest: continuous_serving.problems(max_output=longest, **sizes)
    )
    many = sizes | {"tasks": (6, 14)}  # too many plans for the exact method to rate all of them
    ordered = serving_latency.problems(max_output=40, mechanisms=("pipelined", "any"), **many)
    return {
        "serving-latency": st.one_of(served, served, ordered),
        "continuous-serving": continuous,
        "prompt-chunking": problems("prompt-chunking", tokens=(1, 40)),
        "draft-allocation": problems("draft-allocation", clients=(1, 12), budget=(0, 40)),
        "fair-goodput": st.booleans().flatmap(
            lambda minimum: fair_goodput.problems((1, 6), (0, 20), minimum=minimum)
        ),
        "verification-batch": problems("verification-batch", requests=(0, 30)),
        "draft-control": problems("draft-control", states=(1, 5), longest=12, resolutions=3),
        "draft-stopping": problems("draft-stopping", max_tokens=6, max_bins=4),
        "placement": problems("placement", max_clients=6),
    }


@cache
def _draw(kind: str) -> tuple[Callable[[bytes], object], list[Problem]]:
    """Return what draws a problem of a kind from bytes, and the list that it puts it into."""
    found: list[Problem] = []

    @settings(database=None, deadline=None, suppress_health_check=list(HealthCheck))
    @given(_strategies()[kind])
    def keep(problem: Problem) -> None:
        found.append(problem)

    return keep.hypothesis.fuzz_one_input, found  # type: ignore[attr-defined]


def _drawn(kind: str, rng: random.Random) -> Problem | None:
    """Return a problem of the kind's strategy, or None if the bytes make none."""
    draw, found = _draw(kind)
    found.clear()
    try:
        draw(rng.randbytes(BYTES))
    except InvalidInput:
        return None
    return found[-1] if found else None


def _spoilt(problem: Problem, rng: random.Random) -> Problem:
    """Return a problem with one to three of its numbers or columns changed; the problem itself if
    none is valid.
    """
    for _ in range(5):
        data = copy.deepcopy(problem.to_dict())
        for _ in range(rng.choice((1, 1, 2, 3))):
            places = list(_places(data))
            memory = [place for place in places if "memory" in str(place[1])]
            holder, key = rng.choice(memory if memory and rng.random() < 0.4 else places)
            _spoil(holder, key, rng)
        try:
            return type(problem).from_dict(data)
        except InvalidInput:
            continue
    return problem


def _places(data: Any) -> Iterator[tuple[Any, Any]]:
    """Yield the holder and the key of every number and of every list of numbers."""
    for key, value in data.items() if isinstance(data, dict) else enumerate(data):
        if _is_number(value) or (isinstance(value, list) and value and all(map(_is_number, value))):
            yield data, key
        if isinstance(value, dict | list):
            yield from _places(value)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _spoil(holder: Any, key: Any, rng: random.Random) -> None:
    value = holder[key]
    if not isinstance(value, list):
        holder[key] = _scaled(value, rng)
        return
    at = rng.randrange(len(value))
    alike = [value[at]] * len(value)
    one = [_scaled(each, rng) if k == at else each for k, each in enumerate(value)]
    factor = rng.choice(FACTORS)
    holder[key] = rng.choice(
        (alike, one, one, [_times(each, factor) for each in value], value[:1], [*value, *value])
    )


def _scaled(value: float, rng: random.Random) -> float:
    return _times(value, rng.choice(FACTORS))


def _times(value: float, factor: float) -> float:
    return min(LONGEST, round(value * factor)) if isinstance(value, int) else value * factor
