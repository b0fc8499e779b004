"""Carry out plans of prompt-chunking: hidden states of a real prompt are sent up chunk by chunk,
and sent back.

The draft process is the device, which has the first and the last layers of the verify model. The
verify process is the cloud, which has the layers between. The link is shaped in both directions.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from specopt.models.fields import Floats
from specopt.models.prompt_chunking.problem import PromptChunkingPlan, PromptChunkingProblem
from testbed.pairs import load_model
from testbed.processes import Laboratory, Session
from testbed.shaper import Link

if TYPE_CHECKING:
    from testbed.llama import Llama


@dataclass(frozen=True, kw_only=True, eq=False)
class Run:
    """The measurements of a run, in seconds since the device began.

    Parameters
    ----------
    first_token_seconds, token
        Time of the first token, and the token.
    device, cloud
        Start and end of the computation of each chunk there.
    """

    first_token_seconds: float
    token: int
    device: Floats
    cloud: Floats


def play(
    laboratory: Laboratory,
    problem: PromptChunkingProblem,
    plan: PromptChunkingPlan,
    prompt: Sequence[int],
) -> Run:
    """Carry out a plan for a prompt with the number of tokens of the problem."""
    links = [
        (8.0 * problem.uplink_bytes_per_second, problem.message_overhead_seconds),
        (8.0 * problem.downlink_bytes_per_second, 0.0),
    ]
    laboratory.play(
        "prompt_chunking",
        prompt=list(prompt),
        chunks=plan.chunks.tolist(),
        links=links,
        delay=problem.link_latency_seconds,
        bits=8.0 * problem.bytes_per_token,
    )
    told, clouds = laboratory.finish()
    begin = told["begin"]
    return Run(
        first_token_seconds=told["end"] - begin,
        token=told["token"],
        device=np.array(told["times"]) - begin,
        cloud=np.array(clouds) - begin,
    )


def draft(
    session: Session,
    prompt: list[int],
    chunks: list[int],
    links: list[list[float]],
    delay: float,
    bits: float,
) -> dict[str, Any]:
    """Play the device."""
    device = Device(session.pair, len(prompt))
    session.peer.shape(_link(links[0], delay))
    assert session.peer.receive() == {"ready": True}
    times, done = [], 0
    begin = time.monotonic()
    for size in chunks:
        start = time.monotonic()
        hidden = device.shallow(prompt[done : done + size], done)
        times.append((start, time.monotonic()))
        session.peer.send({"hidden": hidden, "done": done}, bits=bits * size)
        done += size
    deep = np.concatenate([session.peer.receive()["hidden"] for _ in chunks], axis=1)
    token = device.head(deep)
    return {"begin": begin, "end": time.monotonic(), "token": token, "times": times}


def verify(
    session: Session,
    prompt: list[int],
    chunks: list[int],
    links: list[list[float]],
    delay: float,
    bits: float,
) -> list[tuple[float, float]]:
    """Play the cloud."""
    cloud = Cloud(session.model, len(prompt))
    session.peer.send({"ready": True})
    session.peer.shape(_link(links[1], delay))
    times = []
    for _ in chunks:
        content = session.peer.receive()
        start = time.monotonic()
        hidden = cloud.middle(content["hidden"], content["done"])
        times.append((start, time.monotonic()))
        session.peer.send({"hidden": hidden}, bits=bits * hidden.shape[1])
    return times


class Device:
    """The first and the last layers of the verify model."""

    def __init__(self, pair: str, room: int) -> None:
        self.model = _verify_model(pair)
        self.first, self.last = split(self.model)
        self.cache = self.model.new_cache(1, room)

    def shallow(self, tokens: Sequence[int], done: int) -> Floats:
        """Return the hidden states after the first layers, following tokens that were processed
        before.
        """
        import torch

        with torch.inference_mode():
            self.cache.lengths = np.array([done])
            hidden: Floats = self.model.run(
                self.model.embed(np.array([tokens])), self.cache, self.first
            ).numpy()
        return hidden

    def head(self, hidden: Floats) -> int:
        """Return the first token, from the hidden states of the complete prompt that enter the last
        layers.
        """
        import torch

        with torch.inference_mode():
            self.cache.lengths = np.zeros(1, dtype=np.int64)
            deep = self.model.run(torch.from_numpy(hidden), self.cache, self.last)
            return int(self.model.score(deep, np.array([hidden.shape[1]]), 1)[0, 0].argmax())


class Cloud:
    """The layers between."""

    def __init__(self, model: Llama, room: int) -> None:
        self.model = model
        first, last = split(model)
        self.layers = range(first.stop, last.start)
        self.cache = model.new_cache(1, room)

    def middle(self, hidden: Floats, done: int) -> Floats:
        """Return the hidden states after these layers, following tokens that were processed
        before.
        """
        import torch

        with torch.inference_mode():
            self.cache.lengths = np.array([done])
            found: Floats = self.model.run(
                torch.from_numpy(hidden), self.cache, self.layers
            ).numpy()
        return found


def split(model: Llama) -> tuple[range, range]:
    """Return the layers of the device: the first two and the last, or only the first of two
    layers.
    """
    layers = model.shape.layers
    return (
        (range(2), range(layers - 1, layers)) if layers > 3 else (range(1), range(layers, layers))
    )


def seconds_of(function: Callable[[], object], repeats: int) -> float:
    """Return the median seconds of a function, after one warm-up call."""
    found = []
    for _ in range(repeats + 1):
        begin = time.perf_counter()
        function()
        found.append(time.perf_counter() - begin)
    return float(np.median(found[1:]))


def _link(one: list[float], delay: float) -> Link:
    rate, cost = one
    return Link(rates_bits_per_second=(rate,), delay_seconds=delay, message_seconds=cost)


@cache
def _verify_model(pair: str) -> Llama:
    return load_model(pair, "verify")
