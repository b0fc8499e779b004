"""The laboratory's commands: `PYTHONPATH=laboratory python -P -m testbed`."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from specopt.commands.shared import (
    BAD_INPUT,
    FOUND,
    AsJson,
    check_picture,
    check_target,
    print_json,
)
from specopt.console.streams import complain, say
from specopt.models.errors import InvalidInput, SpecoptError

app = typer.Typer(
    help="Play plans with real models over a shaped link, and compare with what was predicted.",
    rich_markup_mode=None,
    add_completion=False,
    pretty_exceptions_enable=False,
)


def run(arguments: Sequence[str]) -> int:
    """Run one command and return its exit code. An error is reported as one message on stderr."""
    try:
        app(list(arguments), prog_name="testbed")
    except SystemExit as ended:
        return int(ended.code or 0)
    except SpecoptError as error:
        complain(f"testbed: {error}")
        return BAD_INPUT
    return FOUND


@app.command()
def play(
    kind: Annotated[
        list[str],
        typer.Argument(metavar="KIND...", help="Kinds of problems whose plans are played."),
    ],
    pair: Annotated[
        str,
        typer.Option(metavar="tiny|real", help="Models: random ones, or SmolLM2 and its draft."),
    ] = "tiny",
    records: Annotated[
        Path, typer.Option(metavar="FOLDER", help="Where records are written.")
    ] = Path("."),
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="A setting of the experiment (JSON)."),
    ] = None,
) -> None:
    """Play plans, and record what was predicted and what they took.

    A record that was begun on the same day with the same settings goes on where it ended.
    """
    from specopt.api.arguments import pairs_of
    from testbed.campaign import run
    from testbed.experiments import experiment, settings_of

    if not records.is_dir():
        raise InvalidInput(f"{records}: expected a folder")
    values = {}
    for name, text in pairs_of(settings or (), "--set").items():
        try:
            values[name] = json.loads(text)
        except ValueError:
            raise InvalidInput(f"--set {name}: expected JSON, got {text!r}") from None
    chosen = [(experiment(name), settings_of(name, pair, values)) for name in kind]
    for found, given in chosen:
        say(f"written to {run(found, pair, given, records, tell=say)}")


@app.command()
def compare(
    record: Annotated[
        list[Path], typer.Argument(metavar="RECORD...", help="Records of plays (JSON).")
    ],
    picture: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Draw predicted against measured (png, pdf or svg)."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Compare predictions with what plans took, from the raw numbers of records."""
    from testbed.records import read_record

    check_picture(picture)
    for path in record:
        check_target(picture, path)
    found = [read_record(path) for path in record]
    from testbed.views.comparison import comparison_of, draw_comparison, print_comparison

    if as_json:
        print_json([comparison_of(one) for one in found])
    else:
        from specopt.console.terminal import console

        for one in found:
            print_comparison(one, console())
    if picture is not None:
        draw_comparison(found).save(picture)
        say(f"written to {picture}")


@app.command()
def study(
    logs: Annotated[
        Path,
        typer.Argument(
            metavar="LOGS", help="Recorded drafts: a parquet file, or a folder of them."
        ),
    ],
    record: Annotated[
        Path,
        typer.Argument(metavar="RECORD", help="A record of serving latency: what passes take."),
    ],
    as_json: AsJson = False,
) -> None:
    """Report what recorded drafts make of the models' assumptions.

    Run lengths against the geometric law, acceptance by kind of task, rejection predictors and
    stopping on unseen prompts, and what quantising costs.
    """
    from testbed.recorded import read_recorded
    from testbed.records import read_record
    from testbed.studies.costs import round_costs
    from testbed.views.studies import print_studies, studies_of

    found = studies_of(read_recorded(logs), round_costs(read_record(record)))
    if as_json:
        print_json(found)
    else:
        from specopt.console.terminal import console

        print_studies(found, console())


@app.command()
def page(
    record: Annotated[
        list[Path], typer.Argument(metavar="RECORD...", help="Records of plays (JSON).")
    ],
    output: Annotated[
        Path,
        typer.Option("-o", "--output", metavar="PAGE", help="Write the page to this file (HTML)."),
    ],
) -> None:
    """Make one page of records: charts, tables, and how good predictions were, in words."""
    from specopt.kinds.chart import MISSING
    from specopt.models.files import write_text
    from specopt.report.page import can_draw, to_html
    from testbed.records import read_record
    from testbed.views.page import page_of

    for path in record:
        check_target(output, path)
    found, names = [read_record(path) for path in record], tuple(map(str, record))
    try:
        made = page_of(found, names)
    except Exception as error:  # our own records are not checked field by field
        why = error if isinstance(error, InvalidInput) else f"{type(error).__name__}: {error}"
        raise InvalidInput(
            f"{', '.join(names)}: expected laboratory records that are whole: {why}"
        ) from None
    write_text(output, to_html(made))
    if not can_draw():
        say(f"no charts, their tables instead: {MISSING}")
    say(f"written to {output}")


if __name__ == "__main__":
    sys.exit(run(sys.argv[1:]))
