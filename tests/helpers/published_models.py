"""Models of today as their public configs describe them, with what their published checkpoints
hold.

Sources: the config.json and the safetensors headers of each model on the Hugging Face hub.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from helpers.model_cases import LATENT, Config

GIB = 2**30


def spread(first: int, period: int, layers: int, inside: object, between: object) -> list[object]:
    """One kind in every `period`-th layer from `first` on, another one between."""
    return [
        inside if index >= first and (index - first) % period == 0 else between
        for index in range(layers)
    ]


INT4_EXPERTS: Config = {
    "quant_method": "compressed-tensors",
    "config_groups": {
        "group_0": {
            "targets": ["Linear"],
            "input_activations": None,
            "weights": {
                "num_bits": 4,
                "type": "int",
                "strategy": "group",
                "group_size": 32,
                "symmetric": True,
            },
        }
    },
    "ignore": [
        "lm_head",
        "re:.*self_attn.*",
        "re:.*shared_experts.*",
        "re:.*mlp\\.(gate|up|gate_up|down)_proj.*",
    ],
}
FP8: Config = {
    "quant_method": "fp8",
    "activation_scheme": "dynamic",
    "weight_block_size": [128, 128],
    "fmt": "e4m3",
    "scale_fmt": "ue8m0",
}

DEEPSEEK_V32: Config = {
    "architectures": ["DeepseekV32ForCausalLM"],
    "model_type": "deepseek_v32",
    "hidden_size": 7168,
    "intermediate_size": 18432,
    "moe_intermediate_size": 2048,
    "num_hidden_layers": 61,
    "num_attention_heads": 128,
    "num_key_value_heads": 128,
    "n_routed_experts": 256,
    "n_shared_experts": 1,
    "num_experts_per_tok": 8,
    "first_k_dense_replace": 3,
    "moe_layer_freq": 1,
    "q_lora_rank": 1536,
    "index_head_dim": 128,
    "index_n_heads": 64,
    "index_topk": 2048,
    "num_nextn_predict_layers": 1,
    "vocab_size": 129280,
    "ep_size": 1,
    "quantization_config": FP8,
    **LATENT,
}
DEEPSEEK_V4_FLASH: Config = {
    "architectures": ["DeepseekV4ForCausalLM"],
    "model_type": "deepseek_v4",
    "attention_bias": False,
    "hc_eps": 1e-06,
    "hc_mult": 4,
    "hc_sinkhorn_iters": 20,
    "head_dim": 512,
    "hidden_size": 4096,
    "index_head_dim": 128,
    "index_n_heads": 64,
    "index_topk": 512,
    "moe_intermediate_size": 2048,
    "n_routed_experts": 256,
    "n_shared_experts": 1,
    "num_attention_heads": 64,
    "num_experts_per_tok": 6,
    "num_hidden_layers": 43,
    "num_hash_layers": 3,
    "num_key_value_heads": 1,
    "num_nextn_predict_layers": 1,
    "o_groups": 8,
    "o_lora_rank": 1024,
    "q_lora_rank": 1024,
    "qk_rope_head_dim": 64,
    "quantization_config": FP8,
    "sliding_window": 128,
    "tie_word_embeddings": False,
    "vocab_size": 129280,
    "compress_rope_theta": 160000,
    "compress_ratios": [0, 0, *spread(0, 2, 41, 4, 128), 0],
}
DEEPSEEK_V4_PRO = DEEPSEEK_V4_FLASH | {
    "hidden_size": 7168,
    "index_topk": 1024,
    "moe_intermediate_size": 3072,
    "n_routed_experts": 384,
    "num_attention_heads": 128,
    "num_hidden_layers": 61,
    "o_groups": 16,
    "q_lora_rank": 1536,
    "compress_ratios": [128, 128, *spread(0, 2, 59, 4, 128), 0],
}
GLM_5: Config = {
    "architectures": ["GlmMoeDsaForCausalLM"],
    "model_type": "glm_moe_dsa",
    "attention_bias": False,
    "ep_size": 1,
    "first_k_dense_replace": 3,
    "head_dim": 64,
    "hidden_size": 6144,
    "index_head_dim": 128,
    "index_n_heads": 32,
    "index_topk": 2048,
    "indexer_rope_interleave": True,
    "intermediate_size": 12288,
    "kv_lora_rank": 512,
    "moe_intermediate_size": 2048,
    "moe_layer_freq": 1,
    "n_routed_experts": 256,
    "n_shared_experts": 1,
    "num_attention_heads": 64,
    "num_experts_per_tok": 8,
    "num_hidden_layers": 78,
    "num_key_value_heads": 64,
    "num_nextn_predict_layers": 1,
    "q_lora_rank": 2048,
    "qk_head_dim": 256,
    "qk_nope_head_dim": 192,
    "qk_rope_head_dim": 64,
    "tie_word_embeddings": False,
    "v_head_dim": 256,
    "vocab_size": 154880,
}
GLM_47_FLASH: Config = {
    "architectures": ["Glm4MoeLiteForCausalLM"],
    "model_type": "glm4_moe_lite",
    "hidden_size": 2048,
    "intermediate_size": 10240,
    "moe_intermediate_size": 1536,
    "num_attention_heads": 20,
    "n_routed_experts": 64,
    "n_shared_experts": 1,
    "num_experts_per_tok": 4,
    "first_k_dense_replace": 1,
    "num_hidden_layers": 47,
    "num_key_value_heads": 20,
    "num_nextn_predict_layers": 1,
    "q_lora_rank": 768,
    "kv_lora_rank": 512,
    "qk_nope_head_dim": 192,
    "qk_rope_head_dim": 64,
    "v_head_dim": 256,
    "vocab_size": 154880,
}
KIMI_LINEAR: Config = {
    "architectures": ["KimiLinearForCausalLM"],
    "model_type": "kimi_linear",
    "first_k_dense_replace": 1,
    "head_dim": 72,
    "hidden_size": 2304,
    "intermediate_size": 9216,
    "linear_attn_config": {
        "full_attn_layers": [4, 8, 12, 16, 20, 24, 27],
        "head_dim": 128,
        "num_heads": 32,
        "short_conv_kernel_size": 4,
        "kda_layers": [index for index in range(1, 27) if index % 4],
    },
    "mla_use_nope": True,
    "moe_intermediate_size": 1024,
    "moe_layer_freq": 1,
    "moe_renormalize": True,
    "num_attention_heads": 32,
    "num_experts": 256,
    "num_experts_per_token": 8,
    "num_hidden_layers": 27,
    "num_key_value_heads": 32,
    "num_nextn_predict_layers": 0,
    "num_shared_experts": 1,
    "q_lora_rank": None,
    "vocab_size": 163840,
    **LATENT,
}
KIMI_K25: Config = {
    "architectures": ["KimiK25ForConditionalGeneration"],
    "model_type": "kimi_k25",
    "text_config": {
        "architectures": ["DeepseekV3ForCausalLM"],
        "model_type": "deepseek_v3",
        "first_k_dense_replace": 1,
        "hidden_size": 7168,
        "intermediate_size": 18432,
        "moe_intermediate_size": 2048,
        "moe_layer_freq": 1,
        "n_routed_experts": 384,
        "n_shared_experts": 1,
        "num_attention_heads": 64,
        "num_experts_per_tok": 8,
        "num_hidden_layers": 61,
        "num_key_value_heads": 64,
        "num_nextn_predict_layers": 0,
        "q_lora_rank": 1536,
        "vocab_size": 163840,
        "pruned_heads": {},
        "quantization_config": INT4_EXPERTS,
        **LATENT,
    },
    "vision_config": {"vt_hidden_size": 1152},
}
_K3_FULL = [*range(4, 93, 4), 93]
KIMI_K3: Config = {
    "architectures": ["KimiK3ForConditionalGeneration"],
    "model_type": "kimi_k3",
    "text_config": {
        "architectures": ["KimiLinearForCausalLM"],
        "model_type": "kimi_linear",
        "attn_res_block_size": 12,
        "first_k_dense_replace": 1,
        "hidden_size": 7168,
        "intermediate_size": 33792,
        "latent_moe_use_norm": True,
        "linear_attn_config": {
            "full_attn_layers": _K3_FULL,
            "kda_layers": [index for index in range(1, 93) if index not in _K3_FULL],
            "gate_lower_bound": -5.0,
            "head_dim": 128,
            "num_heads": 96,
            "short_conv_kernel_size": 4,
            "use_full_rank_gate": True,
        },
        "mla_use_nope": True,
        "mla_use_output_gate": True,
        "moe_intermediate_size": 3072,
        "moe_layer_freq": 1,
        "num_attention_heads": 96,
        "num_experts": 896,
        "num_experts_per_token": 16,
        "num_hidden_layers": 93,
        "num_key_value_heads": 96,
        "num_nextn_predict_layers": 0,
        "num_shared_experts": 2,
        "q_lora_rank": 1536,
        "routed_expert_hidden_size": 3584,
        "vocab_size": 163840,
        **LATENT,
        "quantization_config": INT4_EXPERTS
        | {
            "config_groups": {
                "group_0": {
                    "targets": ["Linear"],
                    "weights": {
                        "num_bits": 4,
                        "type": "float",
                        "strategy": "group",
                        "group_size": 32,
                        "symmetric": True,
                    },
                }
            }
        },
    },
    "vision_config": {"vt_hidden_size": 1024},
}
MINIMAX_M2: Config = {
    "architectures": ["MiniMaxM2ForCausalLM"],
    "model_type": "minimax_m2",
    "attn_type_list": [1] * 62,
    "head_dim": 128,
    "hidden_size": 3072,
    "intermediate_size": 1536,
    "mtp_transformer_layers": 1,
    "num_attention_heads": 48,
    "num_experts_per_tok": 8,
    "num_hidden_layers": 62,
    "num_key_value_heads": 8,
    "num_local_experts": 256,
    "num_mtp_modules": 3,
    "qk_norm_type": "per_layer",
    "shared_intermediate_size": 0,
    "use_mtp": True,
    "use_qk_norm": True,
    "use_routing_bias": True,
    "vocab_size": 200064,
    "quantization_config": FP8
    | {"modules_to_not_convert": ["gate", "e_score_correction_bias", "lm_head"]},
}
MINIMAX_M3: Config = {
    "architectures": ["MiniMaxM3SparseForConditionalGeneration"],
    "model_type": "minimax_m3_vl",
    "text_config": {
        "architectures": ["MiniMaxM3SparseForCausalLM"],
        "hidden_size": 6144,
        "intermediate_size": 3072,
        "num_hidden_layers": 60,
        "num_attention_heads": 64,
        "num_key_value_heads": 4,
        "head_dim": 128,
        "vocab_size": 200064,
        "attention_output_gate": False,
        "use_qk_norm": True,
        "tie_word_embeddings": False,
        "dense_intermediate_size": 12288,
        "shared_intermediate_size": 3072,
        "num_local_experts": 128,
        "num_experts_per_tok": 4,
        "n_shared_experts": 1,
        "moe_layer_freq": [0] * 3 + [1] * 57,
        "qk_norm_type": "per_head",
        "num_mtp_modules": 7,
        "num_nextn_predict_layers": 1,
        "sparse_attention_config": {
            "use_sparse_attention": True,
            "sparse_index_dim": 128,
            "sparse_num_index_heads": 4,
            "sparse_disable_index_value": [0] * 3 + [1] * 57,
            "sparse_attention_freq": [0] * 3 + [1] * 57,
        },
    },
    "vision_config": {"hidden_size": 1280},
}
MIMO_V25_PRO: Config = {
    "architectures": ["MiMoV2ForCausalLM"],
    "model_type": "mimo_v2",
    "add_full_attention_sink_bias": False,
    "add_swa_attention_sink_bias": True,
    "attention_bias": False,
    "attention_chunk_size": 128,
    "attention_projection_layout": "fused_qkv",
    "attention_value_scale": 0.612,
    "head_dim": 192,
    "hidden_size": 6144,
    "hybrid_layer_pattern": [0, *[1] * 6, *[0, *[1] * 7] * 6, *[0, *[1] * 6] * 2, 0],
    "intermediate_size": 16384,
    "moe_intermediate_size": 2048,
    "moe_layer_freq": [0] + [1] * 69,
    "n_routed_experts": 384,
    "n_shared_experts": None,
    "num_attention_heads": 128,
    "num_experts_per_tok": 8,
    "num_hidden_layers": 70,
    "num_key_value_heads": 8,
    "sliding_window": 128,
    "sliding_window_size": 128,
    "swa_head_dim": 192,
    "swa_num_attention_heads": 128,
    "swa_num_key_value_heads": 8,
    "swa_v_head_dim": 128,
    "v_head_dim": 128,
    "vocab_size": 152576,
    "quantization_config": FP8
    | {"ignored_layers": [f"model.layers.{index}.self_attn.o_proj" for index in range(70)]},
}
NEMOTRON_3_NANO: Config = {
    "architectures": ["NemotronHForCausalLM"],
    "model_type": "nemotron_h",
    "attention_bias": False,
    "chunk_size": 128,
    "conv_kernel": 4,
    "expand": 2,
    "head_dim": 128,
    "hidden_size": 2688,
    "intermediate_size": 1856,
    "hybrid_override_pattern": "MEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEMEM*EMEMEMEME",
    "mamba_head_dim": 64,
    "mamba_num_heads": 64,
    "mamba_proj_bias": False,
    "mlp_bias": False,
    "moe_intermediate_size": 1856,
    "moe_shared_expert_intermediate_size": 3712,
    "n_groups": 8,
    "n_routed_experts": 128,
    "n_shared_experts": 1,
    "num_attention_heads": 32,
    "num_experts_per_tok": 6,
    "num_hidden_layers": 52,
    "num_key_value_heads": 2,
    "ssm_state_size": 128,
    "use_bias": False,
    "use_conv_bias": True,
    "vocab_size": 131072,
}
QWEN_DSPARK: Config = {
    "architectures": ["DSparkDraftModel"],
    "model_type": "qwen3",
    "block_size": 7,
    "num_hidden_layers": 5,
    "hidden_size": 5120,
    "intermediate_size": 10240,
    "num_attention_heads": 40,
    "num_key_value_heads": 8,
    "head_dim": 128,
    "num_target_layers": 64,
    "vocab_size": 248320,
    "dflash_config": {
        "target_layer_ids": [4, 16, 28, 40, 52],
        "markov_rank": 256,
        "projector_type": "dspark",
    },
}

_M3_VISION = (
    1280 * 3 * 2 * 14 * 14
    + 2 * 1280
    + 32 * (4 * 1280 * 1281 + 2 * 5120 * 1280 + 5120 + 1280 + 4 * 1280)
    + 6144 * 1281
    + 6144 * 24577
    + 2 * 6144 * 6145
)


@dataclass(frozen=True)
class Checkpoint:
    """Values in a published checkpoint, and of them those that are no parameters of decoder and
    head.
    """

    config: Any
    values: int
    corrections: int = 0
    other: int = 0


CHECKPOINTS = {
    "Kimi-Linear-48B-A3B": Checkpoint(KIMI_LINEAR, 49_122_681_728, 26 * 256),
    "GLM-5": Checkpoint(GLM_5, 753_864_139_008, 76 * 256),
    "GLM-5.2": Checkpoint(
        GLM_5 | {"index_topk_freq": 4, "index_skip_topk_offset": 3}, 753_329_940_480, 76 * 256
    ),
    "GLM-4.7-Flash": Checkpoint(GLM_47_FLASH, 31_221_488_576, 47 * 64, other=2 * 154880 * 2048),
    "MiniMax-M3": Checkpoint(MINIMAX_M3, 427_040_140_160, 57 * 128, other=_M3_VISION),
    "Nemotron-3-Nano-30B-A3B": Checkpoint(NEMOTRON_3_NANO, 31_577_937_344),
}
"""Corrections of routers are buffers; the other values are copies of embeddings, or image encoders.
"""

BYTES = {
    "DeepSeek-V3.2": (DEEPSEEK_V32, 642.12, 2 * 2 * 129280 * 7168 / GIB),
    "DeepSeek-V4-Flash": (DEEPSEEK_V4_FLASH, 148.65, 0.0),
    "DeepSeek-V4-Pro": (DEEPSEEK_V4_PRO, 805.32, 0.0),
    "Kimi-K2.5": (KIMI_K25, 554.27, 0.9),
    "Kimi-K3": (KIMI_K3, 1453.66, 0.8),
    "MiniMax-M2.7": (MINIMAX_M2, 214.32, 0.0),
    "MiMo-V2.5-Pro": (MIMO_V25_PRO, 962.40, 1.84),
}
"""GiB of all tensors; of them those of copies of embeddings, image encoders, or layers that a
config does not name.
"""
