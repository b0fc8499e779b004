"""Writes docs/questions.md: questions of operators, each with its command and the output."""

from __future__ import annotations

import shlex
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs/questions.md"
DATA, FIELD = "tests/data/sweeps", "tests/data/field"
HEAD = """# Questions

Each question is followed by the command that answers it and by excerpts of the output (`...` marks
omissions). Run the commands from the root of a checkout. `tests/data/sweeps/README.md` lists the
sources of the data.
"""
NGRAM, DRAFT = "laboratory/engine/ngram.csv", "laboratory/engine/draft-model.csv"
QWEN, DRAFTERS = f"{DATA}/qwen3-235b-sglang.csv", f"{DATA}/qwen3.8-27b-rtx3090-drafters.csv"
BUNDLE, LATENCY, CONTEXTS = (
    f"{DATA}/{name}"
    for name in ("specbundle-excerpt.json", "made-up-latency.csv", "reported-contexts.csv")
)
CPU = "instances/data/measured"
MODELS = f"--draft {CPU}/draft-15m.config.json --verify {CPU}/verify-100m.config.json"
PAIR = f"{MODELS} --runtimes {CPU}/cpu-pair.csv"
CONFIGS = (
    f"--draft-config {CPU}/draft-15m.config.json --verify-config {CPU}/verify-100m.config.json"
)

