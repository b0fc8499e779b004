"""Relations that the optimal values of related problems must satisfy.

>>> from specopt import generate, solve
>>> from specopt.testing import relation
>>> one = relation("draft-allocation", "one more token")
>>> one.reason
'every plan stays feasible'
>>> one.check(solve, generate("draft-allocation/uniform", clients=3, budget=5))
True
"""

from __future__ import annotations

from importlib import import_module

from specopt.kinds import kind_of, kinds
from specopt.kinds.relation import Relation
from specopt.models.errors import InvalidInput


def relations(kind: str | None = None) -> tuple[Relation, ...]:
    """Return the relations for one kind of problem, or for all kinds.

    Raises
    ------
    InvalidInput
        If the kind does not exist.
    """
    modules = [one.relations for one in (kinds() if kind is None else [kind_of(kind)])]
    return tuple(
        one for module in modules if module is not None for one in import_module(module).RELATIONS
    )


def relation(kind: str, name: str) -> Relation:
    """Return the relation with a given name for a kind of problem.

    Raises
    ------
    InvalidInput
        If the relation does not exist.
    """
    for one in relations(kind):
        if one.name == name:
            return one
    raise InvalidInput(
        f"name: expected one of {', '.join(one.name for one in relations(kind))}, got {name!r}"
    )
