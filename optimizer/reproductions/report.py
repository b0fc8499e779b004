"""Figures and tables for people: what became of each."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from specopt.reproductions.artefact import Artefact, Verdict
from specopt.reproductions.registry import Paper
from specopt.views.terminal import table

_COLOURS = {Verdict.REPRODUCED: "green", Verdict.IN_SHAPE: "cyan", Verdict.NOT: "yellow"}


def print_papers(papers: Sequence[Paper], out: Console) -> None:
    """Print what can be computed again."""
    for paper in papers:
        out.print(Text.assemble((paper.name, "bold"), f"  {paper.title}"), soft_wrap=True)
        out.print(Text(f"  {' '.join(paper.figures())}"), soft_wrap=True)


def print_artefact(artefact: Artefact, out: Console) -> None:
    """Print the verdict on a figure or table, and its paragraph."""
    verdict = (artefact.verdict.value, f"bold {_COLOURS[artefact.verdict]}")
    out.print(Text.assemble((artefact.name, "bold"), f" {artefact.title}: ", verdict), soft_wrap=True)
    out.print(Text(artefact.paragraph), soft_wrap=True)
    out.print()


def print_verdicts(artefacts: Sequence[Artefact], out: Console) -> None:
    """Print one line per figure or table."""
    view = table("figure", "verdict", "claims that hold", left=2)
    view.add_column("what it shows")
    for one in artefacts:
        held = sum(claim.holds for claim in one.claims)
        view.add_row(
            one.name, Text(one.verdict.value, style=_COLOURS[one.verdict]), f"{held} of {len(one.claims)}", one.title
        )
    out.print(view)
