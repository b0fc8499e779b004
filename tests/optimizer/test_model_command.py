"""`specopt model`: both cost models, as JSON and for people."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from helpers.command_line import CommandLine
from helpers.model_cases import PUBLISHED, SMALL
from oracles import serving_latency as naive

from specopt.models.decoder import ExactDecoder, PaperDecoder
from specopt.models.fields import parse

TINY_LLAMA = {
    "model_type": "llama",
    "hidden_size": 2048,
    "intermediate_size": 5632,
    "num_hidden_layers": 22,
    "num_attention_heads": 32,
    "num_key_value_heads": 4,
    "vocab_size": 32000,
    "torch_dtype": "bfloat16",
}
OPT_350M = {
    "model_type": "opt",
    "hidden_size": 1024,
    "ffn_dim": 4096,
    "num_hidden_layers": 24,
    "num_attention_heads": 16,
    "vocab_size": 50272,
    "word_embed_proj_dim": 512,
    "do_layer_norm_before": False,
    "max_position_embeddings": 2048,
}


@pytest.fixture
def tiny_llama(tmp_path: Path) -> Path:
    """The config of a model whose counts are published."""
    path = tmp_path / "tiny-llama.json"
    path.write_text(json.dumps(TINY_LLAMA))
    return path


def test_json(tiny_llama: Path, cli: CommandLine) -> None:
    """Tests that --json gives name, both cost models at two bytes per value, and the config's own
    data type.
    """
    found = cli(f"model {tiny_llama} --json").json
    assert found["name"] == "tiny-llama"
    assert found["bytes_per_value"] == 2 and found["config_dtype"] == "bfloat16"
    exact, paper = found["exact"], found["paper"]
    assert (exact["parameters"], exact["kv_bytes_per_token"], exact["weight_bytes"]) == (
        1_100_048_384,
        22_528,
        2_200_096_768,
    )
    assert (paper["parameters"], paper["kv_bytes_per_token"], paper["weight_bytes"]) == (
        22 * (4 * 2048**2 + 2 * 2048 * 5632),
        4 * 22 * 2048,
        44 * (4 * 2048**2 + 2 * 2048 * 5632),
    )


def test_models_can_be_pasted(tiny_llama: Path, cli: CommandLine) -> None:
    """Tests that both `model` objects are what problems take, and cost what the FLOPs beside them
    say.
    """
    found = cli(f"model {tiny_llama} --json").json
    shapes: tuple[tuple[str, type[PaperDecoder | ExactDecoder]], ...] = (
        ("paper", PaperDecoder),
        ("exact", ExactDecoder),
    )
    for key, cls in shapes:
        costs: Any = found[key]
        decoder = parse(cls, costs["model"])
        assert type(decoder) is cls
        flops = (
            costs["flops_per_token"] * 9
            + costs["flops_per_token_pair"] * 9 * 50
            + 3 * costs["flops_per_logit"]
        )
        if key == "exact":
            weights = 2048 * 64 * (2 * 32 + 2 * 4) + 3 * 2048 * 5632
            assert flops == 22 * (2 * weights * 9 + 4 * 32 * 64 * 9 * 50) + 2 * 2048 * 32000 * 3
        assert costs["kv_bytes_per_token"] == naive.kv_bytes(costs["model"])


def test_dtype(tiny_llama: Path, cli: CommandLine) -> None:
    """Tests that --dtype scales the bytes of both cost models, and nothing else."""
    two = cli(f"model {tiny_llama} --json").json
    four = cli(f"model {tiny_llama} --json --dtype float32").json
    assert four["bytes_per_value"] == 4
    for key in ("paper", "exact"):
        for name in ("kv_bytes_per_token", "weight_bytes"):
            assert four[key][name] == 2 * two[key][name]
        for name in ("parameters", "flops_per_token", "flops_per_token_pair", "flops_per_logit"):
            assert four[key][name] == two[key][name]


def test_for_people(tiny_llama: Path, tmp_path: Path, cli: CommandLine) -> None:
    """Tests that the table shows both cost models, how far the papers' is off, and what vision
    adds.
    """
    out = cli(f"model {tiny_llama}").out
    for word in (
        "1,100,048,384",
        "876,609,536",
        "-20.3%",
        "22,528",
        "180,224",
        "+700.0%",
        "bfloat16",
        "92,160",
    ):
        assert word in out
    path = tmp_path / "gemma.json"
    path.write_text(json.dumps(PUBLISHED["gemma-4-26b-a4b"]))
    assert "572,792,112 parameters outside the decoder" in cli(f"model {path}").out


def test_what_no_cost_model_can_say(tmp_path: Path, cli: CommandLine) -> None:
    """Tests that embeddings behind a projection are counted, and that no `model` object pretends to
    hold them.
    """
    path = tmp_path / "opt.json"
    path.write_text(json.dumps(OPT_350M))
    exact = cli(f"model {path} --json").json["exact"]
    assert exact["parameters"] == 331_196_416
    assert exact["model"] is None and exact["flops_per_logit"] is None
    assert "word_embed_proj_dim" in cli(f"model {path}").out


@pytest.mark.parametrize(
    ("content", "arguments", "words"),
    [
        ('{"model_type": "rwkv"}', "", ("bad.json", "model_type", "rwkv")),
        (json.dumps(TINY_LLAMA | {"num_local_experts": 8}), "", ("bad.json", "num_local_experts")),
        ("[", "", ("bad.json", "JSON")),
        (json.dumps(TINY_LLAMA), "--dtype int3", ("dtype", "int3", "float32")),
    ],
)
def test_refusals(
    tmp_path: Path,
    cli: CommandLine,
    content: str,
    arguments: str,
    words: tuple[str, ...],
) -> None:
    """Tests that a refusal is one line on stderr, exit code 2."""
    path = tmp_path / "bad.json"
    path.write_text(content)
    cli.refuses(f"model {path} {arguments}", *words)


def test_file_names_need_not_be_text(tmp_path: Path, cli: CommandLine) -> None:
    """Tests that a file whose name is not UTF-8 is read, and that its name is shown escaped."""
    path = tmp_path / os.fsdecode(b"tiny-\xff.json")
    path.write_text(json.dumps(TINY_LLAMA))
    assert r"tiny-\udcff: 1,100,048,384 parameters" in cli(f"model {path}").out


def test_experts_and_heads(tmp_path: Path, cli: CommandLine) -> None:
    """Tests that --json has the counts of experts, what passes read, and heads apart; paper is
    null, and noted.
    """
    path = tmp_path / "deepseek.json"
    path.write_text(json.dumps(SMALL["deepseek-v3"] | {"num_nextn_predict_layers": 1}))
    found = cli(f"model {path} --json").json
    exact, head = found["exact"], found["heads"][0]
    assert found["paper"] is None and any(note.startswith("paper: null") for note in found["notes"])
    assert (
        exact["parameters"] == 211_152 and exact["routed_expert_parameters"] == 3 * 8 * 3 * 24 * 64
    )
    assert exact["active_parameters"] == 211_152 - 3 * 6 * 3 * 24 * 64
    assert exact["kv_bytes_per_token"] == 4 * (20 + 4) * 2 and exact["weight_bytes"] == 2 * 211_152
    assert exact["reads"]["experts"] == [
        {"layers": 3, "experts": 8, "experts_per_token": 2, "expert_bytes": 2.0 * 3 * 24 * 64}
    ]
    assert (head["kind"], head["layers"], head["kv_bytes_per_token"]) == ("mtp", 1, (20 + 4) * 2)
    out = cli(f"model {path}").out
    for word in ("211,152", "in routed experts", "mtp head", "16 tokens read", "uniform routing"):
        assert word in out
