"""Decoders that the table of field names does not cover: built without memory by `transformers`, if it is installed."""

from __future__ import annotations

import importlib
from typing import Any

from specopt.instances.checkpoints.attention import Attention, read_attention
from specopt.instances.checkpoints.config import Config
from specopt.instances.checkpoints.fields import MODEL_TYPES
from specopt.instances.checkpoints.layers import layer_kinds
from specopt.instances.checkpoints.tensors import Weight
from specopt.models.errors import InvalidInput


def built_weights(config: Config) -> tuple[Weight, ...]:
    """Return the parameters of the decoder that `transformers` builds from a config on torch's meta device.

    Raises
    ------
    InvalidInput
        If torch or transformers is not installed, or they cannot build it.
    """
    try:
        torch: Any = importlib.import_module("torch")
        transformers: Any = importlib.import_module("transformers")
    except ImportError:
        raise config.refusal("unless torch and transformers are installed") from None
    try:
        built = transformers.AutoConfig.for_model(**config.data)
        with torch.device("meta"):
            model = transformers.AutoModelForCausalLM.from_config(built, trust_remote_code=False)
        model.tie_weights()
        shapes = {name: tuple(item.shape) for name, item in model.named_parameters()}
    except Exception as error:  # whatever a class makes of fields that it does not expect
        raise config.refusal(f"transformers: {type(error).__name__}") from None
    names = [name.removesuffix(".weight") for name in shapes]
    untied = any(name.endswith("lm_head") for name in names)
    return tuple(
        Weight(name=name, shape=shape, role=_role(name, shape, untied))
        for name, shape in zip(names, shapes.values(), strict=True)
    )


def _role(name: str, shape: tuple[int, ...], untied: bool) -> str:
    if len(shape) != 2:
        return "other"
    if name.endswith("lm_head"):
        return "head"
    if "embed" in name:
        return "table" if untied or "embed_tokens" not in name else "tied"
    return "linear"


def attention_of_fields(config: Config) -> tuple[tuple[Attention, ...], list[str]]:
    """Return attention as fields with the usual names describe it, or the quantities that are unknown without them."""
    form = "latent" if config.given("kv_lora_rank") else "grouped"
    try:
        config.refuse_marks("experts", "latent", "predicting")
        kinds = layer_kinds(config)
        table = MODEL_TYPES["deepseek_v2"].formulas if form == "latent" else {}
        sizes = [config.formulas.having(table, kind=kind) for kind in dict.fromkeys(kinds)]
        read = {item["kind"]: read_attention(item, form) for item in sizes}
    except InvalidInput:
        return (), ["kv_bytes_per_token", "flops_per_token_pair"]
    return tuple(read[kind] for kind in kinds), []