QUESTIONS = (
    ("Which draft length for which load?", f"tune {NGRAM}", ("batch size", "Configuration")),
    ("Does my draft model pay off at all?", f"tune {DRAFT}", ("batch size", "Note: leave")),
    ("At what acceptance would it pay off?", f"tune {DRAFT}", ("Break-even",)),
    (
        "How far can acceptance fall before two drafts no longer pay off?",
        f"tune {DRAFTERS} --workload all --draft mtp",
        ("Break-even",),
    ),
    ("Is a table of lengths worth what it costs?", f"tune {QWEN}", ("Note: a table",)),
    (
        "My engine is SGLang, and nobody has measured it without speculation.",
        f"tune {QWEN} --engine sglang",
        ("batch size", "Note: no row", "Configuration"),
    ),
    (
        "And TensorRT-LLM?",
        f"tune {QWEN} --engine tensorrt-llm --engine-version 1.3.0rc8",
        ("Note: for 1.3", "Configuration"),
    ),
    (
        "And llama.cpp, which takes one length?",
        f"tune {NGRAM} --engine llama.cpp",
        ("batch size", "Configuration"),
    ),
    (
        "How many requests at a time get a token every 30 ms?",
        f"tune {QWEN} --engine sglang --tpot 30",
        ("Capacity",),
    ),
    ("And at the 99th percentile?", f"tune {LATENCY} --tpot 30@p99", ("Capacity",)),
    (
        "And with the first token within half a second?",
        f"tune {LATENCY} --tpot 30 --ttft 500",
        ("Drafter", "Capacity"),
    ),
    (
        "I must not be slower than without speculation, at any load.",
        f"tune {LATENCY} --robust",
        ("Drafter", "batch size", "Note: every", "Note: with vllm"),
    ),
    (
        "Most of my load is at 64 requests.",
        f"tune {LATENCY} --max-batch 64 --weights {DATA}/weights.json",
        ("batch size",),
    ),
    ("Which drafter?", f"tune {DRAFTERS}", ("Drafter", "Options", "Configuration")),
    (
        "Which drafter for code?",
        f"tune {DRAFTERS} --workload code",
        ("Drafter", "batch size", "Options"),
    ),
    (
        "Nine tenths of my tokens are chat, the rest is code.",
        f"tune {DRAFTERS} --mix chat=0.9,code=0.1",
        ("Drafter", "batch size", "Each workload"),
    ),
    ("What would a second deployment with another drafter add?", f"tune {DRAFTERS}", ("A second",)),
    (
        "Which option takes the least energy?",
        f"tune {DRAFTERS} --per joule",
        ("Requests per joule",),
    ),
    (
        "What does a million tokens cost at 2 coins an hour?",
        f"tune {CPU}/vllm-cpu-ngram.csv --price 2 --tpot 60",
        ("Capacity",),
    ),
    (
        "Chains or trees, and which of two draft heads?",
        f"tune {BUNDLE} --engine sglang",
        ("Drafter", "Options"),
    ),
    (
        "Is the engine's own adaptive mode better than a fixed length?",
        f"tune {LATENCY}",
        ("Options",),
    ),
    (
        "How many requests fit into my memory beside the drafter?",
        f"tune {CPU}/vllm-cpu-ngram.csv --memory 0.26 --context 384 {CONFIGS}",
        ("Capacity",),
    ),
    ("Do long contexts change the answer?", f"tune {CONTEXTS}", ("batch size", "Note: contexts")),
    ("And for mine, of 4,000 tokens?", f"tune {CONTEXTS} --context 4000", ("batch size",)),
    ("What shall I measure next?", f"tune {QWEN} --ask --budget 2", ("Measure first",)),
    (
        "Are longer drafts than the measured ones worth a try?",
        f"tune {CPU}/vllm-cpu-ngram.csv --ask --budget 2",
        ("Measure next",),
    ),
    (
        "I have only measured without speculation so far.",
        f"tune {DATA}/baseline-only.csv --ask",
        ("Measure first",),
    ),
    (
        "I have no engine yet, two models and the times of their passes: does it pay?",
        f"plan {PAIR} --for vllm",
        ("vllm:", "batch size"),
    ),
    (
        "I have not even measured passes, and know the machine's data sheet.",
        f"plan {MODELS} --peak 10,200 --for vllm",
        ("vllm:", "batch size"),
    ),
    (
        "llama-bench measured my passes: does drafting pay, and how many tokens?",
        f"plan {MODELS} --runtimes {FIELD}/llama-bench.csv --for llama.cpp --acceptance"
        f" {FIELD}/speculation_profile.json",
        ("batch size", "Configuration"),
    ),
    (
        "SGLang reports gauges of acceptance: which table follows?",
        f"plan {PAIR} --for sglang --acceptance {FIELD}/sglang-metrics.txt",
        ("Acceptance", "batch size", "Configuration"),
    ),
    (
        "Shall clients' devices draft, or the server?",
        f"plan {PAIR} --for vllm --clients 4 --link 100,20",
        ("The engine drafts",),
    ),
    (
        "I only have what vllm bench serve printed, and its JSON without speculation.",
        f"tune {FIELD}/vllm-bench-serve-console.txt {FIELD}/vllm-bench-none.json@none",
        ("batch size", "Configuration"),
    ),
    (
        "llama.cpp is fastest with a minimum confidence: what do I write?",
        f"tune {FIELD}/p-min.csv --engine llama.cpp",
        ("Drafter", "Configuration"),
    ),
    (
        "And an engine that has no option for it?",
        f"tune {FIELD}/p-min.csv",
        ("Drafter", "Note: no configuration"),
    ),
    (
        "How much memory do my quantised weights take?",
        f"model {FIELD}/hf-quant",
        ("hf-quant",),
    ),
)


def printed(command: str) -> str:
    """Return what a command of specopt prints, run in the root."""
    words = [sys.executable, "-P", "-m", "specopt", *shlex.split(command)]
    return subprocess.run(
        words, stdout=subprocess.PIPE, text=True, timeout=600, check=True, cwd=ROOT
    ).stdout


def excerpt(text: str, starts: tuple[str, ...]) -> str:
    """Return the paragraphs that begin with one of the texts, those that they head, and `...` for
    others.
    """
    kept: list[str] = []
    for paragraph in text.strip("\n").split("\n\n"):
        heads = kept and kept[-1] != "..." and kept[-1].endswith(":")
        if heads or paragraph.lstrip().startswith(starts):
            kept.append("\n".join(line.rstrip() for line in paragraph.splitlines()))
        elif not kept or kept[-1] != "...":
            kept.append("...")
    return "\n\n".join(kept)


def section(question: str, command: str, starts: tuple[str, ...], text: str) -> str:
    """Return the section of a question, from what its command prints."""
    return f"## {question}\n\n```console\n$ specopt {command}\n{excerpt(text, starts)}\n```\n"


if __name__ == "__main__":
    PAGE.write_text("\n".join([HEAD, *(section(*one, printed(one[1])) for one in QUESTIONS)]))
