"""The command `specopt fit-predictor`, which fits a rejection predictor to logged drafts."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from specopt.commands.shared import (
    AsJson,
    Output,
    Seed,
    argument,
    check_target,
    console,
    filled,
    option,
    print_json,
    required,
    say_written,
    write,
)


@dataclass(frozen=True, kw_only=True)
class FitPredictor:
    """Values of the arguments and options of `specopt fit-predictor`."""

    log: Path = argument(
        "LOG",
        "A CSV file with one row per drafted token: round, outcome (1 accepted, 0 first rejection,"
        " -1 after it), and columns of features.",
    )
    draft_seconds: float = required("S", "Drafting time per token.")
    round_seconds: str = required(
        "S,...",
        "Time of a round without its drafts: one number, or one for each number of drafts 0, 1,"
        " ...",
    )
    feature: list[str] | None = option("COL", "Use this column as a feature; default: all others.")
    predictor: str = option("P", "logistic, perceptron or trees.", default="logistic")
    max_draft: int | None = option(
        "L", "Maximum draft length; default: the median of the log's rounds."
    )
    bins: int = option("B", "Maximum number of bins of the score.", default=8)
    seed: Seed = 0
    as_json: AsJson = False
    output: Output = None


def fit_predictor(given: FitPredictor) -> None:
    """Fit a rejection predictor to logged drafts, and find out when to stop drafting.

    The command writes a draft-stopping problem. Stopping rules are compared on rounds that were
    not used for the fit.
    """
    from specopt.api.solve import solve
    from specopt.instances.reading.draft_table import read_draft_log
    from specopt.solvers.draft_stopping.fitted import fit_stopping

    check_target(given.output, given.log)
    log = read_draft_log(given.log, given.feature or ())
    fitted = filled(
        fit_stopping,
        given,
        log=log,
        draft_seconds_per_token=given.draft_seconds,
        round_seconds=_seconds(given.round_seconds),
        max_draft_tokens=given.max_draft,
    )
    rules = []
    window = solve(fitted.problem, "fixed-window").plan
    for method in (
        "belief",
        "optimal-stopping",
        "confidence-threshold",
        "first-rejection",
        "fixed-window",
        "no-drafts",
    ):
        result = solve(fitted.problem, method, gap=1e-4)
        speed = fitted.speed(result.plan)  # type: ignore[arg-type]
        gain, low, high = fitted.gain(result.plan, window)  # type: ignore[arg-type]
        rules.append(
            {
                "method": method,
                "model": result.objective,
                "held_out": speed.mean,
                "standard_error": speed.standard_error,
                "gain": gain,
                "gain_interval": [low, high],
            }
        )
    found = {
        "predictor": given.predictor,
        "features": list(fitted.predictor.features),
        "coefficients": fitted.predictor.coefficients,
        "edges": fitted.bins.edges.tolist(),
        "rounds": fitted.rounds,
        "dropped": fitted.dropped,
        "false_accept": fitted.false_accept,
        "false_reject": fitted.false_reject,
        "area": fitted.area,
        "rules": rules,
        "problem": fitted.problem.to_dict(),
    }
    if given.as_json:
        print_json(found)
    else:
        from specopt.views.fit import print_fitted

        print_fitted(found, console())
    write(fitted.problem, given.output)
    say_written(given.output)


def _seconds(text: str) -> Any:
    from specopt.models.draft_stopping.problem import RoundSeconds
    from specopt.models.errors import InvalidInput

    try:
        first, *more = map(float, text.split(","))
    except ValueError:
        raise InvalidInput(
            f"--round-seconds: expected numbers separated by commas, got {text!r}"
        ) from None
    return RoundSeconds.parse([first, *more], "--round-seconds") if more else first
