"""Results of benchmarks as sweeps: what each says of a run, and what is drafted where it does not
say it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from helpers.sweeps import read_sweep

from specopt.instances.sweeps import read_sweeps
from specopt.models.errors import InvalidInput
from specopt.models.sweep import Condition, Measurement, Point, Setup, Sweep

NO_LENGTH = "draft_length: the file does not contain it"
AT_4 = {"type_": "concurrent", "streams": 4}
SGLANG = """{"max_concurrency": 8, "output_throughput": 9.0, "mean_e2e_latency_ms": 9.0,
"accept_length": 2, "server_info": %s}"""


def write(path: Path, *documents: object) -> Path:
    """Write documents, one on each line."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(map(json.dumps, documents)))
    return path


def points(sweep: Sweep) -> list[tuple[int, int | None, float | None, float | None]]:
    """Return what was measured, without names and contexts."""
    return [
        (
            one.point.condition.concurrency,
            one.point.draft_length,
            one.tokens_per_second,
            one.acceptance_length,
        )
        for one in sweep.measurements
    ]


def vllm(
    concurrency: int | None, speed: object, drafted: int | None = None, **more: Any
) -> dict[str, Any]:
    """Return a result of `vllm bench serve`; with a draft length also what it counts of drafts."""
    run: dict[str, Any] = {
        "model_id": "a/model",
        "request_rate": "inf",
        "max_concurrency": concurrency,
        "completed": 8,
        "failed": 0,
        "total_output_tokens": 900,
        "output_throughput": speed,
        "mean_ttft_ms": 11.0,
    }
    if drafted is not None:
        run |= {
            "spec_decode_acceptance_rate": 50.0,
            "spec_decode_acceptance_length": 1 + drafted / 2,
            "spec_decode_num_drafts": 100,
            "spec_decode_draft_tokens": 100 * drafted,
            "spec_decode_accepted_tokens": 50 * drafted,
            "spec_decode_per_position_acceptance_rates": [0.5] * drafted,
        }
    return run | more


def sglang(
    concurrency: int | None, speed: float | None, accepted: float | None = None, **more: Any
) -> dict[str, Any]:
    """Return a result of SGLang's benchmark."""
    return {
        "backend": "sglang",
        "dataset_name": "sharegpt",
        "request_rate": float("inf"),
        "max_concurrency": concurrency,
        "random_input_len": 1024,
        "duration": 2.0,
        "completed": 8,
        "output_throughput": speed,
        "mean_e2e_latency_ms": 9.0,
        "concurrency": 3.6,
        "accept_length": accepted,
    } | more


def guidellm(
    strategy: dict[str, Any], speed: float, errored: int = 0, setup: str = "config"
) -> dict[str, Any]:
    """Return a benchmark of GuideLLM."""
    metrics = {
        "request_totals": {
            "successful": 9,
            "errored": errored,
            "incomplete": 0,
            "total": 9 + errored,
        },
        "output_tokens_per_second": {"successful": {"mean": speed}, "total": {"mean": speed * 2}},
    }
    return {"type_": "generative_benchmark", setup: {"strategy": strategy}, "metrics": metrics}


def bundle_row(
    steps: int, topk: int, metrics: Mapping[str, tuple[float | None, float]], batch: int = 8
) -> dict[str, Any]:
    """Return a row of SpecForge's bundle."""
    entries = [
        {"Name": name, "output_throughput": one, "accept_length": two}
        for name, (one, two) in metrics.items()
    ]
    return {
        "batch_size": batch,
        "steps": steps,
        "topk": topk,
        "num_draft_tokens": steps + 1,
        "metrics": entries,
    }


def bundle(rows: list[dict[str, Any]], model: str = "m-1") -> dict[str, Any]:
    """Return a bundle of one model and one benchmark."""
    return {model: {"gsm8k": {"benchmark_name": "gsm8k", "results": rows}}}


def test_runs_of_vllm_say_how_many_positions_they_counted(tmp_path: Path) -> None:
    """Tests that results of `vllm bench serve` give load, throughput, acceptance, and K where
    drafts were counted.
    """
    path = write(tmp_path / "runs.json", vllm(4, 100.0, 3), vllm(8, 150.0, 1), vllm(4, 80.0))
    found = read_sweep(path)
    assert points(found) == [(4, 3, 100.0, 2.5), (8, 1, 150.0, 1.5), (4, None, 80.0, None)]
    assert found.notes == (
        "assumed: 1 run in which no drafts were counted had no speculation configured",
    )
    assert points(read_sweep(write(tmp_path / "list.json", [vllm(4, 100.0, 3)]))) == [
        (4, 3, 100.0, 2.5)
    ]


