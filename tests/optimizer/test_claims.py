"""What files claim against what their numbers say: in reports, by `evaluate`, and in tables of
comparisons.
"""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest
from helpers import records
from helpers.command_line import CommandLine
from helpers.report_cases import problem_and_plan, result_of
from hypothesis import given
from hypothesis import strategies as st

from specopt import Problem, Result, Status, Termination, load, save, solve
from specopt.api.claims import at_most, certificate, every_plan_has, without_refuted_claims
from specopt.comparison.cell import Record
from specopt.comparison.report import print_comparison_summary
from specopt.comparison.table import Comparison
from specopt.console.terminal import console
from specopt.models.judge import proof_of, verify
from specopt.models.problem import problem_type
from specopt.report.result import result_page

FAMILY = "draft-allocation/paper-5"


def claim(**fields: Any) -> tuple[Problem, Result]:
    """Return a problem whose objective is maximised, and a result with some claims."""
    problem, plan = problem_and_plan(FAMILY)
    return problem, result_of(problem, plan, **fields)


def page_text(cli: CommandLine, result: Result, problem: Problem | None = None) -> str:
    """Return what `report` makes of a result file, with its problem or without."""
    save(result, "r.json")
    save(problem or problem_and_plan(FAMILY)[0], "p.json")
    cli(f"report r.json {'--problem p.json' if problem else ''} -o page.html")
    return Path("page.html").read_text()


@pytest.mark.parametrize("judged", [False, True])
@pytest.mark.parametrize(
    ("factor", "claims", "words", "good"),
    [
        (1.0, {"gap": 0.5, "status": "feasible"}, "No plan is better", True),
        (2.0, {"gap": 0.0, "status": "optimal"}, "The file calls the plan optimal", False),
        (2.0, {"gap": -1.0, "status": "feasible"}, "No plan can be more than 100 % better", None),
        (
            2.0,
            {"gap": 0.0, "status": "optimal", "termination": "gap"},
            "No plan can be more than 100 % better",
            None,
        ),
        (0.5, {"gap": 0.5, "status": "feasible"}, "The bound of the file is refuted", False),
        (0.5, {"gap": 0.0, "status": "optimal"}, "The bound of the file is refuted", False),
        (2.0, {"gap": 1.0, "status": "infeasible"}, "contains a plan, but states", False),
        (None, {"gap": 0.0, "status": "optimal"}, "The file calls the plan optimal", False),
    ],
)
def test_reports_derive_status_and_gap(
    judged: bool, factor: float | None, claims: dict[str, Any], words: str, good: bool | None
) -> None:
    """Tests that a page says what objective and bound make of a plan, whatever status and gap the
    file claims.
    """
    problem, plain = claim()
    assert plain.objective is not None
    fields = claims | {"status": Status(claims["status"])}
    fields["termination"] = Termination(claims.get("termination", "converged"))
    _, result = claim(bound=None if factor is None else factor * plain.objective, **fields)
    page = result_page(result, problem if judged else None, ())
    assert words in " ".join(page.lead)
    assert page.good is good
    assert ("No plan is better" in " ".join(page.lead)) == (factor == 1.0)
    assert ("every plan has an objective of at most" in page.body[0]) == (factor in (1.0, 2.0))
    assert ("<dd>optimal" in page.body[0]) == (factor == 1.0)


def test_the_tolerance_is_the_methods() -> None:
    """Tests that a bound apart by less than the tolerance of the method that is named proves the
    plan.
    """
    problem, plan = problem_and_plan("fair-goodput/paper-5")
    objective = problem.evaluate(plan).objective
    for method, status in (("convex", Status.OPTIMAL), ("no-such-method", Status.FEASIBLE)):
        claimed = result_of(problem, plan, bound=objective + 1e-7, method=method)
        assert (
            without_refuted_claims(claimed, problem, verify(problem, claimed))[0].status is status
        )


def test_a_gap_that_only_the_problem_gives_is_not_claimed() -> None:
    """Tests that a gap of 0 whose bound is far from the objective is not used for fair goodput
    without its problem, and that a refuted bound is recognised there, too.
    """
    problem, plan = problem_and_plan("fair-goodput/paper-5")
    objective = problem.evaluate(plan).objective
    for bound, gap, words in (
        (objective, 0.0, "No plan is better"),
        (
            objective + 0.1,
            None,
            "It is not known how much better another plan can be, by the common rate",
        ),
        (objective - 0.1, None, "The bound of the file is refuted"),
    ):
        claimed = result_of(problem, plan, bound=bound, gap=0.0, status=Status.OPTIMAL)
        assert without_refuted_claims(claimed)[0].gap == gap
        assert words in result_page(claimed, None, ()).lead[0]
    assert without_refuted_claims(claimed)[0].status is Status.FEASIBLE
    tiny = result_of(problem, plan, objective=10.0, bound=20.0, gap=1e-12)
    assert without_refuted_claims(tiny)[0].gap is None
    near = dataclasses.replace(tiny, bound=10.000001)
    assert without_refuted_claims(near)[0].gap == 1e-12


