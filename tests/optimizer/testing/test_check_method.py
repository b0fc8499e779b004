"""The checks for methods of one's own: they pass what keeps its promises and name what does not."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import pytest

from specopt import InvalidInput, VerificationBatchProblem
from specopt.models.errors import InternalError
from specopt.solvers.budget import Budget
from specopt.solvers.method import Method, Outcome
from specopt.solvers.verification_batch.baselines import FirstComeFirstServed
from specopt.solvers.verification_batch.method import plan_of
from specopt.solvers.verification_batch.prepare import Prepared
from specopt.testing import NotConformant, check_method


@dataclass(frozen=True)
class Nothing(FirstComeFirstServed):
    """Takes no request, and offers no plan."""

    name: ClassVar[str] = "nothing"
    guarantee: ClassVar[str] = "none"

    def run(self, problem: VerificationBatchProblem, budget: Budget) -> Outcome:
        """Return the empty batch."""
        return Outcome(plan=plan_of([]))


@dataclass(frozen=True)
class Boasting(Nothing):
    """Calls the empty batch optimal."""

    exact: ClassVar[bool] = True

    def run(self, problem: VerificationBatchProblem, budget: Budget) -> Outcome:
        """Return a bound that is its plan's objective."""
        plan = plan_of([])
        return Outcome(plan=plan, bound=budget.offer(plan))


@dataclass(frozen=True)
class Fickle(Nothing):
    """Goes by how often it was called."""

    calls: ClassVar[Iterator[int]] = itertools.count()

    def run(self, problem: VerificationBatchProblem, budget: Budget) -> Outcome:
        """Take one request that fits alone."""
        items = Prepared(problem).items
        return Outcome(plan=plan_of([items[next(self.calls) % len(items)]]))


@dataclass(frozen=True)
class Mute(Nothing):
    """Does not say where it is from."""

    source: ClassVar[str] = ""


@pytest.mark.parametrize(
    ("method", "message"),
    [
        (Nothing(), "reports no progress: call budget.check"),
        (Boasting(), "has the bound 0.0, but threshold reaches"),
        (Fickle(), "gives two answers with the same seed"),
        (Mute(), "has no source; declare it"),
    ],
)
def test_broken_promises_are_named(method: Method, message: str) -> None:
    """Tests that each broken promise is an error that names it, the method and the problem."""
    with pytest.raises(NotConformant, match=message) as error:
        check_method(method)
    assert str(error.value).startswith(
        f"{method.name}{' on verification-batch/' if method.source else ''}"
    )


def test_a_method_that_keeps_its_promises_passes() -> None:
    """Tests that a method of specopt passes on instances of the library, and that no instance is no
    pass.
    """
    check_method(FirstComeFirstServed(skip=True))
    with pytest.raises(InvalidInput, match="problems: fcfs cannot solve any of the default"):
        check_method(FirstComeFirstServed(), [])


@dataclass(frozen=True)
class Short(FirstComeFirstServed):
    """Forgets what it may not take where there are many requests."""

    name: ClassVar[str] = "short"

    def run(self, problem: VerificationBatchProblem, budget: Budget) -> Outcome:
        """Take all requests of many."""
        many = problem.requests > 20
        return (
            Outcome(plan=plan_of(range(problem.requests))) if many else super().run(problem, budget)
        )


@dataclass(frozen=True)
class Sleepy(FirstComeFirstServed):
    """Sleeps through its limit where there are many requests."""

    name: ClassVar[str] = "sleepy"

    def run(self, problem: VerificationBatchProblem, budget: Budget) -> Outcome:
        """Sleep first."""
        time.sleep(1.5 if problem.requests > 20 else 0.0)
        return super().run(problem, budget)


def test_larger_problems_and_limits_are_met() -> None:
    """Tests that a method that fails on many requests alone is caught, and one that sleeps through
    its limit.
    """
    with pytest.raises(InternalError, match="short"):
        check_method(Short())
    with pytest.raises(
        NotConformant, match=r"sleepy on .*: takes 1\.\d+ s with a time limit of 1 s"
    ):
        check_method(Sleepy())
