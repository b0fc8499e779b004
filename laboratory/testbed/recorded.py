"""Recorded drafts of a real pair of models: every drafted position of rounds of speculative
decoding, read from parquet.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from specopt.models.drafting import ACCEPTED, AFTER, FIRST_REJECTION, DraftLog
from specopt.models.errors import InvalidInput
from specopt.models.fields import Floats, Ints, describe

FEATURES = ("draft_probability", "draft_entropy", "margin", "deviation")
"""The four statistics of the draft distribution in paper 2, with the names of `RecordedDrafts`."""

_WHOLE = 1.001
"""Maximum sum of a distribution, because probabilities are stored with 12 bits."""


@dataclass(frozen=True, eq=False)
class RecordedLaws:
    """The most probable tokens of next-token distributions. There are none for positions that were
    never reached.

    Parameters
    ----------
    starts
        Start of the tokens of each position, and the end of the last ones, shape (n + 1,).
    tokens, probabilities
        Most probable tokens of all positions one after the other, in decreasing order.
    rest
        Probability of all other tokens, shape (n,).
    """

    starts: Ints
    tokens: Ints
    probabilities: Floats
    rest: Floats

    def __getitem__(self, position: int) -> tuple[Ints, Floats]:
        """Return the tokens of one position, and their probabilities."""
        here = slice(self.starts[position], self.starts[position + 1])
        return self.tokens[here], self.probabilities[here]

    def select(self, positions: Ints) -> RecordedLaws:
        """Return the distributions of some positions."""
        counts = np.diff(self.starts)[positions]
        starts = np.concatenate([[0], np.cumsum(counts)])
        places = np.arange(starts[-1]) + np.repeat(self.starts[positions] - starts[:-1], counts)
        return RecordedLaws(
            starts, self.tokens[places], self.probabilities[places], self.rest[positions]
        )


@dataclass(frozen=True, eq=False)
class RecordedDrafts:
    """Drafted positions in the order of their rounds. Arrays have shape (n,).

    Distributions are those at the temperature of the run, or at temperature 1 for a greedy run.

    Parameters
    ----------
    prompt, kind
        Number of the prompt, and its kind of task.
    temperature, seed
        Temperature and seed of the run. Temperature 0 is greedy.
    round, position
        Round in its run and position in its round, from 0.
    token
        The drafted token.
    outcome
        `ACCEPTED`, `FIRST_REJECTION` or `AFTER`, as in `specopt.models.drafting`.
    acceptance_rate
        Probability that a draft at this position is accepted: 1 - TV over the complete vocabulary,
        or in a greedy run whether both models agree.
    draft_probability, verify_probability
        Probabilities of the token.
    draft_entropy, verify_entropy
        Entropies in nats.
    margin
        Difference between the two largest draft probabilities.
    deviation
        Standard deviation of the draft model's logits.
    draft_laws, verify_laws
        The distributions.
    """

    prompt: Ints
    kind: NDArray[np.str_]
    temperature: Floats
    seed: Ints
    round: Ints
    position: Ints
    token: Ints
    outcome: Ints
    acceptance_rate: Floats
    draft_probability: Floats
    verify_probability: Floats
    draft_entropy: Floats
    verify_entropy: Floats
    margin: Floats
    deviation: Floats
    draft_laws: RecordedLaws
    verify_laws: RecordedLaws

    def __len__(self) -> int:
        return len(self.outcome)

    @property
    def round_numbers(self) -> Ints:
        """Index of each position's round over all runs, from 0."""
        new = np.ones(len(self), dtype=bool)
        columns = (self.prompt, self.temperature, self.seed, self.round)
        new[1:] = np.any([column[1:] != column[:-1] for column in columns], axis=0)
        return np.cumsum(new) - 1

    def select(self, where: Any) -> RecordedDrafts:
        """Return some positions, given by a mask or by their indices."""
        positions = np.arange(len(self))[where]
        columns = {field.name: getattr(self, field.name) for field in fields(self)}
        laws = {
            name: column.select(positions)
            for name, column in columns.items()
            if name.endswith("laws")
        }
        return replace(
            self,
            **{name: column[positions] for name, column in columns.items() if name not in laws},
            **laws,
        )

    def draft_log(self) -> DraftLog:
        """Return the information that a device has about its drafts, and their outcomes, for
        predictors.
        """
        return DraftLog(
            features=np.column_stack([getattr(self, name) for name in FEATURES]),
            outcomes=self.outcome,
            names=FEATURES,
            rounds=self.round_numbers,
        )


_UNIT: tuple[str, Callable[[Any], Any]] = ("a probability", lambda x: (x >= 0.0) & (x <= 1.0))
_NUMBER: tuple[str, Callable[[Any], Any]] = ("a number >= 0", lambda x: (x >= 0.0) & np.isfinite(x))
_COUNT: tuple[str, Callable[[Any], Any]] = ("an integer >= 0", lambda x: x >= 0)
_INTEGERS: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "prompt": _COUNT,
    "seed": _COUNT,
    "round": _COUNT,
    "position": _COUNT,
    "token": _COUNT,
    "outcome": ("1, 0 or -1", lambda x: np.isin(x, (ACCEPTED, FIRST_REJECTION, AFTER))),
}
_NUMBERS: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "temperature": _NUMBER,
    "acceptance_rate": _UNIT,
    "draft_probability": _UNIT,
    "verify_probability": _UNIT,
    "draft_entropy": _NUMBER,
    "verify_entropy": _NUMBER,
    "margin": _UNIT,
    "deviation": _NUMBER,
}


