"""The tensors of a decoder, listed one by one from its raw config: a second route to every
parameter count.
"""

from __future__ import annotations

from math import prod
from typing import Any


def tensors(config: dict[str, Any]) -> list[tuple[int, ...]]:
    """The shape of every weight and bias, as the checkpoints of these models hold them."""
    kind = config["model_type"]
    hidden, heads, vocabulary = (
        config["hidden_size"],
        config["num_attention_heads"],
        config["vocab_size"],
    )
    kv_heads = config.get("num_key_value_heads") or heads
    head = config.get("head_dim") or hidden // heads
    ffn = config["ffn_dim"] if kind == "opt" else config["intermediate_size"]
    embedding = config.get("word_embed_proj_dim", hidden)
    found: list[tuple[int, ...]] = [(vocabulary, embedding)]
    if not config.get(
        "tie_word_embeddings", kind in ("opt", "gemma", "gemma2", "gemma3_text", "starcoder2")
    ):
        found.append((vocabulary, embedding))
    norm: list[tuple[int, ...]] = (
        [(hidden,), (hidden,)] if kind in ("opt", "starcoder2", "gpt_neox") else [(hidden,)]
    )
    if not config.get("layer_norm_elementwise_affine", True):
        norm = []
    if kind == "opt":
        found.append((config["max_position_embeddings"] + 2, hidden))
        if embedding != hidden:
            found += [(embedding, hidden), (hidden, embedding)]
    if config.get("do_layer_norm_before", True) and not config.get(
        "_remove_final_layer_norm", False
    ):
        found += norm
    biased = {
        "opt": config.get("enable_bias", True),
        "starcoder2": config.get("use_bias", True),
        "gpt_neox": config.get("attention_bias", True),
    }.get(kind, config.get("attention_bias", False))
    for _ in range(config["num_hidden_layers"]):
        found += [
            (heads * head, hidden),
            (kv_heads * head, hidden),
            (kv_heads * head, hidden),
            (hidden, heads * head),
        ]
        if biased or kind == "qwen2":
            found += [(heads * head,), (kv_heads * head,), (kv_heads * head,)]
        if biased:
            found.append((hidden,))
        if kind in ("qwen3", "gemma3_text"):
            found += [(head,), (head,)]
        found += (4 if kind in ("gemma2", "gemma3_text") else 2) * norm
        if kind in ("opt", "starcoder2", "gpt_neox"):
            found += [(ffn, hidden), (hidden, ffn)]
            if {"opt": biased, "starcoder2": biased}.get(kind, True):
                found += [(ffn,), (hidden,)]
        else:
            found += [(ffn, hidden), (ffn, hidden), (hidden, ffn)]
            if config.get("mlp_bias", False):
                found += [(ffn,), (ffn,), (hidden,)]
    return found


def parameters(config: dict[str, Any]) -> int:
    """All of their entries."""
    return sum(map(prod, tensors(config)))


def kv_values(config: dict[str, Any]) -> int:
    """Values cached per token."""
    heads = config["num_attention_heads"]
    head = config.get("head_dim") or config["hidden_size"] // heads
    return (
        2
        * int(config["num_hidden_layers"])
        * int(config.get("num_key_value_heads") or heads)
        * int(head)
    )
