"""The model types whose `config.json` is understood, and the conventions that the file itself does not state.

A Hugging Face config names its type and its sizes; which matrices have biases, how many norms a layer has and what
an absent field means is fixed by the type. A type that is not listed here is refused, never guessed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, Literal

from specopt.instances.checkpoints.marks import BOTH_WAYS, EXPERTS, HYBRID, LATENT, PREDICTING, UNEQUAL


@dataclass(frozen=True)
class Switch:
    """A yes or no that the config states under this name, with what its absence means."""

    name: str
    default: bool


@dataclass(frozen=True, kw_only=True)
class ExpertFields:
    """Where a type's config has its experts.

    Parameters
    ----------
    count, per_token
        Experts of a layer, and those that a token is routed to.
    ffn
        Dimension of an expert.
    shared_count, shared_ffn
        Experts that take every token: how many, or their dimension together (then their output is weighted).
    first_dense, period
        Layers before the first with experts, and every how many there is one; null: every layer has them.
    on
        The field that switches them on.
    bias
        Whether router and experts have biases.
    beside
        Whether they stand beside a dense network in every layer, behind norms of their own and a scaled router.
    """

    count: str = "num_experts"
    per_token: str = "num_experts_per_tok"
    ffn: str = "moe_intermediate_size"
    shared_count: str | None = None
    shared_ffn: str | None = None
    first_dense: str | None = None
    period: str | None = None
    on: str | None = None
    bias: bool = False
    beside: bool = False


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
    experts
        Where its config has experts.
    latent
        Whether keys and values are compressed (multi-head latent attention).
    layer_kinds
        What an absent `layer_types` means: every layer attends to everything, to a window, to a window from layer
        `max_window_layers` on; or ``window`` or ``linear`` in all layers but every `period`-th.
    period
        The field with that period, and its default.
    gated_queries, sinks
        Whether attention's output is gated, whether heads have sinks: see `GroupedAttention`.
    unequal
        Whether layers that attend to everything have KV heads and a head size of their own, the last ones may take keys
        and values of earlier ones, and each layer may have a table of embeddings (Gemma 4).
    drafts
        The field with the number of layers that predict further tokens.
    """

    architecture: str
    tied: bool
    gated: bool = True
    ffn: str = "intermediate_size"
    qkv_bias: bool | Switch = False
    output_bias: bool | Switch = False
    mlp_bias: bool | Switch = False
    query_key_norm: bool | Switch = False
    norms_per_layer: int = 2
    layer_norm: bool = False
    kv_heads: Literal["heads", "given", "none"] = "given"
    head_dim: Literal["derived", "given", "none"] = "derived"
    position_offset: int | None = None
    defaults: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))
    experts: ExpertFields | None = None
    latent: bool = False
    layer_kinds: Literal["full", "window", "window above", "windows between", "linear between"] = "full"
    period: tuple[str, int] = ("sliding_window_pattern", 1)
    gated_queries: bool = False
    sinks: bool = False
    unequal: bool = False
    drafts: str | None = None

    @property
    def marks(self) -> tuple[str, ...]:
        """Which of `MARKS` the type understands."""
        has = {
            EXPERTS: self.experts is not None,
            LATENT: self.latent,
            HYBRID: self.layer_kinds == "linear between",
            PREDICTING: self.drafts is not None,
            UNEQUAL: self.unequal,
            BOTH_WAYS: self.unequal,  # of images alone
        }
        return tuple(mark for mark, known in has.items() if known)


_ATTENTION, _YES = Switch("attention_bias", False), Switch("attention_bias", True)
_ALL, _OPT = Switch("use_bias", True), Switch("enable_bias", True)
_NEXT = "num_nextn_predict_layers"
_QWEN_EXPERTS = ExpertFields(period="decoder_sparse_step")
_QWEN_SHARED = replace(_QWEN_EXPERTS, shared_ffn="shared_expert_intermediate_size")
_DEEPSEEK_EXPERTS = ExpertFields(
    count="n_routed_experts", shared_count="n_shared_experts", first_dense="first_k_dense_replace",
    period="moe_layer_freq",
)  # fmt: skip
_FEW_EXPERTS = ExpertFields(count="num_local_experts", ffn="intermediate_size")


def _biased(attention: bool | Switch = _ATTENTION, mlp: bool | Switch = False) -> dict[str, Any]:
    """Return biases of which all of attention's go by one switch."""
    return {"qkv_bias": attention, "output_bias": attention, "mlp_bias": mlp}


