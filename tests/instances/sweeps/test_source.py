"""Files and the draft lengths said beside them."""

from __future__ import annotations

from pathlib import Path

import pytest

from specopt.instances.sweeps import parse_source


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("a.json", ("a.json", ...)),
        ("a.json@3", ("a.json", 3)),
        ("a.json@0", ("a.json", 0)),
        ("a.json@none", ("a.json", None)),
        ("a@1@2", ("a@1", 2)),
        ("me@home", ("me@home", ...)),
        ("@3", ("@3", ...)),
        ("a@-1", ("a@-1", ...)),
    ],
)
def test_what_is_said_beside_a_file(text: str, found: tuple[str, object]) -> None:
    """Tests that the draft length is what stands behind the last @, if it is one."""
    assert parse_source(text) == found


def test_a_file_of_the_whole_name_wins(tmp_path: Path) -> None:
    """Tests that a file whose name ends like a draft length is taken as it is."""
    path = tmp_path / "a@3"
    assert parse_source(str(path)) == (str(tmp_path / "a"), 3)
    path.touch()
    assert parse_source(str(path)) == (str(path), ...)
