"""`specopt measure` without torch: settings, memory, table, messages. With it: test_torch_*.py."""

from __future__ import annotations

import csv
import io
import json
import sys
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from helpers import model_cases
from helpers.command_line import CommandLine
from hypothesis import given
from hypothesis import strategies as st
from strategies.model_config import configs

import specopt.measuring.measure as module
from specopt import InvalidInput, MissingDependency, Unsupported
from specopt.instances.checkpoints.model_config import ModelConfig, parse_model_config
from specopt.measuring.forward_pass import ForwardPass, OutOfMemory
from specopt.measuring.measure import Settings, measure, measure_with

LLAMA: dict[str, Any] = {
    "model_type": "llama",
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 50,
}
OPT: dict[str, Any] = {
    "model_type": "opt",
    "hidden_size": 32,
    "ffn_dim": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "vocab_size": 50,
    "max_position_embeddings": 20,
}
TINY = parse_model_config(LLAMA, name="tiny, with a comma")
SMALL = Settings(batch=(1, 3), new_tokens=(1, 4), cached_tokens=(0, 8), repeats=4, warm_up=1)


class FakeTimer:
    """A timer whose seconds are known."""

    kind = "cpu"
    device_name = "abacus"
    threads = 2
    launch = "eager"
    version = "0.0"

    def __init__(
        self, free: int | None = None, before: Callable[[ForwardPass], None] | None = None
    ) -> None:
        self.free, self.before = free, before
        self.loaded: list[tuple[str, str]] = []
        self.timed: list[ForwardPass] = []

    def free_bytes(self) -> int | None:
        """What the test says."""
        return self.free

    def load(self, config: ModelConfig, dtype: str) -> None:
        """Note it."""
        self.loaded.append((config.name, dtype))

    def seconds(self, work: ForwardPass, *, repeats: int, warm_up: int) -> list[float]:
        """1, 2, 3, ... times the batch size."""
        assert warm_up == 1
        if self.before is not None:
            self.before(work)
        self.timed.append(work)
        return [float(work.batch * index) for index in range(1, repeats + 1)]


# ---------------------------------------------------------------------------- passes


def test_phases() -> None:
    """Tests that a pass without cache is a prefill, one token a decode, several a verification that
    scores them all.
    """
    passes = [
        ForwardPass(batch=1, new_tokens=new, cached_tokens=cached)
        for new, cached in ((5, 0), (1, 9), (5, 9))
    ]
    assert [work.phase for work in passes] == ["prefill", "decode", "verify"]
    assert [work.logit_positions for work in passes] == [1, 1, 5]


def test_flops_are_those_of_the_format() -> None:
    """Tests that the operations of a pass are layers (2 W m + 4 heads head_dim m t) + 2 hidden
    vocabulary logits.
    """
    weights = 32 * 8 * (2 * 4 + 2 * 2) + 3 * 32 * 64
    work = ForwardPass(batch=7, new_tokens=5, cached_tokens=9)
    assert work.flops_per_task(TINY) == 2 * (2 * weights * 5 + 4 * 4 * 8 * 5 * 14) + 2 * 32 * 50 * 5


