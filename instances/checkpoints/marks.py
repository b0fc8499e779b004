"""Fields of configs that mean what only some model types have; elsewhere they are refused by name, never ignored."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

EXPERTS = "mixture-of-experts models"
LATENT = "multi-head latent attention"
HYBRID = "state-space and hybrid layers"
INDEXED = "attention to indexed or compressed tokens"
STREAMS = "residual streams that are mixed"
GATES = "gates and heads of single kinds of layers"
ENCODERS = "encoder-decoder models and cross attention"
UNEQUAL = "layers that differ from each other"
SINGLE = "values of single layers"
PREDICTING = "decoders with further heads for drafting"
DRAFTS = "draft heads of their own"
BOTH_WAYS = "models that are no decoders"

MARKS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        EXPERTS: ("*expert*", "moe*"),
        LATENT: ("kv_lora_rank", "q_lora_rank", "qk_rope_head_dim", "qk_nope_head_dim", "v_head_dim"),
        HYBRID: (
            "mamba*", "ssm*", "state_size", "d_state", "d_conv", "conv_kernel", "conv_L_cache", "time_step_rank",
            "linear_num_*", "linear_conv_*", "linear_attn_config", "full_attention_interval", "full_attn_idxs",
            "attn_layer_*", "layers_block_type", "hybrid_override_pattern",
        ),
        INDEXED: ("index_*", "indexer_types", "compress_*", "sparse_attention_config", "o_lora_rank"),
        STREAMS: ("hc_*", "attn_res_*", "altup_*", "laurel_*"),
        GATES: (
            "swa_*", "hybrid_layer_pattern", "*_attn_gate", "*_output_gate", "attention_other_setting",
            "attention_chunk_size", "add_*_sink_bias",
        ),
        ENCODERS: (
            "is_encoder_decoder", "add_cross_attention", "cross_attention_*", "encoder_layers", "decoder_layers",
        ),
        UNEQUAL: ("block_configs", "pruned_heads", "num_kv_shared_layers", "hidden_size_per_layer_input"),
        SINGLE: ("per_layer_config",),
        PREDICTING: ("num_nextn_predict_layers", "mtp_num_hidden_layers", "num_mtp_modules"),
        DRAFTS: ("medusa_*", "eagle_*", "draft_vocab_size", "speculators_*", "dflash_config", "markov_*"),
        BOTH_WAYS: ("use_bidirectional_attention",),
    }
)  # fmt: skip
"""Fields (with wildcards) that, set to anything but nothing, mean this."""
