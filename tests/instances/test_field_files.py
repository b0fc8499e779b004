"""Files as people have them who run engines: each is read, or a message says what it holds."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from specopt import InvalidInput
from specopt.commands.cli import run
from specopt.instances.acceptance import read_acceptance
from specopt.instances.deployment.llama_bench import columns_by_model
from specopt.instances.runtimes.table import read_runtime_table
from specopt.instances.sweeps import read_sweeps
from specopt.models.position_acceptance import PositionAcceptance

FIELD = Path(__file__).parents[1] / "data" / "field"


def rates(name: str, mode: str | None = None) -> PositionAcceptance:
    """Acceptance by position in a file."""
    found = read_acceptance(FIELD / name, mode=mode)
    assert isinstance(found, PositionAcceptance)
    return found


def rows(source: str) -> list[tuple[str, int, int | None, float | None, float | None]]:
    """Workload, load, draft length, throughput and acceptance length of runs."""
    return [
        (
            one.point.condition.workload,
            one.point.condition.concurrency,
            one.point.draft_length,
            one.tokens_per_second,
            one.acceptance_length,
        )
        for one in read_sweeps([str(FIELD / source)]).measurements
    ]


def test_console_of_vllm_bench_serve() -> None:
    """Tests that what the benchmark prints is the run that its JSON holds, the draft length as the
    mean draft says it.
    """
    assert rows("vllm-bench-serve-console.txt") == [("", 1, 7, 184.07, 3.14)]
    (run,) = read_sweeps([str(FIELD / "vllm-bench-serve-console.txt")]).measurements
    assert run.also == {"mean_tpot_ms": 4.99, "mean_ttft_ms": 138.2, "output_tokens": 300.0}


def test_several_blocks_and_no_drafts(tmp_path: Path) -> None:
    """Tests that blocks are runs of their own, that one without drafts beside others had none, and
    that failed requests drop a run.
    """
    block = (FIELD / "vllm-bench-serve-console.txt").read_text()
    plain = block.partition("---------------Spec")[0].replace("184.07", "94.7")
    path = tmp_path / "console.txt"
    path.write_text(block + plain + block.replace("Maximum", "Failed requests: 3\nMaximum"))
    sweep = read_sweeps([path])
    assert [one.point.draft_length for one in sweep.measurements] == [7, None]
    assert "left out: 1 run with failed requests" in sweep.notes


def test_speculators_performance() -> None:
    """Tests that requests at a time are rate times latency, and that the caller says the length."""
    assert rows("speculators-perf_results.csv@3") == [
        ("HumanEval", 1, 3, 251.0, None),
        ("HumanEval", 12, 3, 1980.0, None),
        ("HumanEval", 75, 3, 5650.0, None),
    ]
    assert "rate times latency" in " ".join(
        read_sweeps([f"{FIELD / 'speculators-perf_results.csv'}@3"]).notes
    )
    with pytest.raises(InvalidInput, match="line 2, draft_length: the file does not contain it"):
        rows("speculators-perf_results.csv")


def test_speed_bench_of_llama_cpp() -> None:
    """Tests that categories are workloads, at the tokens per second of a request."""
    assert rows("llama-speed-bench.json@4") == [
        ("coding", 1, 4, 84.54, None),
        ("math", 1, 4, 69.47, None),
    ]
    with pytest.raises(
        InvalidInput, match=r"summary\[0\].draft_length: the file does not contain it"
    ):
        rows("llama-speed-bench.json")


def test_passes_of_llama_bench() -> None:
    """Tests that nanoseconds of prompts are passes by new and cached tokens, and that the slower
    model verifies.
    """
    path = FIELD / "llama-bench.csv"
    columns = columns_by_model(path, ("draft", "verify"))
    assert columns is not None
    tables = {name: read_runtime_table(path, one) for name, one in columns.items()}
    assert tables["verify"].columns.where["model_filename"] == "target.gguf"
    assert tables["draft"].seconds[0] == pytest.approx(0.00215)
    at = (tables["verify"].x[:, 0] == 16) & (tables["verify"].cached == 4096)
    assert tables["verify"].seconds[at] == pytest.approx([0.0684608])
    with pytest.raises(
        InvalidInput, match=r"one model for each of draft, got prompts of draft.gguf, t"
    ):
        columns_by_model(path, ("draft",))
    assert columns_by_model(FIELD / "speculators-acceptance.csv", ("draft",)) is None


def test_gauges_of_sglang(tmp_path: Path) -> None:
    """Tests that both gauges tell the draft length, and that one rate yields the mean length; else
    both are named.
    """
    found = rates("sglang-metrics.txt")
    assert len(found.rates) == 5
    assert found.expected_tokens(5)[-1] == pytest.approx(2.57)
    assert "same rate" in found.notes[0]
    path = tmp_path / "metrics.txt"
    text = (FIELD / "sglang-metrics.txt").read_text()
    path.write_text(text.replace("0.314", "0.9"))
    with pytest.raises(InvalidInput, match=r"an integer draft length, got 2.57 and 0.9"):
        read_acceptance(path)
    path.write_text(text.replace("spec_accept_rate", "other"))
    with pytest.raises(InvalidInput, match="expected one value of sglang:spec_accept_rate, got no"):
        read_acceptance(path)


def test_acceptance_table_of_speculators() -> None:
    """Tests that cumulative rates with their counts are conditional ones, of the subset named."""
    found = rates("speculators-acceptance.csv", "HumanEval")
    assert found.rates == pytest.approx([0.85, 0.70 / 0.85, 0.55 / 0.70])
    assert found.reached is not None and found.reached[0] == 12000.0
    with pytest.raises(InvalidInput, match="one of the subsets HumanEval, qa, got none; select"):
        rates("speculators-acceptance.csv")


def test_profile_of_modelopt(tmp_path: Path) -> None:
    """Tests that counts of accepted lengths are counts by position, and that a profile that was not
    measured is refused.
    """
    found = rates("speculation_profile.json")
    assert found.rates == pytest.approx([0.72, 475 / 720, 295 / 475])
    assert np.all(found.lower < found.rates)
    path = tmp_path / "profile.json"
    path.write_text(
        (FIELD / "speculation_profile.json").read_text().replace('"measured":true', '"measured":0')
    )
    with pytest.raises(InvalidInput, match="measured: expected true, got 0"):
        read_acceptance(path)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("sglang-metrics.txt", "expected throughput, got acceptance; use it with --acceptance"),
        ("speculators-acceptance.csv", "expected throughput, got acceptance"),
        ("speculation_profile.json", "expected throughput, got acceptance"),
        ("llama-bench.csv", "got times of passes; use it with `specopt plan --runtimes`"),
        (
            "vllm-bench-k7-failed.json",
            "every run has failed requests; run the benchmark again",
        ),
    ],
)
def test_files_that_are_no_sweeps(name: str, message: str) -> None:
    """Tests that a file with something else than throughput says where it belongs."""
    with pytest.raises(InvalidInput, match=message):
        read_sweeps([FIELD / name])


def test_failed_requests_of_the_only_runs_with_drafts_are_named(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Tests that `tune` says why no run with drafts is left if the requests of all these failed."""
    names = "vllm-bench-none.json", "vllm-bench-k7-failed.json"
    assert run(["tune", *(str(FIELD / name) for name in names)]) == 2
    said = capsys.readouterr().err
    assert "expected a run with speculation (a draft_length), got none" in said
    assert "k7-failed.json: left out: 1 run with failed requests" in said


def test_the_caller_and_the_file_are_both_named() -> None:
    """Tests that a draft length that contradicts the file is named with its source."""
    with pytest.raises(InvalidInput, match=r"expected 7, as in the file, got 3, from .*txt@3"):
        rows("vllm-bench-serve-console.txt@3")


def test_the_workload_that_lacks_a_context_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    """Tests that a context that one workload was not measured at names the workload."""
    command = ["tune", str(FIELD / "context-of-one-workload.csv"), "--context", "1000"]
    assert run(command) == 2
    said = "expected the measured range of workload 'rag', 7400 to 7400, got 1000"
    assert said in capsys.readouterr().err
    assert run([*command, "--workload", "chat"]) == 0
