"""What a kind of problem counts on and may be wrong about: what `robustness` varies."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from specopt.models.problem import Plan, Problem

Interval = tuple[float, float]


@dataclass(frozen=True, kw_only=True)
class Uncertainty:
    """Acceptance rates, and perhaps output lengths, that lie in an interval.

    Parameters
    ----------
    vary
        Function of a problem, a plan, acceptance rates and a factor of all output lengths; returns the problem so
        changed, and the plan with whatever it declares adapted. Where the kind has output lengths, the rates may be
        None: the problem's.
    shape
        Of the acceptance rates of a problem.
    zero, one
        Whether these acceptance rates are allowed.
    longest_output
        The longest output of a problem, in tokens; None: the kind has no output lengths.
    worst
        Function of a problem, a plan, the interval of rates and the factor; returns rates among which the worst lies,
        and whether that is certain. None: the objective rises with every rate, and the lower end is the worst.
    """

    vary: Callable[[Any, Any, Any, float], tuple[Problem, Plan]]
    shape: Callable[[Any], tuple[int, ...]]
    zero: bool = True
    one: bool = False
    longest_output: Callable[[Any], int] | None = None
    worst: Callable[[Any, Any, Interval, float], tuple[list[Any], bool]] | None = None
