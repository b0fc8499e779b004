"""Messages over a socket: the output equals the input, at the time that the link determines."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator

import numpy as np
import pytest

from testbed.messages import Channel, Disconnected, decode, encode
from testbed.shaper import Link, Shaper


@pytest.fixture
def ends() -> Iterator[tuple[Channel, Channel]]:
    """Both ends of a connection."""
    channels = [Channel(one) for one in socket.socketpair()]
    yield channels[0], channels[1]
    for channel in channels:
        channel.close()


@pytest.mark.parametrize("dtype", ["int64", "float64", "float32", "uint8"])
@pytest.mark.parametrize("shape", [(0,), (3,), (2, 0), (2, 3, 4)])
def test_arrays_come_back_as_they_were(dtype: str, shape: tuple[int, ...]) -> None:
    """Tests that received arrays have the same numbers, type and shape, and are writable."""
    array = np.arange(np.prod(shape)).reshape(shape).astype(dtype)
    found = decode(
        encode({"array": array[..., ::-1], "text": "ü", "numbers": [1, 2.5], "none": None})
    )
    assert found["array"].dtype == array.dtype
    assert found["array"].tolist() == array[..., ::-1].tolist()
    assert found["array"].flags.writeable
    assert (found["text"], found["numbers"], found["none"]) == ("ü", [1, 2.5], None)


def test_messages_arrive_in_order_however_large(ends: tuple[Channel, Channel]) -> None:
    """Tests that a sender does not wait for a busy receiver, and that no message is lost or
    reordered.
    """
    sizes = [0, 1, 3_000_000, 5, 2_000_000]
    for size in sizes:
        ends[0].send({"data": np.arange(size)})
    for size in sizes:
        assert (ends[1].receive()["data"] == np.arange(size)).all()


def test_nothing_is_handed_over_before_it_is_due(ends: tuple[Channel, Channel]) -> None:
    """Tests that two messages over a slow link take the time of its rate, overhead and delay, as
    measured by the clock.
    """
    ends[0].shape(Link(rates_bits_per_second=(1e4,), delay_seconds=0.05, message_seconds=0.01))
    begin = time.monotonic()
    dues = [ends[0].send({"number": number}, bits=500.0) - begin for number in range(2)]
    assert dues == pytest.approx([0.11, 0.17], abs=0.01)
    for number, due in enumerate(dues):
        assert ends[1].receive() == {"number": number}
        assert time.monotonic() - begin >= due


def test_flows_of_their_own_do_not_wait_for_each_other(ends: tuple[Channel, Channel]) -> None:
    """Tests that messages through separate shapers are due as if each were alone, and arrive in
    that order.
    """
    begin = time.monotonic()
    flows = [Shaper(Link(rates_bits_per_second=(rate,)), begin) for rate in (1e3, 2e3)]
    dues = [
        ends[0].send({"flow": flow}, bits=100.0, shaper=flows[flow]) - begin for flow in range(2)
    ]
    assert dues == pytest.approx([0.1, 0.05], abs=0.01)
    assert not ends[1].ready()
    for flow in (1, 0):
        assert ends[1].receive() == {"flow": flow}
        assert time.monotonic() - begin >= dues[flow]


def test_a_message_is_ready_when_it_is_due_and_can_be_taken_before(
    ends: tuple[Channel, Channel],
) -> None:
    """Tests that `due` overrides the link, that `ready` waits for it and `take` does not."""
    due = ends[0].send({"number": 0}, due=time.monotonic() + 0.05)
    while not ends[1].ready():
        assert time.monotonic() < due + 1.0
    assert time.monotonic() >= due
    late = ends[0].send({"number": 1}, due=due + 1e6)
    assert ends[1].receive() == {"number": 0}
    assert ends[1].take() == (late, {"number": 1})


def test_content_counts_with_its_bytes(ends: tuple[Channel, Channel]) -> None:
    """Tests that a message without a number of bits has the size of its content."""
    ends[0].shape(Link(rates_bits_per_second=(8e5,)))
    due = ends[0].send({"data": bytes(10_000)}) - time.monotonic()
    assert due == pytest.approx(0.1, abs=0.02)


def test_a_closed_end_is_told(ends: tuple[Channel, Channel]) -> None:
    """Tests that messages sent before closing still arrive, and that the other end then always
    detects the close.
    """
    ends[0].send({"last": 1})
    ends[0].close()
    assert ends[1].receive() == {"last": 1}
    for _ in range(2):
        with pytest.raises(Disconnected):
            ends[1].receive()


def test_what_no_message_can_hold_is_an_error() -> None:
    """Tests that other objects are rejected with their type."""
    with pytest.raises(TypeError, match="object"):
        encode({"content": object()})
