"""The `specopt` command. Commands import what they need when they run, so that `specopt --help` answers at once."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from specopt.models.errors import InvalidInput, SpecoptError

if TYPE_CHECKING:
    from specopt.models.problem import Problem
    from specopt.models.result import Result

FOUND, NOT_FOUND, BAD_INPUT, INTERRUPTED = 0, 1, 2, 130

app = typer.Typer(
    name="specopt",
    help="Plan speculative decoding across edge and cloud, with proof of how good the plan is.",
    epilog="Exit codes: 0 a plan was found, 1 infeasible or none found, 2 bad input or usage, 130 interrupted.",
    add_completion=False,
    rich_markup_mode=None,  # plain help: importing rich would double the time of `specopt --help`
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

File = Annotated[Path, typer.Argument(metavar="FILE", help="A problem file (JSON).")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON on stdout.")]
Output = Annotated[Path | None, typer.Option("-o", "--output", help="Write to this file, all or nothing.")]


def main() -> None:
    """Run the command line and exit."""
    sys.exit(run(sys.argv[1:]))


def run(arguments: Sequence[str]) -> int:
    """Run one command and return its exit code; every failure is one message on stderr."""
    try:
        code = app(list(arguments), prog_name="specopt", standalone_mode=False)
        sys.stdout.flush()  # a full disk or a closed pipe must show here, not after the exit code is chosen
    except (KeyboardInterrupt, typer.Abort):
        code = INTERRUPTED
    except SystemExit:  # typer's answer to a closed pipe
        _discard_stdout()
        return _fail("cannot write the output (Broken pipe)", BAD_INPUT)
    except SpecoptError as error:
        return _fail(str(error), BAD_INPUT)
    except OSError as error:
        _discard_stdout()
        return _fail(f"cannot write the output ({error.strerror or error})", BAD_INPUT)
    except Exception as error:
        explain = getattr(error, "format_message", None)  # bad usage, as typer reports it
        if explain is None:
            raise
        return _fail(f"{' '.join(explain().split()).rstrip('.')}; see specopt --help", BAD_INPUT)
    if code == INTERRUPTED:
        return _fail("interrupted", INTERRUPTED)
    return code if isinstance(code, int) else FOUND


def _number(text: str | float) -> float:  # typer parses the default, too
    try:
        return float(text)
    except ValueError:
        raise typer.BadParameter(f"expected a number, got {text!r}") from None


def _count(text: str | int) -> int:
    if not str(text).isdecimal():
        raise typer.BadParameter(f"expected an integer >= 0, got {text!r}")
    return int(text)


Seed = Annotated[int, typer.Option(metavar="N", parser=_count, help="Seed of everything random.")]
Seconds = Annotated[float | None, typer.Option(metavar="S", parser=_number, help="Seconds for everything.")]


@app.callback(invoke_without_command=True)
def root(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version and exit.")] = False,
) -> None:
    """Show help or version when no command is given."""
    if version:
        from specopt import __version__

        typer.echo(f"specopt {__version__}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


@app.command()
def solve(
    file: File,
    method: Annotated[str | None, typer.Option(help="A method of `specopt methods`; default: the best one.")] = None,
    option: Annotated[list[str] | None, typer.Option(metavar="NAME=VALUE", help="An option of the method.")] = None,
    time_limit: Seconds = None,
    gap: Annotated[float, typer.Option(metavar="G", parser=_number, help="Relative gap at which to stop.")] = 0.0,
    seed: Seed = 0,
    warm_start: Annotated[Path | None, typer.Option(metavar="RESULT", help="Start from this result.")] = None,
    as_json: AsJson = False,
    output: Output = None,
) -> int:
    """Solve a problem and show or save the result."""
    from specopt import solve as solve_problem
    from specopt.arguments import method_of
    from specopt.progress import patience

    _check_target(output, file)
    problem = _problem(file)
    earlier = None if warm_start is None else _result(warm_start)
    chosen = method_of(problem, method, option or ())
    with patience():
        result = solve_problem(
            problem, chosen, time_limit=time_limit, gap=gap, seed=seed, warm_start=earlier, verbose=True
        )
    _write(result, output)
    if as_json:
        _print_json(result.to_dict())
    else:
        from specopt.report import console, print_result

        print_result(problem, result, console())
        if output is not None:
            typer.echo(f"written to {output}", err=True)
    if result.termination == "interrupted":
        return INTERRUPTED
    return FOUND if result.plan is not None else NOT_FOUND


@app.command()
def evaluate(
    file: File,
    result: Annotated[Path, typer.Argument(metavar="RESULT", help="A result file (JSON).")],
    as_json: AsJson = False,
) -> int:
    """Judge a plan from the problem's data alone. Exit 0: feasible, 1: violated, 2: not this problem's result."""
    from specopt.solve import verify

    problem, claimed = _problem(file), _result(result)
    try:
        report = verify(problem, claimed)
    except SpecoptError as error:
        raise InvalidInput(f"{result}: {error}") from None
    if as_json:
        fields = ("objective", "terms", "violations", "feasible", "matches")
        _print_json({"claimed": claimed.objective, **{name: getattr(report, name) for name in fields}})
    else:
        from specopt.report import console, print_report

        print_report(problem, claimed, report, console())
    return FOUND if report.feasible else NOT_FOUND


@app.command()
def simulate(
    file: File,
    result: Annotated[Path, typer.Argument(metavar="RESULT", help="A result file (JSON) of this problem.")],
    replications: Annotated[
        int, typer.Option(metavar="R", parser=_count, help="How often the plan is played, at least twice.")
    ] = 1000,
    drop_finished: Annotated[
        bool, typer.Option("--drop-finished", help="Tasks that have finished leave their batch at once.")
    ] = False,
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Play a plan with random acceptances: the distribution of the real latency beside the model's number."""
    from specopt import simulate as simulate_plan
    from specopt.progress import patience
    from specopt.solve import verify

    problem, claimed = _problem(file), _result(result)
    try:
        verify(problem, claimed)
    except SpecoptError as error:
        raise InvalidInput(f"{result}: {error}") from None
    with patience():
        simulation = simulate_plan(
            problem, claimed, replications=replications, seed=seed, drop_finished=drop_finished, verbose=True
        )
    if as_json:
        _print_json(simulation.to_dict())
    else:
        from specopt.report import console
        from specopt.what_if import print_simulation

        print_simulation(problem, claimed, simulation, console())


