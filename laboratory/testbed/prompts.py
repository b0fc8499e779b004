"""Prompts of eight kinds of task, drawn from templates with slots. Those for training share no word
list with the others.
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

import numpy as np

from specopt.models.arguments import integer
from specopt.models.errors import InvalidInput

KINDS = ("arithmetic", "translation", "summary", "code", "list", "copying", "question", "story")
MAX_PROMPTS = 10_000
_SLOT = re.compile(r"\{(\w+)\}")
_MAX_DRAWS = 1000


@dataclass(frozen=True)
class Prompt:
    """A user's request, and its kind of task."""

    kind: str
    text: str


def prompts(per_kind: int, *, training: bool, seed: int = 0) -> tuple[Prompt, ...]:
    """Draw distinct prompts, one of each kind in turn.

    Parameters
    ----------
    per_kind
        Number of prompts of each kind.
    training
        Whether slots are filled from the half of every list that is reserved for training, or from
        the other half.
    seed
        The same seed gives the same prompts.

    Raises
    ------
    InvalidInput
        If there are not enough distinct prompts.
    """
    integer("per_kind", per_kind, 1, MAX_PROMPTS)
    data = tomllib.loads(files("testbed").joinpath("prompts.toml").read_text("utf-8"))
    lists: dict[str, Any] = data["templates"] | {
        name: words[training::2] for name, words in data["words"].items()
    }
    integer("seed", seed, 0)
    found: dict[str, list[str]] = {}
    for number, kind in enumerate(KINDS):
        # separate for each kind, so that a longer list begins with a shorter one
        random = np.random.default_rng((seed, number))
        texts = found[kind] = list[str]()
        for _ in range(_MAX_DRAWS * per_kind):
            if len(texts) == per_kind:
                break
            text = _filled(f"{{{kind}}}", data["kinds"] | lists, random)
            if text not in texts:
                texts.append(text)
        else:
            raise InvalidInput(
                f"per_kind: expected at most {len(texts)}, the different prompts of {kind} found"
            )
    return tuple(Prompt(kind, found[kind][number]) for number in range(per_kind) for kind in KINDS)


def _filled(text: str, lists: dict[str, list[str]], random: np.random.Generator) -> str:
    """Fill slots, including those in the inserted texts."""

    def draw(slot: re.Match[str]) -> str:
        entries = lists[slot[1]]
        return _filled(entries[random.integers(len(entries))], lists, random)

    return _SLOT.sub(draw, text)
