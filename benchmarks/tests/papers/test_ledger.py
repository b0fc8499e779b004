"""The ledger: complete, true to the papers' texts where they are, and what its entries say."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from papers.ledger import (
    CHECKS,
    ORIGINS,
    STATUSES,
    THEOREMS,
    TITLES,
    Assumption,
    Statement,
    counts,
    entries,
    paper,
    portion,
)
from papers.views import summary

pytestmark = pytest.mark.nightly

ROOT = Path(__file__).parents[3]
TEXTS = {
    f"paper-{path.name[0]}": path
    for path in (ROOT.parent / "shared" / "papers").glob("[1-5]-*.txt")
}

IDENTIFIER = re.compile(
    r"\b(?:(Fig)(?:ure|\.)?s?\.?|(Table|Theorem|Lemma|Proposition|Corollary|Remark|Algorithm|Assumption)\.?)"
    r"\s+(\d{1,2}|[IV]+)\b",
    re.IGNORECASE,
)
UNITS = (
    "\u00d7|"
    r"%|\\%|\\times|-fold|ms\b|tokens/s|GB\b|TOPS|kbps|Mbps|Gbps|MHz|billion|million|GFLOPs|TFLOPs|iterations\b"
)
QUANTITY = re.compile(rf"(?<![\w.^{{])\$?(\d+(?:,\d{{3}})*(?:\.\d+)?)\s?(?:\\?,)?\s?\$?(?:{UNITS})")
NUMBER = re.compile(r"(?<![\w.])-?\d+(?:,\d{3})*(?:\.\d+)?(?:e-?\d+)?")
CLAIMS = tomllib.loads((Path(__file__).parent / "claims.toml").read_text())


def text_of(name: str) -> str:
    """The text of a paper up to its references."""
    body = TEXTS[name].read_text()
    return re.sub(
        r"\n#* ?References\n.*?(?=\n#* ?Append|\Z)", "\n", body, flags=re.DOTALL | re.IGNORECASE
    )


def numbers(value: Any) -> Iterator[float]:
    """All numbers in a value, or in its words."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        for one in value:
            yield from numbers(one)
    elif isinstance(value, str):
        yield from (float(one.replace(",", "")) for one in NUMBER.findall(value))
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        yield from (float(value), 100.0 * value)  # shares are often printed in percent


@pytest.mark.parametrize("name", TITLES)
def test_every_identifier_has_a_statement(name: str) -> None:
    """Tests that every figure, table and numbered statement of a paper has an entry that stands
    there.
    """
    places = [
        said.place.replace(",", " ").replace("(", " ") + " "
        for said in paper(name).statements.values()
    ]
    for identifier in paper(name).identifiers:
        assert any(place.startswith(f"{identifier} ") for place in places), identifier


@pytest.mark.skipif(not TEXTS, reason="the papers' texts are not here")
@pytest.mark.parametrize("name", TITLES)
def test_identifiers_are_those_of_the_text(name: str) -> None:
    """Tests that the identifiers checked in are those that the text has, no more and no less."""
    text = text_of(name)
    found = {
        ("Figure" if figure else word.capitalize(), number)
        for figure, word, number in IDENTIFIER.findall(text)
    }
    roman = {number for word, number in found if word == "Table" and not number.isdigit()}
    kept = {
        f"{word} {number}"
        for word, number in found
        if not (word == "Table" and roman and number.isdigit())
    }
    assert set(paper(name).identifiers) == kept


@pytest.mark.skipif(not TEXTS, reason="the papers' texts are not here")
@pytest.mark.parametrize("name", TITLES)
def test_every_printed_quantity_has_a_statement(name: str) -> None:
    """Tests that every number with a unit that the text prints stands in some statement."""
    known = {
        float(f"{one:.9g}")
        for said in paper(name).statements.values()
        for one in numbers([said.printed, said.statement, said.reason, dict(said.given)])
    }
    small = {
        f"{one:.9e}".partition("e")[0] for one in known if 0.0 < abs(one) < 0.05
    }  # powers of ten
    missing = {
        quantity
        for quantity in QUANTITY.findall(text_of(name))
        for value in [float(quantity.replace(",", ""))]
        if value not in known and f"{value:.9e}".partition("e")[0] not in small
    }
    assert missing == set()


