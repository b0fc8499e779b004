"""Reports: every nature of file as one page that asks for nothing, shows what matters and runs
nothing of a file.
"""

from __future__ import annotations

import dataclasses
import json
import os
import re
from html import escape
from html.parser import HTMLParser
from pathlib import Path

import pytest
from helpers.command_line import CommandLine
from helpers.report_cases import PLANS, SWEEP, problem_and_plan, result_of

from specopt import GoodputWorkload, Result, Status, generate, load, save, solve
from specopt.api.claims import at_most
from specopt.commands.shared import problem_file
from specopt.console.terminal import percent
from specopt.kinds.view import view_of
from specopt.models.errors import BrokenPlugin, InvalidInput
from specopt.models.problem import problem_type
from specopt.report import markup, sources
from specopt.report import page as pages
from specopt.report import result as report
from specopt.report.page import to_html
from specopt.report.result import result_page
from specopt.report.sources import page_of

HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(2)>\"' onload=x \x1b[31m&amp;"


class Page(HTMLParser):
    """What a browser makes of a page, as far as it matters: text outside scripts, elements,
    attributes, nesting.
    """

    def __init__(self, html: str) -> None:
        super().__init__()
        self.words: list[str] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.feed(html)
        self.close()
        self.text = " ".join(" ".join(self.words).split())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note an element."""
        self.elements.append((tag, dict(attrs)))
        if (
            tag not in ("meta", "img", "path", "rect", "line", "stop")
            or self.get_starttag_text() == ""
        ):
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note an element without content."""
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        """See that elements end in the order in which they begin."""
        if tag not in ("path", "rect", "line", "stop"):
            assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        """Note text that people see."""
        if not {"script", "style"} & set(self.open):
            self.words.append(data)


def check(html: str) -> Page:
    """Check what holds of every page, and return it: well formed, asks for nothing, runs only its
    own scripts.
    """
    page = Page(html)
    assert html.startswith("<!DOCTYPE html>")
    assert page.open == []
    names = [name for name, _ in page.elements]
    assert names.count("h1") == names.count("title") == names.count("main") == 1
    scripts = [
        attributes.get("type", "code") for name, attributes in page.elements if name == "script"
    ]
    is_drawn = ("div", {"class": "plot"}) in page.elements
    assert is_drawn == ("figure" in names and pages.can_draw())
    assert scripts.count("code") == 1 + is_drawn
    assert (len(html) > 500_000) == is_drawn  # a library of charts is not on a page without charts
    assert set(scripts) <= {"code", "application/json"}
    for _, attributes in page.elements:
        assert not any(name.startswith("on") for name in attributes)
        for name in ("src", "href", "srcset", "action", "data", "xlink:href"):
            assert (attributes.get(name) or "data:").startswith("data:")
    assert "default-src 'none'" in html
    assert re.search(r"url\((?!#)|@import", html.partition("<script>")[0]) is None
    return page


@pytest.fixture
def plain(monkeypatch: pytest.MonkeyPatch) -> None:
    """No library that draws charts."""
    monkeypatch.setattr(pages, "can_draw", lambda: False)


@pytest.mark.usefixtures("plain")
@pytest.mark.parametrize("family", PLANS)
def test_a_plan_of_every_kind_has_its_charts_as_tables(family: str) -> None:
    """Tests that a page shows the judge's word, the charts' rows and the plan's without any library
    or script.
    """
    problem, plan = problem_and_plan(family)
    assert problem.violations(plan) == []
    page = check(to_html(result_page(result_of(problem, plan), problem, ("r.json",))))
    assert "Judged again from the problem's data alone: the plan violates nothing." in page.text
    assert "Nothing is proven: hand has no valid bound" in page.text
    assert page.text.count("pip install 'specopt[plot]'") == 1
    names = [name for name, _ in page.elements]
    assert names.count("figure") >= 1
    assert names.count("table") >= names.count("figure") + (family != "verification-batch/warm")


