"""The decoder that is timed, where torch is installed: its values, its cache, its parameters."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies.model_config import configs

from specopt import Unsupported
from specopt.instances.checkpoints.model_config import parse_model_config

torch: Any = pytest.importorskip("torch", reason="the extra `measure` is not installed")


def decoder(data: dict[str, Any]) -> Any:
    """A decoder of a config in double precision, with biases and norms that matter."""
    from specopt.measuring.torch_decoder import TorchDecoder

    made = TorchDecoder(parse_model_config(data), device=torch.device("cpu"), dtype=torch.float64)
    random = torch.Generator()
    random.manual_seed(1)
    for tensor in tensors_of(made):
        tensor.add_(0.3 * torch.empty(tensor.shape, dtype=tensor.dtype).normal_(generator=random))
    return made


def tensors_of(made: Any) -> list[Any]:
    """The weights and biases of a decoder, each once: a tied head is the embedding."""
    pairs = [made.final_norm] if made.final_norm is not None else []
    for layer in made.layers:
        pairs += [*layer.norms, *layer.head_norms, layer.qkv, layer.output, layer.up, layer.down]
    found = [made.embedding, made.head, made.positions, *(one for pair in pairs for one in pair)]
    return list({id(one): one for one in found if one is not None}.values())


def forward(
    made: Any, tokens: Any, cached: int, logits: int, cache: Any, stored: bool | None = None
) -> Any:
    """One pass."""
    rotation, mask = (
        made.rotation(cached + tokens.shape[1]),
        made.mask(tokens.shape[1], cached, stored=stored),
    )
    return made.forward(tokens, cache, cached, logits, rotation, mask)


@given(configs(), st.integers(1, 3))
@settings(max_examples=40)
def test_parameters_are_those_of_the_config(data: dict[str, Any], batch: int) -> None:
    """Tests that the tensors made have as many values as the config is said to have, in weights and
    in cache.
    """
    config = parse_model_config(data)
    if config.projected:
        with pytest.raises(Unsupported, match="projection"):
            decoder(data)
        return
    made = decoder(data)
    assert sum(tensor.numel() for tensor in tensors_of(made)) == config.parameters
    cache = made.new_cache(batch, 3)
    assert 2 * sum(k.numel() + v.numel() for k, v in cache) == batch * 3 * config.kv_bytes_per_token


@given(configs(), st.integers(1, 5), st.integers(1, 4), st.integers(1, 2))
@settings(max_examples=40)
def test_cached_passes_are_one_long_pass(
    data: dict[str, Any], first: int, second: int, batch: int
) -> None:
    """Tests that a prefill and a verification behind it score as one prefill of everything, with a
    mask or without.
    """
    if parse_model_config(data).projected:
        data = data | {"word_embed_proj_dim": data["hidden_size"]}
    data = data | ({"max_position_embeddings": 30} if data["model_type"] == "opt" else {})
    made = decoder(data)
    tokens = torch.arange(batch * (first + second)).reshape(batch, -1) % data["vocab_size"]
    whole = forward(made, tokens, 0, second, made.new_cache(batch, first + second))
    for stored in (None, True, False):
        cache = made.new_cache(batch, first + second)
        forward(made, tokens[:, :first], 0, 1, cache)
        parts = forward(made, tokens[:, first:], first, second, cache, stored)
        assert parts.shape == (batch, second, data["vocab_size"])
        assert torch.allclose(whole, parts, rtol=1e-9, atol=1e-9)


def test_a_gpus_verification_stores_no_mask() -> None:
    """Tests that no tensor of new by cached tokens is made for a GPU, nor for a pass that needs
    none anywhere.
    """
    made = decoder(
        {
            "model_type": "llama",
            "hidden_size": 8,
            "intermediate_size": 8,
            "num_hidden_layers": 1,
            "num_attention_heads": 2,
            "vocab_size": 10,
        }
    )
    assert tuple(made.mask(3, 5).shape) == (3, 8)
    made.device = torch.device("cuda")
    bias = made.mask(3, 5)
    assert (type(bias).__name__, bias.seq_len_q, bias.seq_len_kv) == ("CausalBias", 3, 8)
    assert made.mask(1, 5) is None
    assert made.mask(3, 0) is None


def test_values_are_those_of_a_plain_decoder() -> None:
    """Tests that logits agree with attention in plain loops: grouped heads, gate, rotary
    positions.
    """
    data = {
        "model_type": "llama",
        "hidden_size": 12,
        "intermediate_size": 7,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "head_dim": 6,
        "vocab_size": 11,
        "attention_bias": True,
    }
    made = decoder(data)
    tokens = torch.tensor([[3, 1, 4, 1, 5]])
    found = forward(made, tokens, 0, 5, made.new_cache(1, 5)).numpy()[0]

    def norm(x: Any, weight: Any) -> Any:
        return x / np.sqrt((x**2).mean(axis=-1, keepdims=True) + 1e-5) * weight

    def turned(vector: Any, place: int) -> Any:
        out = vector.copy()
        for i in range(3):
            angle = place * 10_000.0 ** (-i / 3)
            a, b = vector[i], vector[i + 3]
            out[i] = a * math.cos(angle) - b * math.sin(angle)
            out[i + 3] = b * math.cos(angle) + a * math.sin(angle)
        return out

    x = made.embedding.numpy()[tokens.numpy()[0]]
    for layer in made.layers:
        h = norm(x, layer.norms[0][0].numpy())
        qkv = (h @ layer.qkv[0].numpy().T + layer.qkv[1].numpy()).reshape(5, 8, 6)
        mixed = np.zeros((5, 24))
        for t in range(5):
            for head in range(4):
                q = turned(qkv[t, head], t)
                scores = np.array(
                    [q @ turned(qkv[s, 4 + head // 2], s) for s in range(t + 1)]
                ) / math.sqrt(6)
                weights = np.exp(scores - scores.max())
                weights /= weights.sum()
                mixed[t, 6 * head : 6 * head + 6] = sum(
                    weights[s] * qkv[s, 6 + head // 2] for s in range(t + 1)
                )
        x = x + mixed @ layer.output[0].numpy().T + layer.output[1].numpy()
        both = norm(x, layer.norms[1][0].numpy()) @ layer.up[0].numpy().T
        gate, up = both[:, :7], both[:, 7:]
        x = x + (gate / (1 + np.exp(-gate)) * up) @ layer.down[0].numpy().T
    expected = norm(x, made.final_norm[0].numpy()) @ made.head.numpy().T
    np.testing.assert_allclose(
        found, expected, rtol=1e-5, atol=1e-6
    )  # angles are in single precision
