"""Models of today: counts against their published checkpoints, and small configs of every
family.
"""

from __future__ import annotations

import contextlib
import json
from math import prod
from typing import Any

import pytest
from helpers.model_cases import COUNTS, PUBLISHED, SMALL
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies.model_config import junk

from specopt.instances.checkpoints.model_config import parse_model_config
from specopt.models.errors import InvalidInput

GIB = 2**30
M3_VISION = (
    1280 * 3 * 2 * 14 * 14
    + 2 * 1280
    + 32 * (4 * 1280 * 1281 + 2 * 5120 * 1280 + 5120 + 1280 + 4 * 1280)
    + 6144 * 1281
    + 6144 * 24577
    + 2 * 6144 * 6145
)
GLM_5_2 = {"index_topk_freq": 4, "index_skip_topk_offset": 3}
CHECKPOINTS: list[tuple[str, dict[str, Any], int, int]] = [
    ("kimi-linear-48b-a3b", {}, 49_122_681_728, 26 * 256),
    ("glm-5", {}, 753_864_139_008, 76 * 256),
    ("glm-5", GLM_5_2, 753_329_940_480, 76 * 256),
    ("glm-4.7-flash", {}, 31_221_488_576, 47 * 64 + 2 * 154880 * 2048),
    ("minimax-m3", {}, 427_040_140_160, 57 * 128 + M3_VISION),
    ("nemotron-3-nano-30b-a3b", {}, 31_577_937_344, 0),
]
"""Values of published checkpoints, and of them those that are no parameters of decoder and heads:
corrections of routers, which are buffers, copies of embeddings, image encoders.
"""

BYTES = [
    ("deepseek-v3.2", 642.12, 2 * 2 * 129280 * 7168 / GIB),
    ("deepseek-v4-flash", 148.65, 0.0),
    ("deepseek-v4-pro", 805.32, 0.0),
    ("kimi-k2.5", 554.27, 0.9),
    ("kimi-k3", 1453.66, 0.8),
    ("minimax-m2.7", 214.32, 0.0),
    ("mimo-v2.5-pro", 962.40, 1.84),
]
"""GiB of all tensors; of them those of copies of embeddings, image encoders, or layers that a
config does not name.
"""


@pytest.mark.parametrize(("name", "change", "values", "other"), CHECKPOINTS)
def test_values_of_checkpoints(name: str, change: dict[str, Any], values: int, other: int) -> None:
    """Tests that decoder and heads have exactly the values that the safetensors headers of the hub
    add up to.
    """
    found = parse_model_config(PUBLISHED[name] | change)
    counted = found.parameters + sum(head.parameters for head in found.heads)
    assert counted + other == values


@pytest.mark.parametrize(("name", "total", "other"), BYTES)
def test_bytes_of_checkpoints(name: str, total: float, other: float) -> None:
    """Tests that quantised checkpoints have the bytes of their files to 0.1 %: scales differ in
    their precision.
    """
    found = parse_model_config(PUBLISHED[name])
    counted = (found.weight_bytes + sum(head.weight_bytes for head in found.heads)) / GIB
    assert counted + other == pytest.approx(total, rel=1e-3)


def test_kimi_k3_by_its_tensors() -> None:
    """Tests that Kimi-K3 has the tensors of its files, listed one by one."""
    hidden = 7168
    delta = [
        (128,),
        (96, hidden),
        (12288,),
        (128, hidden),
        (12288, 128),
        (128,),
        *[(12288, 1, 4), (12288, hidden)] * 3,
    ]
    latent = [(512,), (576, hidden), (24576, 512), (1536,), (1536, hidden), (18432, 1536)]
    each = [(hidden,)] * 6 + [(12288, hidden), (hidden, 12288)]
    routed = [(896, 3072, 3584)] * 3 + [
        (896, hidden),
        (3584, hidden),
        (3584,),
        (hidden, 3584),
        *[(6144, hidden)] * 3,
    ]
    once = [(163840, hidden)] * 2 + [(33792, hidden)] * 3 + [(hidden,)] * 3
    counts = ((delta, 69), (latent, 24), (each, 93), (routed, 92), (once, 1))
    found = parse_model_config(PUBLISHED["kimi-k3"])
    assert found.parameters == sum(times * sum(map(prod, shapes)) for shapes, times in counts)
    assert found.kv_bytes_per_token == 24 * (512 + 64) * 2
    assert found.state_bytes_per_sequence == 69 * 2 * (96 * 128 * 128 + 3 * 12288 * 3)


def test_a_published_dspark_head() -> None:
    """Tests that a DSpark head for Qwen3.8-27B has the bytes of its file, 2,718,576,122, without
    its header.
    """
    found = parse_model_config(PUBLISHED["qwen3.8-27b-dspark"])
    assert found.kind == "dspark" and 0 < 2_718_576_122 - found.weight_bytes < 10_000
    assert found.borrowed_parameters == 2 * 248320 * 5120


def test_targets_with_a_dspark_head_inside() -> None:
    """Tests that the layers of such a head may be listed, and that it is named, not counted as a
    plain one.
    """
    data = SMALL["deepseek-v4"]
    found = parse_model_config(
        data | {"compress_ratios": [0, 0, 4, 128, 4, 0, 0, 0], "dspark_block_size": 5}
    )
    assert found.parameters == COUNTS["deepseek-v4"]["parameters"] and found.heads == ()
    assert any(
        "num_nextn_predict_layers: layers for drafting; they are not counted" in note
        for note in found.notes
    )


