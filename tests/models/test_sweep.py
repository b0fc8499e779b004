"""What a table of measured throughput holds."""

from __future__ import annotations

import pytest

from specopt.models.sweep import Condition, Measurement, Point, Setup, Sweep


def sweep(*also: dict[str, float]) -> Sweep:
    """A sweep of measurements with some further columns, one draft token more in each."""
    return Sweep(
        tuple(
            Measurement(Point(Condition(1), n), 10.0 + n, also=more) for n, more in enumerate(also)
        )
    )


@pytest.mark.parametrize(
    ("also", "unit"),
    [
        (
            ({"joules_per_request": 2.0, "output_tokens": 8.0}, {"joules_per_token": 1.0}),
            "tokens per joule",
        ),
        (
            ({"joules_per_request": 2.0}, {"joules_per_request": 2.0, "watts": 5.0}),
            "requests per joule",
        ),
        (({}, {"joules_per_request": 2.0, "watts": 5.0}), "tokens per joule"),
    ],
)
def test_the_unit_of_energy(also: tuple[dict[str, float], ...], unit: str) -> None:
    """Tests that tokens are counted where all that give joules of a request tell its tokens."""
    assert sweep(*also).energy == unit


def test_what_drafts_by_default() -> None:
    """Tests that without a name it is one chain of drafts of a fixed length."""
    assert sweep({}).measurements[0].setup == Setup("", "fixed", 1)


def test_the_front_is_of_means_over_runs() -> None:
    """Tests that an option counts with the geometric means of its runs, and one that another beats
    in both is out.
    """
    runs = [(None, 30.0, 1.0), (1, 10.0, 1.0), (1, 40.0, 0.25), (2, 15.0, 1.0), (3, 15.0, 0.25)]
    measured = tuple(
        Measurement(Point(Condition(1), length), speed, also={"joules_per_token": joules})
        for length, speed, joules in runs
    )
    front = [
        (row["draft_length"], row["tokens_per_second"], row["tokens_per_joule"])
        for row in Sweep(measured).front()
    ]
    assert front == [
        ("none", pytest.approx(30.0), 1.0),
        (1, pytest.approx(20.0), 2.0),
        (3, pytest.approx(15.0), 4.0),
    ]


def test_the_front_of_one_workload() -> None:
    """Tests that the measurements of other workloads do not count."""
    runs = [("chat", None, 30.0), ("chat", 1, 10.0), ("code", 1, 900.0)]
    measured = tuple(
        Measurement(Point(Condition(1, workload=name), length), speed, also={"joules_per_token": 1})
        for name, length, speed in runs
    )
    (row,) = Sweep(measured).front("chat")
    assert (row["draft_length"], row["tokens_per_second"]) == ("none", pytest.approx(30.0))