def test_what_the_file_does_not_say_comes_from_the_caller(tmp_path: Path) -> None:
    """Tests that a run without drafts needs its draft length said, unless another file of a
    benchmark that counts drafts has some, and that nobody may contradict the file.
    """
    plain, drafted = (
        write(tmp_path / "plain.json", vllm(4, 80.0)),
        write(tmp_path / "drafted.json", vllm(4, 90.0, 3)),
    )
    with pytest.raises(InvalidInput, match=re.escape(NO_LENGTH)):
        read_sweep(plain)
    assert points(read_sweep(plain, draft_length=0)) == [(4, 0, 80.0, None)]
    both = [(4, None, 80.0, None), (4, 3, 90.0, 2.5)]
    assert points(read_sweeps([f"{plain}@none", drafted])) == both
    found = read_sweeps([plain, drafted])
    assert points(found) == both
    assert found.notes == (
        f"{plain}: assumed: 1 run in which no drafts were counted had no speculation configured, as"
        f" {drafted} counts them",
    )
    assert points(read_sweeps([f"{plain}@0", drafted]))[0] == (4, 0, 80.0, None)
    older = vllm(4, 80.0)
    del older["failed"]
    for document in (
        {"benchmarks": [guidellm(AT_4, 80.0)]},
        vllm(4, 80.0, model_id="another/model"),
        older,
        sglang(4, 80.0, server_info={"model_path": "a/model"}),
    ):
        other = write(tmp_path / "other.json", document)
        with pytest.raises(InvalidInput, match=re.escape(NO_LENGTH)):
            read_sweeps([other, drafted])
    mixed = write(tmp_path / "mixed.json", vllm(4, 80.0), vllm(4, 90.0, 3, model_id="another"))
    with pytest.raises(InvalidInput, match=re.escape(NO_LENGTH)):
        read_sweep(mixed)
    with pytest.raises(InvalidInput, match="draft_length: expected 3, as in the file, got 5"):
        read_sweep(drafted, draft_length=5)
    varied = write(tmp_path / "varied.json", vllm(4, 90.0, 3, spec_decode_draft_tokens=170))
    with pytest.raises(InvalidInput, match="for a file that counts drafts, got 'none'"):
        read_sweep(varied, draft_length=None)
    assert points(read_sweep(varied, draft_length=3)) == [(4, 3, 90.0, 2.5)]


@pytest.mark.parametrize(
    ("parameters", "expected"),
    [
        ('{"num_speculative_tokens": "2"}', 2),
        ('{"draft_length": "none"}', None),
        ('{"speculative_config.num_speculative_tokens": 2}', 2),
        ('{"speculative-config.num_speculative_tokens": 2}', 2),
        ('{"speculative_config": {"method": "ngram", "num_speculative_tokens": 2}}', 2),
        (
            r"""{"speculative_config": "{\"method\": \"ngram\", \"num_speculative_tokens\": 2}"}""",
            2,
        ),
        (
            """{"speculative_config": "{'method': 'ngram', 'num_speculative_tokens': 2}"}""",
            2,
        ),
        ('{"speculative_config": "none"}', None),
        (
            """{"num_speculative_tokens": 5,
            "speculative_config.num_speculative_tokens_per_batch_size": [[1, 64, 0]]}""",
            0,
        ),
        (
            """{"speculative_config.num_speculative_tokens_per_batch_size":
            "[[1, 8, 2], [9, 64, 0]]"}""",
            2,
        ),
        (
            """{"num_speculative_tokens": 2,
            "num_speculative_tokens_per_batch_size": [[1, 2, 3], [5, 64, 4]]}""",
            2,
        ),
    ],
)
def test_parameters_of_the_server(tmp_path: Path, parameters: str, expected: int | None) -> None:
    """Tests that the draft length is found among the parameters of a sweep, or in metadata, however
    spelt.
    """
    found = read_sweep(write(tmp_path / "run.json", vllm(8, 100.0, **json.loads(parameters))))
    assert points(found) == [(8, expected, 100.0, None)]


