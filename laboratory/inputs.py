"""Condense the laboratory's raw files into the input of the reproductions of the papers.

``python -P laboratory/inputs.py``, at the end of ``make logs``, writes
`benchmarks/papers/data/laboratory.json`. Tests condense the raw files again.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, fields
from functools import cache
from pathlib import Path
from typing import Any, get_args

import numpy as np
from papers.paper_3 import SETS, Laws
from pyarrow import parquet

from specopt.models.drafting import AFTER
from specopt.models.fields import Floats
from specopt.models.files import write_text
from specopt.solvers.drafting.predictors import Kind
from testbed.prompts import KINDS
from testbed.recorded import RecordedDrafts, read_recorded
from testbed.studies.overlap import rouge_2
from testbed.studies.rejections import PARTS as THIRDS
from testbed.studies.rejections import correlations, rejections

HERE = Path(__file__).parent

TARGET = HERE.parent / "benchmarks" / "papers" / "data" / "laboratory.json"
DIGITS = 4
"""Number of significant digits that are kept."""

PREDICTORS = tuple(kind for kind in get_args(Kind) if kind != "trees")


@cache
def log() -> RecordedDrafts:
    """Return the recorded drafts."""
    return read_recorded(HERE / "logs")


def paper_2() -> Iterator[dict[str, Any]]:
    """Yield the results of stopping at the first predicted rejection, by temperature, predictor and
    part.
    """
    for predictor in PREDICTORS:
        for part in range(THIRDS):
            yield from (asdict(one) for one in rejections(log(), predictor, part))


def statistics() -> Iterator[dict[str, Any]]:
    """Yield the relation of the statistics of draft distributions to acceptance, by temperature and
    kind of task.
    """
    for temperature in np.unique(log().temperature).tolist():
        for kind in ("all", *KINDS):
            mine = (log().temperature == temperature) & ((log().kind == kind) | (kind == "all"))
            yield {"temperature": temperature, "task": kind} | correlations(log().select(mine))


def paper_5() -> Iterator[dict[str, Any]]:
    """Yield acceptance along the texts of each kind of task, as two hexadecimal digits (255ths) per
    position.
    """
    reached = log().select(log().outcome != AFTER)
    for temperature in np.unique(reached.temperature).tolist():
        for kind in KINDS:
            mine = (reached.temperature == temperature) & (reached.kind == kind)
            rates = np.round(255.0 * reached.acceptance_rate[mine]).astype(np.uint8)
            yield {"temperature": temperature, "task": kind, "acceptance": rates.tobytes().hex()}


def paper_3() -> Iterator[dict[str, Any]]:
    """Yield the statistics of distributions by temperature and set. A set has every `SETS`-th
    prompt.
    """
    for path in sorted((HERE / "outputs").glob("laws-*.parquet")):
        table = parquet.read_table(path)
        outputs = {name: _array(table.column(name)) for name in table.column_names}
        for number in range(SETS):
            mine = outputs["prompt"] % SETS == number
            laws = Laws.of(
                {name: column[mine] for name, column in outputs.items() if name != "prompt"}
            )
            found = {field.name: getattr(laws, field.name) for field in fields(laws)}
            yield {"temperature": float(path.stem.removeprefix("laws-")), "set": number} | found


def texts() -> Iterator[dict[str, Any]]:
    """Yield ROUGE-2 against the greedy answer of the verify model for each prompt, by scheme."""
    told = json.loads((HERE / "outputs" / "texts.json").read_text("utf-8"))["texts"]
    references = {one["prompt"]: one["text"] for one in told if one["temperature"] == 0.0}
    cells: dict[tuple[Any, ...], list[float]] = {}
    for one in told:
        if one["temperature"] > 0.0:
            cell = (one["temperature"], one["scheme"], one["resolution"], one["seed"])
            cells.setdefault(cell, []).append(rouge_2(one["text"], references[one["prompt"]]))
    for (temperature, scheme, resolution, _), scores in cells.items():
        yield {
            "temperature": temperature,
            "scheme": scheme,
            "resolution": resolution,
            "rouge_2": scores,
        }


PARTS: dict[str, Callable[[], Iterator[dict[str, Any]]]] = {
    "rejections": paper_2,
    "statistics": statistics,
    "acceptance": paper_5,
    "laws": paper_3,
    "texts": texts,
}


def condensed(name: str) -> list[dict[str, Any]]:
    """Return the lines of a part in the form in which they are written."""
    return [_rounded(line) for line in PARTS[name]()]


def _array(column: Any) -> Floats:
    """Return a column of numbers, or of lists of equal length, as an array."""
    return np.array(column.to_pylist())


def _rounded(value: Any) -> Any:
    """Return plain data with numbers rounded to few digits."""
    if isinstance(value, Mapping):
        return {key: _rounded(one) for key, one in value.items()}
    if isinstance(value, list | tuple | np.ndarray):
        return [_rounded(one) for one in value]
    return float(f"{value:.{DIGITS}g}") if isinstance(value, float | np.floating) else value


if __name__ == "__main__":
    blocks = (
        f"{json.dumps(name)}: [\n" + ",\n".join(map(json.dumps, condensed(name))) + "\n]"
        for name in PARTS
    )
    write_text(TARGET, "{\n" + ",\n".join(blocks) + "\n}\n")
