"""Reports in a browser: `make browser-test` installs what drives it, the system's packages have
Chromium.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from helpers.report_cases import SWEEP, problem_and_plan, result_of

from specopt import save
from specopt.report.page import to_html
from specopt.report.result import result_page
from specopt.report.sources import page_of

pytest.importorskip("vl_convert")
playwright = pytest.importorskip("playwright.sync_api")
CHROMIUM = (
    shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
)
pytestmark = [
    pytest.mark.nightly,
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium: apt-get install chromium"),
]

PICTURES = os.environ.get("SPECOPT_SCREENSHOTS")
"""A folder: keep pictures of the pages there, to be looked at."""

LOOKS: dict[str, dict[str, Any]] = {
    "light": {"viewport": {"width": 1100, "height": 900}},
    "dark": {"viewport": {"width": 1100, "height": 900}, "color_scheme": "dark"},
    "phone": {"viewport": {"width": 400, "height": 844}, "has_touch": True},
}


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """A browser without a window."""
    with playwright.sync_playwright() as driver:
        started = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield started
        started.close()


@pytest.fixture(scope="module")
def plan(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file of a plan's page."""
    problem, made = problem_and_plan("serving-latency/paper-1")
    path = tmp_path_factory.mktemp("pages") / "plan.html"
    path.write_text(to_html(result_page(result_of(problem, made), problem, ("r.json",))))
    return path


@pytest.fixture(scope="module", params=["plan", "results", "sweep"])
def page(request: pytest.FixtureRequest, plan: Path) -> Path:
    """The file of a page."""
    if request.param == "plan":
        return plan
    path = plan.with_name(f"{request.param}.html")
    sources = [SWEEP] if request.param == "sweep" else results(plan.parent)
    path.write_text(to_html(page_of(tuple(map(str, sources)))))
    return path


def results(folder: Path) -> list[Path]:
    """Write the files of two results that name their problems, and return the results' files."""
    written = []
    for family in ("draft-allocation/paper-5", "serving-latency/paper-1"):
        problem, made = problem_and_plan(family)
        save(problem, folder / f"{problem.kind}.json")
        written.append(folder / f"{problem.kind}.result.json")
        save(result_of(problem, made, problem_file=f"{problem.kind}.json"), written[-1])
    return written


@pytest.mark.parametrize("look", LOOKS)
def test_a_page_is_whole_quiet_and_alone(browser: Any, page: Path, look: str) -> None:
    """Tests that charts are drawn by the page itself, nothing is logged or asked for, and nothing
    overflows.
    """
    opened = browser.new_context(**LOOKS[look]).new_page()
    said: list[str] = []
    opened.on("console", lambda message: said.append(message.text))
    opened.on("pageerror", lambda error: said.append(str(error)))
    opened.on(
        "request",
        lambda one: said.extend([] if one.url.startswith(("file:", "data:")) else [one.url]),
    )
    opened.goto(page.as_uri())
    charts = opened.locator("figure").count()
    opened.wait_for_function(f"document.querySelectorAll('.vega-embed svg').length === {charts}")
    assert charts >= 2
    assert said == []
    assert opened.evaluate("document.documentElement.scrollWidth <= innerWidth")
    if PICTURES:
        opened.screenshot(path=Path(PICTURES) / f"{page.stem}-{look}.png", full_page=True)
        opened.pdf(path=Path(PICTURES) / f"{page.stem}-{look}.pdf")
    opened.context.close()


def test_text_and_pictures_need_no_scripts(browser: Any, page: Path) -> None:
    """Tests that without scripts every chart is a picture, and its table opens."""
    opened = browser.new_context(java_script_enabled=False).new_page()
    opened.goto(page.as_uri())
    charts = opened.locator("figure").count()
    assert opened.locator(".plot > svg").count() == charts >= 2
    table = opened.locator("figure details").first
    if table.get_attribute("open") is None:
        table.locator("summary").click()
    assert table.locator("table").is_visible()
    opened.context.close()


def test_prints_are_light(browser: Any, page: Path) -> None:
    """Tests that a page is printed on white paper without sliders, also from a dark screen, and
    that pictures are not cut at the end of a sheet.
    """
    opened = browser.new_context(**LOOKS["dark"]).new_page()
    opened.goto(page.as_uri())
    opened.wait_for_selector(".vega-embed svg")
    paper = "getComputedStyle(document.body).backgroundColor"
    assert opened.evaluate(paper) != "rgb(255, 255, 255)"
    opened.emulate_media(media="print")
    assert opened.evaluate(paper) == "rgb(255, 255, 255)"
    assert not any(one.is_visible() for one in opened.locator(".vega-bindings").all())
    breaks = "plots => plots.map(plot => getComputedStyle(plot).breakInside)"
    assert set(opened.locator(".plot").evaluate_all(breaks)) == {"avoid"}
    opened.context.close()


def test_keys_sort_a_table_and_zoom_a_timeline(browser: Any, plan: Path) -> None:
    """Tests that a column's numbers are sorted by Enter, and that an arrow key on a slider changes
    the axis.
    """
    opened = browser.new_page()
    opened.goto(plan.as_uri())
    table = opened.locator("section", has_text="The plan row by row").locator("table").first
    head = table.locator("th", has_text="bandwidth share")
    shares = "rows => rows.map(row => Number(row.cells[3].dataset.value))"
    head.locator("button").focus()
    opened.keyboard.press("Enter")
    assert head.get_attribute("aria-sort") == "ascending"
    assert table.locator("tbody tr").evaluate_all(shares) == [0.3, 0.3, 0.4]
    opened.keyboard.press("Enter")
    assert table.locator("tbody tr").evaluate_all(shares) == [0.4, 0.3, 0.3]
    opened.wait_for_selector(".vega-bind input")
    bars = "marks => marks.map(mark => mark.getAttribute('d')).join()"
    before = opened.locator("figure").first.locator(".mark-rect path").evaluate_all(bars)
    opened.locator(".vega-bind input").first.focus()
    opened.keyboard.press("ArrowRight")
    opened.wait_for_timeout(200)
    assert opened.locator("figure").first.locator(".mark-rect path").evaluate_all(bars) != before
    opened.close()


def test_a_point_tells_its_figures(browser: Any, plan: Path) -> None:
    """Tests that pointing at a bar shows its row."""
    opened = browser.new_page()
    opened.goto(plan.as_uri())
    opened.wait_for_selector(".vega-bind input")
    opened.locator("figure").first.locator(".mark-rect path").first.hover()
    opened.wait_for_selector("#vg-tooltip-element.visible")
    words = opened.locator("#vg-tooltip-element").inner_text()
    assert "stage" in words and "draft" in words and "begin (s)" in words
    opened.close()
