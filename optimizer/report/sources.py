"""Functions that create pages from results, comparisons and sweeps.

Result files are written by `solve`, and comparison folders are written by `compare`. The type of a
source is recognised from the data in the source.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from specopt.models.errors import InvalidInput, SpecoptError
from specopt.models.fields import printable
from specopt.models.files import load, read_json
from specopt.models.problem import Problem
from specopt.models.result import Result
from specopt.report.page import Page
from specopt.report.result import result_page, results_page


def page_of(sources: tuple[str, ...], problems: Sequence[Problem] = ()) -> Page:
    """Return the page for some files or folders, which must all be of the same type.

    Parameters
    ----------
    sources
        Paths of results, of folders of comparisons, or of sweeps as accepted by `tune`.
    problems
        Problems of the results, matched by kind and digest. For a result without a match, the
        problem file to which the result refers is read.

    Raises
    ------
    InvalidInput
        If no page can be made from the sources.
    """
    path = Path(sources[0])
    if _is_result(path):
        results = [_result(source) for source in sources]
        for problem in problems:
            if not any(_belongs(result, problem) for result in results):
                raise InvalidInput(
                    "--problem: the problem matches none of the results (problem_sha256 differs)"
                )
        pages = [_page(*one, problems) for one in zip(sources, results, strict=True)]
        return pages[0] if len(pages) == 1 else results_page(pages, sources)
    if problems:
        raise InvalidInput(f"--problem: expected a result, but {path} is not one")
    if path.is_dir():
        from specopt.comparison.store import merged
        from specopt.report.comparison import comparison_page

        if not any(path.glob("records-*.jsonl")):
            raise InvalidInput(
                f"{path}: expected a folder written by compare, got one without records-*.jsonl"
            )
        return comparison_page(merged(sources), sources)
    from specopt.instances.sweeps import read_sweeps
    from specopt.report.sweep import sweep_page

    return sweep_page(read_sweeps(list(sources)), sources)


def _is_result(path: Path) -> bool:
    """Return whether a file contains a result, or a problem that was passed by mistake."""
    data = read_json(path) if path.suffix.lower() == ".json" and path.is_file() else None
    if not isinstance(data, Mapping):
        return False
    if data.get("format") == "specopt-testbed/1":
        raise InvalidInput(
            f"{path}: this is a testbed record; use `testbed page` to create its page"
        )
    return "kind" in data


def _result(source: str) -> Result:
    found = load(source)
    if not isinstance(found, Result):
        raise InvalidInput(
            f"{source}: expected a result; solve a problem first: specopt solve FILE -o RESULT"
        )
    return found


def _page(source: str, result: Result, problems: Sequence[Problem]) -> Page:
    """Return the report page for a result.

    The plan is judged on one of the given problems, or on the problem file to which the result
    refers.
    """
    noted = result.problem_file or ""
    file = Path(source).resolve().parent / noted
    is_there = os.path.isfile(file)  # reading from a pipe would wait for a writer
    same = [one for one in problems if _belongs(result, one)]
    missing = f"there is no file {printable(noted, 240)}" if noted else "it names no problem file"
    if is_there and not same:
        missing = f"{printable(noted, 240)} does not contain the problem that was solved"
        with suppress(SpecoptError, OSError):
            found = load(file)
            if isinstance(found, Problem) and _belongs(result, found):
                same.append(found)
    page = result_page(result, same[0] if same else None, (source,), missing)
    return replace(page, noted=[file] if is_there else [])


def _belongs(result: Result, problem: Problem) -> bool:
    """Return whether a result and a problem have the same kind and, if it is known, the same
    digest.
    """
    return problem.kind == result.kind and result.problem_sha256 in ("", problem.sha256)
