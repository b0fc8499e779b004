"""Reader of SpecForge's bundle of measurements.

The bundle contains the throughput by model, benchmark, batch, steps, topk and draft model. The
baseline was measured once for each benchmark and batch but is repeated in several rows, so the
repetitions are skipped.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from specopt.instances.reading.fields import Fields
from specopt.instances.sweeps.rows import Rows, Run
from specopt.models.errors import InvalidInput
from specopt.models.fields import describe, printable
from specopt.models.sweep import ONLY, Setup

_LONGEST_PLACE = 60
BASELINES = ("without eagle", "wihtout eagle")
"""Beginnings of the names of the baseline; the misspelling occurs in the bundle."""


def is_spec_bundle(document: object) -> bool:
    """Return whether a document looks like a bundle of SpecForge."""
    models = list(document.values()) if isinstance(document, Mapping) else []
    benchmarks = [one for model in models if isinstance(model, Mapping) for one in model.values()]
    return any(isinstance(one, Mapping) and "results" in one for one in benchmarks)


def read_spec_bundle(document: object, rows: Rows) -> None:
    """Collect the runs in a bundle.

    Raises
    ------
    InvalidInput
        If a field is missing or has an invalid value. The message contains the field.
    """
    for model, benchmarks in _objects(rows, "the top level", document):
        for name, benchmark in _objects(rows, printable(model, _LONGEST_PLACE), benchmarks):
            place = f"{printable(model, _LONGEST_PLACE)}.{printable(name, _LONGEST_PLACE)}."
            baselines: set[tuple[int, float | None]] = set()
            for result in Fields(rows.where, place, benchmark).entries("results"):
                for metric in result.entries("metrics"):
                    _add(rows, model, name, result, metric, baselines)


def _objects(rows: Rows, place: str, data: object) -> Iterable[tuple[str, object]]:
    if not isinstance(data, Mapping):
        raise InvalidInput(f"{rows.where}: {place}: expected an object, got {describe(data)}")
    return data.items()


def _add(
    rows: Rows,
    model: str,
    benchmark: str,
    result: Fields,
    metric: Fields,
    baselines: set[tuple[int, float | None]],
) -> None:
    batch, steps, topk = (result.needed(name) for name in ("batch_size", "steps", "topk"))
    draft, speed = metric.text("Name"), metric.number("output_throughput")
    is_baseline = draft.lower().startswith(BASELINES)
    if is_baseline and (batch, speed) in baselines:
        return
    run = Run(
        fields=metric,
        tokens_per_second=speed,
        concurrency=batch,
        acceptance_length=metric.number("accept_length") if speed and not is_baseline else None,
        workload=benchmark,
        model=model,
        setup=ONLY if is_baseline else Setup(draft, topk=topk),
    )
    if is_baseline:
        baselines.add((batch, speed))
    rows.add(run, batch, None if is_baseline else steps)
