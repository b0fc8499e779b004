"""Counts against a second route: the architecture built without weights."""

from __future__ import annotations

from typing import Any

import pytest
from helpers.model_cases import META_COUNTS, SMALL

from specopt.instances.checkpoints.model_config import parse_model_config


@pytest.mark.parametrize("name", SMALL)
def test_counts_of_built_architectures(name: str) -> None:
    """Tests that parameters of every type are those counted once on torch's meta device (see `META_COUNTS`)."""
    assert parse_model_config(SMALL[name]).parameters == META_COUNTS[name]


@pytest.mark.parametrize("name", SMALL)
def test_the_library_still_counts_so(name: str) -> None:
    """Tests that transformers, where it is installed, builds as many parameters on the meta device."""
    transformers: Any = pytest.importorskip("transformers")
    torch: Any = pytest.importorskip("torch")
    fields = dict(SMALL[name]) | {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
    config = transformers.AutoConfig.for_model(fields.pop("model_type"), **fields)
    with torch.device("meta"):
        model = transformers.AutoModelForCausalLM.from_config(config)
    model.tie_weights()
    counted = sum(item.numel() for item in model.parameters())
    assert counted == parse_model_config(SMALL[name]).parameters
