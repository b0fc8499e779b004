"""Fields of configs that mean what only some model types have; elsewhere they are refused by name, never ignored."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

EXPERTS = "mixture-of-experts models"
LATENT = "multi-head latent attention"
HYBRID = "state-space and hybrid layers"
ENCODERS = "encoder-decoder models and cross attention"
UNEQUAL = "layers that differ from each other"
PREDICTING = "decoders with further heads for drafting"
DRAFTS = "draft heads of their own"
BOTH_WAYS = "models that are no decoders"

MARKS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        EXPERTS: ("*expert*", "moe*"),
        LATENT: ("kv_lora_rank", "q_lora_rank", "qk_rope_head_dim", "qk_nope_head_dim", "v_head_dim"),
        HYBRID: (
            "mamba*", "ssm*", "state_size", "d_state", "d_conv", "conv_kernel", "time_step_rank", "linear_num_*",
            "linear_conv_*", "full_attention_interval", "attn_layer_*", "layers_block_type", "hybrid_override_pattern",
        ),
        ENCODERS: (
            "is_encoder_decoder", "add_cross_attention", "cross_attention_*", "encoder_layers", "decoder_layers",
        ),
        UNEQUAL: ("block_configs", "pruned_heads", "num_kv_shared_layers", "hidden_size_per_layer_input"),
        PREDICTING: ("num_nextn_predict_layers", "mtp_num_hidden_layers"),
        DRAFTS: ("medusa_*", "eagle_*", "draft_vocab_size", "speculators_*"),
        BOTH_WAYS: ("use_bidirectional_attention",),
    }
)  # fmt: skip
"""Fields (with wildcards) that, set to anything but nothing, mean this."""