@pytest.mark.skipif(not TEXTS, reason="the papers' texts are not here")
@pytest.mark.parametrize("name", TITLES)
def test_printed_numbers_are_in_the_text(name: str) -> None:
    """Tests that what the ledger calls printed is: each number is in the text, as it is or in
    percent.
    """
    text = {round(one, 9) for one in numbers(text_of(name).replace("\\%", " ").replace("$", " "))}
    text |= {round(float(one), 9) for one in re.findall(r"\d+\.\d+|\d+", text_of(name))}
    for said in paper(name).statements.values():
        if said.status == "audited" and said.unit.startswith("of "):
            continue  # counts of numbers that follow, not numbers
        printed = said.printed if isinstance(said.printed, list) else [said.printed]
        for one in printed:
            if isinstance(one, (int, float)):
                forms = {round(float(f"{one * scale:.9g}"), 9) for scale in (1, 100, 1e5, 1e6, 1e8)}
                assert forms & text, (said.id, one)


def plain(text: str) -> str:
    """A text in one line, without the marks of Markdown."""
    return re.sub(r"\s+", " ", text.replace("*", ""))


@pytest.mark.parametrize("name", TITLES)
def test_every_claim_has_a_statement(name: str) -> None:
    """Tests that each claim that was found by reading is in the text and has statements, and that
    each statement of a paper belongs to a claim.
    """
    known, said = set(paper(name).statements), set()
    for words, items in CLAIMS[name].items():
        assert not TEXTS or plain(words) in plain(TEXTS[name].read_text()), words
        for item in items:
            meant = {
                one
                for one in known
                if one == item or (item.endswith("*") and one.startswith(item[:-1]))
            }
            assert meant, item
            said |= meant
    stated = {one.id for one in paper(name).statements.values() if one.origin == ORIGINS[0]}
    assert stated <= said


@pytest.mark.parametrize("name", TITLES)
def test_statements_are_sound(name: str) -> None:
    """Tests that each has a known status, and what its status needs: an experiment, a test that
    exists, or a reason.
    """
    one = paper(name)
    for said in one.statements.values():
        assert said.status in STATUSES, said.id
        assert said.status != "not-attempted" or not (said.by or said.test), said.id
        assert (
            said.by or said.test or (said.reason and said.status in ("not-attempted", "audited"))
        ), said.id
        assert bool(said.test) == (said.status in THEOREMS), said.id
        assert (said.status == "held") == (said.instances > 0) == bool(said.tolerance), said.id
        assert said.origin in ORIGINS
        assert (said.origin == ORIGINS[2]) == said.id.endswith(".real"), said.id
        assert not said.by or said.by in one.experiments, said.id
        assert said.check in CHECKS and (said.check == "can fail" or said.by or said.reason), (
            said.id
        )
        assert said.status != "simulated" or one.experiments[said.by], said.id
        if said.test:
            file, _, function = said.test.partition("::")
            tree = ast.parse((ROOT / file).read_text())
            assert function in {
                node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)
            }, said.test
    assert set(one.experiments) == set(one.module.EXPERIMENTS)
    assert {used for names in one.experiments.values() for used in names} == set(one.assumptions)


@pytest.mark.parametrize("name", TITLES)
def test_assumptions_are_sound(name: str) -> None:
    """Tests that every default lies within its range, that ranges have two ends, and that there is
    a reason.
    """
    for one in paper(name).assumptions.values():
        assert one.reason
        if one.choices:
            assert one.default in one.choices
        else:
            assert one.low < one.high and one.low <= one.default <= one.high, one.name
            assert one.at(0.0) == pytest.approx(one.low) and one.at(1.0) == pytest.approx(one.high)
        assert isinstance(one.at(0.3), int) or not one.integer


def test_entries_have_the_form_of_the_ledger() -> None:
    """Tests that every entry has the fields that the format asks for, of its types, and unique
    items per paper.
    """
    listed = entries()
    assert len({(entry["paper"], entry["item"]) for entry in listed}) == len(listed) > 400
    for entry in listed:
        assert {
            "paper",
            "item",
            "place",
            "statement",
            "printed",
            "ours",
            "status",
            "assumptions",
        } <= entry.keys()
        assert entry["status"] != "not-attempted" or entry["reason"]
        for key in ("printed", "ours"):
            value = entry[key]
            assert (
                value is None
                or isinstance(value, (int, float, str))
                or (isinstance(value, list) and len(value) == 2)
            )
        assert 0.0 <= entry.get("share", 0.0) <= 1.0
        for share in (entry, entry.get("near", {})):
            if "share" in share:
                low, high = share["interval"]
                assert low <= share["share"] <= high and share["samples"] > 1
        assert all(isinstance(used, str) for used in entry["assumptions"])


