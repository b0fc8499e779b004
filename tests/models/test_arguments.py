"""The checks of single arguments, and everything public that uses them: wrong values are refused,
never an accident.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from helpers.simulations import SHORT

from specopt.api.generate import FAMILIES
from specopt.api.simulate import SIMULATORS, simulate
from specopt.instances.prompt_chunking.workload import FIGURE_1, paper_4_workload
from specopt.instances.verification_batch.workload import mixed_classes
from specopt.kinds import KINDS
from specopt.models import arguments
from specopt.models.acceptance_process import AcceptanceProcess
from specopt.models.errors import InvalidInput, SpecoptError
from specopt.models.fair_goodput.workload import GoodputWorkload
from specopt.models.prompt_chunking.workload import Rounds
from specopt.online import GoodputScheduler, PromptMonitor, VerificationScheduler
from specopt.online.goodput import COLUMNS
from specopt.solvers.verification_batch.policies import Policy
from specopt.solvers.verification_batch.simulate import capacity, run_once

# where a value of ours is expected, such as a benchmark or a runtime, the type checker stands guard
WRONG = (
    True,
    False,
    2.5,
    "many",
    None,
    math.nan,
    math.inf,
    -1,
    -0.5,
    10**30,
    1e300,
    np.bool_(True),
    [1],
    object(),
)


@pytest.mark.parametrize(
    ("check", "good", "bad"),
    [
        (
            lambda v: arguments.integer("n", v, 1, 9),
            (1, 9, np.int32(4)),
            (0, 10, 1.0, True, None, "1", math.nan),
        ),
        (lambda v: arguments.integer("n", v, 1), (1, 10**30), (0, np.float64(2), np.bool_(True))),
        (
            lambda v: arguments.number("n", v, 0, 1),
            (0, 1, 0.5, np.float32(0.5)),
            (-1, 2, math.nan, True, None, "0"),
        ),
        (lambda v: arguments.number("n", v, above=0, below=1), (0.5,), (0, 1, math.inf, -math.inf)),
        (
            lambda v: arguments.number("n", v),
            (-5, 1e300),
            (10**400, math.inf, math.nan, np.bool_(False)),
        ),
        (lambda v: arguments.positive("n", v), (1, 0.1), (0, -1, math.inf)),
        (
            lambda v: arguments.sequence("n", v, 2),
            ((0, 1), np.array([0, 1]), ([1], [])),
            ((1,), "ab", 1, {1: 2}),
        ),
        (
            lambda v: arguments.one_of("n", v, ("a", 1)),
            ("a", 1),
            ("b", True, None, 1.0, [], math.nan),
        ),
        (lambda v: arguments.boolean("n", v), (True, np.bool_(False)), (0, 1, None, "true")),
        (lambda v: arguments.random_generator(v), (0, np.int64(3)), (-1, True, None, 1.5)),
    ],
)
def test_checks(check: Callable[[Any], Any], good: tuple[Any, ...], bad: tuple[Any, ...]) -> None:
    """Tests that good values come back as plain ones, and bad ones are refused with what was
    expected and what came.
    """
    for value in good:
        assert not isinstance(check(value), np.generic)
    for value in bad:
        with pytest.raises(InvalidInput, match=r"(n|seed)(\[\d\])?: expected .*, got "):
            check(value)


def test_messages() -> None:
    """Tests that ranges are written with their ends."""
    for check, words in (
        (lambda: arguments.integer("n", 0, 1, 9), "n: expected an integer from 1 to 9, got 0"),
        (lambda: arguments.number("n", 2, 0, below=1), "n: expected a number in [0, 1), got 2"),
        (lambda: arguments.number("n", -1, 0), "n: expected a finite number >= 0, got -1"),
        (lambda: arguments.number("n", 7, high=5), "n: expected a finite number <= 5, got 7"),
    ):
        with pytest.raises(InvalidInput) as caught:
            check()
        assert str(caught.value) == words


def keywords(function: Callable[..., Any]) -> set[str]:
    """The parameters of a function that have a default."""
    known = inspect.signature(function).parameters.values()
    return {one.name for one in known if one.default is not one.empty}


Call = tuple[Callable[..., Any], list[str]]


def call(function: Callable[..., Any], *given: Any, but: str = "", **good: Any) -> Call:
    """Return a function with good arguments, and the names of those and of its keywords."""
    return partial(function, *given, **good), [*(good.keys() | keywords(function)) - {but}]


WORLD = mixed_classes()
TIMES: dict[str, Any] = {"seconds": 1.0, "warm_up_seconds": 0.0}
CALLS: dict[str, Call] = {
    **{name: call(family.build) for name, family in FAMILIES.items()},
    **{
        f"workload {family.name}": call(family.build)
        for kind in KINDS
        if kind.simulator
        for family in kind.simulator.workloads
    },
    **{
        f"simulate {kind}": (
            partial(simulate, one.workloads[0].build(), one.policies[0], **SHORT[kind]),
            [*(name for name in one.options if name != "optimum"), "seed", "replications"],
        )
        for kind, one in SIMULATORS.items()
        if one.policies
    },
    "paper_4_workload": call(paper_4_workload),
    "Rounds.threshold": call(Rounds.threshold, mean_gained=1.5),
    "AcceptanceProcess.drifting": call(
        AcceptanceProcess.drifting, low=[0.1], high=[0.5], period_rounds=4
    ),
    "AcceptanceProcess.switching": call(
        AcceptanceProcess.switching, regimes=[[0.1], [0.5]], mean_rounds=4
    ),
    "GoodputWorkload": call(GoodputWorkload, process=[0.5, 0.6], budget_tokens=3),
    "verification Policy": call(Policy),
    "verification run_once": call(run_once, WORLD, devices=2, **TIMES),
    "capacity": call(capacity, WORLD, but="callback", seeds=[0], most=2, **TIMES),
    "VerificationScheduler": call(VerificationScheduler, WORLD.estimator),
    "GoodputScheduler": call(GoodputScheduler, clients=3, budget_tokens=4),
    "GoodputScheduler's columns": (
        partial(GoodputScheduler, clients=3, budget_tokens=4),
        list(COLUMNS),
    ),
    "PromptMonitor": call(PromptMonitor, FIGURE_1, but="cloud_delay"),
}


@pytest.mark.parametrize("name", CALLS)
def test_wrong_values_are_refused_or_accepted(name: str) -> None:
    """Tests that every keyword of everything public takes a wrong value or refuses it as
    InvalidInput, nothing else.
    """
    call, names = CALLS[name]
    assert names
    for keyword in names:
        for value in WRONG:
            try:
                call(**{keyword: value})
            except SpecoptError as error:
                assert isinstance(error, InvalidInput), (keyword, value, error)
            except Exception as error:
                raise AssertionError(f"{name}({keyword}={value!r}): {error!r}") from error
