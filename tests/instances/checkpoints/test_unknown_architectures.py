"""Architectures that the table does not cover, with stand-ins for torch and transformers."""

from __future__ import annotations

import contextlib
import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from helpers.model_cases import SMALL

from specopt.instances.checkpoints.model_config import parse_model_config
from specopt.models.errors import InvalidInput, Unsupported
from specopt.views.model_costs import model_costs

DATA = SMALL["mistral"] | {"model_type": "unheard_of"}
SHAPES = {
    "model.embed_tokens.weight": (112, 64),
    "model.layers.0.self_attn.q_proj.weight": (64, 64),
    "model.norm.weight": (64,),
    "lm_head.weight": (112, 64),
}


@pytest.fixture
def shapes(monkeypatch: pytest.MonkeyPatch) -> dict[str, tuple[int, ...]]:
    """The parameters of what the stand-in for transformers builds; a test may change them."""
    found = dict(SHAPES)

    def build(config: dict[str, Any], *, trust_remote_code: bool) -> Any:
        assert not trust_remote_code and config["hidden_size"] == 64
        items = [(name, SimpleNamespace(shape=shape)) for name, shape in found.items()]
        return SimpleNamespace(tie_weights=lambda: None, named_parameters=lambda: items)

    torch: Any = ModuleType("torch")
    torch.device = lambda name: contextlib.nullcontext()
    transformers: Any = ModuleType("transformers")
    transformers.AutoConfig = SimpleNamespace(for_model=lambda model_type, **fields: fields)
    transformers.AutoModelForCausalLM = SimpleNamespace(from_config=build)
    monkeypatch.setitem(sys.modules, "torch", torch)
    monkeypatch.setitem(sys.modules, "transformers", transformers)
    return found


def test_what_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests that without transformers such a type is refused, with what to install and what to give
    by hand.
    """
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(
        InvalidInput, match=r"torch and transformers are installed\), got 'unheard_of'; measure"
    ):
        parse_model_config(DATA)


@pytest.mark.usefixtures("shapes")
def test_counts_of_what_is_built() -> None:
    """Tests that parameters and operations are those of the tensors, and the cache that of the
    usual fields.
    """
    exact = model_costs(parse_model_config(DATA))["exact"]
    assert (
        exact["parameters"] == 2 * 112 * 64 + 64 * 64 + 64
        and exact["weight_bytes"] == 2 * exact["parameters"]
    )
    assert exact["kv_bytes_per_token"] == 4 * 2 * 2 * 16 * 2
    assert exact["flops_per_token"] == 2 * 64 * 64 and exact["flops_per_logit"] == 2 * 112 * 64
    assert exact["flops_per_token_pair"] == 4 * 2 * 2 * 4 * 16


@pytest.mark.usefixtures("shapes")
@pytest.mark.parametrize(
    ("change", "kv_bytes"),
    [
        (
            {"kv_lora_rank": 20, "qk_rope_head_dim": 4, "qk_nope_head_dim": 8, "v_head_dim": 12},
            4 * 24 * 2,
        ),
        (
            {"sliding_window": 8, "layer_types": ["full_attention", *["sliding_attention"] * 3]},
            2 * 2 * 16 * 2,
        ),
        ({"mamba_d_state": 8}, None),
        ({"num_attention_heads": None}, None),
        ({"layer_types": ["linear_attention"] * 4}, None),
    ],
)
def test_cache_of_named_fields(change: dict[str, Any], kv_bytes: int | None) -> None:
    """Tests that the cache is that of latent, windowed or grouped attention, or unknown, with a
    note and a refusal.
    """
    found = parse_model_config(DATA | change)
    assert model_costs(found)["exact"]["kv_bytes_per_token"] == kv_bytes
    if kv_bytes is None:
        assert "kv_bytes_per_token" in found.notes[-1] and "by hand" in found.notes[-1]
        with pytest.raises(
            Unsupported,
            match="kv_bytes_per_token: cannot be counted for this model; specify it by hand",
        ):
            _ = found.kv_bytes_per_token


def test_experts_and_quantisation_are_left_open(shapes: dict[str, tuple[int, ...]]) -> None:
    """Tests that nothing is guessed of experts that are one tensor, nor of the bytes of quantised
    weights.
    """
    shapes["model.layers.0.mlp.experts.gate_up_proj"] = (8, 128, 64)
    config = {"quant_method": "awq", "bits": 4, "group_size": 32}
    exact = model_costs(
        parse_model_config(DATA | {"num_experts": 8, "quantization_config": config})
    )["exact"]
    for name in ("active_parameters", "reads", "flops_per_token", "weight_bytes"):
        assert exact[name] is None
    assert exact["kv_bytes_per_token"] == 4 * 2 * 2 * 16 * 2
    assert (
        parse_model_config(DATA | {"num_experts": 8}, value_bytes=4).weight_bytes
        == 4 * exact["parameters"]
    )


def test_what_cannot_be_built_is_refused(
    monkeypatch: pytest.MonkeyPatch, shapes: dict[str, Any]
) -> None:
    """Tests that an error of transformers is a refusal of the type."""
    monkeypatch.setattr(
        sys.modules["transformers"].AutoConfig, "for_model", lambda **fields: dict[str, Any]()["x"]
    )
    with pytest.raises(
        InvalidInput, match=r"\(transformers: KeyError\), got 'unheard_of'; measure"
    ):
        parse_model_config(DATA)