def test_runs_that_no_sweep_can_hold_are_counted(tmp_path: Path) -> None:
    """Tests that runs with a changing draft length, no fixed load, failures or no throughput are
    left out by reason.
    """
    varying: dict[str, Any] = {
        "speculative_config.num_speculative_tokens_per_batch_size": [[1, 2, 3], [3, 64, 0]]
    }
    runs = [
        vllm(8, 9.0, 3),
        vllm(8, 9.0, **varying),
        vllm(None, 9.0, 3),
        vllm(8, 9.0, 3, failed=2),
        vllm(8, 0.0, 3),
    ]
    found = read_sweep(write(tmp_path / "runs.json", *runs))
    assert points(found) == [(8, 3, 9.0, 2.5)]
    assert set(found.notes) == {
        "left out: 1 run whose draft length changes with the batch size",
        "left out: 1 run without a fixed concurrency",
        "left out: 1 run with failed requests",
        "left out: 1 run without throughput",
    }


def test_folder_and_tables_of_a_sweep(tmp_path: Path) -> None:
    """Tests that a folder of `vllm bench sweep` reads as its summary.csv does, each run once."""
    table = (
        ","
        + ",".join(
            ["run_number", "max_concurrency", "output_throughput", "speculative_config", "failed"]
        )
        + "\n"
    )
    for number, (config, speed) in enumerate(
        [({}, 80.0), ({"num_speculative_tokens": 3, "method": "ngram"}, 95.5)]
    ):
        more = {"run_number": 0} | ({"speculative_config": config} if config else {})
        folder = tmp_path / "sweep" / f"SERVE--{number}-BENCH-"
        write(folder / "summary.json", [vllm(8, speed, 3 if config else None, **more)])
        write(folder / "run=0.json", vllm(8, speed, 3 if config else None, **more))
        table += f'{number},0,8,{speed},"{config or ""}",0.0\n'
    write(tmp_path / "sweep" / "serve_params.json", [{"speculative_config": {}}])
    assert points(read_sweep(tmp_path / "sweep")) == [(8, None, 80.0, None), (8, 3, 95.5, 2.5)]
    (tmp_path / "summary.csv").write_text(table)
    assert points(read_sweep(tmp_path / "summary.csv")) == [
        (8, None, 80.0, None),
        (8, 3, 95.5, None),
    ]


def test_folder_of_single_results(tmp_path: Path) -> None:
    """Tests that a folder of single results is read whole, and that one without results is
    refused.
    """
    write(tmp_path / "b" / "one.json", vllm(8, 80.0, 3))
    write(tmp_path / "b" / "one.pytorch.json", [{"benchmark": {}}])
    write(tmp_path / "b" / "two.json", vllm(4, 50.0, 3))
    assert points(read_sweep(tmp_path / "b")) == [(8, 3, 80.0, 2.5), (4, 3, 50.0, 2.5)]
    (tmp_path / "empty").mkdir()
    with pytest.raises(InvalidInput, match="expected 1 to 10,000 JSON result files, got 0"):
        read_sweep(tmp_path / "empty")
    write(tmp_path / "b" / "params.json", [{"max_concurrency": 3}])
    with pytest.raises(InvalidInput, match=r"b: params.json, expected a CSV table"):
        read_sweep(tmp_path / "b")


def test_workloads_and_contexts(tmp_path: Path) -> None:
    """Tests that data sets are workloads, and that prompts of one length are the context."""
    runs = [
        vllm(4, 9.0, 3, dataset_name="random", random_input_len=400),
        vllm(4, 7.0, 3, random_input_len=4000),
    ]
    found = read_sweep(write(tmp_path / "runs.json", *runs))
    assert found.conditions == (Condition(4, "", 4000), Condition(4, "random", 400))
    other = read_sweep(write(tmp_path / "sglang.jsonl", sglang(4, 9.0)), draft_length=None)
    assert other.conditions == (Condition(4, "sharegpt"),)


def test_lines_of_sglang(tmp_path: Path) -> None:
    """Tests that lines of SGLang's benchmark give load, throughput and acceptance; infinite rates
    do not matter.
    """
    path = write(
        tmp_path / "runs.jsonl", sglang(8, 100.0, 2.5), sglang(8, 60.0), sglang(None, 50.0, 2.25)
    )
    assert points(read_sweep(path, draft_length=3)) == [
        (8, 3, 100.0, 2.5),
        (8, None, 60.0, None),
        (4, 3, 50.0, 2.25),
    ]
    with pytest.raises(InvalidInput, match=re.escape(f"run 1, {NO_LENGTH}")):
        read_sweep(path)


