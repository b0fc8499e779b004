"""Reader for the CSV output of `llama-bench`.

The table has a row for each model, prompt and depth, with times in nanoseconds. A prompt of n
tokens (`-p 1,2,3,... -n 0 -d 0,4096`) is treated as a pass of one request with n new tokens. If the
table contains two models, the slower model is treated as the verify model.
"""

from __future__ import annotations

from collections.abc import Iterable

from specopt.instances.reading.fields import CsvFile
from specopt.instances.reading.lines import Lines, open_lines
from specopt.instances.runtimes.table import TableColumns
from specopt.models.errors import InvalidInput
from specopt.models.reading import StrPath

MODEL = "model_filename"
TOKENS = "n_prompt"
ANSWERS = "n_gen"
SECONDS = "avg_ns"


def columns_by_model(path: StrPath, roles: Iterable[str]) -> dict[str, TableColumns] | None:
    """Return the columns and rows of each model, or None if the table has another format.

    Parameters
    ----------
    path
        Path of the file.
    roles
        Roles of the models: "draft", "verify" or both.

    Raises
    ------
    InvalidInput
        If the number of models differs from the number of roles, or if a row is malformed.
    """
    least: dict[str, tuple[float, ...]] = {}
    with open_lines(path) as stream:
        table = CsvFile(Lines(stream, str(path)))
        if not {MODEL, TOKENS, SECONDS} <= set(table.header):
            return None
        table.need(MODEL, TOKENS, ANSWERS, SECONDS, "n_depth")
        for row in table:
            if row.text_of(ANSWERS) == "0":
                place = tuple(row.within(name, "a number", 0, 1e15) for name in (TOKENS, SECONDS))
                name = row.text_of(MODEL)
                least[name] = min(least.get(name, place), place)
    wanted = sorted(roles)
    names = sorted(least, key=lambda name: least[name])
    if len(names) != len(wanted):
        raise InvalidInput(
            f"{path}: expected prompt rows (n_gen 0) of one model for each of"
            f" {' and '.join(wanted)}, got prompts of {', '.join(names) or 'no model'}"
        )
    return {
        role: TableColumns(
            x=(TOKENS,),
            y=(SECONDS,),
            y_unit="ns",
            cached="n_depth",
            where={MODEL: name, ANSWERS: "0"},
        )
        for role, name in zip(wanted, names, strict=True)
    }
