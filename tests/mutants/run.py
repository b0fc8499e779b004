"""Mutation testing: change one thing at a time in what must be right, and see whether the tests beside it notice.

``make mutants`` runs mutmut in a copy of the package below build/, one module after the other against its own fast
tests, and compares what survives with ``survivors.csv``, where each known survivor has its reason. A survivor that is
not listed fails the run: write the test that kills it, or list it. Arguments: parts of module paths, to run those only,
and single digits, to run only mutants whose number ends in one of them (a sample).
"""

from __future__ import annotations

import csv
import difflib
import json
import os
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
WORK = ROOT / "build/mutants"
KNOWN = Path(__file__).with_name("survivors.csv")

TARGETS = {
    "models/draft_allocation.py": ("models/test_draft_allocation.py",),
    "models/draft_control.py": ("models/test_draft_control.py", "models/test_choices.py"),
    "models/fair_goodput.py": ("models/test_fair_goodput.py",),
    "models/prompt_chunking.py": ("models/test_prompt_chunking.py",),
    "models/serving_latency.py": ("models/test_serving_latency.py", "models/test_rebatched_serving.py"),
    "models/serving_schedule.py": ("models/test_serving_schedule.py",),
    "models/verification_batch.py": ("models/test_verification_batch.py",),
    "models/judge.py": ("models/test_judge.py",),
    "models/problem.py": ("models/test_problem.py",),
    "models/fields.py": ("models/test_fields.py",),
    "solve.py": ("optimizer/test_solve.py", "optimizer/test_internal_error.py"),
    "solvers/budget.py": ("solvers/test_budget.py",),
    "solvers/clock.py": ("solvers/test_budget.py",),
    "solvers/compiler.py": ("solvers/test_budget.py",),
    "comparison/store.py": ("optimizer/comparison/test_store.py",),
}
"""Module of the package -> the tests that have to notice."""

OUTCOME = {0: "survived", 5: "survived", 33: "survived", 1: "killed", 3: "killed", None: "skipped"}
"""What mutmut's exit codes mean; all others are ends of runaway mutants."""

CONFIG = """\
[tool.mutmut]
source_paths = ["specopt"]
only_mutate = ["specopt/{module}"]
pytest_add_cli_args_test_selection = {tests}
pytest_add_cli_args = ["-m", "not slow"]
[tool.pytest.ini_options]
pythonpath = ["tests"]
addopts = ["--import-mode=importlib"]
markers = ["slow: left out here"]
filterwarnings = ["error"]
"""


class Mutant(NamedTuple):
    """A change that no test notices: the function it is in, and its lines before and after."""

    function: str
    was: str
    now: str


def copy() -> None:
    """Lay the package out in one folder, as mutmut expects it, with the tests beside it."""
    shutil.rmtree(WORK, ignore_errors=True)
    ignore = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "optimizer", WORK / "specopt", ignore=ignore)
    for part in ("models", "solvers", "instances"):
        shutil.copytree(ROOT / part, WORK / "specopt" / part, ignore=ignore)
    shutil.copytree(ROOT / "tests", WORK / "tests", ignore=ignore)


def mutate(module: str, digits: list[str]) -> tuple[Counter[str], list[Mutant]]:
    """Run the mutants of a module: how many of them came to which end, and which survived."""
    tests = [f"tests/{test}" for test in TARGETS[module]]
    (WORK / "pyproject.toml").write_text(CONFIG.format(module=module, tests=json.dumps(tests)))
    shutil.rmtree(WORK / "mutants", ignore_errors=True)
    environment = os.environ | {"CI": "1"}  # the same random examples for every mutant
    # Kernels are compiled here: mutmut would take the processes that do it for its own.
    warm = [sys.executable, "-m", "pytest", "-m", "not slow", *tests]
    subprocess.run(warm, cwd=WORK, env=environment, capture_output=True, check=False)
    chosen = [f"*__mutmut_*{digit}" for digit in digits]
    command = [sys.executable, "-m", "mutmut", "run", "--max-children", os.environ.get("MUTANTS_JOBS", "1"), *chosen]
    done = subprocess.run(command, cwd=WORK, env=environment, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{module}: {done.stdout[-2000:]}{done.stderr[-2000:]}")
    source = WORK / "mutants/specopt" / module
    codes = json.loads(source.with_name(source.name + ".meta").read_text())["exit_code_by_key"]
    spans = json.loads(source.with_name(source.name + ".spans").read_text())["spans"]
    lines = source.read_text().splitlines()
    outcomes = Counter(OUTCOME.get(code, "killed") for code in codes.values())
    survivors = []
    for key in (key for key, code in codes.items() if OUTCOME.get(code) == "survived"):
        mutated = key.rpartition(".")[2]
        function = mutated.rpartition("__mutmut_")[0]
        name = function.removeprefix("x_").removeprefix("xǁ").replace("ǁ", ".")
        texts = [
            [line.replace(each, name) for line in lines[spans[each][0] - 1 : spans[each][1]]]
            for each in (function + "__mutmut_orig", mutated)
        ]
        survivors.append(Mutant(f"{module}:{name}", *changed(*texts)))
    return outcomes, survivors


def changed(before: list[str], after: list[str]) -> Iterator[str]:
    """Yield the lines that differ, of either text, as one line."""
    difference = list(difflib.ndiff(before, after))
    for sign in "-+":
        yield " ".join(line[2:].strip() for line in difference if line[0] == sign)


def main(arguments: list[str]) -> int:
    """Run the mutants of the chosen modules; return 1 if one survives that is not known."""
    digits = [argument for argument in arguments if argument.isdigit()]
    parts = [argument for argument in arguments if not argument.isdigit()] or [""]
    with KNOWN.open(newline="", encoding="utf-8") as file:
        known = {Mutant(*row[:3]): row[3] for row in csv.reader(file)}
    copy()
    new, total = [], Counter[str]()
    for module in (module for module in TARGETS if any(part in module for part in parts)):
        outcomes, survivors = mutate(module, digits)
        total += outcomes
        unknown = [mutant for mutant in survivors if mutant not in known]
        print(f"{module}: {share(outcomes)}, {len(unknown)} survivors unknown")
        csv.writer(sys.stdout).writerows(unknown)
        sys.stdout.flush()
        new += unknown
    print(f"all: {share(total)}")
    return bool(new)


def share(outcomes: Counter[str]) -> str:
    """Say how many of the mutants that ran were killed."""
    ran = outcomes["killed"] + outcomes["survived"]
    return f"{outcomes['killed']} of {ran} mutants killed ({outcomes['killed'] / max(ran, 1):.1%})"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