@app.command()
def sensitivity(
    file: File,
    method: Annotated[str | None, typer.Option(help="A method of `specopt methods`; default: the best one.")] = None,
    option: Annotated[list[str] | None, typer.Option(metavar="NAME=VALUE", help="An option of the method.")] = None,
    time_limit: Seconds = None,
    gap: Annotated[float, typer.Option(metavar="G", parser=_number, help="Relative gap at which to stop.")] = 0.0,
    seed: Seed = 0,
    as_json: AsJson = False,
) -> int:
    """Show what one more unit of each resource is worth: the problem is solved again with it."""
    from specopt import sensitivity as differences
    from specopt.arguments import method_of
    from specopt.progress import patience

    problem = _problem(file)
    chosen = method_of(problem, method, option or ())
    with patience():
        found = differences(problem, chosen, time_limit=time_limit, gap=gap, seed=seed, verbose=True)
    if as_json:
        _print_json(found.to_dict())
    else:
        from specopt.report import console
        from specopt.what_if import print_sensitivity

        print_sensitivity(problem, found, console())
    if found.interrupted:
        return INTERRUPTED
    return FOUND if found.base.plan is not None else NOT_FOUND


@app.command()
def methods(
    kind: Annotated[str | None, typer.Argument(metavar="[KIND]", help="Only this kind of problem.")] = None,
    as_json: AsJson = False,
) -> None:
    """List the methods: what they solve, promise and cost."""
    from specopt.models.kinds import problem_type
    from specopt.report import console, method_entry, print_methods
    from specopt.solve import methods as methods_of

    found = methods_of(None if kind is None else problem_type(kind))
    entries = [method_entry(method) for method in found]
    if as_json:
        _print_json(entries)
    else:
        print_methods(entries, console())


