"""What is read: files and pipes up to a limit, nothing else."""

from __future__ import annotations

import contextlib
import os
import threading
from pathlib import Path

import pytest

from specopt import InvalidInput, load
from specopt.models.errors import MAX_CHARACTERS
from specopt.models.files import read_json
from specopt.models.reading import MAX_BYTES, read_bytes

MOST = 2**20


def pipe(path: Path, content: bytes, *, for_ever: bool = False) -> Path:
    """A named pipe through which something comes, once or until nobody reads any more."""
    os.mkfifo(path)

    def write() -> None:
        with contextlib.suppress(BrokenPipeError), path.open("wb") as stream:
            stream.write(content)
            while for_ever:
                stream.write(content)

    threading.Thread(target=write, daemon=True).start()
    return path


def test_files_up_to_the_limit(tmp_path: Path) -> None:
    """Tests that a file of exactly the limit is read, and that one byte more is refused with the
    limit and advice.
    """
    path = tmp_path / "file"
    path.write_bytes(b"a" * MOST)
    assert read_bytes(path, MOST) == b"a" * MOST
    path.write_bytes(b"a" * (MOST + 1))
    with pytest.raises(InvalidInput, match=r"file: the file is larger than 1 MiB; remove"):
        read_bytes(path, MOST)


def test_a_problem_that_is_too_large(tmp_path: Path) -> None:
    """Tests that problems have the limit, too: a file with holes, which takes no room on the
    disk.
    """
    path = tmp_path / "problem.json"
    with path.open("wb") as stream:
        stream.truncate(MAX_BYTES + 1)
    with pytest.raises(InvalidInput, match=r"problem\.json: the file is larger than 256 MiB"):
        load(path)


def test_pipes(tmp_path: Path) -> None:
    """Tests that what comes through a pipe is read, and that one that does not end is refused at
    the limit.
    """
    assert read_json(pipe(tmp_path / "short", b'{"a": 1}')) == {"a": 1}
    with pytest.raises(InvalidInput, match="endless: the file is larger than 1 MiB"):
        read_bytes(pipe(tmp_path / "endless", b"1, " * 1000, for_ever=True), MOST)


@pytest.mark.parametrize("device", ["/dev/zero", "/dev/null", "/dev/urandom"])
def test_devices(device: str) -> None:
    """Tests that devices are refused at once, those that never end as well."""
    with pytest.raises(InvalidInput, match=rf"^{device}: cannot be read \(it is a device\)$"):
        read_bytes(device)


def test_what_is_no_file(tmp_path: Path) -> None:
    """Tests that a directory is called one, and that a file that is not there is refused."""
    with pytest.raises(InvalidInput, match=r"cannot be read \(Is a directory\)"):
        load(tmp_path)
    with pytest.raises(InvalidInput, match=r"nowhere.json: cannot be read \(No such file"):
        load(tmp_path / "nowhere.json")


def test_messages_are_short(tmp_path: Path) -> None:
    """Tests that names of any length in a file make no long message."""
    name = "x" * 1_000_000
    path = tmp_path / "file.json"
    for text in (
        f'{{"{name}": 1, "{name}": 2}}',
        f'{{"{name}": NaN}}',
        f'{{"kind": "{name}"}}',
        f'{{"format": "specopt/1", "kind": "draft-allocation", "plan": null, "{name}": 1}}',
    ):
        path.write_text(text)
        with pytest.raises(InvalidInput) as refusal:
            load(path)
        assert len(str(refusal.value)) <= MAX_CHARACTERS
