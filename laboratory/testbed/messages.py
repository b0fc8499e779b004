"""Messages between processes: a frame is its length, when it is due, and its content; arrays travel as they are.

The sender's shaper says when a message is due, and the receiver hands it over no earlier. Both read the same clock,
`time.monotonic`, which all processes of a machine share.
"""

from __future__ import annotations

import contextlib
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
        return msgspec.msgpack.Ext(1, len(head).to_bytes(2) + head + np.ascontiguousarray(value).tobytes())
    raise TypeError(f"no message can hold {type(value).__name__}")


def _array(code: int, data: memoryview) -> np.ndarray:
    assert code == 1, "arrays are the only extension"
    end = 2 + int.from_bytes(data[:2])
    dtype, shape = msgspec.msgpack.decode(data[2:end])
    return np.frombuffer(data[end:], dtype=dtype).reshape(shape).copy()


class Channel:
    """One end of a connection.

    A thread takes what arrives off the socket at once, so that a sender never waits for a busy receiver.

    Parameters
    ----------
    connection
        A connected stream socket, which the channel closes.
    link
        What this end sends through.
    """

    def __init__(self, connection: socket.socket, link: Link | None = None) -> None:
        self._connection = connection
        if connection.family == socket.AF_INET:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.shape(link or Link())
        self._arrived: queue.SimpleQueue[tuple[float, bytes] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._take, daemon=True)
        self._thread.start()

    def shape(self, link: Link) -> None:
        """Send through another link from now on; its trace begins now."""
        self.shaper = Shaper(link, time.monotonic())

    def send(self, content: dict[str, Any], *, bits: float | None = None, shaper: Shaper | None = None) -> float:
        """Send a message; return when it is due.

        Parameters
        ----------
        content
            What `encode` takes.
        bits
            What the link carries; None: as many as the content's bytes have.
        shaper
            A flow of its own beside the channel's.
        """
        data = encode(content)
        due = (shaper or self.shaper).due(time.monotonic(), 8 * len(data) if bits is None else bits)
        try:
            self._connection.sendall(_HEADER.pack(len(data), due) + data)
        except OSError:
            raise Disconnected("the other process has gone") from None
        return due

    def receive(self) -> dict[str, Any]:
        """Return the next message, when it is due.

        Raises
        ------
        Disconnected
            If the other end has closed.
        """
        item = self._arrived.get()
        if item is None:
            self._arrived.put(None)
            raise Disconnected("the other process has gone")
        due, data = item
        content = decode(data)
        wait = due - time.monotonic()
        if wait > 0.0:
            time.sleep(wait)
        return content

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
