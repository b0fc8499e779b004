"""Functions shared by the commands. They declare options, determine exit codes, and read and write
files.
"""

from __future__ import annotations

import contextlib
import inspect
import os
import sys
from collections.abc import Callable
from dataclasses import MISSING, Field, field, fields, is_dataclass
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, get_args, get_type_hints

import typer

from specopt.api.generate import with_runtimes
from specopt.console.interrupts import INTERRUPTED as INTERRUPTED
from specopt.console.stdout import stdout
from specopt.console.streams import say
from specopt.instances.checkpoints.model_config import read_model_config
from specopt.kinds.chart import FORMS
from specopt.models.decoder import Decoder
from specopt.models.errors import InternalError, InvalidInput, NotWritten
from specopt.models.fields import is_unicode
from specopt.models.files import (
    is_replaced,
    is_stdout,
    json_text,
    load,
    read_json,
    save,
    write_text,
)
from specopt.models.problem import Problem
from specopt.models.result import Result

if TYPE_CHECKING:
    from rich.console import Console

T = TypeVar("T")

FOUND, NOT_FOUND, BAD_INPUT, INTERNAL, UNWRITTEN = 0, 1, 2, 70, 74
ERROR_CODES = {InternalError: INTERNAL, NotWritten: UNWRITTEN}
"""Exit code of each class of expected errors; that of every other class is `BAD_INPUT`."""
UNREAD = 141
"""Exit code that is used if the reader of stdout closes the pipe, as `head` does.

Shells report the same code for a program that is ended by SIGPIPE.
"""


def number(text: str | float) -> float:  # typer also parses the default
    """Parse the value of an option as a number."""
    try:
        return float(text)
    except ValueError:
        raise typer.BadParameter(f"expected a number, got {text!r}") from None


def count(text: str | int) -> int:
    """Parse the value of an option as a nonnegative integer."""
    if not str(text).isdecimal():
        raise typer.BadParameter(f"expected an integer >= 0, got {text!r}")
    return int(text)


def interval(option: str, text: str | None) -> tuple[float, float] | None:
    """Parse the value of an option as an interval, written as LOW:HIGH or as a single number.

    The result is None if the option was not specified.
    """
    if text is None:
        return None
    low, colon, high = text.partition(":")
    try:
        return float(low), float(high if colon else low)
    except ValueError:
        raise InvalidInput(f"{option}: expected LOW:HIGH, got {text!r}") from None


def option_info(metavar: str | None, text: str, *names: str, **more: Any) -> Any:
    """Return the Typer metadata for an option.

    If no names are specified, Typer derives the name of the option from the parameter.
    """
    return typer.Option(*names, metavar=metavar, help=text, **more)


def option(metavar: str | None, text: str, *names: str, default: Any = None, **more: Any) -> Any:
    """Return a default value that declares a parameter or a dataclass field as an option."""
    return field(default=default, metadata={"info": option_info(metavar, text, *names, **more)})


def required(metavar: str | None, text: str, *names: str) -> Any:
    """Return a default value that declares an option and marks it as required."""
    return option(metavar, text, *names, default=MISSING)


def flag(text: str) -> Any:
    """Return a default value that declares a flag, that is, an option without a value."""
    return option(None, text, default=False)


def argument(metavar: str, text: str, default: Any = MISSING) -> Any:
    """Return a default value that declares a positional argument."""
    return field(default=default, metadata={"info": typer.Argument(metavar=metavar, help=text)})


def declared(command: Callable[..., T]) -> Callable[..., T]:
    """Return a wrapper of a command with a signature that Typer understands.

    The command has parameters that are declared with `option`, `required`, `flag` or `argument`.
    Alternatively, it accepts one dataclass whose fields are declared in this way.
    """
    hints = get_type_hints(command, include_extras=True)
    given = {name: one.default for name, one in inspect.signature(command).parameters.items()}
    holder = next((hints[name] for name in given if is_dataclass(hints[name])), None)
    if holder is not None:
        hints = get_type_hints(holder, include_extras=True)
        given = {one.name: one for one in fields(holder)}
    parameters = []
    for name, default in given.items():
        hint = hints[name]
        if isinstance(default, Field):
            if info := default.metadata.get("info"):
                info.parser = None if getattr(info, "min", None) is not None else _parser(hint)
                if hint is bool and info.default is ...:  # otherwise, typer adds a negative option
                    info.default = f"--{name.replace('_', '-')}"
                hint = Annotated[hint, info]
            default = inspect.Parameter.empty if default.default is MISSING else default.default
        parameters.append(
            inspect.Parameter(
                name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=hint
            )
        )

    @wraps(command)
    def called(**values: Any) -> T:
        return command(**values) if holder is None else command(holder(**values))

    called.__annotations__ = {one.name: one.annotation for one in parameters}
    called.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return called


def _parser(hint: Any) -> Callable[[str], Any] | None:
    """Return the function that parses option values of a numeric type.

    The result is None if the type is not numeric.
    """
    found = (
        _PARSERS.get(part) if not get_args(part) else _parser(part)
        for part in get_args(hint) or (hint,)
    )
    return next(filter(None, found), None)


_PARSERS = {int: count, float: number}


def filled(call: Callable[..., T], options: Any, **others: Any) -> T:
    """Call a function or class with the attributes of `options` that match its parameters.

    The keyword arguments in `others` are passed as well.
    """
    shared = {one.name for one in fields(options)} & set(
        inspect.signature(call).parameters
    ) - others.keys()
    return call(**{name: getattr(options, name) for name in shared}, **others)


File = Annotated[Path, typer.Argument(metavar="FILE", help="A problem file (JSON).")]
AsJson = Annotated[bool, option_info(None, "Print JSON on stdout.", "--json")]


