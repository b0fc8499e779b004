"""The runs of a sweep while its files are read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from specopt.models.errors import InvalidInput
from specopt.models.fields import describe, printable
from specopt.models.sweep import ONLY, Condition, Measurement, Point, Setup, Sweep

LONGEST_NAME = 200
FAILED = "with failed requests"
MAX_READ = 100_000
"""Runs that are read, chosen or not: a guard against files that are no sweeps."""


@dataclass(frozen=True)
class _Found:
    """A run of a file, of a model and a drafter: measured, or why it was left out."""

    where: str
    model: str
    drafter: str
    outcome: Measurement | str


class Rows:
    """Collects the runs of one file after another; those that tell nothing are counted."""

    def __init__(self) -> None:
        self.where = ""  # the file that is being read
        self._found: list[_Found] = []
        self.notes: list[str] = []
        self._assumed: Counter[tuple[str, str, str]] = Counter()

    def add(
        self,
        place: str,
        concurrency: int,
        draft_length: int | None,
        tokens_per_second: float | None,
        acceptance_length: float | None = None,
        *,
        context_tokens: int = 0,
        workload: str = "",
        model: str = "",
        setup: Setup = ONLY,
        also: Mapping[str, float] | None = None,
    ) -> None:
        """Add a run.

        It is left out where its throughput is zero, or missing and no acceptance of drafts is known
        either.

        Parameters
        ----------
        place
            Where it stands in the file; the names of fields follow it in messages.
        concurrency, draft_length, tokens_per_second, acceptance_length, context_tokens, workload,
        setup, also
            As in `Measurement`.
        model
            Name of the model; empty: not said.

        Raises
        ------
        InvalidInput
            If a value is outside its range, or there are too many runs.
        """
        names = {"workload": workload, "model": model, "drafter": setup.drafter, "mode": setup.mode}
        for field, name in names.items():
            if not name.isprintable() or len(name) > LONGEST_NAME:
                expected = f"a name of at most {LONGEST_NAME} printable characters"
                raise self.refuse(f"{place}{field}", expected, name)
        if tokens_per_second == 0 or (
            tokens_per_second is None and not (draft_length and acceptance_length)
        ):
            self.drop("without throughput", model, setup.drafter)
            return
        point = Point(Condition(concurrency, workload, context_tokens), draft_length)
        try:
            run = Measurement(point, tokens_per_second, acceptance_length, setup, also or {})
            self._keep(_Found(self.where, model, setup.drafter, run))
        except InvalidInput as error:
            raise InvalidInput(f"{self.where}: {place}{error}") from None

    def drop(self, kind: str, model: str = "", drafter: str = "") -> None:
        """Count a run that tells nothing, or nothing that a sweep can hold."""
        self._keep(_Found(self.where, model, drafter, kind))

    def assume(self, what: str) -> None:
        """Count a run of which something was assumed."""
        self._assumed[self.where, "assumed", what] += 1

    def refuse(self, field: str, expected: str, got: object) -> InvalidInput:
        """Return the exception that names a field, what was expected there and what came."""
        return InvalidInput(f"{self.where}: {field}: expected {expected}, got {describe(got)}")

    def sweep(
        self, workload: str | None = None, model: str | None = None, draft: str | None = None
    ) -> Sweep:
        """Return the runs of one workload and model.

        Parameters
        ----------
        workload, draft
            A workload, a drafter; None: all.
        model
            None: there is only one.

        Raises
        ------
        InvalidInput
            If there are several models, none of that name, or no run at all.
        """
        found = _of_one("model", model, self._found)
        found = found if draft is None else _of_one("drafter", draft, found)
        runs = [one.outcome for one in found if isinstance(one.outcome, Measurement)]
        left_out = Counter(
            (one.where, "left out", one.outcome) for one in found if isinstance(one.outcome, str)
        )
        several = len({one.where for one in found}) > 1
        notes = (
            *self.notes,
            *(
                (f"{where}: " if several else "")
                + f"{what}: {many:,} {'run' if many == 1 else 'runs'} {kind}"
                for (where, what, kind), many in (left_out + self._assumed).items()
            ),
        )
        if not runs:
            none = "expected at least one run with its throughput"
            if {one.outcome for one in found} == {FAILED}:
                none = "requests of every run failed: run the benchmark again"
            raise InvalidInput("; ".join([f"{self.where}: {none}", *notes]))
        if workload is not None:
            names = {run.point.condition.workload for run in runs}
            if workload not in names:
                raise _unknown("workload", names, workload)
            runs = [run for run in runs if run.point.condition.workload == workload]
        try:
            return Sweep(tuple(runs), notes)
        except InvalidInput as error:
            raise InvalidInput(f"{self.where}: {error}") from None

    def _keep(self, found: _Found) -> None:
        if len(self._found) >= MAX_READ:
            raise InvalidInput(f"{self.where}: expected at most {MAX_READ:,} runs")
        self._found.append(found)


def _of_one(kind: str, wanted: str | None, found: list[_Found]) -> list[_Found]:
    """Return what is of one model, or of one drafter: what names none is of any."""
    names = {getattr(one, kind) for one in found} - {""}
    if len(names) > 1 if wanted is None else wanted not in names:
        raise _unknown(kind, names, wanted)
    return [one for one in found if wanted is None or getattr(one, kind) in ("", wanted)]


def _unknown(kind: str, names: Iterable[str], got: str | None) -> InvalidInput:
    known = printable(", ".join(sorted(names)) or "no name, no file says one", 240)
    return InvalidInput(
        f"{kind}: expected one of {known}; got {'none' if got is None else describe(got)}"
    )
