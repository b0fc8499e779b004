"""The family `toy/plain`."""

from __future__ import annotations

from specopt.models.toy.problem import ToyProblem


def plain(*, most: int = 7, seed: int = 0) -> ToyProblem:
    """Return a problem with a limit that the seed moves."""
    return ToyProblem(limit=most + seed, value=2.0)
