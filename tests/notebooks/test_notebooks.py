"""Notebooks are committed with their outputs, which executing them again repeats."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import nbformat
import pytest

sys.path.append(str(Path(__file__).parents[2] / "docs"))

import notebook_outputs  # type: ignore[import-not-found]  # the folder is no package

NOTEBOOKS = sorted(notebook_outputs.FOLDER.glob("*.ipynb"))


def shown(notebook: Any) -> list[str]:
    """Return the texts of all outputs without times, and the forms of pictures."""
    return [
        re.sub("solved in .*", "", one.get("text") or str(one.data.get("text/plain", [*one.data])))
        for cell in notebook.cells
        for one in cell.get("outputs", ())
    ]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_it_reads_on_its_own(path: Path) -> None:
    """Tests that it begins with the sentence on its content, and that its pictures are small."""
    notebook: Any = nbformat.read(path, as_version=4)  # type: ignore[no-untyped-call]
    assert notebook.cells[0].source.split("\n\n")[1].startswith("This notebook ")
    outs = [one.get("data", {}) for cell in notebook.cells for one in cell.get("outputs", ())]
    assert 0 < max(len(data.get("image/svg+xml", "")) for data in outs) <= 60_000


@pytest.mark.nightly
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_its_outputs_are_current(path: Path) -> None:
    """Tests that every cell prints and draws what the notebook shows: `make notebooks`."""
    kept = nbformat.read(path, as_version=4)  # type: ignore[no-untyped-call]
    assert shown(notebook_outputs.executed(path)) == shown(kept), "make notebooks"