@pytest.mark.parametrize("family", PLANS)
def test_charts_are_drawn_and_described_alike(family: str) -> None:
    """Tests that a picture and what scripts draw come with every chart, from the rows of its
    table.
    """
    pytest.importorskip("vl_convert")
    problem, plan = problem_and_plan(family)
    html = to_html(result_page(result_of(problem, plan), problem, ()))
    check(html)
    specs = re.findall(r"<script type='application/json'>(.*?)</script>", html)
    assert (
        len(specs) == html.count("<figure>") == len(re.findall("<div class=plot><svg", html)) >= 1
    )
    for spec in map(json.loads, specs):
        title = re.escape(escape(spec["description"]))
        header, *_ = re.findall(f"{title}[^<]*</caption><thead><tr>(.*?)</tr>", html)
        assert list(spec["data"]["values"][0]) == re.findall("<th[^>]*>(.*?)</th>", header)


@pytest.mark.parametrize("drawn", [False, True])
def test_what_files_say_is_shown_and_never_run(
    drawn: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Tests that markup in names, methods, explanations, counters and claims is text on the
    page.
    """
    if drawn:
        pytest.importorskip("vl_convert")
    monkeypatch.setattr(pages, "can_draw", lambda: drawn)
    problem, plan = problem_and_plan("draft-allocation/paper-5")
    named = problem_type(problem.kind).from_dict(problem.to_dict() | {"name": HOSTILE})
    fields = {
        "method": HOSTILE,
        "options": {HOSTILE: HOSTILE},
        "stats": {HOSTILE: HOSTILE},
        "versions": {"x": HOSTILE},
    }
    page = check(to_html(result_page(result_of(named, plan, **fields), named, (HOSTILE,))))
    shown = HOSTILE.replace("\x1b", "\\x1b")
    assert page.text.count(shown) >= 6
    none = result_of(problem, None, status=Status.INFEASIBLE, explanation=HOSTILE)
    assert shown in check(to_html(result_page(none, problem, ()))).text
    table = tmp_path / "sweep.csv"
    header, *lines = SWEEP.read_text().splitlines()
    quoted = '"' + HOSTILE.replace('"', '""').replace("\x1b", "") + '"'
    table.write_text(
        "\n".join((f"{header},workload", *(f"{one},{quoted}" for one in lines))) + "\n"
    )
    assert HOSTILE.replace("\x1b", "") in check(to_html(page_of((str(table),)))).text


def test_a_plan_that_violates_has_no_certificate() -> None:
    """Tests that a claimed optimum whose plan breaks the problem is called what it is."""
    problem, _ = problem_and_plan("draft-allocation/paper-5")
    plan = problem.plan_type.from_dict({"draft_tokens": [100] * 8})
    claimed = result_of(problem, plan, status=Status.OPTIMAL, bound=1.0, gap=0.0)
    page = result_page(claimed, problem, ())
    assert page.good is False
    assert page.lead[0].startswith("The plan violates its problem: ")
    assert "No plan is better" not in to_html(page)
    assert page.row["gap (%)"] is None
    assert "<dt>gap" not in page.body[0]


def test_a_wrong_objective_is_replaced_by_the_judges() -> None:
    """Tests that objective and gap are recomputed, and that the page says so."""
    problem, plan = problem_and_plan("draft-allocation/paper-5")
    objective = problem.evaluate(plan).objective
    claimed = result_of(
        problem, plan, status=Status.OPTIMAL, objective=2 * objective, bound=2 * objective, gap=0.0
    )
    page = result_page(claimed, problem, ())
    words = " ".join(page.lead)
    assert f"{problem.objective_label}</" in page.body[0]
    none = result_of(problem, None, status=Status.NONE)
    assert f"{problem.objective_label}</" not in result_page(none, problem, ()).body[0]
    assert "No plan can be more than 100 % better" in words
    assert "this page shows the judge's" in words


@pytest.mark.usefixtures("plain")
def test_a_sweep_has_its_page() -> None:
    """Tests that a measured sweep becomes a page with its verdict."""
    sweep = check(to_html(page_of((str(SWEEP),))))
    assert "Speculate: 1.19 times the throughput" in sweep.text


@pytest.mark.usefixtures("plain")
def test_the_command(cli: CommandLine) -> None:
    """Tests that a result has its page with and without its problem, and one line says which
    library is missing.
    """
    problem, plan = problem_and_plan("draft-allocation/paper-5")
    save(problem, "p.json")
    save(result_of(problem, plan), "r.json")
    page = page_by("report r.json", cli)
    assert "The claims of the file were not checked" in page.text
    assert "pip install" not in page.text
    said = cli("report r.json --problem p.json -o page.html").err
    assert "Judged again" in check(Path("page.html").read_text()).text
    assert said.splitlines() == [
        "charts are replaced by tables: pictures need vl-convert-python; run pip install"
        " 'specopt[plot]'",
        "written to page.html",
    ]


def page_by(line: str, cli: CommandLine) -> Page:
    """Return the page that a command writes."""
    cli(f"{line} -o page.html")
    return check(Path("page.html").read_text())


def judged(line: str, cli: CommandLine) -> bool:
    """Return whether the page of a command judges the plan."""
    text = page_by(line, cli).text
    assert ("Judged again" in text) != ("The claims of the file were not checked" in text)
    return "Judged again" in text


@pytest.mark.usefixtures("plain")
def test_a_result_leads_to_its_problem(cli: CommandLine) -> None:
    """Tests that `solve -o` notes the problem's file from the result's folder, and that a report
    reads it where it is still the problem that was solved.
    """
    for folder in ("problems", "results", "elsewhere"):
        Path(folder).mkdir()
    file = Path("problems/p.json")
    cli("generate draft-allocation/paper-5 -o problems/p.json")
    printed = cli("solve problems/p.json -o results/r.json --json").json
    assert printed["problem_file"] == "../problems/p.json"
    assert printed == json.loads(Path("results/r.json").read_text())
    assert judged("report results/r.json", cli)
    Path("elsewhere/link.json").symlink_to("../results/r.json")
    assert judged("report elsewhere/link.json", cli)
    renamed = json.loads(file.read_text()) | {"name": "renamed"}
    file.write_text(json.dumps(renamed))
    assert judged("report results/r.json", cli)
    save(generate("draft-allocation/paper-5", seed=1), "same.json")
    for content in (json.dumps(renamed | {"budget_tokens": 3}), "no JSON", None):
        file.unlink()
        if content is not None:
            file.write_text(content)
        assert not judged("report results/r.json", cli)
        held = "../problems/p.json does not contain" if content else "no file ../problems/p.json"
        assert held in Path("page.html").read_text()
        cli("solve same.json -o results/same.json")
        assert judged("report results/same.json --problem same.json", cli)
        file.touch()
    os.mkfifo("problems/pipe")
    for name in ("pipe", "x" * 300, "\0"):
        printed["problem_file"] = f"../problems/{name}"
        Path("results/r.json").write_text(json.dumps(printed))
        assert not judged("report results/r.json", cli)


@pytest.mark.usefixtures("plain")
def test_only_a_problem_of_the_kind_is_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tests that a result without a digest takes no problem of another kind, and that a noted file
    that cannot be read, or whose name is long, does not prevent the page.
    """
    problem, plan = problem_and_plan("draft-allocation/paper-5")
    save(problem_and_plan("prompt-chunking/paper-4")[0], tmp_path / "p.json")
    result = tmp_path / "r.json"
    claimed = result_of(problem, plan, problem_file="p.json")
    save(dataclasses.replace(claimed, problem_sha256=""), result)
    assert "p.json does not contain the problem" in page_of((str(result),)).lead[-1]
    save(problem, tmp_path / "p.json")
    assert "Judged again" in page_of((str(result),)).lead[-1]

    def read(path: Path | str) -> object:
        if path == str(result):
            return load(path)
        raise BrokenPlugin("the plug-in fails")

    monkeypatch.setattr(sources, "load", read)
    assert "p.json does not contain the problem" in page_of((str(result),)).lead[-1]
    monkeypatch.undo()
    save(dataclasses.replace(claimed, problem_file=1000 * "x"), result)
    assert len(page_of((str(result),)).lead[-1]) < 400


def test_long_plans_are_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests that a page says that a plan has more rows and characters than it counts."""
    monkeypatch.setattr(report, "COUNTED_ROWS", 7)
    monkeypatch.setattr(report, "MAX_CHARACTERS", 9)
    problem, plan = problem_and_plan("draft-allocation/paper-5")
    html = report.plan_rows(result_of(problem, plan))
    assert "The plan as a table (more than 7 rows)" in html
    assert re.search("<pre>.{9,60} [.]{3}</pre>", html)
    monkeypatch.undo()
    html = report.plan_rows(result_of(problem, plan))
    assert "(8 rows)" in html
    assert " ..." not in html


def test_only_files_are_noted(cli: CommandLine) -> None:
    """Tests that a result names no problem file where it goes to a device, and where the problem
    came from standard input.
    """
    cli("generate draft-allocation/paper-5 -o p.json")
    assert cli("solve p.json -o /dev/null --json").json["problem_file"] is None
    assert cli("solve p.json --json").json["problem_file"] is None
    assert problem_file(Path("-"), Path("r.json")) is None
    odd = Path(os.fsdecode(b"\xff.json"))
    odd.write_text("{}")
    assert problem_file(odd, Path("r.json")) is None  # it could not be read back


@pytest.mark.usefixtures("plain")
def test_several_results_make_one_page(cli: CommandLine) -> None:
    """Tests that a page of several results has a row and a part for each, with its own problem."""
    for name, family in (("a", "draft-allocation/paper-5"), ("b", "prompt-chunking/paper-4")):
        cli(f"generate {family} -o {name}.json")
        cli(f"solve {name}.json -o r{name}.json")
    line = "report ra.json rb.json"
    page = page_by(line, cli)
    assert page.text.startswith(
        "2 results 2 results 2 of 2 results are proven optimal; not checked: 0."
    )
    assert page.text.count("Judged again") == 2
    names = [name for name, _ in page.elements]
    assert (names.count("article"), names.count("h2"), names.count("h3")) == (2, 2, 6)
    html = Path("page.html").read_text()
    assert re.findall("<td>(r.).json</td><td>([a-z-]+)</td>", html) == [
        ("ra", "draft-allocation"),
        ("rb", "prompt-chunking"),
    ]
    assert page.text.count("gap (%)") == 1
    assert page_by(f"{line} --problem a.json", cli).text.count("Judged again") == 2
    other = json.loads(Path("a.json").read_text()) | {"budget_tokens": 3}
    Path("c.json").write_text(json.dumps(other))
    words = "--problem: the problem matches none of the results"
    cli.refuses(f"{line} --problem c.json -o page.html", words)
    cli.refuses(f"{line} -o b.json", "b.json: would overwrite the input")
    Path("moved").mkdir()
    for name in ("ra", "rb"):
        Path(f"{name}.json").rename(f"moved/{name}.json")
    line = "report moved/rb.json moved/ra.json --problem a.json"
    words = "1 of 2 results are proven optimal; not checked: 1."
    assert words in page_by(line, cli).text
    assert page_by(f"{line} --problem b.json", cli).text.count("Judged again") == 2


@pytest.mark.parametrize("rows", [20, 21])
def test_pictures_and_summaries_come_before_rows(rows: int) -> None:
    """Tests that picture and summary come first, and that tables above 20 rows are closed."""
    problem = generate("draft-allocation/uniform", clients=rows)
    html = to_html(result_page(solve(problem), problem, ()))
    check(html)
    parts = ("<figure>", "The figures as a table", "The plan row by row", "The plan as a table")
    places = [html.index(part) for part in parts]
    assert places == sorted(places)
    opened = re.findall(r"<details( open)?><summary>(.*?)</summary>", html)
    assert opened[:2] == [
        (" open" * (rows == 20), "The figures as a table"),
        (" open" * (rows == 20), f"The plan as a table ({rows} rows)"),
    ]


@pytest.mark.parametrize("tasks", [3, 40])
def test_batches_are_summed_up(tasks: int) -> None:
    """Tests that a plan of serving latency has a row per batch on its page."""
    problem = generate("serving-latency/paper-1", tasks=tasks, max_output=16, seed=1)
    batches = [[0], list(range(1, tasks))]
    fields = {"speculation_length": 1, "batches": batches, "bandwidth_share": [1 / tasks] * tasks}
    plan = problem.plan_type.from_dict(fields)
    assert problem.violations(plan) == []
    html = to_html(result_page(result_of(problem, plan), problem, ()))
    heads = "".join(
        f"<th scope=col class=n>{name}</th>"
        for name in ("batch", "tasks", "steps", "inputs", "padding")
    )
    summary, _, rest = html.partition(heads)[2].partition("</tbody>")
    assert summary.count("<tr>") == 2
    assert f"data-value='{tasks - 1}'" in summary
    assert ("<details open><summary>The plan as a table" in rest) == (tasks == 3)


@pytest.mark.parametrize(("objective", "sense"), [("fair", "at most"), ("cost", "at least")])
def test_the_gap_is_the_results(objective: str, sense: str) -> None:
    """Tests that a page has the gap of the result with its problem and without it, where the gap or
    the sense depends on the problem's data.
    """
    kept = Path(__file__).parents[2] / "data" / "format-1"
    data = json.loads((kept / "placement.problem.json").read_text()) | {"objective": objective}
    data["classes"][0]["min_tokens_per_second"] = 1.0
    problem = problem_type("placement").from_dict(data)
    plan = load(kept / "placement.result.json", Result).plan
    value = problem.evaluate(plan).objective
    bound = 0.75 * value if objective == "cost" else 1.001 * value
    gap = problem.gap(value, bound)
    claimed = result_of(problem, plan, bound=bound, gap=gap)
    percentage = percent(gap)
    assert percentage == {"fair": "0.55 %", "cost": "25.00 %"}[objective]
    for known, words, measure in (
        (
            problem,
            f"every plan has an objective of {sense}",
            ", by the weighted geometric mean of the rates",
        ),
        (None, "the bound on every plan is", ""),
    ):
        page = result_page(claimed, known, ())
        measured = measure if objective == "fair" else ""
        assert f"<dt>gap</dt><dd>{percentage}</dd>" in page.body[0]
        assert page.lead[0].startswith(
            f"No plan can be more than {at_most(gap)} better{measured}, because {words} "
        )
        assert page.good is None
    charts = view_of(problem).charts
    assert charts is not None
    _, chart = charts(problem, plan)
    assert [(row["units used"], row["busy (%)"]) for row in chart.rows] == [(1, 100.0)]


def test_what_makes_no_report_is_refused(tmp_path: Path) -> None:
    """Tests that there are messages for problems, results of other problems, records, a problem for
    another source, and a comparison among results.
    """
    problem, plan = problem_and_plan("draft-allocation/paper-5")
    save(problem, tmp_path / "p.json")
    save(result_of(problem, plan), tmp_path / "r.json")
    (tmp_path / "empty").mkdir()
    (tmp_path / "record.json").write_text(
        json.dumps({"format": "specopt-testbed/1", "kind": "serving-latency"})
    )
    other = type(problem).from_dict(problem.to_dict() | {"budget_tokens": 21})
    save(GoodputWorkload([0.9, 0.5], 8), tmp_path / "w.json")
    for names, given_, words in (
        (["p.json"], (), "p.json: expected a result; solve a problem first"),
        (["w.json"], (), "w.json: expected a result"),
        (["r.json"], (other,), "--problem: the problem matches none of the results"),
        (["r.json", "p.json"], (problem,), "p.json: expected a result; solve"),
        (["r.json", "empty"], (), "empty"),
        (["empty"], (), "expected a folder written by compare, got one without records"),
        (["none.csv"], (), "none.csv"),
        (["record.json"], (), "record.json: this is a testbed record; use `testbed page`"),
    ):
        with pytest.raises(InvalidInput, match=words):
            page_of(tuple(str(tmp_path / one) for one in names), given_)
    with pytest.raises(InvalidInput, match="--problem: expected a result"):
        page_of((str(SWEEP),), (problem,))


def test_notebooks_show_problems_and_results() -> None:
    """Tests that problems and results have HTML for notebooks, and that nothing of theirs is taken
    for markup.
    """
    problem = dataclasses.replace(generate("draft-allocation/uniform", clients=3), name=HOSTILE)
    result = solve(problem)
    shown, found = problem._repr_html_(), result._repr_html_()
    assert shown is not None and found is not None
    assert (
        HOSTILE.replace("\x1b", "\\x1b") in Page(shown).text and "budget tokens" in Page(shown).text
    )
    assert {name for name, _ in Page(shown).elements} <= {"div", "dl", "dt", "dd"}
    assert "No plan is better" in Page(found).text
    assert [name for name, _ in Page(found).elements].count("tr") == 1 + 3


def test_numbers_stand_flush_right() -> None:
    """Tests that columns of numbers, gaps among them, are marked as such, and columns with any text
    are not.
    """
    rows: list[dict[str, object]] = [
        {"a number": None, "a text": "x", "mixed": 1},
        {"a number": 0.5, "a text": "y", "mixed": "z"},
    ]
    found = markup.table(rows, "some")
    assert "<th scope=col class=n>a number</th>" in found
    assert "<th scope=col>a text</th>" in found and "<th scope=col>mixed</th>" in found
