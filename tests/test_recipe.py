"""The recipes for methods and baselines in CONTRIBUTING.md, followed to the letter in copies."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from helpers.instances import small_instances

from specopt.kinds import KINDS, kind_of

ROOT = Path(__file__).parents[1]

HEADER = """from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from specopt.models.{folder}.problem import {prefix}Problem
from specopt.solvers.budget import Budget
from specopt.solvers.{folder}.method import *
from specopt.solvers.{folder}.method import {prefix}Method
from specopt.solvers.{folder}.prepare import *
from specopt.solvers.method import Outcome


"""

BODIES = {
    "serving-latency": (
        """
        first = lambda prepared: Outcome(plan=budget.incumbent)
        return best_of_mechanisms(problem, budget, first)"""
    ),
    "continuous-serving": (
        """
        from specopt.solvers.serving_method import able

        for prepared in able(problem, Prepared):
            offer_first_plan(prepared, budget)
        return Outcome(plan=budget.incumbent)"""
    ),
    "draft-allocation": (
        """
        offer_first_plan(problem, budget)
        return Outcome(plan=budget.incumbent, bound=budget.bound)"""
    ),
    "fair-goodput": (
        """
        offer_first_plan(problem, budget)
        return Outcome(plan=budget.incumbent)"""
    ),
    "verification-batch": (
        """
        prepared = Prepared(problem)
        offer_first_plan(prepared, budget)
        return Outcome(plan=budget.incumbent, bound=budget.bound)"""
    ),
    "draft-control": (
        """
        prepared = prepare(problem)
        return certify(prepared, first_actions(prepared), budget)"""
    ),
    "draft-stopping": (
        """
        return Outcome(plan=window_plan(0, prepare(problem).none_flagged))"""
    ),
    "placement": (
        """
        from specopt.solvers.placement.first_plans import filled

        prepared = prepare(problem, budget=budget)
        return Outcome(plan=offer(prepared, filled(prepared, "none"), budget))"""
    ),
    "prompt-chunking": (
        """
        offer_first_plan(problem, budget)
        return certify([problem.prompt_tokens], budget)"""
    ),
}

FOLLOW = """
import json, sys
from specopt import solve
from specopt.commands.cli import run
from specopt.models.files import from_dict

data = json.loads(sys.argv[1])
result = solve(from_dict(data), "your-method")
assert result.method == "your-method" and result.plan is not None, result
raise SystemExit(run(["methods", data["kind"], "--json"]))
"""


def recipe(title: str) -> tuple[str, list[str]]:
    """Return a section of CONTRIBUTING.md and its blocks of Python."""
    page = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    section = page.partition(f"## {title}\n")[2].partition("\n## ")[0]
    return section, [
        textwrap.dedent(block) for block in re.findall(r" *```python\n(.*?)```", section, re.DOTALL)
    ]


def follow_recipe(kind: str, package: Path) -> None:
    """Write the recipe's method for a kind into a copy of the package, and list it as the recipe
    says.
    """
    section, (block,) = recipe("How to add a method")
    folder, prefix = kind.replace("-", "_"), kind_of(kind).problem.__name__.removesuffix("Problem")
    method = block.replace("DraftControl", prefix).replace("...", BODIES[kind])
    header = HEADER.format(folder=folder, prefix=prefix)
    if not (package / "solvers" / folder / "prepare.py").exists():
        header = re.sub(r".*\.prepare import \*\n", "", header)
    (package / "solvers" / folder / "your_method.py").write_text(header + method, encoding="utf-8")
    assert "`METHODS` in `solvers/<kind>/__init__.py`" in section
    listing = package / "solvers" / folder / "__init__.py"
    listed = listing.read_text(encoding="utf-8").replace(
        "\nMETHODS", f"from specopt.solvers.{folder}.your_method import YourMethod\n\nMETHODS"
    )
    assert listed.endswith(",\n)\n")
    listing.write_text(listed.removesuffix(")\n") + "    YourMethod,\n)\n", encoding="utf-8")


@pytest.mark.parametrize("kind", [kind.name for kind in KINDS])
def test_recipe(kind: str, tmp_path: Path) -> None:
    """Tests that a method added by the recipe solves a problem, is judged, and is listed by
    `specopt methods`.
    """
    package = tmp_path / "specopt"
    package.mkdir()
    for part in [*(ROOT / "optimizer").iterdir(), ROOT / "models", ROOT / "instances"]:
        if part.name != "__pycache__":
            (package / part.name).symlink_to(part)
    shutil.copytree(
        ROOT / "solvers", package / "solvers", ignore=shutil.ignore_patterns("__pycache__")
    )
    follow_recipe(kind, package)
    problem = next(iter(small_instances(kind).values()))
    found = subprocess.run(
        [sys.executable, "-P", "-c", FOLLOW, json.dumps(problem.to_dict())],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={"PYTHONPATH": str(tmp_path)},
    )
    assert found.returncode == 0, found.stderr
    entries = json.loads(found.stdout)
    assert entries[-1]["name"] == "your-method"
    assert entries[-1]["summary"] == "Description that `specopt methods` prints."


UNNEEDED = (".git", ".venv", ".*_cache", "build", "dist", "__pycache__")
"""What a copy of the checkout leaves out."""


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the checkout with a baseline that was added by the recipe."""
    section, (declaration, test) = recipe("How to add a baseline")
    assert "`BASELINES`" in section and "`tests/solvers/<kind>/test_baselines.py`" in section
    folder = tmp_path_factory.mktemp("baseline") / "checkout"
    shutil.copytree(ROOT, folder, symlinks=True, ignore=shutil.ignore_patterns(*UNNEEDED))
    listing = folder / "solvers/verification_batch/baselines.py"
    before, last, after = listing.read_text(encoding="utf-8").partition("BASELINES = (\n")
    listing.write_text(
        f"{before}{declaration}\n\n{last}    MostTokensFirst,\n{after}", encoding="utf-8"
    )
    (folder / "tests/solvers/verification_batch/test_baselines.py").write_text(
        test, encoding="utf-8"
    )
    for command in (["init", "-q"], ["add", "-A"]):  # sizes are those of the files that git lists
        subprocess.run(["git", *command], cwd=folder, check=True)
    package = folder / "build" / "specopt"
    package.mkdir(parents=True)
    for part in [
        *(folder / "optimizer").iterdir(),
        *map(folder.joinpath, ("models", "solvers", "instances")),
    ]:
        (package / part.name).symlink_to(part)
    return folder


@pytest.mark.slow
@pytest.mark.parametrize(
    ("files", "tests"),
    [
        pytest.param("tests/test_size.py", "budget", marks=pytest.mark.nightly),
        pytest.param("tests/test_conformance.py", "verification-batch", marks=pytest.mark.nightly),
        pytest.param(
            "tests/docs/test_pages.py tests/solvers/test_same_work.py",
            "verification-batch",
            marks=pytest.mark.nightly,
        ),
        ("tests/solvers/verification_batch/test_baselines.py", "most_tokens_first"),
    ],
)
def test_recipe_for_a_baseline(checkout: Path, files: str, tests: str) -> None:
    """Tests that a baseline added by the recipe passes its test and all others that look at
    methods.
    """
    done = subprocess.run(
        [
            sys.executable,
            "-P",
            "-m",
            "pytest",
            "-q",
            "-m",
            "not nightly",
            "-k",
            tests,
            *files.split(),
        ],
        capture_output=True,
        text=True,
        cwd=checkout,
        check=False,
        env={**os.environ, "PYTHONPATH": str(checkout / "build")},
    )
    assert done.returncode == 0, done.stdout
