"""The pairs of models that the laboratory runs: random ones, and SmolLM2-135M-Instruct with its
draft model.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Literal

import numpy as np

from specopt.models.arguments import one_of
from testbed.prompts import KINDS, prompts

if TYPE_CHECKING:
    from testbed.llama import Llama

Side = Literal["draft", "verify"]
SIDES: tuple[Side, ...] = ("draft", "verify")
PAIRS = ("tiny", "real")


def check_pair(pair: str) -> None:
    """Reject an unknown pair.

    Raises
    ------
    InvalidInput
        If it is not "tiny" or "real".
    """
    one_of("pair", pair, PAIRS)


def load_model(pair: str, side: Side) -> Llama:
    """Return one model of a pair. "tiny" is random with double precision, and "real" has single
    precision.

    Raises
    ------
    MissingDependency
        If the real pair is not installed.
    """
    from testbed.tiny import tiny_draft_model, tiny_verify_model

    check_pair(pair)
    if pair == "real":
        from testbed.checkpoints import DRAFT, load_draft, verify_checkpoint

        verify = verify_checkpoint()
        return (load_draft(DRAFT, verify) if side == "draft" else verify).model()
    return tiny_draft_model() if side == "draft" else tiny_verify_model()


def draw_prompts(pair: str, count: int, *, played: bool, seed: int = 0) -> list[list[int]]:
    """Return the tokens of prompts.

    Parameters
    ----------
    pair
        Name of the pair, which determines the tokens.
    count
        Number of prompts.
    played
        Whether they are for plays or for inputs of predictions. These sets have no common prompt.
    seed
        Seed of the prompts.
    """
    check_pair(pair)
    if pair == "real":
        from testbed.checkpoints import prompt_tokens

        kinds = len(KINDS)
        drawn = prompts(2 * -(-count // kinds), training=False, seed=seed)
        mine = [
            prompt for number, prompt in enumerate(drawn) if (number // kinds) % 2 == (not played)
        ]
        return [prompt_tokens(prompt.text) for prompt in mine[:count]]
    random = np.random.default_rng((seed, played))
    return [random.integers(61, size=size).tolist() for size in random.integers(4, 25, size=count)]


def about(pair: str) -> dict[str, str]:
    """Return the identity of this pair's draft model: the digest of its file, and its notes."""
    check_pair(pair)
    if pair == "tiny":
        return {}
    from safetensors import safe_open

    from testbed.checkpoints import DRAFT

    with safe_open(DRAFT, framework="pt") as file:
        notes = (file.metadata() or {}).get("notes", "")
    return {"sha256": hashlib.sha256(DRAFT.read_bytes()).hexdigest(), "notes": notes}
