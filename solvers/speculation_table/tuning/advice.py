"""Notes that explain a choice of draft lengths to the user.

They report the costs or contexts at which the choice changes, the loads at which it is slower than
no speculation, and the acceptance above which drafts pay off.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from specopt.models.sweep import Condition, Point
from specopt.solvers.speculation_table.schedule import Schedule
from specopt.solvers.speculation_table.tuning.answers import Answers, Ranges
from specopt.solvers.speculation_table.tuning.grid import geometric_mean, grid_of, name_of
from specopt.solvers.speculation_table.tuning.tuning import Tuning


def break_even(answers: Answers) -> Iterator[dict[str, Any]]:
    """Yield the break-even acceptance length for each load and each measured draft length.

    A draft length pays off if its acceptance length is above this value, provided that steps take
    as long as measured. If the current acceptance length is unknown, the entry contains the ratio
    of the break-even value to the current value instead.
    """
    grid = answers.grid
    for c in () if answers.relative else answers.concurrencies:
        row = grid.row(c)
        for k in 1 + np.flatnonzero(grid.measured[row, 2:] & grid.measured[row, 0]):
            factor = float(grid.mean[row, 0] / grid.mean[row, k + 1])
            points = (Point(Condition(c, *case[:2]), int(k)) for case in answers.cases)
            runs = (one for point in points for one in answers.predictor.runs[point])
            known = float(np.mean([one.acceptance_length or np.nan for one in runs]))
            pays = {"factor": factor} if np.isnan(known) else {"acceptance_length": known * factor}
            yield {"concurrency": c, "draft_length": int(k), **pays}


def advice(tuning: Tuning, every: Sequence[Ranges], worth: Sequence[float]) -> Iterator[str]:
    """Yield notes on the choice `tuning` and its alternatives.

    The notes report the cost of a table, the loads at which the choice is slower than the
    alternatives, promising draft lengths that were not measured, and the effect of the context.
    """
    goal, grid = tuning.goal, tuning.grid
    if goal.tpot_seconds is not None and not tuning.carries:
        yield (
            f"no option meets the target of {1000 * goal.tpot_seconds:g} ms per output token at"
            f" {grid.sizes[0]} requests or more"
        )
    if len(every[-1]) > 1 and len(every) > 1:
        yield _flip(tuning, every, worth)
    speeds = {c: tuning.speedup(c) for c in tuning.concurrencies}
    base = "the best constant length" if tuning.relative else "no speculation"
    slow = [f"{c} ({speed:.2f}x)" for c, speed in speeds.items() if speed < 1.0 - goal.loss]
    if slow:
        yield f"the choice is slower than {base} at these numbers of requests: {', '.join(slow)}"
    first = tuning.concurrencies[0]
    fastest = float(np.nanmax([*tuning.value[grid.row(first)], 1.0]))
    slower = speeds[first] < fastest * (1.0 - goal.loss)
    if goal.tpot_seconds is not None and not goal.robust and slower:
        yield (
            f"the option with the largest capacity is {1.0 - speeds[first] / fastest:.1%} slower"
            f" than the fastest one at {first} requests"
        )
    if tuning.cap is not None:
        c = tuning.concurrencies[-1]
        none, waiting = grid.mean[grid.row(c), 0], grid.mean[tuning.row(c), tuning.option(c)]
        yield (
            f"every draft length may be slower than no speculation beyond {tuning.cap} requests at"
            f" a time; limit the engine's batch to {tuning.cap}. With this limit, request"
            f" {tuning.cap + 1} waits, and {c} requests get {waiting:,.4g} tokens per second,"
            f" compared with {none:,.4g} without speculation"
        )
    elif goal.robust and not tuning.schedule.speculates:
        holds = int(np.cumprod(tuning.value[:, 1:] > 0.0, axis=0).sum(axis=0).max())
        known_safe = (
            f"drafts are safe up to {grid.sizes[holds - 1]} requests at a time; beyond that,"
            if holds
            else "drafts are not safe at any load:"
        )
        yield (
            f"{known_safe} every draft length may be slower than no speculation, and a limit on"
            " the batch would make requests wait"
        )
    if goal.tpot_seconds is not None and tuning.carries:
        most = max(range(len(every)), key=lambda i: worth[i])
        name = name_of(every[most])
        if name != tuning.name and worth[most] > tuning.gain:
            fewer = next(one.concurrency for one in tuning.capacity if one.draft_length == name)
            yield (
                f"capacity is largest with {_words(tuning.name)}: {tuning.carries} requests;"
                f" throughput is largest with {_words(name)}: {worth[most]:.3f}x that of {base},"
                f" compared with {tuning.gain:.3f}x, but for at most {fewer} requests"
            )
    yield from _unmeasured(tuning)
    yield from _contexts(tuning)


def _words(name: int | str) -> str:
    return {"table": "a table", "none": "no speculation"}.get(str(name), f"{name} drafts")


def _unmeasured(tuning: Tuning) -> Iterator[str]:
    """Yield notes on draft lengths that should be measured.

    These are the best unmeasured length below the longest measured length and, if the longest
    measured length is chosen, the next longer length. A chosen length that was not measured is also
    reported.
    """
    predictor, goal, loads = tuning.predictor, tuning.goal, tuning.concurrencies
    measured = [length for length in predictor.sweep.draft_lengths if length]
    longest, chosen = measured[-1], tuning.schedule.mean_speedup() or 1.0
    lengths = [k for k in range(1, longest) if k not in measured]
    longer = (goal.max_length or longest + 1) > longest and predictor.is_sequential
    if longer and tuning.schedule.longest == longest:
        lengths.append(longest + 1)
    if not lengths or (goal.draft_lengths and set(goal.draft_lengths) <= set(measured)):
        return
    grid = grid_of(predictor, tuning.cases, loads, (0, *lengths), goal.prices.idle)
    weights = goal.shares(loads)
    speedups = grid.mean / grid.mean[:, :1], grid.least, grid.most
    found = {k: [geometric_mean(of[:, k + 1], weights) for of in speedups] for k in lengths}
    inside = [k for k in lengths if k < longest and found[k][0] > chosen * (1.0 + goal.loss)]
    best = max(inside, key=lambda k: found[k][0], default=None)
    taken = [row[2] for row in tuning.schedule.ranges]
    for k in [best, *(k for k in lengths if k > longest)]:
        if k is not None and k not in taken:
            mean, low, high = found[k]
            yield (
                f"K = {k} has a predicted speed-up of {mean:.2f}x ({low:.2f} to {high:.2f}) over"
                " the loads but was not measured; measure it"
            )
    if set(taken) - {None, 0, *measured}:
        one = max(k or 0 for k in taken if k not in measured)
        yield f"K = {one}, which was chosen, was not measured; measure it"


def _flip(answers: Answers, every: Sequence[Ranges], worth: Sequence[float]) -> str:
    """Return a note on the cost of a table at which the best alternative is equally good."""
    prices, sweep = answers.goal.prices, answers.predictor.sweep
    table, other = every[-1], max(range(len(every) - 1), key=lambda i: worth[i])
    free = replace(answers, kept=np.ones_like(answers.kept)).score(table)
    flat = 1.0 - worth[other] / free
    constant = every[other][0][2]
    name = "no speculation" if constant is None else f"a constant draft length of {constant}"
    pays = (
        f"pays off if it costs less than {flat:.1%}"
        if flat > 0
        else "does not pay off, whatever it costs"
    )
    text = (
        f"a table of {len(table)} ranges has a speed-up of {worth[-1]:.3f}x, including its usual"
        f" cost, and {name} has {worth[other]:.3f}x: the table {pays}"
        f" (reported costs: {prices.table.source})"
    )
    drafts, last = Schedule(ranges=table).at, table[-1][1]
    idle = np.array([c <= last and drafts(c) == 0 for c in answers.concurrencies])
    known = 0 in sweep.draft_lengths or sweep.zero_is_none
    if flat > 0 and idle.any() and not known:
        weights = answers.goal.shares(answers.concurrencies)
        share = np.average(idle, weights=weights)
        usual = prices.idle.at(answers.concurrencies)[1]
        gain = np.log(worth[-1] / worth[other]) - np.average(
            idle * np.log1p(-usual), weights=weights
        )
        most = 1.0 - np.exp(-gain / share) if share else 1.0
        text += (
            "; it also requires that steps without drafts, which were not measured, cost less than"
            f" {max(0.0, most):.1%} (reported costs: {prices.idle.source})"
        )
    return text


def _contexts(tuning: Tuning) -> Iterator[str]:
    """Yield a note if drafts pay off with one context length but not with another."""
    predictor, cases, schedule = tuning.predictor, tuning.cases, tuning.schedule
    measured = [length for length in predictor.sweep.draft_lengths if length]
    if len({case[1] for case in cases}) < 2 or tuning.goal.context_tokens is not None:
        return
    single = max(measured, key=lambda length: schedule.mean_speedup(length) or 0.0)
    for c in tuning.concurrencies:
        drafts = schedule.at(c) or single
        points = [
            Point(Condition(c, case[0], case[1]), k)
            for case in cases
            for k in (drafts, predictor.sweep.relative)
        ]
        speeds = predictor.predict(points).mean
        ratios = dict(zip((case[1] for case in cases), speeds[::2] / speeds[1::2], strict=True))
        low, high = min(ratios, key=ratios.__getitem__), max(ratios, key=ratios.__getitem__)
        if ratios[low] < 1.0 - tuning.goal.loss and ratios[high] > 1.0 + tuning.goal.loss:
            yield (
                f"contexts are weighted equally, but the best choice depends on them: at {c}"
                f" requests, {drafts} drafts have a speed-up of {ratios[low]:.2f}x with {low:,}"
                f" tokens of context and {ratios[high]:.2f}x with {high:,}; choose one with"
                " --context N"
            )
