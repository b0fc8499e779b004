"""Conversion of the times in a trace into seconds. Times are numbers with a unit, or dates."""

from __future__ import annotations

import re
from datetime import datetime, timedelta

from specopt.models.arguments import one_of

UNITS = {"s": 1.0, "ms": 1e3, "us": 1e6, "ns": 1e9}
"""Mapping from the units of numeric times to the number of units per second."""

DATE = "date"
"""Name of the unit of times that are dates.

Examples are 2023-11-16 18:15:46.6805900 and 2024-05-10T00:00:00.009930+00:00.
"""

TIME_UNITS = (*UNITS, DATE)

MAX_SECONDS = 1e11
"""Upper bound on times, in seconds, which is more than 3,000 years.

The bound detects times in milliseconds since 1970 that are declared as seconds.
"""

_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_DATE = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2}[ T](?:[01][0-9]|2[0-3]):[0-9]{2}:[0-9]{2})"
    r"(?:\.([0-9]{1,9}))?(Z|[+-][0-9]{2}:[0-5][0-9])?"
)


class Clock:
    """A reader for the times in one trace.

    Dates are first converted to exact offsets from the first date, and then to floating point.

    Parameters
    ----------
    unit
        Unit of the times: "s", "ms", "us" or "ns" for numbers, or "date".

    Raises
    ------
    InvalidInput
        If the unit is unknown.
    """

    def __init__(self, unit: str) -> None:
        self.unit = one_of("time_unit", unit, TIME_UNITS)
        self._per_second = UNITS.get(unit, 1.0)
        self._origin: int | None = None
        self._zoned = False

    @property
    def expected(self) -> str:
        """Description of the expected form of a time, used in messages."""
        if self.unit != DATE:
            return f"a time in {self.unit} of less than {MAX_SECONDS * self._per_second:g}"
        if self._origin is None:
            return "a date and time such as 2023-11-16 18:15:46.68"
        return (
            f"a date and time {'with' if self._zoned else 'without'} a time zone, as in the"
            " first row"
        )

    def seconds(self, text: str) -> float | None:
        """Parse a time and return it in seconds, or return None if `text` is not a time.

        Dates are measured from the first date in the trace.
        """
        text = text.strip()
        if self.unit == DATE:
            return self._date(text)
        return self.scaled(float(text)) if _NUMBER.fullmatch(text) else None

    def scaled(self, number: float) -> float | None:
        """Convert a number in the clock's unit to seconds.

        The result is None if the number is too large.
        """
        if (
            not abs(number) < MAX_SECONDS * self._per_second
        ):  # also rejects NaN, and integers that are too large for a float
            return None
        return number / self._per_second

    def _date(self, text: str) -> float | None:
        found = _DATE.fullmatch(text)
        if found is None:
            return None
        plain, fraction, zone = found.groups()
        try:
            moment = datetime.fromisoformat(plain + (zone or ""))
        except ValueError:  # the day or the time zone does not exist
            return None
        if self._origin is not None and (zone is not None) != self._zoned:
            return None
        since = moment.replace(tzinfo=None) - datetime.min - (moment.utcoffset() or timedelta())
        nanoseconds = since // timedelta(seconds=1) * 10**9 + int((fraction or "").ljust(9, "0"))
        if self._origin is None:
            self._origin, self._zoned = nanoseconds, zone is not None
        return (nanoseconds - self._origin) / 10**9  # an exact integer, so rounded only once
