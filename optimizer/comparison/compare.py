"""The function `compare`, which runs methods on problems in parallel and tabulates the results."""

from __future__ import annotations

import contextlib
import itertools
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, CancelledError, Executor, Future, wait
from dataclasses import dataclass, replace
from functools import cache

from specopt.api.solve import MethodLike, check_callback, choose, is_function, method_of_function
from specopt.api.solve import methods as methods_for
from specopt.comparison.cell import FAILED, Cell, Record
from specopt.comparison.instances import named
from specopt.comparison.processes import GRACE_SECONDS, Submit, submitting
from specopt.comparison.sources import sources_of
from specopt.comparison.store import Store
from specopt.comparison.table import Comparison
from specopt.models.arguments import integer, number, sequence
from specopt.models.errors import InvalidInput, Unsupported
from specopt.models.fields import describe, printable
from specopt.models.problem import Problem, refuse_subclass
from specopt.models.reading import StrPath
from specopt.solvers.method import Method

MAX_WAITING = 1000
"""Maximum number of cells that are queued in an executor at the same time."""


@dataclass(frozen=True)
class CompareProgress:
    """Progress of a comparison.

    Parameters
    ----------
    done
        Number of cells that have finished.
    failed
        Number of cells that failed.
    total
        Total number of cells.
    seconds
        Time since the start of the comparison, in seconds.
    seconds_left
        Estimated remaining time in seconds; None if unknown.
    """

    done: int
    failed: int
    total: int
    seconds: float
    seconds_left: float | None


def compare(
    methods: Sequence[MethodLike] | None,
    problems: Mapping[str, Problem] | Iterable[Problem],
    *,
    time_limit: float | None = 10.0,
    gap: float = 0.0,
    seeds: Sequence[int] = (0,),
    jobs: int | None = None,
    executor: Executor | str = "local",
    folder: StrPath | None = None,
    shard: tuple[int, int] | None = None,
    grace_seconds: float = GRACE_SECONDS,
    callback: Callable[[CompareProgress], bool | None] | None = None,
) -> Comparison:
    """Run every method on every problem that it can solve, and return a table of results.

    Each cell, which is one run of one method on one problem, uses a worker process with one thread.
    A method that exceeds its time limit is killed. A crash is recorded as a failure.

    If a folder is specified, every record is saved immediately. Cells whose records are already in
    the folder are not run again. Repeating a call therefore resumes a comparison that was killed. A
    failure of the executor itself is listed in the table but not saved, and the next call runs the
    cell again.

    Parameters
    ----------
    methods
        Methods to compare. Each is a name, a `Method` object with its options, or a function that
        maps a problem to a plan. None selects every method that can solve the problem.
    problems
        Problems, as a mapping by name or as a sequence. Unnamed problems are numbered.
    time_limit
        Time limit per cell, in seconds. None limits the work of `auto` instead, as in
        `specopt.solve`, so that no result depends on the machine; other methods then run until
        they finish.
    gap
        Relative gap at which a method may stop, as in `specopt.solve`.
    seeds
        Random seeds. Every method is run on every problem once per seed.
    jobs
        Number of cells that the local executor runs in parallel; None for the number of processors.
    executor
        Executor that runs the cells: ``"local"``, ``"dask://HOST:PORT"``, ``"ray"``, or any
        `concurrent.futures.Executor`.
    folder
        Folder in which records are saved; None to save nothing.
    shard
        Pair (i, n) with 1 <= i <= n, which selects every n-th cell, starting with the i-th cell.
        In this way, n machines can share a comparison and a folder.
    grace_seconds
        Time by which a method may exceed its time limit before it is killed, in seconds.
    callback
        Function that is called after every cell. If the function returns True, the comparison stops
        and abandons the running cells.

    Raises
    ------
    InvalidInput
        If an argument is outside its domain, if a method does not exist, or if the folder cannot
        be written.
    """
    check_callback(callback)
    cells = cells_of(methods, problems, time_limit=time_limit, gap=gap, seeds=seeds)
    at, of = shard or (1, 1)
    if not 1 <= at <= of:
        raise InvalidInput(f"shard: expected i/n with 1 <= i <= n, got {at}/{of}")
    cells = cells[at - 1 :: of]
    store = None if folder is None else Store(folder)
    known = {} if store is None else store.records()
    records = [
        replace(known[cell.key], instance=cell.instance) for cell in cells if cell.key in known
    ]
    pending = [cell for cell in cells if cell.key not in known]
    if store is not None:
        store.log_damaged()
        if pending:
            store.open()
    started, total = time.monotonic(), len(cells)

    def report() -> bool:
        done = len(records)
        seconds = time.monotonic() - started
        fresh = records[total - len(pending) :]
        left = _seconds_left(fresh, seconds) * (total - done) if fresh else None
        failed = sum(record.failed for record in records)
        return callback is not None and bool(
            callback(CompareProgress(done, failed, total, seconds, left))
        )

    try:
        if report() or not pending:
            return Comparison(records)
        with submitting(executor, jobs, grace_seconds) as submit, contextlib.ExitStack() as stack:
            waiting: dict[Future[Record], Cell] = {}
            stack.callback(lambda: [future.cancel() for future in waiting])
            queue = iter(pending)
            while True:
                for cell in itertools.islice(queue, MAX_WAITING - len(waiting)):
                    waiting[_submitted(submit, cell)] = cell
                if not waiting:
                    return Comparison(records)
                for future in wait(waiting, return_when=FIRST_COMPLETED).done:
                    cell = waiting.pop(future)
                    record, kept = _record_of(future, cell)
                    records.append(record)
                    if store is not None and kept:
                        store.keep(
                            cell.problem_sha256, cell.problem
                        )  # before the record that refers to it
                        store.append(record)
                    if report():
                        return Comparison(records)
    finally:
        if store is not None:
            store.close()


