"""`specopt warmup`, and what a result says of preparing."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from specopt.commands.cli import run
from specopt.kinds import KINDS
from specopt.solvers.kernels.compiling import kernels_of

ROOT = Path(__file__).parents[2]


def command(cache: Path, *arguments: str) -> str:
    """Return what a command prints, in a process of its own with a cache of its own."""
    env = {**os.environ, "NUMBA_CACHE_DIR": str(cache)}
    done = subprocess.run(
        [sys.executable, "-P", "-m", "specopt", *arguments], env=env, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_every_kernel_of_the_methods_is_prepared(kind: object) -> None:
    """Tests that the modules from which a kind's methods load kernels are all among those that are
    compiled ahead.
    """
    name = kind.name.replace("-", "_")  # type: ignore[attr-defined]
    sources = "".join(path.read_text() for path in (ROOT / "solvers" / name).glob("*.py"))
    loaded = {
        found
        for found in re.findall(r'\.load\("([\w.]+)"\)', sources)
        if not found.endswith("simulation")
    }
    prepared = {kernel.name.partition(":")[0] for kernel in kernels_of(name)}
    assert bool(loaded) == bool(prepared)  # draft-stopping has none
    assert loaded <= prepared


@pytest.mark.nightly
def test_a_warm_machine_compiles_nothing(tmp_path: Path) -> None:
    """Tests that the solve after a warm-up finds all it needs, the one before says how long
    preparing took.
    """
    problem = tmp_path / "problem.json"
    assert run(["generate", "draft-allocation/uniform", "-o", str(problem)]) == 0
    said = command(tmp_path / "cache", "warmup", "draft-allocation")
    assert re.search(r"(\d+) kernels of draft-allocation: \1 compiled in", said)
    assert "0 compiled in" in command(tmp_path / "cache", "warmup", "draft-allocation")
    assert "preparing" not in command(tmp_path / "cache", "solve", str(problem)).replace(
        "s preparing", ""
    )
