"""JSON files with one document, or one document on each line."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from specopt.models.errors import InvalidInput
from specopt.models.files import unique_keys
from specopt.models.reading import StrPath, read_text


def json_documents(path: StrPath) -> list[object]:
    """Return the documents in a file. NaN and infinities are accepted here, because benchmarks
    write them; readers of fields reject them.

    Raises
    ------
    InvalidInput
        If it cannot be read, or is not JSON in UTF-8; the message contains the line.
    """
    return documents_in(read_text(path), path)


def documents_in(
    text: str, where: StrPath, known: str = "", parse_constant: Callable[[str], Any] | None = None
) -> list[object]:
    """Return the documents of a text.

    Parameters
    ----------
    text
        One document, or one on each line.
    where
        Name of the text, for messages.
    known
        Allowed formats in words, for messages; empty if only JSON is allowed.
    parse_constant
        Function that converts NaN and infinities, as in `json.loads`.

    Raises
    ------
    InvalidInput
        If it is not JSON; the message contains the line.
    """

    def parsed(part: str) -> object:
        return json.loads(part, parse_constant=parse_constant, object_pairs_hook=unique_keys)

    try:
        return [parsed(text)]
    except (ValueError, RecursionError) as error:
        whole = error
    documents: list[object] = []
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            try:
                documents.append(parsed(line))
            except (ValueError, RecursionError) as error:
                if not documents:  # no lines of JSON either: the first message says more
                    raise InvalidInput(
                        f"{where}: expected {known and f'{known}; as '}JSON: {whole}"
                    ) from None
                raise InvalidInput(f"{where}: line {number}: expected JSON: {error}") from None
    return documents
