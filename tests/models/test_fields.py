"""Declared fields: what one annotation refuses, reads, writes and says in a schema."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
import pytest
from msgspec import Meta

from specopt import InvalidInput
from specopt.models.fields import (
    Column,
    Custom,
    Floats,
    Ints,
    NonNegative,
    Positive,
    PositiveInt,
    TokenCount,
    check,
    describe,
    dump,
    escaped,
    parse,
    printable,
    read,
)
from specopt.models.schema import schema


class Doubled(Custom):
    """A number whose JSON form is twice as large."""

    def __init__(self, value: float) -> None:
        self.value = value

    @classmethod
    def parse(cls, data: object, where: str) -> Doubled:
        """Take half."""
        if not isinstance(data, (int, float)):
            raise InvalidInput(f"{where}: expected a number, got {describe(data)}")
        return cls(data / 2)

    def dump(self) -> float:
        """Write the double."""
        return 2 * self.value

    @classmethod
    def schema(cls) -> dict[str, Any]:
        """Say that it is a number."""
        return {"type": "number"}


@dataclass(frozen=True)
class Plain:
    """One member of a union."""

    size: Positive


@dataclass(frozen=True)
class Named:
    """The other."""

    mark: ClassVar[str] = "name"

    name: str


@dataclass(frozen=True, kw_only=True)
class Toy:
    """A field of every sort."""

    counts: Annotated[Ints, Column(TokenCount, "entry")]
    sizes: Annotated[Floats, Column(NonNegative, "entry")]
    rates: Annotated[Floats, Column(Annotated[float, None], "rate", 0)] | None = None
    mode: Literal["fast", "slow"] = "fast"
    shape: Plain | Named | None = None
    parts: tuple[Plain, ...] = ()
    twice: Doubled = field(default_factory=lambda: Doubled(1.0))
    text: str | None = None
    share: Positive = 1.0
    count: PositiveInt = 1
    marked: str = field(default="here", metadata={"always": True})

    def __post_init__(self) -> None:
        check(self)


BASE: dict[str, Any] = {"counts": [1, 2], "sizes": [0.0, 1.5]}
ALWAYS: dict[str, Any] = {"twice": 2.0, "marked": "here"}
"""Fields that are written at their defaults."""


def test_what_is_read_is_written() -> None:
    """Tests that every sort of field is read and written again, and that defaults are left out."""
    given = BASE | {
        "rates": [0.5],
        "mode": "slow",
        "shape": {"name": "a"},
        "parts": [{"size": 1.0}, {"size": 2.0}],
        "twice": 6.0,
        "text": "ä",
        "share": 2.0,
        "count": 3,
        "marked": "there",
    }
    toy = parse(Toy, given)
    assert (
        toy.shape == Named("a") and toy.parts == (Plain(1.0), Plain(2.0)) and toy.twice.value == 3.0
    )
    assert dump(toy) == given
    assert parse(Toy, given | {"shape": {"size": 3.0}}).shape == Plain(3.0)
    assert dump(parse(Toy, BASE)) == BASE | ALWAYS
    assert dump(parse(Toy, BASE | {"text": None})) == BASE | ALWAYS


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"counts": [1, 0]}, "counts[1]: expected int >= 1, got 0"),
        ({"counts": [1, 2.5]}, "counts[1]: expected int, got 2.5 (float)"),
        ({"counts": []}, "counts: expected 1 or more entries, got 0"),
        ({"sizes": [1.0]}, "sizes: expected 2 entries, as in counts, got 1"),
        ({"sizes": "ab"}, "sizes: expected array, got 'ab' (str)"),
        ({"mode": "still"}, "mode: expected one of fast, slow, got 'still'"),
        ({"shape": {"size": -1.0}}, "shape.size: expected float > 0.0, got -1.0"),
        ({"shape": {"name": 1}}, "shape.name: expected str, got 1 (int)"),
        ({"shape": {"colour": 1}}, "shape.colour: unknown field"),
        ({"shape": 3}, "shape: expected object, got 3 (int)"),
        ({"parts": [{"size": 1.0}, {}]}, "parts[1].size: required field is missing"),
        ({"parts": [{"size": 1.0}, {"size": 0.0}]}, "parts[1].size: expected float > 0.0, got 0.0"),
        ({"twice": "x"}, "twice: expected a number, got 'x'"),
        ({"colour": 1}, "colour: unknown field"),
        ({"x" * 61: 1}, f"'{'x' * 56}...: unknown field"),
        ({"": 1}, "'': unknown field"),
        ({"a\r\nb": 1}, "'a\\r\\nb': unknown field"),
        ({"\x00": 1}, "'\\x00': unknown field"),
    ],
)
def test_refusals_of_files(fields: dict[str, Any], message: str) -> None:
    """Tests that each sort of field refuses what is not in its domain, by its path."""
    with pytest.raises(InvalidInput) as refusal:
        parse(Toy, BASE | fields)
    assert str(refusal.value) == message
    with pytest.raises(InvalidInput, match=rf"^toys\[3\]\.{re.escape(message)}$"):
        parse(Toy, BASE | fields, "toys[3]")


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"counts": [1, 0]}, "counts[1]: expected an integer >= 1 and <= 10000000, got 0"),
        ({"counts": [1.0, 2.0]}, "counts: expected a list of integers, got [1.0, 2.0]"),
        ({"counts": [[1], [2]]}, "counts: expected a list of integers, got [[1], [2]]"),
        ({"counts": [[1], 2]}, "counts: expected a list of integers, got [[1], 2]"),
        ({"counts": [True, 1]}, "counts: expected a list of integers, got [True, 1]"),
        ({"sizes": None}, "sizes: expected a list of numbers, got None"),
        ({"sizes": ["a", "b"]}, "sizes: expected a list of numbers, got ['a', 'b']"),
        ({"sizes": [1.0, -1.0]}, "sizes[1]: expected a finite number >= 0, got -1.0"),
        ({"sizes": [np.inf, 1.0]}, "sizes[0]: expected a finite number >= 0, got inf"),
        ({"rates": [np.nan]}, "rates[0]: expected a finite number, got nan"),
        ({"shape": 3}, "shape: expected Plain or Named, got 3"),
        ({"share": np.inf}, "share: expected a finite number, got inf"),
        ({"share": None}, "share: expected float, got None (null)"),
        ({"text": "\ud800"}, "text: expected a Unicode string, got '\\ud800'"),
        ({"twice": "x"}, "twice: expected a number, got 'x'"),
    ],
)
def test_refusals_of_objects(fields: dict[str, Any], message: str) -> None:
    """Tests that objects that are made directly are checked like those from files."""
    with pytest.raises(InvalidInput) as refusal:
        Toy(**(BASE | fields))
    assert str(refusal.value) == message


@pytest.mark.parametrize(
    ("hint", "data", "where", "message"),
    [
        (list[list[int]], [[1], ["a"]], "m", "m[1][0]: expected int, got 'a' (str)"),
        (list[int], ["a"], "", "[0]: expected int, got 'a' (str)"),
        (int, "a", "", "the top level: expected int, got 'a' (str)"),
        (int, "1", "x", "x: expected int, got '1' (str)"),
        (Literal["a", "b"], "c", "x", "x: expected another value, got 'c'"),
        (Literal["a", "b"], "\ud800", "x", "x: expected a Unicode string, got '\\ud800'"),
        (
            Literal["a", "b"],
            "\ud800",
            "",
            "the top level: expected a Unicode string, got '\\ud800'",
        ),
        (
            dict[str, list[int]],
            {"k": ["x"]},
            "d",
            "d[...][0]: expected int, got 'something else' (str)",
        ),
    ],
)
def test_refusals_of_other_data(hint: Any, data: object, where: str, message: str) -> None:
    """Tests that what no dataclass declares is refused by its place, too."""
    with pytest.raises(InvalidInput) as refusal:
        read(hint, data, where)
    assert str(refusal.value) == message


def test_columns_are_copies() -> None:
    """Tests that columns become read-only copies, and that numpy's numbers become Python's."""
    mine = np.array([1.0, 2.0])
    toy = Toy(counts=np.array([1, 2]), sizes=mine, share=np.float64(2.0), rates=[])  # type: ignore[arg-type]
    mine[0] = 7.0
    assert toy.sizes.tolist() == [1.0, 2.0] and toy.sizes.dtype == np.float64
    assert toy.counts.dtype == np.int64 and type(toy.share) is float
    assert toy.rates is not None and toy.rates.dtype == np.float64 and len(toy.rates) == 0
    with pytest.raises(ValueError, match="read-only"):
        toy.sizes[0] = 7.0


def test_optional_values() -> None:
    """Tests that a value may be absent where its field says so, and that lists of parts become
    tuples.
    """

    @dataclass(frozen=True, kw_only=True)
    class Optional:
        needed: Doubled
        maybe: Doubled | None = None
        parts: tuple[Plain, ...] = ()
        shares: Annotated[Floats, Column(Annotated[float, Meta(gt=0, lt=1)], "share")] | None = None

        def __post_init__(self) -> None:
            check(self)

    found = parse(Optional, {"needed": 2.0, "maybe": None, "parts": [{"size": 1.0}]})
    assert found.maybe is None and found.parts == (Plain(1.0),)
    assert dump(parse(Optional, {"needed": 2.0, "maybe": 4.0})) == {"needed": 2.0, "maybe": 4.0}
    given: Any = [Plain(1.0)]
    assert Optional(needed=Doubled(1.0), maybe=None, parts=given).parts == (Plain(1.0),)
    nothing: Any = None
    message = "^needed: expected a number, got None$"
    with pytest.raises(InvalidInput, match=message):
        parse(Optional, {"needed": None})
    with pytest.raises(InvalidInput, match=message):
        Optional(needed=nothing)
    for share in (0.0, 1.0):
        with pytest.raises(
            InvalidInput, match=rf"^shares\[0\]: expected a finite number > 0 and < 1, got {share}$"
        ):
            Optional(needed=Doubled(1.0), shares=np.array([share]))


def bare(field: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of a field without the words for people."""
    return {
        key: value
        for key, value in field.items()
        if key not in ("description", "unit", "range", "default")
    }


