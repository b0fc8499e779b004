"""Model configs: counts against published ones and a second route, and refusals by name."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles import model_config as naive_model_config
from strategies.model_config import configs

from specopt import InvalidInput
from specopt.instances.checkpoints.model_config import DTYPES, parse_model_config, read_model_config


def config(
    model_type: str, layers: int, hidden: int, ffn: int, heads: int, vocabulary: int, **more: Any
) -> Any:
    """A config of these sizes."""
    return {
        "model_type": model_type,
        "num_hidden_layers": layers,
        "hidden_size": hidden,
        "ffn_dim" if model_type == "opt" else "intermediate_size": ffn,
        "num_attention_heads": heads,
        "vocab_size": vocabulary,
    } | more


LLAMA = config("llama", 2, 64, 128, 4, 100)
KV = "num_key_value_heads"
POSITIONS = {"max_position_embeddings": 2048}

# model: its config, parameters as published, KV bytes per token at two bytes per value
PUBLISHED: dict[str, tuple[Any, int, int]] = {
    "TinyLlama-1.1B": (
        config("llama", 22, 2048, 5632, 32, 32000, num_key_value_heads=4),
        1_100_048_384,
        22_528,
    ),
    "OPT-350m": (
        config(
            "opt",
            24,
            1024,
            4096,
            16,
            50272,
            word_embed_proj_dim=512,
            do_layer_norm_before=False,
            **POSITIONS,
        ),
        331_196_416,
        98_304,
    ),
    "Qwen2.5-0.5B": (
        config("qwen2", 24, 896, 4864, 14, 151936, num_key_value_heads=2, tie_word_embeddings=True),
        494_032_768,
        12_288,
    ),
    "Gemma-2-2B": (
        config("gemma2", 26, 2304, 9216, 8, 256000, num_key_value_heads=4, head_dim=256),
        2_614_341_888,
        106_496,
    ),
    "Gemma-3-1B": (
        config("gemma3_text", 26, 1152, 6912, 4, 262144, num_key_value_heads=1, head_dim=256),
        999_885_952,
        26_624,
    ),
    "StarCoder2-3B": (
        config("starcoder2", 30, 3072, 12288, 24, 49152, num_key_value_heads=2),
        3_030_371_328,
        30_720,
    ),
    "Pythia-160m": (config("gpt_neox", 12, 768, 3072, 12, 50304), 162_322_944, 36_864),
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_counts(name: str) -> None:
    """Tests that parameters, biases, norms and positions included, and KV bytes are as
    published.
    """
    data, parameters, kv_bytes = PUBLISHED[name]
    found = parse_model_config(data)
    assert found.parameters == parameters
    assert found.weight_bytes == 2 * parameters
    assert found.kv_bytes_per_token == kv_bytes


@given(configs(), st.sampled_from([1, 2, 4]))
def test_counts_are_those_of_the_tensors(data: dict[str, Any], value_bytes: int) -> None:
    """Tests that the counts are the sums over a list of all tensors, written from the raw
    config.
    """
    before = json.dumps(data)
    found = parse_model_config(data, value_bytes=value_bytes)
    assert found.parameters == naive_model_config.parameters(data)
    assert found.weight_bytes == value_bytes * found.parameters
    assert found.kv_bytes_per_token == value_bytes * naive_model_config.kv_values(data)
    assert found.exact.layers == found.paper.layers == data["num_hidden_layers"]
    assert found.projected == (
        "word_embed_proj_dim" in data and data["word_embed_proj_dim"] != data["hidden_size"]
    )
    assert json.dumps(data) == before


@given(configs())
def test_a_decoder_inside_a_wrapper_counts_the_same(data: dict[str, Any]) -> None:
    """Tests that a nested text_config counts as the decoder alone, and that a note says so."""
    nested = parse_model_config(
        {"model_type": "llava", "vision_config": {"hidden_size": 7}, "text_config": data}
    )
    assert nested.parameters == parse_model_config(data).parameters
    assert "text_config" in nested.notes[0]


def test_the_wrapper_ties_where_the_decoder_is_silent() -> None:
    """Tests that tie_word_embeddings around a text_config holds for it, and that two that differ
    are refused.
    """
    assert parse_model_config({"tie_word_embeddings": True, "text_config": LLAMA}).exact.tied
    assert not parse_model_config({"text_config": LLAMA}).exact.tied
    inner = LLAMA | {"tie_word_embeddings": False}
    with pytest.raises(
        InvalidInput, match=r"text_config\.tie_word_embeddings: False contradicts True"
    ):
        parse_model_config({"tie_word_embeddings": True, "text_config": inner})
    with pytest.raises(
        InvalidInput, match="tie_word_embeddings: expected true or false, got 'yes'"
    ):
        parse_model_config({"tie_word_embeddings": "yes", "text_config": LLAMA})


def test_defaults_of_the_class_are_noted() -> None:
    """Tests that a nested Gemma 3 may leave out what its class has as default, and that notes name
    each.
    """
    text = {
        "model_type": "gemma3_text",
        "hidden_size": 2560,
        "intermediate_size": 10240,
        "num_hidden_layers": 34,
    }
    found = parse_model_config({"model_type": "gemma3", "text_config": text})
    assert (
        found.exact.heads,
        found.exact.kv_heads,
        found.exact.head_dim,
        found.exact.vocabulary,
    ) == (
        8,
        4,
        256,
        262208,
    )
    assert found.parameters == 3_880_263_168
    for name in (KV, "head_dim", "vocab_size", "num_attention_heads"):
        assert any(note.startswith(f"{name}: absent") for note in found.notes)


def test_nothing_that_is_set_to_nothing_is_refused() -> None:
    """Tests that marks of other models are fine while they are null, false, 0 or empty."""
    unset: dict[str, Any] = {
        "num_experts": 0,
        "quantization_config": None,
        "is_encoder_decoder": False,
        "pruned_heads": {},
    }
    assert parse_model_config(LLAMA | unset).parameters == parse_model_config(LLAMA).parameters


def test_sliding_windows_and_own_code_are_noted() -> None:
    """Tests that a sliding window leaves the counts and is noted, unless it is off."""
    plain = parse_model_config(LLAMA)
    window = parse_model_config(LLAMA | {"sliding_window": 16})
    assert (
        window.kv_bytes_per_token == plain.kv_bytes_per_token
        and window.parameters == plain.parameters
    )
    assert plain.notes == () and "sliding_window: 16" in window.notes[0]
    assert (
        parse_model_config(LLAMA | {"sliding_window": 16, "use_sliding_window": False}).notes == ()
    )
    assert "auto_map" in parse_model_config(LLAMA | {"auto_map": {"AutoModel": "x.Y"}}).notes[0]


# ---------------------------------------------------------------------------- files


def write(path: Path, data: object, *, prefix: bytes = b"") -> Path:
    """Write a config."""
    path.write_bytes(prefix + json.dumps(data).encode())
    return path


def test_files_and_folders(tmp_path: Path) -> None:
    """Tests that a file, a folder with a config.json, CRLF and a byte-order mark are read, and what
    names it.
    """
    plain = read_model_config(write(tmp_path / "tiny.config.json", LLAMA))
    assert plain.name == plain.exact.name == plain.paper.name == "tiny"
    marked = read_model_config(write(tmp_path / "other.json", LLAMA, prefix=b"\xef\xbb\xbf"))
    assert (marked.name, marked.parameters) == ("other", plain.parameters)
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "config.json").write_bytes(json.dumps(LLAMA, indent=1).replace("\n", "\r\n").encode())
    assert (
        read_model_config(folder).name == read_model_config(folder / "config.json").name == "folder"
    )
    for given_name, expected in (
        ("org/model-1.1B", "org/model-1.1B"),
        ("/home/me/model", "tiny"),
        (7, "tiny"),
    ):
        path = write(tmp_path / "tiny.config.json", LLAMA | {"_name_or_path": given_name})
        assert read_model_config(path).name == expected


@pytest.mark.parametrize("dtype", [*DTYPES, None])
def test_dtypes(tmp_path: Path, dtype: str | None) -> None:
    """Tests that bytes follow the data type asked for, two by default, and never the config's
    own.
    """
    path = write(tmp_path / "c.json", LLAMA | {"torch_dtype": "torch.float32"})
    found = read_model_config(path, dtype=dtype)
    size = 2 if dtype is None else DTYPES[dtype]
    assert found.dtype == "float32"
    assert found.weight_bytes == size * found.parameters
    assert found.kv_bytes_per_token == size * 2 * 2 * 64


def test_unknown_dtypes_are_refused(tmp_path: Path) -> None:
    """Tests that a data type of unknown size is refused with those that are known."""
    with pytest.raises(InvalidInput, match=r"dtype: expected one of float64, .* got 'int4'"):
        read_model_config(write(tmp_path / "c.json", LLAMA), dtype="int4")


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (b"", "expected a JSON document"),
        (b"{", "expected a JSON document"),
        (b"\xff\xfe{\x00}\x00", "expected a JSON document in UTF-8"),
        (b"[" * 100_000, "expected a JSON document"),
        (b'{"hidden_size": ' + b"9" * 5000 + b"}", "expected a JSON document"),
        (b'{"hidden_size": 1, "hidden_size": 2}', "field 'hidden_size' appears twice"),
        (b"[]", "the top level: expected an object"),
        (b" " * (4 * 2**20 + 1), "at most 4 MiB are read"),
    ],
    ids=["empty", "half", "utf-16", "deep", "huge", "twice", "array", "large"],
)
def test_files_that_are_no_configs(tmp_path: Path, raw: bytes, message: str) -> None:
    """Tests that such a file is refused with its name."""
    path = tmp_path / "bad.json"
    path.write_bytes(raw)
    with pytest.raises(InvalidInput, match=message) as caught:
        read_model_config(path)
    assert str(path) in str(caught.value)


def test_missing_files(tmp_path: Path) -> None:
    """Tests that a file that is not there, or a folder without config.json, is refused."""
    with pytest.raises(InvalidInput, match="nope: cannot be read"):
        read_model_config(tmp_path / "nope")
    with pytest.raises(InvalidInput, match=r"config\.json: cannot be read"):
        read_model_config(tmp_path)
    with pytest.raises(InvalidInput, match="cannot be read"):
        read_model_config("a\0b")
