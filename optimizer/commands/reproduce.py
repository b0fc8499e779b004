"""`specopt reproduce`."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from specopt.commands.options import argument, flag, from_fields, option
from specopt.commands.shared import FOUND, INTERRUPTED, AsJson, print_json
from specopt.console.progress import end_progress, print_step
from specopt.console.streams import say
from specopt.models.errors import InvalidInput, MissingDependency
from specopt.models.fields import describe
from specopt.models.files import json_text, write_text
from specopt.reproductions.experiment import Run, run
from specopt.reproductions.ledger import THEOREMS as CHECKED
from specopt.reproductions.ledger import TITLES, Paper, Statement, entries, entry
from specopt.reproductions.ledger import paper as paper_of

SAMPLES, SEEDS = 64, 5
QUICK_SAMPLES, QUICK_SEEDS = 4, 1
THEOREMS = "theorems"


@dataclass(frozen=True, kw_only=True)
class Reproduce:
    """What `reproduce` takes."""

    paper: str | None = argument("[PAPER]", "paper-1 to paper-5, or theorems.", default=None)
    item: str | None = argument("[ITEM]", "A statement, or the beginning of some, such as figure-7.", default=None)
    output: Path | None = option("FOLDER", "Default: build/reproductions/PAPER.", "-o", "--output")
    samples: int | None = option("N", "Points of the box of assumptions; default: 64.")
    seeds: int | None = option("N", "Draws to average; default: 5.")
    quick: bool = flag("Few points and draws, to see that everything runs.")
    list_: bool = flag("List the statements and what is recorded of them.", "--list")
    as_json: AsJson = False


@from_fields
def reproduce(given: Reproduce) -> int:
    """Recompute the papers' statements: printed values, ours, and the assumptions under which they hold.

    Without arguments, and with --list, it shows the last full run. Theorems are checked, or refuted by example.
    """
    from specopt.reproductions import views
    from specopt.views.terminal import console

    papers = [paper_of(name) for name in (TITLES if given.paper in (None, THEOREMS) else (given.paper,))]
    if given.paper is None or given.list_:
        listed = [each for each in entries(*papers) if given.item is None or _means(given.item, each["item"])]
        if given.as_json:
            print_json(listed)
        else:
            if given.paper is not None:
                if given.item is None and given.paper != THEOREMS:
                    console().print("\n".join(views.summary(papers[0], listed)), soft_wrap=True)
                views.print_entries(listed, console())
            views.print_counts(listed, console())
        return FOUND
    theorems, wanted = _wanted(papers, given)
    for name, least in (("samples", 2), ("seeds", 1)):
        value = getattr(given, name)
        if value is not None and value < least:
            raise InvalidInput(f"{name}: expected at least {least}, got {value}")
    return _run(papers[0], wanted, given, theorems)


def _run(paper: Paper, wanted: tuple[str, ...], given: Reproduce, theorems: list[tuple[Paper, Statement]]) -> int:
    """Check theorems and run experiments; what is finished is written at once, and outlives what is not."""
    from specopt.reproductions import views
    from specopt.reproductions.theorems import CHECKS
    from specopt.views.terminal import console

    found: list[dict[str, Any]] = []
    for of, said in theorems:
        found.append(entry(of, said, {}))
        if check := CHECKS.get((of.name, said.id), lambda: None)():
            found[-1]["verdict"] = f"assuming {check.assumptions}: {check.verdict}"
        if not given.as_json:
            views.print_entries(found[-1:], console())
    folder = given.output or Path("build") / "reproductions" / paper.name
    if wanted:
        views.make_folder(folder)
    start, out, code, pictures = time.monotonic(), console(), FOUND, True
    samples, seeds = (QUICK_SAMPLES, QUICK_SEEDS) if given.quick else (SAMPLES, SEEDS)
    runs: list[Run] = []
    title, target = f"{paper.name}: {paper.title}", folder / f"{'-'.join(filter(None, (paper.name, given.item)))}.md"
    if given.quick:
        say("quick: few points and draws; shares mean nothing")
        title += " (quick: shares mean nothing)"
    try:
        for name in dict.fromkeys(paper.statements[one].by for one in wanted):
            one = run(
                paper, name, samples=given.samples or samples, seeds=given.seeds or seeds,
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
                {"unit": "", "reason": "", **entry(paper, each.said, each.to_dict())}
                for each in one.findings
                if each.said.id in wanted
            ]
            found += these
            drawn = views.pictures_of(runs, folder)
            write_text(target, views.page(title, found, runs, drawn))
            data = {"title": title, "statements": found, "pictures": drawn}
            write_text(target.with_suffix(".json"), json_text(data, indent=1) + "\n")  # for `specopt report`
            if not given.as_json:
                views.print_entries(these, out)
    except KeyboardInterrupt:
        code = INTERRUPTED
    end_progress()
    if given.as_json:
        print_json(found)
    if runs:
        say(f"written to {folder}: {target.name}, {target.stem}.json, points and pictures")
    return code


def _means(wanted: str, item: str) -> bool:
    """Whether an item is meant by its beginning; a number is taken as a whole: figure-1 is not figure-11."""
    rest = item[len(wanted) :]
    return bool(wanted) and item.startswith(wanted) and not (wanted[-1].isdigit() and rest[:1].isdigit())


def _wanted(papers: list[Paper], given: Reproduce) -> tuple[list[tuple[Paper, Statement]], tuple[str, ...]]:
    """Return the theorems and the computed statements that are meant; refuse an item that means none."""
    every = given.paper == THEOREMS
    both = [(of, said) for of in papers for said in of.statements.values() if said.by or said.status in CHECKED]
    meant = [(of, said) for of, said in both if given.item is None or _means(given.item, said.id)]
    if not meant:
        heads = dict.fromkeys(said.id.partition(".")[0] for _, said in both)
        raise InvalidInput(f"item: expected one of {', '.join(heads)}, got {describe(given.item)}")
    theorems = [(of, said) for of, said in meant if said.test and (every or given.item is not None)]
    return theorems, () if every else tuple(said.id for _, said in meant if said.by)
