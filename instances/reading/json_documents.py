"""Files of JSON: one document, or one on each line."""

from __future__ import annotations

import json

from specopt.models.errors import InvalidInput
from specopt.models.files import unique_keys
from specopt.models.reading import StrPath, read_text


def json_documents(path: StrPath) -> list[object]:
    """Return the documents of a file. NaN and infinities pass: benchmarks write them, readers of fields refuse them.

    Raises
    ------
    InvalidInput
        If it cannot be read, or is no JSON in UTF-8; the message names the line.
    """
    text = read_text(path)
    try:
        return [_parsed(text)]
    except (ValueError, RecursionError) as error:
        whole = error
    documents: list[object] = []
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            try:
                documents.append(_parsed(line))
            except (ValueError, RecursionError) as error:
                if not documents:  # no lines of JSON either: the first message says more
                    raise InvalidInput(f"{path}: expected JSON: {whole}") from None
                raise InvalidInput(f"{path}: line {number}: expected JSON: {error}") from None
    return documents


def _parsed(text: str) -> object:
    return json.loads(text, object_pairs_hook=unique_keys)
