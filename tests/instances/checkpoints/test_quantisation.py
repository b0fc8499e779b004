"""Quantised weights: bytes against published checkpoints and by hand, and what quantisation must
not change.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from helpers.model_cases import PUBLISHED, SMALL

from specopt.instances.checkpoints.config import QUANTISATION, Formulas, Section
from specopt.instances.checkpoints.model_config import (
    ModelConfig,
    parse_model_config,
    read_model_config,
)
from specopt.models.errors import InvalidInput

GPT_OSS_20B = PUBLISHED["gpt-oss-20b"]
NAMES = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")
SQUARE: dict[str, Any] = {
    "model_type": "llama",
    "hidden_size": 256,
    "intermediate_size": 256,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 4,
    "vocab_size": 100,
}
"""Two layers of seven 256 x 256 matrices."""

BLOCK_FP8 = """{"quant_method": "fp8", "activation_scheme": "dynamic",
"weight_block_size": [128, 128]}"""
AWQ = """{"quant_method": "awq", "bits": 4, "group_size": 128, "zero_point": true,
"version": "gemm"}"""
GPTQ = """{"quant_method": "gptq", "bits": 4, "group_size": 128, "desc_act": true, "sym": true}"""
MXFP4 = """{"quant_method": "mxfp4", "modules_to_not_convert": ["model.layers.*.self_attn",
"model.layers.*.mlp.router", "model.embed_tokens", "lm_head"]}"""
# as llm-compressor writes it
COMPRESSED = """{"quant_method": "compressed-tensors", "ignore": ["lm_head"],
"config_groups": {"group_0": {"targets": ["Linear"], "weights": %s, "input_activations": %s}}}"""
W4 = COMPRESSED % (
    """{"num_bits": 4, "type": "int", "strategy": "group", "group_size": 128,
"symmetric": true}""",
    "null",
)
W8 = COMPRESSED % (
    '{"num_bits": 8, "type": "float", "strategy": "channel", "symmetric": true}',
    "null",
)
NVFP4 = COMPRESSED % (
    '{"num_bits": 4, "type": "float", "strategy": "tensor_group", "group_size": 16}',
    '{"dynamic": "local", "num_bits": 4}',
)

VALUES = 256 * 256
# bytes of one 256 x 256 matrix: its values, and what goes with them
BY_HAND = {
    "FP8 in blocks": (BLOCK_FP8, VALUES + 4 * 4),
    "FP8 per matrix": ('{"quant_method": "fp8", "activation_scheme": "static"}', VALUES + 4 + 4),
    "FP8 per row": ('{"quant_method": "fbgemm_fp8"}', VALUES + 256 * 4),
    "AWQ": (AWQ, VALUES / 2 + 256 * 2 * (2 + 0.5)),
    "AWQ without zeros": (AWQ.replace("true", "false"), VALUES / 2 + 256 * 2 * 2),
    "GPTQ": (GPTQ, VALUES / 2 + 256 * 2 * (2 + 0.5) + 256 * 4),
    "GPTQ per row": (
        '{"quant_method": "gptq", "bits": 8, "group_size": -1, "desc_act": true, "sym": true}',
        VALUES + 256 * (2 + 1) + 256 * 4,
    ),
    "W4A16": (W4, VALUES / 2 + 256 * 2 * 2),
    "FP8 per channel": (W8, VALUES + 256 * 2),
    "NVFP4": (NVFP4, VALUES / 2 + VALUES / 16 + 4 + 4),
    "NVFP4 of ModelOpt": (
        '{"quant_method": "modelopt", "quant_algo": "NVFP4"}',
        VALUES / 2 + VALUES / 16 + 4 + 4,
    ),
    "8 bits": ('{"quant_method": "bitsandbytes", "load_in_8bit": true}', VALUES + 256 * 4),
    "4 bits": (
        '{"quant_method": "bitsandbytes", "load_in_4bit": true}',
        VALUES / 2 + VALUES / 64 * 4,
    ),
    "4 bits, scales quantised": (
        """{"quant_method": "bitsandbytes", "load_in_4bit": true,
        "bnb_4bit_use_double_quant": true}""",
        VALUES / 2 + VALUES / 64 + VALUES / 64 / 256 * 4,
    ),
}


def quantised(data: dict[str, Any], config: str, **more: Any) -> ModelConfig:
    """A model whose weights are quantised so."""
    return parse_model_config(data | {"quantization_config": json.loads(config) | more})


@pytest.mark.parametrize("name", BY_HAND)
def test_bytes_of_a_matrix(name: str) -> None:
    """Tests that values, scales, zero points and orders count as written out; head, embeddings,
    norms stay plain.
    """
    config, expected = BY_HAND[name]
    plain = parse_model_config(SQUARE)
    found = quantised(SQUARE, config)
    outside = 2 * (2 * 100 * 256 + 5 * 256)
    head = 0
    if name == "NVFP4 of ModelOpt":  # it names what it leaves out, and names nothing here
        head = 100 * 256 // 2 + 100 * 256 // 16 + 8 - 2 * 100 * 256
    assert found.weight_bytes == 14 * expected + outside + head
    assert (found.parameters, found.kv_bytes_per_token) == (
        plain.parameters,
        plain.kv_bytes_per_token,
    )
    assert found.storage.method == json.loads(config)["quant_method"]


def test_published_checkpoints() -> None:
    """Tests that all tensors of gpt-oss have the bytes that the index of its checkpoint states.

    `total_size` of model.safetensors.index.json: 13,761,264,768 for the 20B model, 65,248,815,744
    for the 120B one.
    """
    assert quantised(GPT_OSS_20B, MXFP4).weight_bytes == 13_761_264_768
    larger = GPT_OSS_20B | {"num_hidden_layers": 36, "num_local_experts": 128}
    assert quantised(larger, MXFP4).weight_bytes == 65_248_815_744


@pytest.mark.parametrize("name", SMALL)
@pytest.mark.parametrize("config", [BLOCK_FP8, AWQ, GPTQ, MXFP4, W4, W8])
def test_quantisation_changes_bytes_alone(name: str, config: str) -> None:
    """Tests that parameters, operations and caches are those of plain weights, and that no pass
    reads more.
    """
    plain = parse_model_config(SMALL[name])
    found = quantised(SMALL[name], config)
    for what in (
        "parameters",
        "active_parameters",
        "routed_expert_parameters",
        "kv_bytes_per_token",
        "flops_per_token",
        "flops_per_token_pair",
        "flops_per_logit",
    ):
        assert getattr(found, what) == getattr(plain, what)
    if config is not GPTQ:  # the order of its columns outweighs what such small matrices save
        assert found.weight_bytes <= plain.weight_bytes and found.reads.bytes(
            5
        ) <= plain.reads.bytes(5)


def test_names_that_stay_plain() -> None:
    """Tests that names, parts of names, wildcards and regular expressions hold, also for a decoder
    in a wrapper.
    """
    everything = 14 * VALUES
    outside = 2 * (2 * 100 * 256 + 5 * 256)
    for names, kept in (
        (["model.layers.0.self_attn.q_proj"], 1),
        (["q_proj"], 2),
        (["model.layers.1"], 7),
        (["model.layers.*.mlp"], 6),
        (["re:.*self_attn.*"], 8),
        (["model.language_model.layers.0.mlp.up_proj"], 1),
        (["proj", "layers.10"], 0),
    ):
        found = quantised(SQUARE, '{"quant_method": "fp8"}', modules_to_not_convert=names)
        assert found.weight_bytes == everything + kept * VALUES + (14 - kept) * 4 + outside


def test_targets_of_groups() -> None:
    """Tests that a group holds for what it names, the general one for the rest, and one without
    weights for none.
    """
    config = """{"quant_method": "compressed-tensors", "ignore": ["lm_head"], "config_groups": {
        "general": {"targets": ["Linear"], "weights": {"num_bits": 8, "strategy": "tensor"}},
        "mlp": {"targets": ["re:.*mlp.*"],
            "weights": {"num_bits": 4, "group_size": 128, "type": "int"}},
        "none": {"targets": ["re:.*k_proj"], "weights": null}}}"""
    small, large = VALUES // 2 + 256 * 2 * 2, VALUES + 2
    outside = 2 * (2 * 100 * 256 + 5 * 256)
    assert quantised(SQUARE, config).weight_bytes == 6 * small + 8 * large + outside
    layers = {f"model.layers.0.self_attn.{name}": {"quant_algo": "FP8"} for name in NAMES[:4]}
    mixed = '{"quant_method": "modelopt", "quant_algo": "MIXED_PRECISION"}'
    found = quantised(SQUARE, mixed, quantized_layers=layers)
    assert found.weight_bytes == 4 * (VALUES + 8) + 10 * 2 * VALUES + outside


def test_byte_caches() -> None:
    """Tests that a cache that is quantised with the weights counts a byte per value."""
    plain = parse_model_config(SQUARE).kv_bytes_per_token
    whole = '{"quant_method": "modelopt", "quant_algo": "FP8", "kv_cache_quant_algo": "FP8"}'
    for found in (
        quantised(SQUARE, W8, kv_cache_scheme={"num_bits": 8, "type": "float"}),
        quantised(SQUARE, whole),
    ):
        assert found.kv_bytes_per_token * 2 == plain


def test_a_size_that_is_asked_for_goes_before() -> None:
    """Tests that bytes asked for hold instead of a config's quantisation, known or not."""
    for config in (json.loads(AWQ), {"quant_method": "unheard-of"}):
        found = parse_model_config(SQUARE | {"quantization_config": config}, value_bytes=4)
        assert found.weight_bytes == 4 * found.parameters and found.storage.method is None


