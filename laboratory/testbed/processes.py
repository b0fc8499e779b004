"""The two processes of the laboratory: a draft process and a verify process, with one core and one
thread each.

The planning process communicates with each of them over a separate loopback socket. A third socket
connects the two, and each of its directions can be shaped.
"""

from __future__ import annotations

import multiprocessing
import os
import socket
import sys
import time
import traceback
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from specopt.instances.checkpoints.model_config import ModelConfig, parse_model_config
from specopt.measuring.forward_pass import ForwardPass
from specopt.measuring.processor import processor
from specopt.models.errors import InvalidInput, MissingDependency, SpecoptError
from specopt.models.fields import Ints
from testbed.decoding import greedy
from testbed.messages import Channel, Disconnected
from testbed.pairs import SIDES, Side, check_pair, load_model
from testbed.shaper import Link

if TYPE_CHECKING:
    from testbed.llama import Llama

START_SECONDS = 120.0


class ProcessFailed(SpecoptError):
    """An error in one of the processes of the laboratory, with its message."""


@dataclass(frozen=True)
class Session:
    """The objects that a process uses in a play.

    Parameters
    ----------
    pair, model
        Name of the pair, and the model of this process.
    control, peer
        Channels to the planning process and to the other process.
    """

    pair: str
    model: Llama
    control: Channel
    peer: Channel


class Worker:
    """One of the two processes, as seen from the planning process.

    Parameters
    ----------
    side
        The model that it has.
    channel
        Channel to it.
    config
        Shape of its model.
    """

    def __init__(self, side: Side, channel: Channel, config: ModelConfig) -> None:
        self.side, self.channel, self.config = side, channel, config

    def ask(self, request: str, **content: Any) -> Any:
        """Send a request and return the answer."""
        self.channel.send({"request": request, **content})
        return self.answer()

    def answer(self) -> Any:
        """Return the answer to an earlier request.

        Raises
        ------
        ProcessFailed
            If an error occurred in the process.
        """
        reply = self.channel.receive()
        if "error" in reply:
            raise ProcessFailed(f"{self.side} process: {reply['error']}")
        return reply["answer"]

    def greedy(self, prompt: Sequence[int], count: int) -> tuple[list[int], list[float]]:
        """Decode one prompt greedily; see `testbed.decoding.greedy`."""
        tokens, margins = self.ask("greedy", prompt=list(prompt), count=count)
        return tokens, margins


class ProcessTimer:
    """Times passes of the model of a process, for `specopt.measuring.measure`."""

    kind = "cpu"
    threads = 1
    launch = "eager"

    def __init__(self, worker: Worker) -> None:
        self.worker = worker
        self.device_name, self.version = worker.ask("about")

    def free_bytes(self) -> int | None:
        """Return None, because the measured model has run before."""
        return None

    def load(self, config: ModelConfig, dtype: str) -> None:
        """Check that the process has this model."""
        if config is not self.worker.config:
            raise InvalidInput(
                f"config: expected the model of the {self.worker.side} process, got {config.name}"
            )

    def seconds(self, work: ForwardPass, *, repeats: int, warm_up: int) -> list[float]:
        """Return the seconds of each pass."""
        found: list[float] = self.worker.ask(
            "seconds",
            batch=work.batch,
            new=work.new_tokens,
            cached=work.cached_tokens,
            scored=work.logit_positions,
            repeats=repeats,
            warm_up=warm_up,
        )
        return found


class Laboratory:
    """Both processes, while the `with` block is active.

    Parameters
    ----------
    pair
        Name of a pair in `testbed.pairs`.

    Raises
    ------
    MissingDependency
        If torch is not installed.
    """

    def __init__(self, pair: str = "tiny") -> None:
        require_torch()
        check_pair(pair)
        self.pair = pair
        self.draft: Worker
        self.verify: Worker
        self._processes: list[Any] = []

    def __enter__(self) -> Self:
        cores = sorted(os.sched_getaffinity(0))
        context = multiprocessing.get_context("spawn")
        listener = _listener()
        try:
            for index, side in enumerate(SIDES):
                arguments = (listener.getsockname()[1], side, self.pair, cores[index % len(cores)])
                process = context.Process(
                    target=work, args=arguments, name=f"specopt-{side}", daemon=True
                )
                process.start()
                self._processes.append(process)
                setattr(self, side, self._welcome(listener, side))
        except BaseException:
            self.close()
            raise
        finally:
            listener.close()
        port = self.verify.ask("listen")
        self.draft.ask("connect", port=port)
        self.verify.ask("accept")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        self.close()

    def play(self, name: str, **content: Any) -> None:
        """Begin a play on both sides. `finish` returns their answers."""
        for worker in (self.draft, self.verify):
            worker.channel.send({"request": "play", "name": name, **content})

    def finish(self) -> tuple[Any, Any]:
        """Return the answers of the draft and of the verify process."""
        return self.draft.answer(), self.verify.answer()

    def close(self) -> None:
        """Stop both processes."""
        for side in SIDES:
            worker = getattr(self, side, None)
            if worker is not None:
                worker.channel.close()
        for process in self._processes:
            process.join(5.0)
            if process.is_alive():
                process.terminate()
                process.join()
        self._processes = []

    def _welcome(self, listener: socket.socket, side: Side) -> Worker:
        """Return the process that connects, once its model is loaded."""
        listener.settimeout(START_SECONDS)
        try:
            connection, _ = listener.accept()
        except TimeoutError:
            raise ProcessFailed(
                f"{side} process: did not start within {START_SECONDS:g} s"
            ) from None
        connection.settimeout(None)
        channel = Channel(connection)
        reply = channel.receive()
        if "error" in reply:
            channel.close()
            raise ProcessFailed(f"{side} process: {reply['error']}")
        return Worker(side, channel, parse_model_config(reply["config"], name=reply["name"]))


