"""The link between the machines that draft and verify, as an operator knows it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from specopt.models.errors import InvalidInput
from specopt.models.fields import Checked, NonNegative, Positive


@dataclass(frozen=True, kw_only=True)
class Link(Checked):
    """A link, alike in both directions.

    Parameters
    ----------
    bits_per_second
        What all who use it get together.
    round_trip_seconds
        There and back; None: not known.
    """

    bits_per_second: Positive
    round_trip_seconds: NonNegative | None = None

    @classmethod
    def parse(cls, text: str, where: str) -> Self:
        """Return the link that ``MBITS`` or ``MBITS,RTT_MS`` says.

        Raises
        ------
        InvalidInput
            If it says none, or a number is outside its domain.
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
