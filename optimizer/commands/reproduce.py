"""`specopt reproduce`."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from specopt.commands.shared import FOUND, INTERRUPTED, AsJson, count, print_json
from specopt.console.streams import say

if TYPE_CHECKING:
    from specopt.reproductions.experiment import Run
    from specopt.reproductions.ledger import Paper

SAMPLES, SEEDS = 64, 5
QUICK_SAMPLES, QUICK_SEEDS = 4, 1
THEOREMS = "theorems"


def reproduce(
    paper: Annotated[str | None, typer.Argument(metavar="[PAPER]", help="paper-1 to paper-5, or theorems.")] = None,
    item: Annotated[
        str | None, typer.Argument(metavar="[ITEM]", help="A statement, or the beginning of some, such as figure-7.")
    ] = None,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="FOLDER", help="Default: build/reproductions/PAPER.")
    ] = None,
    samples: Annotated[
        int | None, typer.Option(metavar="N", parser=count, help="Points of the box of assumptions; default: 64.")
    ] = None,
    seeds: Annotated[int | None, typer.Option(metavar="N", parser=count, help="Draws to average; default: 5.")] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Few points and draws, to see that everything runs.")] = False,
    list_: Annotated[bool, typer.Option("--list", help="List the statements and what is recorded of them.")] = False,
    as_json: AsJson = False,
) -> int:
    """Compute what the papers state again: the printed values, ours, and under which assumptions they hold.

    Without arguments, and with --list, what the last full run recorded. Theorems are checked, or refuted by example.
    """
    from specopt.console.progress import end_progress, print_step
    from specopt.models.errors import InvalidInput, MissingDependency
    from specopt.models.files import json_text, write_text
    from specopt.reproductions import views
    from specopt.reproductions.experiment import run
    from specopt.reproductions.ledger import TITLES, entries, entry
    from specopt.reproductions.ledger import paper as paper_of
    from specopt.views.terminal import console

    if paper == THEOREMS:
        return _theorems(as_json)
    papers = [paper_of(name) for name in TITLES] if paper is None else [paper_of(paper)]
    if paper is None or list_:
        listed = [each for each in entries(*papers) if item is None or _means(item, each["item"])]
        if as_json:
            print_json(listed)
        else:
            if paper is not None:
                views.print_entries(listed, console())
            views.print_counts(papers, listed, console())
        return FOUND
    chosen = papers[0]
    wanted = _wanted(chosen, item)
    if samples is not None and samples < 2:
        raise InvalidInput(f"samples: expected at least 2, got {samples}")
    if seeds is not None and seeds < 1:
        raise InvalidInput(f"seeds: expected at least 1, got {seeds}")
    folder = output or Path("build") / "reproductions" / chosen.name
    views.make_folder(folder)
    start, out, code, pictures = time.monotonic(), console(), FOUND, True
    runs: list[Run] = []
    found: list[dict[str, Any]] = []
    target = folder / f"{chosen.name if item is None else f'{chosen.name}-{item}'}.md"
    if quick:
        say("quick: few points and draws; shares mean nothing")
    try:
        for name in dict.fromkeys(chosen.statements[one].by for one in wanted):
            one = run(
                chosen, name, samples=samples or (QUICK_SAMPLES if quick else SAMPLES),
                seeds=seeds or (QUICK_SEEDS if quick else SEEDS),
                say=lambda text: print_step(time.monotonic() - start, text),
            )  # fmt: skip
            end_progress()
            runs.append(one)
            try:
                views.write_run(one, folder, pictures=pictures)
            except MissingDependency as error:
                say(f"no pictures: {error}")
                pictures = False
            these = [
                {"unit": "", "reason": "", **entry(chosen, each.said, each.to_dict())}
                for each in one.findings
                if each.said.id in wanted
            ]
            found += these
            title = f"{chosen.name}: {chosen.title}{' (quick: shares mean nothing)' if quick else ''}"
            drawn = views.pictures_of(runs, folder)
            write_text(target, views.page(title, found, runs, drawn))  # what is finished outlives what is not
            data = {"title": title, "statements": found, "pictures": drawn}
            write_text(target.with_suffix(".json"), json_text(data, indent=1) + "\n")  # for `specopt report`
            if not as_json:
                views.print_entries(these, out)
    except KeyboardInterrupt:
        code = INTERRUPTED
    end_progress()
    if as_json:
        print_json(found)
    if found:
        say(f"written to {folder}: {target.name}, {target.stem}.json, points and pictures")
    return code


def _means(wanted: str, item: str) -> bool:
    """Whether an item is meant by its beginning; a number is taken as a whole: figure-1 is not figure-11."""
    rest = item[len(wanted) :]
    return bool(wanted) and item.startswith(wanted) and not (wanted[-1].isdigit() and rest[:1].isdigit())


def _wanted(paper: Paper, item: str | None) -> tuple[str, ...]:
    """Return the statements that an item means and that are computed; refuse one that means none."""
    from specopt.models.errors import InvalidInput
    from specopt.models.fields import describe

    computed = [said.id for said in paper.statements.values() if said.by]
    meant = tuple(one for one in computed if item is None or _means(item, one))
    if not meant:
        heads = dict.fromkeys(one.partition(".")[0] for one in computed)
        raise InvalidInput(f"item: expected one of {', '.join(heads)}, got {describe(item)}")
    return meant


def _theorems(as_json: bool) -> int:
    from specopt.reproductions.theorems import checked, theorems
    from specopt.views.terminal import console

    out, rows = console(), []
    for name, said in theorems():
        found = checked(name, said)
        rows.append(
            {
                "paper": name, "item": said.id, "place": said.place, "statement": said.statement,
                "assumptions": found.assumptions, "status": said.status, "verdict": found.verdict, "test": said.test,
            }
        )  # fmt: skip
        if not as_json:
            out.print(f"{name}, {said.place}: {said.statement}", soft_wrap=True)
            out.print(f"  assuming {found.assumptions}: {found.verdict}", soft_wrap=True)
            out.print(f"  {said.test}", soft_wrap=True)
    if as_json:
        print_json(rows)
    return FOUND
