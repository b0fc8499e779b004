"""Sources of pages, recognised by their content: files of `solve`, folders of `compare`, sweeps."""

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
    """Return the page for files and folders, which must all be of the same type.

    Parameters
    ----------
    sources
        One result; folders of comparisons; or sweeps, as for `tune`.
    problem
        Problem of the result.

    Raises
    ------
    InvalidInput
        If no page can be made from them.
    """
    maker = _maker(Path(sources[0]))
    if problem is not None and maker is not _result:
        raise InvalidInput(f"--problem: expected a result, but {sources[0]} is not one")
    if maker is _result and len(sources) > 1:
        raise InvalidInput(
            f"{sources[1]}: {sources[0]} is a result, which has its own page; leave out the others"
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
                f"{path}: is a record of the laboratory; make its page with the laboratory's"
                " command: testbed page"
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
