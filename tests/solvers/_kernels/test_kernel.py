"""How kernels are compiled and kept."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from specopt.solvers._kernels import kernel

TOOL = """
from kernels.kernel import helper

@helper
def add(a, b):
    return a + b
"""

USE = """
from kernels.kernel import helper, kernel
from kernels.tool import add

@kernel("f8(const f8[::1], i8)")
def total(x, times):
    s = 0.0
    for i in range(len(x)):
        s = add(s, times * x[i])
    return s
"""

RUN = """
import numpy as np
from kernels import kernel, use
told = []
kernel.compiling.append(told.append)
x = np.arange(4.0)
x.flags.writeable = False
print(use.total(x, 2), told)
"""


@pytest.fixture
def run(tmp_path: Path) -> object:
    """Return what runs a program on a package of kernels with a cache of its own."""
    package = tmp_path / "kernels"
    package.mkdir()
    shutil.copy(str(kernel.__file__), package / "kernel.py")
    (package / "__init__.py").write_text("")
    (package / "tool.py").write_text(TOOL)
    (package / "use.py").write_text(USE)

    def call(program: str = RUN, writable: bool = True) -> str:
        cache = str(tmp_path / "cache") if writable else "/dev/null/nowhere"
        env = {**os.environ, "PYTHONPATH": str(tmp_path), "NUMBA_CACHE_DIR": cache}
        done = subprocess.run([sys.executable, "-c", program], env=env, capture_output=True, text=True, check=True)
        return done.stdout.strip()

    return call


def test_an_edit_in_another_file_is_noticed(run: object, tmp_path: Path) -> None:
    """Tests that kernels are compiled once, and again after an edit of a helper that lies in another file."""
    assert callable(run)
    assert run() == "12.0 ['use.total']"
    assert run() == "12.0 []"
    (tmp_path / "kernels" / "tool.py").write_text(TOOL.replace("a + b", "a + b + 1.0"))
    assert run() == "16.0 ['use.total']"


def test_without_a_place_to_write_kernels_still_run(run: object) -> None:
    """Tests that kernels are compiled in the process where the cache cannot be written."""
    assert callable(run)
    assert run(writable=False) == "12.0 ['use.total']"


def test_other_types_are_refused(run: object) -> None:
    """Tests that a kernel compiles its declared signatures alone."""
    assert callable(run)
    program = RUN.replace("x = np.arange(4.0)", "x = np.arange(4)") + "\n"
    guarded = program.replace(
        "print(", "try:\n    use.total(x, 2)\nexcept TypeError as error:\n    print(str(error)[:22])\nelse:\n    print("
    )
    assert run(guarded) == "No matching definition"
