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
FONT = ' font-family="system-ui, Liberation Sans, Arial, sans-serif"'
UNSEEN = re.compile(
    r' (?:aria-[a-z]+|role|class|pointer-events|stroke-miterlimit)="[^"]*"'
    rf'|<text[^>]*/>|<path d=""[^>]*/>| opacity="1"|{FONT}'
)
"""Parts of an SVG that do not change the picture, or that its root has."""
ANSI = re.compile(r"\x1b\[[0-9;]*m")


def executed(path: Path) -> Any:
    """Return a notebook with the outputs of its cells, executed in an empty folder."""
    notebook = nbformat.read(path, as_version=4)
    with TemporaryDirectory() as folder:
        nbclient.NotebookClient(
            notebook,
            timeout=600,
            record_timing=False,
            coalesce_streams=True,
            resources={"metadata": {"path": folder}},
        ).execute()
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs = plain(cell.outputs)
    notebook.metadata.language_info = {"name": "python"}
    return notebook


def plain(outputs: list[Any]) -> list[Any]:
    """Return the outputs of a cell as code hosts display them: pictures as SVG, text as text.

    Progress on stderr is left out.
    """
    found: list[Any] = []
    for output in outputs:
        html = output.get("data", {}).get("text/html")
        if html and "<svg" in html:
            output.data = {"image/svg+xml": drawing(html)}
        elif html:
            text = ANSI.sub("", output.data["text/plain"])
            output = nbformat.v4.new_output("stream", text=text)
        if output.get("name") == "stdout" and found and found[-1].get("name") == "stdout":
            found[-1].text += output.text
        elif output.get("name") != "stderr":
            found.append(output)
    return found


def drawing(html: str) -> str:
    """Return the SVG in the HTML of a picture, in light colours and without what is not seen."""
    svg = html[html.index("<svg") : html.index("</svg>") + len("</svg>")]
    svg = re.sub(r"var\(--([\w-]+)\)", lambda name: PALETTE[name[1]][False], svg)
    svg = re.sub(r"\d+\.\d\d+(?=[^<>]*>)", lambda number: f"{float(number[0]):.1f}", svg)
    svg = re.sub(
        r"rgb\((\d+), (\d+), (\d+)\)",
        lambda rgb: f"#{int(rgb[1]):02x}{int(rgb[2]):02x}{int(rgb[3]):02x}",
        svg,
    )
    return UNSEEN.sub("", svg).replace("<svg", f"<svg{FONT}", 1)


if __name__ == "__main__":
    for name in sys.argv[1:] or sorted(FOLDER.glob("*.ipynb")):
        nbformat.write(executed(Path(name)), name)
        print(name)
