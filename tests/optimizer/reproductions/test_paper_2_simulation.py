"""Paper 2 in simulation: the order of the systems, and the pictures."""

from __future__ import annotations

from pathlib import Path

from specopt.reproductions.paper_2 import draw_figure_1, draw_figure_7, draw_figure_8
from specopt.reproductions.paper_2_simulation import (
    SYSTEMS,
    figure_1_data,
    figure_7_data,
    figure_8_data,
    printed,
    table_1,
    table_2,
    table_3,
)


def test_order_of_the_systems() -> None:
    """Tests that WISP, centralised serving and SLED come in the printed order, by devices and by goodput."""
    devices = table_2(seeds=(0,), seconds=20.0, systems=SYSTEMS[:3])
    goodput = table_3(seconds=20.0, systems=SYSTEMS[:3])
    said = printed(2)
    for column in range(4):
        assert devices["WISP"][column] > devices["centralised"][column] > devices["SLED"][column]
        assert said["WISP"][column] > said["centralised"][column] > said["SLED"][column]
    assert goodput["WISP"] > goodput["centralised"] > goodput["SLED"]
    assert set(printed(3)) == {"SLED", "centralised", "WISP"}


def test_fast_classes_gain() -> None:
    """Tests that Algorithm 1 has fewer violations than FCFS in the fast classes, and that faster classes have more."""
    rates = table_1(seeds=[0], seconds=60.0)
    assert all(rates["WISP"][column] < rates["FCFS"][column] for column in (1, 2, 3))
    assert all(line == sorted(line) for line in (rates["WISP"], rates["FCFS"]))


def test_waste_slows_a_device() -> None:
    """Tests that at every acceptance rate long windows waste more and yield less."""
    rows = figure_1_data(acceptance_rates=(0.55, 0.85), windows=(4, 8, 16))
    for first in (0, 3):
        waste = [row["wasted_share"] for row in rows[first : first + 3]]
        speed = [row["tokens_per_second"] for row in rows[first : first + 3]]
        assert waste == sorted(waste)
        assert speed == sorted(speed, reverse=True)


def test_figures(tmp_path: Path) -> None:
    """Tests that the figures are drawn."""
    data = figure_7_data((100, 300), seconds=20.0)
    run = figure_8_data(events=2000)
    rows = figure_1_data(acceptance_rates=(0.7,), windows=(2, 4))
    for name, figure in (("1", draw_figure_1(rows)), ("7", draw_figure_7(data, (100, 300))), ("8", draw_figure_8(run))):
        figure.savefig(tmp_path / f"{name}.png")
        assert (tmp_path / f"{name}.png").stat().st_size > 5000
