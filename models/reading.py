"""Functions that read input files up to a maximum size, with clear messages for files that cannot
be read.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO

from specopt.models.errors import InvalidInput

StrPath = str | os.PathLike[str]

MAX_BYTES = 256 * 2**20
"""Maximum size of a file in bytes; larger files are rejected. A problem with a million tasks takes
about a fifth of this size.
"""


def read_bytes(path: StrPath, cap: int = MAX_BYTES) -> bytes:
    """Return the content of a file or a pipe. A pipe is read until it is closed.

    Raises
    ------
    InvalidInput
        If the file cannot be read, is a device or a directory, or is larger than `cap` bytes.
    """
    with opened(path) as stream:
        if os.fstat(stream.fileno()).st_size > cap or len(content := stream.read(cap + 1)) > cap:
            raise too_large(path, cap)
    return content


def read_text(path: StrPath) -> str:
    """Return the content of a UTF-8 file. A byte order mark at the start is removed.

    Raises
    ------
    InvalidInput
        If `read_bytes` rejects the file, or if the content is not UTF-8.
    """
    try:
        return read_bytes(path).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidInput(f"{path}: expected text in UTF-8: {error}") from None


def expect_path(path: object) -> None:
    """Raise `InvalidInput` if an object is not a path."""
    if not isinstance(path, (str, os.PathLike)):
        raise InvalidInput(f"path: expected a path, got {path!r}")


@contextmanager
def opened(path: StrPath) -> Iterator[BinaryIO]:
    """Open a file for reading. System errors are converted to `InvalidInput` until the file is
    closed.

    Raises
    ------
    InvalidInput
        If the file cannot be read, or is a device other than a terminal.
    """
    expect_path(path)
    if "\0" in os.fspath(path):
        raise InvalidInput(f"{path}: cannot be read (a path cannot contain NUL)")
    try:
        with open(path, "rb") as stream:
            mode = os.fstat(stream.fileno()).st_mode
            if stat.S_ISBLK(mode) or (stat.S_ISCHR(mode) and not stream.isatty()):
                raise InvalidInput(f"{path}: cannot be read (it is a device)")
            yield stream
    except (
        OSError,
        UnicodeEncodeError,
    ) as error:  # UnicodeEncodeError: half of a surrogate pair in the path
        raise InvalidInput(
            f"{path}: cannot be read ({getattr(error, 'strerror', None) or error})"
        ) from None


def too_large(path: StrPath, limit: int) -> InvalidInput:
    """Return the exception for a file that is larger than `limit` bytes."""
    return InvalidInput(
        f"{path}: the file is larger than {limit // 2**20} MiB; remove unneeded parts or split it"
    )
