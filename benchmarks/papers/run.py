"""List the statements of the papers with their recorded results, or compute them again.

    python benchmarks/papers/run.py [PAPER [ITEM]] [--list] [--json] [-o FOLDER] [--samples N]
    [--record]

Without a paper, or with ``--list``, it prints the recorded results. With a paper it runs the
experiments of that paper and prints the printed values, ours, and the assumptions under which the
statements hold. With ``theorems`` it checks the theorems of the papers. ``--record`` saves the
results, by default of all papers; pages and README take their numbers from this record. A full run
takes about a quarter of an hour.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator, Sequence
from datetime import date
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).parents[1]))

from papers.experiment import Run, run
from papers.ledger import RECORD, TITLES, Paper, Statement, entries, entry, paper
from papers.theorems import CHECKS
from papers.views import print_counts, print_entry, summary, write_run
from specopt.models.files import json_text, write_text

SAMPLES, SEEDS = 64, 5
THEOREMS = "theorems"


def main(words: Sequence[str] | None = None) -> None:
    """List statements, or compute them."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n\n")[0])
    parser.add_argument("paper", nargs="?", choices=[*TITLES, THEOREMS])
    parser.add_argument(
        "item", nargs="?", help="statement, or the beginning of several, such as figure-7"
    )
    parser.add_argument(
        "--list", action="store_true", help="list the statements with their recorded results"
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        metavar="FOLDER",
        help="write points and pictures to FOLDER/PAPER",
    )
    parser.add_argument(
        "--samples", type=int, default=SAMPLES, metavar="N", help="number of sampled assumptions"
    )
    parser.add_argument("--record", action="store_true", help=f"save the results in {RECORD.name}")
    given = parser.parse_args(words)
    papers = [paper(given.paper)] if given.paper in TITLES else [*map(paper, TITLES)]
    if given.list or (given.paper is None and not given.record):
        show_list(papers, given)
        return
    found = []
    for one in computed(papers, given):
        found.append(one)
        if not given.json:
            print_entry(one)
    if not found:
        every = (said for of in papers for said in of.statements.values() if said.by or said.test)
        items = dict.fromkeys(said.id.partition(".")[0] for said in every)
        parser.error(f"item: expected one of {', '.join(items)}, got {given.item!r}")
    if given.json:
        print(json_text(found, indent=1))


def show_list(papers: Sequence[Paper], given: argparse.Namespace) -> None:
    """Print recorded results; without a paper only their counts."""
    listed = [one for one in entries(*papers) if means(given.item, one["item"])]
    if given.json:
        print(json_text(listed, indent=1))
        return
    if given.paper in TITLES and given.item is None:
        print("\n".join(summary(papers[0], listed)))
    if given.paper is not None:
        for one in listed:
            print_entry(one)
    print_counts(listed)


def computed(papers: Sequence[Paper], given: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Yield an entry for each requested statement as soon as its theorem is checked or its
    experiment has run.
    """
    meant = [
        (of, said) for of in papers for said in of.statements.values() if means(given.item, said.id)
    ]
    if given.item is not None or given.paper == THEOREMS:
        yield from (checked(of, said) for of, said in meant if said.test)
    if given.paper == THEOREMS:
        return
    for name, experiment in dict.fromkeys((of.name, said.by) for of, said in meant if said.by):
        of, began = paper(name), time.process_time()
        one = run(of, experiment, samples=given.samples, seeds=SEEDS)
        print(
            f"{name}, {experiment}: {time.process_time() - began:.0f} s of processor time",
            file=sys.stderr,
        )
        if given.record:
            record(of, one)
        if given.output is not None:
            folder = given.output / name
            folder.mkdir(parents=True, exist_ok=True)
            write_run(of, one, folder)
        for each in one.findings:
            if means(given.item, each.said.id):
                yield entry(of, each.said, each.to_dict())


def means(wanted: str | None, item: str) -> bool:
    """Return whether an item begins with the requested words; a number must be complete: figure-1
    does not select figure-11.
    """
    if wanted is None:
        return True
    rest = item[len(wanted) :]
    return item.startswith(wanted) and not (wanted[-1:].isdigit() and rest[:1].isdigit())


def checked(of: Paper, said: Statement) -> dict[str, Any]:
    """Return the entry of a theorem with the verdict of its check, if there is one."""
    check = CHECKS.get((of.name, said.id))
    found = None if check is None else check()
    verdict = {} if found is None else {"verdict": f"assuming {found.assumptions}: {found.verdict}"}
    return entry(of, said, {}) | verdict


def record(of: Paper, one: Run) -> None:
    """Save the results of an experiment in the record; other results stay."""
    papers = json.loads(RECORD.read_text())["papers"]
    known = papers[of.name] | {finding.said.id: finding.to_dict() for finding in one.findings}
    papers[of.name] = {
        item: known[item] for item, said in of.statements.items() if said.by and item in known
    }
    blocks = []
    for name in TITLES:
        lines = [f"{json.dumps(item)}: {json.dumps(found)}" for item, found in papers[name].items()]
        blocks.append(f"{json.dumps(name)}: {{\n" + ",\n".join(lines) + "\n}")
    head = f'"date": "{date.today().isoformat()}",\n"seeds": {SEEDS},\n'
    write_text(RECORD, "{\n" + head + '"papers": {\n' + ",\n".join(blocks) + "\n}}\n")


if __name__ == "__main__":
    main()
