"""Figures and tables as files: data, picture, one page of paragraphs a paper, and the same for `specopt report`."""

from __future__ import annotations

import csv
import io
import json
import os
from collections.abc import Sequence
from pathlib import Path

from specopt.models.errors import InvalidInput
from specopt.models.files import write_bytes, write_text
from specopt.reproductions.artefact import Artefact


def make_folder(folder: Path) -> None:
    """Make a folder if need be, and see that files can be written to it.

    Raises
    ------
    InvalidInput
        If they cannot.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except (OSError, ValueError) as error:  # ValueError: a zero byte in the path
        raise InvalidInput(f"{folder}: cannot be made ({getattr(error, 'strerror', None) or error})") from None
    if not os.access(folder, os.W_OK):
        raise InvalidInput(f"{folder}: cannot be written to (no permission)")


def write_artefact(artefact: Artefact, folder: Path) -> None:
    """Write the data of a figure or table, and then its picture, if it has one.

    Raises
    ------
    InvalidInput
        If a file cannot be written.
    MissingDependency
        If the picture needs matplotlib; the data is written all the same.
    """
    text = io.StringIO()
    writer = csv.DictWriter(text, fieldnames=list(artefact.rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(artefact.rows)
    write_text(folder / f"{artefact.name}.csv", text.getvalue())
    if artefact.draw is not None:
        picture = io.BytesIO()
        artefact.draw().savefig(picture, format="png")
        write_bytes(folder / f"{artefact.name}.png", picture.getvalue())


def write_page(title: str, artefacts: Sequence[Artefact], path: Path) -> None:
    """Write a page: a table of verdicts, and a paragraph for each figure or table, with its picture if there is one.

    Beside it, all but the pictures as JSON.

    Raises
    ------
    InvalidInput
        If the file cannot be written.
    """
    lines = [f"# {title}", "", "| | | verdict |", "|---|---|---|"]
    lines += [f"| {one.name} | {one.title} | {one.verdict.value} |" for one in artefacts]
    for one in artefacts:
        lines += ["", f"## {one.name}: {one.title}", "", one.paragraph, "", f"Data: [{one.name}.csv]({one.name}.csv)"]
        if (path.parent / f"{one.name}.png").exists() and one.draw is not None:
            lines += ["", f"![{one.name}]({one.name}.png)"]
    write_text(path, "\n".join(lines) + "\n")
    data = {"title": title, "artefacts": [one.to_dict() for one in artefacts]}
    write_text(path.with_suffix(".json"), json.dumps(data, indent=1) + "\n")
