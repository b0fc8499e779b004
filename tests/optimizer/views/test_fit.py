"""The picture of fitted runtimes."""

from __future__ import annotations

from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from specopt.instances.runtimes.fit import RuntimeFit, fit_runtime
from specopt.instances.runtimes.table import TableColumns, read_runtime_table
from specopt.instances.runtimes.work import work_of
from specopt.views.fit import fit_figure, print_fit


def line(path: Path, seconds: list[float]) -> RuntimeFit:
    """Fit a line to times at 1, 2, 3, ... tokens."""
    path.write_text(
        "tokens,seconds\n" + "".join(f"{i + 1},{each!r}\n" for i, each in enumerate(seconds))
    )
    table = read_runtime_table(path, TableColumns(x=("tokens",), y=("seconds",)))
    return fit_runtime(table, work_of(table), "linear", errors="absolute")


def test_charts_of_two_fits(tmp_path: Path) -> None:
    """Tests that times stand above errors, a fit in each column, with its name and what it
    reaches.
    """
    found = (
        line(tmp_path / "a.csv", [0.010, 0.022, 0.028, 0.040]),
        line(tmp_path / "b.csv", [3.0] * 4),
    )
    picture = fit_figure(dict(zip(("draft", ""), found, strict=True)))
    above, other, below, _ = picture.charts
    assert (picture.columns, below.title) == (2, "")
    assert above.title == f"draft: linear, R² 0.9846, MAPE {found[0].metrics.mape:.2%}"
    assert other.title == "linear, MAPE 0.00%"
    for chart in (above, below):
        assert [row["measured"] for row in chart.rows] == pytest.approx(
            [10.0, 22.0, 28.0, 40.0]
        )  # ms
        assert [row["linear fit"] for row in chart.rows] == pytest.approx([10.6, 20.2, 29.8, 39.4])
        assert [row["fit too slow by (%)"] for row in chart.rows] == pytest.approx(
            [
                100 * (b / a - 1)
                for a, b in zip((10.0, 22.0, 28.0, 40.0), (10.6, 20.2, 29.8, 39.4), strict=True)
            ]
        )
    assert [layer["mark"] for layer in above.spec["layer"]][1] == "line"


def test_errors_are_shown_by_groups_of_rows(tmp_path: Path) -> None:
    """Tests that every group of rows has a line with its range, its errors and a bar on the side of
    its mean error.
    """
    out = StringIO()
    fit = line(tmp_path / "a.csv", [0.010, 0.022, 0.028, 0.040])
    print_fit("draft", fit, Console(file=out, width=100))
    rows = [row.strip() for row in out.getvalue().splitlines() if " to " in row and "|" in row]
    assert len(rows) == 4
    for row, error in zip(rows, fit.relative_errors, strict=True):
        assert f"{error:+.1%}" in row and f"{abs(error):.1%}" in row
        assert row.endswith("#") == (error > 0.0)
