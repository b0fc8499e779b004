"""Azure's traces of 2023 and 2024."""

from __future__ import annotations

from pathlib import Path

import pytest
from strategies.traces import AZURE_2023, AZURE_2024

from specopt.instances.traces import read_trace


@pytest.mark.parametrize(
    ("data", "seconds", "inputs", "outputs"),
    [
        (AZURE_2023, [0.0, 1.0000001, 2.0], [374, 12, 8000], [44, 9, 1]),
        (AZURE_2024, [0.0, 0.75, 1.25], [100, 200, 300], [10, 20, 30]),
    ],
    ids=["2023", "2024"],
)
def test_values(
    tmp_path: Path, data: bytes, seconds: list[float], inputs: list[int], outputs: list[int]
) -> None:
    """Tests that dates become seconds since the first row, across midnight and new year, to the
    seventh digit.
    """
    path = tmp_path / "azure.csv"
    path.write_bytes(data)
    found = read_trace(path)
    assert found.format == "azure"
    assert found.arrival_seconds.tolist() == seconds
    assert found.input_tokens.tolist() == inputs
    assert found.output_tokens.tolist() == outputs
    assert found.names is None