_LLAMA = ModelType(
    architecture="LlamaForCausalLM", tied=False, **_biased(mlp=Switch("mlp_bias", False)), kv_heads="heads"
)
_MISTRAL = ModelType(architecture="MistralForCausalLM", tied=False, layer_kinds="window")
_QWEN2 = ModelType(architecture="Qwen2ForCausalLM", tied=False, qkv_bias=True, layer_kinds="window above")
_QWEN3 = ModelType(
    architecture="Qwen3ForCausalLM", tied=False, **_biased(), query_key_norm=True, head_dim="given",
    layer_kinds="window above",
)  # fmt: skip
_QWEN3_MOE = replace(_QWEN3, architecture="Qwen3MoeForCausalLM", experts=_QWEN_EXPERTS, layer_kinds="full")
_QWEN3_NEXT = replace(
    _QWEN3, architecture="Qwen3NextForCausalLM", gated_queries=True, layer_kinds="linear between",
    period=("full_attention_interval", 4), experts=_QWEN_SHARED, drafts=_NEXT,
)  # fmt: skip
_DEEPSEEK_V2 = ModelType(
    architecture="DeepseekV2ForCausalLM", tied=False, qkv_bias=_ATTENTION, latent=True, experts=_DEEPSEEK_EXPERTS
)
_DEEPSEEK_V3 = replace(_DEEPSEEK_V2, architecture="DeepseekV3ForCausalLM", drafts=_NEXT)
_GEMMA = ModelType(architecture="GemmaForCausalLM", tied=True, **_biased(), head_dim="given")
_GEMMA2 = replace(
    _GEMMA, architecture="Gemma2ForCausalLM", norms_per_layer=4, layer_kinds="windows between",
    period=("sliding_window_pattern", 2),
)  # fmt: skip
_GEMMA3 = replace(
    _GEMMA2, architecture="Gemma3ForCausalLM", query_key_norm=True, period=("sliding_window_pattern", 6),
    defaults=MappingProxyType(
        {"num_attention_heads": 8, "num_key_value_heads": 4, "head_dim": 256, "vocab_size": 262208}
    ),
)  # fmt: skip

MODEL_TYPES: Mapping[str, ModelType] = MappingProxyType(
    {
        "llama": _LLAMA,
        "mistral": _MISTRAL,
        "ministral3": replace(_MISTRAL, architecture="Ministral3ForCausalLM"),
        "smollm3": replace(_LLAMA, architecture="SmolLM3ForCausalLM", tied=True, kv_heads="given"),
        "qwen2": _QWEN2,
        "qwen2_vl_text": _QWEN2,
        "qwen2_5_vl_text": _QWEN2,
        "qwen3": _QWEN3,
        "qwen3_vl_text": _QWEN3,
        "qwen3_5_text": replace(
            _QWEN3_NEXT, architecture="Qwen3_5ForCausalLM", experts=None, drafts="mtp_num_hidden_layers"
        ),
        "mimo": replace(_QWEN2, architecture="MiMoForCausalLM", drafts=_NEXT),
        "mixtral": replace(_MISTRAL, architecture="MixtralForCausalLM", experts=_FEW_EXPERTS),
        "qwen2_moe": ModelType(
            architecture="Qwen2MoeForCausalLM", tied=False, qkv_bias=Switch("qkv_bias", True), experts=_QWEN_SHARED
        ),
        "qwen3_moe": _QWEN3_MOE,
        "qwen3_vl_moe_text": _QWEN3_MOE,
        "qwen3_next": _QWEN3_NEXT,
        "qwen3_5_moe_text": replace(_QWEN3_NEXT, architecture="Qwen3_5MoeForCausalLM", drafts="mtp_num_hidden_layers"),
        "deepseek_v2": _DEEPSEEK_V2,
        "deepseek_v3": _DEEPSEEK_V3,
        "kimi_k2": _DEEPSEEK_V3,
        "glm4_moe": ModelType(
            architecture="Glm4MoeForCausalLM", tied=False, qkv_bias=_ATTENTION,
            query_key_norm=Switch("use_qk_norm", False), head_dim="given",
            experts=replace(_DEEPSEEK_EXPERTS, period=None), drafts=_NEXT,
        ),
        "dots1": replace(_QWEN3, architecture="Dots1ForCausalLM", experts=replace(_DEEPSEEK_EXPERTS, period=None)),
        "gpt_oss": ModelType(
            architecture="GptOssForCausalLM", tied=False, qkv_bias=_YES, output_bias=_YES, head_dim="given",
            sinks=True, layer_kinds="windows between", period=("sliding_window_pattern", 2),
            experts=replace(_FEW_EXPERTS, bias=True),
        ),
        "opt": ModelType(
            architecture="OPTForCausalLM", tied=True, gated=False, ffn="ffn_dim", **_biased(_OPT, _OPT),
            layer_norm=True, kv_heads="none", head_dim="none", position_offset=2,
        ),
        "gemma": _GEMMA,
        "gemma2": _GEMMA2,
        "gemma3_text": _GEMMA3,
        "gemma4_text": replace(
            _GEMMA3, architecture="Gemma4ForCausalLM", defaults=MappingProxyType({}), unequal=True,
            experts=ExpertFields(per_token="top_k_experts", on="enable_moe_block", beside=True),
        ),
        "phi3": ModelType(architecture="Phi3ForCausalLM", tied=False, kv_heads="heads", layer_kinds="window"),
        "granite": replace(_LLAMA, architecture="GraniteForCausalLM"),
        "starcoder2": ModelType(
            architecture="Starcoder2ForCausalLM", tied=True, gated=False, **_biased(_ALL, _ALL), layer_norm=True,
            layer_kinds="window",
        ),
        "gpt_neox": ModelType(
            architecture="GPTNeoXForCausalLM", tied=False, gated=False, **_biased(_YES, True), layer_norm=True,
            kv_heads="none", head_dim="none",
        ),
    }
)  # fmt: skip

WRAPPERS = (
    "gemma3", "gemma4", "idefics3", "internvl", "llava", "llava_next", "llava_onevision", "mistral3", "paligemma",
    "qwen2_5_vl", "qwen2_vl", "qwen3_5", "qwen3_5_moe", "qwen3_vl", "qwen3_vl_moe", "smolvlm",
)  # fmt: skip
"""Types that wrap a decoder, given under `text_config`, which reads images as further tokens: nothing in it changes."""