def test_blocks_cover_the_matrix() -> None:
    """Tests that a matrix has a scale for every block that it touches, and bytes for every
    value.
    """
    scheme = Formulas(Section({}), QUANTISATION["fp8"]).having(
        {"bits": 4, "rows": 128, "columns": 128, "scale_bits": 16, "height": 129, "width": 257}
    )
    assert scheme["bytes"] == 129 * 257 // 2 + 1 + 2 * 3 * 2


FIELD = Path(__file__).parents[2] / "data" / "field"
BESIDE = "hf_quant_config.json"


def folder_with(tmp_path: Path, own: dict[str, Any] | None, beside: dict[str, Any]) -> Path:
    """A folder with the 70B config, its own quantisation, and ModelOpt's file."""
    data = json.loads((FIELD / "hf-quant" / "config.json").read_text())
    data |= {} if own is None else {"quantization_config": own}
    (tmp_path / "config.json").write_text(json.dumps(data))
    (tmp_path / BESIDE).write_text(json.dumps(beside))
    return tmp_path


def test_quantisation_beside_the_config() -> None:
    """Tests that `hf_quant_config.json` counts where `config.json` has no quantisation: 70B
    parameters in FP8 take about 72 GB, with the cache in bytes; `--dtype` still goes before.
    """
    found = read_model_config(FIELD / "hf-quant")
    assert found.name == "hf-quant"
    assert found.weight_bytes == pytest.approx(72.7e9, rel=1e-3)
    assert found.kv_bytes_per_token == 80 * 2 * 8 * 128
    assert any(note.startswith(BESIDE) for note in found.notes)
    plain = read_model_config(FIELD / "hf-quant", dtype="bfloat16")
    assert plain.weight_bytes == 2 * plain.parameters


