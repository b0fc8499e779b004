"""Experts, latent and linear attention, windows: counts against published ones."""

from __future__ import annotations

from typing import Any

import pytest
from helpers.model_cases import PUBLISHED, SMALL

from specopt.instances.checkpoints.model_config import parse_model_config
from specopt.models.errors import Unsupported

# parameters, those in routed experts, those active per token, KV bytes per token
COUNTS = {
    "qwen3-30b-a3b": (30_532_122_624, 28_991_029_248, 3_353_032_704, 48 * 2 * 4 * 128 * 2),
    "mixtral-8x7b": (46_702_792_704, 45_097_156_608, 12_879_925_248, 32 * 2 * 8 * 128 * 2),
    "deepseek-v2-lite": (15_706_484_224, 14_394_851_328, 2_661_150_208, 27 * (512 + 64) * 2),
    "qwen3.5-27b": (26_895_998_464, 0, 26_895_998_464, 16 * 2 * 4 * 256 * 2),
    "gemma-4-26b-a4b": (25_233_141_760, 22_837_985_280, 3_822_530_560, 5 * 2 * 2 * 512 * 2),
    "mimo-7b": (7_622_619_136, 0, 7_622_619_136, 36 * 2 * 8 * 128 * 2),
    "deepseek-v3": (671_026_404_352, 653_908_770_816, 37_552_282_624, 61 * (512 + 64) * 2),
    "gpt-oss-20b": (20_914_757_184, 19_116_933_120, 4_187_440_704, 12 * 2 * 8 * 64 * 2),
    "tinyllama-1.1b": (1_100_048_384, 0, 1_100_048_384, 22 * 2 * 4 * 64 * 2),
    "opt-350m": (331_196_416, 0, 331_196_416, 24 * 2 * 1024 * 2),
    "qwen2.5-0.5b": (494_032_768, 0, 494_032_768, 24 * 2 * 2 * 64 * 2),
    "gemma-2-2b": (2_614_341_888, 0, 2_614_341_888, 26 * 2 * 4 * 256 * 2),
    "gemma-3-1b": (999_885_952, 0, 999_885_952, 26 * 2 * 256 * 2),
    "starcoder2-3b": (3_030_371_328, 0, 3_030_371_328, 30 * 2 * 2 * 128 * 2),
    "pythia-160m": (162_322_944, 0, 162_322_944, 12 * 2 * 768 * 2),
}


@pytest.mark.parametrize("name", COUNTS)
def test_published_counts(name: str) -> None:
    """Tests that counts are those published, or of the architecture built without weights
    (transformers on the meta device).

    Gemma 4: 25,805,933,872 with 572,792,112 of vision. MiMo-7B was built as the Qwen2 that it is;
    with its prediction layer, 210,790,400 (see `test_heads`), it has 7,833,409,536. KV bytes are
    written out: layers x values x 2.
    """
    parameters, routed, active, kv_bytes = COUNTS[name]
    found = parse_model_config(PUBLISHED[name])
    assert (found.parameters, found.routed_expert_parameters) == (parameters, routed)
    assert found.active_parameters == active
    assert found.kv_bytes_per_token == kv_bytes
    assert found.weight_bytes == 2 * parameters


def test_vision_is_counted_apart() -> None:
    """Tests that Gemma 4's image encoder has 572,792,112 parameters, and that an unknown one is
    left open.
    """
    assert parse_model_config(PUBLISHED["gemma-4-26b-a4b"]).vision_parameters == 572_792_112
    llava = {
        "model_type": "llava",
        "vision_config": {"hidden_size": 8},
        "text_config": PUBLISHED["llama-3.1-8b"],
    }
    assert parse_model_config(llava).vision_parameters is None


def test_qwen_vision_by_hand() -> None:
    """Tests that the encoder of Qwen3-VL has its tensors listed one by one, depths that feed the
    decoder included.
    """
    vision = {
        "depth": 2,
        "hidden_size": 8,
        "intermediate_size": 12,
        "in_channels": 3,
        "temporal_patch_size": 2,
        "patch_size": 4,
        "spatial_merge_size": 2,
        "out_hidden_size": 64,
        "num_position_embeddings": 9,
        "deepstack_visual_indexes": [1],
    }
    block = 2 * (8 + 8) + (24 * 8 + 24) + (8 * 8 + 8) + (12 * 8 + 12) + (8 * 12 + 8)
    merger = (32 * 32 + 32) + (64 * 32 + 64)
    expected = (8 * 3 * 2 * 4 * 4 + 8) + 9 * 8 + 2 * block + (8 + 8 + merger) + (32 + 32 + merger)
    found = parse_model_config(
        {"model_type": "qwen3_5", "text_config": SMALL["qwen3-5"], "vision_config": vision}
    )
    assert found.vision_parameters == expected


