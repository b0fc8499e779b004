"""Times as numbers and as dates."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specopt import InvalidInput
from specopt.instances.traces.clock import Clock


@pytest.mark.parametrize(
    ("unit", "text", "seconds"),
    [
        ("s", "12", 12.0),
        ("s", " -1.5 ", -1.5),
        ("s", ".5e1", 5.0),
        ("ms", "3000", 3.0),
        ("ms", "27", 0.027),
        ("us", "1700000000000000", 1.7e9),
        ("ns", "5", 5e-9),
    ],
)
def test_numbers(unit: str, text: str, seconds: float) -> None:
    """Tests that a number of units is the nearest float to its seconds."""
    assert Clock(unit).seconds(text) == seconds


@pytest.mark.parametrize(
    "text", ["", "nan", "inf", "1_000", "0x10", "1,5", "٣", "1e999", "--1", "1700000000000"]
)
def test_what_is_no_number_of_seconds(text: str) -> None:
    """Tests that words, digits of other scripts and milliseconds since 1970 are no seconds."""
    assert Clock("s").seconds(text) is None


def test_seven_digits_of_a_second() -> None:
    """Tests that differences of dates keep every digit: they are exact before they are floats."""
    clock = Clock("date")
    assert clock.seconds("2023-11-16 18:15:46.6805900") == 0.0
    assert clock.seconds("2023-11-16 18:15:46.6805901") == 1e-7
    assert clock.seconds("2023-11-16 18:15:50.9951690") == 4.314579
    assert clock.seconds("2023-11-17T00:00:00") == 20653.31941
    assert clock.seconds("2023-11-16 18:15:46") == -0.68059


def test_time_zones() -> None:
    """Tests that dates with zones are moments, and that those with and without do not mix."""
    clock = Clock("date")
    assert clock.seconds("2024-05-10 00:00:00.009930+00:00") == 0.0
    assert clock.seconds("2024-05-10 02:00:01.009930+02:00") == 1.0
    assert clock.seconds("2024-05-09 20:00:02.00993-04:00") == 2.0
    assert clock.seconds("2024-05-10T00:00:03.00993Z") == 3.0
    assert clock.seconds("2024-05-10 00:00:04") is None
    assert clock.expected == "a date and time with a time zone, as in the first row"


@pytest.mark.parametrize(
    "text",
    [
        "2023-02-29 00:00:00",
        "2023-11-16",
        "2023-11-16 24:00:00",
        "2023-11-16 1:00:00",
        "16/11/2023 18:15:46",
        "5",
        "2023-11-16 18:15:60",
        "2023-11-16 18:15:46.",
        "2023-11-16 18:15:46.1234567890",
        "0000-01-01 00:00:00",
        "2023-11-16 18:15:46+05:99",
    ],
)
def test_what_is_no_date(text: str) -> None:
    """Tests that days that do not exist and other notations are refused."""
    assert Clock("date").seconds(text) is None


@given(
    st.lists(
        st.datetimes(
            min_value=datetime(1, 1, 3),
            max_value=datetime(9999, 12, 29),
            timezones=st.integers(-1439, 1439).map(
                lambda minutes: timezone(timedelta(minutes=minutes))
            ),
        ),
        min_size=2,
        max_size=2,
    )
)
def test_dates_are_those_of_datetime(moments: list[datetime]) -> None:
    """Tests that differences of dates are those of the standard library."""
    clock = Clock("date")
    assert clock.seconds(moments[0].isoformat()) == 0.0
    difference = moments[1].astimezone(UTC) - moments[0].astimezone(UTC)
    assert (
        clock.seconds(moments[1].isoformat(sep=" "))
        == (difference // timedelta(microseconds=1)) / 10**6
    )


def test_units_are_known() -> None:
    """Tests that an unknown unit is refused with those that there are."""
    with pytest.raises(
        InvalidInput, match="time_unit: expected one of s, ms, us, ns, date, got 'h'"
    ):
        Clock("h")
