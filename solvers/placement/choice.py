"""How often each pattern is used: the integer program over patterns, solved by HiGHS."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from specopt.solvers.placement.patterns import Pattern, widest
from specopt.solvers.placement.prepare import Prepared
from specopt.solvers.placement.program import Program


@dataclass(frozen=True)
class Choice:
    """What HiGHS found.

    Parameters
    ----------
    used
        Patterns and units of each; None without a feasible choice.
    bound
        On the value of every choice, as something to maximise; -inf: there is none.
    """

    used: list[tuple[Pattern, int]] | None
    bound: float


@dataclass(frozen=True)
class Frame:
    """A program with the rows that every plan keeps, and columns of draft units and of the share that is carried.

    Parameters
    ----------
    program
        The program.
    classes, verifiers, drafts
        Rows of clients of every class, of units of every verifier, and of clients of every type of draft units.
    """

    program: Program
    classes: range
    verifiers: range
    drafts: range

    @classmethod
    def of(cls, prepared: Prepared, least: Sequence[int] = (), most: Sequence[int] = (), whole: bool = True) -> Frame:
        """Return the frame of a problem; least, most: units of every verifier, by default none and all."""
        problem, program = prepared.problem, Program()
        carried = problem.objective == "capacity"
        clients = [0.0 if carried else float(count) for count in prepared.clients]
        classes = program.rows(clients, [math.inf] * len(clients) if carried else clients)
        units = [float(one.units) for one in problem.verifiers]
        verifiers = program.rows(list(map(float, least)) or [0.0] * len(units), list(map(float, most)) or units)
        drafts = program.rows([-math.inf] * len(prepared.drafts), [0.0] * len(prepared.drafts))
        pools = program.rows([0.0] * len(problem.draft_pools), [float(one.units) for one in problem.draft_pools])
        for row, draft in zip(drafts, prepared.drafts, strict=True):
            held = {row: -float(draft.most), pools[draft.pool]: 1.0}
            program.column(-prepared.price_of(draft.pool), held, problem.draft_pools[draft.pool].units, whole)
        if carried:
            shares = {row: -float(count) for row, count in zip(classes, prepared.clients, strict=True)}
            program.column(1.0, shares)
        return cls(program, classes, verifiers, drafts)


def choose(prepared: Prepared, patterns: Sequence[Pattern], seconds: float, penalty: float = 0.0) -> Choice:
    """Return the most valuable use of some patterns that places every client (for capacity: the most of each class).

    Parameters
    ----------
    prepared, patterns
        The problem, and patterns of its units with their values.
    seconds
        Of HiGHS at most.
    penalty
        For every client that is left out; 0: none may be.
    """
    problem, frame = prepared.problem, Frame.of(prepared)
    program = frame.program
    used = [one.drafted(prepared) for one in patterns]
    met: dict[tuple[int, int], int] = {}
    for d, draft in enumerate(prepared.drafts):  # somebody has the context and the length of a type that is used
        for which in (0, 1) if draft.context is not None and any(d in of for of in used) else ():
            (met[d, which],) = program.rows([-math.inf], [0.0])
            program.columns[d] = {**program.columns[d], met[d, which]: 1.0}
    first = len(program.costs)
    for one, drafted in zip(patterns, used, strict=True):
        held = {frame.classes[c]: float(count) for c, count in enumerate(one.served(prepared)) if count}
        held[frame.verifiers[prepared.sides[one.side].verifier]] = 1.0
        for d, count in drafted.items():
            held[frame.drafts[d]] = float(count)
            units = problem.draft_pools[prepared.drafts[d].pool].units
            held |= {
                row: -float(units) for (of, which), row in met.items() if of == d and widest(prepared, one, d)[which]
            }
        program.column(0.0 if problem.objective == "capacity" else one.value, held, whole=True)
    if penalty:
        for row in frame.classes:
            program.column(-penalty, {row: 1.0})
    unit = max((abs(one.value) for one in patterns), default=0.0) or 1.0
    found = program.solve(seconds, unit=1.0 if problem.objective == "capacity" else unit)
    if found.amounts is None:
        return Choice(None, found.bound)
    counts = np.rint(found.amounts[first : first + len(patterns)]).astype(int).tolist()
    return Choice([(one, count) for one, count in zip(patterns, counts, strict=True) if count], found.bound)
