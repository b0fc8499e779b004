"""The pairs of models that the laboratory runs: their models, and prompts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np

from specopt.models.arguments import one_of

if TYPE_CHECKING:
    from specopt.testbed.llama import Llama

Side = Literal["draft", "verify"]
SIDES: tuple[Side, ...] = ("draft", "verify")


def check_pair(pair: str) -> None:
    """Refuse a pair that is not there.

    Raises
    ------
    InvalidInput
        If it is another than "tiny".
    """
    one_of("pair", pair, ("tiny",))


def load_model(pair: str, side: Side) -> Llama:
    """Return one model of a pair: "tiny" is random, in double precision."""
    from specopt.testbed.tiny import tiny_draft_model, tiny_verify_model

    check_pair(pair)
    return tiny_draft_model() if side == "draft" else tiny_verify_model()


def draw_prompts(pair: str, count: int, *, played: bool, seed: int = 0) -> list[list[int]]:
    """Return the tokens of prompts.

    Parameters
    ----------
    pair
        Whose tokens.
    count
        How many.
    played
        Whether they are for plays or for what predictions know: never the same ones.
    seed
        Of the prompts.
    """
    check_pair(pair)
    random = np.random.default_rng((seed, played))
    return [random.integers(61, size=size).tolist() for size in random.integers(4, 25, size=count)]
