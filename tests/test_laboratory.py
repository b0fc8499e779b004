"""The laboratory's records, as they ship with the sources: what they claim follows from the raw numbers in them."""

from __future__ import annotations

from pathlib import Path

import pytest
from laboratory_records import check_record

from specopt.testbed.records import read_record

RECORDS = sorted((Path(__file__).parents[1] / "laboratory" / "records").glob("*.json"))


def test_there_are_records() -> None:
    """Tests that the folder was not moved away from under these tests."""
    assert RECORDS


@pytest.mark.parametrize("path", RECORDS, ids=lambda path: str(path.stem))
def test_records_follow_from_their_raw_numbers(path: Path) -> None:
    """Tests that problems, predictions and totals of a record are recomputed from what was measured."""
    data = read_record(path)
    assert data["pair"] != "tiny"
    check_record(data)
    assert any(trial["measured"] for trial in data["trials"])
