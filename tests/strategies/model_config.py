"""Random configs of dense decoders, and values that break one."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

KINDS = (
    "llama",
    "mistral",
    "qwen2",
    "qwen3",
    "opt",
    "gemma",
    "gemma2",
    "gemma3_text",
    "phi3",
    "granite",
    "starcoder2",
    "gpt_neox",
)


@st.composite
def configs(draw: st.DrawFn) -> dict[str, Any]:
    """A small valid config, fields with a default given or not."""
    kind = draw(st.sampled_from(KINDS))
    kv_heads, group, head = (
        draw(st.integers(1, 3)),
        draw(st.integers(1, 3)),
        2 * draw(st.integers(1, 4)),
    )
    heads = kv_heads * group
    config: dict[str, Any] = {
        "model_type": kind,
        "hidden_size": heads * head,
        "num_attention_heads": heads,
        "num_hidden_layers": draw(st.integers(1, 3)),
        "vocab_size": draw(st.integers(1, 50)),
        "ffn_dim" if kind == "opt" else "intermediate_size": draw(st.integers(1, 40)),
    }
    flags = ["tie_word_embeddings"]
    if kind == "opt":
        config["max_position_embeddings"] = draw(st.integers(1, 30))
        config["word_embed_proj_dim"] = draw(st.sampled_from([heads * head, 5]))
        flags += [
            "do_layer_norm_before",
            "_remove_final_layer_norm",
            "enable_bias",
            "layer_norm_elementwise_affine",
        ]
    elif kind != "gpt_neox":
        config["num_key_value_heads"] = kv_heads
    if kind in ("qwen3", "gemma", "gemma2", "gemma3_text") or (
        kind in ("llama", "mistral") and draw(st.booleans())
    ):
        config["head_dim"] = 2 * draw(st.integers(1, 6))
    if kind in ("llama", "qwen3", "gemma", "gemma2", "gemma3_text", "granite", "gpt_neox"):
        flags.append("attention_bias")
    flags += {"llama": ["mlp_bias"], "granite": ["mlp_bias"], "starcoder2": ["use_bias"]}.get(
        kind, []
    )
    for name in flags:
        if draw(st.booleans()):
            config[name] = draw(st.booleans())
    return config


junk = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**30), 10**30) | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=6,
)