def require_torch() -> None:
    """Raise if torch is not installed.

    Raises
    ------
    MissingDependency
        If it is not installed.
    """
    try:
        import torch  # noqa: F401
    except ImportError:
        raise MissingDependency(
            "the testbed needs PyTorch: pip install -r laboratory/requirements.txt"
        ) from None


def work(port: int, side: Side, pair: str, core: int) -> None:
    """Run one of the processes until the other end closes the connection."""
    os.sched_setaffinity(0, {core})
    import torch

    torch.set_num_threads(1)
    control = Channel(socket.create_connection(("127.0.0.1", port)))
    try:
        model = load_model(pair, side)
        control.send({"config": model.source, "name": f"{Path(pair).stem}-{side}"})
        _Process(side, pair, model, control).serve()
    except Disconnected:
        pass
    except Exception as error:
        traceback.print_exc(file=sys.stderr)
        control.send({"error": f"{type(error).__name__}: {error}"})
    finally:
        control.close()


class _Process:
    """The functions of a process for the planning process."""

    def __init__(self, side: Side, pair: str, model: Llama, control: Channel) -> None:
        self.side, self.pair, self.model, self.control = side, pair, model, control
        self.listener: socket.socket | None = None
        self.peer: Channel | None = None

    def serve(self) -> None:
        """Answer requests."""
        while True:
            content = self.control.receive()
            answer = getattr(self, content.pop("request"))(**content)
            self.control.send({"answer": answer})

    def about(self) -> tuple[str, str]:
        """Return the processor and the version of torch."""
        import torch

        return processor(), str(torch.__version__)

    def listen(self) -> int:
        """Return the port to which the other process connects."""
        self.listener = _listener()
        port: int = self.listener.getsockname()[1]
        return port

    def connect(self, port: int) -> None:
        """Connect to the other process."""
        self.peer = Channel(socket.create_connection(("127.0.0.1", port)))

    def accept(self) -> None:
        """Accept the connection of the other process."""
        assert self.listener is not None, "listens first"
        connection, _ = self.listener.accept()
        self.listener.close()
        self.peer = Channel(connection)

    def greedy(self, prompt: list[int], count: int) -> tuple[list[int], list[float]]:
        """Decode one prompt greedily."""
        return greedy(self.model, prompt, count)

    def seconds(
        self, batch: int, new: int, cached: int, scored: int, repeats: int, warm_up: int
    ) -> list[float]:
        """Return the processor seconds of each pass, which exclude other work on the machine."""
        cache = self.model.new_cache(batch, cached + new)
        tokens = np.random.default_rng(0).integers(self.model.shape.vocabulary, size=(batch, new))
        counts, found = np.full(batch, new), []
        for _ in range(warm_up + repeats):
            cache.lengths = np.full(batch, cached)
            begin = time.thread_time()
            self.model.logits(tokens, counts, cache, scored)
            found.append(time.thread_time() - begin)
        return found[warm_up:]

    def ragged(self, new: Ints, cached: Ints) -> float:
        """Return the processor seconds of a pass of sequences with different new and cached tokens,
        padded.
        """
        cache = self.model.new_cache(len(new), int(cached.max() + new.max()))
        cache.lengths = cached
        tokens = np.random.default_rng(0).integers(
            self.model.shape.vocabulary, size=(len(new), new.max())
        )
        begin = time.thread_time()
        self.model.logits(tokens, new, cache, int(new.max()))
        return time.thread_time() - begin

    def play(self, name: str, **content: Any) -> Any:
        """Play this side's part, which may shape its messages."""
        assert self.peer is not None, "the laboratory connects both sides first"
        self.peer.shape(Link())
        module = import_module(f"testbed.plays.{name}")
        return getattr(module, self.side)(
            Session(self.pair, self.model, self.control, self.peer), **content
        )


def _listener() -> socket.socket:
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    listener.listen(2)
    return listener
