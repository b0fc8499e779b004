"""Classes that collect the runs of a sweep while the files are read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import EllipsisType

from specopt.instances.reading.fields import Fields
from specopt.instances.sweeps.source import DraftLength
from specopt.models.errors import InvalidInput
from specopt.models.fields import describe, printable
from specopt.models.sweep import ONLY, Condition, Measurement, Point, Setup, Sweep

LONGEST_NAME = 200
FAILED = "with failed requests"
MAX_READ = 100_000
"""Maximum number of runs that are read, to guard against files that are not sweeps."""


@dataclass(frozen=True, kw_only=True)
class Run:
    """A benchmark run, as described in its file.

    Parameters
    ----------
    fields
        Object or row from which the run was read.
    tokens_per_second
        Output tokens per second, over all requests.
    concurrency
        Number of concurrent requests; None if the number is not fixed.
    said
        Draft length according to the file, or ``...`` if the file does not contain a draft length.
        A string is the reason why the run cannot be part of a sweep.
    acceptance_length
        Mean number of tokens per step; None if drafts were not counted.
    program
        Name of the program if the program counts drafts whenever an engine speculates; otherwise
        empty.
    failed
        Number of failed requests.
    workload
        Name of the workload.
    context_tokens
        Number of context tokens per request; 0 if unknown.
    model
        Name of the model; empty if unknown.
    setup
        Drafter and mode.
    also
        Additional measurements, as in `Measurement`.
    """

    fields: Fields
    tokens_per_second: float | None
    concurrency: int | None
    said: DraftLength | str = ...
    acceptance_length: float | None = None
    program: str = ""
    failed: float | None = None
    workload: str = ""
    context_tokens: int = 0
    model: str = ""
    setup: Setup = ONLY
    also: Mapping[str, float] = field(default_factory=dict)

    @property
    def speculates(self) -> bool:
        """Whether drafts were counted or the file contains a draft length."""
        return self.acceptance_length is not None or isinstance(self.said, (int, str))

    @property
    def origin(self) -> tuple[str, str, frozenset[str]]:
        """Tuple of the program, the model, and the names of the fields that do not describe
        speculation.

        The names of the fields identify the version of the program.
        """
        names = frozenset(name for name in self.fields.values if "spec" not in name)
        return self.program, self.model, names


@dataclass(frozen=True)
class _Found:
    """The outcome of reading a run, together with the run's file, model and drafter.

    The outcome is a measurement, or the reason why the run is omitted.
    """

    where: str
    model: str
    drafter: str
    outcome: Measurement | str


class Rows:
    """A collector for the runs in several files, which also records why runs are omitted."""

    def __init__(self) -> None:
        self.where = ""  # file that is being read
        self._found: list[_Found] = []
        self.notes: list[str] = []
        self._assumed: Counter[tuple[str, str, str]] = Counter()
        self._unsettled: list[tuple[str, Sequence[Run], DraftLength]] = []

    def add(self, runs: Iterable[Run], given: DraftLength) -> None:
        """Add the runs of a file that contains the load and the draft length of every run.

        Raises
        ------
        InvalidInput
            If the caller specifies a draft length for these runs, or if a value is outside its
            range.
        """
        if given is not ...:
            got = "none" if given is None else given
            raise InvalidInput(
                f"{self.where}: draft_length: the file already contains it; omit @{got} after its"
                " name"
            )
        for run in runs:
            assert run.concurrency is not None and not isinstance(run.said, EllipsisType | str)
            self._add(run, run.concurrency, run.said)

    def _add(self, run: Run, concurrency: int, draft_length: int | None) -> None:
        """Add a run whose load and draft length are known.

        The run is omitted if its throughput is zero, or if neither its throughput nor the
        acceptance of its drafts is known.

        Raises
        ------
        InvalidInput
            If a value is outside its range, or if there are too many runs.
        """
        speed, accepted, setup = run.tokens_per_second, run.acceptance_length, run.setup
        names = {
            "workload": run.workload,
            "model": run.model,
            "drafter": setup.drafter,
            "mode": setup.mode,
        }
        for field_name, name in names.items():
            if not name.isprintable() or len(name) > LONGEST_NAME:
                expected = f"a name of at most {LONGEST_NAME} printable characters"
                raise run.fields.refuse(field_name, expected, name)
        if speed == 0 or (speed is None and not (draft_length and accepted)):
            self._keep(run, "without throughput")
            return
        point = Point(Condition(concurrency, run.workload, run.context_tokens), draft_length)
        try:
            measured = Measurement(point, speed, accepted, setup, run.also)
        except InvalidInput as error:
            raise InvalidInput(f"{self.where}: {run.fields.place}{error}") from None
        self._keep(run, measured)

    def later(self, runs: Sequence[Run], given: DraftLength) -> None:
        """Store the runs of a file until all files have been read.

        `given` is the draft length that the caller specifies for these runs.
        """
        self._unsettled.append((self.where, runs, given))

    def _settle(self) -> None:
        """Add the runs that `later` has stored.

        A run without counted drafts is treated as a run without speculation if another run of the
        same model and program has counted drafts. The other run must be in the same file, or in a
        file with the same fields. Runs with failed requests are omitted, because they had less work
        to do.

        Raises
        ------
        InvalidInput
            If the draft length of a run is unknown, or if the file contradicts the draft length
            that the caller specified.
        """
        counted = {
            run.origin: where
            for where, runs, _ in self._unsettled
            for run in runs
            if run.program and run.acceptance_length
        }
        for where, runs, given in self._unsettled:
            self.where = where
            here = {run.origin[:2] for run in runs if run.speculates}
            for run in runs:
                if isinstance(run.said, str):
                    self._keep(run, run.said)
                elif run.concurrency is None:
                    self._keep(run, "without a fixed concurrency")
                elif run.failed:
                    self._keep(run, FAILED)
                elif run.tokens_per_second:
                    shown = counted.get(run.origin) if given is ... else None
                    shown = where if run.origin[:2] in here else shown
                    self._add(run, run.concurrency, self._settled(run, run.said, given, shown))
                else:  # a run with an acceptance length but without throughput has failed
                    self._keep(run, "without throughput")

    def _settled(
        self, run: Run, said: DraftLength, given: DraftLength, shown: str | None
    ) -> int | None:
        """Return the draft length of a run.

        `shown` is the name of the file that shows that the program counts drafts.
        """
        if said is ... and not run.speculates and shown is not None:
            by = "" if shown == self.where else f", as {shown} counts them"
            self.assume(f"in which no drafts were counted had no speculation configured{by}")
            return None
        settled = given if said is ... else said
        if settled is ...:
            raise InvalidInput(
                f"{self.where}: {run.fields.place}draft_length: the file does not contain it; write"
                " FILE@3, or FILE@none for no speculation"
            )
        if (given is not ... and given != settled) or (
            settled is None and (run.acceptance_length or 1.0) > 1.0
        ):
            expected = (
                "a draft length for a file that counts drafts"
                if settled is None
                else f"{settled}, as in the file"
            )
            got = "none" if given is None else given
            error = run.fields.refuse("draft_length", expected, got)
            raise error if given is ... else InvalidInput(f"{error}, from {self.where}@{got}")
        return settled

    def assume(self, what: str) -> None:
        """Record that an assumption was made about a run.

        `what` describes the assumption.
        """
        self._assumed[self.where, "assumed", what] += 1

    def sweep(
        self, workload: str | None = None, model: str | None = None, draft: str | None = None
    ) -> Sweep:
        """Return the runs of one workload, model and drafter.

        Parameters
        ----------
        workload
            Workload of the runs; None means all workloads.
        model
            Model of the runs; None if there is only one model.
        draft
            Drafter of the runs; None means all drafters.

        Raises
        ------
        InvalidInput
            If the model is ambiguous, if a name is unknown, or if no run is left.
        """
        self._settle()
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
            none = "expected at least one run with throughput"
            if {one.outcome for one in found} == {FAILED}:
                none = "every run has failed requests; run the benchmark again"
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

    def _keep(self, run: Run, outcome: Measurement | str) -> None:
        if len(self._found) >= MAX_READ:
            raise InvalidInput(f"{self.where}: expected at most {MAX_READ:,} runs")
        self._found.append(_Found(self.where, run.model, run.setup.drafter, outcome))


def _of_one(kind: str, wanted: str | None, found: list[_Found]) -> list[_Found]:
    """Return the runs of one model or drafter, including runs for which no name is known."""
    names = {getattr(one, kind) for one in found} - {""}
    if len(names) > 1 if wanted is None else wanted not in names:
        raise _unknown(kind, names, wanted)
    return [one for one in found if wanted is None or getattr(one, kind) in ("", wanted)]


def _unknown(kind: str, names: Iterable[str], got: str | None) -> InvalidInput:
    known = f"expected one of {', '.join(sorted(names))}" if names else f"the files name no {kind}"
    return InvalidInput(
        f"{kind}: {printable(known, 240)}; got {'none' if got is None else describe(got)}"
    )