@given(
    configs(), st.integers(1, 9), st.integers(1, 30), st.integers(0, 30), st.sampled_from([2, 4])
)
def test_memory_grows_and_holds_cache_and_logits(
    data: dict[str, Any], batch: int, new: int, cached: int, size: int
) -> None:
    """Tests that the estimate is at least the cache and the logits, and no less for more of
    anything.
    """
    config = parse_model_config(data, value_bytes=size)
    work = ForwardPass(batch=batch, new_tokens=new, cached_tokens=cached)
    found = work.memory_bytes(config, size)
    least = batch * (
        (new + cached) * config.kv_bytes_per_token
        + work.logit_positions * data["vocab_size"] * size
    )
    assert found >= least
    for more in ((batch + 1, new, cached), (batch, new + 1, cached), (batch, new, cached + 1)):
        larger = ForwardPass(batch=more[0], new_tokens=more[1], cached_tokens=more[2])
        assert larger.memory_bytes(config, size) >= found


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"batch": (0,)}, "batch: expected an integer >= 1, got 0"),
        ({"batch": ()}, "batch: expected integers"),
        ({"batch": (1, 1)}, "batch: expected each number once"),
        ({"batch": (True,)}, "batch: expected an integer .* got True"),
        ({"new_tokens": (2.0,)}, "new_tokens: expected an integer .* got 2.0"),
        ({"cached_tokens": (-1,)}, "cached_tokens: expected an integer >= 0"),
        ({"repeats": 0}, "repeats: expected an integer >= 1"),
        ({"warm_up": -1}, "warm_up: expected an integer >= 0"),
        ({"threads": 0}, "threads: expected an integer >= 1"),
        ({"seed": -1}, "seed: expected an integer >= 0"),
        ({"dtype": "int8"}, "dtype: expected one of float32, bfloat16, float16, got 'int8'"),
        ({"device": "tpu"}, "device: expected one of auto, cpu, cuda, got 'tpu'"),
    ],
)
def test_settings_are_checked(change: dict[str, Any], message: str) -> None:
    """Tests that a setting outside its domain is refused by name."""
    with pytest.raises(InvalidInput, match=message):
        Settings(**change)


# ---------------------------------------------------------------------------- the table


def table(text: str) -> list[dict[str, str]]:
    """The rows of a CSV table, by the names of the columns."""
    return list(csv.DictReader(io.StringIO(text)))


def test_rows() -> None:
    """Tests that every combination is measured once, with quantiles of its seconds and sums over
    its batch.
    """
    timer = FakeTimer()
    found = measure_with(timer, [TINY], SMALL)
    assert (found.skipped, found.interrupted) == ((), False)
    assert timer.loaded == [("tiny, with a comma", "float32")]
    assert [(row["cached_tokens"], row["new_tokens"], row["batch"]) for row in found.rows] == [
        (cached, new, batch) for cached in (0, 8) for new in (1, 4) for batch in (1, 3)
    ]
    last = found.rows[-1]
    assert (last["phase"], last["logit_positions"]) == ("verify", 4)
    assert (last["batch_new_tokens"], last["batch_interactions"], last["batch_cached_tokens"]) == (
        12,
        3 * 4 * 12,
        24,
    )
    assert (
        last["batch_flops"]
        == 3 * last["flops_per_task"]
        == 3 * timer.timed[-1].flops_per_task(TINY)
    )
    assert (last["seconds_min"], last["seconds_median"]) == (3.0, 7.5)
    assert last["seconds_p10"] == pytest.approx(3.0 * 1.3) and last["seconds_p90"] == pytest.approx(
        3.0 * 3.7
    )


def test_csv() -> None:
    """Tests that the table reads back by its header, names with commas included."""
    found = measure_with(FakeTimer(), [TINY], SMALL)
    text = found.to_csv()
    assert text.endswith("\n") and "\r" not in text
    rows = table(text)
    assert len(rows) == len(found.rows) == 8
    assert list(rows[0]) == list(found.rows[0])
    assert {"batch_new_tokens", "batch_interactions", "batch_cached_tokens"} < set(rows[0])
    for read, row in zip(rows, found.rows, strict=True):
        assert read["model"] == "tiny, with a comma" and read["device"] == "abacus"
        assert int(read["batch_flops"]) == row["batch_flops"]
        assert float(read["seconds_median"]) == pytest.approx(row["seconds_median"], rel=1e-5)


def test_default_data_types() -> None:
    """Tests that a CPU measures single precision, a GPU the config's type or bfloat16, unless one
    is asked for.
    """
    half = parse_model_config(LLAMA | {"torch_dtype": "float16"})
    timer = FakeTimer()
    measure_with(timer, [half], SMALL)
    timer.kind = "cuda"
    measure_with(timer, [half, TINY], SMALL)
    measure_with(timer, [half], Settings(dtype="float32", repeats=1, warm_up=1))
    assert [dtype for _, dtype in timer.loaded] == ["float32", "float16", "bfloat16", "float32"]


# ---------------------------------------------------------------------------- memory


