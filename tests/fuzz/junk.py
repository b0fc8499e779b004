"""Values that a reader may meet where it expects others: extreme numbers, wrong types, strange
text, nested rubbish.
"""

from __future__ import annotations

import random
from typing import Any

from fuzz.json_tree import Literal, Object

NUMBERS = (
    0,
    -1,
    1,
    2,
    3,
    0.5,
    1 - 2**-53,
    1 + 2**-52,
    -0.0,
    1e-12,
    1e-300,
    5e-324,
    1e16,
    1e150,
    1e300,
    1e308,
    -1e308,
    2**31,
    2**53 + 1,
    2**63 - 1,
    2**63,
    -(2**63) - 1,
    10**7,
    10**15,
    10**400,
    -(10**400),
    7.0,
    1e7,
)
LITERALS = (
    "NaN",
    "Infinity",
    "-Infinity",
    "1e999",
    "-1e999",
    "0x10",
    "01",
    "1.",
    "tru",
    "'a'",
    "",
    "1" * 5000,
)
TEXTS = (
    "",
    "a",
    "pipelined",
    "second",
    "none",
    "1",
    "NaN",
    "\0",
    "\ud800",
    "\udfff\ud800",
    "\n",
    "a\r\nb",
    "\u2028",
    "\x1b[31m",
    "\x1b]0;t\x07",
    "\x9b31m",
    "\x7f",
    "\x85",
    "\u202e",
    "[red]",
    "[link=file:///]",
    "\t",
    "../../x",
    "/etc/x",
    "é" * 3,
    "[bold]",
    "{}",
    "%s",
    "x" * 5000,
    "-",
    "$",
    "a.b[0]",
    "`",
)


def junk(rng: random.Random, depth: int = 0) -> Any:
    """Return any value, as a tree."""
    pick = rng.random()
    if pick < 0.5 or depth > 3:
        return rng.choice(NUMBERS)
    if pick < 0.6:
        return Literal(rng.choice(LITERALS))
    if pick < 0.7:
        return rng.choice((True, False, None))
    if pick < 0.8:
        return rng.choice(TEXTS)
    if pick < 0.9:
        return [junk(rng, depth + 1) for _ in range(rng.randrange(4))]
    return Object((rng.choice(TEXTS), junk(rng, depth + 1)) for _ in range(rng.randrange(4)))


def number_near(rng: random.Random, value: float) -> float:
    """Return a number that has to do with another one: scaled, shifted, rounded, or drawn anew on
    its scale.
    """
    moves = (
        lambda: value * 10.0 ** rng.uniform(-3, 3),
        lambda: value * 10.0 ** rng.uniform(-320, 320),
        lambda: -value,
        lambda: value + rng.choice((1, -1, 2)),
        lambda: float(value),
        lambda: round(value),
        lambda: rng.randrange(20),
        lambda: rng.random(),
    )
    try:
        return rng.choice(moves)()
    except (OverflowError, ValueError):
        return 1e308