def test_arguments_of_the_server_of_sglang(tmp_path: Path) -> None:
    """Tests that newer lines say the draft length themselves, of a decoding server too, and whether
    they are trees.
    """
    chain = {"model_path": "m", "speculative_num_steps": 3, "speculative_eagle_topk": 1}
    runs = [
        sglang(8, 100.0, 2.5, server_info=chain),
        sglang(8, 99.0, 2.5, server_info=chain | {"speculative_eagle_topk": 4}),
        sglang(8, 98.0, 2.5, server_info={"prefill": [], "decode": [chain]}),
        sglang(8, 60.0, server_info={"model_path": "m", "speculative_num_steps": None}),
    ]
    found = read_sweep(write(tmp_path / "runs.jsonl", *runs))
    assert points(found) == [
        (8, 3, 100.0, 2.5),
        (8, 3, 99.0, 2.5),
        (8, 3, 98.0, 2.5),
        (8, None, 60.0, None),
    ]
    assert [m.setup.topk for m in found.measurements] == [1, 4, 1, 1]


def test_report_of_guidellm(tmp_path: Path) -> None:
    """Tests that benchmarks of GuideLLM at a fixed concurrency are read, old and new, and others
    counted.
    """
    benchmarks = [
        guidellm(
            {"type_": "concurrent", "streams": 8, "max_concurrency": 8, "worker_count": 8}, 100.0
        ),
        guidellm({"type_": "synchronous"}, 30.0),
        guidellm({"type_": "throughput", "max_concurrency": 16}, 150.0, setup="args"),
        guidellm({"type_": "constant", "rate": 2.0, "max_concurrency": 512}, 20.0),
        guidellm({"type_": "concurrent", "streams": 32}, 449_358.0, errored=3),
    ]
    path = write(
        tmp_path / "benchmarks.json",
        {"metadata": {"version": 1}, "args": {}, "benchmarks": benchmarks},
    )
    found = read_sweep(path, draft_length=5)
    assert points(found) == [(8, 5, 100.0, None), (1, 5, 30.0, None), (16, 5, 150.0, None)]
    assert found.notes == (
        "left out: 1 run without a fixed concurrency",
        "left out: 1 run with failed requests",
    )
    with pytest.raises(InvalidInput, match=re.escape(f"benchmarks[0].{NO_LENGTH}")):
        read_sweep(path)


def test_bundle_of_spec_forge(tmp_path: Path) -> None:
    """Tests that a bundle is read, its baseline once, trees as options of their own, and that
    failures are counted.
    """
    base = {"Wihtout EAGLE3": (10.0, 1.0)}
    rows = [
        bundle_row(3, 1, {**base, "d": (20.0, 2.5)}),
        bundle_row(5, 1, {**base, "d": (25.0, 3.5)}),
        bundle_row(5, 3, {**base, "d": (22.0, 3.0)}),
        bundle_row(7, 1, {**base, "d": (0.0, 0.0)}),
        bundle_row(9, 1, {**base, "d": (None, 3.0)}),
        bundle_row(3, 1, {"Without EAGLE3": (4.0, 1.0)}, batch=1),
    ]
    found = read_sweep(write(tmp_path / "bundle.json", bundle(rows)))
    chain, tree = Setup("d"), Setup("d", topk=3)
    assert found.setups == (chain, tree)
    assert points(found.of(chain)) == [
        (8, None, 10.0, None),
        (8, 3, 20.0, 2.5),
        (8, 5, 25.0, 3.5),
        (1, None, 4.0, None),
    ]
    assert points(found.of(tree)) == [
        (8, None, 10.0, None),
        (8, 5, 22.0, 3.0),
        (1, None, 4.0, None),
    ]
    assert found.workloads == ("gsm8k",)
    assert found.notes == ("left out: 2 runs without throughput",)


