"""Timer for forward passes of `TorchDecoder`.

The timer uses events on a GPU and the system clock on a CPU. This module requires torch.
"""

from __future__ import annotations

import math
import timeit
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

from specopt.instances.checkpoints.model_config import ModelConfig
from specopt.measuring.forward_pass import ForwardPass, OutOfMemory
from specopt.measuring.processor import processor
from specopt.measuring.torch_decoder import TorchDecoder
from specopt.models.errors import InvalidInput
from specopt.models.memory import free_memory

COLD_PASSES = 20
"""Number of additional warm-up passes after a decoder is loaded.

Threads, libraries and clock frequencies need time to reach full speed.
"""


class TorchTimer:
    """Timer for forward passes on one device.

    Parameters
    ----------
    device
        Device name: ``auto`` (a CUDA device if available), ``cpu`` or ``cuda``.
    threads
        Number of CPU threads; None for the default of torch.
    seed
        Seed of weights, caches and tokens.
    graphs
        Whether passes on a CUDA device are captured and replayed.

    Raises
    ------
    InvalidInput
        If CUDA is requested but not available.
    """

    def __init__(self, *, device: str, threads: int | None, seed: int, graphs: bool = True) -> None:
        has_cuda = torch.cuda.is_available()
        if device == "cuda" and not has_cuda:
            raise InvalidInput("device: CUDA is not available to torch; use `--device cpu`")
        self.kind = "cuda" if has_cuda and device != "cpu" else "cpu"
        if threads is not None:
            torch.set_num_threads(threads)
        self.threads = int(torch.get_num_threads())
        self.launch = "graph" if graphs and self.kind == "cuda" else "eager"
        self.version = str(torch.__version__)
        self.device_name = processor() if self.kind == "cpu" else str(torch.cuda.get_device_name())
        self._seed = seed
        self._decoder: TorchDecoder | None = None
        self._cold = False

    def free_bytes(self) -> int | None:
        """Return the free memory of the device in bytes, or None if it is unknown."""
        if self.kind == "cuda":
            torch.cuda.empty_cache()
            return int(torch.cuda.mem_get_info()[0])
        free = free_memory()
        return None if free == math.inf else int(free)

    def load(self, config: ModelConfig, dtype: str) -> None:
        """Create a decoder with the shape of a config, and delete the previous decoder.

        Raises
        ------
        OutOfMemory
            If the decoder's weights do not fit in memory.
        """
        self._decoder = None
        with _memory():
            self._decoder = TorchDecoder(
                config, device=torch.device(self.kind), dtype=getattr(torch, dtype), seed=self._seed
            )
        self._cold = True

    def seconds(self, work: ForwardPass, *, repeats: int, warm_up: int) -> list[float]:
        """Return the durations of `repeats` passes, in seconds, after `warm_up` untimed passes.

        The first call after `load` runs `COLD_PASSES` additional untimed passes, unless `warm_up`
        is 0.

        Raises
        ------
        OutOfMemory
            If the cache or the activations do not fit in memory.
        """
        decoder = self._decoder
        assert decoder is not None, "no decoder is loaded; call `load` first"
        with _memory(), torch.inference_mode():
            total = work.cached_tokens + work.new_tokens
            random = torch.Generator(device=decoder.device)
            random.manual_seed(self._seed)
            size = (work.batch, work.new_tokens)
            tokens = torch.randint(
                decoder.shape.vocabulary, size, device=decoder.device, generator=random
            )
            cache = decoder.new_cache(work.batch, total)
            rotation = decoder.rotation(total)
            mask = decoder.mask(work.new_tokens, work.cached_tokens)

            def one() -> None:
                decoder.forward(
                    tokens, cache, work.cached_tokens, work.logit_positions, rotation, mask
                )

            for _ in range(warm_up + (COLD_PASSES if self._cold and warm_up else 0)):
                one()
            self._cold = False
            if self.kind == "cpu":
                return timeit.repeat(one, number=1, repeat=repeats)
            return _on_gpu(_captured(one) if self.launch == "graph" else one, repeats)


def _captured(one: Any) -> Any:
    """Capture a pass as a CUDA graph, and return a function that replays the graph.

    The pass must already have run on another stream.
    """
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        one()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        one()
    graph.replay()  # the first replay loads the graph
    return graph.replay


def _on_gpu(one: Any, repeats: int) -> list[float]:
    found = []
    for _ in range(repeats):
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        torch.cuda.synchronize()
        start.record()
        one()
        end.record()
        end.synchronize()
        found.append(float(start.elapsed_time(end)) * 1e-3)
    return found


@contextmanager
def _memory() -> Iterator[None]:
    """Convert torch's out-of-memory errors in the enclosed code to `OutOfMemory`."""
    try:
        yield
    except (MemoryError, RuntimeError) as error:
        # the CPU allocator raises a plain RuntimeError
        typed = isinstance(error, MemoryError | torch.OutOfMemoryError)
        if typed or "allocate" in str(error):
            raise OutOfMemory(str(error)) from None
        raise
