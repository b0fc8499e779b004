"""Reading recorded drafts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pytest
from pyarrow import parquet

from specopt.models.drafting import ACCEPTED, AFTER, FIRST_REJECTION
from specopt.models.errors import InvalidInput
from testbed.recorded import FEATURES, read_recorded

COLUMNS: dict[str, list[Any]] = {
    "prompt": [4, 4, 4, 4, 5, 5],
    "kind": ["story"] * 4 + ["code"] * 2,
    "temperature": [0.5, 0.5, 0.5, 0.5, 1.0, 1.0],
    "seed": [0] * 6,
    "round": [0, 0, 0, 1, 1, 1],
    "position": [0, 1, 2, 0, 0, 1],
    "token": [7, 8, 9, 7, 5, 6],
    "outcome": [1, 0, -1, 0, 1, 1],
    "acceptance_rate": [0.9, 0.2, 0.1, 0.5, 1.0, 0.75],
    "draft_probability": [0.5, 0.25, 0.5, 0.5, 0.5, 0.5],
    "verify_probability": [0.5, 0.125, 0.0, 0.25, 0.5, 0.5],
    "draft_entropy": [1.0, 2.0, 1.5, 1.0, 0.0, 3.0],
    "verify_entropy": [1.0] * 6,
    "margin": [0.25, 0.0, 0.5, 0.25, 0.5, 0.125],
    "deviation": [2.0] * 6,
    "draft_tokens": [[7, 1], [8], [], [7, 3], [5], [6]],
    "draft_probabilities": [[0.5, 0.25], [0.25], [], [0.5, 0.5], [0.5], [0.5]],
    "draft_rest": [0.25, 0.75, 0.5, 0.0, 0.5, 0.5],
    "verify_tokens": [[7], [1], [], [7], [5], [6]],
    "verify_probabilities": [[0.5], [0.875], [], [0.25], [0.5], [0.5]],
    "verify_rest": [0.5, 0.125, 0.0, 0.75, 0.5, 0.5],
}


def written(path: Path, columns: dict[str, list[Any]]) -> Path:
    """Write columns as a parquet file."""
    parquet.write_table(pyarrow.table(columns), path)
    return path


def test_rounds_are_read(tmp_path: Path) -> None:
    """Tests that columns, rounds and distributions are read as they were written."""
    found = read_recorded(written(tmp_path / "log.parquet", COLUMNS))
    assert len(found) == 6
    assert found.outcome.tolist() == [
        ACCEPTED,
        FIRST_REJECTION,
        AFTER,
        FIRST_REJECTION,
        ACCEPTED,
        ACCEPTED,
    ]
    assert found.kind.tolist() == COLUMNS["kind"]
    assert found.round_numbers.tolist() == [0, 0, 0, 1, 2, 2]
    tokens, probabilities = found.draft_laws[0]
    assert (tokens.tolist(), probabilities.tolist()) == ([7, 1], [0.5, 0.25])
    assert found.verify_laws[1][0].tolist() == [1]
    assert len(found.draft_laws[2][0]) == 0
    assert found.verify_laws.rest.tolist() == COLUMNS["verify_rest"]


def test_files_of_a_folder_are_read_in_order(tmp_path: Path) -> None:
    """Tests that a folder is read as all of its files, in the order of their names."""
    for name, half in (("b", slice(4, 6)), ("a", slice(0, 4))):
        written(
            tmp_path / f"{name}.parquet", {key: values[half] for key, values in COLUMNS.items()}
        )
    found = read_recorded(tmp_path)
    assert found.prompt.tolist() == COLUMNS["prompt"]
    assert found.draft_laws[4][0].tolist() == [5]


def test_selected_positions_keep_their_distributions(tmp_path: Path) -> None:
    """Tests that a mask selects every column and both distributions."""
    found = read_recorded(written(tmp_path / "log.parquet", COLUMNS))
    for where in (found.temperature == 0.5, np.array([5, 3, 0])):
        some = found.select(where)
        for row, number in enumerate(np.arange(6)[where]):
            assert some.token[row] == found.token[number]
            assert some.verify_laws.rest[row] == found.verify_laws.rest[number]
            for laws, whole in (
                (some.draft_laws, found.draft_laws),
                (some.verify_laws, found.verify_laws),
            ):
                assert [part.tolist() for part in laws[row]] == [
                    part.tolist() for part in whole[number]
                ]


def test_the_log_for_predictors(tmp_path: Path) -> None:
    """Tests that predictors receive the four features of paper 2, outcomes and rounds."""
    log = read_recorded(written(tmp_path / "log.parquet", COLUMNS)).draft_log()
    assert log.names == FEATURES
    assert log.features[:, 1].tolist() == COLUMNS["draft_entropy"]
    assert log.judged.tolist() == [True, True, False, True, True, True]
    assert log.rounds is not None and log.rounds.tolist() == [0, 0, 0, 1, 2, 2]


@pytest.mark.parametrize(
    ("column", "values", "message"),
    [
        ("outcome", [1, 0, 2, 0, 1, 1], r"outcome\[2\]: expected 1, 0 or -1, got 2"),
        (
            "acceptance_rate",
            [0.5, 1.5, 0.5, 0.5, 0.5, 0.5],
            r"acceptance_rate\[1\]: expected a probability, got 1.5",
        ),
        (
            "draft_entropy",
            [0.5, 1.5, float("nan"), 0.5, 0.5, 0.5],
            r"draft_entropy\[2\]: expected a number >= 0, got nan",
        ),
        ("token", [7, -8, 9, 7, 5, 6], r"token\[1\]: expected an integer >= 0, got -8"),
        ("token", [0.5] * 6, "token: expected integers, got double"),
        ("round", [0, 0, None, 1, 1, 1], "round: expected a value in every row, 1 have none"),
        (
            "draft_tokens",
            [[7], [8], [], [7, 3], [5], [6]],
            r"draft_probabilities\[0\]: expected 1 entries, got 2",
        ),
        (
            "draft_rest",
            [0.5] * 6,
            r"draft_probabilities\[0\]: expected at most 1 in sum, the rest included, got 1.25",
        ),
        ("draft_tokens", [7] * 6, "draft_tokens: expected lists, got int64"),
        (
            "verify_tokens",
            [[7], [None], [], [7], [5], [6]],
            "verify_tokens: expected no empty entries, got 1",
        ),
        ("deviation", None, "column 'deviation' is missing"),
    ],
)
def test_bad_columns_are_refused(
    tmp_path: Path, column: str, values: list[Any] | None, message: str
) -> None:
    """Tests that a column that is missing or has an invalid value is reported, with the row."""
    columns = {name: entries for name, entries in COLUMNS.items() if name != column}
    with pytest.raises(InvalidInput, match=message):
        read_recorded(
            written(
                tmp_path / "log.parquet", columns if values is None else columns | {column: values}
            )
        )


def test_files_that_are_no_logs_are_refused(tmp_path: Path) -> None:
    """Tests that an empty folder, text, and files with two schemas are rejected."""
    with pytest.raises(InvalidInput, match="expected a folder with parquet files, found none"):
        read_recorded(tmp_path)
    (tmp_path / "text.parquet").write_text("prompt,kind")
    with pytest.raises(InvalidInput, match=r"text\.parquet: expected a parquet file"):
        read_recorded(tmp_path)
    written(tmp_path / "text.parquet", COLUMNS)
    written(tmp_path / "other.parquet", {"prompt": [1]})
    with pytest.raises(InvalidInput, match="expected files of one schema"):
        read_recorded(tmp_path)
