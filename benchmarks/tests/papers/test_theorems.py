"""The sheet of theorems: every check comes out as the ledger says."""

from __future__ import annotations

from fractions import Fraction

import pytest
from papers import theorems
from papers.ledger import THEOREMS, TITLES, paper
from papers.theorems import CHECKS, fluid_relation

pytestmark = pytest.mark.nightly

SHEET = {
    (name, said.id): said
    for name in TITLES
    for said in paper(name).statements.values()
    if said.status in THEOREMS
}


def test_every_theorem_has_a_check() -> None:
    """Tests that what the ledger calls proved or refuted is checked here, or names a test of its
    own.
    """
    assert set(CHECKS) <= set(SHEET)
    assert all(key in CHECKS for key, said in SHEET.items() if said.test.endswith("::test_theorem"))


@pytest.mark.parametrize(("name", "item"), CHECKS, ids="/".join)
def test_theorem(name: str, item: str) -> None:
    """Tests that a statement holds on as many instances as the ledger says, and that a refuted one
    has a counterexample.
    """
    found = CHECKS[name, item]()
    assert (found.counterexample != "") == (SHEET[name, item].status == "refuted"), found.verdict
    assert found.counterexample or found.instances == SHEET[name, item].instances
    assert found.assumptions


def test_a_failing_instance_is_a_counterexample() -> None:
    """Tests that a check says on which instance a statement fails."""
    found = theorems._held("none", 10, lambda random: random.uniform() < 0.6)
    assert found.verdict.startswith("refuted: instance ")


def test_fluid_relation_by_hand() -> None:
    """Tests that both sides of Lemma 1's relation are those worked out by hand."""
    half = Fraction(1, 2)
    assert fluid_relation(half, Fraction(0), [1, 0]) == (Fraction(5, 2), Fraction(5, 2))
    assert fluid_relation(Fraction(0), half, [1]) == (Fraction(5, 4), Fraction(3, 2))
    assert fluid_relation(Fraction(0), half, [2, 1]) == (
        Fraction(1 + 1 + 1) + Fraction(1, 12),
        Fraction(3 + 2),
    )


def test_both_readings_of_theorem_1() -> None:
    """Tests that the starved client's goodput nears x* at the limits of the estimates as beta
    falls, and no other.
    """
    off = []
    for beta in (0.05, 0.005):
        drafts, seen, goodput = theorems._starving(beta)
        assert drafts == 0
        off.append(abs(goodput / theorems._optimum(seen) - 1.0).max())
    assert off[1] < off[0] < 0.04 and off[1] < 0.02
    assert theorems._optimum(seen)[0] == 1.0
