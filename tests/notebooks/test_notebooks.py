"""Notebooks run from top to bottom, and are committed without outputs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

pytestmark = pytest.mark.nightly

NOTEBOOKS = sorted((Path(__file__).parents[2] / "notebooks").glob("*.ipynb"))


def test_there_are_notebooks() -> None:
    """Tests that the folder is found, so that the tests below do not pass for want of files."""
    assert NOTEBOOKS


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_is_stripped(path: Path) -> None:
    """Tests that no outputs and no execution counts are committed."""
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        if cell["cell_type"] == "code":
            assert cell["outputs"] == []
            assert cell["execution_count"] is None


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_runs(path: Path, tmp_path: Path) -> None:
    """Tests that every cell runs, and that every figure is shown."""
    import nbclient
    import nbformat

    notebook = nbformat.read(path, as_version=4)  # type: ignore[no-untyped-call]
    client = nbclient.NotebookClient(
        notebook, timeout=600, resources={"metadata": {"path": str(tmp_path)}}
    )
    client.execute()
    for cell in notebook.cells:
        kinds = {kind for output in cell.get("outputs", ()) for kind in output.get("data", ())}
        pictures = ("Chart", "Picture", "pipeline_figure", "chunk_timeline")
        if any(f"\n{name}(" in f"\n{cell.source}" for name in pictures):
            assert "text/html" in kinds, cell.source
