"""The Llama decoder for different lengths, compared with plain passes, and with `transformers` if
it is installed.
"""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("torch")

import torch

from specopt.models.fields import Floats, Ints
from testbed.llama import Llama
from testbed.tiny import CONFIG, tiny_draft_model, tiny_verify_model

SIZE = CONFIG["vocab_size"]


def test_logits_are_those_of_transformers() -> None:
    """Tests that a random checkpoint has the logits that `transformers` computes, with norms in
    single precision.
    """
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(0)
    reference = transformers.LlamaForCausalLM(transformers.LlamaConfig(**CONFIG)).double().eval()
    ours = Llama(CONFIG, reference.state_dict(), torch.float64)
    tokens = np.random.default_rng(0).integers(SIZE, size=(2, 9))
    with torch.inference_mode():
        expected = reference(torch.from_numpy(tokens)).logits.numpy()
    found = ours.logits(tokens, np.array([9, 9]), ours.new_cache(2, 9), 9)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-6)


def test_ragged_batches_compute_what_each_sequence_alone_does() -> None:
    """Tests that other lengths, padding and removed tokens do not affect the logits of a row."""
    model, rng = tiny_verify_model(), np.random.default_rng(1)
    sequences = [rng.integers(SIZE, size=size) for size in (11, 7, 9)]
    firsts, seconds = np.array([6, 2, 5]), np.array([3, 4, 2])
    cache = model.new_cache(3, 20)

    def feed(starts: Ints, counts: Ints) -> Floats:
        padded = rng.integers(SIZE, size=(3, counts.max() + 1))
        for row, sequence in enumerate(sequences):
            padded[row, : counts[row]] = sequence[starts[row] : starts[row] + counts[row]]
        return model.logits(padded, counts, cache, 2)

    feed(np.zeros(3, dtype=np.int64), firsts)
    feed(firsts, seconds)
    cache.lengths = firsts.copy()  # forget the second pass
    found = feed(firsts, seconds)
    assert cache.lengths.tolist() == (firsts + seconds).tolist()
    for row, sequence in enumerate(sequences):
        end = firsts[row] + seconds[row]
        alone = model.logits(sequence[None, :end], np.array([end]), model.new_cache(1, 20), 2)
        np.testing.assert_allclose(found[row], alone[0], rtol=0, atol=1e-12)


def test_layers_run_part_by_part() -> None:
    """Tests that running the layers in two parts equals one pass."""
    model = tiny_verify_model()
    tokens = np.random.default_rng(2).integers(SIZE, size=(1, 6))
    cache = model.new_cache(1, 6)
    with torch.inference_mode():
        hidden = model.run(model.run(model.embed(tokens), cache, range(1)), cache, range(1, 2))
        found = model.score(hidden, np.array([6]), 6)
    assert (found == model.logits(tokens, np.array([6]), model.new_cache(1, 6), 6)).all()


def test_tiny_models_are_seeded_and_akin() -> None:
    """Tests that a seed determines the pair, and that its draft model agrees with the verify model
    often but not always.
    """
    tokens = np.random.default_rng(3).integers(SIZE, size=(20, 12))
    counts = np.full(20, 12)
    found = [
        model.logits(tokens, counts, model.new_cache(20, 12), 12)
        for model in (
            tiny_verify_model(),
            tiny_verify_model(),
            tiny_draft_model(),
            tiny_verify_model(1),
        )
    ]
    assert (found[0] == found[1]).all()
    assert (found[0] != found[3]).any()
    assert 0.2 < (found[0].argmax(-1) == found[2].argmax(-1)).mean() < 0.95