def test_without_a_plan_nothing_is_found(cli: CommandLine) -> None:
    """Tests that "optimal" without a plan is no plan found, that a claimed proof of infeasibility
    stays one.
    """
    problem, _ = claim()
    for said, status in ((Status.OPTIMAL, Status.NONE), (Status.INFEASIBLE, Status.INFEASIBLE)):
        result, _ = without_refuted_claims(
            result_of(problem, None, status=said, objective=3.0, gap=0.0)
        )
        assert (result.status, result.objective, result.gap) == (status, None, None)
    _, nameless = claim(objective=None, bound=3.0, gap=0.0)
    assert "the file contains no objective" in page_text(cli, nameless)


def test_what_solve_writes_stands(cli: CommandLine) -> None:
    """Tests that an honest result keeps bound, status and gap, also without its problem."""
    for family in (FAMILY, "fair-goodput/paper-5", "serving-latency/paper-1"):
        problem, _ = problem_and_plan(family)
        result = solve(problem, time_limit=5)
        for report in (None, verify(problem, result)):
            held, refuted = without_refuted_claims(
                result, None if report is None else problem, report
            )
            assert refuted == [] and held.bound == result.bound
            assert (held.status, held.gap) == (result.status, result.gap)
    assert "No plan is better" in page_text(cli, result, problem)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"stats": [1]}, "stats: expected object, got [1] (array)"),
        ({"seconds": -1.0}, "seconds: expected a finite number >= 0, got -1.0"),
        ({"bound": "@1e400"}, "bound: expected a finite number, got inf"),
        ({"stats": {"a": [0, "@-1e400"]}}, "stats.a[1]: expected a finite number, got -inf"),
        ({"terms": {"a": "@1" + 400 * "0" + ".5"}}, "terms.a: expected a finite number, got inf"),
    ],
)
def test_wrong_fields_are_refused_by_name(
    cli: CommandLine, changes: dict[str, Any], words: str
) -> None:
    """Tests that a field of the wrong type and a number beyond floating point are named, with the
    file.
    """
    text = json.dumps(claim()[1].to_dict() | changes)
    Path("r.json").write_text(text.replace('"@', "").replace('400"', "400").replace('.5"', ".5"))
    cli.refuses("report r.json -o page.html", f"specopt: r.json: {words}")


def test_evaluate_says_what_is_refuted(cli: CommandLine) -> None:
    """Tests that `evaluate` derives bound and gap as a report does, in JSON and in words."""
    problem, result = claim(bound=1.0, gap=0.0, status=Status.OPTIMAL)
    save(problem, "p.json")
    save(result, "r.json")
    said = cli("evaluate p.json r.json --json").json
    assert (said["bound"], said["gap"], len(said["refuted"])) == (None, None, 2)
    shown = cli("evaluate p.json r.json").out
    assert "every plan has an objective of at most 1, but this plan has" in shown


def test_a_bound_proves_what_its_side_allows() -> None:
    """Tests that the rules hold by hand, in both senses: gap, rounding, the wrong side, an
    objective of 0.
    """
    least = problem_type("serving-latency")
    most = problem_type("draft-allocation")
    for kind, sign in ((least, 1.0), (most, -1.0)):
        assert proof_of(kind, 10.0, None) == (None, None, False)
        assert proof_of(kind, 10.0, 10.0 - sign) == (10.0 - sign, 0.1, False)
        assert proof_of(kind, 10.0, 10.0 + sign) == (None, None, True)
        assert proof_of(kind, 10.0, 10.0 + 1e-9 * sign) == (10.0, 0.0, False)
        assert proof_of(kind, 10.0, 10.0 - 1e-9 * sign) == (10.0 - 1e-9 * sign, 0.0, False)
        assert proof_of(kind, 0.0, -sign) == (-sign, None, False)
        assert proof_of(kind, 0.0, -1e-10 * sign, size=1.0) == (-1e-10 * sign, 0.0, False)


def test_certificates_in_words() -> None:
    """Tests that there are words for a gap, for none, for a kind whose gap is of something else,
    for no plan.
    """
    problem, plan = problem_and_plan("serving-latency/paper-1")
    result = result_of(problem, plan, objective=12.5, bound=12.49, gap=0.0008)
    assert certificate(result) == [
        "No plan can be more than 0.08 % better, because every plan has an objective of at least"
        " 12.49, and this plan has 12.5: total serving latency (s)."
    ]
    exact = certificate(
        result_of(problem, plan, objective=12.5, bound=12.5, gap=0.0, method="brute-force"), problem
    )
    assert exact[0].startswith(
        "No plan is better, because every plan has an objective of at least 12.5, "
    )
    assert exact[1] == "Guarantee of method brute-force: optimal."
    fair = result_of(*problem_and_plan("fair-goodput/paper-5"), objective=1.0, bound=1.1, gap=0.1)
    assert "10 % better, by the common rate" in certificate(fair)[0]
    placement = problem_type("placement")
    assert [every_plan_has(placement, (least, 0.0))[-8:] for least in (0.0, 1.0)] == [
        " at most",
        "at least",
    ]
    none = result_of(problem, None, status=Status.NONE, explanation="out of time")
    assert certificate(none) == ["There is no plan to certify: out of time."]


