"""Add instances from real data to the library. Their recipes contain the numbers, and
`benchmarks/library.py` solves them.

    python benchmarks/real_instances.py FOLDER

FOLDER contains the public data: `traces` (Azure, BurstGPT, Mooncake), `model_configs`, `runtimes`
(measured layer times) and `sweeps` (recorded acceptance). The records of the laboratory are in the
checkout. A line of the library with the same name is not changed. Quantities without data
(channels, deadlines, drafting devices) are drawn by the family that the instance's source names.
"""

from __future__ import annotations

import csv
import json
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import specopt
from specopt.api.generate import from_trace
from specopt.instances.checkpoints.model_config import read_model_config
from specopt.instances.rounded import rounded
from specopt.instances.traces import read_trace
from specopt.models.acceptance import rate_that_yields
from specopt.models.fields import dump
from specopt.models.files import write_text
from specopt.models.problem import Problem

ROOT = Path(__file__).parents[1]
LIBRARY = ROOT / "instances" / "data" / "library"
VERSION = 2

Found = tuple[str, Problem, str]
"""KIND/FAMILY/LABEL, the problem and its source."""

TRACES = {
    "azure": (
        "azure-2023-conv-head.csv",
        "Azure LLM inference trace 2023, conversations (CC-BY 4.0)",
    ),
    "mooncake": ("mooncake-conversation-head.jsonl", "Mooncake conversation trace (Apache-2.0)"),
    "burstgpt": ("burstgpt-excerpt.csv", "BurstGPT (CC-BY 4.0)"),
}
PASSES = "layer times of Qwen3-32B on an RTX PRO 6000 (LLMServingSim, MIT)"
PAIRS = {
    "qwen3": ("Qwen--Qwen3-0.6B", "Qwen--Qwen3-32B"),
    "llama": ("TinyLlama--TinyLlama-1.1B-Chat", "meta-llama--Llama-2-13b-hf"),
}
SERVED = (
    (20, "conservative"),
    (50, "known"),
    (100, "known"),
    (24, "together"),
    (50, "arrivals"),
    (12, "predicted"),
)
"""Tasks of an instance, and the kind of known output lengths or batching."""

ACCEPTANCE = "acceptance lengths of InferenceX (Apache-2.0)"


def pass_seconds(folder: Path) -> dict[int, float]:
    """Return the seconds of a dense pass of Qwen3-32B by number of tokens, from 64 layers and one
    embedding and last norm.
    """
    times: dict[int, float] = defaultdict(float)
    with (folder / "runtimes" / "rtx-pro-6000-qwen3-32b-dense.csv").open() as file:
        for row in csv.DictReader(file):
            often = {"embedding": 1, "final_layernorm": 1, "layernorm": 128}.get(row["layer"], 64)
            times[int(row["tokens"])] += often * float(row["time_us"]) * 1e-6
    return dict(times)


def runtimes(folder: Path, pair: tuple[str, str]) -> dict[str, Any]:
    """Return both runtimes per FLOP: the minimum time of a pass, from the bytes of the weights, and
    the slope above it.
    """
    seconds = pass_seconds(folder)
    base = read_model_config(folder / "model_configs" / "Qwen--Qwen3-32B.config.json")
    large, larger = sorted(seconds)[-9], max(seconds)
    per_flop = (seconds[larger] - seconds[large]) / ((larger - large) * 2.0 * base.parameters)
    found = {}
    for name, file in zip(("draft", "verify"), pair, strict=True):
        model = read_model_config(folder / "model_configs" / f"{file}.config.json")
        least = seconds[1] * model.parameters / base.parameters
        pieces = [
            {"seconds_per_flop": 0.0, "overhead_seconds": least},
            {"seconds_per_flop": per_flop, "overhead_seconds": 0.25 * least},
        ]
        found |= {name: dump(model.exact), f"{name}_runtime": {"pieces": pieces}}
    return found


def lengths(folder: Path) -> dict[str, list[float]]:
    """Return the recorded acceptance lengths by model, for 1, 2, ... drafts."""
    import yaml

    found = {}
    for path in sorted((folder / "sweeps" / "golden_al").glob("*.yaml")):
        for model, modes in yaml.safe_load(path.read_text()).items():
            for mode, values in modes.items():
                if isinstance(values, dict):
                    found[f"{model} {mode}"] = [float(values[k]) for k in sorted(values)]
    return found