def test_an_empty_quantisation_inside() -> None:
    """Tests that an empty quantisation of the decoder does not hide that of the whole file."""
    fp8 = {"quant_method": "modelopt", "quant_algo": "FP8"}
    inside = {"model_type": "llama", "text_config": SMALL["llama"] | {"quantization_config": {}}}
    found = parse_model_config(inside | {"quantization_config": fp8})
    assert found.storage.method == "modelopt"
    assert found.weight_bytes < 1.2 * found.parameters


def test_keys_that_are_no_strings() -> None:
    """Tests that a rule is refused and that a group is read whatever the type of its key."""
    gptq = {"quant_method": "gptq", "bits": 4, "group_size": 128, "dynamic": {1: 2}}
    with pytest.raises(InvalidInput, match="dynamic: expected only rules that begin with '-:'"):
        parse_model_config(SMALL["llama"] | {"quantization_config": gptq})
    groups = {
        "quant_method": "compressed-tensors",
        "config_groups": {1: {"weights": {"num_bits": 8}}},
    }
    found = parse_model_config(SMALL["llama"] | {"quantization_config": groups})
    assert found.storage.method == "compressed-tensors"


def test_a_broken_file_beside_is_named_once(tmp_path: Path) -> None:
    """Tests that the message about ModelOpt's file begins with its path alone, and that a data type
    that is given needs no such file.
    """
    folder_with(tmp_path, None, {})
    (tmp_path / BESIDE).write_text("{")
    with pytest.raises(InvalidInput) as caught:
        read_model_config(tmp_path)
    assert str(caught.value).startswith(f"{tmp_path / BESIDE}: expected JSON")
    plain = read_model_config(tmp_path, dtype="bfloat16")
    assert plain.weight_bytes == 2 * plain.parameters


