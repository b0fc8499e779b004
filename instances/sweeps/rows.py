"""The runs of a sweep while its file is read."""

from __future__ import annotations

from collections import Counter

from specopt.models.errors import InvalidInput
from specopt.models.fields import describe
from specopt.models.sweep import MOST_ROWS, Condition, Measurement, Point, Sweep

LONGEST_NAME = 200
NO_THROUGHPUT = "without throughput"


class Rows:
    """Collects runs; those that tell nothing are counted.

    Parameters
    ----------
    where
        What messages call the file.
    """

    def __init__(self, where: str) -> None:
        self.where = where
        self._runs: list[Measurement] = []
        self._dropped: Counter[str] = Counter()

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
    ) -> None:
        """Add a run.

        It is dropped where its throughput is zero, or missing and no acceptance of drafts is known either.

        Parameters
        ----------
        place
            Where it stands in the file; the names of fields follow it in messages.
        concurrency, draft_length, tokens_per_second, acceptance_length, context_tokens, workload
            As in `Measurement`.

        Raises
        ------
        InvalidInput
            If a value is outside its range, or there are too many runs.
        """
        if tokens_per_second == 0 or (tokens_per_second is None and not (draft_length and acceptance_length)):
            self.drop(NO_THROUGHPUT)
            return
        if not workload.isprintable() or len(workload) > LONGEST_NAME:
            expected = f"a name of at most {LONGEST_NAME} printable characters"
            raise self.refuse(f"{place}workload", expected, workload)
        if len(self._runs) >= MOST_ROWS:
            raise InvalidInput(f"{self.where}: expected at most {MOST_ROWS:,} runs")
        point = Point(Condition(concurrency, workload, context_tokens), draft_length)
        try:
            self._runs.append(Measurement(point, tokens_per_second, acceptance_length))
        except InvalidInput as error:
            raise InvalidInput(f"{self.where}: {place}{error}") from None

    def drop(self, kind: str) -> None:
        """Count a run that tells nothing, or nothing that a sweep can hold."""
        self._dropped[kind] += 1

    def refuse(self, field: str, expected: str, got: object) -> InvalidInput:
        """Return the exception that names a field, what was expected there and what came."""
        return InvalidInput(f"{self.where}: {field}: expected {expected}, got {describe(got)}")

    def sweep(self) -> Sweep:
        """Return what was collected.

        Raises
        ------
        InvalidInput
            If that is nothing, or only some of the runs say their context.
        """
        notes = tuple(f"left out: {_times(many)} {kind}" for kind, many in self._dropped.items())
        if not self._runs:
            raise InvalidInput("; ".join([f"{self.where}: expected at least one run with its throughput", *notes]))
        try:
            return Sweep(tuple(self._runs), notes)
        except InvalidInput as error:
            raise InvalidInput(f"{self.where}: {error}") from None


def _times(many: int) -> str:
    return "1 run" if many == 1 else f"{many:,} runs"
