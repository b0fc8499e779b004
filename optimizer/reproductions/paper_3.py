"""Paper 3: Figures 3 and 4; what stands for what, and what is found, is in `paper_3_simulation`."""

from __future__ import annotations

from collections.abc import Iterator

from specopt.models.errors import InvalidInput
from specopt.reproductions import paper_3_simulation
from specopt.reproductions.artefact import Artefact
from specopt.reproductions.selection import Say, select

POSITIONS, REPLICATIONS = 18, 80
"""Per seed: pairs of distributions at every temperature, and runs of the heuristic."""

_NAMES = ("figure-3", "figure-4a", "figure-4b")


def figures() -> tuple[str, ...]:
    """Return the names of the figures."""
    return _NAMES


def reproduce(
    name: str | None = None, *, seeds: int = 5, quick: bool = False, say: Say = lambda _: None
) -> Iterator[Artefact]:
    """Compute figures again; all come from the same distributions.

    Parameters
    ----------
    name
        A figure, or the beginning of its name; None: all of them.
    seeds
        Sets of distributions that are averaged, at least 1.
    quick
        Two temperatures, few distributions and a small vocabulary: verdicts mean little then.
    say
        Told what is going on.

    Raises
    ------
    InvalidInput
        If there is no such figure, or too few seeds.
    """
    if seeds < 1:
        raise InvalidInput(f"seeds: expected at least 1, got {seeds}")
    chosen = select(_NAMES, name)
    say("distributions at every temperature, and policies for both regimes")
    if quick:
        found = paper_3_simulation.reproduce(
            temperatures=(0.5, 1.0), positions=12, vocabulary_size=3000, replications=50
        )
    else:
        found = paper_3_simulation.reproduce(positions=POSITIONS * seeds, replications=REPLICATIONS * seeds)
    yield from (one for one in found if one.name in chosen)
