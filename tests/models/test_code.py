"""The text of what classes do: another one for whatever changes what they do, the same in every
process.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from specopt.models.code import text_of

LIMIT = 3.0


def probe(function: Callable[..., Any]) -> str:
    """Return the text of a class with one method."""
    return text_of([type("Probe", (), {"method": function, "__module__": __name__})])


def closed(value: float) -> Callable[..., Any]:
    """Return a function that reads a value from around it."""
    return lambda self: value


def test_what_changes_a_text(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests that constants, names, defaults, what is around, and what is called count, positions in
    a file do not.
    """
    alike = [probe(lambda self: self.a + LIMIT), probe(lambda self: self.a + LIMIT)]
    assert alike[0] == alike[1]
    others = {
        *alike,
        probe(lambda self: self.b + LIMIT),
        probe(lambda self: self.a - LIMIT),
        probe(lambda self: self.a + 3.0),
        probe(lambda self: [self.a + 4.0 for _ in "ab"]),
        probe(lambda self: [self.a + 5.0 for _ in "ab"]),
        probe(lambda self, a=1: a),
        probe(lambda self, a=2: a),
        probe(lambda self, *, a=1: a),
        probe(lambda self, *, a=2: a),
        probe(closed(1.0)),
        probe(closed(2.0)),
    }
    assert len(others) == 12
    monkeypatch.setitem(globals(), "LIMIT", 4.0)
    assert probe(lambda self: self.a + LIMIT) not in others


def test_sets_have_one_order() -> None:
    """Tests that members of a set in the code come sorted: texts are hashed differently in every
    process.
    """
    text = probe(lambda self: self in {"b", "a", "c"})
    assert "frozenset" not in text
    assert re.search(r"\Wa\W+b\W+c\W", text)
