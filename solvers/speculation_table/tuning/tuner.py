"""Choice of the next points to measure, so that the possible regret decreases quickly.

The method is best-arm identification based on the bands of the predictions, similar to LUCB. It
considers the load with the largest possible regret. Of the options that may be better there than
the current choice, the option with the highest mean is measured. If several points are requested
together, each point is chosen as if the measurements of the previous points had equalled their
predictions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace

from specopt.models.arguments import integer, number
from specopt.models.errors import InvalidInput
from specopt.models.sweep import Condition, Measurement, Point, Sweep
from specopt.solvers.speculation_table.tuning.decision import decide
from specopt.solvers.speculation_table.tuning.goal import Goal
from specopt.solvers.speculation_table.tuning.law import Place, place_of
from specopt.solvers.speculation_table.tuning.predictions import Predictor
from specopt.solvers.speculation_table.tuning.tuning import Tuning

_LONGEST = 5  # maximum draft length if no drafts were measured
_RUNS = 3  # maximum number of runs per point, which suffices to estimate the noise


class Tuner:
    """A tuner, which proposes the points to measure next and stores the measurements.

    Parameters
    ----------
    concurrencies, draft_lengths
        Loads and draft lengths that may be measured, in addition to no speculation.
    cases
        Workloads, with their contexts, that are served at every load.
    goal
        Goal of the choice.
    regret
        Upper bound on the regret at which `ask` stops proposing points.
    confidence
        Coverage of the bands.

    Examples
    --------
    >>> tuner = Tuner([1, 8], [1, 3])
    >>> point = tuner.ask()[0]
    >>> point.condition.concurrency, point.draft_length
    (1, None)
    >>> tuner.tell(point, 27.4)
    """

    def __init__(
        self,
        concurrencies: Iterable[int],
        draft_lengths: Iterable[int],
        *,
        cases: Sequence[Place] = (("", 0),),
        goal: Goal | None = None,
        regret: float = 0.02,
        confidence: float = 0.9,
    ) -> None:
        self.concurrencies = sorted({integer("concurrencies", c, 1) for c in concurrencies})
        self.draft_lengths = sorted({integer("draft_lengths", k, 0) for k in draft_lengths})
        if not self.concurrencies or not any(self.draft_lengths):
            raise InvalidInput(
                "concurrencies, draft_lengths: expected at least one of each, including a draft"
                " length >= 1"
            )
        self.cases = cases
        lengths = tuple(self.draft_lengths)
        self.goal = replace(
            goal or Goal(), concurrencies=tuple(self.concurrencies), draft_lengths=lengths
        )
        self.regret = number("regret", regret, 0, below=1)
        self.confidence = confidence
        self.measurements: list[Measurement] = []
        self.notes: tuple[str, ...] = ()
        self._zero_is_none = False
        self._first = self._first_points()
        self._known: tuple[int, Predictor] | None = None

    @classmethod
    def from_sweep(
        cls,
        sweep: Sweep,
        goal: Goal | None = None,
        regret: float = 0.02,
        confidence: float = 0.9,
        *,
        asking: bool = False,
    ) -> Tuner:
        """Build a tuner from the measurements of a sweep.

        The tuner may measure the sweep's loads with any draft length up to the longest measured
        length. If `asking` is true or the goal allows extrapolation, draft lengths up to the goal's
        maximum are allowed as well. If `asking` is true and there is no maximum, sequential
        drafters may draft up to twice the longest measured length.
        """
        if len(sweep.setups) > 1:
            raise InvalidInput(
                "sweep: expected one drafter, mode and topk, got several; use `Options` to choose"
                " among them"
            )
        full = sweep.with_none()
        sweep = full if full.relative is None else sweep
        goal, places = goal or Goal(), sorted({place_of(one.point) for one in sweep.measurements})
        longest = max((0, *sweep.draft_lengths))
        if asking or goal.extrapolate:
            twice = asking and all(setup.is_sequential for setup in sweep.setups)
            longest = goal.max_length or (2 * longest if twice else longest)
        tuner = cls(
            {condition.concurrency for condition in sweep.conditions},
            goal.draft_lengths or range((longest or _LONGEST) + 1),
            cases=[one for one in places if one[0] == goal.workload] or places,
            goal=goal,
            regret=regret,
            confidence=confidence,
        )
        tuner.measurements += sweep.measurements
        tuner.notes, tuner._zero_is_none = sweep.notes, sweep.zero_is_none
        if tuner.is_comparable:
            tuner._first = []
        return tuner

    @property
    def workloads(self) -> tuple[str, ...]:
        """Names of the workloads that are served."""
        return tuple(dict.fromkeys(workload for workload, _ in self.cases))

    @property
    def predictor(self) -> Predictor:
        """Predictor based on the measurements so far."""
        if self._known is None or self._known[0] != len(self.measurements):
            self._known = len(self.measurements), self._predictor(self.measurements)
        return self._known[1]

    def tell(
        self, point: Point, tokens_per_second: float, acceptance_length: float | None = None
    ) -> None:
        """Add a measurement at a point."""
        self.measurements.append(Measurement(point, tokens_per_second, acceptance_length))

    @property
    def is_comparable(self) -> bool:
        """Whether there are measurements both without speculation and with drafts."""
        lengths = {measurement.point.draft_length for measurement in self.measurements}
        return None in lengths and any(lengths)

    def result(self) -> Tuning:
        """Return the best schedule given the measurements so far.

        Raises
        ------
        InvalidInput
            If there are too few measurements for a comparison, or if the goal lies outside the
            measured range.
        """
        return decide(self.predictor, self.goal)

    def ask(self, count: int = 1) -> list[Point]:
        """Return up to `count` points to measure next.

        The list is empty once the bound on the regret is small enough.
        """
        integer("count", count, 1)
        asked: list[Point] = []
        known = list(self.measurements)
        while True:
            predictor = None
            done = {measurement.point for measurement in known}
            point = next((point for point in self._first if point not in done), None)
            if point is None:
                predictor = self._predictor(known)
                point = self._most_useful(decide(predictor, self.goal), known, asked)
            if point is None:
                return asked
            asked.append(point)
            if len(asked) == count:
                return asked
            known.append(self._imagined(point, predictor, known))

    def _predictor(self, measurements: Sequence[Measurement]) -> Predictor:
        return Predictor(
            Sweep(tuple(measurements), self.notes, self._zero_is_none), self.confidence
        )

    def _first_points(self) -> list[Point]:
        """Return the initial points, which must be measured before a comparison is possible.

        At the smallest and the largest load, the points are no speculation and a medium draft
        length. At the smallest load, the shortest and the longest draft length are added.
        """
        lengths = [length for length in self.draft_lengths if length]
        ends = sorted({self.concurrencies[0], self.concurrencies[-1]})
        found = [
            Point(Condition(c, *case), option)
            for case in self.cases
            for option in (None, lengths[len(lengths) // 2])
            for c in ends
        ]
        # With these points, every candidate length lies between measured lengths.
        outer = sorted({lengths[0], lengths[-1]})
        return found + [Point(Condition(ends[0], *self.cases[0]), option) for option in outer]

    def _most_useful(
        self, tuning: Tuning, known: Sequence[Measurement], asked: Sequence[Point]
    ) -> Point | None:
        """Return the most informative point at the load with the largest possible regret.

        The point is the option with the largest mean among the options that may be better than the
        current choice. A point is measured repeatedly, up to `_RUNS` times, only if noise alone
        decides between the options. The result is None if no measurement helps. Some regret may
        remain because an engine cannot be optimal at every batch size.
        """
        grid, runs = tuning.grid, Counter(measurement.point for measurement in known)
        for concurrency in sorted(tuning.concurrencies, key=lambda c: -tuning.regret(c)[0]):
            regret, rival = tuning.regret(concurrency)
            if regret <= self.regret:
                break
            row, taken = grid.row(concurrency), tuning.option(concurrency)
            doubtful = [k for k in tuning.rivals if grid.high[row, k] > grid.low[row, taken]]
            columns = [k for k in {taken, *doubtful} if not grid.measured[row, k]]
            if not columns and grid.mean[row, taken] >= (1.0 - self.regret) * grid.mean[row, rival]:
                columns = [taken, rival]
            for column in sorted(columns, key=lambda k: (-float(grid.mean[row, k]), k)):
                option = column - 1 if column else None
                points = [Point(Condition(concurrency, *case), option) for case in self.cases]
                point = min(points, key=runs.__getitem__)
                if runs[point] < _RUNS and point not in asked:
                    return point
        return None

    def _imagined(
        self, point: Point, predictor: Predictor | None, known: Sequence[Measurement]
    ) -> Measurement:
        """Return the predicted measurement at a point, or a placeholder without a prediction."""
        try:
            predictor = predictor or self._predictor(known)
        except InvalidInput:
            return Measurement(point, float(point.condition.concurrency), None)
        mean = float(predictor.predict([point]).mean[0])
        return Measurement(point, mean, predictor.acceptance_length(point))
