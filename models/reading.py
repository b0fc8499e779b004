"""Functions that read input files. Files that are too large or cannot be read raise `InvalidInput`
with a clear message.
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
"""Maximum size of an input file in bytes. Larger files are rejected. A file for a problem with a
million tasks has about a fifth of this size.
"""


def read_bytes(path: StrPath, cap: int = MAX_BYTES) -> bytes:
    """Read a file or a pipe and return the bytes. A pipe is read until it is closed.

    Raises
    ------
    InvalidInput
        If the file cannot be read, is a device or a directory, or is larger than `cap` bytes.
    """
    with opened(path) as stream:
        if os.fstat(stream.fileno()).st_size > cap or len(content := stream.read(cap + 1)) > cap:
            raise too_large(path, cap)
    return content


def read_text(path: StrPath, cap: int = MAX_BYTES) -> str:
    """Read a UTF-8 file and return it as a string. A byte order mark at the start is removed.

    Raises
    ------
    InvalidInput
        If the file cannot be read, is larger than `cap` bytes, or is not encoded in UTF-8.
    """
    try:
        return read_bytes(path, cap).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidInput(f"{path}: expected text in UTF-8: {error}") from None


def expect_path(path: object) -> None:
    """Raise `InvalidInput` if `path` is neither a string nor a path object."""
    if not isinstance(path, (str, os.PathLike)):
        raise InvalidInput(f"path: expected a path, got {path!r}")


@contextmanager
def opened(path: StrPath) -> Iterator[BinaryIO]:
    """Open a file for reading in a ``with`` statement. Operating-system errors inside the statement
    are converted to `InvalidInput`.

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
    """Return the exception to raise if a file is larger than `limit` bytes."""
    return InvalidInput(
        f"{path}: the file is larger than {limit // 2**20} MiB; remove unneeded parts or split it"
    )