@app.command()
def generate(
    family: Annotated[str, typer.Argument(metavar="KIND/FAMILY", help="A named family of problems.")],
    param: Annotated[list[str] | None, typer.Option(metavar="NAME=VALUE", help="A parameter of the family.")] = None,
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="FIELD=VALUE", help="Replace a problem field (JSON; dots lead inside)."),
    ] = None,
    seed: Seed = 0,
    output: Output = None,
) -> None:
    """Make a problem from a named family."""
    from specopt.arguments import parameters_of, with_fields
    from specopt.instances import generate as generate_problem
    from specopt.models.files import to_json

    _check_target(output)
    parameters = parameters_of(family, param or ())
    problem = with_fields(generate_problem(family, seed=seed, **parameters), set_ or ())
    if output is None:
        typer.echo(to_json(problem.to_dict()))
    else:
        _write(problem, output)
        typer.echo(f"written to {output}", err=True)


@app.command()
def schema(kind: Annotated[str, typer.Argument(metavar="KIND", help="A kind of problem.")]) -> None:
    """Print the JSON Schema of a kind of problem."""
    from specopt.models.kinds import problem_type

    _print_json(problem_type(kind).json_schema())


@app.command()
def demo(
    picture: Annotated[Path, typer.Option(help="Where to write the picture.")] = Path("build/pipeline.png"),
    tasks: Annotated[int, typer.Option(metavar="K", parser=_count, help="Number of tasks.")] = 100,
    time_limit: Seconds = 60.0,
) -> int:
    """Solve the setting of paper 1 by every method."""
    from specopt.demo import run_demo

    return run_demo(picture, tasks, time_limit)


def _problem(path: Path) -> Problem:
    from specopt.models.files import load
    from specopt.models.problem import Problem

    loaded = load(path)
    if not isinstance(loaded, Problem):
        raise InvalidInput(f"{path}: expected a problem, got a result")
    return loaded


def _result(path: Path) -> Result:
    from specopt.models.files import load
    from specopt.models.result import Result

    loaded = load(path)
    if not isinstance(loaded, Result):
        raise InvalidInput(f"{path}: expected a result, got a problem")
    return loaded


def _write(obj: Problem | Result, path: Path | None) -> None:
    from specopt.models.files import save

    if path is not None:
        save(obj, path)


def _check_target(target: Path | None, source: Path | None = None) -> None:
    """Refuse a file that cannot be written before the work is done, not after."""
    if target is None:
        return
    if target.is_dir():
        raise InvalidInput(f"{target}: cannot be written (is a directory)")
    if not target.parent.is_dir():
        raise InvalidInput(f"{target}: cannot be written (no such directory: {target.parent})")
    if not os.access(target.parent, os.W_OK):
        raise InvalidInput(f"{target}: cannot be written (no permission in {target.parent})")
    if source is not None and target.exists() and source.exists() and target.samefile(source):
        raise InvalidInput(f"{target}: would overwrite the problem; choose another file")


def _print_json(data: Any) -> None:
    typer.echo(json.dumps(data, indent=1, allow_nan=False))


def _fail(message: str, code: int) -> int:
    from specopt.progress import end_progress

    end_progress()
    typer.echo(f"specopt: {message}", err=True)
    return code


def _discard_stdout() -> None:
    """Point stdout at nothing: what is still buffered cannot be written, and must not fail again at exit."""
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (OSError, ValueError):
        return
