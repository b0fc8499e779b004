"""Model configs: counts against a second route, and files that are refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from helpers.model_cases import SMALL
from hypothesis import given
from hypothesis import strategies as st
from oracles import model_config as naive_model_config
from strategies.model_config import configs

from specopt import InvalidInput
from specopt.instances.checkpoints.model_config import DTYPES, parse_model_config, read_model_config

LLAMA = SMALL["llama"]


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
    """Tests that tie_word_embeddings around a text_config holds for it."""
    assert parse_model_config({"tie_word_embeddings": True, "text_config": LLAMA}).exact.tied
    assert not parse_model_config({"text_config": LLAMA}).exact.tied


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
    for name in ("num_key_value_heads", "head_dim", "vocab_size", "num_attention_heads"):
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


def test_null_is_not_absent() -> None:
    """Tests that null key and value heads are those of the queries, and that absent ones are the
    default of the model type.
    """
    gemma = {
        name: value for name, value in SMALL["gemma3"].items() if name != "num_key_value_heads"
    } | {"num_attention_heads": 8}
    absent = parse_model_config(gemma)
    null = parse_model_config(gemma | {"num_key_value_heads": None})
    assert null.kv_bytes_per_token == 2 * absent.kv_bytes_per_token
    assert len(null.notes) == len(absent.notes) - 1


def test_names_that_do_not_concern_the_decoder() -> None:
    """Tests that an empty name and classes of the whole that are no list change no count, and that
    the first of several classes of heads says the kind.
    """
    plain = parse_model_config(LLAMA)
    assert parse_model_config(LLAMA | {"": 1}).parameters == plain.parameters
    kimi = SMALL["kimi-k2.5"]
    assert (
        parse_model_config(kimi | {"architectures": "Kimi"}).parameters
        == parse_model_config(kimi).parameters
    )
    for kind, classes in (
        ("eagle3", ["LlamaForCausalLMEagle3", "LlamaForCausalLMEagle"]),
        ("eagle", ["LlamaForCausalLMEagle", "LlamaForCausalLMEagle3"]),
    ):
        head = LLAMA | {"architectures": classes, "num_hidden_layers": 1}
        assert parse_model_config(head).kind == kind


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
    assert found.kv_bytes_per_token == size * 4 * 2 * 2 * 16


def test_unknown_dtypes_are_refused(tmp_path: Path) -> None:
    """Tests that a data type of unknown size is refused with those that are known."""
    with pytest.raises(InvalidInput, match=r"dtype: expected one of float64, .* got 'int4'"):
        read_model_config(write(tmp_path / "c.json", LLAMA), dtype="int4")


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (b"", "expected one JSON document, got 0"),
        (b"{}\n{}", "expected one JSON document, got 2"),
        (b"{", "expected JSON"),
        (b"\xff\xfe{\x00}\x00", "expected text in UTF-8"),
        (b"[" * 100_000, "expected JSON"),
        (b'{"hidden_size": ' + b"9" * 5000 + b"}", "expected JSON"),
        (b'{"hidden_size": 1, "hidden_size": 2}', "field 'hidden_size' appears twice"),
        (b"[]", "the top level: expected an object"),
        (b" " * (4 * 2**20 + 1), "the file is larger than 4 MiB; remove unneeded parts"),
    ],
    ids=["empty", "lines", "half", "utf-16", "deep", "huge", "twice", "array", "large"],
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
