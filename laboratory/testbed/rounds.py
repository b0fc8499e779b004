"""One simulated round of verification: drafts are accepted up to the first rejected one (paper 3,
Eq. 1-2).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from papers.lattice_points import checked_distributions
from papers.speculative_sampling import acceptance_chance, replacement_law

from specopt.models.errors import InvalidInput
from specopt.models.fields import Floats, describe


def verify_round(
    server_laws: Any, verification_laws: Any, tokens: Any, rng: np.random.Generator
) -> tuple[int, int]:
    """Verify the drafts of one round in order, up to the first rejected one (Eq. 1-2).

    Parameters
    ----------
    server_laws
        p_1, ..., p_{L+1}, shape (L + 1, V).
    verification_laws
        q-hat_1, ..., q-hat_L, shape (L, V).
    tokens
        The L drafts, integers below V.
    rng
        Source of randomness for acceptances and for the server's token.

    Returns
    -------
    accepted, token
        The number N of accepted drafts, and the server's token, which replaces the first rejected
        draft or follows L accepted ones.

    Raises
    ------
    InvalidInput
        If an array is not a distribution, or if shapes do not match.
    """
    p, _ = checked_distributions("server_laws", server_laws)
    drafts = np.asarray(tokens)
    length, size = len(p) - 1, p.shape[-1]
    if p.ndim != 2 or not length >= 0:
        raise InvalidInput(f"server_laws: expected shape (L + 1, V), got {p.shape}")
    if drafts.shape != (length,) or (
        length and (drafts.dtype.kind not in "iu" or drafts.min() < 0 or drafts.max() >= size)
    ):
        raise InvalidInput(
            f"tokens: expected {length} integers from 0 to {size - 1}, got {describe(tokens)}"
        )
    if length == 0:
        return 0, _draw(p[0], rng)
    checked, _ = checked_distributions("verification_laws", verification_laws)
    if checked.shape != (length, size):
        raise InvalidInput(
            f"verification_laws: expected shape {(length, size)}, got {checked.shape}"
        )
    for place, token in enumerate(drafts.tolist()):
        if rng.random() >= acceptance_chance(p[place, token], checked[place, token]):
            return place, _draw(replacement_law(p[place], checked[place]), rng)
    return length, _draw(p[length], rng)


def _draw(law: Floats, rng: np.random.Generator) -> int:
    """Return a token with positive probability. Distributions that sum to 1 within rounding are
    scaled.
    """
    ends = np.cumsum(law)
    return int(np.searchsorted(ends, rng.random() * ends[-1], side="right"))
