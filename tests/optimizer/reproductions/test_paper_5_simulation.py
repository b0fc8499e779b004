"""Paper 5 on synthetic clients: what comes out as printed, and what does not."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from specopt.reproductions.paper_5 import draw_figure_3, draw_figure_4
from specopt.reproductions.paper_5_simulation import SETTINGS, Reproduction, Setting, run_settings


@pytest.fixture(scope="module")
def found() -> Reproduction:
    """All settings, at full length."""
    return run_settings(replications=20)


def test_figure_4(found: Reproduction) -> None:
    """Tests that Algorithm 1 stays above both baselines and is flat after 400 rounds, and that `robust` is better."""
    for setting in SETTINGS:
        curves = found.utility[setting.name]
        paper = curves["Algorithm 1"]
        for baseline in ("Fixed-S", "Random-S"):
            assert (paper[20:] > curves[baseline][20:]).all()
        assert np.ptp(paper[400:]) < 0.03
        assert found.gaps[setting.name]["robust"] < 0.008 < 0.02 < found.gaps[setting.name]["Algorithm 1"]


def test_where_fixed_is_better() -> None:
    """Tests that Fixed-S beats Algorithm 1 where rates hardly differ and the budget divides evenly."""
    near = Setting(name="near", clients=8, budget_tokens=16, lowest=0.5, highest=0.85)
    gaps = run_settings(settings=(near,), replications=20).gaps["near"]
    assert gaps["robust"] < gaps["Fixed-S"] < gaps["Algorithm 1"] < gaps["Random-S"]


def test_figure_3(found: Reproduction) -> None:
    """Tests that the times of rounds are as the docstring of the module says."""
    for setting in SETTINGS:
        rounds, tokens = found.seconds_per_round[setting.name], found.seconds_per_token[setting.name]
        whole = {policy: sum(parts.values()) for policy, parts in rounds.items()}
        assert 1.2 < whole["Random-S"] / whole["Fixed-S"] < 1.6
        assert 1.35 < whole["Algorithm 1"] / whole["Fixed-S"] < 1.65
        assert all(parts["sending"] < 0.002 * whole[policy] for policy, parts in rounds.items())
        shorter = tokens["Algorithm 1"]["verification"] / tokens["Fixed-S"]["verification"]
        assert 0.85 < shorter < 0.96


def test_pictures(found: Reproduction, tmp_path: Path) -> None:
    """Tests that both figures can be drawn."""
    for name, figure in (("3", draw_figure_3(found)), ("4", draw_figure_4(found))):
        figure.savefig(tmp_path / f"{name}.png")
        assert (tmp_path / f"{name}.png").stat().st_size > 10_000