def test_what_does_not_fit_is_named_and_the_rest_measured() -> None:
    """Tests that rows beyond the memory, by estimate, are left out by name."""
    chosen = Settings(
        batch=(1, 50), new_tokens=(1, 40), cached_tokens=(0, 80), repeats=1, warm_up=1
    )
    needed = [work.memory_bytes(TINY, 4) for work in chosen.passes]
    free = int(sorted(needed)[-2] / 0.9) + 1
    found = measure_with(FakeTimer(free), [TINY], chosen)
    assert len(found.rows) == 7
    (line,) = found.skipped
    assert line.startswith(
        "tiny, with a comma, batch 50, new tokens 40, cached tokens 80: the pass needs about"
    )


def test_weights_that_do_not_fit() -> None:
    """Tests that a model whose weights do not fit is named before it is loaded, and that the next
    is measured.
    """
    large = parse_model_config(LLAMA | {"vocab_size": 100_000}, name="large")
    timer = FakeTimer(4_000_000)
    found = measure_with(timer, [large, TINY], SMALL)
    assert [name for name, _ in timer.loaded] == [TINY.name]
    assert len(found.rows) == 8
    assert found.skipped == (
        "large: the weights do not fit: 0.0257 GB in float32; 0.004 GB are free",
    )


def test_what_no_cost_model_describes_is_refused_first() -> None:
    """Tests that nothing is timed before a model is refused that has no operations to count."""
    timer, sparse = FakeTimer(), parse_model_config(model_cases.SMALL["mixtral"])
    with pytest.raises(Unsupported, match="count tokens instead"):
        measure_with(timer, [TINY, sparse], SMALL)
    assert timer.timed == []


def test_running_out_in_spite_of_the_estimate() -> None:
    """Tests that a pass that runs out of memory is named, and that the others are measured."""

    def fail(work: ForwardPass) -> None:
        if work.batch == 3 and work.cached_tokens == 0:
            raise OutOfMemory("no")

    found = measure_with(FakeTimer(before=fail), [TINY], SMALL)
    assert len(found.rows) == 6
    assert [line.rpartition(": ")[2] for line in found.skipped] == ["out of memory"] * 2


def test_learned_positions_end() -> None:
    """Tests that lengths beyond a table of learned positions are left out."""
    settings = Settings(batch=(1,), new_tokens=(4,), cached_tokens=(16, 17), repeats=1, warm_up=1)
    found = measure_with(FakeTimer(), [parse_model_config(OPT)], settings)
    assert [row["cached_tokens"] for row in found.rows] == [16]
    assert found.skipped == (
        "model, batch 1, new tokens 4, cached tokens 17: the model has only 20 positions",
    )


# ---------------------------------------------------------------------------- the command


@pytest.fixture(autouse=True)
def _config(tmp_path: Path) -> None:
    """Write a config in the working folder of commands."""
    (tmp_path / "tiny.json").write_text(json.dumps(LLAMA))


@pytest.fixture
def timer(monkeypatch: pytest.MonkeyPatch) -> FakeTimer:
    """A timer in torch's place."""
    fake = FakeTimer()

    def replaced(configs: Any, settings: Settings, *, verbose: bool = False) -> Any:
        return measure_with(fake, configs, settings, verbose=verbose)

    monkeypatch.setattr(module, "measure", replaced)
    return fake


OPTIONS = "--batch 1,2 --new-tokens '1, 4' --cached-tokens 8 --repeats 3 --warm-up 1"
COMMAND = "measure tiny.json -o table.csv"


def test_command_writes_the_table(timer: FakeTimer, cli: CommandLine) -> None:
    """Tests that the table is written, and nothing to stdout, and that rows whose repeats differ
    widely are counted in a warning.
    """
    printed = cli(f"{COMMAND} {OPTIONS}")
    assert printed.out == "" and "4 rows written to" in printed.err
    assert "warning: 4 of 4 rows vary" in printed.err
    phases = [row["phase"] for row in table(Path("table.csv").read_text())]
    assert phases == ["decode", "decode", "verify", "verify"]
    assert "warning" not in cli(f"{COMMAND} {OPTIONS} --repeats 1").err


