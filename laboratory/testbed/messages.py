"""Messages between processes. A frame consists of its length, its due time and its content. Arrays
are sent without conversion.

The shaper of the sender determines when a message is due, and `receive` does not return it earlier.
Both use the same clock, `time.monotonic`, which all processes of a machine share.
"""

from __future__ import annotations

import contextlib
import heapq
import queue
import socket
import struct
import threading
import time
from typing import Any

import msgspec
import numpy as np

from specopt.models.errors import SpecoptError
from testbed.shaper import Link, Shaper

_HEADER = struct.Struct("!Qd")


class Disconnected(SpecoptError):
    """The other end of a connection has gone."""


def encode(content: dict[str, Any]) -> bytes:
    """Return the bytes of a message: numbers, texts, lists, dicts and arrays of numbers.

    Examples
    --------
    >>> decode(encode({"tokens": np.arange(3), "step": 1}))
    {'tokens': array([0, 1, 2]), 'step': 1}
    """
    return msgspec.msgpack.encode(content, enc_hook=_plain)


def decode(data: bytes) -> dict[str, Any]:
    """Return the content of a message."""
    found: dict[str, Any] = msgspec.msgpack.decode(data, ext_hook=_array)
    return found


def _plain(value: object) -> object:
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray):
        head = msgspec.msgpack.encode((value.dtype.str, value.shape))
        return msgspec.msgpack.Ext(
            1, len(head).to_bytes(2) + head + np.ascontiguousarray(value).tobytes()
        )
    raise TypeError(f"no message can hold {type(value).__name__}")


def _array(code: int, data: memoryview) -> np.ndarray:
    assert code == 1, "arrays are the only extension"
    end = 2 + int.from_bytes(data[:2])
    dtype, shape = msgspec.msgpack.decode(data[2:end])
    return np.frombuffer(data[end:], dtype=dtype).reshape(shape).copy()


class Channel:
    """One end of a connection.

    A thread reads arriving data from the socket immediately, so that a sender never waits for a
    busy receiver.

    Parameters
    ----------
    connection
        A connected stream socket. The channel closes it.
    link
        Link through which this end sends.
    """

    def __init__(self, connection: socket.socket, link: Link | None = None) -> None:
        self._connection = connection
        if connection.family == socket.AF_INET:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.shape(link or Link())
        self._arrived: queue.SimpleQueue[tuple[float, bytes] | None] = queue.SimpleQueue()
        self._waiting: list[
            tuple[float, int, dict[str, Any]]
        ] = []  # a heap, by due time and then by arrival
        self._taken, self._closed = 0, False
        self._thread = threading.Thread(target=self._take, daemon=True)
        self._thread.start()

    def shape(self, link: Link) -> None:
        """Send through another link from now on. Its trace begins now."""
        self.shaper = Shaper(link, time.monotonic())

    def send(
        self,
        content: dict[str, Any],
        *,
        bits: float | None = None,
        shaper: Shaper | None = None,
        due: float | None = None,
    ) -> float:
        """Send a message and return its due time.

        Parameters
        ----------
        content
            Content that `encode` accepts.
        bits
            Number of bits on the link. None means the size of the content.
        shaper
            A separate flow instead of that of the channel.
        due
            Due time that overrides the link.
        """
        data = encode(content)
        if due is None:
            due = (shaper or self.shaper).due(
                time.monotonic(), 8 * len(data) if bits is None else bits
            )
        try:
            self._connection.sendall(_HEADER.pack(len(data), due) + data)
        except OSError:
            raise Disconnected("the other process has gone") from None
        return due

    def receive(self) -> dict[str, Any]:
        """Return the message that is due first, once it is due.

        Raises
        ------
        Disconnected
            If the other end has closed.
        """
        while (wait := self._due() - time.monotonic()) > 0.0:
            with contextlib.suppress(queue.Empty):  # a message that is due earlier may arrive
                self._keep(self._arrived.get(timeout=wait))
        return self.take()[1]

    def ready(self) -> bool:
        """Return whether a message is due."""
        while not self._arrived.empty():
            self._keep(self._arrived.get())
        return bool(self._waiting) and self._waiting[0][0] <= time.monotonic()

    def take(self) -> tuple[float, dict[str, Any]]:
        """Return the message that is due first and its due time, without waiting until then.

        Raises
        ------
        Disconnected
            If the other end has closed.
        """
        due = self._due()
        return due, heapq.heappop(self._waiting)[-1]

    def _due(self) -> float:
        """Return the due time of the first message, after waiting for one."""
        while not self._waiting:
            if self._closed:
                raise Disconnected("the other process has gone")
            self._keep(self._arrived.get())
        return self._waiting[0][0]

    def _keep(self, item: tuple[float, bytes] | None) -> None:
        if item is None:
            self._closed = True
        else:
            due, data = item
            self._taken += 1
            heapq.heappush(self._waiting, (due, self._taken, decode(data)))

    def close(self) -> None:
        """Close the connection."""
        with contextlib.suppress(OSError):  # the other end was quicker
            self._connection.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._connection.close()

    def _take(self) -> None:
        try:
            while (header := self._read(_HEADER.size)) is not None:
                size, due = _HEADER.unpack(header)
                data = self._read(size)
                if data is None:
                    break
                self._arrived.put((due, data))
        except OSError:
            pass
        self._arrived.put(None)

    def _read(self, size: int) -> bytes | None:
        parts = bytearray(size)
        view, filled = memoryview(parts), 0
        while filled < size:
            count = self._connection.recv_into(view[filled:])
            if count == 0:
                return None
            filled += count
        return bytes(parts)