def test_two_files_that_disagree(tmp_path: Path) -> None:
    """Tests that `config.json` counts where both have a quantisation, and that a disagreement is
    said, not an agreement.
    """
    fp8 = {"quant_algo": "FP8", "kv_cache_quant_algo": "FP8", "exclude_modules": ["lm_head"]}
    nvfp4 = {"quant_method": "modelopt", "quant_algo": "NVFP4", "ignore": ["lm_head"]}
    found = read_model_config(folder_with(tmp_path, nvfp4, {"quantization": fp8}))
    assert found.weight_bytes < 45e9
    (note,) = (note for note in found.notes if note.startswith(BESIDE))
    assert "72,656,376,192 bytes of weights and 163,840 bytes of KV cache" in note
    counted = f"{found.weight_bytes:,} and {found.kv_bytes_per_token:,}"
    assert note.endswith(f", but config.json, which is used, implies {counted}")
    own = {"quant_method": "modelopt", **fp8}
    found = read_model_config(folder_with(tmp_path, own, {"quantization": fp8}))
    assert not any(note.startswith(BESIDE) for note in found.notes)
    with pytest.raises(InvalidInput, match=rf"{BESIDE}\.quantization: expected an object"):
        read_model_config(folder_with(tmp_path, None, {"producer": {}}))


def test_experts_beside_a_network_that_stays_plain() -> None:
    """Tests that names of a dense network do not hold for the experts beside it: two layers take
    2.57 GB.
    """
    found = read_model_config(FIELD / "gemma4-moe-nvfp4.config.json")
    assert found.weight_bytes == pytest.approx(2.57e9, rel=2e-3)


def test_names_that_match_nothing() -> None:
    """Tests that patterns that match no tensor are said, and that of a tied output matrix is
    not.
    """
    kept = ["lm_head", "model.layers.*.mlp", "model.layer.0", "re:.*vision.*"]
    config = {"quant_method": "fp8", "modules_to_not_convert": kept}
    found = quantised(SQUARE | {"tie_word_embeddings": True}, json.dumps(config))
    (note,) = (note for note in found.notes if "match no counted tensor" in note)
    assert "2 of the listed names" in note
    assert "'model.layer.0', 're:.*vision.*'" in note
