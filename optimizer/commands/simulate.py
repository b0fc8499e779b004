"""`specopt simulate`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from specopt.commands.shared import AsJson, File, Seed, count, print_json, read_problem, read_result
from specopt.models.errors import InvalidInput, SpecoptError


def simulate(
    file: File,
    result: Annotated[Path, typer.Argument(metavar="RESULT", help="A result file (JSON) of this problem.")],
    replications: Annotated[
        int, typer.Option(metavar="R", parser=count, help="How often the plan is played, at least twice.")
    ] = 1000,
    drop_finished: Annotated[
        bool, typer.Option("--drop-finished", help="Serving latency: tasks that have finished leave at once.")
    ] = False,
    iterations: Annotated[
        int | None, typer.Option(metavar="I", parser=count, help="Draft control: iterations of a replication [1000].")
    ] = None,
    response_tokens: Annotated[
        int | None,
        typer.Option(metavar="N", parser=count, help="Draft control: also play responses of N tokens (Eq. 12)."),
    ] = None,
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Play a plan with random acceptances.

    The real latency of a serving-latency plan, or the tokens per second of a draft-control policy, beside the
    model's number; the other kinds are simulated from Python.
    """
    from specopt import simulate as simulate_plan
    from specopt.models.judge import verify
    from specopt.progress import patience
    from specopt.solvers.draft_control.simulate import PolicySimulation

    problem, claimed = read_problem(file), read_result(result)
    try:
        verify(problem, claimed)
    except SpecoptError as error:
        raise InvalidInput(f"{result}: {error}") from None
    options = {
        "drop_finished": drop_finished or None, "iterations": iterations, "response_tokens": response_tokens,
    }  # fmt: skip
    with patience():
        simulation = simulate_plan(
            problem, claimed, replications=replications, seed=seed, verbose=True,
            **{name: value for name, value in options.items() if value is not None},
        )  # fmt: skip
    if as_json:
        print_json(simulation.to_dict())
        return
    from specopt.views.terminal import console

    if isinstance(simulation, PolicySimulation):
        from specopt.views.draft_control import print_policy_simulation

        print_policy_simulation(problem, claimed, simulation, console())
    else:
        from specopt.views.what_if import print_simulation

        print_simulation(problem, claimed, simulation, console())
