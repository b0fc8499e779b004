"""Draft heads: counts against published checkpoints and tensors written out, and what they
borrow.
"""

from __future__ import annotations

from typing import Any

import pytest
from helpers.model_cases import PUBLISHED, SMALL

from specopt.instances.checkpoints.model_config import parse_model_config

LLAMA_8B = PUBLISHED["llama-3.1-8b"]
EAGLE3_8B = PUBLISHED["llama-3.1-8b-eagle3"]
HIDDEN, FFN, KV = 4096, 14336, 8 * 128


def test_eagle3_by_its_tensors() -> None:
    """Tests that an EAGLE-3 head for Llama-3.1-8B has its tensors, listed one by one."""
    found = parse_model_config(EAGLE3_8B)
    attention = (HIDDEN + 2 * KV) * 2 * HIDDEN + HIDDEN * HIDDEN
    expected = (
        3 * HIDDEN * HIDDEN + attention + 3 * HIDDEN * FFN + 3 * HIDDEN + HIDDEN + 32_000 * HIDDEN
    )
    assert (found.kind, found.parameters, found.weight_bytes) == ("eagle3", expected, 2 * expected)
    assert found.kv_bytes_per_token == 2 * KV * 2 and found.active_parameters == expected
    assert found.borrowed_parameters == 128_256 * HIDDEN
    assert found.flops_per_logit == 2 * 32_000 * HIDDEN
    assert found.reads.bytes(3) == found.weight_bytes


def test_ways_to_say_eagle3() -> None:
    """Tests that class, draft vocabulary alone, and a speculator around a layer's config describe
    the same head.
    """
    expected = parse_model_config(EAGLE3_8B).parameters
    bare = {key: value for key, value in EAGLE3_8B.items() if key != "architectures"}
    for data in (
        bare,
        bare | {"architectures": ["LlamaForCausalLM"]},
        {
            "speculators_model_type": "eagle3",
            "architectures": ["Eagle3Speculator"],
            "draft_vocab_size": 32_000,
            "transformer_layer_config": LLAMA_8B | {"num_hidden_layers": 1},
        },
        EAGLE3_8B | {"eagle_config": {"eagle_aux_hidden_state_layer_ids": [1, 15, 28]}},
        EAGLE3_8B | {"target_hidden_size": HIDDEN},
    ):
        found = parse_model_config(data)
        assert (found.kind, found.parameters) == ("eagle3", expected)


def test_eagle3_of_another_width() -> None:
    """Tests that more hidden states widen the first matrix, and a target of another width needs a
    table of its own.
    """
    base = parse_model_config(EAGLE3_8B)
    five = parse_model_config(EAGLE3_8B | {"eagle_aux_hidden_state_layer_ids": [1, 2, 3, 4, 5]})
    assert five.parameters - base.parameters == 2 * HIDDEN * HIDDEN
    other = parse_model_config(EAGLE3_8B | {"target_hidden_size": 8192})
    assert other.parameters - base.parameters == 3 * HIDDEN * HIDDEN + 128_256 * HIDDEN
    assert other.borrowed_parameters == 0
    whole = parse_model_config(
        {key: value for key, value in EAGLE3_8B.items() if key != "draft_vocab_size"}
    )
    assert whole.parameters - base.parameters == (128_256 - 32_000) * HIDDEN


@pytest.mark.parametrize("bias", [True, False])
def test_eagle_by_its_tensors(bias: bool) -> None:
    """Tests that an EAGLE head is a matrix and a layer without its first norm, all else borrowed
    and read.
    """
    data = LLAMA_8B | {
        "architectures": ["LlamaForCausalLMEagle"],
        "num_hidden_layers": 1,
        "bias": bias,
    }
    found = parse_model_config(data)
    layer = 2 * HIDDEN * HIDDEN + 2 * KV * HIDDEN + 3 * HIDDEN * FFN + HIDDEN
    assert found.parameters == 2 * HIDDEN * HIDDEN + (HIDDEN if bias else 0) + layer
    assert found.borrowed_parameters == 2 * 128_256 * HIDDEN
    assert found.reads.bytes(1) == 2 * (found.parameters + 128_256 * HIDDEN)


def test_prediction_layer_of_mimo() -> None:
    """Tests that MiMo-7B's prediction layer has its tensors: two norms, a matrix, a Qwen2 layer, a
    norm.
    """
    (head,) = parse_model_config(PUBLISHED["mimo-7b"]).heads
    attention = 2 * 4096 * 4096 + 2 * 4096 * 1024 + 4096 + 2 * 1024
    expected = 2 * 4096 + 2 * 4096 * 4096 + attention + 3 * 4096 * 11008 + 2 * 4096 + 4096
    assert (head.kind, head.layers, head.parameters) == (
        "mtp",
        1,
        expected,
    ) and expected == 210_790_400
    assert head.kv_bytes_per_token == 2 * 1024 * 2
    assert head.borrowed_parameters == 2 * 151_680 * 4096
    assert head.reads.bytes(1) == 2 * (expected + 151_680 * 4096)


def test_prediction_layers_of_experts_and_hybrids() -> None:
    """Tests that such a layer is like the last with full attention: DeepSeek-V3's has experts,
    Qwen3.5's a cache.
    """
    (deepseek,) = parse_model_config(PUBLISHED["deepseek-v3"]).heads
    assert deepseek.routed_expert_parameters == 256 * 3 * 7168 * 2048
    assert deepseek.parameters == 11_610_067_968 and deepseek.kv_bytes_per_token == (512 + 64) * 2
    (qwen,) = parse_model_config(PUBLISHED["qwen3.5-27b"]).heads
    assert qwen.parameters == 424_699_392 and qwen.kv_bytes_per_token == 2 * 4 * 256 * 2
    assert parse_model_config(PUBLISHED["gpt-oss-20b"]).heads == ()


def test_several_prediction_layers() -> None:
    """Tests that layers have a matrix and norms each, Qwen's one for all."""
    counts = []
    for name, field in (
        ("deepseek-v3", "num_nextn_predict_layers"),
        ("qwen3-5", "mtp_num_hidden_layers"),
    ):
        one, two = (parse_model_config(SMALL[name] | {field: count}).heads[0] for count in (1, 2))
        assert two.kv_bytes_per_token == 2 * one.kv_bytes_per_token and two.layers == 2
        counts.append((one.parameters, two.parameters))
    joined = 2 * 64 * 64 + 3 * 64
    assert counts[0][1] == 2 * counts[0][0] and counts[1][1] == 2 * counts[1][0] - joined


def test_heads_are_quantised_with_their_model() -> None:
    """Tests that a head's weights shrink with the model's, unless they are named to stay."""
    config: dict[str, Any] = {"quant_method": "fp8", "weight_block_size": [128, 128]}
    plain = parse_model_config(PUBLISHED["qwen3.5-27b"]).heads[0]
    small = parse_model_config(PUBLISHED["qwen3.5-27b"] | {"quantization_config": config}).heads[0]
    kept = parse_model_config(
        PUBLISHED["qwen3.5-27b"]
        | {"quantization_config": config | {"modules_to_not_convert": ["mtp"]}}
    ).heads[0]
    assert kept.weight_bytes == plain.weight_bytes > 1.9 * small.weight_bytes
