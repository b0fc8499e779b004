"""Relations that hold between the optimal values of related problems, for `serving-latency` and
`continuous-serving`.
"""

from __future__ import annotations

from specopt.kinds.relation import (
    NAMES,
    RELAXED,
    UNITS,
    Relation,
    one_more,
    permuted,
    raised,
    relations_of,
    replaced,
    scaled,
    times,
)
from specopt.models.problem import Problem

_COLUMNS = ("input_tokens", "output_tokens", "snr", "acceptance_rate")
_SECONDS = ("draft_runtime", "verify_runtime")


def serving_relations(
    problem: type[Problem], columns: tuple[str, ...] = (), seconds: tuple[str, ...] = ()
) -> tuple[Relation, ...]:
    """Return the relations for a serving kind.

    Parameters
    ----------
    problem
        Class of the problems.
    columns
        Names of additional fields that contain one entry per task.
    seconds
        Names of additional fields that are durations.
    """
    keeps = relations_of(problem)
    scale = scaled(dict.fromkeys((*_SECONDS, *seconds), 2.0) | {"bandwidth_hz": 0.5})
    return (
        keeps("tasks permuted", NAMES, permuted(*_COLUMNS, *columns), equal=True),
        keeps("time scaled", UNITS, scale, implied=times(2.0), equal=True),
        *(
            keeps(
                f"more {model} memory",
                RELAXED,
                raised(f"{model}_memory_bytes", lambda amount: 1.25 * amount),
                when="a limit is given",
            )
            for model in ("draft", "verify")
        ),
        keeps(
            "no limit of verify memory",
            RELAXED,
            replaced("verify_memory_bytes", None),
            when="a limit is given",
        ),
        keeps(
            "longer speculation allowed",
            RELAXED,
            one_more("max_speculation_length"),
            when="a maximum is given",
        ),
        keeps(
            "any mechanism allowed",
            RELAXED,
            replaced("mechanism", "any", (None, "pipelined", "sequential")),
            when="a mechanism with a draft model is fixed",
        ),
    )
