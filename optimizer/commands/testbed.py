"""`specopt testbed`: the laboratory."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from specopt.commands.shared import AsJson, check_picture, check_target, print_json
from specopt.console.streams import say
from specopt.models.errors import InvalidInput

testbed = typer.Typer(
    name="testbed",
    help="Play plans with real models over a shaped link, and compare with what was predicted.",
    rich_markup_mode=None,
    add_completion=False,
)


@testbed.command()
def play(
    kind: Annotated[list[str], typer.Argument(metavar="KIND...", help="Kinds of problems whose plans are played.")],
    pair: Annotated[str, typer.Option(metavar="tiny", help="Models: random ones.")] = "tiny",
    records: Annotated[Path, typer.Option(metavar="FOLDER", help="Where records are written.")] = Path("."),
    settings: Annotated[
        list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help="A setting of the experiment (JSON).")
    ] = None,
) -> None:
    """Play plans, and record what was predicted and what they took.

    A record that was begun on the same day with the same settings goes on where it ended.
    """
    from specopt.arguments import pairs_of
    from specopt.testbed.campaign import run
    from specopt.testbed.experiments import experiment, settings_of

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


@testbed.command()
def compare(
    record: Annotated[list[Path], typer.Argument(metavar="RECORD...", help="Records of plays (JSON).")],
    picture: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Draw predicted against measured (png, pdf or svg).")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Compare predictions with what plans took, from the raw numbers of records."""
    from specopt.testbed.records import read_record

    check_picture(picture)
    for path in record:
        check_target(picture, path)
    found = [read_record(path) for path in record]
    from specopt.views.canvas import save_figure
    from specopt.views.testbed import comparison_of, draw_comparison, print_comparison

    if as_json:
        print_json([comparison_of(one) for one in found])
    else:
        from specopt.views.terminal import console

        for one in found:
            print_comparison(one, console())
    if picture is not None:
        save_figure(draw_comparison(found), picture)
        say(f"written to {picture}")


@testbed.command()
def study(
    logs: Annotated[Path, typer.Argument(metavar="LOGS", help="Recorded drafts: a parquet file, or a folder of them.")],
    record: Annotated[Path, typer.Argument(metavar="RECORD", help="A record of serving latency: what passes take.")],
    as_json: AsJson = False,
) -> None:
    """Say what recorded drafts make of the models' assumptions.

    Run lengths against the geometric law, acceptance by kind of task, rejection predictors and stopping on unseen
    prompts, and what quantising costs.
    """
    from specopt.instances.drafts.recorded import read_recorded
    from specopt.testbed.records import read_record
    from specopt.testbed.studies.costs import round_costs
    from specopt.views.studies import print_studies, studies_of

    found = studies_of(read_recorded(logs), *round_costs(read_record(record)))
    if as_json:
        print_json(found)
    else:
        from specopt.views.terminal import console

        print_studies(found, console())
