"""What laboratory records come to, as rows of tables."""

from __future__ import annotations

from specopt.views.testbed import tables_of


def test_intervals_and_what_is_unknown() -> None:
    """Tests that the bias has its interval but in narrow tables, and that what is unknown is a dash."""
    known, unknown = {"value": -0.1, "low": -0.2, "high": 0.05}, dict.fromkeys(("value", "low", "high"))
    shown = {"predictor": "model", "quantity": "total_seconds", "points": 3, "pairs": 2}
    shown |= {"median_error": known, "right_order": unknown}
    said = {"summaries": [shown | {"bias": known}, shown | {"bias": unknown}], "gains": [], "terms": {}}
    (wide,), (narrow,) = tables_of(said).values(), tables_of(said, narrow=True).values()
    assert [row["bias"] for row in wide] == ["-10.0 [-20.0, 5.0]", "-"]
    assert [row["bias"] for row in narrow] == ["-10.0", "-"]
    assert {row["median error"] for row in (*wide, *narrow)} == {"-10.0 [-20.0, 5.0]"}