def test_a_window_bounds_the_cache() -> None:
    """Tests that caches that stop growing are named apart, and count where there is no other."""
    gemma = parse_model_config(PUBLISHED["gemma-4-26b-a4b"])
    assert (gemma.window_kv_bytes, gemma.window) == (25 * 2 * 8 * 256 * 2, 1024)
    plain = parse_model_config(SMALL["mistral"])
    windows = parse_model_config(SMALL["mistral"] | {"sliding_window": 16})
    assert windows.kv_bytes_per_token == plain.kv_bytes_per_token == windows.window_kv_bytes
    assert (windows.growing_kv_bytes, plain.window_kv_bytes) == (0, 0)
    some = SMALL["qwen3"] | {
        "use_sliding_window": True,
        "max_window_layers": 3,
        "sliding_window": 16,
    }
    assert parse_model_config(some).kv_bytes_per_token == 3 * 2 * 2 * 16 * 2
    assert parse_model_config(some).notes[-1] == (
        "sliding_window: 128 bytes per token are cached for at most 16 tokens, and 384 bytes per"
        " token for all tokens"
    )
    assert windows.notes[-1].endswith("at most 16 tokens, and 0 bytes per token for all tokens")
    assert parse_model_config(some | {"max_window_layers": 0}).growing_kv_bytes == 0


def test_states_do_not_grow() -> None:
    """Tests that linear attention keeps a matrix per head and the last inputs of its convolution,
    and no cache.
    """
    found = parse_model_config(SMALL["qwen3-5"])
    assert found.state_bytes_per_sequence == 3 * 2 * (4 * 8 * 12 + 3 * (2 * 2 * 8 + 4 * 12))
    assert found.kv_bytes_per_token == 1 * 2 * 2 * 16 * 2


@pytest.mark.parametrize("name", SMALL)
def test_a_token_reads_what_is_active(name: str) -> None:
    """Tests that one token reads the active weights but the table of embeddings, and multiplies by
    their matrices.
    """
    found = parse_model_config(SMALL[name])
    config = SMALL[name] | SMALL[name].get("text_config", {})
    tied = config.get("tie_word_embeddings", name.startswith(("gemma", "smollm3", "lfm2")))
    values = config["vocab_size"] * config["hidden_size"]
    table = 0 if tied else values
    table += (
        config.get("vocab_size_per_layer_input", 0)
        * 4
        * config.get("hidden_size_per_layer_input", 0)
    )
    assert found.reads.bytes(1) == pytest.approx(2 * (found.active_parameters - table), rel=1e-12)
    assert found.flops_per_token < 2 * found.active_parameters
    assert found.flops_per_logit == 2 * values


@pytest.mark.parametrize("data", [PUBLISHED["llama-3.1-8b"], SMALL["llama"], SMALL["gemma3"]])
def test_dense_operations_are_the_cost_models(data: Any) -> None:
    """Tests that operations counted tensor by tensor are those of the exact cost model."""
    found = parse_model_config(data)
    assert found.flops_per_token == found.exact.flops_per_token
    assert found.flops_per_token_pair == found.exact.flops_per_token_pair
    assert found.flops_per_logit == found.exact.flops_per_logit


def test_layers_may_borrow_keys_and_values() -> None:
    """Tests that the last layers of a small Gemma 4 cache nothing, and that no pass reads a table
    per layer.
    """
    data = SMALL["gemma4-with-embeddings-per-layer"]
    found = parse_model_config(data)
    assert (found.kv_bytes_per_token, found.window_kv_bytes) == (2 * 2 * 32 * 2, 2 * 2 * 16 * 2)
    assert found.reads.bytes(1) == 2 * (found.parameters - 112 * 4 * 8)


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("mixtral", "routed experts"),
        ("deepseek-v3", "routed experts, latent attention"),
        ("qwen3-5", "linear attention"),
        ("gemma4-without-experts", "layers that differ from each other"),
    ],
)
def test_the_note_says_what_it_has(name: str, reason: str) -> None:
    """Tests that a model that is no dense decoder has no cost model of `serving-latency`, and that
    a note says why.
    """
    found = parse_model_config(SMALL[name])
    assert found.dense is None
    assert found.notes[len(found.heads)] == (
        "paper: null, because the papers' cost model describes only dense decoders, and this model"
        f" has {reason}"
    )
    with pytest.raises(Unsupported, match="for dense decoders only"):
        _ = found.exact