def test_other_names_of_the_same() -> None:
    """Tests that GLM-5.3-Flash's own names of kinds and sizes mean what the library's mean."""
    data = {
        key: value for key, value in SMALL["glm-5-next"].items() if not key.startswith("linear_")
    }
    names = {
        "linear_attention": "linear_attention",
        "indexed_attention": "deepseek_sparse_attention",
    }
    data["layer_types"] = [names[name] for name in data["layer_types"]]
    data["linear_attn_config"] = {
        "num_heads": 4,
        "head_dim": 8,
        "short_conv_kernel_size": 4,
        "kda_layers": [0, 1],
    }
    wrapped = parse_model_config({"model_type": "glm5_next", "text_config": data | {"mhc": True}})
    assert wrapped.parameters == COUNTS["glm-5-next"]["parameters"]


@pytest.mark.parametrize("name", SMALL)
def test_small_configs(name: str) -> None:
    """Tests that a small config of every family counts as recorded (see the folder's README)."""
    found = parse_model_config(SMALL[name])
    assert {
        "parameters": found.parameters,
        "kv_bytes_per_token": found.growing_kv_bytes,
        "window_kv_bytes": found.window_kv_bytes,
        "state_bytes": found.state_bytes_per_sequence,
        "heads": [head.parameters for head in found.heads],
    } == COUNTS[name]


AWQ = {
    "quant_method": "awq",
    "bits": 4,
    "group_size": 32,
    "zero_point": True,
    "modules_to_not_convert": ["lm_head"],
}


@given(
    st.sampled_from([*SMALL.values(), PUBLISHED["llama-3.1-8b-eagle3"], PUBLISHED["mimo-7b"]]),
    st.data(),
)
@settings(max_examples=500)
def test_broken_configs(config: dict[str, Any], data: st.DataObject) -> None:
    """Tests that a family's config with some field broken or gone is refused as bad input, or
    counted.
    """
    whole = json.loads(json.dumps(config | {"quantization_config": AWQ}))
    part = data.draw(
        st.sampled_from([whole, whole.get("text_config", whole), whole["quantization_config"]])
    )
    for key in data.draw(st.lists(st.sampled_from(sorted(part)), min_size=1, max_size=2)):
        part[key] = data.draw(st.integers(-1, 9) | junk)
    with contextlib.suppress(InvalidInput):
        found = parse_model_config(whole)
        assert found.parameters >= found.active_parameters > 0 and found.flops_per_token >= 0
        assert found.kv_bytes_per_token >= 0 and found.reads.bytes(3) > 0


LAYER = 2 * 64 * 64 + 2 * 64 * 32 + 2 * 16 + 3 * 64 * 96 + 2 * 64
BLOCK = SMALL["qwen3"] | {"num_hidden_layers": 2}
DFLASH = 2 * LAYER + 3 * 64 * 64 + 2 * 64


@pytest.mark.parametrize(
    ("text", "kind", "expected"),
    [
        (
            """{"architectures": ["DFlashDraftModel"],
            "dflash_config": {"target_layer_ids": [1, 2, 3]}}""",
            "dflash",
            DFLASH,
        ),
        (
            """{"architectures": ["DFlashDraftModel"], "draft_vocab_size": 50,
            "aux_hidden_state_layer_ids": [1, 2, 3]}""",
            "dflash",
            DFLASH + 50 * 64,
        ),
        (
            """{"architectures": ["DSparkDraftModel"], "target_layer_ids": [1, 2, 3],
            "markov_rank": 8}""",
            "dspark",
            DFLASH + 2 * 8 * 112 + 64 + 8 + 1,
        ),
        (
            """{"architectures": ["DominoDraftModel"],
            "dflash_config": {"target_layer_ids": [1, 2, 3], "projector_type": "domino",
            "gru_hidden_dim": 10, "emb_dim": 6}}""",
            "domino",
            DFLASH + 3 * 10 * (64 + 10) + 6 * (64 + 10) + 112 * 6,
        ),
    ],
)
def test_heads_that_draft_blocks(text: str, kind: str, expected: int) -> None:
    """Tests that DFlash, DSpark and Domino have their tensors, in a config of their own or of one
    kind within it.
    """
    data = json.loads(text)
    found = parse_model_config(BLOCK | data)
    assert (found.kind, found.parameters) == (kind, expected)
    if "dflash_config" in data:
        named = data | {"architectures": ["DFlashDraftModel"]}
        assert parse_model_config(BLOCK | named).parameters == expected


def test_parallel_eagle() -> None:
    """Tests that P-EAGLE is EAGLE-3 with a table of its own, and a vector for hidden states that
    are not there.
    """
    base = {key: value for key, value in BLOCK.items() if key != "head_dim"} | {
        "model_type": "llama"
    }
    eagle = parse_model_config(base | {"architectures": ["LlamaForCausalLMEagle3"]})
    for more in (
        {"architectures": ["PEagleDraftModel"]},
        {"draft_vocab_size": 112, "ptd_token_id": 3},
    ):
        found = parse_model_config(base | more)
        assert found.kind == "p-eagle"
        assert found.parameters == eagle.parameters + 112 * 64 + 3 * 64
