"""JSON as a tree that may be broken on purpose: keys that come twice, literals that JSON does not
know.

An object is an `Object`, a list of pairs; a `Literal` is written as it is. All else is what `json`
makes of it.
"""

from __future__ import annotations

import json
from typing import Any


class Object(list[tuple[str, Any]]):
    """The pairs of an object, in order; a key may come twice."""


class Literal(str):
    """Text that stands in the file without quotes."""


def tree(data: Any) -> Any:
    """Return JSON-like data as a tree."""
    if isinstance(data, dict):
        return Object((key, tree(value)) for key, value in data.items())
    if isinstance(data, list):
        return [tree(item) for item in data]
    return data


def text(node: Any) -> str:
    """Return the JSON text of a tree."""
    if isinstance(node, Literal):
        return str(node)
    if isinstance(node, Object):
        return "{" + ", ".join(f"{json.dumps(key)}: {text(value)}" for key, value in node) + "}"
    if isinstance(node, list):
        return "[" + ", ".join(map(text, node)) + "]"
    return json.dumps(node)


def places(node: Any) -> list[tuple[Any, int]]:
    """Return every place below a node: its parent, an `Object` or a list, and its index there."""
    found = []
    if isinstance(node, list):
        for index, item in enumerate(node):
            found.append((node, index))
            found += places(item[1] if isinstance(node, Object) else item)
    return found


def get(parent: Any, index: int) -> Any:
    """Return the value at a place."""
    return parent[index][1] if isinstance(parent, Object) else parent[index]


def put(parent: Any, index: int, value: Any) -> None:
    """Replace the value at a place."""
    parent[index] = (parent[index][0], value) if isinstance(parent, Object) else value