def read_recorded(path: str | os.PathLike[str]) -> RecordedDrafts:
    """Read recorded drafts.

    Parameters
    ----------
    path
        A parquet file, or a folder of them.

    Raises
    ------
    InvalidInput
        If there are no files, or if a column is missing or has an invalid value. The message
        contains file and column.
    """
    import pyarrow

    files = sorted(Path(path).glob("*.parquet")) if Path(path).is_dir() else [Path(path)]
    if not files:
        raise InvalidInput(f"{path}: expected a folder with parquet files, found none")
    try:
        table = pyarrow.concat_tables([_table(file) for file in files])
    except pyarrow.ArrowInvalid as error:
        raise InvalidInput(f"{path}: expected files of one schema: {error}") from None
    columns: dict[str, Any] = {}
    for dtype, checks in ((np.int64, _INTEGERS), (np.float64, _NUMBERS)):
        for name, (expected, allowed) in checks.items():
            columns[name] = _column(path, table, name, dtype)
            _refuse(path, name, expected, columns[name], allowed(columns[name]))
    columns["kind"] = np.array([str(kind) for kind in _filled(path, table, "kind").to_pylist()])
    for side in ("draft", "verify"):
        columns[f"{side}_laws"] = _laws(path, table, side)
    return RecordedDrafts(**columns)


def _table(path: Path) -> Any:
    import pyarrow
    from pyarrow import parquet

    try:
        return parquet.read_table(path, partitioning=None)
    except (OSError, pyarrow.ArrowException) as error:
        raise InvalidInput(f"{path}: expected a parquet file: {error}") from None


def _filled(path: Any, table: Any, name: str) -> Any:
    if name not in table.column_names:
        raise InvalidInput(f"{path}: column {name!r} is missing")
    column = table.column(name).combine_chunks()
    if column.null_count:
        raise InvalidInput(
            f"{path}: {name}: expected a value in every row, {column.null_count} have none"
        )
    return column


def _column(path: Any, table: Any, name: str, dtype: Any) -> Any:
    return _numbers(path, name, _filled(path, table, name), dtype)


def _numbers(path: Any, name: str, column: Any, dtype: Any) -> Any:
    values = column.to_numpy(zero_copy_only=False)
    if values.dtype.kind not in ("iu" if dtype is np.int64 else "iuf"):
        raise InvalidInput(
            f"{path}: {name}: expected {'integers' if dtype is np.int64 else 'numbers'}, got"
            f" {column.type}"
        )
    return values.astype(dtype)


def _laws(path: Any, table: Any, side: str) -> RecordedLaws:
    rest = _column(path, table, f"{side}_rest", np.float64)
    names = f"{side}_tokens", f"{side}_probabilities"
    lists = [_filled(path, table, name) for name in names]
    for name, column in zip(names, lists, strict=True):
        if not str(column.type).startswith("list<"):
            raise InvalidInput(f"{path}: {name}: expected lists, got {column.type}")
    counts = [np.asarray(column.value_lengths()) for column in lists]
    if (counts[0] != counts[1]).any():
        row = int(np.argmax(counts[0] != counts[1]))
        raise InvalidInput(
            f"{path}: {names[1]}[{row}]: expected {counts[0][row]} entries, got {counts[1][row]}"
        )
    flat = [column.flatten() for column in lists]
    for name, values in zip(names, flat, strict=True):
        if values.null_count:
            raise InvalidInput(
                f"{path}: {name}: expected no empty entries, got {values.null_count}"
            )
    tokens = _numbers(path, names[0], flat[0], np.int64)
    probabilities = _numbers(path, names[1], flat[1], np.float64)
    for name, values, (expected, allowed) in (
        (names[0], tokens, _COUNT),
        (names[1], probabilities, _UNIT),
        (f"{side}_rest", rest, _UNIT),
    ):
        _refuse(path, name, expected, values, allowed(values))
    starts = np.concatenate([[0], np.cumsum(counts[0])]).astype(np.int64)
    totals = rest + np.bincount(
        np.repeat(np.arange(len(rest)), counts[0]), weights=probabilities, minlength=len(rest)
    )
    _refuse(
        path,
        f"{side}_probabilities",
        "at most 1 in sum, the rest included",
        totals,
        totals <= _WHOLE,
    )
    return RecordedLaws(starts, tokens, probabilities, rest)


def _refuse(path: Any, name: str, expected: str, values: Any, allowed: Any) -> None:
    if not allowed.all():
        row = int(np.argmin(allowed))
        raise InvalidInput(
            f"{path}: {name}[{row}]: expected {expected}, got {describe(values[row].item())}"
        )
