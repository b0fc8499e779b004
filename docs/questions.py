"""Write docs/questions.md: questions of operators, each with a command and its output."""

from __future__ import annotations

import shlex
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs/questions.md"
DATA, FIELD = "tests/data/sweeps", "tests/data/field"
HEAD = """# Questions

Each question is followed by the command that answers it and by excerpts of its output, in which
`...` marks omissions. Run the commands from the root of a checkout. The sources of the data are
listed in `tests/data/sweeps/README.md`.
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
    (
        "Which draft length should I use at each load?",
        f"tune {NGRAM}",
        ("batch size", "Configuration"),
    ),
    ("Does my draft model pay off at all?", f"tune {DRAFT}", ("batch size", "Note: leave")),
    ("At what acceptance would my draft model pay off?", f"tune {DRAFT}", ("Break-even",)),
    (
        "How far can acceptance fall before two drafts no longer pay off?",
        f"tune {DRAFTERS} --workload all --draft mtp",
        ("Break-even",),
    ),
    ("Is a table of draft lengths worth its cost?", f"tune {QWEN}", ("Note: a table",)),
    (
        "How do I configure SGLang if I have no measurements without speculation?",
        f"tune {QWEN} --engine sglang",
        ("batch size", "Note: no row", "Configuration"),
    ),
    (
        "How do I configure TensorRT-LLM?",
        f"tune {QWEN} --engine tensorrt-llm --engine-version 1.3.0rc8",
        ("Note: in version", "Configuration"),
    ),
    (
        "How do I configure llama.cpp, which accepts only one length?",
        f"tune {NGRAM} --engine llama.cpp",
        ("batch size", "Configuration"),
    ),
    (
        "How many concurrent requests can each get a token every 30 ms?",
        f"tune {QWEN} --engine sglang --tpot 30",
        ("Capacity",),
    ),
    (
        "How many requests get a token every 30 ms at the 99th percentile?",
        f"tune {LATENCY} --tpot 30@p99",
        ("Capacity",),
    ),
    (
        "How many requests get a token every 30 ms, and the first within half a second?",
        f"tune {LATENCY} --tpot 30 --ttft 500",
        ("Drafter", "Capacity"),
    ),
    (
        "Which configuration is never slower than no speculation, at any load?",
        f"tune {LATENCY} --robust",
        ("Drafter", "batch size", "Note: every", "Note: with vllm"),
    ),
    (
        "Which draft length is best if most of my load is at 64 requests?",
        f"tune {LATENCY} --max-batch 64 --weights {DATA}/weights.json",
        ("batch size",),
    ),
    ("Which drafter is best?", f"tune {DRAFTERS}", ("Drafter", "Options:", "Configuration")),
    (
        "Which drafter is best for code?",
        f"tune {DRAFTERS} --workload code",
        ("Drafter", "batch size", "Options:"),
    ),
    (
        "Which drafter is best if nine tenths of my tokens are chat and the rest are code?",
        f"tune {DRAFTERS} --mix chat=0.9,code=0.1",
        ("Drafter", "batch size", "Each workload"),
    ),
    (
        "How much would a second deployment with another drafter gain?",
        f"tune {DRAFTERS}",
        ("A second",),
    ),
    (
        "Which option uses the least energy?",
        f"tune {DRAFTERS} --per joule",
        ("Requests per joule",),
    ),
    (
        "How much do a million tokens cost at 2 coins per hour?",
        f"tune {CPU}/vllm-cpu-ngram.csv --price 2 --tpot 60",
        ("Capacity",),
    ),
    (
        "Are chains or trees better, and which of two draft heads?",
        f"tune {BUNDLE} --engine sglang",
        ("Drafter", "Options:"),
    ),
    (
        "Is the engine's own adaptive mode better than a fixed length?",
        f"tune {LATENCY}",
        ("Options:",),
    ),
    (
        "How many requests fit in memory in addition to the drafter?",
        f"tune {CPU}/vllm-cpu-ngram.csv --memory 0.26 --context 384 {CONFIGS}",
        ("Capacity",),
    ),
    ("Do long contexts change the answer?", f"tune {CONTEXTS}", ("batch size", "Note: contexts")),
    (
        "What is the answer for contexts of 4,000 tokens?",
        f"tune {CONTEXTS} --context 4000",
        ("batch size",),
    ),
    ("What should I measure next?", f"tune {QWEN} --ask --budget 2", ("Measure first",)),
    (
        "Should I try longer drafts than the measured ones?",
        f"tune {CPU}/vllm-cpu-ngram.csv --ask --budget 2",
        ("Measure next",),
    ),
    (
        "What should I measure first if I have only measured without speculation?",
        f"tune {DATA}/baseline-only.csv --ask",
        ("Measure first",),
    ),
    (
        "Does drafting pay off if I have two models and their pass times, but no engine yet?",
        f"plan {PAIR} --for vllm",
        ("vllm:", "batch size"),
    ),
    (
        "Does drafting pay off if I only know the data sheet of the machine?",
        f"plan {MODELS} --peak 10,200 --for vllm",
        ("vllm:", "batch size"),
    ),
    (
        "How many tokens should I draft, given the passes that llama-bench measured?",
        f"plan {MODELS} --runtimes {FIELD}/llama-bench.csv --for llama.cpp --acceptance"
        f" {FIELD}/speculation_profile.json",
        ("batch size", "Configuration"),
    ),
    (
        "Which table follows from the acceptance gauges of SGLang?",
        f"plan {PAIR} --for sglang --acceptance {FIELD}/sglang-metrics.txt",
        ("Acceptance", "batch size", "Configuration"),
    ),
    (
        "Should the clients' devices draft, or the server?",
        f"plan {PAIR} --for vllm --clients 4 --link 100,20",
        ("The engine drafts",),
    ),
    (
        "Can I use the console output of vllm bench serve, and its JSON without speculation?",
        f"tune {FIELD}/vllm-bench-serve-console.txt {FIELD}/vllm-bench-none.json@none",
        ("batch size", "Configuration"),
    ),
    (
        "How do I configure llama.cpp if it is fastest with a minimum confidence?",
        f"tune {FIELD}/p-min.csv --engine llama.cpp",
        ("Drafter", "Configuration"),
    ),
    (
        "What if an engine has no option for a minimum confidence?",
        f"tune {FIELD}/p-min.csv",
        ("Drafter", "Note: no configuration"),
    ),
    (
        "How much memory do my quantised weights need?",
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
