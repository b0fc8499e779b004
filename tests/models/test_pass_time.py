"""Times of forward passes: units, limits, refusals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from specopt.models.decoder import ExactDecoder, PaperDecoder
from specopt.models.errors import InvalidInput
from specopt.models.pass_time import PassTime, pass_time

SMALL = ExactDecoder(layers=2, hidden=8, ffn=16, heads=2, kv_heads=1, head_dim=4, gated=True, vocabulary=10, tied=True)
TOKENS = {"seconds_per_token": 1e-3, "overhead_seconds": 0.01}


def made(data: Any, **settings: Any) -> PassTime:
    """Return a pass time without a model unless one is given."""
    return pass_time(data, "file", **{"decoder": None, "context_tokens": 0, "all_logits": True, **settings})


def test_per_token_by_hand() -> None:
    """Tests that a runtime, or the maximum of two, counts the tokens of the whole batch."""
    assert made(TOKENS).seconds(np.array(4.0), np.array(3.0)) == pytest.approx(0.01 + 12e-3)
    roof = {"pieces": [{"seconds_per_token": 0.0, "overhead_seconds": 0.02}, TOKENS]}
    found = made(roof).seconds(np.array([[1.0], [20.0]]), np.array([[1.0, 2.0]]))
    assert found == pytest.approx(np.array([[0.02, 0.02], [0.03, 0.05]]))


def test_operations_by_hand() -> None:
    """Tests that a pass of m new tokens on a context counts its operations, all logits or the last one's."""
    per_flop = {"seconds_per_flop": 1e-9, "overhead_seconds": 0.0}
    W = 8 * 4 * (2 * 2 + 2 * 1) + 3 * 8 * 16
    for all_logits, logits in ((True, 3), (False, 1)):
        found = made(per_flop, decoder=SMALL, context_tokens=5, all_logits=all_logits)
        expected = 2 * (2 * W * 3 + 4 * 2 * 4 * 3 * 8) + 2 * 8 * 10 * logits
        assert found.seconds(np.array(7.0), np.array(3.0)) == pytest.approx(7 * expected * 1e-9, rel=1e-12)


def test_a_fits_file_brings_limits_and_model() -> None:
    """Tests that `runtime`, `lower`, `upper` and `model` of a fit's file are taken, other keys left."""
    fit = {
        "form": "linear",
        "runtime": {"seconds_per_flop": 2e-12, "overhead_seconds": 0.01},
        "lower": {"seconds_per_flop": 1e-12, "overhead_seconds": 0.009},
        "upper": {"seconds_per_flop": 3e-12, "overhead_seconds": 0.011},
        "model": {"layers": 2, "hidden": 8, "ffn": 16},
    }
    found = made(fit)
    assert found.has_limits
    assert isinstance(found.decoder, PaperDecoder)
    low, mid, high = (
        float(found.seconds(np.array(1.0), np.array(1.0), which)) for which in ("lower", "fitted", "upper")
    )
    assert low < mid < high
    assert not made(TOKENS).has_limits


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ([], r"file: expected a runtime, got \[\]"),
        ({"seconds_per_flop": 4e-13, "overhead_seconds": 0.1}, "file.seconds_per_flop: 4e-13 is per operation"),
        ({"seconds_per_token": -1.0, "overhead_seconds": 0.1}, "seconds_per_token"),
        ({"seconds_per_token": 1.0}, "overhead_seconds"),
        ({"seconds_per_token": 1.0, "overhead_seconds": 0.1, "unit": "s"}, "unit"),
        ({"pieces": []}, "pieces: expected at least one piece"),
        ({"pieces": [TOKENS, {"seconds_per_flop": 1.0, "overhead_seconds": 0.0}]}, "pieces"),
        ({"runtime": TOKENS, "lower": {"pieces": [TOKENS, TOKENS]}}, "file.lower: expected as many pieces"),
        (
            {"runtime": TOKENS, "upper": {"seconds_per_flop": 1.0, "overhead_seconds": 1.0}},
            "file.upper: expected seconds_per_token, as in runtime",
        ),
        (
            {"runtime": TOKENS, "lower": {**TOKENS, "overhead_seconds": 1.0}},
            "file.lower: expected a limit of each coefficient in runtime, on its lower side",
        ),
    ],
)
def test_bad_runtimes_are_named(data: Any, message: str) -> None:
    """Tests that each unusable runtime is refused with its place."""
    with pytest.raises(InvalidInput, match=message):
        made(data)