def test_command_without_memory(timer: FakeTimer, cli: CommandLine) -> None:
    """Tests that nothing is written, and the reason said, where nothing fits."""
    timer.free = 1000
    err = cli(f"{COMMAND} {OPTIONS}", 2).err
    assert "skipped: tiny: the weights do not fit" in err and "no pass fits into memory" in err
    assert not Path("table.csv").exists()


def test_command_interrupted(timer: FakeTimer, cli: CommandLine) -> None:
    """Tests that Ctrl-C writes the rows so far and exits with 130."""

    def interrupt(work: ForwardPass) -> None:
        if work.new_tokens == 4:
            raise KeyboardInterrupt

    timer.before = interrupt
    assert "interrupted" in cli(f"{COMMAND} {OPTIONS}", 130).err
    assert len(table(Path("table.csv").read_text())) == 2


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("--batch 1,,2", ("--batch", "1,,2")),
        ("--batch 0", ("batch", "got 0")),
        ("--batch '1;2'", ("--batch", "1;2")),
        (f"--new-tokens {'9' * 5000}", ("--new-tokens",)),
        ("--repeats 0", ("repeats", "got 0")),
        ("--repeats many", ("many",)),
        ("--dtype int8", ("dtype", "int8")),
        ("--device tpu", ("device", "tpu")),
        ("--threads 0", ("threads", "got 0")),
    ],
)
def test_command_refusals(
    timer: FakeTimer, cli: CommandLine, arguments: str, words: tuple[str, ...]
) -> None:
    """Tests that each wrong option is refused in one line that names it."""
    cli.refuses(f"{COMMAND} {arguments}", *words)
    assert timer.loaded == []


def test_command_refuses_files(timer: FakeTimer, cli: CommandLine) -> None:
    """Tests that a missing config, a table over the config and a missing folder are refused before
    the work.
    """
    for named, word in (
        ("none.json -o table.csv", "none.json"),
        ("tiny.json -o tiny.json", "overwrite"),
        ("tiny.json -o no/table.csv", "no such directory"),
    ):
        cli.refuses(f"measure {named}", word)
    assert timer.loaded == []


def test_without_torch(monkeypatch: pytest.MonkeyPatch, cli: CommandLine) -> None:
    """Tests that without torch there is one message that says what to install."""
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(MissingDependency, match=r"pip install 'specopt\[measure\]'"):
        measure([TINY], Settings())
    needed = "specopt: measuring needs PyTorch; run pip install 'specopt[measure]'\n"
    assert cli(COMMAND, 2).err == needed
    assert not Path("table.csv").exists()


# ---------------------------------------------------------------------------- the table that ships


def test_the_shipped_table_is_of_the_shipped_configs() -> None:
    """Tests that each row of the measured pair is a pass of its config, and says on what, with what
    and when.
    """
    folder = files("specopt.instances.data.measured")
    rows = table((folder / "cpu-pair.csv").read_text())
    assert {row["model"] for row in rows} == {"draft-15m", "verify-100m"}
    shapes = {
        name: parse_model_config(json.loads((folder / f"{name}.config.json").read_text()))
        for name in ("draft-15m", "verify-100m")
    }
    assert {name: round(shape.parameters / 1e6) for name, shape in shapes.items()} == {
        "draft-15m": 15,
        "verify-100m": 100,
    }
    columns = list(measure_with(FakeTimer(), [TINY], SMALL).rows[0])
    for row in rows:
        work = ForwardPass(
            batch=int(row["batch"]),
            new_tokens=int(row["new_tokens"]),
            cached_tokens=int(row["cached_tokens"]),
        )
        assert list(row) == columns
        assert row["phase"] == work.phase
        assert int(row["flops_per_task"]) == work.flops_per_task(shapes[row["model"]])
        quantiles = [float(row[f"seconds_{name}"]) for name in ("min", "p10", "median", "p90")]
        assert quantiles[0] > 0 and quantiles == sorted(quantiles)
        assert (
            row["device"]
            and row["torch"]
            and row["date"]
            and row["dtype"] == "float32"
            and row["threads"] == "1"
        )
