"""What starting up loads: nothing heavy, so that import and help answer at once."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
HEAVY = (
    "numba",
    "llvmlite",
    "scipy",
    "cvxpy",
    "pyomo",
    "highspy",
    "vl_convert",
    "IPython",
    "pandas",
    "sklearn",
    "torch",
)


def loaded_by(code: str) -> set[str]:
    """Return the top-level modules that a fresh interpreter has loaded after running some code."""
    script = (
        f"{code}\nimport sys; print('\\nLOADED', *{{name.partition('.')[0] for name in"
        " sys.modules})"
    )
    command = [sys.executable, "-P", "-c", script]
    output = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT).stdout
    return set(output.rpartition("LOADED")[2].split())


@pytest.mark.parametrize(
    "code",
    [
        "import specopt",
        "import specopt.kinds.serving_latency.view",
        "from specopt.commands.cli import run; assert run(['--help']) == 0",
        "from specopt.commands.cli import run; assert run(['solve', '--help']) == 0",
        "from specopt.commands.cli import run; assert run(['--version']) == 0",
        "from specopt.commands.cli import run; assert run(['methods']) == 0",
        "from specopt.commands.cli import run; assert run(['schema', 'serving-latency']) == 0",
    ],
)
def test_start_loads_nothing_heavy(code: str) -> None:
    """Tests that importing, asking for help and listing load no solver, compiler or plotting
    library.
    """
    loaded = loaded_by(code)
    assert "specopt" in loaded
    assert not loaded & set(HEAVY)


def test_import_needs_neither_typer_nor_rich() -> None:
    """Tests that the library does not load what only the command line uses."""
    assert not loaded_by("import specopt") & {"typer", "rich", "click"}


def test_import_loads_no_simulator() -> None:
    """Tests that what plays plans and policies waits until something is played."""
    code = (
        "import sys, specopt; assert not [n for n in sys.modules if n.endswith('.simulate') and"
        " '.solvers.' in n]"
    )
    subprocess.run([sys.executable, "-P", "-c", code], check=True, cwd=ROOT)


def test_checkout_folders_do_not_leak() -> None:
    """Tests that only `specopt` is importable, not a folder of the checkout under its own name."""
    code = (
        "import importlib.util as u; assert not any(u.find_spec(n) for n in ('models', 'solvers',"
        " 'optimizer'))"
    )
    subprocess.run([sys.executable, "-P", "-c", code], check=True, cwd=ROOT)
