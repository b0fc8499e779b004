"""Case number n of the fuzz suite: the same bytes whenever and wherever it is asked for."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable
from typing import Any

from fuzz.json_tree import Object, text, tree
from fuzz.junk import LITERALS, NUMBERS, TEXTS, junk
from fuzz.mutations import mutate
from fuzz.seed_problems import seed_problem

from specopt.kinds import KINDS, kind_of
from specopt.models.problem import FORMAT


def problem_case(number: int) -> bytes:
    """Return the content of a problem file: of each kind in turn, mostly a valid one with some harm
    done to it.
    """
    rng = random.Random(number)
    kind = KINDS[number % len(KINDS)].name
    pick = rng.random()
    if pick < 0.8:
        return _mutated(rng, kind).encode()
    if pick < 0.9:
        return _arbitrary_json(rng, kind).encode()
    return _arbitrary_bytes(rng, kind)


def harmed(rng: random.Random, data: dict[str, Any], schema: dict[str, Any]) -> str:
    """Return the JSON text of a file after one to four mutations."""
    root = tree(data)
    for _ in range(rng.choice((1, 1, 1, 2, 2, 4))):
        mutate(rng, root, schema)
    return text(root)


def harmed_lines(rng: random.Random, content: str) -> str:
    """Return a table, or lines of JSON, after one to four mutations."""
    lines = content.splitlines()
    for _ in range(rng.choice((1, 1, 2, 4))):
        at = rng.randrange(len(lines))
        line = _harmed_line(rng, lines[at])
        lines[at : at + 1] = rng.choice(([line], [line], [line], [lines[at], line], ["", line], []))
        lines = lines or [""]
    return rng.choice(("\n", "\n", "\n", "\r\n", "\r")).join(lines) + "\n"


def _harmed_line(rng: random.Random, line: str) -> str:
    cells = re.split(r"([,{}= ])", line)
    at = rng.randrange(len(cells))
    new = rng.choice((*TEXTS, *LITERALS, *map(str, NUMBERS[:-2])))
    cells[at : at + 1] = rng.choice(
        ([new], [new], [f'"{new}"'], [json.dumps(new)], [cells[at], new, ","], [])
    )
    return "".join(cells)


def _mutated(rng: random.Random, kind: str) -> str:
    return harmed(rng, seed_problem(kind, rng), kind_of(kind).problem.json_schema())


def _arbitrary_json(rng: random.Random, kind: str) -> str:
    if rng.random() < 0.3:
        return text(junk(rng))
    header = [("format", FORMAT), ("kind", kind)]
    names = [*kind_of(kind).problem.json_schema()["properties"], *TEXTS, "status", "plan"]
    fields = [(rng.choice(names), junk(rng)) for _ in range(rng.randrange(12))]
    return text(Object(rng.sample(header, rng.choice((1, 2, 2, 2))) + fields))


def _arbitrary_bytes(rng: random.Random, kind: str) -> bytes:
    return harmed_bytes(rng, text(tree(seed_problem(kind, rng))).encode())


def harmed_bytes(rng: random.Random, content: bytes) -> bytes:
    """Return what may become of a file on its way: cut, torn, flipped, in another encoding, or
    never its like.
    """
    start, stop = sorted(rng.randrange(len(content) + 1) for _ in range(2))
    flipped = bytes(
        byte ^ (1 << rng.randrange(8)) if rng.random() < 0.01 else byte for byte in content
    )
    ways: tuple[Callable[[], bytes], ...] = (
        lambda: rng.randbytes(rng.randrange(200)),
        lambda: content[:start],
        lambda: content[:start] + content[stop:],
        lambda: content[:start] + rng.randbytes(rng.randrange(1, 9)) + content[start:],
        lambda: flipped,
        lambda: content.decode().encode("utf-16"),
        lambda: b"\xef\xbb\xbf" + content,
        lambda: content + b"\0",
        lambda: content + content,
        lambda: rng.choice((b"[", b'{"a":', b'{"format":[')) * rng.choice((10, 100_000)),
    )
    return rng.choice(ways)()
