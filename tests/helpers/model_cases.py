"""Shapes of models whose counts are known, as their configs on the hub state them, and small ones
of every type.
"""

from __future__ import annotations

from typing import Any

Config = dict[str, Any]


def config(
    model_type: str, layers: int, hidden: int, ffn: int, heads: int, vocabulary: int, **more: Any
) -> Config:
    """A config of these sizes."""
    return {
        "model_type": model_type,
        "num_hidden_layers": layers,
        "hidden_size": hidden,
        "intermediate_size": ffn,
        "num_attention_heads": heads,
        "vocab_size": vocabulary,
    } | more


HYBRID = {
    "linear_conv_kernel_dim": 4,
    "linear_key_head_dim": 128,
    "linear_value_head_dim": 128,
    "linear_num_key_heads": 16,
    "linear_num_value_heads": 48,
    "full_attention_interval": 4,
}
LATENT = {"kv_lora_rank": 512, "qk_rope_head_dim": 64, "qk_nope_head_dim": 128, "v_head_dim": 128}

QWEN3_30B = config(
    "qwen3_moe",
    48,
    2048,
    6144,
    32,
    151936,
    head_dim=128,
    num_key_value_heads=4,
    num_experts=128,
    num_experts_per_tok=8,
    moe_intermediate_size=768,
    decoder_sparse_step=1,
    mlp_only_layers=[],
    tie_word_embeddings=False,
)
MIXTRAL = config(
    "mixtral",
    32,
    4096,
    14336,
    32,
    32000,
    num_key_value_heads=8,
    num_local_experts=8,
    num_experts_per_tok=2,
    sliding_window=None,
)
DEEPSEEK_V2_LITE = config(
    "deepseek_v2",
    27,
    2048,
    10944,
    16,
    102400,
    num_key_value_heads=16,
    n_routed_experts=64,
    n_shared_experts=2,
    num_experts_per_tok=6,
    moe_intermediate_size=1408,
    first_k_dense_replace=1,
    moe_layer_freq=1,
    q_lora_rank=None,
    **LATENT,
)
DEEPSEEK_V3 = config(
    "deepseek_v3",
    61,
    7168,
    18432,
    128,
    129280,
    num_key_value_heads=128,
    n_routed_experts=256,
    n_shared_experts=1,
    num_experts_per_tok=8,
    moe_intermediate_size=2048,
    first_k_dense_replace=3,
    moe_layer_freq=1,
    q_lora_rank=1536,
    num_nextn_predict_layers=1,
    **LATENT,
)
QWEN35_27B: Config = {
    "model_type": "qwen3_5",
    "tie_word_embeddings": False,
    "text_config": config(
        "qwen3_5_text",
        64,
        5120,
        17408,
        24,
        248320,
        head_dim=256,
        num_key_value_heads=4,
        layer_types=["linear_attention", "linear_attention", "linear_attention", "full_attention"]
        * 16,
        mtp_num_hidden_layers=1,
        mtp_use_dedicated_embeddings=False,
        mamba_ssm_dtype="float32",
        attn_output_gate=True,
        **HYBRID,
    ),
}
GEMMA4_26B: Config = {
    "model_type": "gemma4",
    "text_config": config(
        "gemma4_text",
        30,
        2816,
        2112,
        16,
        262144,
        head_dim=256,
        num_key_value_heads=8,
        num_global_key_value_heads=2,
        global_head_dim=512,
        attention_k_eq_v=True,
        enable_moe_block=True,
        num_experts=128,
        top_k_experts=8,
        moe_intermediate_size=704,
        hidden_size_per_layer_input=0,
        num_kv_shared_layers=0,
        sliding_window=1024,
        layer_types=(["sliding_attention"] * 5 + ["full_attention"]) * 5,
        use_bidirectional_attention="vision",
        tie_word_embeddings=True,
    ),
    "vision_config": {
        "hidden_size": 1152,
        "intermediate_size": 4304,
        "num_hidden_layers": 27,
        "num_attention_heads": 16,
        "num_key_value_heads": 16,
        "head_dim": 72,
        "patch_size": 16,
        "position_embedding_size": 10240,
    },
}
MIMO_7B = config(
    "mimo",
    36,
    4096,
    11008,
    32,
    151680,
    num_key_value_heads=8,
    head_dim=128,
    attention_bias=True,
    num_nextn_predict_layers=1,
    use_sliding_window=False,
    sliding_window=32768,
    max_window_layers=32,
)
GPT_OSS_20B = config(
    "gpt_oss",
    24,
    2880,
    2880,
    64,
    201088,
    head_dim=64,
    num_key_value_heads=8,
    num_local_experts=32,
    num_experts_per_tok=4,
    sliding_window=128,
)
LLAMA_8B = config("llama", 32, 4096, 14336, 32, 128256, num_key_value_heads=8)
EAGLE3_8B = LLAMA_8B | {
    "architectures": ["LlamaForCausalLMEagle3"],
    "num_hidden_layers": 1,
    "draft_vocab_size": 32000,
}

