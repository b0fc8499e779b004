"""A fast version of the reproduction of paper 4: calibration, order of the schemes, rows and pictures."""

from __future__ import annotations

import math
from functools import cache

import pytest

from specopt.models.errors import InvalidInput
from specopt.reproductions.paper_4_published import LEAST_UPLOAD_MS, Row
from specopt.reproductions.paper_4_simulation import Reproduction, calibrate, run_schemes

pytestmark = pytest.mark.slow  # some 80 simulations


@cache
def small() -> Reproduction:
    """Everything, with few requests, and planned chunks of a fixed size in place of a method."""

    def quarters(problem: object) -> list[int]:
        n = problem.prompt_tokens  # type: ignore[attr-defined]
        size = max(1, -(-n // 4))
        return [min(size, n - start) for start in range(0, n, size)]

    rates = {"specbench": (4.0, 9.0), "cnn-dm": (4.0,)}
    return run_schemes(250, planner=quarters, rates=rates, stages=(1, 4))


def row(quantity: str) -> Row:
    """The row of a quantity."""
    (found,) = [row for row in small().rows if row.quantity == quantity]
    return found


def test_calibration_meets_u_shape() -> None:
    """Tests that TTFT and TBT of U-shape come out as in Table 5, on both data sets, within 2 %."""
    for row in small().rows:
        if row.verdict == "calibrated":
            assert row.ratio == pytest.approx(1.0, abs=0.02), row


def test_every_printed_number_has_a_row() -> None:
    """Tests that all rows are there and finite, and that verdicts follow the distance."""
    rows = small().rows
    assert len(rows) == 99
    for row in rows:
        assert math.isfinite(row.ours)
        far = abs(row.ours - row.published) / abs(row.published)
        assert row.verdict != "reproduced" or far <= 0.1 + 1e-12
        assert row.verdict != "close" or 0.1 < far <= 0.25
        assert row.verdict != "not reproduced" or far > 0.25
    assert sum(small().counts().values()) == len(rows)


def test_impossible_numbers_are_named() -> None:
    """Tests that HAT's TTFT on CNN/DM is below the upload time alone at 10 MB/s, and nothing on SpecBench is."""
    impossible = [row for row in small().rows if row.verdict == "impossible"]
    assert sorted(row.published for row in impossible) == [1027.4, 1038.7, 1039.1, 1039.9]
    assert all("upload alone takes 1061 ms" in row.note for row in impossible)
    assert LEAST_UPLOAD_MS["cnn-dm"] == pytest.approx(1036.6 * 10240 / 1e4)


def test_what_is_reproduced() -> None:
    """Tests that prompt chunking cuts SpecBench's TTFT by about 39 % (printed 41 %), and that Table 4 comes out."""
    table = {key: row(f"TTFT with {key}, specbench") for key in ("none", "PC", "SD + PC + PD")}
    cut = 1.0 - table["SD + PC + PD"].ours / table["none"].ours
    assert cut == pytest.approx(0.39, abs=0.03)
    assert table["PC"].verdict == "reproduced"
    for name in ("U-Medusa", "HAT"):
        assert row(f"speedup of {name} alone, specbench").verdict == "reproduced"
    for quantity in ("TTFT of U-Sarathi, 6 requests/s", "TTFT of U-Medusa, one GPU"):
        assert row(quantity).verdict in ("reproduced", "close")


def test_order_of_the_schemes() -> None:
    """Tests that HAT has the least TTFT and TBT of the paper's schemes at every rate on both data sets."""
    for runs in small().by_rate.values():
        for rate in runs["HAT"]:
            for name in ("U-shape", "U-Medusa", "U-Sarathi"):
                assert runs["HAT"][rate].mean_ttft_seconds < runs[name][rate].mean_ttft_seconds
                assert runs["HAT"][rate].mean_tbt_seconds < runs[name][rate].mean_tbt_seconds


def test_pictures() -> None:
    """Tests that every figure has its panels and that other numbers are refused."""
    for number, panels in ((1, 4), (6, 2), (7, 2), (8, 2), (9, 2), (10, 2), (11, 2), (12, 2)):
        assert len(small().figure(number).axes) == panels
    with pytest.raises(InvalidInput, match="number"):
        small().figure(2)


def test_calibration_is_a_function_of_its_seed() -> None:
    """Tests that the same seed gives the same calibration."""
    assert calibrate(60, seed=1, rounds=3) == calibrate(60, seed=1, rounds=3)
