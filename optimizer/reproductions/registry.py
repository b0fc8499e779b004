"""The papers by name."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from types import ModuleType

from specopt.models.errors import InvalidInput
from specopt.models.fields import describe
from specopt.reproductions.artefact import Artefact
from specopt.reproductions.selection import Say, select

SEEDS, QUICK_SEEDS = 5, 2


@dataclass(frozen=True, kw_only=True)
class Paper:
    """A paper whose figures and tables can be computed again.

    Parameters
    ----------
    name
        As on the command line, such as ``paper-1``.
    title
        What it is about.
    least_seeds
        How many draws it takes.
    """

    name: str
    title: str
    least_seeds: int = 1

    @property
    def module(self) -> ModuleType:
        """Where its figures and tables are made: their names, ``FIGURES``, and ``reproduce``."""
        return import_module(f"specopt.reproductions.{self.name.replace('-', '_')}")

    def figures(self) -> tuple[str, ...]:
        """Return the names of its figures and tables."""
        names: tuple[str, ...] = self.module.FIGURES
        return names

    def check(self, figure: str | None, seeds: int | None) -> tuple[str, ...]:
        """Return the figures and tables that a name means; refuse what `reproduce` would refuse.

        Raises
        ------
        InvalidInput
            If there is no such figure, or too few seeds.
        """
        if seeds is not None and seeds < self.least_seeds:
            raise InvalidInput(f"seeds: expected at least {self.least_seeds}, got {seeds}")
        return select(self.figures(), figure)

    def reproduce(
        self, figure: str | None = None, *, seeds: int | None = None, quick: bool = False, say: Say = lambda _: None
    ) -> Iterator[Artefact]:
        """Compute figures and tables again.

        Parameters
        ----------
        figure
            A name, or its beginning; None: all of them.
        seeds
            Draws that are averaged; None: 5, or 2 if it must be quick.
        quick
            Small versions, to see that everything runs: verdicts mean nothing then.
        say
            Told what is going on.

        Raises
        ------
        InvalidInput
            If there is no such figure, or too few seeds.
        """
        names = self.check(figure, seeds)
        draws = (QUICK_SEEDS if quick else SEEDS) if seeds is None else seeds
        artefacts: Iterator[Artefact] = self.module.reproduce(names, seeds=draws, quick=quick, say=say)
        return artefacts


PAPERS = {
    paper.name: paper
    for paper in (
        Paper(name="paper-1", title="serving latency: pipelined batches across edge and base station", least_seeds=2),
        Paper(name="paper-2", title="verification batching under speed targets (WISP)"),
        Paper(name="paper-3", title="draft control over a changing channel: quantise, sample, verify"),
        Paper(name="paper-4", title="prompt chunking and parallel drafting (HAT)"),
        Paper(name="paper-5", title="fair goodput of many clients (GoodSpeed)"),
    )
}


def paper(name: str) -> Paper:
    """Return a paper by name.

    Raises
    ------
    InvalidInput
        If there is none.
    """
    if name not in PAPERS:
        raise InvalidInput(f"paper: expected one of {', '.join(PAPERS)}, got {describe(name)}")
    return PAPERS[name]