def test_the_schema() -> None:
    """Tests that a schema says what every sort of field takes."""
    found = schema(Toy)
    assert found["type"] == "object" and found["required"] == ["counts", "sizes"]
    assert found["additionalProperties"] is False
    fields = {name: bare(field) for name, field in found["properties"].items()}
    assert fields["counts"] == {
        "type": "array",
        "items": {"type": "integer", "minimum": 1, "maximum": 10_000_000},
        "minItems": 1,
    }
    assert "minItems" not in fields["rates"]
    assert fields["twice"] == {"type": "number"}
    plain = schema(Plain)
    assert bare(plain["properties"]["size"]) == {"type": "number", "exclusiveMinimum": 0.0}
    assert plain["required"] == ["size"]
    assert fields["shape"] == {"anyOf": [plain, schema(Named)]}
    assert fields["parts"] == {"type": "array", "items": plain}


def test_what_is_shown() -> None:
    """Tests that what a message shows of a value is short, on one line and printable."""
    assert describe("x" * 58) == f"'{'x' * 58}'" and describe("x" * 59) == f"'{'x' * 56}..."
    assert describe(10**5000) == "a value of type int that is too long to show"
    assert escaped("a\nb\x1bä") == "a\\nb\\x1bä" and escaped("a\\b") == "a\\b"
    assert printable("0123456789", limit=10) == "0123456789"
    assert printable("0123456789" * 10, limit=20) == "01234567890 ... 6789"
    assert printable("\x1b" * 1000, limit=20) == "\\x1b\\x1b\\x1 ... \\x1b"
