"""Prompts of the laboratory."""

from __future__ import annotations

from collections import Counter

import pytest

from specopt.models.errors import InvalidInput
from testbed.prompts import KINDS, prompts


def test_there_are_enough_prompts_of_every_kind() -> None:
    """Tests that 408 prompts contain equally many of each of the eight kinds, and are distinct and
    without open slots.
    """
    found = prompts(51, training=False)
    assert Counter(prompt.kind for prompt in found) == dict.fromkeys(KINDS, 51)
    assert len({prompt.text for prompt in found}) == 408
    assert not any(brace in prompt.text for prompt in found for brace in "{}")


def test_a_longer_list_begins_like_a_shorter_one() -> None:
    """Tests that any first part of the prompts contains equally many of each kind, and does not
    depend on the total number.
    """
    found = prompts(4, training=False)
    assert [prompt.kind for prompt in found] == [*KINDS] * 4
    assert prompts(9, training=False)[:32] == found


def test_training_prompts_are_others() -> None:
    """Tests that no prompt is used both for training and for measuring, and that seeds determine
    the prompts.
    """
    training = {prompt.text for prompt in prompts(40, training=True)}
    assert not training & {prompt.text for prompt in prompts(51, training=False)}
    assert training != {prompt.text for prompt in prompts(40, training=True, seed=1)}


def test_more_prompts_than_there_are_is_refused() -> None:
    """Tests that a kind with too few distinct prompts is reported."""
    with pytest.raises(
        InvalidInput, match="per_kind: expected at most 64, the different prompts of code"
    ):
        prompts(100, training=False)
