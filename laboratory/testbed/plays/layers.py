"""Times of the parts of a split model, the device's and the cloud's layers, by the tokens of a
chunk.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from testbed.plays.prompt_chunking import Cloud, Device, seconds_of
from testbed.processes import Session


def draft(session: Session, sizes: list[int], done: int, repeats: int) -> dict[str, list[float]]:
    """Return the seconds of the device, which runs the first layers and the last ones with the
    head.
    """
    room = done + max(sizes)
    device = Device(session.pair, room)
    hidden = np.repeat(device.shallow([1], 0), room, axis=1)
    return {
        "shallow": [
            seconds_of(partial(device.shallow, [1] * size, done), repeats) for size in sizes
        ],
        "head": [seconds_of(partial(device.head, hidden[:, :size]), repeats) for size in sizes],
    }


def verify(session: Session, sizes: list[int], done: int, repeats: int) -> dict[str, list[float]]:
    """Return the seconds of the cloud."""
    cloud = Cloud(session.model, done + max(sizes))
    hidden = np.repeat(Device(session.pair, 1).shallow([1], 0), max(sizes), axis=1)
    return {
        "middle": [
            seconds_of(partial(cloud.middle, hidden[:, :size], done), repeats) for size in sizes
        ]
    }
