"""A fast version of the reproduction of paper 4: calibration, order of the schemes, rows and pictures."""

from __future__ import annotations

import math
from functools import cache

import pytest

from specopt.models.errors import InvalidInput
from specopt.reproductions.paper_4 import artefact, draw_figure_1
from specopt.reproductions.paper_4_findings import LEAST_UPLOAD_MS, figure_1_findings, findings
from specopt.reproductions.paper_4_simulation import DATASETS, Simulations, calibrate
from specopt.reproductions.registry import paper
from specopt.reproductions.statements import Finding

pytestmark = pytest.mark.slow  # some 80 simulations


@cache
def small() -> Simulations:
    """Everything, with few requests, and planned chunks of a fixed size in place of a method."""

    def quarters(problem: object) -> list[int]:
        n = problem.prompt_tokens  # type: ignore[attr-defined]
        size = max(1, -(-n // 4))
        return [min(size, n - start) for start in range(0, n, size)]

    rates = {"specbench": (4.0, 9.0), "cnn-dm": (4.0,)}
    return Simulations(calibration=calibrate(250), requests=250, planner=quarters, rates=rates, stages=(1, 4))


@cache
def rows() -> tuple[Finding, ...]:
    """Every printed number beside ours."""
    places = (*(f"Figure {number}" for number in range(6, 13)), "Table 4", "Table 5")
    return (*figure_1_findings(), *findings(small(), *places))


def row(quantity: str) -> Finding:
    """The row of a quantity."""
    (found,) = [row for row in rows() if row.said.statement == quantity]
    return found


def test_calibration_meets_u_shape() -> None:
    """Tests that TTFT and TBT of U-shape come out as in Table 5, on both data sets, within 2 %."""
    for row in rows():
        if row.verdict == "calibrated":
            assert row.ratio == pytest.approx(1.0, abs=0.02), row


def test_every_printed_number_has_a_row() -> None:
    """Tests that all rows are there and finite, and that verdicts follow the distance."""
    assert len(rows()) == 99
    for row in rows():
        assert math.isfinite(row.ours)
        far = abs(row.ours - row.said.printed) / abs(row.said.printed)
        assert row.verdict != "reproduced" or far <= 0.1 + 1e-12
        assert row.verdict != "close" or 0.1 < far <= 0.25
        assert row.verdict != "not reproduced" or far > 0.25
        assert row.verdict in ("calibrated", "reproduced", "close", "not reproduced", "impossible")


def test_impossible_numbers_are_named() -> None:
    """Tests that HAT's TTFT on CNN/DM is below the upload time alone at 10 MB/s, and nothing on SpecBench is."""
    impossible = [row for row in rows() if row.verdict == "impossible"]
    assert sorted(row.said.printed for row in impossible) == [1027.4, 1038.7, 1039.1, 1039.9]
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
    for runs in map(small().by_rate, DATASETS):
        for rate in runs["HAT"]:
            for name in ("U-shape", "U-Medusa", "U-Sarathi"):
                assert runs["HAT"][rate].mean_ttft_seconds < runs[name][rate].mean_ttft_seconds
                assert runs["HAT"][rate].mean_tbt_seconds < runs[name][rate].mean_tbt_seconds


def test_pictures() -> None:
    """Tests that every figure has its panels and that other numbers are refused."""
    assert len(draw_figure_1().axes) == 4
    for number in range(6, 13):
        draw = artefact(f"figure-{number}", small()).draw
        assert draw is not None and len(draw().axes) == 2
    with pytest.raises(InvalidInput, match="figure: expected one of"):
        next(paper("paper-4").reproduce("figure-2"))


def test_calibration_is_a_function_of_its_seed() -> None:
    """Tests that the same seed gives the same calibration."""
    assert calibrate(60, seed=1, rounds=3) == calibrate(60, seed=1, rounds=3)
