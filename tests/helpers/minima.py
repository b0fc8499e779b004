"""The least versions that pyproject.toml declares, for pip: `python tests/helpers/minima.py
EXTRA,EXTRA`.
"""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path


def minima(*extras: str) -> list[str]:
    """Return NAME==LEAST of what the package requires, alone and with some extras."""
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    wanted = [
        project["dependencies"],
        *(project["optional-dependencies"][extra] for extra in extras),
    ]
    return [each.partition(",")[0].replace(">=", "==") for part in wanted for each in part]


if __name__ == "__main__":
    print(*minima(*sys.argv[1].split(",")), sep="\n")
