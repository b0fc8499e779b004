"""Sources of pages, recognised by their content: files of `solve`, folders of `compare`, sweeps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from specopt.models.errors import InvalidInput
from specopt.models.files import load, read_json
from specopt.models.problem import Problem
from specopt.models.result import Result
from specopt.report.page import Page
from specopt.report.result import result_page, results_page


def page_of(sources: tuple[str, ...], problems: Sequence[Problem] = ()) -> Page:
    """Return the page for files and folders, which must all be of the same type.

    Parameters
    ----------
    sources
        Results; folders of comparisons; or sweeps, as for `tune`.
    problems
        Problems of the results, recognised by their digests. If there are none, the problem files
        noted in the results are read.

    Raises
    ------
    InvalidInput
        If no page can be made from them.
    """
    path = Path(sources[0])
    if _is_result(path):
        pages = [_result(source, problems) for source in sources]
        return pages[0] if len(pages) == 1 else results_page(pages, sources)
    if problems:
        raise InvalidInput(f"--problem: expected a result, but {path} is not one")
    if path.is_dir():
        from specopt.comparison.store import merged
        from specopt.report.comparison import comparison_page

        if not any(path.glob("records-*.jsonl")):
            raise InvalidInput(
                f"{path}: expected a folder that compare wrote, found no records-*.jsonl in it"
            )
        return comparison_page(merged(sources), sources)
    from specopt.instances.sweeps import read_sweeps
    from specopt.report.sweep import sweep_page

    return sweep_page(read_sweeps(list(sources)), sources)


def _is_result(path: Path) -> bool:
    """Return whether a file contains a result, or a problem that was given by mistake."""
    data = read_json(path) if path.suffix.lower() == ".json" and path.is_file() else None
    if not isinstance(data, Mapping):
        return False
    if data.get("format") == "specopt-testbed/1":
        raise InvalidInput(
            f"{path}: is a record of the laboratory; make its page with the laboratory's command:"
            " testbed page"
        )
    return "kind" in data


def _result(source: str, problems: Sequence[Problem]) -> Page:
    found = load(source)
    if isinstance(found, Problem):
        raise InvalidInput(
            f"{source}: expected a result, got a problem; solve it first: specopt solve FILE -o"
            " RESULT"
        )
    known = problems or _noted_problem(Path(source), found)
    same = [one for one in known if found.problem_sha256 in ("", one.sha256)]
    if problems and not same:
        raise InvalidInput(f"--problem: {source} belongs to another problem (problem_sha256)")
    return result_page(found, same[0] if same else None, (source,))


def _noted_problem(path: Path, result: Result) -> list[Problem]:
    """Return the problem in the file that a result names, if there is one."""
    file = path.resolve().parent / (result.problem_file or "")
    try:
        found = load(file) if file.is_file() else None  # a pipe would wait for a writer
    except (InvalidInput, OSError):  # for example a name that is too long
        return []
    return [found] if isinstance(found, Problem) else []