def _alone_on_stdout(context: typer.Context, target: Path | None) -> Path | None:
    """Return a command's output file. If it is stdout, redirect all other output to stderr."""
    if target is not None and is_stdout(target):
        context.with_resource(contextlib.redirect_stdout(sys.stderr))
    return target


Output = Annotated[
    Path | None,
    option_info(
        None, "Write to this file, all or nothing.", "-o", "--output", callback=_alone_on_stdout
    ),
]
EngineVersion = Annotated[
    str | None,
    option_info(
        "V", "Version of the engine; required for tensorrt-llm, whose keys changed their meaning."
    ),
]
Seed = Annotated[int, option_info("N", "Seed of all random numbers.", parser=count)]
Seconds = Annotated[
    float | None,
    option_info("S", "Time limit in seconds.", parser=number, envvar="SPECOPT_TIME_LIMIT"),
]
Gap = Annotated[
    float,
    option_info("G", "Relative gap at which to stop.", parser=number, envvar="SPECOPT_GAP"),
]
Method = Annotated[
    str | None, option_info(None, "A method listed by `specopt methods`; default: the best one.")
]
MethodOptions = Annotated[list[str] | None, option_info("NAME=VALUE", "An option of the method.")]
Parameters = Annotated[list[str] | None, option_info("NAME=VALUE", "A parameter of the family.")]
Replacements = Annotated[
    list[str] | None,
    option_info(
        "FIELD=VALUE",
        "Replace a field of the problem (JSON; dots lead into nested fields).",
        "--set",
    ),
]
RuntimesFile = Annotated[
    Path | None,
    option_info(
        "FILE",
        'Runtimes as written by fit --draft --verify, or {"draft": runtime, "verify": runtime}.',
        "--runtimes",
    ),
]


def read_problem(path: Path) -> Problem:
    """Read a problem from a JSON file, or from standard input if the path is `-`."""
    return load(_from_stdin(path), Problem)  # type: ignore[type-abstract]


def read_result(path: Path) -> Result:
    """Read a result from a JSON file, or from standard input if the path is `-`."""
    return load(_from_stdin(path), Result)


def _from_stdin(path: Path) -> Path:
    return Path("/dev/stdin") if path == Path("-") else path


def measured(problem: Problem, runtimes: Path | None) -> Problem:
    """Return a copy of a problem with runtimes read from a file.

    If no file is specified, return the problem itself.
    """
    if runtimes is None:
        return problem
    return with_runtimes(problem, read_json(runtimes), str(runtimes))


def write(obj: Problem | Result, path: Path | None) -> None:
    """Write a problem or a result to a file. Do nothing if the path is None."""
    if path is not None:
        save(obj, path)


def problem_file(problem: Path | None, result: Path | None) -> str | None:
    """Return the path of the problem file relative to the folder of the result file.

    The result is None if one of the paths is not a regular file. It is also None if the relative
    path is not valid Unicode, because it cannot be written as JSON.
    """
    if problem is None or result is None or not (problem.is_file() and is_replaced(result)):
        return None
    path = os.path.relpath(problem.resolve(), result.resolve().parent)
    return path if is_unicode(path) else None


def hand_over(text: str, path: Path | None = None) -> None:
    """Print a string with a final newline, or write it to a file and report the file name."""
    text = text.removesuffix("\n") + "\n"
    if path is None:
        typer.echo(text, nl=False, file=stdout())
    else:
        write_text(path, text)
        say_written(path)


def say_written(*paths: Path | None) -> None:
    """Report on stderr which files were written. Paths that are None are skipped."""
    for path in paths:
        if path is not None:
            say(f"written to {path}")


def exit_code(result: Result) -> int:
    """Return the exit code for a command that solved a problem and obtained the given result."""
    if result.termination == "interrupted":
        return INTERRUPTED
    return FOUND if result.plan is not None else NOT_FOUND


def check_target(target: Path | None, *sources: Path | None) -> None:
    """Raise an error if the output file cannot be written or is also an input file.

    Commands call this function before they do any work.
    """
    if target is not None and target.is_dir():
        raise InvalidInput(f"{target}: cannot be written (it is a directory)")
    if target is None or not is_replaced(target):
        return
    folder = Path(os.path.realpath(target)).parent
    if not folder.is_dir():
        raise InvalidInput(f"{target}: cannot be written (no such directory: {folder})")
    if not os.access(folder, os.W_OK):
        raise InvalidInput(f"{target}: cannot be written (no permission in {folder})")
    for source in sources if target.exists() else ():
        if source is not None and source.exists() and target.samefile(source):
            raise InvalidInput(f"{target}: would overwrite the input; choose another file")


def check_picture(target: Path | None) -> None:
    """Raise an error if the format of a picture file is unknown.

    Commands call this function before they do any work.
    """
    if target is not None and target.suffix[1:].lower() not in FORMS:
        raise InvalidInput(
            f"--picture: expected a file named .png, .pdf or .svg, got {str(target)!r}"
        )


def read_decoder(config: Path) -> Decoder:
    """Read a Hugging Face config.json, and return the exact cost model of that decoder."""
    found = read_model_config(config)
    if found.projected:
        raise InvalidInput(
            f"{config}: word_embed_proj_dim: operations cannot be counted for this model; fit"
            " against tokens"
        )
    return found.exact


def console() -> Console:
    """Return the console on which a command prints human-readable output."""
    from specopt.console import terminal  # deferred, because importing rich is slow

    return terminal.console()


def print_json(data: Any) -> None:
    """Print JSON-compatible data on stdout."""
    hand_over(json_text(data, indent=1))
