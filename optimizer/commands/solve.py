"""The command `specopt solve`, which solves problems and shows or saves the results."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from specopt.commands.shared import (
    BAD_INPUT,
    ERROR_CODES,
    FOUND,
    INTERRUPTED,
    AsJson,
    Gap,
    Method,
    MethodOptions,
    Output,
    Seconds,
    Seed,
    argument,
    check_target,
    console,
    exit_code,
    option,
    print_json,
    problem_file,
    read_problem,
    read_result,
    say_written,
    write,
)
from specopt.console.streams import complain
from specopt.models.errors import InvalidInput, SpecoptError
from specopt.models.files import unwritten


def solve(
    files: list[Path] = argument("FILE...", "Problem files (JSON); -: stdin."),
    method: Method = None,
    option: MethodOptions = None,
    time_limit: Seconds = None,
    gap: Gap = 0.0,
    seed: Seed = 0,
    workers: int = option("N", "Number of cores for an exact search.", default=1, min=1),
    memory_limit: float = option(
        "GB", "Maximum memory of the method, in 10^9 bytes.", default=2.147483648
    ),
    warm_start: Path | None = option("RESULT", "Start from this result."),
    as_json: AsJson = False,
    output: Output = None,
) -> int:
    """Solve problems and show or save the results.

    With several files, the output is a folder that contains one result file per problem file, with
    the same name. The time limit applies to each file. The exit code is the largest exit code of
    all files.
    """
    from specopt.api.arguments import method_of
    from specopt.api.scan import solve_with_choices

    if not memory_limit > 0.0:
        raise InvalidInput(f"--memory-limit: expected gigabytes > 0, got {memory_limit:g}")
    memory, start = memory_limit * 1e9, warm_start and read_result(warm_start)

    def solve_one(file: Path, output: Path | None) -> int:
        check_target(output, file)
        problem = read_problem(file)
        result = solve_with_choices(
            problem,
            method_of(problem, method, option or (), memory),
            time_limit=time_limit,
            gap=gap,
            seed=seed,
            workers=workers,
            memory_limit=memory,
            warm_start=start,
            verbose=True,
        )
        result = replace(result, problem_file=problem_file(file, output))
        write(result, output)
        if as_json:
            print_json(result.to_dict())
        else:
            from specopt.views.result import print_result

            print_result(problem, result, console())
            say_written(output)
        return exit_code(result)

    if len(files) == 1 and not (output is not None and output.is_dir()):
        return solve_one(files[0], output)
    worst = FOUND
    for file, target in zip(files, _targets(files, output), strict=True):
        try:
            code = solve_one(file, target)
        except SpecoptError as error:
            complain(f"specopt: {error}")
            code = ERROR_CODES.get(type(error), BAD_INPUT)
        worst = max(worst, code)
        if code == INTERRUPTED:
            break
    return worst


def _targets(files: Sequence[Path], folder: Path | None) -> list[Path | None]:
    """Create the output folder, and return the output file for each problem file.

    The output files are None if there is no output folder.
    """
    if folder is None:
        return [None] * len(files)
    targets = [folder / f"{'stdin' if file == Path('-') else file.stem}.json" for file in files]
    twice = next((one.name for one in targets if targets.count(one) > 1), None)
    if twice is not None:
        raise InvalidInput(f"{folder}: two results would be named {twice}; rename one of the files")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise unwritten(folder, error) from None
    return list(targets)
