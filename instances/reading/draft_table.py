"""Reader for logs of drafted tokens, which are CSV files with one row per token."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from specopt.instances.reading.fields import CsvFile
from specopt.instances.reading.lines import Lines, open_lines
from specopt.models.drafting import ACCEPTED, AFTER, FIRST_REJECTION, DraftLog
from specopt.models.errors import InvalidInput
from specopt.models.fields import printable
from specopt.models.reading import StrPath

MAX_TOKENS_READ = 10_000_000
MAX_FEATURE = 1e100
"""Maximum absolute value of a feature; squares and ratios of larger values overflow."""
ROUND, OUTCOME = "round", "outcome"


def read_draft_log(path: StrPath, features: Sequence[str] = ()) -> DraftLog:
    """Read a log of drafted tokens.

    Parameters
    ----------
    path
        Path of a CSV file with a column `round` (an integer), a column `outcome` and columns of
        numbers. An outcome is 1 (accepted), 0 (first rejection) or -1 (after the first rejection).
        The tokens of each round must be in order.
    features
        Names of the columns to use as features; if empty, all columns except `round` and `outcome`.

    Raises
    ------
    InvalidInput
        If the file does not have this form, or if the tokens of a round are not in order.
    """
    where = printable(str(path))
    with open_lines(path) as stream:
        lines = Lines(stream, where)
        file = CsvFile(lines)
        names = tuple(features) or tuple(
            name for name in file.header if name not in (ROUND, OUTCOME)
        )
        if not names:
            raise InvalidInput(
                f"{where}: line {file.line}: expected at least one feature column, got none"
            )
        file.need(ROUND, OUTCOME, *names)
        size = f"a number of size <= {MAX_FEATURE:g}"
        table = []
        for row in file:
            values = [
                row.within(name, size, -MAX_FEATURE, MAX_FEATURE)
                for name in (ROUND, OUTCOME, *names)
            ]
            if values[0] != int(values[0]) or abs(values[0]) > 2**53:
                raise row.refuse(ROUND, "an integer", row.text_of(ROUND))
            if values[1] not in (ACCEPTED, FIRST_REJECTION, AFTER):
                raise row.refuse(OUTCOME, "1, 0 or -1", row.text_of(OUTCOME))
            table.append(values)
            if len(table) > MAX_TOKENS_READ:
                expected = f"at most {MAX_TOKENS_READ:,} tokens"
                raise lines.refuse(row.line, expected, "more")
    if not table:
        raise InvalidInput(f"{where}: expected at least one drafted token, got none")
    found = np.array(table, np.float64)
    _, rounds = np.unique(found[:, 0], return_inverse=True)
    order = np.argsort(rounds, kind="stable")
    log = DraftLog(
        features=found[order, 2:],
        outcomes=found[order, 1].astype(np.int64),
        names=names,
        rounds=rounds[order],
    )
    same = np.diff(rounds[order]) == 0
    before = log.outcomes[:-1][same]
    after = log.outcomes[1:][same]
    wrong = np.where(before == ACCEPTED, after == AFTER, after != AFTER)
    if wrong.any():
        raise InvalidInput(
            f"{where}: {OUTCOME}: expected rounds with the accepted tokens first, then the rejected"
            f" one and the tokens after it, but a {int(before[wrong][0])} is followed by a"
            f" {int(after[wrong][0])}"
        )
    begins = np.flatnonzero(np.append(True, ~same))
    if (log.outcomes[begins] == AFTER).any():
        raise InvalidInput(
            f"{where}: {OUTCOME}: expected rounds that begin with 1 or 0, got one that begins"
            " with -1"
        )
    return log
