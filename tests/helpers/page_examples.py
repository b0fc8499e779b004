"""The Python examples of README.md and the pages, one file for each: `python
tests/helpers/page_examples.py FOLDER` writes them, and type checkers read them.
"""

from __future__ import annotations

import doctest
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def write_examples(folder: Path) -> list[Path]:
    """Write the examples of every page that has some, and return the files."""
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    pages = {*(ROOT / "docs").glob("**/*.md")} - {ROOT / "docs/api.md"}  # its examples are parts
    for page in (ROOT / "README.md", *sorted(pages)):
        examples = doctest.DocTestParser().get_examples(page.read_text())
        if examples:
            path = folder / f"{page.stem.replace('-', '_').lower()}_examples.py"
            path.write_text("".join(example.source for example in examples))
            written.append(path)
    return written


if __name__ == "__main__":
    write_examples(Path(sys.argv[1]))
