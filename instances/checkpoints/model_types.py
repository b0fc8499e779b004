"""The model types whose `config.json` is understood, and the conventions that the file itself does not state.

A Hugging Face config names its type and its sizes; which matrices have biases, how many norms a layer has and what
an absent field means is fixed by the type. A type that is not listed here is refused, never guessed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal


@dataclass(frozen=True)
class Switch:
    """A yes or no that the config states under this name, with what its absence means."""

    name: str
    default: bool


@dataclass(frozen=True, kw_only=True)
class ModelType:
    """What one `model_type` fixes.

    Parameters
    ----------
    architecture
        The class of the decoder with its output head, as `architectures` names it.
    tied
        Whether input and output embeddings are one matrix when the config does not say.
    gated
        Whether the feed-forward network has a gate matrix.
    ffn
        Name of the field with the feed-forward dimension.
    qkv_bias, output_bias, mlp_bias
        Biases on the query, key and value projections, on the attention's output, in the feed-forward network.
    query_key_norm
        Whether queries and keys are normed per head.
    norms_per_layer
        Norms of the hidden size in a layer.
    layer_norm
        Whether the norms have a bias beside the weight (LayerNorm), not a weight alone (RMSNorm).
    kv_heads
        What an absent number of KV heads means: as many as heads; nothing, it has to be given; or the type has no
        grouped heads at all.
    head_dim
        What an absent head size means: hidden / heads; nothing, it has to be given; or the type knows no other.
    position_offset
        Rows of the table of learned positions beyond `max_position_embeddings`; None for rotary positions.
    defaults
        Sizes that configs of this type leave out when they equal the defaults of its class.
    """

    architecture: str
    tied: bool
    gated: bool = True
    ffn: str = "intermediate_size"
    qkv_bias: bool | Switch = False
    output_bias: bool | Switch = False
    mlp_bias: bool | Switch = False
    query_key_norm: bool = False
    norms_per_layer: int = 2
    layer_norm: bool = False
    kv_heads: Literal["heads", "given", "none"] = "given"
    head_dim: Literal["derived", "given", "none"] = "derived"
    position_offset: int | None = None
    defaults: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))


_ATTENTION = Switch("attention_bias", False)
_MLP = Switch("mlp_bias", False)
_ALL = Switch("use_bias", True)
_OPT = Switch("enable_bias", True)
_NEOX = Switch("attention_bias", True)

_QWEN2 = ModelType(architecture="Qwen2ForCausalLM", tied=False, qkv_bias=True)
_QWEN3 = ModelType(
    architecture="Qwen3ForCausalLM",
    tied=False,
    qkv_bias=_ATTENTION,
    output_bias=_ATTENTION,
    query_key_norm=True,
    head_dim="given",
)

MODEL_TYPES: Mapping[str, ModelType] = MappingProxyType(
    {
        "llama": ModelType(
            architecture="LlamaForCausalLM",
            tied=False,
            qkv_bias=_ATTENTION,
            output_bias=_ATTENTION,
            mlp_bias=_MLP,
            kv_heads="heads",
        ),
        "mistral": ModelType(architecture="MistralForCausalLM", tied=False),
        "qwen2": _QWEN2,
        "qwen2_vl_text": _QWEN2,
        "qwen2_5_vl_text": _QWEN2,
        "qwen3": _QWEN3,
        "qwen3_vl_text": _QWEN3,
        "opt": ModelType(
            architecture="OPTForCausalLM",
            tied=True,
            gated=False,
            ffn="ffn_dim",
            qkv_bias=_OPT,
            output_bias=_OPT,
            mlp_bias=_OPT,
            layer_norm=True,
            kv_heads="none",
            head_dim="none",
            position_offset=2,
        ),
        "gemma": ModelType(
            architecture="GemmaForCausalLM", tied=True, qkv_bias=_ATTENTION, output_bias=_ATTENTION, head_dim="given"
        ),
        "gemma2": ModelType(
            architecture="Gemma2ForCausalLM",
            tied=True,
            qkv_bias=_ATTENTION,
            output_bias=_ATTENTION,
            norms_per_layer=4,
            head_dim="given",
        ),
        "gemma3_text": ModelType(
            architecture="Gemma3ForCausalLM",
            tied=True,
            qkv_bias=_ATTENTION,
            output_bias=_ATTENTION,
            query_key_norm=True,
            norms_per_layer=4,
            head_dim="given",
            defaults=MappingProxyType(
                {"num_attention_heads": 8, "num_key_value_heads": 4, "head_dim": 256, "vocab_size": 262208}
            ),
        ),
        "phi3": ModelType(architecture="Phi3ForCausalLM", tied=False, kv_heads="heads"),
        "granite": ModelType(
            architecture="GraniteForCausalLM",
            tied=False,
            qkv_bias=_ATTENTION,
            output_bias=_ATTENTION,
            mlp_bias=_MLP,
            kv_heads="heads",
        ),
        "starcoder2": ModelType(
            architecture="Starcoder2ForCausalLM",
            tied=True,
            gated=False,
            qkv_bias=_ALL,
            output_bias=_ALL,
            mlp_bias=_ALL,
            layer_norm=True,
        ),
        "gpt_neox": ModelType(
            architecture="GPTNeoXForCausalLM",
            tied=False,
            gated=False,
            qkv_bias=_NEOX,
            output_bias=_NEOX,
            mlp_bias=True,
            layer_norm=True,
            kv_heads="none",
            head_dim="none",
        ),
    }
)

WRAPPERS = (
    "gemma3",
    "idefics3",
    "internvl",
    "llava",
    "llava_next",
    "llava_onevision",
    "mistral3",
    "paligemma",
    "qwen2_5_vl",
    "qwen2_vl",
    "qwen3_vl",
    "smolvlm",
)
"""Types that wrap a decoder, given under `text_config`, which reads images as further tokens: nothing in it changes."""

MARKS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "mixture-of-experts models": ("*expert*", "moe*"),
        "multi-head latent attention": (
            "kv_lora_rank",
            "q_lora_rank",
            "qk_rope_head_dim",
            "qk_nope_head_dim",
            "v_head_dim",
        ),
        "state-space and hybrid layers": (
            "mamba*",
            "ssm*",
            "state_size",
            "d_state",
            "d_conv",
            "conv_kernel",
            "time_step_rank",
            "linear_num_*",
            "linear_conv_*",
            "full_attention_interval",
            "attn_layer_*",
            "layers_block_type",
            "hybrid_override_pattern",
        ),
        "encoder-decoder models and cross attention": (
            "is_encoder_decoder",
            "add_cross_attention",
            "cross_attention_*",
            "encoder_layers",
            "decoder_layers",
        ),
        "quantised weights, whose bytes per value the shape does not tell,": (
            "quantization_config",
            "compression_config",
        ),
        "layers that differ from each other": ("block_configs", "pruned_heads", "num_kv_shared_layers"),
        "decoders with further heads or layers for drafting": (
            "num_nextn_predict_layers",
            "medusa_*",
            "eagle_*",
            "draft_vocab_size",
            "speculators_*",
        ),
        "models that are no decoders": ("use_bidirectional_attention",),
    }
)
"""Fields (with wildcards) that, set to anything but nothing, mean that the counts here do not hold."""