def test_one_model_and_one_draft(tmp_path: Path) -> None:
    """Tests that of several models one must be chosen, of drafts one may be, and that the baseline
    stays.
    """
    rows = [
        bundle_row(3, 1, {"Wihtout EAGLE3": (10.0, 1.0), "d-1": (20.0, 2.5), "d-2": (15.0, 2.0)})
    ]
    path = write(tmp_path / "bundle.json", bundle(rows) | bundle(rows, "m-2"))
    with pytest.raises(InvalidInput, match="model: expected one of m-1, m-2; got none"):
        read_sweep(path)
    with pytest.raises(InvalidInput, match="drafter: expected one of d-1, d-2; got 'd'"):
        read_sweep(path, model="m-2", draft="d")
    assert points(read_sweep(path, model="m-2", draft="d-2")) == [
        (8, None, 10.0, None),
        (8, 3, 15.0, 2.0),
    ]
    other = write(tmp_path / "run.json", vllm(8, 9.0, 3))
    with pytest.raises(InvalidInput, match="model: expected one of a/model, m-1, m-2; got none"):
        read_sweeps([path, other])
    with pytest.raises(
        InvalidInput,
        match="model: the files name no model; got 'm'",
    ):
        read_sweep(write(tmp_path / "nameless.json", vllm(8, 9.0, 3, model_id=None)), model="m")


BAD_RUNS = [
    ('{"output_throughput": "x"}', "output_throughput: expected a number, got 'x'"),
    ('{"output_throughput": Infinity}', "output_throughput: expected a finite number, got inf"),
    (
        f'{{"output_throughput": 1{"0" * 400}}}',
        "output_throughput: expected a finite number, got 1000",
    ),
    (
        '{"output_throughput": -3}',
        "output_tokens_per_second: expected a number in (0, 1e+18), got -3.0",
    ),
    ('{"max_concurrency": true}', "max_concurrency: expected an integer, got True"),
    ('{"max_concurrency": 0}', "concurrency: expected an integer from 1 to 65,536, got 0"),
    (
        f'{{"max_concurrency": {"[" * 900 + "]" * 900}}}',
        "max_concurrency: expected an integer, got",
    ),
    (
        '{"spec_decode_acceptance_length": 7.0}',
        "mean_acceptance_length: expected at most 4",
    ),
    (
        '{"num_speculative_tokens": 2.5}',
        "num_speculative_tokens: expected an integer, got 2.5",
    ),
    (
        '{"num_speculative_tokens": -1}',
        "draft_length: expected an integer from 0 to 1,000, got -1",
    ),
    ('{"speculative_config": 3}', "speculative_config: expected an object, got 3"),
    (
        '{"num_speculative_tokens_per_batch_size": [[1, 2]]}',
        "expected ranges [first batch, last batch, dr",
    ),
    (
        r'{"model_id": "\u001b]0;t\u0007"}',
        "model: expected a name of at most 200 printable characters",
    ),
    (
        r'{"model_id": "\ud800"}',
        r"model: expected a name of at most 200 printable characters, got '\ud800",
    ),
    ('{"dataset_name": ["a"]}', "dataset_name: expected a string, got ['a']"),
    ('{"spec_decode_num_drafts": 5e-324}', NO_LENGTH),
]
"""Changes of a run, and the field that each harms."""

BAD_FILES = [
    (
        '{"a": 1}',
        "run.json: expected a CSV table (concurrency, draft_length,"
        " output_tokens_per_second), results of",
    ),
    ("[]", "expected at least one run with throughput"),
    ("[3]", "the top level: expected an object, got 3"),
    ('[{"output_throughput": 9}, []]', "run 2: expected an object, got []"),
    (SGLANG % "[1]", "server_info: expected an object, got [1]"),
    (SGLANG % '{"decode": {"a": 1}}', "server_info.decode: expected a list, got {'a': 1}"),
    ('{"benchmarks": [3]}', "benchmarks[0]: expected an object, got 3"),
    ('{"benchmarks": [{"metrics": 3}]}', "benchmarks[0].metrics: expected an object, got 3"),
    (
        '{"m": {"gsm8k": {"results": [{"metrics": [{}]}]}}}',
        "m.gsm8k.results[0].batch_size: expected an integer, got ''",
    ),
    (
        '{"m": {"gsm8k": {"results": [{"steps": 3, "topk": 1, "batch_size": 8, "metrics":'
        ' [{"Name": "d", "output_throughput": 9.0, "accept_length": 9.5}]}]}}}',
        "metrics[0].mean_acceptance_length: expected at most 4",
    ),
    (
        r'{"m-1": {"gsm8k": {"results": []}}, "\u001b[31m": 3}',
        r"\x1b[31m: expected an object, got 3",
    ),
    ('{"a": 1', "expected JSON: "),
    ('{"a": 1}\n{"a": ', "line 2: expected JSON: "),
    (
        '{"output_throughput": 1, "output_throughput": 2}',
        "field 'output_throughput' appears twice",
    ),
    (f'{{"output_throughput": {"1" * 5000}}}', "expected JSON: Exceeds the limit"),
    ("[" * 100_000, "expected JSON: maximum recursion depth"),
    ('{"a": "\udcff"}', "expected text in UTF-8: "),
]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        *(
            (json.dumps(vllm(8, 9.0, 3) | json.loads(change)), message)
            for change, message in BAD_RUNS
        ),
        *BAD_FILES,
    ],
)
def test_bad_files_name_the_place(tmp_path: Path, content: str, message: str) -> None:
    """Tests that a refused value is named by file and field, and that what is no JSON, or not that
    of a benchmark, is refused where it is, nothing unescaped. Deep nesting and long numbers end in
    no traceback; a number of drafts next to 0 says nothing of their length.
    """
    path = tmp_path / "run.json"
    path.write_bytes(content.encode("utf-8", "surrogateescape"))
    with pytest.raises(InvalidInput, match=re.escape(message)) as refusal:
        read_sweep(path)
    assert "run.json: " in str(refusal.value)
    assert str(refusal.value).isprintable()


