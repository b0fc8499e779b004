"""A link in user space: a token bucket and a delay line, which determine when the last bit of each
message arrives.

This module does not move bytes or wait. `testbed.messages` does so on a loopback socket.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from specopt.models.errors import InvalidInput
from specopt.models.fields import describe


@dataclass(frozen=True, kw_only=True)
class Link:
    """One direction of a link.

    Parameters
    ----------
    rates_bits_per_second
        A trace with the rate in each slot, which is repeated after the last one. `math.inf`
        transmits messages immediately.
    slot_seconds
        Duration of each rate.
    delay_seconds
        Time from the departure to the arrival of a bit.
    message_seconds
        Time for which each message occupies the line before its first bit, for any size.
    burst_bits
        Size of the bucket. Bits that the line could have transmitted while it was idle are sent
        immediately.
    """

    rates_bits_per_second: tuple[float, ...] = (math.inf,)
    slot_seconds: float = 1.0
    delay_seconds: float = 0.0
    message_seconds: float = 0.0
    burst_bits: float = 0.0

    def __post_init__(self) -> None:
        if not self.rates_bits_per_second or any(
            not rate > 0.0 for rate in self.rates_bits_per_second
        ):
            raise InvalidInput(
                "rates_bits_per_second: expected rates > 0, got"
                f" {describe(self.rates_bits_per_second)}"
            )
        if not 0.0 < self.slot_seconds < math.inf:
            raise InvalidInput(
                f"slot_seconds: expected a number > 0, got {describe(self.slot_seconds)}"
            )
        for name in ("delay_seconds", "message_seconds", "burst_bits"):
            if not 0.0 <= getattr(self, name) < math.inf:
                raise InvalidInput(
                    f"{name}: expected a number >= 0, got {describe(getattr(self, name))}"
                )

    def slot(self, seconds: float) -> int:
        """Return the index of the slot at a time since the start of the trace."""
        return math.floor(seconds / self.slot_seconds)

    def rate(self, slot: int) -> float:
        """Return the rate in a slot."""
        return self.rates_bits_per_second[slot % len(self.rates_bits_per_second)]

    def carried_by(self, seconds: float, bits: float) -> float:
        """Return the time at which the line, which starts at a given time, has transmitted a number
        of bits.

        Examples
        --------
        >>> Link(rates_bits_per_second=(100.0, 50.0)).carried_by(0.5, 75.0)
        1.5
        """
        slot = self.slot(seconds)
        while True:
            rate, end = self.rate(slot), (slot + 1) * self.slot_seconds
            if bits <= rate * (end - seconds):
                return seconds + bits / rate
            bits -= rate * (end - seconds)
            slot, seconds = slot + 1, end

    def capacity(self, start: float, end: float) -> float:
        """Return the bits that the line can transmit between two times."""
        if end <= start:
            return 0.0
        first, last = self.slot(start), self.slot(end)
        edges = [start, *(slot * self.slot_seconds for slot in range(first + 1, last + 1)), end]
        pieces = zip(range(first, last + 1), edges, edges[1:], strict=False)
        return sum(self.rate(slot) * (right - left) for slot, left, right in pieces if right > left)


class Shaper:
    """The state of a link: the end of its busy time, and the content of its bucket.

    Parameters
    ----------
    link
        Parameters of the link.
    start
        Start of its trace, on the clock of `due`.
    """

    def __init__(self, link: Link, start: float) -> None:
        self.link, self.start = link, start
        self._free = 0.0
        self._tokens = link.burst_bits

    def due(self, now: float, bits: float) -> float:
        """Send a message of a number of bits now, after the earlier ones. Return the arrival time
        of its last bit.
        """
        link, now = self.link, now - self.start
        if now > self._free and link.burst_bits:
            self._tokens = min(link.burst_bits, self._tokens + link.capacity(self._free, now))
        begin = max(now, self._free) + link.message_seconds
        spent = min(self._tokens, bits)
        self._tokens -= spent
        self._free = link.carried_by(begin, bits - spent)
        return self.start + self._free + link.delay_seconds
