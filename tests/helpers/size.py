"""How large the code is: tokens and lines of every folder, as `make size` prints and a test compares."""

from __future__ import annotations

import io
import subprocess
import tokenize
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
LAYOUT = {"COMMENT", "NL", "NEWLINE", "INDENT", "DEDENT", "ENCODING", "ENDMARKER"}


def tokens_of(source: str) -> int:
    """Return the tokens of code: no comments, no layout, no strings that are statements; an f-string is one."""
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


def sizes() -> dict[str, tuple[int, int]]:
    """Return tokens and lines of the tracked Python files of every folder of the checkout's root."""
    found: dict[str, tuple[int, int]] = {}
    for name in subprocess.check_output(["git", "ls-files", "*/*.py"], cwd=ROOT, text=True).splitlines():
        path = ROOT / name
        if not path.exists():  # removed, but not yet committed
            continue
        source = path.read_text()
        tokens, lines = found.get(name.split("/")[0], (0, 0))
        found[name.split("/")[0]] = tokens + tokens_of(source), lines + source.count("\n")
    return found


def budget() -> dict[str, dict[str, int]]:
    """Return the table of `pyproject.toml`: the most tokens and lines that a folder may have."""
    table: dict[str, dict[str, int]] = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["specopt"]["budget"]
    return table


if __name__ == "__main__":
    allowed = budget()
    print(f"{'folder':12} {'tokens':>8} {'allowed':>8} {'lines':>7} {'allowed':>8}")
    for folder, (tokens, lines) in sorted(sizes().items()):
        most = allowed.get(folder, {"tokens": "", "lines": ""})
        print(f"{folder:12} {tokens:8} {most['tokens']:>8} {lines:7} {most['lines']:>8}")
