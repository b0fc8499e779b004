"""Times of forward passes: units, limits, refusals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from helpers.passes import WHICH, at, made

from specopt.models.decoder import ExactDecoder
from specopt.models.errors import InvalidInput
from specopt.models.pass_time import VerificationTime

SMALL = ExactDecoder(
    layers=2,
    hidden=8,
    ffn=16,
    heads=2,
    kv_heads=1,
    head_dim=4,
    gated=True,
    vocabulary=10,
    tied=True,
)
TOKENS = {"seconds_per_token": 1e-3, "overhead_seconds": 0.01}


def test_per_token_by_hand() -> None:
    """Tests that a runtime, or the maximum of two, counts the tokens of the whole batch."""
    assert at(made(TOKENS), 4, 3) == pytest.approx(0.01 + 12e-3)
    roof = made({"pieces": [{"seconds_per_token": 0.0, "overhead_seconds": 0.02}, TOKENS]})
    found = roof.seconds(np.array([[1.0], [20.0]]), np.array([[1.0, 2.0]]), np.array(0.0))
    assert found == pytest.approx(np.array([[0.02, 0.02], [0.03, 0.05]]))


@pytest.mark.parametrize(("all_logits", "logits"), [(True, 3), (False, 1)])
def test_operations_by_hand(all_logits: bool, logits: int) -> None:
    """Tests that a pass counts its operations, all logits or the last one's, and reads its cache
    once per request.
    """
    per_flop = {"seconds_per_flop": 1e-9, "overhead_seconds": 0.0}
    W = 8 * 4 * (2 * 2 + 2 * 1) + 3 * 8 * 16
    found = made(per_flop, decoder=SMALL, all_logits=all_logits)
    alone = 2 * (2 * W * 3 + 4 * 2 * 4 * 3 * 3) + 2 * 8 * 10 * logits
    one_query = 2 * 4 * 2 * 4 * 5
    assert at(found, 7, 3, 5) == pytest.approx(7 * (alone + one_query) * 1e-9, rel=1e-12)
    assert at(found, 7, 3, 5, "upper") == pytest.approx(
        7 * (alone + 3 * one_query) * 1e-9, rel=1e-12
    )
    read = made({**per_flop, "seconds_per_kv_byte": 1e-6}, decoder=SMALL, all_logits=all_logits)
    kv_bytes = 2 * 2 * 1 * 4 * 2 * 5
    assert at(read, 7, 3, 5) == pytest.approx(7 * (alone * 1e-9 + kv_bytes * 1e-6), rel=1e-12)


def test_cached_tokens_are_read_once_per_request() -> None:
    """Tests that without a model the cache costs what is said per token, whatever the new
    tokens.
    """
    found = made({**TOKENS, "seconds_per_cached_token": 1e-5})
    for new in (1, 5):
        assert at(found, 3, new, 100) - at(found, 3, new, 0) == pytest.approx(3 * 100 * 1e-5)
    roof = made({"pieces": [TOKENS, TOKENS], "seconds_per_cached_token": 1e-5})
    assert at(roof, 3, 2, 100) == pytest.approx(0.01 + 6e-3 + 3e-3)


def test_an_estimator_by_hand() -> None:
    """Tests that the additive form is that of verification batches."""
    data = {
        "seconds_per_new_token": 1e-3,
        "seconds_per_interaction": 1e-6,
        "seconds_per_cached_token": 1e-5,
        "overhead_seconds": 0.02,
    }
    by_hand = VerificationTime(**data).seconds(np.full(3, 4), np.full(3, 50))
    for runtime in (data, {"form": "additive", "estimator": data}):
        assert at(made(runtime), 3, 4, 50) == pytest.approx(by_hand, rel=1e-12)


FIT = {
    "form": "linear",
    "runtime": {"seconds_per_flop": 2e-12, "overhead_seconds": 0.01},
    "lower": {"seconds_per_flop": 1e-12, "overhead_seconds": 0.009},
    "upper": {"seconds_per_flop": 3e-12, "overhead_seconds": 0.011},
    "model": {"layers": 2, "hidden": 8, "ffn": 16},
}


def test_a_fits_file_brings_limits_and_model() -> None:
    """Tests that `runtime`, `lower`, `upper` and `model` of a fit's file are taken, other keys
    left.
    """
    found = made(FIT)
    assert found.has_limits
    low, mid, high = (at(found, 1, 1, which=which) for which in WHICH)
    assert low < mid < high
    assert "fit the runtime again" in found.notes[0]
    assert not made(TOKENS).has_limits


def test_limits_hold_the_misfit() -> None:
    """Tests that limits are at least as wide as the misfit, and that the measured range is told and
    kept.
    """
    found = made(FIT | {"misfit": {"low": -0.3, "high": 0.6}, "range": {"flops": [100.0, 1e6]}})
    low, mid, high = (at(found, 1, 1, which=which) for which in WHICH)
    assert (low, high) == pytest.approx((0.7 * mid, 1.6 * mid))
    assert (found.measured, found.notes) == ("flops 100-1e+06", ())
    one = np.array(1.0)
    assert found.covers(one, one, 0.0 * one)
    assert not found.covers(one, 1e9 * one, 0.0 * one)
    told = made(FIT | {"contexts": [100, 300]})
    assert (told.contexts, told.measured) == ((100.0, 300.0), "context 100-300")
    assert told.covers(one, one, np.array([99.0, 100.0, 200.0, 300.0, 301.0])).tolist() == [
        False,
        *[True] * 3,
        False,
    ]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ([], r"file: expected a runtime, got \[\]"),
        (
            {"seconds_per_flop": 4e-13, "overhead_seconds": 0.1},
            "file.seconds_per_flop: 4e-13 is per operation",
        ),
        ({"seconds_per_token": -1.0, "overhead_seconds": 0.1}, "seconds_per_token"),
        (
            {"seconds_per_token": 1e308, "overhead_seconds": 0.1},
            r"file: expected coefficients of at most 1e\+100, got 1e\+308",
        ),
        ({"seconds_per_token": 1.0}, "overhead_seconds"),
        ({"seconds_per_token": 1.0, "overhead_seconds": 0.1, "unit": "s"}, "unit"),
        ({"pieces": []}, "pieces: expected `*array`* of length >= 1, got"),
        ({"pieces": [TOKENS, {"seconds_per_flop": 1.0, "overhead_seconds": 0.0}]}, "pieces"),
        (
            {"runtime": TOKENS, "lower": {"pieces": [TOKENS, TOKENS]}},
            "file.lower: expected the same number of pieces",
        ),
        (
            {"runtime": TOKENS, "upper": {"seconds_per_flop": 1.0, "overhead_seconds": 1.0}},
            "file.upper: expected seconds_per_token, as in runtime",
        ),
        (
            {"runtime": TOKENS, "misfit": [0, 1]},
            r"file.misfit: expected an object with low and high",
        ),
        (
            {"runtime": TOKENS, "misfit": {"low": -1.0, "high": 0}},
            "file.misfit.low: expected a number in",
        ),
        (
            {"runtime": TOKENS, "range": {"flops": [1, 2]}},
            "file.range: unknown field 'flops'; known fields: batch, tokens",
        ),
        (
            {"runtime": TOKENS, "range": {"tokens": [2, 1]}},
            r"file.range.tokens\[1\]: expected a finite number >= 2",
        ),
        (
            {"runtime": TOKENS, "contexts": 3},
            "file.contexts: expected a list of cached tokens, got 3",
        ),
        ({"runtime": TOKENS, "contexts": [-1]}, r"file.contexts\[0\]: expected a number"),
        ({**TOKENS, "seconds_per_kv_byte": 1e-9}, "file.seconds_per_kv_byte: specify the model"),
        (
            {**TOKENS, "seconds_per_kv_byte": 1, "seconds_per_cached_token": 1},
            "file: expected seconds_per_cached_t",
        ),
        (
            {**TOKENS, "captured_batches": [4, 2]},
            "file.captured_batches: expected increasing integers >= 1",
        ),
        (
            {**TOKENS, "beyond": 2.0},
            "file.captured_batches: missing; required when beyond is given",
        ),
        ({**TOKENS, "captured_batches": [4], "beyond": 0.5}, "file.beyond: expected a number"),
        (
            {"runtime": TOKENS, "lower": {**TOKENS, "overhead_seconds": 1.0}},
            "file.lower: the lower limits contradict the coefficients in runtime",
        ),
    ],
)
def test_bad_runtimes_are_named(data: Any, message: str) -> None:
    """Tests that each unusable runtime is refused with its place."""
    with pytest.raises(InvalidInput, match=message):
        made(data)
