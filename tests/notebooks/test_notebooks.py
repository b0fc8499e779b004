"""Notebooks are committed with their outputs, which executing them again repeats."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import nbformat
import pytest

sys.path.append(str(Path(__file__).parents[2] / "docs"))

import outputs  # type: ignore[import-not-found]  # the folder is no package

NOTEBOOKS = sorted(outputs.FOLDER.glob("*.ipynb"))
PICTURE = "image/svg+xml"


def shown(notebook: Any) -> list[list[str]]:
    """Return the texts of the outputs of each cell without times, and a word for a picture."""
    return [
        [
            PICTURE if PICTURE in data else re.sub("solved in .*", "", text)
            for output in cell.get("outputs", ())
            for data in [output.get("data", {})]
            for text in [output.get("text", data.get("text/plain", ""))]
        ]
        for cell in notebook.cells
    ]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_it_reads_on_its_own(path: Path) -> None:
    """Tests that it begins with the sentence on its content, and that its pictures are small."""
    notebook: Any = nbformat.read(path, as_version=4)  # type: ignore[no-untyped-call]
    assert notebook.cells[0].source.split("\n\n")[1].startswith("You will see ")
    datas = [one.get("data", {}) for cell in notebook.cells for one in cell.get("outputs", ())]
    pictures = [data[PICTURE] for data in datas if PICTURE in data]
    assert pictures and max(map(len, pictures)) <= 60_000


@pytest.mark.nightly
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_its_outputs_are_current(path: Path) -> None:
    """Tests that every cell prints and draws what the notebook shows: `make notebooks`."""
    kept = nbformat.read(path, as_version=4)  # type: ignore[no-untyped-call]
    assert shown(outputs.executed(path)) == shown(kept), "make notebooks"
