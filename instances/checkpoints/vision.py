"""Image encoders beside a decoder: their parameters, for the types whose shape is known."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from specopt.models.arguments import integer
from specopt.models.fields import MAX_TOKENS


def vision_parameters(config: Mapping[str, Any], hidden: int) -> int | None:
    """Return the parameters of encoder and projector; None where there is none, or its type is not known.

    Parameters
    ----------
    config
        The whole config around a decoder.
    hidden
        The decoder's hidden dimension.
    """
    part, wrapper = config.get("vision_config"), str(config.get("model_type"))
    if not isinstance(part, Mapping) or wrapper not in COUNTS:
        return None

    def size(name: str) -> int:
        return integer(f"vision_config.{name}", part.get(name), 1, MAX_TOKENS)

    return COUNTS[wrapper](size, part, hidden)


def _gemma4(size: Callable[[str], int], part: Mapping[str, Any], hidden: int) -> int:
    width, head = size("hidden_size"), size("head_dim")
    queries, keys = size("num_attention_heads") * head, size("num_key_value_heads") * head
    layer = width * (2 * queries + 2 * keys + 3 * size("intermediate_size")) + 4 * width + 2 * head
    outside = 3 * size("patch_size") ** 2 * width + 2 * size("position_embedding_size") * width
    return size("num_hidden_layers") * layer + outside + width * hidden


def _qwen3_vl(size: Callable[[str], int], part: Mapping[str, Any], hidden: int) -> int:
    """Qwen3-VL's encoder, with a merger of patches at the end and one at each depth that feeds the decoder, too."""
    width, ffn, out = size("hidden_size"), size("intermediate_size"), size("out_hidden_size")
    layer = 4 * width * (width + 1) + 2 * width * ffn + ffn + width + 4 * width
    patch = size("in_channels") * size("temporal_patch_size") * size("patch_size") ** 2
    merged = width * size("spatial_merge_size") ** 2
    merger = merged * (merged + 1) + (merged + 1) * out
    deep = len(part.get("deepstack_visual_indexes") or [])
    outside = (patch + 1) * width + size("num_position_embeddings") * width
    return size("depth") * layer + outside + merger + 2 * width + deep * (merger + 2 * merged)


COUNTS: Mapping[object, Callable[[Callable[[str], int], Mapping[str, Any], int], int]] = MappingProxyType(
    {
        "gemma4": _gemma4,
        "qwen3_vl": _qwen3_vl,
        "qwen3_vl_moe": _qwen3_vl,
        "qwen3_5": _qwen3_vl,
        "qwen3_5_moe": _qwen3_vl,
    }
)
"""How the parameters of encoder and projector are counted, by the type of the whole."""
