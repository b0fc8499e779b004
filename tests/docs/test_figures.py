"""Numbers in README and documentation are those that were recorded: `docs/figures.json`."""

from __future__ import annotations

import json
import re
from decimal import Decimal
from pathlib import Path

import figures  # type: ignore[import-not-found]  # benchmarks are no package
import pytest

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *(ROOT / "docs").glob("*.md"), *(ROOT / "docs" / "kinds").glob("*.md")]
MARKED = re.compile(rf"({figures.NUMBER})<!-- =(\S+) -->")
CLAIM = re.compile(
    r"\d+\.\d+ (?:%|times|ms|s|µs|GB)\b|\d+ (?:times|microseconds|µs)\b|\d+\.\d+ %"
    r"|\b(?:some|about|nearly|only|almost|over|below|up to) \d+ (?:%|ms|s|seconds|minutes|kB|GB)"
)
RECORD = json.loads(figures.RECORD.read_text())


def prose(page: Path) -> str:
    """Return a page without its blocks and pieces of code, and without what is generated."""
    text = re.sub(r"<!-- generated: .*?<!-- end -->", "", page.read_text(), flags=re.DOTALL)
    text = re.sub(r"^```.*?^```$", "", text, flags=re.DOTALL | re.MULTILINE)
    return re.sub(r"`[^`\n]*`", "", text)


@pytest.mark.nightly
def test_the_record_is_current() -> None:
    """Tests that the record is what the newest tables of the benchmarks and the instance library
    say.
    """
    assert figures.record() == RECORD


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_pages_state_what_is_recorded(page: Path) -> None:
    """Tests that every marked number is the recorded one to its digits, and that no measured one is
    unmarked.
    """
    text = prose(page)
    for shown, key in MARKED.findall(text):
        digits = Decimal(shown.replace(",", ""))
        assert (
            round(Decimal(str(RECORD[key]["value"])), -int(digits.as_tuple().exponent)) == digits
        ), key
    assert CLAIM.findall(MARKED.sub("", text)) == []


def test_every_figure_is_stated() -> None:
    """Tests that no figure is recorded for nothing."""
    stated = {key for page in PAGES for _, key in MARKED.findall(page.read_text())}
    assert stated == set(RECORD)
