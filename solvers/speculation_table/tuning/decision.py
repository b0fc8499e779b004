"""Decision on an engine configuration: a table, a constant draft length, or no speculation."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

import numpy as np

from specopt.models.errors import InvalidInput
from specopt.models.fields import Floats
from specopt.solvers.speculation_table.tuning.advice import advice, break_even
from specopt.solvers.speculation_table.tuning.answers import Answers
from specopt.solvers.speculation_table.tuning.capacity import Capacity, capacities
from specopt.solvers.speculation_table.tuning.goal import Goal, cases_of
from specopt.solvers.speculation_table.tuning.grid import Grid, grid_of
from specopt.solvers.speculation_table.tuning.predictions import Predictor
from specopt.solvers.speculation_table.tuning.tuning import Tuning

_FURTHEST = 2  # maximum extrapolation, as a multiple of the longest measured draft
_CAUTION = 0.5  # share of the doubt that is subtracted from unmeasured log speed-ups
_SIZES = 256  # number of batch sizes to consider, in addition to the measured sizes


def decide(predictor: Predictor, goal: Goal) -> Tuning:
    """Return the best schedule for a goal, given predictions of the throughput.

    Configurations are compared by the (weighted) geometric mean of the speed-up over the loads,
    including the typical cost of a table. If there is a latency target, configurations are compared
    by capacity first. The choice is at least as good as every constant length and as no
    speculation.

    If the goal is robust, the lower limit of the speed-up is at least 1 at every batch size up to
    the end of the last range. In addition, no measurement with drafts is slower than no
    speculation.

    Raises
    ------
    InvalidInput
        If the goal lies outside the measured range and extrapolation is not allowed, or if it
        refers to loads or workloads that were not measured.
    """
    sweep, cases = predictor.sweep, cases_of(predictor, goal)
    names = {case[0] for case in cases}
    measured = sorted({one.concurrency for one in sweep.conditions if one.workload in names})
    largest = goal.max_batch or measured[-1]
    if goal.room is not None:
        if goal.room[0] < measured[0]:
            raise InvalidInput(
                f"memory: expected enough for {measured[0]} requests, the smallest measured"
                f" concurrency, got enough for {goal.room[0]}"
            )
        largest = min(largest, goal.room[0])
    if largest > measured[-1] and not goal.extrapolate:
        raise InvalidInput(
            f"max_batch: expected at most {measured[-1]}, the largest measured concurrency, got"
            f" {largest}; measure that concurrency, or set extrapolate"
        )
    first = 1 if goal.extrapolate else measured[0]
    every = sorted({*measured, *goal.concurrencies})
    concurrencies = tuple(c for c in every if first <= c <= largest)
    if not concurrencies:
        raise InvalidInput(
            f"max_batch: expected at least {measured[0]}, the smallest measured concurrency, got"
            f" {largest}"
        )
    unknown = sorted(set(goal.weights or ()) - set(measured))
    if unknown:
        listed = ", ".join(map(str, measured[:20]))
        raise InvalidInput(f"weights: expected measured concurrencies ({listed}), got {unknown[0]}")
    if sweep.relative is not None and goal.robust:
        raise InvalidInput(
            "robust: a run without speculation (draft_length none) is required for comparison; add"
            " one"
        )
    notes = list(predictor.notes)
    known = [length for length in sweep.draft_lengths if length]
    if first > 1:
        notes.append(
            f"batches below {first} were not measured; the choice at {first} is used for them"
        )
    ends = [room for room in goal.room or () if first <= room <= largest]
    sizes = _sizes(first, largest, [*concurrencies, *ends])
    grid = grid_of(predictor, cases, sizes, _lengths(known, goal), goal.prices.idle)
    if goal.context_tokens not in (None, *(case[1] for case in cases)):
        grid = replace(grid, measured=np.zeros_like(grid.measured))
    shortest = 1 if 0 in sweep.draft_lengths or sweep.zero_is_none else known[0]
    taken = known if goal.tpot_seconds is not None else range(shortest, known[-1] + 1)
    value = _value(grid, goal, taken, (measured[0], measured[-1]))
    answers = Answers(
        predictor=predictor,
        cases=cases,
        goal=goal,
        concurrencies=concurrencies,
        grid=grid,
        value=value,
        kept=1.0 - goal.prices.table.at(sizes)[::-1],
    )
    return _chosen(answers, notes)


def _chosen(answers: Answers, notes: list[str]) -> Tuning:
    """Return the best engine configuration, with notes for the user."""
    goal, every = answers.goal, answers.all()
    if not every:
        raise InvalidInput(
            "sweep: no draft length was measured at every load, nor was running without"
            " speculation; measure one of them at every load"
        )
    carried, capacity = goal.tpot_seconds is not None, list[Capacity]()
    if carried or goal.room is not None:
        capacity, more = capacities(answers, every)
        notes += more
    worth = [answers.score(ranges) for ranges in every]
    best = max(
        range(len(every)),
        key=lambda i: (carried and capacity[i].concurrency, worth[i], -len(every[i])),
    )
    tuning = Tuning(
        **vars(answers),
        schedule=answers.scheduled(every[best]),
        gain=worth[best],
        capacity=capacity,
        break_even=[*break_even(answers)],
    )
    return replace(tuning, notes=(*notes, *advice(tuning, every, worth)))


def _lengths(known: Sequence[int], goal: Goal) -> tuple[int, ...]:
    """Return the draft lengths to consider.

    They are 0 and either the lengths that the goal lists, or all lengths up to the maximum.
    """
    if not known:
        raise InvalidInput("sweep: at least one run with drafts (draft_length >= 1) is required")
    longest = max((known[-1], *goal.draft_lengths))
    most = _FURTHEST * known[-1] if goal.extrapolate else longest
    longest = longest if goal.max_length is None else goal.max_length
    if longest > most:
        way = "" if goal.extrapolate else ", or set extrapolate"
        raise InvalidInput(
            f"max_length: expected at most {most}, got {longest}; the longest measured draft length"
            f" is {known[-1]}; measure longer drafts{way}"
        )
    allowed = goal.draft_lengths or range(1, longest + 1)
    lengths = tuple(k for k in range(1, longest + 1) if k in allowed)
    if not lengths:
        raise InvalidInput(f"max_length: expected at least {min(allowed)}, got {longest}")
    return (0, *lengths)


def _sizes(first: int, largest: int, concurrencies: Sequence[int]) -> tuple[int, ...]:
    spread = np.unique(np.geomspace(first, largest, _SIZES).round().astype(int))
    sizes = range(first, largest + 1) if largest - first < _SIZES else spread.tolist()
    return tuple(sorted({*sizes, *concurrencies}))


def _value(grid: Grid, goal: Goal, lengths: Collection[int], loads: tuple[int, int]) -> Floats:
    """Return the speed-up by which configurations are compared, by batch size and draft length.

    The speed-up is 0 if a length must not be used. Unmeasured speed-ups are reduced by a fraction
    of their doubt (see `Grid`). Points outside the measured draft lengths and loads are excluded
    or, if extrapolation is allowed, are valued at the lower end of their bands.
    """
    column, size = np.arange(grid.mean.shape[1] - 1), np.array(grid.sizes)[:, None]
    outside = (
        ((column > 0) & ~np.isin(column, list(lengths))) | (size < loads[0]) | (size > loads[1])
    )
    unsure = np.exp(-_CAUTION * grid.doubt[:, 1:] * ~grid.measured[:, 1:])
    usual = unsure * grid.mean[:, 1:] / grid.mean[:, :1]
    judged = np.where(outside | goal.robust, grid.least[:, 1:], usual)
    value = np.where(np.isnan(judged) | (outside & (not goal.extrapolate)), 0.0, judged)
    if goal.robust:
        value = np.where((grid.least[:, 1:] >= 1.0) & ~grid.slower[:, 1:], value, 0.0)
    return value
