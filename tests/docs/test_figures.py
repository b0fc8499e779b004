"""Numbers in README and documentation are the recorded ones of `docs/figures.json`."""

from __future__ import annotations

import json
import re
from pathlib import Path

import figures  # type: ignore[import-not-found]  # benchmarks are no package
import pytest

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *(ROOT / "docs").glob("*.md"), *(ROOT / "docs" / "kinds").glob("*.md")]
VALUE = re.compile(r"\{([^{}:]+):([^{}]+)\}")
CLAIM = re.compile(
    r"\d+\.\d+ (?:%|times|ms|s|µs|GB)\b|\d+ (?:times|microseconds|µs)\b|\d+\.\d+ %"
    r"|\b(?:some|about|nearly|only|almost|over|below|up to) \d+ (?:%|ms|s|seconds|minutes|kB|GB)"
)
RECORD = json.loads(figures.RECORD.read_text())
STATED: dict[str, list[str]] = json.loads((ROOT / "docs" / "stated.json").read_text())


def prose(page: Path) -> str:
    """Return a page as one line, without blocks of code, generated parts and comments."""
    text = re.sub(r"<!-- generated: .*?<!-- end -->", "", page.read_text(), flags=re.DOTALL)
    text = re.sub(r"^```.*?^```$|<!--.*?-->", "", text, flags=re.DOTALL | re.MULTILINE)
    return " ".join(text.split())


@pytest.mark.nightly
def test_the_record_is_current() -> None:
    """Tests that the record is equal to the newest tables of the benchmarks and to the instance
    library.
    """
    assert figures.record() == RECORD


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_pages_state_recorded_numbers(page: Path) -> None:
    """Tests that a page has every passage of `docs/stated.json` with the recorded values, and no
    other measured number.
    """
    text = prose(page)
    for passage in STATED.get(page.relative_to(ROOT).as_posix(), []):
        stated = VALUE.sub(lambda of: format(RECORD[of[1]]["value"], of[2]), passage)
        assert stated in text
        text = text.replace(stated, "")
    assert CLAIM.findall(re.sub(r"`[^`]*`", "", text)) == []


def test_every_figure_is_stated() -> None:
    """Tests that every recorded figure is on a page, and that every page with passages exists."""
    assert {key for of in STATED.values() for key, _ in VALUE.findall("".join(of))} == set(RECORD)
    assert set(STATED) <= {page.relative_to(ROOT).as_posix() for page in PAGES}
