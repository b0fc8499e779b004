"""Speculative decoding on tables: the output has the distribution of the verify model for any
drafts.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from papers.lattice_points import nearest_counts, quantised

from specopt import InvalidInput
from specopt.models.fields import Floats, Ints
from testbed.decoding import Drafter, Sampling, Verifier, first_difference, greedy

SIZE = 5


@dataclass
class BigramCache:
    """A cache in which only the lengths matter. The tokens are stored to check them."""

    tokens: Ints
    lengths: Ints


class Bigrams:
    """A language model that is a table with the logits of the next token given only the last one,
    shape (vocabulary, vocabulary).
    """

    def __init__(self, table: Floats) -> None:
        self.table = table

    def new_cache(self, batch: int, room: int) -> BigramCache:
        """Return an empty cache."""
        return BigramCache(np.full((batch, room), -1), np.zeros(batch, dtype=np.int64))

    def logits(self, tokens: Ints, counts: Ints, cache: BigramCache, scored: int) -> Floats:
        """Return the logits for the last tokens of each row."""
        for row, (line, count) in enumerate(zip(tokens, counts, strict=True)):
            start = cache.lengths[row]
            cache.tokens[row, start : start + count] = line[:count]
        cache.lengths = cache.lengths + counts
        places = cache.lengths[:, None] - scored + np.arange(scored)
        found: Floats = self.table[cache.tokens[np.arange(len(tokens))[:, None], places]]
        return found


def table(seed: int) -> Floats:
    """Return random logits of every token after every other."""
    logits: Floats = np.random.default_rng(seed).normal(size=(SIZE, SIZE))
    return logits


def decode(
    verify: Floats, draft: Floats, prompts: list[list[int]], lengths: list[int], sampling: Sampling
) -> tuple[list[list[int]], list[int]]:
    """Decode a number of rounds. Return the output and the total number of accepted drafts."""
    room = max(map(len, prompts)) + sum(lengths) + len(lengths) + 1
    tasks = range(len(prompts))
    drafter = Drafter(Bigrams(draft), tasks, prompts, room=room, sampling=sampling)
    verifier = Verifier(Bigrams(verify), tasks, prompts, room=room, sampling=sampling)
    accepted = np.zeros(len(prompts), dtype=np.int64)
    for length in lengths:
        drafts = drafter.draft(length)
        verdict = verifier.verify(drafts)
        drafter.settle(drafts.tokens, verdict)
        accepted += verdict.accepted
    assert drafter.tokens == verifier.tokens
    return [
        tokens[len(prompt) :] for tokens, prompt in zip(verifier.tokens, prompts, strict=True)
    ], accepted.tolist()


@given(
    seed=st.integers(0, 1000),
    prompts=st.lists(
        st.lists(st.integers(0, SIZE - 1), min_size=1, max_size=6), min_size=1, max_size=4
    ),
    lengths=st.lists(st.integers(0, 4), min_size=1, max_size=6),
    same=st.booleans(),
)
def test_greedy_output_is_the_verify_models(
    seed: int, prompts: list[list[int]], lengths: list[int], same: bool
) -> None:
    """Tests that at temperature 0 every round yields tokens of the verify model, one more than the
    accepted drafts.

    If both models are the same, all drafts are accepted.
    """
    verify = table(seed)
    outputs, accepted = decode(
        verify, verify if same else table(seed + 1), prompts, lengths, Sampling()
    )
    for prompt, output, count in zip(prompts, outputs, accepted, strict=True):
        assert output == greedy(Bigrams(verify), prompt, len(output))[0]
        assert len(output) == len(lengths) + count
        if same:
            assert count == sum(lengths)


@pytest.mark.parametrize("length", [0, 1, 3])
def test_sampled_output_has_the_verify_models_law(length: int) -> None:
    """Tests that the first two tokens of 20 000 outputs have the distribution of the verify model,
    within 4 standard errors.
    """
    many, sampling = 20_000, Sampling(temperature=0.7, seed=3)
    verify = table(1)
    outputs, _ = decode(verify, table(2), [[0]] * many, [length] * 2, sampling)
    first_two = np.array([output[:2] for output in outputs])
    counts = np.zeros((SIZE, SIZE))
    np.add.at(counts, (first_two[:, 0], first_two[:, 1]), 1)
    laws = sampling.laws(verify)
    expected = laws[0][:, None] * laws
    assert (np.abs(counts / many - expected) <= 4 * np.sqrt(expected * (1 - expected) / many)).all()


def test_quantised_drafts_leave_the_law_as_it_is() -> None:
    """Tests that drafts drawn from quantised distributions and verified with them also give the
    distribution of the verify model.
    """
    many, sampling = 20_000, Sampling(temperature=0.7, seed=6)
    drafter = Drafter(Bigrams(table(2)), range(many), [[0]] * many, room=4, sampling=sampling)
    verifier = Verifier(Bigrams(table(1)), range(many), [[0]] * many, room=4, sampling=sampling)
    drafts = drafter.draft(1, lambda laws: quantised(nearest_counts(laws, 3)))
    assert drafts.laws is not None
    assert set(np.unique(drafts.laws * 3)) <= {0.0, 1.0, 2.0, 3.0}
    verifier.verify(drafts)
    counts = np.bincount([tokens[1] for tokens in verifier.tokens], minlength=SIZE) / many
    expected = sampling.laws(table(1))[0]
    assert (np.abs(counts - expected) <= 4 * np.sqrt(expected * (1 - expected) / many)).all()


def test_acceptance_is_one_minus_the_distance_of_the_laws() -> None:
    """Tests that the acceptance of single drafts is 1 - TV, within 4 standard errors."""
    many, sampling = 20_000, Sampling(temperature=1.0, seed=4)
    _, accepted = decode(table(1), table(2), [[0]] * many, [1], sampling)
    verify, draft = (sampling.laws(table(seed))[0] for seed in (1, 2))
    rate = np.minimum(verify, draft).sum()
    assert np.mean(accepted) == pytest.approx(rate, abs=4 * np.sqrt(rate * (1 - rate) / many))


def test_output_does_not_depend_on_the_batch() -> None:
    """Tests that a task has the same tokens alone and in a batch, at any temperature."""
    prompts, sampling = [[0, 1], [2], [3, 3, 3]], Sampling(temperature=1.0, seed=5)
    together, _ = decode(table(1), table(2), prompts, [2] * 5, sampling)
    drafter = Drafter(Bigrams(table(2)), [2], prompts[2:], room=30, sampling=sampling)
    verifier = Verifier(Bigrams(table(1)), [2], prompts[2:], room=30, sampling=sampling)
    for _ in range(5):
        drafts = drafter.draft(2)
        drafter.settle(drafts.tokens, verifier.verify(drafts))
    assert verifier.tokens[0][3:] == together[2]


def test_steps_are_plain_decoding() -> None:
    """Tests that steps without drafts decode greedily at temperature 0, one token each."""
    verifier = Verifier(Bigrams(table(1)), range(2), [[0], [1, 2]], room=20, sampling=Sampling())
    for _ in range(6):
        assert verifier.step().accepted.tolist() == [0, 0]
    assert verifier.tokens[1][2:] == greedy(Bigrams(table(1)), [1, 2], 6)[0]


def test_margins_are_those_of_the_two_largest_logits() -> None:
    """Tests that greedy decoding returns the difference between the two largest logits."""
    logits = table(1)
    tokens, margins = greedy(Bigrams(logits), [0], 3)
    for last, margin in zip([0, *tokens], margins, strict=False):
        assert margin == pytest.approx(np.diff(np.sort(logits[last])[-2:])[0])


def test_first_difference_is_the_first() -> None:
    """Tests that outputs are compared up to the end of the shorter one."""
    assert first_difference([1, 2, 3], [1, 5, 4]) == 1
    assert first_difference([1, 2], [1, 2, 3]) is None


def test_temperatures_below_0_are_refused() -> None:
    """Tests that a negative temperature is rejected with the name of the argument."""
    with pytest.raises(InvalidInput, match="temperature"):
        Sampling(temperature=-0.1)
