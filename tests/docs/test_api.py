"""The API page has every public name."""

from __future__ import annotations

import re
from pathlib import Path

import specopt
import specopt.online

PAGE = (Path(__file__).parents[2] / "docs" / "api.md").read_text()


def test_every_public_name_is_on_the_page() -> None:
    """Tests that what `specopt` and `specopt.online` export is documented, and nothing twice."""
    named = re.findall(r"^### `(\S+)`$", PAGE, re.MULTILINE)
    assert len(named) == len(set(named))
    names = set(dir(specopt)) - {"online", "testing"}  # modules, each with its own section
    assert {f"specopt.{name}" for name in names} - set(named) == set()
    classes = {
        name for name in specopt.online.__all__ if isinstance(getattr(specopt.online, name), type)
    }
    assert {f"specopt.online.{name}" for name in classes} - set(named) == set()
