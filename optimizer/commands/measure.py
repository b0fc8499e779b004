"""The command `specopt measure`, which times the forward passes of models."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from specopt.commands.shared import (
    FOUND,
    INTERRUPTED,
    Seed,
    argument,
    check_target,
    filled,
    option,
    required,
)
from specopt.console.streams import say
from specopt.models.errors import InvalidInput


@dataclass(frozen=True, kw_only=True)
class Measure:
    """Values of the arguments and options of `specopt measure`."""

    config: list[Path] = argument("CONFIG...", "Hugging Face config.json files.")
    output: Path = required("TABLE", "Write the CSV table to this file.", "-o", "--output")
    # typer requires repeating an option for several values; a comma-separated list is shorter
    batch: str = option("N,...", "Batch sizes.", default="1,2,4,8")
    new_tokens: str = option("N,...", "New tokens per sequence of a pass.", default="1,4,16,64,256")
    cached_tokens: str = option(
        "N,...", "Tokens cached before the pass; 0: a prefill.", default="0,128,512"
    )
    repeats: int = option("N", "Number of timed passes per row.", default=10)
    warm_up: int = option("N", "Number of passes before the timed ones.", default=2)
    dtype: str | None = option("D", "Data type: float32 (default on a CPU), bfloat16 or float16.")
    device: str = option("auto|cpu|cuda", "Device to measure.", default="auto")
    threads: int | None = option("N", "Number of threads of a CPU.")
    graphs: bool = option(
        None,
        "On a GPU: replay passes as CUDA graphs, as engines do.",
        "--graphs/--no-graphs",
        default=True,
    )
    seed: Seed = 0


def measure(given: Measure) -> int:
    """Measure the duration of each forward pass of decoders with random weights.

    Use `specopt fit` to fit runtime models to the resulting table.
    """
    from specopt.instances.checkpoints.model_config import read_model_config
    from specopt.measuring.measure import Settings
    from specopt.measuring.measure import measure as run
    from specopt.models.files import write_text

    check_target(given.output, *given.config)
    lists = {
        name: numbers_of(f"--{name.replace('_', '-')}", getattr(given, name))
        for name in ("batch", "new_tokens", "cached_tokens")
    }
    settings = filled(Settings, given, **lists)
    found = run([read_model_config(path) for path in given.config], settings, verbose=True)
    for line in found.skipped:
        say(f"skipped: {line}")
    if found.rows:
        write_text(given.output, found.to_csv())
        say(f"{len(found.rows)} rows written to {given.output}")
    if found.unsteady:
        text = (
            f"warning: {found.unsteady} of {len(found.rows)} rows vary by more than half between"
            " repeats"
        )
        say(f"{text}; is there other work on the device, or too many --threads?")
    if found.interrupted:
        return INTERRUPTED
    if not found.rows:
        raise InvalidInput(
            "no pass fits into memory; measure smaller models, batches or lengths, or use another"
            " --dtype"
        )
    return FOUND


def numbers_of(option: str, text: str) -> tuple[int, ...]:
    """Parse the value of an option as comma-separated integers."""
    words = [word.strip() for word in text.split(",")]
    if not all(word.isascii() and word.isdecimal() and len(word) < 10 for word in words):
        raise InvalidInput(f"{option}: expected integers separated by commas, got {text!r}")
    return tuple(map(int, words))
