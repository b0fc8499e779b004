"""How kernels are compiled and kept."""

from __future__ import annotations

import ast
import importlib
import os
import pkgutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from specopt.solvers import _kernels
from specopt.solvers._kernels import cache, kernel

Run = Callable[..., str]

MAX_ARGUMENTS = 14

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
from kernels import compiling, use
told = []
compiling.listeners.append(lambda module: told.append(module) if module else told.append('.'))
x = np.arange(4.0)
x.flags.writeable = False
print(use.total(x, 2), told)
"""


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Return what runs a program on a package of kernels with a cache of its own."""
    package = tmp_path / "kernels"
    package.mkdir()
    for name in ("kernel.py", "internals.py", "compiling.py", "cache.py"):
        source = Path(str(kernel.__file__)).with_name(name).read_text()
        (package / name).write_text(source.replace("specopt.solvers._kernels", "kernels"))
    (package / "__init__.py").write_text("")
    (package / "tool.py").write_text(TOOL)
    (package / "use.py").write_text(USE)

    def call(program: str = RUN, writable: bool = True) -> str:
        cache = str(tmp_path / "cache") if writable else "/dev/null/nowhere"
        env = {**os.environ, "PYTHONPATH": str(tmp_path), "NUMBA_CACHE_DIR": cache}
        done = subprocess.run([sys.executable, "-c", program], env=env, capture_output=True, text=True, check=True)
        return done.stdout.strip()

    return call


def test_a_call_that_compiles_is_counted(run: Run) -> None:
    """Tests that compilation counts where a kernel is called without being asked for first, and only then."""
    again = (
        "\nbefore = compiling.meter.seconds\nuse.total(x, 2)\nprint(before > 0.0, compiling.meter.seconds == before)"
    )
    assert run(RUN + again).splitlines()[-1] == "True True"


def test_an_edit_in_another_file_is_noticed(run: Run, tmp_path: Path) -> None:
    """Tests that kernels are compiled once, and again after an edit of a helper that lies in another file."""
    assert run() == "12.0 ['use', '.']"
    assert run() == "12.0 []"
    (tmp_path / "kernels" / "tool.py").write_text(TOOL.replace("a + b", "a + b + 1.0"))
    assert run() == "16.0 ['use', '.']"


def test_a_kernel_is_cached_once_all_signatures_are(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests that one of two signatures in the cache is not enough."""
    monkeypatch.setattr(kernel, "_in_cache", lambda dispatcher, signature: signature in dispatcher.kept)
    for kept in ((), ("f8(f8)",), ("f8(f8)", "i8(i8)")):
        asked = SimpleNamespace(declared=("f8(f8)", "i8(i8)"), kept=kept)
        assert kernel.is_cached(asked) == (len(kept) == 2)


def test_the_folder_is_the_users(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Tests that the cache lies where each system keeps such files, and that the choice of a user counts."""
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(sys, "platform", "linux")
    assert cache._of_user() == tmp_path / ".cache/specopt"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "else"))
    assert cache._of_user() == tmp_path / "else/specopt"
    monkeypatch.setattr(sys, "platform", "darwin")
    assert cache._of_user() == tmp_path / "Library/Caches/specopt"


def test_without_the_inner_parts_of_numba_kernels_are_kept_as_well(run: Run, tmp_path: Path) -> None:
    """Tests that a Numba without a class that the cache is built on compiles, keeps and notices edits all the same."""
    program = (
        "from numba.core import caching\ndel caching.CompileResultCacheImpl\n"
        + RUN
        + "\nprint(use.kernel.__globals__['internals'])"
    )
    assert run(program) == "12.0 ['use', '.']\nNone"
    assert run(program) == "12.0 []\nNone"
    (tmp_path / "kernels" / "tool.py").write_text(TOOL.replace("a + b", "a + b + 1.0"))
    assert run(program) == "16.0 ['use', '.']\nNone"


def test_without_a_place_to_write_kernels_still_run(run: Run) -> None:
    """Tests that kernels are compiled in the process where the cache cannot be written."""
    assert run(writable=False) == "12.0 ['use', '.']"


def test_a_folder_that_others_can_write_to_is_not_used(run: Run, tmp_path: Path) -> None:
    """Tests that kernels are not read from where somebody else can put them, and nothing is kept there."""
    (tmp_path / "cache" / "specopt-kernels").mkdir(parents=True)
    for mode in (0o777, 0o700, 0o777):  # the second keeps what the third must not read
        (tmp_path / "cache" / "specopt-kernels").chmod(mode)
        assert run() == "12.0 ['use', '.']"


def test_a_damaged_or_lost_cache_costs_a_compilation_only(run: Run, tmp_path: Path) -> None:
    """Tests that kernels run where their files are cut short, and where the folder goes away in between."""
    assert run() == "12.0 ['use', '.']"
    for path in (tmp_path / "cache").rglob("*.nb?"):
        path.write_bytes(path.read_bytes()[:100])
    assert run() == "12.0 ['use', '.']"
    lost = RUN.replace("told = []", f"import shutil; shutil.rmtree({str(tmp_path / 'cache')!r})\ntold = []")
    assert run(lost) == "12.0 ['use', '.']"


def test_all_kernels_go_into_one_process() -> None:
    """Tests that no two folders of kernels give one name to different records."""
    for module in pkgutil.walk_packages(_kernels.__path__, _kernels.__name__ + "."):
        importlib.import_module(module.name)


def test_records_and_rows_are_one_argument(run: Run, tmp_path: Path) -> None:
    """Tests that a kernel takes named tuples and arrays with named columns."""
    (tmp_path / "kernels" / "use.py").write_text(
        """
from kernels.kernel import kernel, record, rows

Shop = record("Shop", prices="f8[::1]", closed="b1")
Order = rows("Order", item="i8", count="i8")

@kernel("f8(Shop, Order[::1])")
def total(shop, orders):
    s = 0.0
    for k in range(len(orders)):
        s += shop.prices[orders[k].item] * orders[k].count
    return -1.0 if shop.closed else s
"""
    )
    program = """
import numpy as np
from kernels import use
orders = np.array([(1, 2), (0, 3)], use.Order)
print(*(use.total(use.Shop(np.array([1.0, 10.0]), closed), orders) for closed in (False, True)))
"""
    assert run(program) == "23.0 -1.0"


def test_no_function_takes_many_arguments() -> None:
    """Tests that what travels together is one argument: the most that any kernel or helper takes does not grow."""
    folder = Path(str(kernel.__file__)).parent
    functions = [
        node
        for path in folder.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef)
    ]
    assert functions and max(len(function.args.args) for function in functions) <= MAX_ARGUMENTS


def test_other_types_are_refused(run: Run) -> None:
    """Tests that a kernel compiles its declared signatures alone."""
    program = RUN.replace("x = np.arange(4.0)", "x = np.arange(4)") + "\n"
    guarded = program.replace(
        "print(", "try:\n    use.total(x, 2)\nexcept TypeError as error:\n    print(str(error)[:22])\nelse:\n    print("
    )
    assert run(guarded) == "No matching definition"
