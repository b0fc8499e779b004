"""Which figures and tables a name means."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from specopt.models.errors import InvalidInput
from specopt.models.fields import describe

Say = Callable[[str], None]
"""Told what is going on."""


def select(names: Iterable[str], wanted: str | None) -> tuple[str, ...]:
    """Return the names meant by one of them, or by its beginning; all of them for None.

    A number is taken as a whole: ``figure-1`` does not mean ``figure-11``.

    Raises
    ------
    InvalidInput
        If none is meant.

    Examples
    --------
    >>> select(["figure-1", "figure-11", "figure-7a", "figure-7b"], "figure-7")
    ('figure-7a', 'figure-7b')
    >>> select(["figure-1", "figure-11"], "figure-1")
    ('figure-1',)
    """
    known = tuple(names)
    chosen = tuple(name for name in known if wanted is None or _means(wanted, name))
    if not chosen:
        raise InvalidInput(f"figure: expected one of {', '.join(known)}, got {describe(wanted)}")
    return chosen


def _means(wanted: str, name: str) -> bool:
    if not wanted or not name.startswith(wanted):
        return False
    rest = name[len(wanted) :]
    return not (wanted[-1].isdigit() and rest[:1].isdigit())