def test_one_run_is_one_measurement(tmp_path: Path) -> None:
    """Tests that a byte-order mark and spaces before JSON do not matter, and a run keeps all that
    it says.
    """
    path = tmp_path / "run.json"
    run = vllm(8, 9.5, 3, workload="chat", context_tokens=500)
    path.write_text("\ufeff\n " + json.dumps(run, indent=1), encoding="utf-8")
    also = {"mean_ttft_ms": 11.0, "output_tokens": 112.5}
    assert read_sweep(path) == Sweep(
        (Measurement(Point(Condition(8, "chat", 500), 3), 9.5, 2.5, also=also),)
    )


def test_methods_are_drafters(tmp_path: Path) -> None:
    """Tests that runs with other methods of drafting are no repetitions of each other, however they
    are spelt.
    """
    own = {"num_speculative_tokens": 3}
    flat: dict[str, Any] = {
        "speculative_config.num_speculative_tokens": 3,
        "speculative_config.method": "mtp",
    }
    results = [
        vllm(8, 80.0, speculative_config="none"),
        vllm(8, 95.0, speculative_config=json.dumps(own | {"method": "eagle3"})),
        vllm(8, 90.0, **flat),
        vllm(8, 85.0, num_speculative_tokens=3, drafter="ngram"),
    ]
    found = read_sweep(write(tmp_path / "runs.json", results))
    assert [m.setup.drafter for m in found.measurements] == ["", "eagle3", "mtp", "ngram"]
    assert [len(found.of(setup).measurements) for setup in found.setups] == [2, 2, 2]


def test_times_are_read_under_one_name(tmp_path: Path) -> None:
    """Tests that times per token, percentiles and waits are found in every benchmark's results."""
    found = {
        "mean_tpot_ms": 20.0,
        "p50_tpot_ms": 19.0,
        "p99_tpot_ms": 33.0,
        "mean_ttft_ms": 90.0,
        "output_tokens": 64.0,
    }
    said: dict[str, Any] = {
        "mean_tpot_ms": 20.0,
        "median_tpot_ms": 19.0,
        "p99_tpot_ms": 33.0,
        "mean_ttft_ms": 90.0,
    }
    counted = {"completed": 8, "total_output_tokens": 512}
    guide = guidellm({"type_": "concurrent", "streams": 8}, 300.0)
    guide["metrics"] |= {
        "inter_token_latency_ms": {
            "successful": {"mean": 20.0, "percentiles": {"p50": 19.0, "p95": 30.0, "p99": 33.0}}
        },
        "time_per_output_token_ms": {"successful": {"mean": 21.4}},
        "time_to_first_token_ms": {"successful": {"mean": 90.0}},
        "output_token_count": {"successful": {"mean": 64.0}},
    }
    for result in (
        vllm(8, 300.0, **said, **counted),
        sglang(8, 300.0, **said, **counted),
        {"benchmarks": [guide]},
    ):
        (run,) = read_sweep(write(tmp_path / "run.json", result), draft_length=None).measurements
        assert run.also == found