def serving(folder: Path) -> Iterator[Found]:
    """Yield requests of three traces on two pairs of models, with padded, known or predicted
    lengths, arrivals and memory.
    """
    rates = {"qwen3": 0.72, "llama": 0.8}
    for trace, (file, source) in TRACES.items():
        for pair, models in PAIRS.items():
            data = runtimes(folder, models) | {
                "acceptance_rate": rates[pair],
                "max_speculation_length": 8,
            }
            for tasks, mode in SERVED:
                if trace == "burstgpt" and tasks > 24:
                    continue
                kind = (
                    "continuous-serving" if mode in ("together", "arrivals") else "serving-latency"
                )
                family = "arrivals" if mode == "arrivals" else "paper-1"
                rows = read_trace(
                    folder / "traces" / file,
                    start=10 * tasks if trace == "azure" else 0,
                    rows=tasks,
                )
                problem = from_trace(kind).problem(rows, family, seed=1)
                changes = data | {
                    "embedding_bits_per_token": 17.0,
                    "bandwidth_hz": 2e7,
                    "draft_memory_bytes": 24e9,
                }
                changes |= {"output_lengths": "known" if mode != "conservative" else mode}
                if mode == "predicted":
                    changes |= _samples(problem.output_tokens)  # type: ignore[attr-defined]
                if pair == "llama" and trace != "mooncake":  # whose contexts do not fit
                    changes |= {"verify_memory_bytes": 80e9}
                yield (
                    f"{kind}/{trace}/{pair}-K{len(rows)}-{mode}",
                    type(problem).from_dict(problem.to_dict() | changes),
                    f"{source}; {PASSES}; configs; channel of {kind}/paper-1",
                )


