"""Windows of a trace as problems, for every kind that a trace says enough of."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from specopt.instances.traces.serving_latency import serving_latency
from specopt.instances.traces.trace import Trace
from specopt.instances.traces.verification_batch import verification_batch
from specopt.models.errors import InvalidInput
from specopt.models.fields import describe
from specopt.models.problem import Problem


@dataclass(frozen=True)
class Maker:
    """How one kind of problem is made from a trace.

    Parameters
    ----------
    build
        Function of the trace, the family and, by keyword, the seed and the family's parameters.
    families
        Families of the kind that give what no trace says; the first one is the default.
    of_the_trace
        Parameters of the families that the trace decides.
    """

    build: Callable[..., Problem]
    families: tuple[str, ...]
    of_the_trace: tuple[str, ...]


MAKERS: dict[str, Maker] = {
    "serving-latency": Maker(serving_latency, ("paper-1",), ("tasks", "max_input", "max_output")),
    "verification-batch": Maker(verification_batch, ("mixed", "warm", "tight", "memory-bound"), ("requests",)),
}
"""By the kind of problem."""


def problem_from_trace(
    trace: Trace, kind: str, family: str | None = None, *, seed: int = 0, **parameters: Any
) -> Problem:
    """Return the requests of a trace as one problem; take a `window` of the trace first where it is long.

    Parameters
    ----------
    trace
        The requests.
    kind
        "serving-latency" or "verification-batch".
    family
        Where what no trace says comes from, FAMILY or KIND/FAMILY; None: the first of the kind.
    seed
        Seed of the family.
    parameters
        Parameters of the family; those that the trace decides are refused.

    Raises
    ------
    InvalidInput
        If there is no such kind, family or parameter, or the problem refuses what the trace holds.
    """
    maker, name = maker_of(kind, family)
    for parameter in parameters:
        if parameter in maker.of_the_trace:
            raise InvalidInput(f"{parameter}: comes from the trace, and cannot be given")
    problem = maker.build(trace, name, seed=seed, **parameters)
    source = trace.source or "a trace"
    last = trace.start + len(trace) - 1
    dropped = "".join(f", {count} with {reason} dropped" for reason, count in trace.dropped)
    notes = f"Rows {trace.start} to {last} of {source}{dropped}; all else from {kind}/{name}, seed {seed}."
    return dataclasses.replace(problem, name=f"{source} {trace.start}-{last} {name} seed={seed}", notes=notes)


def maker_of(kind: str, family: str | None = None) -> tuple[Maker, str]:
    """Return the entry of `MAKERS`, and the name of the family without its kind.

    Raises
    ------
    InvalidInput
        If there is no such kind or family.
    """
    if kind not in MAKERS:
        raise InvalidInput(f"kind: expected one of {', '.join(MAKERS)}, got {describe(kind)}")
    known = MAKERS[kind].families
    name = known[0] if family is None else family.removeprefix(f"{kind}/")
    if name not in known:
        raise InvalidInput(f"family: expected one of {', '.join(known)} for {kind}, got {describe(family)}")
    return MAKERS[kind], name
