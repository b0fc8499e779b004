"""Conversion of the requests in a trace into one problem."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from specopt.instances.family import Family
from specopt.instances.traces.trace import Trace
from specopt.models.errors import InvalidInput
from specopt.models.fields import describe
from specopt.models.problem import Problem


@dataclass(frozen=True, kw_only=True)
class FromTrace:
    """The conversion of a trace into a problem of one kind.

    Parameters
    ----------
    build
        Function that returns the problem, given the trace and the family (problem generator). The
        seed and the family's parameters are passed by keyword.
    families
        Families for this kind of problem, which supply the values that traces do not contain; the
        first family is the default.
    of_the_trace
        Names of the family parameters that the trace determines.
    unused
        Description of the values in a trace that are not used, and of their replacements.
    """

    build: Callable[..., Problem]
    families: tuple[Family, ...]
    of_the_trace: tuple[str, ...]
    unused: str

    def family(self, name: str | None) -> Family:
        """Return the family named FAMILY or KIND/FAMILY; None means the default family.

        Raises
        ------
        InvalidInput
            If the name is unknown.
        """
        for family in self.families:
            if name in (None, family.label, family.name):
                return family
        known = ", ".join(family.label for family in self.families)
        raise InvalidInput(
            f"family: expected {'one of ' * (len(self.families) > 1)}{known} for"
            f" {self.families[0].kind}, got {describe(name)}"
        )

    def problem(
        self, trace: Trace, family: str | None = None, *, seed: int = 0, **parameters: Any
    ) -> Problem:
        """Convert the requests in a trace into one problem.

        Raises
        ------
        InvalidInput
            If the family or a parameter is unknown, or if the problem rejects a value in the trace.
        """
        chosen = self.family(family)
        for parameter in parameters:
            if parameter in self.of_the_trace:
                raise InvalidInput(f"{parameter}: the value comes from the trace; omit it")
        problem = self.build(trace, chosen, seed=seed, **parameters)
        source = trace.source or "a trace"
        last = trace.start + len(trace) - 1
        dropped = "".join(f", {count} with {reason} dropped" for reason, count in trace.dropped)
        notes = (
            f"Rows {trace.start} to {last} of {source}{dropped}; other values from {chosen.name},"
            f" seed {seed}."
        )
        return dataclasses.replace(
            problem, name=f"{source} {trace.start}-{last} {chosen.label} seed={seed}", notes=notes
        )