def _samples(outputs: Any) -> dict[str, Any]:
    """Return three equally likely lengths of every response: the recorded one and two possible
    predictions.
    """
    samples = [
        outputs.tolist(),
        np.maximum(1, outputs // 2).tolist(),
        (outputs + outputs // 2).tolist(),
    ]
    return {
        "output_lengths": "predicted",
        "output_samples": samples,
        "max_output_tokens": int(max(map(max, samples))),
    }


def batches(folder: Path) -> Iterator[Found]:
    """Yield contexts of two traces for one verifier with measured passes."""
    seconds = pass_seconds(folder)
    config = read_model_config(folder / "model_configs" / "Qwen--Qwen3-32B.config.json")
    slope = (seconds[max(seconds)] - seconds[1]) / (max(seconds) - 1)
    estimator = {
        "overhead_seconds": seconds[1],
        "seconds_per_new_token": slope,
        "seconds_per_interaction": slope * 1e-5,
        "seconds_per_cached_token": config.kv_bytes_per_token / 1.6e12,
    }
    for trace, requests, family in (
        ("azure", 60, "mixed"),
        ("azure", 300, "warm"),
        ("azure", 1000, "memory-bound"),
        ("azure", 400, "tight"),
        ("mooncake", 80, "mixed"),
        ("mooncake", 250, "memory-bound"),
        ("burstgpt", 40, "tight"),
    ):
        file, source = TRACES[trace]
        rows = read_trace(folder / "traces" / file, rows=requests)
        problem = from_trace("verification-batch").problem(rows, family, seed=2)
        data = problem.to_dict() | {"estimator": estimator}
        tokens = np.array(data["new_tokens"]) + np.array(data["cached_tokens"])
        data["request_memory_bytes"] = [float(t * config.kv_bytes_per_token) for t in tokens]
        data["memory_bytes"] = 30e9
        yield (
            f"verification-batch/{trace}/{family}-n{len(rows)}",
            type(problem).from_dict(data),
            f"{source}; {PASSES}; drafts and deadlines of verification-batch/{family}",
        )


def chunks(folder: Path) -> Iterator[Found]:
    """Yield prompts of the traces, split between a device and a cloud with measured passes."""
    seconds = pass_seconds(folder)
    knots = [
        tokens for tokens in sorted(seconds) if tokens in (1, 16, 64, 256, 512, 1024, 1536, 2048)
    ]
    delay = {
        "tokens": [float(t) for t in knots],
        "seconds": np.maximum.accumulate([seconds[t] for t in knots]).tolist(),
    }
    base = specopt.generate("prompt-chunking/paper-4").to_dict()
    for trace, row, stages, message in (
        ("azure", 0, 1, 0.0),
        ("azure", 7, 2, 0.003),
        ("azure", 21, 4, 0.001),
        ("mooncake", 0, 4, 0.003),
        ("mooncake", 3, 2, 0.001),
        ("mooncake", 5, 8, 0.002),
        ("burstgpt", 1, 1, 0.003),
    ):
        file, source = TRACES[trace]
        tokens = int(read_trace(folder / "traces" / file, start=row, rows=1).input_tokens[0])
        changes = {
            "prompt_tokens": tokens,
            "cloud_delay": delay,
            "pipeline_length": stages,
            "bytes_per_token": 10240.0,
            "background_tokens": 64.0,
            "message_overhead_seconds": message,
        }
        problem = specopt.PromptChunkingProblem.from_dict(base | changes)
        origin = f"{source}; {PASSES}; link of prompt-chunking/paper-4"
        yield f"prompt-chunking/{trace}/row{row}-P{stages}", problem, origin


def clients(folder: Path) -> Iterator[Found]:
    """Yield clients whose acceptance was recorded on engines and in the laboratory."""
    known = lengths(folder)
    rates = [
        min(0.98, rate_that_yields(values[3], 4))
        for values in known.values()
        if 1.0 < values[3] < 5.0
    ]
    source = f"{ACCEPTANCE}: {', '.join(known)}"
    for clients, budget in ((len(rates), 24), (8 * len(rates), 160), (100 * len(rates), 2400)):
        columns = {
            "acceptance_rates": [rates[i % len(rates)] for i in range(clients)],
            "budget_tokens": budget,
        }
        weights = [1.0 + (i * 7 % 13) / 4 for i in range(clients)]
        make = specopt.DraftAllocationProblem.from_dict
        yield (
            f"draft-allocation/recorded/N{clients}",
            make(
                {"format": "specopt/1", "kind": "draft-allocation", "weights": weights, **columns}
            ),
            source,
        )
        for fairness in (1.0, 4.0):
            data = {"format": "specopt/1", "kind": "fair-goodput", "fairness": fairness, **columns}
            if clients < 1000:
                data |= {
                    "per": "second",
                    "draft_seconds_per_token": [0.005 + 0.001 * (i % 30) for i in range(clients)],
                    "network_seconds": [0.005 + 0.002 * (i % 25) for i in range(clients)],
                    "verify_overhead_seconds": 0.046,
                    "verify_seconds_per_token": 0.00018,
                }
            name = f"fair-goodput/recorded/N{clients}-g{fairness:g}"
            yield (
                name,
                specopt.FairGoodputProblem.from_dict(data),
                f"{source}; {PASSES}; devices drawn",
            )


def laboratory() -> Iterator[Found]:
    """Yield problems that the laboratory derived from its measurements and carried out."""
    for path in sorted((ROOT / "laboratory" / "records").glob("*.json")):
        record = json.loads(path.read_text())
        seen: set[str] = set()
        for index, data in enumerate(
            record["problems"] if isinstance(record.get("problems"), list) else []
        ):
            if data.get("format") == "specopt/1":
                problem = _problem(data)
                if problem.sha256 not in seen:
                    seen.add(problem.sha256)
                    label = path.stem.removesuffix(f"-{record['pair']}").split("-", 3)[3]
                    yield (
                        f"{problem.kind}/laboratory/{label}-{index}",
                        problem,
                        f"laboratory/records/{path.name}",
                    )


def _problem(data: dict[str, Any]) -> Problem:
    from specopt.kinds import kind_of

    return kind_of(data["kind"]).problem.from_dict(data)


def main(folder: Path) -> None:
    """Append the missing instances to the library."""
    made = [found for make in (serving, batches, chunks, clients) for found in make(folder)] + list(
        laboratory()
    )
    lines: dict[str, list[str]] = defaultdict(list)
    for name, problem, source in made:
        data = rounded(problem).to_dict()
        data = {
            key: value
            for key, value in data.items()
            if key not in ("format", "kind", "name", "notes")
        }
        recipe = {
            "name": name,
            "version": VERSION,
            "size": "real",
            "seed": 0,
            "parameters": {},
            "source": source,
            "problem": data,
        }
        lines[problem.kind].append(json.dumps(recipe, separators=(",", ":"), allow_nan=False))
        print(name, len(lines[problem.kind][-1]))
    for kind, new in lines.items():
        file = LIBRARY / f"{kind}.jsonl"
        old = file.read_text().splitlines()
        known = {json.loads(line)["name"] for line in old}
        new = [line for line in new if json.loads(line)["name"] not in known]
        write_text(file, "".join(f"{line}\n" for line in (*old, *new)))
        print(f"{kind}: {len(old)} + {len(new)}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
