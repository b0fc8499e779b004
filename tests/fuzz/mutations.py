"""Small harm to a file: each mutation changes a tree of JSON in place."""

from __future__ import annotations

import copy
import random
from typing import Any

from fuzz.json_tree import Object, get, places, put
from fuzz.junk import TEXTS, junk, number_near
from fuzz.schema_values import allowed


def mutate(rng: random.Random, root: Any, schema: dict[str, Any]) -> None:
    """Harm a file's tree once."""
    rng.choice(MUTATIONS)(rng, root, schema)


def _replace(rng: random.Random, root: Any, schema: dict[str, Any]) -> None:
    if there := places(root):
        put(*rng.choice(there), junk(rng))


def _nudge(rng: random.Random, root: Any, schema: dict[str, Any]) -> None:
    numbers = [at for at in places(root) if type(get(*at)) in (int, float)]
    if numbers:
        at = rng.choice(numbers)
        put(*at, number_near(rng, get(*at)))


def _level(rng: random.Random, root: Any, schema: dict[str, Any]) -> None:
    """Make every number of an array one number."""
    if columns := _arrays(root):
        column = rng.choice(columns)
        value = junk(rng) if rng.random() < 0.5 or not column else rng.choice(column)
        column[:] = [value] * len(column)


def _remove(rng: random.Random, root: Any, schema: dict[str, Any]) -> None:
    if there := places(root):
        parent, index = rng.choice(there)
        del parent[index]


def _rename(rng: random.Random, root: Any, schema: dict[str, Any]) -> None:
    fields = [at for at in places(root) if isinstance(at[0], Object)]
    if fields:
        parent, index = rng.choice(fields)
        key, value = parent[index]
        parent[index] = (rng.choice((*TEXTS, key + "s", key.upper(), key[:-1])), value)


def _repeat(rng: random.Random, root: Any, schema: dict[str, Any]) -> None:
    """Put a field or an item there twice, or with another value the second time."""
    if there := places(root):
        parent, index = rng.choice(there)
        parent.insert(rng.randrange(len(parent) + 1), copy.deepcopy(parent[index]))
        if rng.random() < 0.3:
            put(parent, rng.randrange(len(parent)), junk(rng))


def _resize(rng: random.Random, root: Any, schema: dict[str, Any]) -> None:
    if arrays := _arrays(root):
        array = rng.choice(arrays)
        array[:] = (array * 3)[: rng.choice((0, 1, len(array) - 1, len(array) + 1, 3 * len(array)))]


def _swap(rng: random.Random, root: Any, schema: dict[str, Any]) -> None:
    there = places(root)
    if len(there) > 1:
        one, other = rng.sample(there, 2)
        first, second = copy.deepcopy(get(*one)), copy.deepcopy(get(*other))
        put(*one, second)
        put(*other, first)


def _add(rng: random.Random, root: Any, schema: dict[str, Any]) -> None:
    """Add a field that the schema knows, or replace it, by a value that the schema allows."""
    if not isinstance(root, Object):
        return
    properties = schema["properties"]
    name = rng.choice(list(properties))
    sizes = [len(array) for array in _arrays(root)] or [2]
    field = (name, allowed(rng, properties[name], rng.choice(sizes)))
    root[:] = [pair for pair in root if pair[0] != name or rng.random() < 0.05] + [field]


def _add_unknown(rng: random.Random, root: Any, schema: dict[str, Any]) -> None:
    objects = [root, *(get(*at) for at in places(root) if isinstance(get(*at), Object))]
    rng.choice(objects).append((rng.choice(TEXTS), junk(rng)))


def _arrays(root: Any) -> list[list[Any]]:
    return [value for at in places(root) if type(value := get(*at)) is list]


MUTATIONS = (
    _replace,
    _replace,
    _nudge,
    _nudge,
    _nudge,
    _level,
    _remove,
    _rename,
    _repeat,
    _resize,
    _swap,
    _add,
    _add,
    _add_unknown,
)