@given(st.floats(0.0, allow_infinity=False))
def test_percentages_of_certificates_never_promise_too_much(share: float) -> None:
    """Tests that a share is rounded up, by less than a tenth of it."""
    shown = float(at_most(share).removesuffix(" %"))
    assert 100.0 * share <= shown * (1 + 1e-15) or share > 1e300
    assert shown <= 110.0 * share * (1 + 1e-12) or share < 1e-300


# --------------------------------------------------------------------------- records of comparisons


def record(
    objective: float | None, bound: float | None, status: str, method: str = "exact", **fields: Any
) -> Record:
    """Return a record of a cell whose objective is minimised."""
    return records.record(method, "a", objective, bound, status=status, **fields)


@pytest.mark.parametrize(
    ("one", "status", "bound", "gap", "error"),
    [
        (record(9.0, 9.0, "optimal", gap=0.0), "optimal", 9.0, 0.0, None),
        (
            record(9.0, 8.99, "optimal", gap=0.01 / 9, gap_limit=0.01),
            "optimal",
            8.99,
            0.01 / 9,
            None,
        ),
        (record(9.0, 4.5, "optimal", gap=0.0), "feasible", 4.5, 0.5, None),
        (
            record(9.0, 20.0, "optimal", gap=0.0),
            "feasible",
            None,
            None,
            "its bound 20 is refuted by a plan with objective 9",
        ),
        (record(9.0, 4.5, "feasible", gap=-1.0), "feasible", 4.5, 0.5, None),
        (record(9.0, None, "optimal", gap=0.0), "feasible", None, None, None),
        (
            record(9.0, None, "infeasible"),
            "feasible",
            None,
            None,
            "proof that no plan exists is refuted by",
        ),
        (record(None, 3.0, "optimal", gap=0.0), "none", 3.0, None, None),
        (record(None, None, "infeasible"), "infeasible", None, None, None),
        (record(9.0, 9.0, "failed", error="killed"), "failed", None, None, "killed"),
    ],
)
def test_records_are_held_against_their_numbers(
    one: Record, status: str, bound: float | None, gap: float | None, error: str | None
) -> None:
    """Tests that status, bound and gap of a record follow from its numbers, and that what is
    refuted is said.
    """
    comparison = Comparison([one], known={})
    (held,) = comparison
    assert (held.status, held.bound) == (status, bound)
    assert held.gap == (None if gap is None else pytest.approx(gap))
    assert (held.error is None) == (error is None) and (error or "") in (held.error or "")
    assert comparison.proven(held) == (gap == 0.0 or status == "infeasible")


def test_a_record_is_held_against_other_plans(capsys: pytest.CaptureFixture[str]) -> None:
    """Tests that a plan of another method refutes a bound, or a proof of infeasibility, and the
    summary says so.
    """
    comparison = Comparison(
        [
            record(10.0, 10.0, "optimal", gap=0.0, method="proud"),
            record(None, None, "infeasible", method="denying"),
            record(9.0, None, "feasible", method="humble"),
        ],
        known={},
    )
    by = {one.method: one for one in comparison}
    assert (by["proud"].status, by["proud"].bound, by["proud"].objective) == (
        "feasible",
        None,
        10.0,
    )
    assert (by["denying"].status, by["humble"].error) == ("none", None)
    assert [comparison.wins(by[name]) for name in ("proud", "denying", "humble")] == [
        False,
        False,
        True,
    ]
    assert comparison.best(by["humble"]) == (9.0, None)
    print_comparison_summary(comparison, console())
    said = capsys.readouterr().out
    assert "refuted: proud on a, seed 0: its bound 10 is refuted by a plan with objective 9" in said
    assert (
        "refuted: denying on a, seed 0: its proof that no plan exists is refuted by a plan with"
        " objective 9" in said
    )


def test_a_result_is_still_read_as_it_is(tmp_path: Path) -> None:
    """Tests that `load` keeps what a file says: only what shows it derives anew."""
    _, result = claim(bound=1.0, gap=-1.0, status=Status.OPTIMAL)
    save(result, tmp_path / "r.json")
    assert load(tmp_path / "r.json", Result) == result


def test_what_makes_no_record_is_named(cli: CommandLine, caplog: pytest.LogCaptureFixture) -> None:
    """Tests that a table of records names the line that is none, and that a gap beyond all numbers
    is null in JSON.
    """
    lines = [
        json.dumps(one.to_dict())
        for one in (record(0.0, -1.0, "feasible"), record(1.0, None, "feasible"))
    ]
    text = "\n".join([*lines, lines[0].replace("-1.0", "-1e400"), ""])
    Path("records-x.jsonl").write_text(text)
    assert [row["gap_to_best_bound"] for row in cli("compare --table . --json").json] == [None]
    assert "records-x.jsonl:3: invalid record" in caplog.text
