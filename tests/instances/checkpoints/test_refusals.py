"""Configs that are refused: by field, with what was expected and what to do instead."""

from __future__ import annotations

import json

import pytest
from helpers.model_cases import PUBLISHED, SMALL

from specopt.instances.checkpoints.model_config import parse_model_config
from specopt.models.errors import InvalidInput

CONFIGS = PUBLISHED | SMALL
LLAMA = PUBLISHED["llama-3.1-8b"]
GPTQ = '{"quantization_config": {"quant_method": "gptq", "bits": 4, "group_size": 128, %s}}'
GROUPS = (
    '{"quantization_config": {"quant_method": "compressed-tensors",'
    ' "config_groups": {"all": {"weights": {"num_bits": 8}}}, %s}}'
)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ('{"model_type": null}', "model_type: expected one of llama, .* got None"),
        ('{"moe\\n": 1}', r"^moe\\n: specopt does not count mixture-of-experts models for llama"),
        (
            '{"kv_lora_rank": 512}',
            "kv_lora_rank: specopt does not count multi-head latent attention",
        ),
        ('{"mamba_d_state": 16}', "mamba_d_state: specopt does not count state-space .* by hand"),
        (
            '{"is_encoder_decoder": true}',
            "is_encoder_decoder: specopt does not count encoder-decoder",
        ),
        (
            '{"num_nextn_predict_layers": 1}',
            "num_nextn_predict_layers: specopt does not count decoders with additional heads",
        ),
        (
            '{"medusa_num_heads": 4}',
            "medusa_num_heads: specopt does not count separate draft heads for llama",
        ),
        (
            '{"num_hidden_layers": 2, "layer_types": ["full_attention", "linear"]}',
            r"layer_types\[1\]: .* got 'linear'",
        ),
        (
            '{"num_hidden_layers": 2, "layer_types": ["full_attention"]}',
            "layer_types: expected 2 entries, got 1",
        ),
        (
            '{"architectures": ["LlamaForSequenceClassification"]}',
            "expected LlamaForCausalLM, got",
        ),
        (
            '{"architectures": "LlamaForCausalLM"}',
            "architectures: expected a list, got 'LlamaForCausalLM'",
        ),
        ('{"hidden_size": null}', "hidden_size: required field is missing"),
        ('{"hidden_size": "64"}', "hidden_size: expected an integer >= 1, got '64'"),
        (
            '{"intermediate_size": 1000000000000000000000000000000}',
            "intermediate_size: expected an integer .* got 1000",
        ),
        (
            '{"num_attention_heads": 5}',
            "num_attention_heads: expected a divisor of hidden_size = 4096, got 5",
        ),
        (
            '{"num_key_value_heads": 3}',
            "num_key_value_heads: expected a divisor of num_attention_heads = 32",
        ),
        ('{"tie_word_embeddings": "no"}', "tie_word_embeddings: expected true or false, got 'no'"),
        ('{"use_qk_norm": true}', "use_qk_norm: expected false, as llama has it, got True"),
        ('{"torch_dtype": 16}', "torch_dtype: expected the name of a data type, got '16'"),
        ('{"quantization_config": 7}', "quantization_config: expected an object, got 7"),
        (
            '{"quantization_config": {"quant_method": "quark"}}',
            "quant_method: expected one of fp8, .* got 'quark'; count .* with --dtype",
        ),
        (
            '{"quantization_config": {"quant_method": "gptq", "bits": 5, "group_size": 128}}',
            "bits: expected one of 2, 3, 4, 8, got 5",
        ),
        (
            '{"quantization_config": {"quant_method": "gptq", "bits": 4, "group_size": null}}',
            "group_size: required field is missing",
        ),
        (
            GPTQ % '"dynamic": {"+:.*": {"bits": 8}}',
            "dynamic: expected only rules that begin with '-:'",
        ),
        (GPTQ % '"dynamic": {"-:(": {}}', r"dynamic: expected names or patterns, got 're:\('"),
        (GPTQ % '"ignore": [1]', "ignore: expected names or patterns, got 1"),
        (
            '{"quantization_config": {"quant_method": "fp8", "weight_block_size": [128]}}',
            "weight_block_size: expected 2 entries, got 1",
        ),
        (
            '{"quantization_config": {"quant_method": "compressed-tensors"}}',
            "config_groups: expected an object, got None",
        ),
        (
            GROUPS % '"sparsity_config": {"format": "sparse-24"}',
            r"sparsity_config\.format: expected dense",
        ),
        (
            GROUPS % '"kv_cache_scheme": {"num_bits": 4}',
            r"kv_cache_scheme\.num_bits: expected 8, got 4",
        ),
        (
            '{"quantization_config": {"quant_method": "bitsandbytes"}}',
            "load_in_4bit: expected True, got None",
        ),
    ],
)
def test_refusals(change: str, message: str) -> None:
    """Tests that what is not understood, missing, of the wrong type or contradictory is refused by
    name, in the model and in its quantisation.
    """
    with pytest.raises(InvalidInput, match=message):
        parse_model_config(LLAMA | json.loads(change))


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        (
            "pythia-160m",
            '{"model_type": "rwkv"}',
            (
                "expected one of .* got 'rwkv'; measure and enter seconds_per_token and"
                " kv_bytes_per_token"
            ),
        ),
        ("mistral", '{"num_key_value_heads": "2"}', "num_key_value_heads: expected an integer"),
        ("pythia-160m", '{"head_dim": 8}', "head_dim: expected 64, as gpt_neox has it, got 8"),
        (
            "mixtral",
            '{"num_experts_per_tok": 5}',
            "num_experts_per_tok: expected an integer from 1 to 4, got 5",
        ),
        (
            "qwen3-5",
            '{"mtp_use_dedicated_embeddings": true}',
            "embeddings: expected false, as qwen3_5",
        ),
        (
            "qwen3",
            '{"index_topk": 8}',
            "index_topk: specopt does not count attention to indexed or compressed tokens for",
        ),
        ("glm-5-next", '{"mhc": false}', "mhc: expected true, as glm5_next_text has it, got False"),
        (
            "deepseek-v4",
            '{"compress_ratios": [0, 0, 4, 64, 4, 0]}',
            r"compress_ratios\[3\]: expected one of",
        ),
        ("deepseek-v4", '{"expert_dtype": "fp3"}', "expert_dtype: expected one of fp4, fp8"),
        (
            "kimi-linear",
            (
                '{"linear_attn_config": {"full_attn_layers": [1], "kda_layers": [2], "num_heads":'
                ' 4, "head_dim": 8, "short_conv_kernel_size": 4}}'
            ),
            r"layer_types\[2\]: expected one of .* got ''",
        ),
        (
            "minimax-m2",
            '{"shared_intermediate_size": 8}',
            "shared_intermediate_size: expected 0, as minimax_m2",
        ),
        (
            "bamba",
            '{"per_layer_config": {"1": {"head_dim": 8}}}',
            "per_layer_config: specopt does not count values of single layers",
        ),
        (
            "llama-3.1-8b-eagle3",
            '{"architectures": ["Qwen3ForCausalLMEagle3"]}',
            "architectures: expected one of LlamaForCausalLM",
        ),
        (
            "llama-3.1-8b-eagle3",
            '{"eagle_aux_hidden_state_layer_ids": []}',
            "number of entries: expected an integer >= 1",
        ),
        ("qwen3", '{"architectures": ["DFlashDraftModel"]}', "target_layer_ids: expected a list"),
        (
            "qwen3",
            (
                '{"architectures": ["DFlashDraftModel"], "dflash_config": {"target_layer_ids": [1],'
                ' "rank": 3}}'
            ),
            "dflash_config: unknown field 'rank'; known fields: ",
        ),
        (
            "qwen3",
            (
                '{"architectures": ["DSparkDraftModel"], "target_layer_ids": [1],'
                ' "markov_head_type": "rnn"}'
            ),
            "markov_head_type: expected vanilla, as qwen3 has it, got 'rnn'",
        ),
        (
            "deepseek-v3.2",
            '{"architectures": ["DFlashDraftModel"], "target_layer_ids": [1]}',
            "model_type: expected a dense decoder for dflash, got deepseek_v32",
        ),
    ],
)
def test_refusals_of_families(name: str, change: str, message: str) -> None:
    """Tests that what a family or a draft head does not have is refused by name."""
    with pytest.raises(InvalidInput, match=message):
        parse_model_config(CONFIGS[name] | json.loads(change))


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ([], r"the top level: expected an object, got \[\]"),
        ({"text_config": 3}, "text_config: expected an object, got 3"),
        (
            {"hidden_size": 32, "text_config": LLAMA},
            r"text_config\.hidden_size: 4096 conflicts with 32",
        ),
        (
            {"num_experts": 8, "text_config": LLAMA},
            "num_experts: specopt does not count mixture-of-experts",
        ),
        (
            {"tie_word_embeddings": True, "text_config": LLAMA | {"tie_word_embeddings": False}},
            r"text_config\.tie_word_embeddings: False conflicts with True",
        ),
        (
            {"tie_word_embeddings": "yes", "text_config": LLAMA},
            "tie_word_embeddings: expected true or false, got 'yes'",
        ),
    ],
)
def test_refusals_of_wrappers(data: object, message: str) -> None:
    """Tests that what is no object is refused, and a wrapper that contradicts its decoder."""
    with pytest.raises(InvalidInput, match=message):
        parse_model_config(data)
