"""How large the code is: tokens of every folder, as `make size` prints and a test compares."""

from __future__ import annotations

import io
import subprocess
import tokenize
import tomllib
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).parents[2]
LAYOUT = {"COMMENT", "NL", "NEWLINE", "INDENT", "DEDENT", "ENCODING", "ENDMARKER"}


def tokens_of(source: str) -> int:
    """Return the tokens of code: no comments, no layout, no strings that are statements; an
    f-string is one.
    """
    total = depth = 0
    statement: list[str] = []
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        name = tokenize.tok_name[token.type]
        if name in ("FSTRING_END", "TSTRING_END"):
            depth -= 1
        elif name in ("FSTRING_START", "TSTRING_START"):
            depth += 1
            if depth == 1:
                statement.append("STRING")
        elif name == "NEWLINE":
            total += 0 if set(statement) == {"STRING"} else len(statement)
            statement = []
        elif depth == 0 and name not in LAYOUT:
            statement.append(name)
    return total


def sizes(folders: Iterable[str] = ("*",)) -> dict[str, int]:
    """Return the tokens of the tracked Python files of folders of the checkout, by folder."""
    found: dict[str, int] = {}
    command = ["git", "ls-files", *(f"{folder}/*.py" for folder in folders)]
    for name in subprocess.check_output(command, cwd=ROOT, text=True).splitlines():
        path = ROOT / name
        if path.exists():  # else it is removed, but not yet committed
            folder = name.split("/")[0]
            found[folder] = found.get(folder, 0) + tokens_of(path.read_text())
    return found


def budget() -> dict[str, int]:
    """Return the table of `pyproject.toml`: the maximum number of tokens of a folder."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    table: dict[str, int] = settings["tool"]["specopt"]["budget"]
    return table


if __name__ == "__main__":
    allowed = budget()
    print(f"{'folder':12} {'tokens':>8} {'allowed':>8}")
    for folder, tokens in sorted(sizes().items()):
        print(f"{folder:12} {tokens:8} {allowed.get(folder, ''):>8}")
