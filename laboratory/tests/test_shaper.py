"""The shaped link: a token bucket over a trace of rates, and a delay line."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from specopt import InvalidInput
from testbed.shaper import Link, Shaper

RATES = st.lists(st.floats(1.0, 1e6), min_size=1, max_size=5).map(tuple)
LINKS = st.builds(
    Link,
    rates_bits_per_second=RATES,
    slot_seconds=st.floats(0.01, 2.0),
    delay_seconds=st.floats(0.0, 1.0),
    message_seconds=st.floats(0.0, 0.1),
    burst_bits=st.just(0.0) | st.floats(0.0, 1e5),
)
MESSAGES = st.lists(st.tuples(st.floats(0.0, 2.0), st.floats(0.0, 1e5)), min_size=1, max_size=8)


def test_messages_wait_for_those_before() -> None:
    """Tests that two messages of one second each are sent one after the other, and arrive after the
    delay.
    """
    shaper = Shaper(
        Link(rates_bits_per_second=(100.0,), delay_seconds=0.5, message_seconds=0.25), 10.0
    )
    assert shaper.due(11.0, 100.0) == 12.75
    assert shaper.due(11.5, 100.0) == 14.0
    assert shaper.due(20.0, 0.0) == 20.75


def test_rates_follow_the_trace() -> None:
    """Tests that a message during a change of the rate takes the time of both rates, also when the
    trace repeats.
    """
    link = Link(rates_bits_per_second=(100.0, 50.0), slot_seconds=1.0)
    assert Shaper(link, 0.0).due(0.5, 75.0) == 1.5
    assert Shaper(link, 0.0).due(0.0, 300.0) == 4.0
    assert Shaper(link, 0.0).due(3.0, 100.0) == 4.5


def test_bucket_lets_bursts_through() -> None:
    """Tests that bits up to the content of the bucket are sent immediately, and that idle time
    fills it up to its size.
    """
    shaper = Shaper(Link(rates_bits_per_second=(100.0,), burst_bits=150.0), 0.0)
    assert shaper.due(0.0, 100.0) == 0.0
    assert shaper.due(0.0, 150.0) == 1.0
    assert shaper.due(1.5, 50.0) == 1.5
    assert shaper.due(100.0, 250.0) == 101.0


def test_infinite_rate_carries_at_once() -> None:
    """Tests that an unshaped link only adds its delay."""
    assert Shaper(Link(delay_seconds=0.25), 0.0).due(3.0, 1e12) == 3.25


@given(link=LINKS, messages=MESSAGES)
def test_line_is_causal_and_no_faster_than_its_rates(
    link: Link, messages: list[tuple[float, float]]
) -> None:
    """Tests that messages arrive in order, after delay and overhead, and with at most the bits of
    the trace.
    """
    shaper, now, bits, last = Shaper(link, 0.0), 0.0, 0.0, -math.inf
    for wait, size in messages:
        now += wait
        due = shaper.due(now, size)
        bits += size
        assert due >= max(last, now + link.message_seconds + link.delay_seconds)
        left = due - link.delay_seconds
        assert bits <= (link.capacity(0.0, left) + link.burst_bits) * (1 + 1e-9) + 1e-6
        last = due


@settings(max_examples=25)
@given(link=LINKS, start=st.floats(0.0, 10.0), bits=st.floats(0.1, 1e5))
def test_capacity_inverts_the_time_that_bits_take(link: Link, start: float, bits: float) -> None:
    """Tests that the capacity up to the time of some bits equals these bits."""
    assert link.capacity(start, link.carried_by(start, bits)) == pytest.approx(
        bits, rel=1e-6, abs=1e-3
    )


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("rates_bits_per_second", ()),
        ("rates_bits_per_second", (1.0, 0.0)),
        ("slot_seconds", 0.0),
        ("delay_seconds", -1.0),
        ("message_seconds", math.nan),
        ("burst_bits", math.inf),
    ],
)
def test_impossible_links_are_refused(field: str, value: object) -> None:
    """Tests that an impossible link is rejected with the name of its field."""
    with pytest.raises(InvalidInput, match=field):
        Link(**{field: value})  # type: ignore[arg-type]
