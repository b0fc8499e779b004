"""Reader for JSON files that contain a single document or one document per line."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from specopt.models.errors import InvalidInput
from specopt.models.files import unique_keys
from specopt.models.reading import MAX_BYTES, StrPath, read_text


def json_documents(path: StrPath, cap: int = MAX_BYTES) -> list[object]:
    """Return the documents in a file of at most `cap` bytes.

    NaN and infinities are accepted, because benchmark programs write them. When the fields are
    checked later, these values are rejected.

    Raises
    ------
    InvalidInput
        If the file cannot be read, or if it is not JSON in UTF-8. The message states the line
        number.
    """
    return documents_in(read_text(path, cap), path)


def json_document(path: StrPath, cap: int = MAX_BYTES) -> object:
    """Return the only document in a file of at most `cap` bytes.

    Raises
    ------
    InvalidInput
        If the file cannot be read, or if it does not contain exactly one document.
    """
    documents = json_documents(path, cap)
    if len(documents) != 1:
        raise InvalidInput(f"{path}: expected one JSON document, got {len(documents)}")
    return documents[0]


def documents_in(
    text: str, where: StrPath, known: str = "", parse_constant: Callable[[str], Any] | None = None
) -> list[object]:
    """Return the JSON documents in a string.

    Parameters
    ----------
    text
        String that contains a single document, or one document per line.
    where
        Name of the source of the string, used in messages.
    known
        Description of the accepted formats, used in messages; empty if only JSON is accepted.
    parse_constant
        Function that converts NaN and infinities, as in `json.loads`.

    Raises
    ------
    InvalidInput
        If the string is not JSON. The message states the line number.
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
                if not documents:  # not JSON Lines either, so the first error is more helpful
                    raise InvalidInput(
                        f"{where}: expected {known and f'{known}; the file is not '}JSON: {whole}"
                    ) from None
                raise InvalidInput(f"{where}: line {number}: expected JSON: {error}") from None
    return documents
