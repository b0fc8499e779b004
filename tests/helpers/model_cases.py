"""Configs of models: small ones of every type, and those of published models."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parents[1] / "data" / "model_configs"


def configs(folder: Path) -> dict[str, dict[str, Any]]:
    """Return the configs of a folder by name."""
    return {
        file.stem: json.loads(file.read_text())
        for file in sorted(folder.glob("*.json"))
        if file.stem != "counts"
    }


SMALL = configs(FOLDER)
COUNTS: dict[str, dict[str, Any]] = json.loads((FOLDER / "counts.json").read_text())
"""Parameters and bytes of `SMALL`; see the folder's README."""

PUBLISHED = configs(FOLDER / "published")
