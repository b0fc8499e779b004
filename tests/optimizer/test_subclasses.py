"""Subclasses of the problem class of a kind: a problem with its own judge is its own kind."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from specopt import InvalidInput, compare, formulation, generate, save, simulate, solve, verify
from specopt.models.problem import Evaluation
from specopt.models.serving_latency.problem import ServingLatencyPlan, ServingLatencyProblem

BASE = generate("serving-latency/paper-1", tasks=5, seed=1)


@dataclass(frozen=True, kw_only=True, eq=False)
class Slower(ServingLatencyProblem):
    """Every task takes longer."""

    def evaluate(self, plan: ServingLatencyPlan) -> Evaluation:
        """Return the objective of the base, and 20 s more."""
        return Evaluation(super().evaluate(plan).objective + 20.0)


@pytest.mark.parametrize(
    "call",
    [
        solve,
        lambda problem: compare(["auto"], [problem]),
        lambda problem: verify(problem, solve(BASE)),
        lambda problem: simulate(problem, solve(BASE).plan),
        formulation,
        lambda problem: save(problem, Path("slower.json")),
    ],
    ids=["solve", "compare", "verify", "simulate", "formulation", "save"],
)
def test_a_subclass_is_refused(
    call: Callable[[Any], object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tests that a problem of a subclass is refused with a pointer to own kinds, and that nothing
    is written.
    """
    monkeypatch.chdir(tmp_path)
    with pytest.raises(
        InvalidInput,
        match=(
            r"an instance of ServingLatencyProblem itself, got Slower;"
            r" .*own-method/README.md#your-own"
        ),
    ):
        call(Slower.from_dict(BASE.to_dict()))
    assert not list(tmp_path.iterdir())
