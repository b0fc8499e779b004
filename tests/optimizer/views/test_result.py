"""Tables of several results, shown."""

from __future__ import annotations

from dataclasses import replace
from io import StringIO

import pytest
from rich.console import Console

import specopt
from specopt import Status
from specopt.api.robustness import robustness
from specopt.views.result import Entry, print_comparison
from specopt.views.what_if import print_robustness


def test_a_result_without_a_plan_has_dashes() -> None:
    """Tests that a comparison shows the columns of a plan, and dashes where there is no plan."""
    problem = specopt.generate("serving-latency/paper-1", tasks=3, max_output=20, seed=1)
    best = specopt.solve(problem)
    none = replace(best, plan=None, objective=None, gap=None, status=Status.NONE)
    out = StringIO()
    print_comparison([Entry("best", best), Entry("none", none)], Console(file=out, width=140))
    first, second = (line.split() for line in out.getvalue().splitlines()[-2:])
    assert best.objective is not None
    assert first[:3] == ["best", "optimal", f"{best.objective:.3f}"]
    assert "+0.0%" in first and "-" not in first
    assert second[:2] == ["none", none.status.value] and set(second[2:-1]) == {"-"}


@pytest.mark.parametrize("is_exact", [True, False])
def test_the_worst_case_says_whether_it_is_exact(is_exact: bool) -> None:
    """Tests that the worst case of a robustness report is called one of those tried if, and only
    if, it is not exact.
    """
    problem = specopt.generate("serving-latency/paper-1", tasks=3, max_output=20, seed=1)
    found = robustness(problem, specopt.solve(problem).plan, acceptance=(0.6, 0.9))
    out = StringIO()
    print_robustness(replace(found, worst_is_exact=is_exact), Console(file=out, width=140))
    (worst,) = (line for line in out.getvalue().splitlines() if "worst case" in line)
    assert worst.rstrip().endswith(", the worst of those tried") == (not is_exact)