_SMALL: Config = {"num_key_value_heads": 2, "head_dim": 16}
_EXPERTS: Config = {"num_experts": 8, "num_experts_per_tok": 2, "moe_intermediate_size": 24}
_ROUTED: Config = {
    "n_routed_experts": 8,
    "num_experts_per_tok": 2,
    "moe_intermediate_size": 24,
    "n_shared_experts": 2,
    "first_k_dense_replace": 1,
}
_DELTA: Config = {
    "linear_num_key_heads": 2,
    "linear_num_value_heads": 4,
    "linear_key_head_dim": 8,
    "linear_value_head_dim": 12,
    "linear_conv_kernel_dim": 4,
    "full_attention_interval": 4,
}
_RANKS: Config = {
    "kv_lora_rank": 20,
    "q_lora_rank": 28,
    "qk_nope_head_dim": 8,
    "qk_rope_head_dim": 4,
    "v_head_dim": 12,
}


def small(model_type: str, **more: Any) -> Config:
    """A small config with four layers."""
    return config(model_type, 4, 64, 96, 4, 112, **more)


SMALL: dict[str, Config] = {
    "llama": small("llama", attention_bias=True, mlp_bias=True, **_SMALL),
    "mistral": small("mistral", **_SMALL),
    "qwen3": small("qwen3", **_SMALL),
    "gemma3": small("gemma3_text", **_SMALL),
    "qwen3_moe": small("qwen3_moe", **_SMALL, **_EXPERTS),
    "qwen3_moe with dense layers": small(
        "qwen3_moe",
        **_SMALL,
        **_EXPERTS,
        decoder_sparse_step=2,
        mlp_only_layers=[1],
        attention_bias=True,
        tie_word_embeddings=True,
    ),
    "qwen2_moe": small(
        "qwen2_moe", num_key_value_heads=2, **_EXPERTS, shared_expert_intermediate_size=40
    ),
    "mixtral": small("mixtral", **_SMALL, num_local_experts=4, num_experts_per_tok=2),
    "qwen3_next": small(
        "qwen3_next", **_SMALL, **_EXPERTS, **_DELTA, shared_expert_intermediate_size=40
    ),
    "qwen3_5": small("qwen3_5_text", **_SMALL, **_DELTA),
    "qwen3_5_moe": small(
        "qwen3_5_moe_text", **_SMALL, **_EXPERTS, **_DELTA, shared_expert_intermediate_size=40
    ),
    "deepseek_v2": small(
        "deepseek_v2", num_key_value_heads=4, **_ROUTED, **(_RANKS | {"q_lora_rank": None})
    ),
    "deepseek_v3": small(
        "deepseek_v3", num_key_value_heads=4, attention_bias=True, **_ROUTED, **_RANKS
    ),
    "glm4_moe": small("glm4_moe", **_SMALL, **_ROUTED, use_qk_norm=True, attention_bias=True),
    "gpt_oss": small(
        "gpt_oss", **_SMALL, num_local_experts=4, num_experts_per_tok=2, sliding_window=8
    ),
    "gemma4": small(
        "gemma4_text",
        **_SMALL,
        num_experts=8,
        top_k_experts=2,
        moe_intermediate_size=24,
        enable_moe_block=True,
        attention_k_eq_v=True,
        global_head_dim=32,
        num_global_key_value_heads=1,
        hidden_size_per_layer_input=0,
        sliding_window=8,
        layer_types=["sliding_attention"] * 3 + ["full_attention"],
    ),
    "gemma4 with embeddings per layer": small(
        "gemma4_text",
        **_SMALL,
        global_head_dim=32,
        hidden_size_per_layer_input=8,
        vocab_size_per_layer_input=112,
        num_kv_shared_layers=2,
        use_double_wide_mlp=True,
        sliding_window=8,
        layer_types=["sliding_attention", "full_attention"] * 2,
    ),
    "ministral3": small("ministral3", **_SMALL),
    "smollm3": small("smollm3", num_key_value_heads=2, attention_bias=True, mlp_bias=True),
    "dots1": small("dots1", **_SMALL, **_ROUTED),
    "gemma4 without experts": small(
        "gemma4_text",
        **_SMALL,
        global_head_dim=32,
        hidden_size_per_layer_input=0,
        sliding_window=8,
        layer_types=["sliding_attention"] * 3 + ["full_attention"],
    ),
}
"""Small configs of the types that are not in `strategies_model_config`, and of what they can switch
on.
"""

META_COUNTS = {
    "llama": 139_584,
    "mistral": 137_792,
    "qwen3": 137_920,
    "gemma3": 131_264,
    "qwen3_moe": 213_696,
    "qwen3_moe with dense layers": 150_464,
    "qwen2_moe": 245_056,
    "mixtral": 360_000,
    "qwen3_next": 248_156,
    "qwen3_5": 141_404,
    "qwen3_5_moe": 248_156,
    "deepseek_v2": 210_320,
    "deepseek_v3": 211_152,
    "glm4_moe": 222_912,
    "gemma4 with embeddings per layer": 190_424,
    "ministral3": 137_792,
    "smollm3": 132_416,
    "dots1": 222_400,
    "gpt_oss": 364_896,
    "gemma4": 288_000,
    "gemma4 without experts": 143_584,
}
"""Parameters of `SMALL` as transformers 5.23 counts them when it builds them on the meta device."""
