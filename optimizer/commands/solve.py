"""The command `specopt solve`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

from specopt.commands.shared import (
    BAD_INPUT,
    FOUND,
    INTERNAL,
    INTERRUPTED,
    AsJson,
    Gap,
    Method,
    MethodOptions,
    Output,
    Seconds,
    Seed,
    argument_info,
    check_target,
    console,
    exit_code,
    number,
    option_info,
    print_json,
    problem_file,
    read_problem,
    read_result,
    say_written,
    write,
)
from specopt.console.streams import complain
from specopt.models.errors import InternalError, InvalidInput, SpecoptError
from specopt.models.files import unwritten


def solve(
    files: Annotated[list[Path], argument_info("FILE...", "Problem files (JSON); -: stdin.")],
    method: Method = None,
    option: MethodOptions = None,
    time_limit: Seconds = None,
    gap: Gap = 0.0,
    seed: Seed = 0,
    workers: Annotated[int, option_info("N", "Number of cores for an exact search.", min=1)] = 1,
    memory_limit: Annotated[
        float,
        option_info("GB", "Maximum memory of the method, in 10^9 bytes.", parser=number),
    ] = 2.147483648,
    warm_start: Annotated[Path | None, option_info("RESULT", "Start from this result.")] = None,
    as_json: AsJson = False,
    output: Output = None,
) -> int:
    """Solve problems and show or save the results.

    With several files, the output is a folder that contains one result per file, with the same file
    name. The time limit applies to each file. The exit code is the largest exit code of all files.
    """
    if not memory_limit > 0.0:
        raise InvalidInput(f"--memory-limit: expected gigabytes > 0, got {memory_limit:g}")
    limits: dict[str, Any] = {
        "time_limit": time_limit,
        "gap": gap,
        "seed": seed,
        "workers": workers,
        "memory_limit": memory_limit * 1e9,
        "warm_start": warm_start and read_result(warm_start),
    }
    if len(files) == 1 and not (output is not None and output.is_dir()):
        return _solve_one(files[0], method, option, limits, as_json, output)
    worst = FOUND
    for file, target in zip(files, _targets(files, output), strict=True):
        try:
            code = _solve_one(file, method, option, limits, as_json, target)
        except SpecoptError as error:
            complain(f"specopt: {error}")
            code = INTERNAL if isinstance(error, InternalError) else BAD_INPUT
        worst = max(worst, code)
        if code == INTERRUPTED:
            break
    return worst


def _targets(files: Sequence[Path], folder: Path | None) -> list[Path | None]:
    """Return the result file for each problem file, and create the output folder."""
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


def _solve_one(
    file: Path,
    method: str | None,
    option: Sequence[str] | None,
    limits: Mapping[str, Any],
    as_json: bool,
    output: Path | None,
) -> int:
    from specopt.api.arguments import method_of
    from specopt.api.unasked import solve_with_choices

    check_target(output, file)
    problem = read_problem(file)
    chosen = method_of(problem, method, option or (), limits["memory_limit"])
    result = solve_with_choices(problem, chosen, verbose=True, **limits)
    result = replace(result, problem_file=problem_file(file, output))
    write(result, output)
    if as_json:
        print_json(result.to_dict())
    else:
        from specopt.views.result import print_result

        print_result(problem, result, console())
        say_written(output)
    return exit_code(result)
