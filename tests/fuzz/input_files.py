"""Files that commands read beside problems, each small and valid, with the commands that read it."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

from specopt import compare, generate, solve

RUNTIME = {
    "draft": {"seconds_per_token": 2e-5, "overhead_seconds": 0.002},
    "verify": {"seconds_per_token": 2e-4, "overhead_seconds": 0.03},
}
CONFIG = {
    "model_type": "llama", "_name_or_path": "a/model", "hidden_size": 64, "intermediate_size": 128,
    "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 100,
    "torch_dtype": "bfloat16",
}  # fmt: skip
HISTOGRAM = {"acceptance_histogram": [100, 80, 60, 160], "num_draft_tokens": 1200}
PLAIN = {"acceptance_rates": [0.8, 0.7], "lower": [0.7, 0.6], "upper": [0.9, 0.8], "notes": ["from a run"]}
SCRAPE = "\n".join(
    [
        "# HELP vllm:spec_decode_num_drafts_total Number of spec decoding drafts.",
        "# TYPE vllm:spec_decode_num_drafts_total counter",
        'vllm:spec_decode_num_drafts_total{engine="0",model_name="m"} 100.0',
        'vllm:spec_decode_num_draft_tokens_total{engine="0",model_name="m"} 200.0',
        'vllm:spec_decode_num_accepted_tokens_total{engine="0",model_name="m"} 120.0',
        'vllm:spec_decode_num_accepted_tokens_per_pos_total{engine="0",model_name="m",position="0"} 80.0',
        'vllm:spec_decode_num_accepted_tokens_per_pos_total{engine="0",model_name="m",position="1"} 40.0',
    ]
)
AZURE = "TIMESTAMP,ContextTokens,GeneratedTokens\n" + "".join(
    f"2023-11-16 18:17:0{i}.9799600,{300 + i},{40 + i}\n" for i in range(5)
)
MOONCAKE = "".join(
    json.dumps({"timestamp": 100 * i, "input_length": 200 + i, "output_length": 20 + i, "hash_ids": [i]}) + "\n"
    for i in range(5)
)
SWEEP = "concurrency,draft_length,output_tokens_per_second,mean_acceptance_length,workload\n" + "".join(
    f"{batch},{length},{batch * speed},{accepted},chat\n"
    for batch in (1, 8)
    for length, speed, accepted in (("none", 80.5, ""), (1, 99.5, 1.7), (3, 90.5, 2.5))
)
NAMED = "t,p,a,who\n" + "".join(f"{i},{10 + i},{1 + i},user {i}\n" for i in range(5))
TABLE = "model,tokens,cached,time_ms\n" + "".join(
    f"{name},{tokens},0,{factor * max(4.0 + 0.002 * tokens, 1.5 + 0.06 * tokens)}\n"
    for name, factor in (("small", 1.0), ("large", 8.0))
    for tokens in (1, 2, 4, 8, 16, 32, 64, 128)
)


@dataclass(frozen=True)
class InputFile:
    """A file and who reads it.

    Parameters
    ----------
    name
        Of the file; ``records-`` begins those of a comparison's folder.
    content
        What stands in it.
    commands
        Arguments; FILE stands for the file, FOLDER for its folder, any other key of `others` for that file.
    others
        Contents of further files, valid ones, by name.
    """

    name: str
    content: Callable[[], str]
    commands: tuple[str, ...]
    others: dict[str, Callable[[], str]]

    @property
    def is_json(self) -> bool:
        """Whether the content is one JSON document."""
        return self.name.endswith(".json")


@cache
def problem(kind: str) -> str:
    """Return a small problem file."""
    families: dict[str, dict[str, Any]] = {
        "serving-latency/paper-1": {"tasks": 3, "max_output": 20},
        "draft-control/alternating": {},
        "draft-allocation/uniform": {"clients": 3},
    }
    family = next(name for name in families if name.startswith(kind))
    return json.dumps(generate(family, **families[family]).to_dict())


@cache
def result(kind: str) -> str:
    """Return the result of `problem`, as its default method gives it."""
    from specopt.models.files import from_dict

    return json.dumps(solve(from_dict(json.loads(problem(kind))), time_limit=2).to_dict())  # type: ignore[arg-type]


@cache
def records() -> str:
    """Return what a comparison of two methods keeps."""
    from specopt.models.files import from_dict

    found = from_dict(json.loads(problem("draft-allocation")))
    table = compare(["water-level", "greedy"], [found], jobs=1, time_limit=2)  # type: ignore[list-item]
    return "".join(json.dumps(record.to_dict()) + "\n" for record in table)


def _file(name: str, content: str | Callable[[], str], *commands: str, **others: str | Callable[[], str]) -> InputFile:
    def lazily(text: str | Callable[[], str]) -> Callable[[], str]:
        return text if callable(text) else lambda: text

    return InputFile(name, lazily(content), commands, {key: lazily(text) for key, text in others.items()})


_VLLM = "export vllm --max-batch 16 --max-length 4 --runtime"
_FIT = "fit FILE --x tokens --y time_ms --y-unit ms"
INPUT_FILES = (
    _file(
        "result.json",
        lambda: result("serving-latency"),
        "evaluate PROBLEM FILE",
        "simulate PROBLEM FILE --replications 3",
        "solve PROBLEM --warm-start FILE --method local-search --time-limit 0.2",
        "export csv FILE",
        "export yaml FILE",
        PROBLEM=lambda: problem("serving-latency"),
    ),
    _file(
        "policy.json",
        lambda: result("draft-control"),
        "evaluate PROBLEM FILE",
        "simulate PROBLEM FILE --replications 2 --iterations 5",
        "export csv FILE",
        PROBLEM=lambda: problem("draft-control"),
    ),
    _file(
        "config.json",
        json.dumps(CONFIG),
        "model FILE",
        "model FILE --json",
        f"{_FIT.replace('FILE', 'TABLE')} --where model=large --form linear --model FILE",
        TABLE=TABLE,
    ),
    _file("runtime.json", json.dumps(RUNTIME), f"{_VLLM} FILE --acceptance RATES", RATES=json.dumps(PLAIN)),
    _file("histogram.json", json.dumps(HISTOGRAM), f"{_VLLM} RUNTIME --acceptance FILE", RUNTIME=json.dumps(RUNTIME)),
    _file("rates.json", json.dumps(PLAIN), f"{_VLLM} RUNTIME --acceptance FILE", RUNTIME=json.dumps(RUNTIME)),
    _file(
        "scrape.txt",
        SCRAPE,
        f"{_VLLM} RUNTIME --acceptance FILE",
        f"{_VLLM} RUNTIME --acceptance FILE --before FILE",
        RUNTIME=json.dumps(RUNTIME),
    ),
    _file("azure.csv", AZURE, "import FILE --as serving-latency", "import FILE --as verification-batch"),
    _file("mooncake.jsonl", MOONCAKE, "import FILE --as serving-latency"),
    _file(
        "named.csv",
        NAMED,
        "import FILE --as serving-latency --format csv --column arrival=t --column input=p --column output=a "
        "--column name=who",
    ),
    _file(
        "table.csv",
        TABLE,
        f"{_FIT} --where model=large --form linear",
        f"{_FIT} --draft model=small --verify model=large --form roofline",
    ),
    _file("sweep.csv", SWEEP, "tune FILE --json", "tune FILE --ask --budget 2", "tune FILE --robust --engine sglang"),
    _file("weights.json", '{"1": 2.5, "8": 1}', "tune SWEEP --weights FILE", SWEEP=SWEEP),
    _file(
        "records-elsewhere.jsonl",
        records,
        "compare PROBLEM --method water-level --method greedy --time-limit 2 --jobs 1 -o FOLDER",
        PROBLEM=lambda: problem("draft-allocation"),
    ),
)  # fmt: skip
