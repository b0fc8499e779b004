"""Decoder shapes against published counts and against the equations."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles import serving_latency as naive

from specopt import ExactDecoder, InvalidInput, PaperDecoder
from specopt.instances.serving_latency.paper_1 import LLAMA_1_1B, LLAMA_7B, LLAMA_13B, LLAMA_68M
from specopt.kinds.serving_latency.strategies import decoders
from specopt.models.fields import dump


def llama(
    layers: int, hidden: int, ffn: int, heads: int, kv_heads: int, vocabulary: int = 32000
) -> ExactDecoder:
    """A decoder of the LLaMA family: gated, untied."""
    return ExactDecoder(
        layers=layers,
        hidden=hidden,
        ffn=ffn,
        heads=heads,
        kv_heads=kv_heads,
        head_dim=hidden // heads,
        gated=True,
        vocabulary=vocabulary,
        tied=False,
    )


def qwen3(layers: int, hidden: int, ffn: int, heads: int, *, tied: bool) -> ExactDecoder:
    """A decoder of the Qwen3 family: heads of 128 whatever the hidden size, 8 KV heads."""
    return ExactDecoder(
        layers=layers,
        hidden=hidden,
        ffn=ffn,
        heads=heads,
        kv_heads=8,
        head_dim=128,
        gated=True,
        vocabulary=151936,
        tied=tied,
    )


# model, parameters as published less the norms, KV bytes per token at FP16. A LLaMA layer has two
# norms of the hidden size and there is one behind the last layer; Qwen3 has two more of the head
# size per layer.
PUBLISHED = {
    "llama-68m": (llama(2, 768, 3072, 12, 12), 68_030_208 - 5 * 768, 6_144),
    "TinyLlama-1.1B": (llama(22, 2048, 5632, 32, 4), 1_100_048_384 - 45 * 2048, 22_528),
    "Llama-2-7B": (llama(32, 4096, 11008, 32, 32), 6_738_415_616 - 65 * 4096, 524_288),
    "Llama-2-13B": (llama(40, 5120, 13824, 40, 40), 13_015_864_320 - 81 * 5120, 819_200),
    "Qwen3-0.6B": (
        qwen3(28, 1024, 3072, 16, tied=True),
        596_049_920 - 57 * 1024 - 28 * 256,
        114_688,
    ),
    "Qwen3-32B": (
        qwen3(64, 5120, 25600, 64, tied=False),
        32_762_123_264 - 129 * 5120 - 64 * 256,
        262_144,
    ),
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_counts(name: str) -> None:
    """Tests that parameters and KV bytes of real models are as published, norms taken off."""
    model, parameters, kv = PUBLISHED[name]
    assert model.parameter_count == parameters
    assert model.parameter_bytes == 2 * parameters
    assert model.kv_bytes_per_token == kv


@pytest.mark.parametrize(
    ("model", "parameters", "kv"),
    [
        (LLAMA_68M, 2 * (4 * 768**2 + 2 * 768 * 3072), 6_144),
        (LLAMA_1_1B, 22 * (4 * 2048**2 + 2 * 2048 * 5632), 180_224),
        (LLAMA_7B, 32 * (4 * 4096**2 + 2 * 4096 * 11008), 524_288),
        (LLAMA_13B, 40 * (4 * 5120**2 + 2 * 5120 * 13824), 819_200),
    ],
)
def test_the_papers_shapes(model: PaperDecoder, parameters: int, kv: int) -> None:
    """Tests that Table I gives Eq. 9, two bytes a weight, and Eq. 10, which ignores grouped
    heads.
    """
    assert model.parameter_count == parameters
    assert model.parameter_bytes == 2 * parameters
    assert model.kv_bytes_per_token == kv


def test_the_papers_cost_is_low() -> None:
    """Tests that the paper's count is 20-25 % low, for LLaMA-68M 79 %, and its KV bytes up to 8x
    high.
    """
    for paper, name, low, high in (
        (LLAMA_68M, "llama-68m", 0.785, 0.795),
        (LLAMA_1_1B, "TinyLlama-1.1B", 0.19, 0.255),
        (LLAMA_7B, "Llama-2-7B", 0.20, 0.255),
        (LLAMA_13B, "Llama-2-13B", 0.20, 0.255),
    ):
        assert low < 1 - paper.parameter_count / PUBLISHED[name][0].parameter_count < high
    assert LLAMA_1_1B.kv_bytes_per_token == 8 * PUBLISHED["TinyLlama-1.1B"][0].kv_bytes_per_token


@given(
    decoders,
    st.integers(1, 50),
    st.integers(0, 10),
    st.integers(1, 20),
    st.sampled_from([1.0, 1.75, 3.3616]),
)
def test_flops_are_those_of_the_equations(
    model: PaperDecoder | ExactDecoder, padded: int, length: int, step: int, tokens_per_step: float
) -> None:
    """Tests that the three coefficients of a pass give Eq. 11-14, and the bytes Eq. 9-10."""

    def flops(lengths: tuple[float, float], logits: int) -> float:
        new, total = lengths
        pair = model.flops_per_token_pair * new * total
        return model.flops_per_token * new + pair + model.flops_per_logit * logits

    data = dump(model)
    grown = padded + (step - 1) * tokens_per_step
    verify = (padded + length, padded + length) if step == 1 else (1 + length, grown + length)
    assert flops(verify, 1 + length) == pytest.approx(
        naive.verify_flops(data, padded, tokens_per_step, length, step), rel=1e-13
    )
    for i in range(1, length + 1):
        draft = (padded, padded) if step == 1 and i == 1 else (1, grown + i - 1)
        assert flops(draft, 1) == pytest.approx(
            naive.draft_flops(data, padded, tokens_per_step, i, step), rel=1e-13
        )
    assert model.parameter_bytes == naive.parameter_bytes(data)
    assert model.kv_bytes_per_token == naive.kv_bytes(data)


def test_heads_share_kv_heads_evenly() -> None:
    """Tests that the number of KV heads divides the number of heads."""
    with pytest.raises(InvalidInput, match="kv_heads: expected a divisor of heads = 32, got 5"):
        llama(1, 64, 64, 32, 5)
