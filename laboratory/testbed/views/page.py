"""Records of the laboratory as a page: predicted and measured values, accuracy of predictions, and
gains of methods.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from specopt.report.markup import items, paragraph, section, table
from specopt.report.page import Page, figure
from testbed.views.comparison import chart_of, comparison_of, drawn_quantities, tables_of, words

Record = Mapping[str, Any]


def page_of(records: Sequence[Record], sources: tuple[str, ...]) -> Page:
    """Return the page of laboratory records.

    Raises
    ------
    InvalidInput
        If nothing was played yet, or a repetition is missing.
    """
    body, lead = [], []
    for record in records:
        said = comparison_of(record)
        name = f"{record['kind']}, pair {record['pair']}, {record['date']}"
        main = next(one for one in said["summaries"] if one["predictor"] == "model")
        lead.append(
            f"{name}: the model's {words(main['quantity'])} were"
            f" {100 * main['median_error']['value']:.1f} % off in the median, over {main['points']}"
            " plans."
        )
        body.append(section(name, *_parts(record, said)))
    return Page(title="Predicted against measured", lead=lead, body=body, sources=sources)


def _parts(record: Record, said: Mapping[str, Any]) -> list[str]:
    parts = [figure(chart_of(record, name)) for name in drawn_quantities(record)]
    parts += [table(rows, caption) for caption, rows in tables_of(said).items()]
    parts.append(
        paragraph(
            "Intervals of predictions are 95 % bootstraps over plans, drawn scene by scene.", "note"
        )
    )
    told = said["differences"]
    if told is not None:
        parts.append(
            paragraph(
                f"{told['differing']} of {told['outputs']} outputs differ from the verify model's"
                " own."
            )
        )
    parts.append(
        items(
            f"{name} {value}" for name, value in {**record["machine"], **record["versions"]}.items()
        )
    )
    return parts
