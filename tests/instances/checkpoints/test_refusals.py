"""Configs that are refused: by field, with what was expected and what to do instead."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from helpers.model_cases import EAGLE3_8B, LLAMA_8B, SMALL, small

from specopt.instances.checkpoints.model_config import parse_model_config
from specopt.models.errors import InvalidInput

FOLDER = Path(__file__).parents[2] / "data" / "model_configs"
LLAMA: dict[str, Any] = LLAMA_8B | {"num_hidden_layers": 2}
QWEN3 = SMALL["qwen3"]
LISTS = {
    "full_attn_layers": [1],
    "kda_layers": [2],
    "num_heads": 4,
    "head_dim": 8,
    "short_conv_kernel_size": 4,
}


def family(name: str, **change: Any) -> dict[str, Any]:
    """The small config of a family, changed."""
    data: dict[str, Any] = json.loads((FOLDER / f"{name}.json").read_text())
    return data | change


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ([], r"the top level: expected an object, got \[\]"),
        (LLAMA | {"model_type": None}, "model_type: expected one of llama, .* got None"),
        (
            small("rwkv"),
            (
                "expected one of .* got 'rwkv'; measure and enter seconds_per_token and"
                " kv_bytes_per_token"
            ),
        ),
        (LLAMA | {"moe\n": 1}, r"^moe\\n: mixture-of-experts models are not counted for llama"),
        (LLAMA | {"kv_lora_rank": 512}, "kv_lora_rank: multi-head latent attention"),
        (LLAMA | {"mamba_d_state": 16}, "mamba_d_state: state-space .* by hand"),
        (LLAMA | {"is_encoder_decoder": True}, "is_encoder_decoder: encoder-decoder"),
        (
            LLAMA | {"num_nextn_predict_layers": 1},
            "num_nextn_predict_layers: decoders with further heads",
        ),
        (
            LLAMA | {"medusa_num_heads": 4},
            "medusa_num_heads: draft heads of their own are not counted for llama",
        ),
        (
            LLAMA | {"layer_types": ["full_attention", "linear"]},
            r"layer_types\[1\]: .* got 'linear'",
        ),
        (LLAMA | {"layer_types": ["full_attention"]}, "layer_types: expected 2 entries, got 1"),
        (
            LLAMA | {"architectures": ["LlamaForSequenceClassification"]},
            "expected one of LlamaForCausalLM, got",
        ),
        (
            LLAMA | {"architectures": "LlamaForCausalLM"},
            "architectures: expected a list, got 'LlamaForCausalLM'",
        ),
        (LLAMA | {"hidden_size": None}, "hidden_size: required field is missing"),
        (LLAMA | {"hidden_size": "64"}, "hidden_size: expected an integer >= 1, got '64'"),
        (
            LLAMA | {"intermediate_size": 10**30},
            "intermediate_size: expected an integer .* got 1000",
        ),
        (
            LLAMA | {"num_attention_heads": 5},
            "num_attention_heads: expected a divisor of hidden_size = 4096, got 5",
        ),
        (
            LLAMA | {"num_key_value_heads": 3},
            "num_key_value_heads: expected a divisor of num_attention_heads = 32",
        ),
        (
            LLAMA | {"tie_word_embeddings": "no"},
            "tie_word_embeddings: expected true or false, got 'no'",
        ),
        (LLAMA | {"use_qk_norm": True}, "use_qk_norm: expected false, as llama has it, got True"),
        (LLAMA | {"torch_dtype": 16}, "torch_dtype: expected the name of a data type, got '16'"),
        ({"text_config": 3}, "text_config: expected an object, got 3"),
        (
            {"hidden_size": 32, "text_config": LLAMA},
            r"text_config\.hidden_size: 4096 contradicts 32",
        ),
        ({"num_experts": 8, "text_config": LLAMA}, "num_experts: mixture-of-experts"),
        (
            SMALL["mistral"] | {"num_key_value_heads": "2"},
            "num_key_value_heads: expected an integer",
        ),
        (small("gpt_neox", head_dim=8), "head_dim: expected 16, as gpt_neox has it, got 8"),
        (
            SMALL["mixtral"] | {"num_experts_per_tok": 5},
            "num_experts_per_tok: expected an integer from 1 to 4, got 5",
        ),
        (
            SMALL["qwen3_5"] | {"mtp_use_dedicated_embeddings": True},
            "embeddings: expected false, as qwen3_5",
        ),
        (
            QWEN3 | {"index_topk": 8},
            "index_topk: attention to indexed or compressed tokens are not counted for qwen3",
        ),
        (
            family("glm-5-next", mhc=False),
            "mhc: expected true, as glm5_next_text has it, got False",
        ),
        (
            family("deepseek-v4", compress_ratios=[0, 0, 4, 64, 4, 0]),
            r"compress_ratios\[3\]: expected one of",
        ),
        (family("deepseek-v4", expert_dtype="fp3"), "expert_dtype: expected one of fp4, fp8"),
        (
            family("kimi-linear", linear_attn_config=LISTS),
            r"layer_types\[2\]: expected one of .* got ''",
        ),
        (
            family("minimax-m2", shared_intermediate_size=8),
            "shared_intermediate_size: expected 0, as minimax_m2",
        ),
        (
            family("bamba", per_layer_config={"1": {"head_dim": 8}}),
            "per_layer_config: values of single layers",
        ),
        (
            EAGLE3_8B | {"architectures": ["Qwen3ForCausalLMEagle3"]},
            "architectures: expected one of LlamaForCausalLM",
        ),
        (
            EAGLE3_8B | {"eagle_aux_hidden_state_layer_ids": []},
            "number of entries: expected an integer >= 1",
        ),
        (QWEN3 | {"architectures": ["DFlashDraftModel"]}, "target_layer_ids: expected a list"),
        (
            QWEN3
            | {
                "architectures": ["DFlashDraftModel"],
                "dflash_config": {"target_layer_ids": [1], "rank": 3},
            },
            "dflash_config: expected one of .* got 'rank'",
        ),
        (
            QWEN3
            | {
                "architectures": ["DSparkDraftModel"],
                "target_layer_ids": [1],
                "markov_head_type": "rnn",
            },
            "markov_head_type: expected vanilla, as qwen3 has it, got 'rnn'",
        ),
        (
            family("deepseek-v3.2", architectures=["DFlashDraftModel"], target_layer_ids=[1]),
            "model_type: expected a dense decoder for dflash, got deepseek_v32",
        ),
    ],
)
def test_refusals(data: Any, message: str) -> None:
    """Tests that what is not understood, missing, of the wrong type or contradictory is refused by
    name.
    """
    with pytest.raises(InvalidInput, match=message):
        parse_model_config(data)


GPTQ = {"quant_method": "gptq", "bits": 4, "group_size": 128}
GROUP = {
    "quant_method": "compressed-tensors",
    "config_groups": {"all": {"weights": {"num_bits": 8}}},
}


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (7, "quantization_config: expected an object, got 7"),
        (
            {"quant_method": "quark"},
            r"quant_method: expected one of fp8, .* got 'quark'; count .* with --dtype",
        ),
        (GPTQ | {"bits": 5}, "bits: expected one of 2, 3, 4, 8, got 5"),
        (GPTQ | {"group_size": None}, "group_size: required field is missing"),
        (
            GPTQ | {"dynamic": {"+:.*": {"bits": 8}}},
            "dynamic: expected rules that begin with '-:' alone",
        ),
        (GPTQ | {"dynamic": {"-:(": {}}}, r"dynamic: expected names or patterns, got 're:\('"),
        (GPTQ | {"ignore": [1]}, "ignore: expected names or patterns, got 1"),
        (
            {"quant_method": "fp8", "weight_block_size": [128]},
            "weight_block_size: expected 2 entries, got 1",
        ),
        ({"quant_method": "compressed-tensors"}, "config_groups: expected an object, got None"),
        (
            GROUP | {"sparsity_config": {"format": "sparse-24"}},
            r"sparsity_config\.format: expected one of dense",
        ),
        (
            GROUP | {"kv_cache_scheme": {"num_bits": 4}},
            r"kv_cache_scheme\.num_bits: expected one of 8, got 4",
        ),
        ({"quant_method": "bitsandbytes"}, "load_in_4bit: expected one of True, got None"),
    ],
)
def test_quantisations_that_are_refused(config: Any, message: str) -> None:
    """Tests that what a quantisation leaves open or gets wrong is refused by name."""
    with pytest.raises(InvalidInput, match=message):
        parse_model_config(LLAMA | {"quantization_config": config})
