"""Measured passes as the largest of several lines."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from specopt.instances.deployment.pieces import pieces_of
from specopt.models.decoder import ExactDecoder
from specopt.models.pass_time import PassTime, Which, pass_time

DECODER = ExactDecoder(
    layers=2,
    hidden=64,
    ffn=128,
    heads=4,
    kv_heads=2,
    head_dim=16,
    gated=True,
    vocabulary=1000,
    tied=True,
)


SIZES = (1, 2, 4, 8)


def passes(data: dict[str, Any], verify: bool = True) -> PassTime:
    """Return the passes of a runtime."""
    return pass_time(data, "it", decoder=DECODER, all_logits=verify)


def seconds(
    times: PassTime, batch: float, new: float, cached: float, which: Which = "fitted"
) -> float:
    """Return the time of one pass."""
    return float(
        np.reshape(
            times.seconds(np.array([batch]), np.array([new]), np.array([cached]), which), -1
        )[0]
    )


@pytest.mark.parametrize("verify", [True, False])
@pytest.mark.parametrize(
    "data",
    [
        {"seconds_per_token": 1e-4, "overhead_seconds": 0.01, "seconds_per_cached_token": 2e-8},
        {
            "pieces": [
                {"seconds_per_token": 0.0, "overhead_seconds": 0.02},
                {"seconds_per_token": 1e-3, "overhead_seconds": 0.001},
            ]
        },
        {
            "pieces": [
                {"seconds_per_flop": 0.0, "overhead_seconds": 0.02},
                {"seconds_per_flop": 1e-9, "overhead_seconds": 0.001},
            ],
            "seconds_per_cached_token": 3e-8,
        },
        {"seconds_per_flop": 1e-9, "overhead_seconds": 0.001},
    ],
)
def test_forms_keep_their_lines(data: dict[str, Any], verify: bool) -> None:
    """Tests that forms that are linear in tokens are taken as they are, at one new token to the
    last digits.
    """
    times = passes(data, verify)
    found = pieces_of(times, SIZES)
    assert not found.fitted and len(found.passes.rows) == len(data.get("pieces", [data]))
    for batch, cached in ((1, 0), (7, 300), (64, 1000)):
        assert found.passes.at(batch, batch, batch * cached) == pytest.approx(
            seconds(times, batch, 1, cached)
        )
        several = seconds(times, batch, 8, cached)
        if "seconds_per_flop" not in str(data):
            assert found.passes.at(batch, 8 * batch, batch * cached) == pytest.approx(several)
        elif verify:  # attention among new tokens counts as that of one
            assert found.passes.at(batch, 8 * batch, batch * cached) == pytest.approx(
                several, rel=0.05
            )


def test_a_table_is_fitted_by_as_many_lines_as_it_has() -> None:
    """Tests that passes that are the larger of two lines give these two, and that a single line
    needs no second.
    """
    grid = [(b, m, c) for b in (1, 2, 4, 8, 16, 32) for m in (1, 2, 4, 8) for c in (0, 500)]
    for pieces in ([(0.02, 1e-4, 0.0, 1e-8)], [(0.02, 1e-4, 0.0, 1e-8), (0.004, 0.0, 4e-4, 1e-8)]):
        times = [
            max(o + s * b + t * b * m + r * b * c for o, s, t, r in pieces) for b, m, c in grid
        ]
        batch, new, cached = zip(*grid, strict=True)
        table = {"batch": batch, "new_tokens": new, "cached_tokens": cached, "seconds": times}
        found = pieces_of(passes({"table": {name: list(of) for name, of in table.items()}}), SIZES)
        assert found.fitted and len(found.passes.rows) == len(pieces)
        assert max(np.abs(found.misfit)) < 0.01
        assert found.passes.at(16, 64, 8000) == pytest.approx(
            times[grid.index((16, 4, 500))], rel=0.01
        )


def test_what_no_lines_fit_says_how_far_it_is_off() -> None:
    """Tests that the misfit of steps, which bend the other way, is measured and said."""
    sizes = (1, 2, 4, 8)
    table = {"batch": sizes, "new_tokens": [1] * 4, "seconds": (0.01, 0.03, 0.031, 0.032)}
    times = passes({"table": {name: list(of) for name, of in table.items()}})
    found = pieces_of(times, (1,))
    off = [seconds(times, b, 1, 0) / found.passes.at(b, b, 0) - 1.0 for b in sizes]
    assert found.misfit == pytest.approx((min(off), max(off))) and max(off) > 0.1
    assert f"{max(off):+.1%}" in found.text
