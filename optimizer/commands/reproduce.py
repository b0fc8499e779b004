"""`specopt reproduce`."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer

from specopt.commands.shared import FOUND, INTERRUPTED, AsJson, count, print_json
from specopt.console.streams import say

QUICK = " (quick versions: they show that everything runs, verdicts mean nothing)"


def reproduce(
    paper: Annotated[str | None, typer.Argument(metavar="[PAPER]", help="paper-1 to paper-5.")] = None,
    figure: Annotated[
        str | None, typer.Argument(metavar="[FIGURE]", help="A figure or table, or the beginning of its name.")
    ] = None,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="FOLDER", help="Default: build/reproductions/PAPER.")
    ] = None,
    seeds: Annotated[int | None, typer.Option(metavar="N", parser=count, help="Draws to average; default: 5.")] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Small versions, to see that everything runs.")] = False,
    list_: Annotated[bool, typer.Option("--list", help="List papers, figures and tables.")] = False,
    as_json: AsJson = False,
) -> int:
    """Compute the papers' figures and tables again.

    Data, a picture, and what became of each; without arguments the list of them.
    """
    from specopt.console.progress import end_progress, print_step
    from specopt.models.errors import MissingDependency
    from specopt.reproductions.artefact import Artefact
    from specopt.reproductions.registry import PAPERS
    from specopt.reproductions.registry import paper as paper_of
    from specopt.reproductions.report import print_artefact, print_papers, print_verdicts
    from specopt.reproductions.writing import make_folder, write_artefact, write_page
    from specopt.views.terminal import console

    papers = list(PAPERS.values()) if paper is None else [paper_of(paper)]
    if paper is None or list_:
        if as_json:
            print_json({one.name: list(one.figures()) for one in papers})
        else:
            print_papers(papers, console())
        return FOUND
    chosen = papers[0]
    chosen.check(figure, seeds)
    folder = output or Path("build") / "reproductions" / chosen.name
    make_folder(folder)
    page = folder / f"{chosen.name if figure is None else f'{chosen.name}-{figure}'}.md"
    start, out, done, code = time.monotonic(), console(), list[Artefact](), FOUND
    pictures = True
    if quick:
        say("quick versions: they show that everything runs; their verdicts mean nothing")
    try:
        found = chosen.reproduce(
            figure, seeds=seeds, quick=quick, say=lambda text: print_step(time.monotonic() - start, text)
        )
        for one in found:
            end_progress()
            try:
                write_artefact(one, folder)
            except MissingDependency as error:
                if pictures:
                    say(f"no pictures: {error}")
                pictures = False
            done.append(one)
            title = f"{chosen.name}: {chosen.title}{QUICK if quick else ''}"
            write_page(title, done, page)  # what is finished outlives what is not
            if not as_json:
                print_artefact(one, out)
    except KeyboardInterrupt:
        code = INTERRUPTED
    end_progress()
    if as_json:
        print_json([one.to_dict() for one in done])
    elif done:
        print_verdicts(done, out)
    if done:
        drawn = any(one.draw is not None for one in done) and pictures
        say(f"written to {folder}: {page.name}, {page.with_suffix('.json').name}, data{' and pictures' * drawn}")
    return code
