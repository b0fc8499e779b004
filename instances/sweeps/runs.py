"""Runs of benchmarks that may not say what was drafted: the draft length is settled among all runs
of a file.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from specopt.instances.reading.fields import Fields
from specopt.instances.sweeps.rows import FAILED, Rows
from specopt.instances.sweeps.source import DraftLength
from specopt.models.errors import InvalidInput
from specopt.models.sweep import ONLY, Setup


@dataclass(frozen=True, kw_only=True)
class Run:
    """What a benchmark says of a run.

    Parameters
    ----------
    fields
        What it was read from.
    tokens_per_second
        Output of all requests together.
    concurrency
        Requests at a time; None: not fixed.
    said
        What it drafted, as far as the file says it; a text: nothing that a sweep can hold, and why.
    acceptance_length
        Mean tokens of a step, where drafts were counted.
    failed
        Requests that failed.
    workload, context_tokens, model, setup, also
        As in `Rows.add`.
    """

    fields: Fields
    tokens_per_second: float | None
    concurrency: int | None
    said: DraftLength | str = ...
    acceptance_length: float | None = None
    failed: float | None = None
    workload: str = ""
    context_tokens: int = 0
    model: str = ""
    setup: Setup = ONLY
    also: Mapping[str, float] = field(default_factory=dict)

    @property
    def speculates(self) -> bool:
        """Whether drafts were counted, or a draft length is said."""
        return self.acceptance_length is not None or isinstance(self.said, (int, str))


def add_runs(rows: Rows, runs: Sequence[Run], given: DraftLength) -> None:
    """Add the runs of a file.

    One that shows no drafts beside others that do was run without speculation: engines count drafts
    wherever there are any. Runs with failed requests are left out: they had less to do.

    Parameters
    ----------
    rows
        Where to.
    runs
        The runs.
    given
        What the caller says of runs that do not say it themselves.

    Raises
    ------
    InvalidInput
        If nobody says what a run drafted, or the file contradicts the caller.
    """
    some_speculate = any(run.speculates for run in runs)
    for run in runs:
        if isinstance(run.said, str):
            rows.drop(run.said, run.model)
        elif run.concurrency is None:
            rows.drop("at no fixed concurrency", run.model)
        elif run.failed:
            rows.drop(FAILED, run.model)
        else:
            rows.add(
                run.fields.place,
                run.concurrency,
                _settled(rows, run, run.said, given, some_speculate),
                run.tokens_per_second
                or 0.0,  # an acceptance without its throughput is a run that failed
                run.acceptance_length,
                context_tokens=run.context_tokens,
                workload=run.workload,
                model=run.model,
                setup=run.setup,
                also=run.also,
            )


def _settled(
    rows: Rows, run: Run, said: DraftLength, given: DraftLength, some_speculate: bool
) -> int | None:
    if said is ... and not run.speculates and some_speculate:
        rows.assume("in which no drafts were counted had no speculation configured")
        return None
    settled = given if said is ... else said
    if settled is ...:
        raise InvalidInput(
            f"{rows.where}: {run.fields.place}draft_length: expected one from the caller (FILE@3,"
            " or FILE@none), the file does not say it"
        )
    if (given is not ... and given != settled) or (
        settled is None and (run.acceptance_length or 1.0) > 1.0
    ):
        expected = (
            "drafts, as the file counts them" if settled is None else f"{settled}, as the file says"
        )
        got = "none" if given is None else given
        error = run.fields.refuse("draft_length", expected, got)
        raise error if given is ... else InvalidInput(f"{error}, by {rows.where}@{got}")
    return settled
