"""Executes the notebooks and writes their outputs into them: ``make notebooks``."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import nbclient
import nbformat

from specopt.kinds.chart import PALETTE

FOLDER = Path(__file__).parents[1] / "notebooks"
UNSEEN = re.compile(r' (?:aria-[a-z]+|role|class)="[^"]*"|<text[^>]*/>|<path d=""[^>]*/>')
"""Parts of an SVG that do not change the picture: without them it is a third as long."""


def executed(path: Path) -> Any:
    """Return a notebook with the outputs of its cells, executed in an empty folder."""
    notebook = nbformat.read(path, as_version=4)
    with TemporaryDirectory() as folder:
        resources = {"metadata": {"path": folder}}
        nbclient.NotebookClient(
            notebook, timeout=600, record_timing=False, coalesce_streams=True, resources=resources
        ).execute()
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs = [as_picture(one) for one in cell.outputs if one.get("name") != "stderr"]
    notebook.metadata.language_info = {"name": "python"}
    return notebook


def as_picture(output: Any) -> Any:
    """Return an output with the drawing of its HTML as SVG, which code hosts display."""
    html = output.get("data", {}).get("text/html", "")
    if "<svg" in html:
        drawn = html[html.index("<svg") : html.index("</svg>") + len("</svg>")]
        drawn = re.sub(r"var\(--([\w-]+)\)", lambda name: PALETTE[name[1]][False], drawn)
        drawn = re.sub(r"\d+\.\d\d+", lambda number: f"{float(number[0]):.1f}", drawn)
        output.data = {"image/svg+xml": UNSEEN.sub("", drawn)}
    return output


if __name__ == "__main__":
    for name in sys.argv[1:] or sorted(FOLDER.glob("*.ipynb")):
        nbformat.write(executed(Path(name)), name)
        print(name)
