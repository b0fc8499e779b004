"""The command `specopt compare`, which runs methods on problems and summarises the results."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from specopt.commands.shared import (
    FOUND,
    INTERRUPTED,
    NOT_FOUND,
    AsJson,
    argument,
    console,
    filled,
    flag,
    hand_over,
    option,
    print_json,
)
from specopt.comparison.compare import CompareProgress
from specopt.comparison.compare import compare as run_comparison
from specopt.comparison.instances import instances_of, methods_of
from specopt.comparison.profiles import profile_figure
from specopt.comparison.store import Store, judged_again, merged, opened
from specopt.comparison.summary import markdown, pairs_of_methods, tables_of
from specopt.comparison.table import Comparison, newest
from specopt.console.progress import end_progress, print_step
from specopt.console.streams import say
from specopt.models.errors import InvalidInput, MissingDependency
from specopt.models.fields import printable

PLAIN_SECONDS = 10.0
"""Minimum time between two progress lines if stderr is not a terminal, in seconds."""


@dataclass(frozen=True, kw_only=True)
class Compare:
    """Values of the arguments and options of `specopt compare`."""

    sources: list[str] = argument(
        "INSTANCES...", "Problem files, folders, families (KIND/FAMILY), kinds, or library."
    )
    method: list[str] | None = option(
        "M[:NAME=VALUE,...]", "Method, with options; default: all methods."
    )
    time_limit: float = option(
        "S", "Time limit per cell, in seconds.", default=10.0, envvar="SPECOPT_TIME_LIMIT"
    )
    gap: float = option("G", "Relative gap at which to stop.", default=0.0, envvar="SPECOPT_GAP")
    seed: list[int] | None = option("N", "A seed; may be repeated.")
    instances: int = option("N", "Number of instances per family.", default=5)
    param: list[str] | None = option(
        "K=V[,V,...]", "Parameter of the families; if it has several values, each is used."
    )
    size: str | None = option(
        "SIZE", "Size of the library's instances: small, paper, large, adversarial or real."
    )
    work: bool = flag(
        "Limit the work of `auto` instead of the time; other methods run until they end."
    )
    shard: str | None = option(
        "I/N", "Run only every N-th cell, starting with the I-th, so that N jobs share a folder."
    )
    jobs: int | None = option("N", "Number of worker processes.", envvar="SPECOPT_JOBS")
    executor: str = option("X", "local, dask://HOST:PORT, or ray.", default="local")
    output: Path | None = option(
        "FOLDER",
        "Keep results here and resume from them. With --table: a file.",
        "-o",
        "--output",
    )
    table: bool = flag("Print tables of earlier results in folders, in Markdown.")
    pairs: bool = flag("With --table: paired tests of all methods instead.")
    again: bool = flag(
        "Judge every plan in the folders again; the exit code is 1 if a number differs."
    )
    as_json: AsJson = False


def compare(given: Compare) -> int:
    """Run methods on instances and summarise the results.

    The summary contains gaps, proofs, times and wins. A comparison that was killed can be resumed.
    """
    if given.table:
        _write_table(given)
        return FOUND
    if given.again:
        return _judge_again(given.sources, given.as_json)
    problems = instances_of(
        given.sources, instances=given.instances, parameters=given.param or (), size=given.size
    )
    chosen = methods_of(given.method, problems.values())
    code, output = FOUND, given.output
    try:
        comparison = filled(
            run_comparison,
            given,
            methods=chosen,
            problems=problems,
            seeds=given.seed or [0],
            time_limit=None if given.work else given.time_limit,
            shard=None if given.shard is None else _shard(given.shard),
            jobs=given.jobs or None,
            folder=output,
            callback=_show,
        )
    except KeyboardInterrupt:
        kept = [] if output is None else newest(Store(output).records().values())
        if not kept:
            raise
        comparison, code = Comparison(kept), INTERRUPTED
    finally:
        end_progress()
    written = [] if output is None else _write(comparison, output)
    if given.as_json:
        rows = zip(comparison.rows(), comparison, strict=True)
        print_json([row | {"plan": record.plan} for row, record in rows])
    else:
        from specopt.comparison.report import print_comparison_summary

        # problems are compared by content, because a file may be specified twice
        run = {record.problem_sha256 for record in comparison}
        left_out = [name for name, problem in problems.items() if problem.sha256 not in run]
        print_comparison_summary(comparison, console(), left_out)
        if output is not None:
            say(f"written to {output}: {', '.join(written)}")
    if code == INTERRUPTED or not len(comparison):  # a shard may be empty
        return code
    return FOUND if any(record.objective is not None for record in comparison) else NOT_FOUND


def _show(at: CompareProgress) -> None:
    left = "" if at.seconds_left is None else f", about {at.seconds_left:.0f} s left"
    text = f"{at.done} of {at.total} cells, {at.failed} failed, {at.seconds:.0f} s{left}"
    print_step(at.seconds, text, PLAIN_SECONDS)


def _shard(text: str) -> tuple[int, int]:
    at, slash, of = text.partition("/")
    if not (slash and at.isdecimal() and of.isdecimal()):
        raise InvalidInput(f"--shard: expected I/N, got {text!r}")
    return int(at), int(of)


def _write_table(given: Compare) -> None:
    comparison = merged(given.sources)
    tables = pairs_of_methods(comparison) if given.pairs else tables_of(comparison)
    if given.as_json:
        print_json(tables if given.pairs else comparison.rows())
    else:
        hand_over(markdown(tables), given.output)


def _judge_again(folders: list[str], as_json: bool) -> int:
    """Judge all plans in result folders again, and compare the numbers with the records.

    Return the exit code, which is 1 if a number differs.
    """
    found = [one for folder in folders for one in judged_again(opened(folder))]
    wrong = [one for one in found if one[1]]
    if as_json:
        print_json(
            [
                {
                    "key": record.key,
                    "judged": record.plan is not None,
                    "differences": differences,
                }
                for record, differences in found
            ]
        )
    else:
        lines = [
            printable(
                f"{record.key} ({record.label} on {record.instance}, seed {record.seed}):"
                f" {difference}"
            )
            for record, differences in wrong
            for difference in differences
        ]
        judged = sum(record.plan is not None for record, _ in found)
        lost = sum(record.plan is None and record.objective is not None for record, _ in found)
        lines.append(
            f"{judged} of {len(found)} records have a plan; {judged - len(wrong)} agree with the"
            " judge"
        )
        if lost:
            lines.append(f"{lost} of earlier versions have an objective but no plan: not judged")
        hand_over("\n".join(lines))
    return NOT_FOUND if wrong else FOUND


def _write(comparison: Comparison, folder: Path) -> list[str]:
    """Write the table and the chart of a comparison, and return the names of the files.

    If a library is missing, report this on stderr and omit the file.
    """
    written = []
    for name, write in (
        ("comparison.parquet", comparison.to_parquet),
        ("profiles.png", profile_figure(comparison).save),
    ):
        try:
            write(folder / name)
            written.append(name)
        except MissingDependency as error:
            say(f"no {name}: {error}")
    return written