def test_when_a_statement_holds() -> None:
    """Tests that each form has its range: within 10 % of a number, in a range, above 0, at least,
    exact.
    """

    def said(printed: Any = None, status: str = "simulated", **more: Any) -> Statement:
        return Statement(
            id="a", place="b", statement="c", printed=printed, status=status, by="d", **more
        )

    assert said(2.0).agrees(2.19) and not said(2.0).agrees(2.21) and said(-2.0).agrees(-1.81)
    assert said([5, 25]).agrees(25.0) and not said([5, 25]).agrees(4.9)
    assert said().agrees(2e-6) and not said().agrees(1e-9)
    most = said(4.1, one_sided=True)
    assert most.agrees(9.0) and not most.agrees(4.0) and most.near == pytest.approx((3.69, 4.51))
    assert said(44.7, "audited").agrees(44.7) and not said(44.7, "audited").agrees(44.6)
    assert said(holds=(0.0, 0.1)).agrees(0.0)
    forms = (said(2.0), said([5, 25]), said(), most, said(44.7, "audited"), said(holds=(0.0, 0.1)))
    assert [one.criterion for one in forms] == [
        "within 10 %",
        "5 to 25",
        "above 0",
        "at least 4.1",
        "as printed",
        "0 to 0.1",
    ]


@pytest.mark.parametrize(
    ("held", "samples"), [(0, 64), (64, 64), (32, 32), (1, 3), (40, 64), (1, 2)]
)
def test_intervals_are_exact(held: int, samples: int) -> None:
    """Tests that the interval of a share is that of Clopper and Pearson, as SciPy's exact test has
    it.
    """
    from scipy.stats import binomtest

    exact = binomtest(held, samples).proportion_ci(method="exact")
    found = portion(held, samples)
    assert found["share"] == held / samples and found["interval"] == pytest.approx(exact, abs=5e-5)


def test_counts_name_what_can_fail() -> None:
    """Tests that neither statements that cannot fail are counted, nor our checks and those on the
    real pair as the papers' own.
    """

    def entry(
        item: str, share: float, check: str = "can fail", origin: str = "paper"
    ) -> dict[str, Any]:
        return {
            "item": item,
            "origin": origin,
            "status": "simulated",
            "holds": share > 0.5,
            "check": check,
            "share": share,
        }

    listed = [entry("a", 1.0), entry("b", 0.0), entry("c", 1.0, "identity")]
    listed += [entry("a.real", 1.0, origin="real pair"), entry("e", 1.0, origin="our check")]
    listed.append({"item": "d", "origin": "paper", "status": "not-attempted"})
    found = counts(listed)
    assert (found["statements"], found["can fail"], found["sampled"]) == (4, 2, 2)
    assert [found[f"hold at {where}"] for where in ("all points", "no point", "the defaults")] == [
        1,
        1,
        1,
    ]
    for origin in ORIGINS[1:]:
        others = counts(listed, origin)
        assert others["hold at all points"] == others["statements"] == 1


@pytest.mark.parametrize("name", TITLES)
def test_five_sentences(name: str) -> None:
    """Tests that a paper has five sentences of at most 35 words, whose shares are those of the
    record.
    """
    lines = summary(paper(name), entries(paper(name)))
    assert len(lines) == 5
    for said, line in zip(paper(name).summary, lines, strict=True):
        assert "{" not in line and len(said.split()) <= 35, line
        assert line.count(" % of ") == said.count("{"), line


def test_values_of_assumptions() -> None:
    """Tests that places become values evenly, by logarithm, as integers, and as choices."""
    assert Assumption(name="a", default=1, reason="b", low=0.0, high=4.0).at(0.25) == 1.0
    assert Assumption(name="a", default=1, reason="b", low=1.0, high=100.0, log=True).at(
        0.5
    ) == pytest.approx(10.0)
    assert Assumption(name="a", default=1, reason="b", low=1, high=4, integer=True).at(0.4) == 2
    choices = Assumption(name="a", default="x", reason="b", choices=("x", "y"))
    assert [choices.at(place) for place in (0.0, 0.49, 0.5, 1.0)] == ["x", "x", "y", "y"]
