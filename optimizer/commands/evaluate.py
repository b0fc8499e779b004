"""The command `specopt evaluate`, which judges a plan using only the data of its problem."""

from __future__ import annotations

from pathlib import Path

from specopt.commands.shared import (
    FOUND,
    NOT_FOUND,
    AsJson,
    File,
    Seed,
    argument,
    console,
    interval,
    option,
    print_json,
    read_problem,
    read_result,
)
from specopt.models.errors import InvalidInput, SpecoptError


def evaluate(
    file: File,
    result: Path = argument("RESULT", "Result file (JSON)."),
    acceptance: str | None = option("LOW:HIGH", "Interval of acceptance rates."),
    output_scale: str | None = option(
        "LOW:HIGH", "Interval of factors by which output lengths are multiplied."
    ),
    samples: int = option("N", "Number of cases drawn from the intervals.", default=200),
    seed: Seed = 0,
    as_json: AsJson = False,
) -> int:
    """Judge a plan using only the data of its problem.

    Exit codes: 0 feasible, 1 violated, 2 not a result for this problem. With intervals, the worst
    case and the mean over samples are also reported; the exit code is 1 if the plan is
    infeasible in the worst case.
    """
    from specopt.api.claims import without_refuted_claims
    from specopt.api.robustness import robustness
    from specopt.models.judge import verify

    problem, claimed = read_problem(file), read_result(result)
    try:
        report = verify(problem, claimed)
        derived, refuted = without_refuted_claims(claimed, problem, report)
    except SpecoptError as error:
        raise InvalidInput(f"{result}: {error}") from None
    over = None
    if (acceptance is not None or output_scale is not None) and report.objective is not None:
        over = robustness(
            problem,
            claimed,
            acceptance=interval("--acceptance", acceptance),
            output_scale=interval("--output-scale", output_scale) or (1.0, 1.0),
            samples=samples,
            seed=seed,
        )
    if as_json:
        fields = ("objective", "terms", "violations", "feasible", "matches")
        data = {"claimed": claimed.objective, **{name: getattr(report, name) for name in fields}}
        data |= {"bound": derived.bound, "gap": derived.gap, "refuted": refuted}
        print_json(data | ({"robustness": over.to_dict()} if over else {}))
    else:
        from specopt.console.terminal import line
        from specopt.views.result import print_report
        from specopt.views.what_if import print_robustness

        out = console()
        print_report(problem, claimed, report, out)
        for sentence in refuted:
            line(out, "refuted", sentence)
        if over is not None:
            print_robustness(over, out)
    worst_violates = over is not None and bool(over.worst.violations)
    return FOUND if report.feasible and not worst_violates else NOT_FOUND