def _seconds_left(records: Sequence[Record], seconds: float) -> float:
    """Return the estimated time for each remaining cell, in seconds, without kernel compilation.

    `records` contains the records of the cells that have finished since the start of the
    comparison, which was `seconds` ago.
    """
    wall = sum(record.wall_seconds for record in records)
    preparing = sum(record.stats.get("preparing_seconds", 0.0) for record in records)
    return seconds * (1.0 - preparing / wall if wall > preparing else 1.0) / len(records)


def _record_of(future: Future[Record], cell: Cell) -> tuple[Record, bool]:
    """Return the record of a finished cell, and whether the record should be saved.

    A record is not saved if the executor itself failed.
    """
    try:
        return future.result(), True
    except (Exception, CancelledError) as error:
        reason = printable(f"executor: {type(error).__name__}: {error}")
        return Record.of(cell, status=FAILED, error=reason), False


def _submitted(submit: Submit, cell: Cell) -> Future[Record]:
    """Send a cell to an executor.

    Raises
    ------
    InvalidInput
        If the executor accepts no more cells, because it is broken or was shut down.
    """
    try:
        return submit(cell)
    except RuntimeError as error:
        why = f"{type(error).__name__}: {error}"
        raise InvalidInput(
            f"executor: no more cells are accepted ({why}); records saved in a folder are not lost"
        ) from error


def cells_of(
    methods: Sequence[MethodLike] | None,
    problems: Mapping[str, Problem] | Iterable[Problem],
    *,
    time_limit: float | None,
    gap: float,
    seeds: Sequence[int],
) -> list[Cell]:
    """Return the cells of a comparison, instance by instance, without duplicates.

    A method is skipped for problems that it cannot solve. However, at least one problem must belong
    to the kind for which the method is defined.

    Raises
    ------
    InvalidInput
        If there are no cells, if a method applies to none of the problems, or if two methods for
        the same kind have the same name.
    """
    by_name = _named(problems)
    if not by_name:
        raise InvalidInput("problems: expected at least one problem, got none")
    if time_limit is not None:
        number("time_limit", time_limit, 0)
    number("gap", gap, 0)
    if not seeds:
        raise InvalidInput("seeds: expected at least one seed, got none")
    for place, seed in enumerate(seeds):
        integer(f"seeds[{place}]", seed, 0)
    if methods is not None:
        methods = sequence("methods", methods)
        _check_methods(methods, by_name.values())
    cells: dict[str, Cell] = {}
    sources = cache(sources_of)
    for name, problem in by_name.items():
        for method in _methods(methods, problem):
            for seed in seeds:
                cell = Cell.of(name, problem, method, time_limit, gap, seed, sources(type(method)))
                cells.setdefault(cell.key, cell)
    if not cells:
        raise InvalidInput("methods: no method can solve any of the problems")
    return list(cells.values())


def _named(problems: Mapping[str, Problem] | Iterable[Problem]) -> dict[str, Problem]:
    found: dict[str, Problem] = {}
    if isinstance(problems, (Problem, str)) or not isinstance(problems, Iterable):
        raise InvalidInput(f"problems: expected a list of problems, got {describe(problems)}")
    for place, problem in (
        problems.items() if isinstance(problems, Mapping) else enumerate(problems)
    ):
        if not isinstance(problem, Problem):
            raise InvalidInput(
                f"problems[{place}]: expected a problem, got {type(problem).__name__}"
            )
        refuse_subclass(problem)
        name = place if isinstance(place, str) else problem.name or f"{problem.kind} {place}"
        found[name if name not in found else f"{name} ({place})"] = problem
    return found


def _check_methods(methods: Sequence[MethodLike], problems: Iterable[Problem]) -> None:
    kinds = dict.fromkeys(type(problem) for problem in problems)
    taken: dict[tuple[str, str], type[Method]] = {}
    for method in methods:
        if isinstance(method, str):
            found = named(method, kinds, "methods")
        elif is_function(method):
            found = [type(method_of_function(method, kind)) for kind in kinds]
        elif not isinstance(method, Method):
            raise InvalidInput(
                f"methods: expected names, methods or functions, got {describe(method)}"
            )
        elif method.solves not in kinds:
            names = ", ".join(kind.kind for kind in kinds)
            raise InvalidInput(
                f"methods: expected methods for {names}; {method.name} solves {method.solves.kind}"
            )
        else:
            found = [type(method)]
        for one in found:
            other = taken.setdefault((one.solves.kind, one.name), one)
            if other is not one:
                both = " and ".join(f"{cls.__module__}.{cls.__qualname__}" for cls in (other, one))
                raise InvalidInput(
                    f"methods: {both} share the name {one.name!r}; rename one of them"
                )


def _methods(methods: Sequence[MethodLike] | None, problem: Problem) -> list[Method]:
    if methods is None:
        return [method() for method in methods_for(problem)]
    able = []
    for method in methods:
        with contextlib.suppress(Unsupported):  # another kind, or a problem that is too large
            able.append(choose(problem, method))
    return able
