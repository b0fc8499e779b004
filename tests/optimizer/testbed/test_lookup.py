"""Drafts that are repetitions of the text: what comes out is the verify model's all the same."""

from __future__ import annotations

import numpy as np
import pytest
from bigrams import Bigrams
from hypothesis import given
from hypothesis import strategies as st

from specopt.testbed.decoding import Sampling, Verifier, greedy
from specopt.testbed.lookup import LONGEST, SHORTEST, LookupDrafter, continued

SIZE = 5
TABLE = np.random.default_rng(4).normal(size=(SIZE, SIZE))


@given(text=st.lists(st.integers(0, 2), min_size=1, max_size=14), length=st.integers(0, 6))
def test_a_repetition_is_continued(text: list[int], length: int) -> None:
    """Tests that drafts are what a search over all ends and places finds, each draft what followed one period back."""
    found = continued(text, length)
    places = [
        (size, start)
        for size in range(SHORTEST, LONGEST + 1)
        for start in range(len(text) - size)
        if text[start : start + size] == text[-size:]
    ]
    if not places:
        assert found == [text[-1]] * length
        return
    size, start = max(places)
    whole = [*text, *found]
    period = len(text) - start - size
    assert all(whole[place] == whole[place - period] for place in range(len(text), len(whole)))


@pytest.mark.parametrize("temperature", [0.0, 0.8])
def test_output_is_the_verify_models(temperature: float) -> None:
    """Tests that greedy output equals plain decoding, whose loop is soon found, and that sampled drafts are certain."""
    prompts, sampling = [[0], [1, 2], [3, 3]], Sampling(temperature=temperature, seed=1)
    drafter = LookupDrafter(SIZE, prompts, sampling)
    verifier = Verifier(Bigrams(TABLE), range(3), prompts, room=80, sampling=sampling)
    accepted = 0
    for length in (0, *[3] * 15):
        drafts = drafter.draft(length)
        if drafts.laws is not None:
            assert (drafts.laws.max(axis=-1) == 1.0).all()
            assert (drafts.laws.argmax(axis=-1) == drafts.tokens).all()
        verdict = verifier.verify(drafts)
        drafter.settle(drafts.tokens, verdict)
        accepted += int(verdict.accepted.sum())
    assert drafter.tokens == verifier.tokens
    assert accepted > (60 if temperature == 0.0 else 5)
    if temperature == 0.0:
        for prompt, tokens in zip(prompts, verifier.tokens, strict=True):
            assert tokens[len(prompt) :] == greedy(Bigrams(TABLE), prompt, len(tokens) - len(prompt))[0]
