"""The `specopt` command line.

Commands import other modules only when they run, so that `specopt --help` responds immediately.
"""

from __future__ import annotations

import contextlib
import errno
import sys
import traceback
import warnings
from collections.abc import Iterator, Sequence
from importlib import import_module
from typing import Annotated, Any

import typer

from specopt.commands import export, generate, library
from specopt.commands.shared import (
    BAD_INPUT,
    ERROR_CODES,
    FOUND,
    INTERNAL,
    INTERRUPTED,
    UNREAD,
    UNWRITTEN,
    declared,
)
from specopt.console.interrupts import interruptible, leave
from specopt.console.progress import end_progress, showing_kernels
from specopt.console.stdout import answering, take_stdout
from specopt.console.streams import complain, discard, say, set_loudness
from specopt.models import files
from specopt.models.errors import (
    InvalidInput,
    RefutedProof,
    SpecoptError,
)
from specopt.models.fields import printable

app = typer.Typer(
    name="specopt",
    help="Plan speculative decoding across edge and cloud, with a proof of how good the plan is.",
    epilog=(
        "Exit codes: 0 a plan was found, 1 infeasible or none found, 2 bad input or usage, 70 an"
        " internal error, 74 the output cannot be written (disk full). 130 interrupted, 143"
        " terminated, 129 hung up: the best plan so far is written."
    ),
    rich_markup_mode=None,  # plain help: importing rich would double the startup time of --help
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


LOUDNESS = ("-v", "-vv", "--verbose", "-q", "--quiet")
"""Verbosity options, which every command accepts at any position on the command line."""


def main() -> None:
    """Run the command in `sys.argv`, and exit with its exit code."""
    take_stdout()
    files.stdout = sys.stdout.fileno()
    with interruptible():
        try:
            code = run(sys.argv[1:])
        except Exception:  # a defect; otherwise the exit code would be that of "no plan found"
            for text in traceback.format_exc().splitlines():
                complain(text)
            code = INTERNAL
    if code == INTERRUPTED:
        leave()  # sys.exit would wait for threads
    sys.exit(code)


def run(arguments: Sequence[str]) -> int:
    """Run one command, given its arguments, and return its exit code.

    Every expected failure is reported as a single message on stderr.
    """
    try:
        with showing_kernels(), _showing_refuted_proofs():
            code = app(_loudness_first(arguments), prog_name="specopt", standalone_mode=False)
        # a full disk or a closed pipe must be detected before the exit code is chosen
        sys.stdout.flush()
    except (KeyboardInterrupt, typer.Abort):
        code = INTERRUPTED
    except (
        SystemExit,
        BrokenPipeError,
    ) as ended:  # the reader closed the pipe; typer and rich turn this into a SystemExit
        if isinstance(ended, SystemExit) and not ended.code:  # shell completion
            return FOUND
        discard(sys.stdout)
        return UNREAD
    except SpecoptError as error:
        return _fail(str(error), ERROR_CODES.get(type(error), BAD_INPUT))
    except MemoryError:
        return _fail("not enough memory", BAD_INPUT)
    except OSError as error:
        discard(sys.stdout)
        if error.errno == errno.ENAMETOOLONG:
            name = printable(str(error.filename), 240)
            return _fail(f"{name}: this name is too long for a file", BAD_INPUT)
        return _fail(f"cannot write the output ({error.strerror or error})", UNWRITTEN)
    except Exception as error:
        explain = getattr(error, "format_message", None)  # usage errors of typer have this method
        if explain is None:
            raise
        context = getattr(error, "ctx", None)
        command = "specopt" if context is None else context.command_path
        return _fail(f"{' '.join(explain().split()).rstrip('.')}; see {command} --help", BAD_INPUT)
    if code == INTERRUPTED:
        return _fail("interrupted", INTERRUPTED)
    return code if isinstance(code, int) else FOUND


def _loudness_first(arguments: Sequence[str]) -> list[str]:
    """Return the arguments with all verbosity options moved in front of the command."""
    given = list(arguments)
    options = given[: given.index("--")] if "--" in given else given
    loud = [one for one in options if one in LOUDNESS]
    return [*loud, *(one for one in options if one not in LOUDNESS), *given[len(options) :]]


@app.callback(invoke_without_command=True)
def root(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version and exit.")] = False,
    verbose: Annotated[
        int,
        typer.Option(
            "-v",
            "--verbose",
            count=True,
            help="Report more: -v progress of the command, -vv also the methods' counters.",
        ),
    ] = 0,
    quiet: Annotated[
        bool, typer.Option("-q", "--quiet", help="Report only failures on stderr.")
    ] = False,
) -> None:
    """Show the help text if no command is given, or the version if it is requested."""
    if verbose and quiet:
        raise InvalidInput("--verbose and --quiet cannot be combined; use one of them")
    set_loudness(verbose, quiet)
    if version:
        from specopt import __version__

        typer.echo(f"specopt {__version__}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


@contextlib.contextmanager
def _showing_refuted_proofs() -> Iterator[None]:
    """Report each `RefutedProof` warning as one line on stderr.

    Other warnings are shown as usual.
    """
    with warnings.catch_warnings():
        shown = warnings.showwarning

        def show(message: Warning | str, category: type[Warning], *where: Any) -> None:
            if issubclass(category, RefutedProof):
                say(f"warning: {message}")
            else:
                shown(message, category, *where)

        warnings.simplefilter("always", RefutedProof)
        warnings.showwarning = show  # type: ignore[assignment]
        yield


def _fail(message: str, code: int) -> int:
    end_progress()
    complain(f"specopt: {message}")
    return code


COMMANDS = (
    "plan",
    "solve",
    "evaluate",
    "simulate",
    "sensitivity",
    "front",
    "methods",
    "generate",
    "import_",
    "compare",
    "report",
    "schema",
    "model",
    "measure",
    "fit",
    "fit_predictor",
    "tune",
    "validate",
    "warmup",
    "demo",
)
"""Commands in the order in which `specopt --help` lists them.

Each command is a function in a module of the same name. To obtain the name on the command line, a
trailing underscore is dropped, and all other underscores become hyphens.
"""

HELP = {"generate": generate.WithFamilies}
"""Custom command classes, by command name. They add text to the command's help."""

for command in COMMANDS:
    name = command.rstrip("_").replace("_", "-")
    app.command(name, cls=HELP.get(name))(
        getattr(import_module(f"specopt.commands.{command}"), command)
    )
GROUPS = (export.export, library.library)
for group in GROUPS:
    app.add_typer(group)
for part in (app, *GROUPS):
    for entry in part.registered_commands:
        assert entry.callback is not None
        entry.callback = answering()(declared(entry.callback))
