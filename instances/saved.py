"""Problems that come with the package, saved as files: the same numbers on every machine, whatever the generator."""

from __future__ import annotations

from importlib.resources import as_file, files

from specopt.models.errors import InvalidInput
from specopt.models.files import load
from specopt.models.problem import Problem

_DATA = "specopt.instances.data"


def saved() -> list[str]:
    """Return the names of the saved problems.

    Examples
    --------
    >>> saved()[0]
    'serving-latency-K100-1.1B-13B'
    """
    names = (entry.name for entry in files(_DATA).iterdir())
    return sorted(name.removesuffix(".json") for name in names if name.endswith(".json"))


def load_saved(name: str) -> Problem:
    """Return a saved problem by its name.

    Raises
    ------
    InvalidInput
        If there is none of that name.
    """
    if name not in saved():
        raise InvalidInput(f"name: expected one of {', '.join(saved())}, got {name!r}")
    with as_file(files(_DATA) / f"{name}.json") as path:
        problem = load(path)
    assert isinstance(problem, Problem)
    return problem
