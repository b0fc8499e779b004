"""Files that commands read beside problems, each small and valid, with the commands that read
it.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

from specopt import Problem, compare, generate, solve
from specopt.measuring.client import PROMPTS

RUNTIME = {
    "draft": {"seconds_per_token": 2e-5, "overhead_seconds": 0.002},
    "verify": {"seconds_per_token": 2e-4, "overhead_seconds": 0.03},
}
FLOP_RUNTIME = {
    "draft": {"seconds_per_flop": 2e-14, "overhead_seconds": 0.002},
    "verify": {"seconds_per_flop": 2e-13, "overhead_seconds": 0.03},
}
CONFIG = {
    "model_type": "llama",
    "_name_or_path": "a/model",
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 100,
    "torch_dtype": "bfloat16",
}
HISTOGRAM = {"acceptance_histogram": [100, 80, 60, 160], "num_draft_tokens": 1200}
PLAIN = {
    "acceptance_rates": [0.8, 0.7],
    "lower": [0.7, 0.6],
    "upper": [0.9, 0.8],
    "notes": ["from a run"],
}
SCRAPE = "\n".join(
    [
        "# HELP vllm:spec_decode_num_drafts_total Number of spec decoding drafts.",
        "# TYPE vllm:spec_decode_num_drafts_total counter",
        'vllm:spec_decode_num_drafts_total{engine="0",model_name="m"} 100.0',
        'vllm:spec_decode_num_draft_tokens_total{engine="0",model_name="m"} 200.0',
        'vllm:spec_decode_num_accepted_tokens_total{engine="0",model_name="m"} 120.0',
        (
            'vllm:spec_decode_num_accepted_tokens_per_pos_total{engine="0",model_name="m",position="0"}'
            " 80.0"
        ),
        (
            'vllm:spec_decode_num_accepted_tokens_per_pos_total{engine="0",model_name="m",position="1"}'
            " 40.0"
        ),
    ]
)
AZURE = "TIMESTAMP,ContextTokens,GeneratedTokens\n" + "".join(
    f"2023-11-16 18:17:0{i}.9799600,{300 + i},{40 + i}\n" for i in range(5)
)
MOONCAKE = "".join(
    json.dumps(
        {"timestamp": 100 * i, "input_length": 200 + i, "output_length": 20 + i, "hash_ids": [i]}
    )
    + "\n"
    for i in range(5)
)
SWEEP = (
    "concurrency,draft_length,output_tokens_per_second,mean_acceptance_length,workload\n"
    + "".join(
        f"{batch},{length},{batch * speed},{accepted},chat\n"
        for batch in (1, 8)
        for length, speed, accepted in (("none", 80.5, ""), (1, 99.5, 1.7), (3, 90.5, 2.5))
    )
)
DRAFTERS = (
    "concurrency,drafter,mode,topk,draft_length,workload,output_tokens_per_second,mean_tpot_ms,p99_tpot_ms,"
    "mean_ttft_ms,output_tokens,watts\n"
    + "".join(
        f"{batch},{drafter},{mode},{topk},{length},{name},{batch * speed},{900 / speed},"
        f"{1500 / speed},30,100,250\n"
        for batch in (1, 8)
        for name in ("chat", "code")
        for drafter, mode, topk, length, speed in (
            ("", "", "", "none", 80.5),
            ("mtp", "fixed", 1, 3, 99.5),
            ("mtp", "adaptive", "", 5, 97.5),
            ("eagle3", "", 4, 3, 90.5),
        )
    )
)
LOADS = json.dumps(
    {
        "settings": (
            "any model, own, 60 s, prompts"
            f" {hashlib.sha256(repr((PROMPTS, (256,))).encode()).hexdigest()[:12]}"
        ),
        "loads": [
            {
                "concurrency": batch,
                "configured": 3,
                "load": {
                    "tokens_per_second": 95.0 * batch,
                    "first_token_seconds": 0.1,
                    "acceptance_length": 2.25,
                    "deviation": 0.01,
                    "counted": [100.0, 300.0, 70.0, 40.0, 15.0],
                },
            }
            for batch in (1, 8)
        ],
    }
)
"""Whole: `validate` shows them without a server."""
_VALIDATE = "--endpoint http://127.0.0.1:9 --patience 1 --draft-length 3"
NAMED = "t,p,a,who\n" + "".join(f"{i},{10 + i},{1 + i},user {i}\n" for i in range(5))
TABLE = "model,tokens,cached,time_ms\n" + "".join(
    f"{name},{tokens},0,{factor * max(4.0 + 0.002 * tokens, 1.5 + 0.06 * tokens)}\n"
    for name, factor in (("small", 1.0), ("large", 8.0))
    for tokens in (1, 2, 4, 8, 16, 32, 64, 128)
)


Content = str | Callable[[], str]


def text_of(content: Content) -> str:
    """Return the text, which may be made when it is asked for."""
    return content if isinstance(content, str) else content()


@dataclass(frozen=True)
class InputFile:
    """A file and who reads it.

    Parameters
    ----------
    name
        Name of the file; ``records-`` begins those of a comparison's folder.
    content
        Valid content of the file.
    commands
        Arguments; FILE stands for the file, FOLDER for its folder, any key of `others` or `KNOWN`
        for that file.
    others
        Contents of further files, valid ones, by name.
    """

    name: str
    content: Content
    commands: tuple[str, ...]
    others: dict[str, Content]

    @property
    def is_json(self) -> bool:
        """Whether the content is one JSON document."""
        return self.name.endswith(".json")


FAMILIES: dict[str, dict[str, Any]] = {
    "serving-latency/paper-1": {"tasks": 3, "max_output": 20},
    "draft-control/alternating": {},
    "draft-allocation/uniform": {"clients": 3},
    "fair-goodput/per-second": {"clients": 3, "budget": 5},
    "verification-batch/warm": {},
    "prompt-chunking/paper-4": {},
    "draft-stopping/mixed": {},
}


def small(kind: str) -> Problem:
    """Return a small problem."""
    family = next(name for name in FAMILIES if name.startswith(kind))
    return generate(family, **FAMILIES[family])


@cache
def problem(kind: str) -> str:
    """Return a small problem file."""
    return json.dumps(small(kind).to_dict())


@cache
def result(kind: str) -> str:
    """Return the result of `problem`, as its default method gives it."""
    return json.dumps(solve(small(kind), time_limit=2).to_dict())


@cache
def records() -> str:
    """Return what a comparison of two methods keeps."""
    problems = [small("draft-allocation")]
    table = compare(["water-level", "greedy"], problems, jobs=1, time_limit=2)
    return "".join(json.dumps(record.to_dict()) + "\n" for record in table)


def _file(name: str, content: Content, *commands: str, **others: Content) -> InputFile:
    return InputFile(name, content, commands, others)


KNOWN: dict[str, Content] = {
    "PROBLEM": partial(problem, "serving-latency"),
    "RESULT": partial(result, "serving-latency"),
    "CONFIG": json.dumps(CONFIG),
    "RUNTIME": json.dumps(RUNTIME),
    "FLOPS": json.dumps(FLOP_RUNTIME),
    "RATES": json.dumps(PLAIN),
    "TRACE": AZURE,
    "TABLE": TABLE,
    "SWEEP": SWEEP,
    "LOADS": LOADS,
}
"""Valid files that a command may name."""


def known_files(command: str, folder: Path, **others: Content) -> dict[str, Path]:
    """Write the files that a command names, of others and of `KNOWN`, and return their paths."""
    found = {}
    for name, content in (KNOWN | others).items():
        if name in command.split():
            text = text_of(content)
            found[name] = folder / f"{name.lower()}{'.json' if text.startswith('{') else '.csv'}"
            found[name].write_text(text)
    return found


_VLLM = "export vllm --max-batch 16 --max-length 4 --runtime"
_FIT = "fit FILE --x tokens --y time_ms --y-unit ms"
_PLAN = (
    "plan --draft CONFIG --verify FILE --runtimes RUNTIME --trace TRACE --tasks 2 --time-limit 0.1"
    " --for"
)
_REPORTS = (
    "report FILE -o PAGE",
    "report FILE --problem PROBLEM -o PAGE",
    "evaluate PROBLEM FILE --json",
)
_SWEPT = ("tune FILE --json", "report FILE -o PAGE")
_VLLM_RUN: dict[str, Any] = {
    "model_id": "a/model",
    "max_concurrency": 8,
    "completed": 8,
    "failed": 0,
    "output_throughput": 90.5,
    "request_rate": "inf",
    "total_output_tokens": 900,
    "mean_ttft_ms": 11.0,
}
BENCH = _VLLM_RUN | {
    "output_throughput": 99.5,
    "spec_decode_acceptance_rate": 50.0,
    "spec_decode_acceptance_length": 2.8,
    "spec_decode_num_drafts": 500,
    "spec_decode_draft_tokens": 1500,
    "spec_decode_accepted_tokens": 900,
    "spec_decode_per_position_acceptance_rates": [1.0, 0.6, 0.2],
}
SGLANG = [
    {
        "backend": "sglang",
        "max_concurrency": batch,
        "completed": 8,
        "output_throughput": 99.0,
        "accept_length": 2.5,
    }
    for batch in (1, 8)
]
GUIDELLM = {
    "metadata": {"version": 1},
    "benchmarks": [
        {
            "config": {"strategy": {"type_": "concurrent", "streams": 8, "max_concurrency": 8}},
            "metrics": {
                "request_totals": {"successful": 9, "errored": 0, "incomplete": 0, "total": 9},
                "output_tokens_per_second": {"successful": {"mean": 9.0}, "total": {"mean": 18.0}},
            },
        }
    ],
}
GOLDEN = (
    "some-model:\n  on-mode:\n    1: 1.84\n    2: 2.51\n    3: 2.97\n  other:\n    1: 1.9\n   "
    " 3: 3\n"
)
LOG = "round,outcome,margin,entropy\n" + "".join(
    f"{one},{1 if token < one % 4 else -1 if token > one % 4 else 0},{0.1 * one % 1:.3f},{token}\n"
    for one in range(40)
    for token in range(3)
)
INPUT_FILES = (
    _file(
        "result.json",
        partial(result, "serving-latency"),
        "evaluate PROBLEM FILE --acceptance 0.6:0.9 --samples 3",
        "simulate PROBLEM FILE --replications 3",
        "solve PROBLEM --warm-start FILE --method exact --time-limit 0.2",
        "export csv FILE",
        "export yaml FILE",
        *_REPORTS,
    ),
    *(
        _file(
            f"{kind}.json",
            partial(result, kind),
            *_REPORTS,
            "export csv FILE",
            PROBLEM=partial(problem, kind),
        )
        for kind in (
            "draft-allocation",
            "fair-goodput",
            "verification-batch",
            "prompt-chunking",
            "draft-stopping",
        )
    ),
    *(
        _file(
            f"{kind}-problem.json",
            partial(problem, kind),
            "evaluate FILE RESULT",
            "report RESULT --problem FILE -o PAGE",
            "solve FILE --time-limit 0",
            "solve FILE --time-limit 0.05 --json",
            RESULT=partial(result, kind),
        )
        for kind, _, _ in (family.partition("/") for family in FAMILIES)
    ),
    _file(
        "problem.json",
        partial(problem, "serving-latency"),
        "sensitivity FILE --time-limit 0",
        "front FILE --field bandwidth_hz --values 1e6,1e8 --time-limit 0",
        "export FILE --as lp -o PAGE",
    ),
    _file(
        "records-here.jsonl",
        records,
        "compare --table FOLDER",
        "report FOLDER -o PAGE",
        "compare --table FOLDER --json",
    ),
    _file(
        "golden.yaml",
        GOLDEN,
        f"{_VLLM} RUNTIME --acceptance FILE --mode other --extrapolate",
        f"{_VLLM} RUNTIME --acceptance FILE --mode on-mode",
    ),
    *(
        _file(name, content, f"{_VLLM} RUNTIME --acceptance FILE")
        for name, content in (
            ("own.json", '{"acceptance_lengths": {"1": 1.5, "2": 1.9, "4": 2.4}, "level": 0.9}'),
            ("bench.json", json.dumps(BENCH)),
            ("histogram.json", json.dumps(HISTOGRAM)),
            ("rates.json", json.dumps(PLAIN)),
        )
    ),
    _file("runs.json", json.dumps([_VLLM_RUN, BENCH]), *_SWEPT),
    _file(
        "sglang.jsonl",
        "".join(json.dumps(run) + "\n" for run in SGLANG),
        "tune FILE@3 SWEEP --json",
        "report FILE@3 SWEEP -o PAGE",
    ),
    _file("guidellm.json", json.dumps(GUIDELLM), "tune FILE@none SWEEP --json"),
    _file(
        "log.csv",
        LOG,
        "fit-predictor FILE --draft-seconds 0.001 --round-seconds 0.03 --json",
        "fit-predictor FILE --draft-seconds 0.001 --round-seconds 0.03 --feature margin --bins 3"
        " --max-draft 2",
    ),
    _file(
        "verify.json",
        json.dumps(CONFIG),
        f"{_PLAN.replace('RUNTIME', 'FLOPS')} serving-latency",
        f"{_PLAN} vllm --acceptance RATES",
        f"{_PLAN} prompt-chunking",
        f"{_PLAN} fair-goodput",
    ),
    _file(
        "passes.json",
        json.dumps(FLOP_RUNTIME),
        f"{_PLAN.replace('FILE', 'CONFIG').replace('RUNTIME', 'FILE')} serving-latency",
        "generate serving-latency/paper-1 --param tasks=2 --runtimes FILE",
        "import TRACE --as serving-latency --tasks 2 --runtimes FILE",
    ),
    _file(
        "policy.json",
        partial(result, "draft-control"),
        "evaluate PROBLEM FILE",
        "simulate PROBLEM FILE --replications 2 --iterations 5",
        "export csv FILE",
        PROBLEM=partial(problem, "draft-control"),
    ),
    _file(
        "config.json",
        json.dumps(CONFIG),
        "model FILE",
        "model FILE --json",
        f"{_FIT.replace('FILE', 'TABLE')} --where model=large --form linear --model FILE",
    ),
    _file(
        "runtime.json",
        json.dumps(RUNTIME),
        f"{_VLLM} FILE --acceptance RATES",
    ),
    _file(
        "scrape.txt",
        SCRAPE,
        f"{_VLLM} RUNTIME --acceptance FILE",
        f"{_VLLM} RUNTIME --acceptance FILE --before EARLIER",
        f"{_VLLM} RUNTIME --acceptance LATER --before FILE",
        EARLIER=re.sub(r"0\.0$", ".0", SCRAPE, flags=re.MULTILINE),
        LATER=re.sub(r"([0-9]+)\.0$", r"\g<1>0.0", SCRAPE, flags=re.MULTILINE),
    ),
    _file(
        "azure.csv",
        AZURE,
        "import FILE --as serving-latency",
        "import FILE --as verification-batch",
    ),
    _file("mooncake.jsonl", MOONCAKE, "import FILE --as serving-latency"),
    _file(
        "named.csv",
        NAMED,
        "import FILE --as serving-latency --format csv --column arrival=t --column input=p --column"
        " output=a",
    ),
    _file(
        "table.csv",
        TABLE,
        f"{_FIT} --where model=large --form linear",
        f"{_FIT} --draft model=small --verify model=large --form roofline",
    ),
    _file(
        "sweep.csv",
        SWEEP,
        "tune FILE --json",
        "tune FILE --ask --budget 2",
        "tune FILE --robust --engine sglang",
        "tune FILE --tpot 9 --extrapolate --max-length 4",
        "report FILE -o PAGE",
    ),
    _file(
        "drafters.csv",
        DRAFTERS,
        "tune FILE --tpot 12@p99 --ttft 40 --json",
        "tune FILE --mix chat=0.9,code=0.1 --price 2",
        "tune FILE --per joule --engine sglang",
        "tune FILE --ask --robust --workload chat",
        "report FILE -o PAGE",
    ),
    _file("loads.json", LOADS, f"validate SWEEP --record FILE {_VALIDATE} --json"),
    _file(
        "predicted.csv",
        SWEEP,
        f"validate FILE --record LOADS {_VALIDATE} --acceptance-output PAGE",
    ),
    _file("weights.json", '{"1": 2.5, "8": 1}', "tune SWEEP --weights FILE"),
    _file(
        "records-elsewhere.jsonl",
        records,
        "compare PROBLEM --method water-level --method greedy --time-limit 2 --jobs 1 -o FOLDER",
        PROBLEM=lambda: problem("draft-allocation"),
    ),
)
