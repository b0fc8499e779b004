"""Counts against a second route: the architecture built without weights."""

from __future__ import annotations

import contextlib
import json
from typing import Any

import pytest
from helpers.model_cases import SMALL

from specopt.instances.checkpoints.config import MODEL_TYPES
from specopt.instances.checkpoints.model_config import parse_model_config
from specopt.models.errors import InvalidInput

UNKNOWN_THERE = {"kimi-k3"}
PARTS_THERE = {"step3p5", "qwen2_5_omni_text", "qwen3_omni_moe_text"}
"""Types that it builds as parts of others alone."""


def built(model_type: str, fields: dict[str, Any] | None) -> tuple[Any, int]:
    """The config of a type in transformers (None: its default), and the parameters of the decoder
    of its class.
    """
    transformers: Any = pytest.importorskip("transformers")
    torch: Any = pytest.importorskip("torch")
    auto = transformers.models.auto
    given = {} if fields is None else fields
    if model_type == "step3p5":  # known as a part of step3p7 alone
        config = transformers.AutoConfig.for_model("step3p7", text_config=given).text_config
        module = __import__(
            "transformers.models.step3p7.modeling_step3p7", fromlist=["Step3p7TextModel"]
        )
        build = module.Step3p7TextModel
    else:
        config = transformers.AutoConfig.for_model(model_type, **given)
        causal = model_type in auto.modeling_auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES
        build = (
            transformers.AutoModelForCausalLM if causal else transformers.AutoModel
        ).from_config
    with torch.device("meta"):
        model = build(config)
    model.tie_weights()
    counted = sum(item.numel() for item in model.parameters())
    if model.get_output_embeddings() is None and not getattr(config, "tie_word_embeddings", False):
        counted += config.vocab_size * config.hidden_size  # a bare decoder: its output matrix
    return config, counted


@pytest.mark.parametrize("name", sorted(set(SMALL) - UNKNOWN_THERE))
def test_the_library_still_counts_so(name: str) -> None:
    """Tests that transformers, where it is installed, builds as many parameters on the meta
    device.
    """
    data = SMALL[name]
    tokens = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
    fields: dict[str, Any] = {**data.get("text_config", data), **tokens}
    fields.pop("architectures", None)
    model_type = str(fields.pop("model_type")).replace("kimi_k2", "deepseek_v3")
    assert built(model_type, fields)[1] == parse_model_config(data).parameters


def test_every_architecture_that_the_library_knows() -> None:
    """Tests that the default config of each of its decoders is counted as it is built, or refused
    by name.
    """
    transformers: Any = pytest.importorskip("transformers")
    auto = transformers.models.auto
    known = auto.configuration_auto.CONFIG_MAPPING
    names = {
        *auto.modeling_auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES,
        *(name for name in MODEL_TYPES if name in known),
    }
    counted, refused = set(), set()
    for name in sorted(names & set(MODEL_TYPES) - PARTS_THERE):
        config = known[name]()
        try:
            found = parse_model_config(json.loads(config.to_json_string(use_diff=False)))
        except InvalidInput:
            refused.add(name)
        else:
            assert built(name, None)[1] == found.parameters, name
            counted.add(name)
    for name in sorted(names - set(MODEL_TYPES)):
        with contextlib.suppress(InvalidInput):  # not every class builds from its defaults
            assert parse_model_config({"model_type": name}).parameters == built(name, None)[1], name
    assert refused == {
        "bamba",
        "deepseek_v2",
        "dots1",
        "gemma4_text",
        "glm4_moe",
        "glm4v_moe_text",
        "lfm2_moe",
        "qwen3_moe",
    }  # their defaults leave sizes out
    assert len(counted) >= 45
