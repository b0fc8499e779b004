"""Timing with torch, where it is installed."""

from __future__ import annotations

from typing import Any

import pytest

from specopt import InvalidInput
from specopt.instances.checkpoints.model_config import parse_model_config
from specopt.measuring.forward_pass import ForwardPass, OutOfMemory
from specopt.measuring.measure import Settings, measure

torch: Any = pytest.importorskip("torch", reason="the extra `measure` is not installed")

TINY = parse_model_config(
    {
        "model_type": "qwen3",
        "hidden_size": 32,
        "intermediate_size": 64,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "head_dim": 16,
        "vocab_size": 50,
        "torch_dtype": "bfloat16",
    }
)


def timer() -> Any:
    """A timer on the CPU."""
    from specopt.measuring.torch_timer import TorchTimer

    return TorchTimer(device="cpu", threads=None, seed=0)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
def test_every_phase_and_data_type_runs(dtype: str) -> None:
    """Tests that prefill, decode and verification are timed in each data type, and what the rows
    say.
    """
    chosen = Settings(
        batch=(1, 2), new_tokens=(1, 3), cached_tokens=(0, 4), repeats=3, dtype=dtype, device="cpu"
    )
    found = measure([TINY], chosen)
    assert (len(found.rows), found.skipped, found.interrupted) == (8, (), False)
    for row in found.rows:
        quantiles = [row[f"seconds_{name}"] for name in ("min", "p10", "median", "p90")]
        assert quantiles[0] > 0 and quantiles == sorted(quantiles)
        assert (row["dtype"], row["torch"]) == (dtype, torch.__version__)
        assert row["device"] and row["threads"] >= 1


def test_threads_are_set() -> None:
    """Tests that the number of threads asked for is used and told, and that the caller's comes
    back.
    """
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        settings = Settings(
            batch=(1,), new_tokens=(1,), cached_tokens=(0,), repeats=1, threads=1, device="cpu"
        )
        assert measure([TINY], settings).rows[0]["threads"] == 1
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


def test_a_device_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests that a CUDA device is refused where there is none, and that `auto` then takes the
    CPU.
    """
    from specopt.measuring.torch_timer import TorchTimer

    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(InvalidInput, match=r"device: CUDA is not available"):
        measure([TINY], Settings(device="cuda"))
    assert TorchTimer(device="auto", threads=None, seed=0).kind == "cpu"


@pytest.mark.parametrize(
    "error",
    [
        MemoryError("no"),
        torch.OutOfMemoryError("no"),
        RuntimeError("DefaultCPUAllocator: can't allocate memory"),
    ],
)
def test_running_out_of_memory(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    """Tests that each way in which torch runs out of memory is one, in weights and in passes."""
    import specopt.measuring.torch_timer as module

    def fail(*_: object, **__: object) -> None:
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(module, "TorchDecoder", fail)
        with pytest.raises(OutOfMemory):
            timer().load(TINY, "float32")
    ready = timer()
    ready.load(TINY, "float32")
    monkeypatch.setattr("specopt.measuring.torch_decoder.TorchDecoder.new_cache", fail)
    with pytest.raises(OutOfMemory):
        ready.seconds(ForwardPass(batch=1, new_tokens=1, cached_tokens=0), repeats=1, warm_up=0)


def test_other_errors_are_not_taken_for_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests that a failure of another kind is not hidden."""
    import specopt.measuring.torch_timer as module

    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("shapes disagree")

    monkeypatch.setattr(module, "TorchDecoder", fail)
    with pytest.raises(RuntimeError, match="shapes disagree"):
        timer().load(TINY, "float32")


def test_free_memory_is_told() -> None:
    """Tests that the free memory of this machine is a plausible number, or unknown."""
    free = timer().free_bytes()
    assert free is None or 10**6 < free < 10**15


def test_memory_estimates_hold_what_is_allocated() -> None:
    """Tests that the estimate of a pass is at least its cache, as allocated, and its logits."""
    ready = timer()
    ready.load(TINY, "float32")
    work = ForwardPass(batch=2, new_tokens=3, cached_tokens=4)
    cache = ready._decoder.new_cache(2, 7)
    allocated = sum(part.nbytes for pair in cache for part in pair) + 4 * 2 * 3 * 50
    assert work.memory_bytes(TINY, 4) >= allocated


def test_replayed_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests that, with a recorder in a GPU's place, a pass runs beside once, is captured, and then
    replayed alone.
    """
    log: list[str] = []

    class Named:
        def __init__(self, name: str) -> None:
            self.name = name

        def wait_stream(self, other: Named) -> None:
            log.append(f"{self.name} waits for {other.name}")

        def __enter__(self) -> None:
            log.append(f"in {self.name}")

        def __exit__(self, *_: object) -> None:
            log.append(f"out of {self.name}")

        def replay(self) -> None:
            log.append("replay")

    monkeypatch.setattr(torch.cuda, "Stream", lambda: Named("side"))
    monkeypatch.setattr(torch.cuda, "current_stream", lambda: Named("main"))
    monkeypatch.setattr(torch.cuda, "stream", lambda stream: stream)
    monkeypatch.setattr(torch.cuda, "CUDAGraph", lambda: Named("graph"))
    monkeypatch.setattr(torch.cuda, "graph", lambda graph: graph)
    from specopt.measuring.torch_timer import _captured

    replay = _captured(lambda: log.append("pass"))
    before = ["side waits for main", "in side", "pass", "out of side", "main waits for side"]
    assert log == [*before, "in graph", "pass", "out of graph", "replay"]
    replay()
    assert log[-2:] == ["replay", "replay"]
    assert timer().launch == "eager"


def test_gpu_events(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests that, with events in a GPU's place, each pass lies between two of them and milliseconds
    become seconds.
    """
    log: list[str] = []

    class FakeEvent:
        def __init__(self, enable_timing: bool) -> None:
            assert enable_timing

        def record(self) -> None:
            log.append("record")

        def synchronize(self) -> None:
            log.append("wait")

        def elapsed_time(self, end: FakeEvent) -> float:
            assert end is not self
            return 2.5

    monkeypatch.setattr(torch.cuda, "Event", FakeEvent)
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: log.append("idle"))
    from specopt.measuring.torch_timer import _on_gpu

    assert _on_gpu(lambda: log.append("pass"), 2) == [0.0025, 0.0025]
    assert log == ["idle", "record", "pass", "record", "wait"] * 2


def test_the_passes_asked_for_are_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests that every pass, timed or before, is one of the decoder over the new tokens behind the
    cached ones.
    """
    from specopt.measuring.torch_decoder import TorchDecoder

    seen: list[tuple[Any, ...]] = []
    forward = TorchDecoder.forward

    def recording(self: Any, tokens: Any, cache: Any, cached: int, *rest: Any) -> Any:
        logits = forward(self, tokens, cache, cached, *rest)
        seen.append((tuple(tokens.shape), cached, tuple(logits.shape)))
        return logits

    monkeypatch.setattr(TorchDecoder, "forward", recording)
    ready = timer()
    ready.load(TINY, "float32")
    work = ForwardPass(batch=2, new_tokens=3, cached_tokens=4)
    for repeats, warm_up in ((3, 0), (1, 2)):
        seen.clear()
        assert len(ready.seconds(work, repeats=repeats, warm_up=warm_up)) == repeats
        assert seen == [((2, 3), 4, (2, 3, 50))] * 3
