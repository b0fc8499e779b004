"""What a report can be made from, recognised by content: files of `solve`, `compare`, sweeps."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from specopt.models.errors import InvalidInput
from specopt.models.files import load, read_json
from specopt.models.problem import Problem
from specopt.report.page import Page

Sources = tuple[str, ...]
Maker = Callable[[Sources, Problem | None], Page]


def page_of(sources: Sources, problem: Problem | None = None) -> Page:
    """Return the page for what some files and folders hold, all of one nature.

    Parameters
    ----------
    sources
        A result; folders of comparisons; or sweeps, as `tune` takes them.
    problem
        A result's problem.

    Raises
    ------
    InvalidInput
        If they hold nothing that a report can be made from.
    """
    maker = _maker(Path(sources[0]))
    if problem is not None and maker is not _result:
        raise InvalidInput(f"--problem: expected a result, but {sources[0]} is not one")
    if maker is _result and len(sources) > 1:
        raise InvalidInput(
            f"{sources[1]}: expected no other source with {sources[0]}, which has its own page"
        )
    return maker(sources, problem)


def _maker(path: Path) -> Maker:
    if path.is_dir():
        if not any(path.glob("records-*.jsonl")):
            raise InvalidInput(
                f"{path}: expected a folder that compare wrote, found no records-*.jsonl in it"
            )
        return _comparison
    data = read_json(path) if path.suffix.lower() == ".json" and path.is_file() else None
    if isinstance(data, Mapping):
        if data.get("format") == "specopt-testbed/1":
            raise InvalidInput(
                f"{path}: is a record of the laboratory, whose own command makes its page: testbed"
                " page"
            )
        if "kind" in data:
            return _result
    return _sweep


def _result(sources: Sources, problem: Problem | None) -> Page:
    from specopt.report.result import result_page

    found = load(sources[0])
    if isinstance(found, Problem):
        raise InvalidInput(
            f"{sources[0]}: expected a result, got a problem; solve it first: specopt solve FILE -o"
            " RESULT"
        )
    return result_page(found, problem, sources)


def _comparison(sources: Sources, _: Problem | None) -> Page:
    from specopt.comparison.store import merged
    from specopt.report.comparison import comparison_page

    return comparison_page(merged(sources), sources)


def _sweep(sources: Sources, _: Problem | None) -> Page:
    from specopt.instances.sweeps import read_sweeps
    from specopt.report.sweep import sweep_page

    return sweep_page(read_sweeps(list(sources)), sources)
