"""Measurement of the runtimes of decoders with random weights.

Forward passes are timed on an available device. Runtime models can then be fitted to the resulting
table. Torch is imported only when the function `measure` is called.
"""

from __future__ import annotations

import dataclasses
import datetime
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from specopt.console.progress import end_progress, print_step
from specopt.instances.checkpoints.model_config import ModelConfig
from specopt.measuring.forward_pass import ForwardPass, OutOfMemory
from specopt.models.arguments import boolean, integer, one_of
from specopt.models.errors import InvalidInput
from specopt.models.extras import library
from specopt.models.fields import MAX_TOKENS, describe
from specopt.models.files import csv_text

DEVICES = ("auto", "cpu", "cuda")
DTYPES = {"float32": 4, "bfloat16": 2, "float16": 2}
"""Mapping from the data types of passes to the number of bytes per value."""

MEMORY_SHARE = 0.9
"""Maximum fraction of the free memory that a pass may need according to its estimate.

The estimate excludes the memory of libraries.
"""


STEADY_RATIO = 1.5
"""Ratio of the 90 % quantile to the 10 % quantile of a row's durations that indicates a
disturbance.

Rows with larger ratios are counted as unsteady.
"""


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Settings of a measurement.

    Parameters
    ----------
    batch
        Batch sizes. Each combination of batch size, new tokens and cached tokens yields one row.
    new_tokens
        Numbers of new tokens per sequence.
    cached_tokens
        Numbers of cached tokens per sequence; a pass with 0 cached tokens is a prefill.
    repeats
        Number of timed passes per row.
    warm_up
        Number of untimed passes before the timed passes.
    dtype
        Data type, one of `DTYPES`. None means float32 on a CPU. On a GPU, None means the type in
        the config, or bfloat16 if that type is not supported.
    device
        Device to measure, one of `DEVICES`.
    threads
        Number of CPU threads; None for the default of torch.
    seed
        Seed of weights, caches and tokens.
    graphs
        Whether passes on a GPU are replayed as CUDA graphs, as serving engines do. Without graphs,
        kernel launches dominate the time of a small model.

    Raises
    ------
    InvalidInput
        If a value is outside its domain.
    """

    batch: tuple[int, ...] = (1, 2, 4, 8)
    new_tokens: tuple[int, ...] = (1, 4, 16, 64, 256)
    cached_tokens: tuple[int, ...] = (0, 128, 512)
    repeats: int = 10
    warm_up: int = 2
    dtype: str | None = None
    device: str = "auto"
    threads: int | None = None
    seed: int = 0
    graphs: bool = True

    def __post_init__(self) -> None:
        for name, least in (("batch", 1), ("new_tokens", 1), ("cached_tokens", 0)):
            values = getattr(self, name)
            if not isinstance(values, tuple) or not values:
                raise InvalidInput(f"{name}: expected integers, got {describe(values)}")
            for value in values:
                integer(name, value, least, MAX_TOKENS)
            if len(set(values)) != len(values):
                raise InvalidInput(f"{name}: expected each number once, got {describe(values)}")
        for name, least in (("repeats", 1), ("warm_up", 0), ("seed", 0), ("threads", 1)):
            if name != "threads" or self.threads is not None:
                integer(name, getattr(self, name), least, MAX_TOKENS)
        boolean("graphs", self.graphs)
        if self.dtype is not None:
            one_of("dtype", self.dtype, DTYPES)
        one_of("device", self.device, DEVICES)

    @property
    def passes(self) -> tuple[ForwardPass, ...]:
        """Passes to time, one for each combination of batch size, new tokens and cached tokens.

        The batch size varies fastest.
        """
        return tuple(
            ForwardPass(batch=batch, new_tokens=new, cached_tokens=cached)
            for cached in self.cached_tokens
            for new in self.new_tokens
            for batch in self.batch
        )


@dataclass(frozen=True, kw_only=True)
class Measurement:
    """A table of measured passes.

    Parameters
    ----------
    rows
        Rows of the table, each a mapping from columns to values.
    skipped
        Descriptions of the skipped passes, each with the reason.
    interrupted
        Whether the user stopped the measurement.
    """

    rows: tuple[dict[str, Any], ...]
    skipped: tuple[str, ...]
    interrupted: bool

    @property
    def unsteady(self) -> int:
        """Number of rows with widely varying repeats.

        Such variation suggests that another program used the device.
        """
        return sum(row["seconds_p90"] > STEADY_RATIO * row["seconds_p10"] for row in self.rows)

    def to_csv(self) -> str:
        """Return the table as CSV with a header. The table must have at least one row."""
        rows = (
            [f"{cell:.6g}" if isinstance(cell, float) else cell for cell in row.values()]
            for row in self.rows
        )
        return csv_text([self.rows[0], *rows])


class Timer(Protocol):
    """A timer of passes on a device, implemented by `specopt.measuring.torch_timer.TorchTimer`."""

    kind: str
    device_name: str
    threads: int
    launch: str
    version: str

    def free_bytes(self) -> int | None:
        """Return the free memory of the device in bytes, or None if it is unknown."""

    def load(self, config: ModelConfig, dtype: str) -> None:
        """Create a decoder on the device, with the shape that a config specifies."""

    def seconds(self, work: ForwardPass, *, repeats: int, warm_up: int) -> list[float]:
        """Time `repeats` passes after `warm_up` untimed passes, and return their durations in
        seconds.
        """


def measure(
    configs: Sequence[ModelConfig], settings: Settings, *, verbose: bool = False
) -> Measurement:
    """Time forward passes of decoders with the shapes in `configs`.

    Passes that do not fit in memory are skipped and reported. After Ctrl-C, the rows measured so
    far are returned.

    Parameters
    ----------
    configs
        Model configs, as returned by
        `specopt.instances.checkpoints.model_config.read_model_config`.
    settings
        Passes to time, device and number of repeats.
    verbose
        Whether to print progress to stderr.

    Raises
    ------
    MissingDependency
        If torch is not installed.
    InvalidInput
        If the device is not available.
    Unsupported
        If the shape in a config is not supported.
    """
    torch = library("torch", "measuring needs PyTorch; run pip install 'specopt[measure]'")
    from specopt.measuring.torch_timer import TorchTimer

    before = torch.get_num_threads()
    try:
        timer = TorchTimer(
            device=settings.device,
            threads=settings.threads,
            seed=settings.seed,
            graphs=settings.graphs,
        )
        return measure_with(timer, configs, settings, verbose=verbose)
    finally:
        torch.set_num_threads(before)


def measure_with(
    timer: Timer, configs: Sequence[ModelConfig], settings: Settings, *, verbose: bool = False
) -> Measurement:
    """Time forward passes with `timer`; see `measure` for the other arguments."""
    _ = [config.exact for config in configs]  # rejects unsupported models before any timing
    rows: list[dict[str, Any]] = []
    skipped: list[str] = []
    interrupted = False
    try:
        for config in configs:
            dtype = settings.dtype or _default_dtype(timer, config)
            weights, start = config.parameters * DTYPES[dtype], time.monotonic()
            too_large = f"{config.name}: the weights do not fit: {_gigabytes(weights)} in {dtype}"
            free = timer.free_bytes()
            if free is not None and weights > MEMORY_SHARE * free:
                skipped.append(f"{too_large}; {_gigabytes(free)} are free")
                continue
            try:
                timer.load(config, dtype)
            except OutOfMemory:
                skipped.append(too_large)
                continue
            free = timer.free_bytes()
            for index, work in enumerate(settings.passes):
                if verbose:
                    done = f"{config.name}: {index} of {len(settings.passes)}, {work}"
                    print_step(time.monotonic() - start, done)
                reason = _does_not_fit(config, work, DTYPES[dtype], free)
                try:
                    if reason is None:
                        seconds = timer.seconds(
                            work, repeats=settings.repeats, warm_up=settings.warm_up
                        )
                        rows.append(_row(timer, config, work, settings, dtype, seconds))
                except OutOfMemory:
                    reason = "out of memory"
                if reason is not None:
                    skipped.append(f"{config.name}, {work}: {reason}")
    except KeyboardInterrupt:
        interrupted = True
    finally:
        if verbose:
            end_progress()
    return Measurement(rows=tuple(rows), skipped=tuple(skipped), interrupted=interrupted)


def _does_not_fit(
    config: ModelConfig, work: ForwardPass, value_bytes: int, free: int | None
) -> str | None:
    places = config.layout["position_rows"] - config.layout["position_offset"]
    if config.layout["position_rows"] and work.cached_tokens + work.new_tokens > places:
        return f"the model has only {places} positions"
    needed = work.memory_bytes(config, value_bytes)
    if free is not None and needed > MEMORY_SHARE * free:
        return f"the pass needs about {_gigabytes(needed)}, but only {_gigabytes(free)} are free"
    return None


def _row(
    timer: Timer,
    config: ModelConfig,
    work: ForwardPass,
    settings: Settings,
    dtype: str,
    seconds: list[float],
) -> dict[str, Any]:
    """Return the table row that describes one measured pass.

    Lengths are in tokens per sequence, and `logit_positions` counts scored positions per sequence.
    `batch_flops` is F b of Eq. 17 (paper 1). The other `batch_...` columns are sums over the batch
    of L_new, (L_cached + L_new) L_new and L_cached, the features of Eq. 18 (paper 2). `launch` is
    "graph" if passes were replayed, otherwise "eager". The date is in UTC.
    """
    low, median, high = np.quantile(seconds, [0.1, 0.5, 0.9]).tolist()
    flops, total = work.flops_per_task(config), work.cached_tokens + work.new_tokens
    return {
        "model": config.name,
        "device": timer.device_name,
        "dtype": dtype,
        "phase": work.phase,
        **dataclasses.asdict(work),
        "logit_positions": work.logit_positions,
        "flops_per_task": flops,
        "batch_flops": work.batch * flops,
        "batch_new_tokens": work.batch * work.new_tokens,
        "batch_interactions": work.batch * total * work.new_tokens,
        "batch_cached_tokens": work.batch * work.cached_tokens,
        "seconds_median": median,
        "seconds_p10": low,
        "seconds_p90": high,
        "seconds_min": min(seconds),
        "repeats": settings.repeats,
        "warm_up": settings.warm_up,
        "threads": timer.threads,
        "launch": timer.launch,
        "torch": timer.version,
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
    }


def _default_dtype(timer: Timer, config: ModelConfig) -> str:
    if timer.kind == "cpu":
        return "float32"
    return config.dtype if config.dtype in DTYPES else "bfloat16"


def _gigabytes(count: int) -> str:
    return f"{count / 1e9:.3g} GB"
