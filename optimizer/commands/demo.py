"""The command `specopt demo`, which solves the setting of paper 1, compares the result with
baselines, and draws the pipeline.
"""

from __future__ import annotations

import dataclasses
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from specopt.api.generate import generate
from specopt.api.solve import methods, solve
from specopt.commands.shared import Seconds, check_picture, console, exit_code, option
from specopt.console.streams import write_error
from specopt.models.errors import MissingDependency
from specopt.models.files import unwritten
from specopt.models.judge import verify
from specopt.models.result import Result
from specopt.models.serving_latency.problem import ServingLatencyPlan, ServingLatencyProblem

if TYPE_CHECKING:
    from rich.console import Console

    from specopt.views.result import Entry

SEED = 1
GANTT_WIDTH = 96


def demo(
    picture: Path = option(None, "File for the picture.", default=Path("build/pipeline.png")),
    tasks: int = option("K", "Number of tasks.", default=100),
    time_limit: Seconds = 60.0,
) -> int:
    """Solve the setting of paper 1 with every method."""
    from specopt.kinds.serving_latency.view import default_steps, text_gantt
    from specopt.views.result import print_result

    check_picture(picture)
    problem = generate("serving-latency/paper-1", tasks=tasks, seed=SEED)
    assert isinstance(problem, ServingLatencyProblem)
    out = console()
    out.print(
        f"Paper 1, Tables I and II: {tasks} tasks share one uplink; an edge server drafts with"
        " LLaMA-1.1B, the base station verifies with LLaMA-7B. Which batches, in which order, how"
        " many draft tokens?\n"
    )
    best = solve(problem, time_limit=time_limit, verbose=True)
    print_result(problem, best, out)
    if best.plan is None:
        return exit_code(best)
    _compare(problem, best, out)
    assert isinstance(best.plan, ServingLatencyPlan)
    for step in default_steps(problem, best.plan)[::-1]:
        out.print(
            "\n" + text_gantt(problem, best.plan, step, min(GANTT_WIDTH, out.width)), soft_wrap=True
        )
    out.print()
    _draw(problem, best.plan, picture, out)
    return exit_code(best)


def comparison_rows(problem: ServingLatencyProblem, best: Result) -> list[Entry]:
    """Return table entries for the best result, all other methods, and the paper's baselines.

    The baselines serve the tasks either without pipelining or without a draft model.
    """
    from specopt.views.result import Entry

    rows = [Entry(best.method, best)]
    for method in methods(problem):
        if method.name != best.method:
            _say(f"solving by {method.name}")
            rows.append(Entry(method.name, _solve(problem, method.name)))
    sequential = dataclasses.replace(problem, mechanism="sequential")
    paper = next((row.result for row in rows if row.label == "algorithm-1"), best)
    rows.append(
        Entry("SD without pipeline, same batches", _judged_on(sequential, paper), certificate=False)
    )
    _say("solving without pipeline")
    rows.append(Entry("SD without pipeline, own batches", _solve(sequential, "exact")))
    autoregressive = dataclasses.replace(problem, mechanism="autoregressive")
    _say("solving without draft model")
    rows.append(Entry("autoregressive", _solve(autoregressive, "heuristic-batching")))
    rows.append(Entry("autoregressive, exact", _solve(autoregressive, "exact")))
    return rows


def _solve(problem: ServingLatencyProblem, method: str) -> Result:
    """Solve a problem. If Ctrl-C interrupts the solve, end the entire demo."""
    result = solve(problem, method)
    if result.termination == "interrupted":
        raise KeyboardInterrupt
    return result


def _judged_on(problem: ServingLatencyProblem, result: Result) -> Result:
    """Return a copy of a result in which the plan is evaluated on a different problem.

    The copy has no bound and no gap.
    """
    assert result.plan is not None
    report = verify(problem, result.plan)
    assert report.feasible, "the mechanism changes no constraint"
    return dataclasses.replace(
        result, objective=report.objective, terms=report.terms, bound=None, gap=None
    )


def _compare(problem: ServingLatencyProblem, best: Result, out: Console) -> None:
    from specopt.views.result import print_comparison

    rows = comparison_rows(problem, best)
    _say("")
    out.print(
        "\nEvery method on this problem, and other ways of serving the same tasks (objective in"
        " seconds; the gap is to a bound that the method proves itself):\n"
    )
    print_comparison(rows, out)
    autoregressive = rows[-1].result.objective
    if (
        autoregressive is not None
        and best.objective is not None
        and autoregressive < best.objective
    ):
        out.print(
            "\nNote: with the constants of Table II, autoregressive decoding with its own batches"
            " is faster than speculative decoding here, contrary to the paper. It is slower with"
            " small batches, or where the memory of the verify model is the limit."
        )


def _draw(
    problem: ServingLatencyProblem, plan: ServingLatencyPlan, picture: Path, out: Console
) -> None:
    from specopt.kinds.serving_latency.view import pipeline_figure

    try:
        picture.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise unwritten(picture, error) from None
    try:
        pipeline_figure(problem, plan).save(picture)
    except MissingDependency as error:
        out.print(f"No picture: {error}", soft_wrap=True)
    else:
        out.print(f"Picture of the pipeline: {picture}", soft_wrap=True)


def _say(text: str) -> None:
    """Show the current activity if stderr is a terminal. An empty string erases the line."""
    if sys.stderr.isatty():
        write_error(f"\r\x1b[2K{text}")
