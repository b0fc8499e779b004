"""Reader for SpecForge's bundles of measurements.

A bundle contains the throughput by model, benchmark, batch size, number of steps, topk and draft
model. The baseline was measured once for each benchmark and batch size but appears in several rows.
The duplicates are skipped.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, TypeGuard

from specopt.instances.reading.fields import Fields
from specopt.instances.sweeps.rows import Rows, Run
from specopt.models.errors import InvalidInput
from specopt.models.fields import describe, printable
from specopt.models.sweep import ONLY, Setup

_LONGEST_PLACE = 60
BASELINES = ("without eagle", "wihtout eagle")
"""Prefixes of the names of baselines. The misspelled prefix occurs in the bundle."""


def is_spec_bundle(document: object) -> TypeGuard[Mapping[str, Any]]:
    """Return whether a document looks like a SpecForge bundle."""
    models = list(document.values()) if isinstance(document, Mapping) else []
    benchmarks = [one for model in models if isinstance(model, Mapping) for one in model.values()]
    return any(isinstance(one, Mapping) and "results" in one for one in benchmarks)


def spec_bundle_runs(document: Mapping[str, Any], rows: Rows) -> Iterator[Run]:
    """Yield the runs in a bundle.

    Raises
    ------
    InvalidInput
        If a field is missing or has an invalid value. The message names the field.
    """
    for model, benchmarks in document.items():
        place = printable(model, _LONGEST_PLACE)
        if not isinstance(benchmarks, Mapping):
            raise InvalidInput(
                f"{rows.where}: {place}: expected an object, got {describe(benchmarks)}"
            )
        for name, benchmark in benchmarks.items():
            fields = Fields(rows.where, f"{place}.{printable(name, _LONGEST_PLACE)}.", benchmark)
            baselines: set[tuple[int, float | None]] = set()
            for result in fields.entries("results"):
                for metric in result.entries("metrics"):
                    batch, steps, topk = map(result.needed, ("batch_size", "steps", "topk"))
                    draft, speed = metric.text("Name"), metric.number("output_throughput")
                    is_baseline = draft.lower().startswith(BASELINES)
                    if is_baseline:
                        if (batch, speed) in baselines:
                            continue
                        baselines.add((batch, speed))
                    accepted = metric.number("accept_length") if speed and not is_baseline else None
                    yield Run(
                        fields=metric,
                        tokens_per_second=speed,
                        concurrency=batch,
                        said=None if is_baseline else steps,
                        acceptance_length=accepted,
                        workload=name,
                        model=model,
                        setup=ONLY if is_baseline else Setup(draft, topk=topk),
                    )
