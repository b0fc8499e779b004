"""The link between the drafting machine and the verifying machine."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from specopt.models.errors import InvalidInput
from specopt.models.fields import Checked, NonNegative, Positive


@dataclass(frozen=True, kw_only=True)
class Link(Checked):
    """A link with the same bandwidth in both directions.

    Parameters
    ----------
    bits_per_second
        Bandwidth shared by all users of the link, in bits per second.
    round_trip_seconds
        Round-trip time, in seconds; None if unknown.
    """

    bits_per_second: Positive
    round_trip_seconds: NonNegative | None = None

    @classmethod
    def parse(cls, text: str, where: str) -> Self:
        """Parse a link written as ``MBITS`` or ``MBITS,RTT_MS``.

        Raises
        ------
        InvalidInput
            If the text is malformed, or if a number is outside its domain.
        """
        megabits, comma, milliseconds = text.partition(",")
        try:
            return cls(
                bits_per_second=float(megabits) * 1e6,
                round_trip_seconds=float(milliseconds) / 1e3 if comma else None,
            )
        except (ValueError, InvalidInput):
            raise InvalidInput(
                f"{where}: expected MBITS or MBITS,RTT_MS, megabits per second > 0 and milliseconds"
                f" >= 0, got {text!r}"
            ) from None
