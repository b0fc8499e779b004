"""A tiny pair of random models in double precision, with which the complete code of the laboratory
runs in seconds.

The draft model has the embedding and the first layer of the verify model. The second layer of the
verify model adds little, so that drafts are sometimes accepted.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from testbed.llama import Llama

CONFIG: dict[str, Any] = {
    "model_type": "llama",
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "vocab_size": 61,
    "max_position_embeddings": 512,
    "rms_norm_eps": 1e-5,
    "rope_theta": 10000.0,
    "tie_word_embeddings": True,
}
SPREAD = 0.35
"""Standard deviation of the weights, which is large enough that outputs depend on all previous
tokens.
"""
SECOND_LAYER = 0.3
"""Factor on the weights of the output of the second layer."""


def tiny_verify_model(seed: int = 0) -> Llama:
    """Return the verify model."""
    return Llama(CONFIG, _weights(seed), torch.float64)


def tiny_draft_model(seed: int = 0) -> Llama:
    """Return the draft model that belongs to the verify model of the same seed."""
    return Llama(CONFIG | {"num_hidden_layers": 1}, _weights(seed), torch.float64)


def _weights(seed: int) -> dict[str, Tensor]:
    random = torch.Generator().manual_seed(seed)
    hidden, ffn = CONFIG["hidden_size"], CONFIG["intermediate_size"]
    head = CONFIG["head_dim"]
    query, key = CONFIG["num_attention_heads"] * head, CONFIG["num_key_value_heads"] * head
    shapes: dict[str, tuple[int, ...]] = {
        "model.embed_tokens.weight": (CONFIG["vocab_size"], hidden),
        "model.norm.weight": (hidden,),
    }
    for index in range(CONFIG["num_hidden_layers"]):
        name = f"model.layers.{index}."
        shapes |= {
            f"{name}input_layernorm.weight": (hidden,),
            f"{name}post_attention_layernorm.weight": (hidden,),
            f"{name}self_attn.q_proj.weight": (query, hidden),
            f"{name}self_attn.k_proj.weight": (key, hidden),
            f"{name}self_attn.v_proj.weight": (key, hidden),
            f"{name}self_attn.o_proj.weight": (hidden, query),
            f"{name}mlp.gate_proj.weight": (ffn, hidden),
            f"{name}mlp.up_proj.weight": (ffn, hidden),
            f"{name}mlp.down_proj.weight": (hidden, ffn),
        }
    weights = {
        name: SPREAD * torch.randn(shape, generator=random, dtype=torch.float64)
        + float(len(shape) == 1)
        for name, shape in shapes.items()
    }
    for name in ("self_attn.o_proj", "mlp.down_proj"):
        weights[f"model.layers.1.{name}.weight"] *= SECOND_LAYER
    return weights
