"""How kernels are compiled and kept."""

from __future__ import annotations

import importlib
import os
import pkgutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from specopt.solvers import kernels as _kernels
from specopt.solvers.kernels import cache, kernel

Run = Callable[..., list[str]]

TOOL = """
from kernels.kernel import helper

@helper
def add(a, b):
    return a + b
"""

USE = """
from kernels.kernel import helper, kernel, record, rows
from kernels.tool import add

Shop = record("Shop", prices="f8[::1]", closed="b1")
Order = rows("Order", item="i8", count="i8")

@kernel("f8(const f8[::1], i8)")
def total(x, times):
    s = 0.0
    for i in range(len(x)):
        s = add(s, times * x[i])
    return s

@kernel("f8(Shop, Order[::1])")
def sell(shop, orders):
    s = 0.0
    for k in range(len(orders)):
        s = add(s, shop.prices[orders[k].item] * orders[k].count)
    return -total(shop.prices, 1) if shop.closed else s
"""

RUN = """
import sys
import numpy as np
from kernels import compiling, use
told = []
compiling.listeners.append(lambda module: told.append(module or '.'))
x = np.arange(4.0)
x.flags.writeable = False
print(use.total(x, 2), *told)
"""


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Return what runs a program on a package of kernels with its own cache, and returns the lines
    that it prints.
    """
    package = tmp_path / "kernels"
    package.mkdir()
    for name in ("kernel.py", "compiling.py", "cache.py"):
        source = Path(str(kernel.__file__)).with_name(name).read_text()
        (package / name).write_text(source.replace("specopt.solvers.kernels", "kernels"))
    (package / "__init__.py").write_text("")
    (package / "tool.py").write_text(TOOL)
    (package / "use.py").write_text(USE)

    def call(
        program: str = RUN, folder: str = str(tmp_path / "cache"), **variables: str
    ) -> list[str]:
        env = {**os.environ, "PYTHONPATH": str(tmp_path), "NUMBA_CACHE_DIR": folder, **variables}
        done = subprocess.run(
            [sys.executable, "-c", program], env=env, capture_output=True, text=True, check=True
        )
        return done.stdout.splitlines()

    return call


def test_an_edit_in_another_file_is_noticed(run: Run, tmp_path: Path) -> None:
    """Tests that kernels are compiled once, and again after an edit of a helper that lies in
    another file.
    """
    assert run() == ["12.0 kernels.use ."]
    assert run() == ["12.0"]
    (tmp_path / "kernels" / "tool.py").write_text(TOOL.replace("a + b", "a + b + 1.0"))
    assert run() == ["16.0 kernels.use ."]


CALLS = """
import numba
before = dict(vars(numba.config))
"""
AFTERWARDS = """
spent = compiling.meter.seconds
use.total(x, 2)
print(spent > 0.0, compiling.meter.seconds == spent, vars(numba.config) == before)
orders = np.array([(1, 2), (0, 3)], use.Order)
print(*(use.sell(use.Shop(np.array([1.0, 10.0]), closed), orders) for closed in (False, True)))
try:
    use.total(np.arange(4), 2)
except TypeError as error:
    print(str(error)[:22])
print(use.total.is_ready, use.total.py_func(x, 2))
"""


def test_calls(run: Run) -> None:
    """Tests that records, rows and kernels that call kernels work, and that Numba's settings stay
    as they were.

    Kernels are compiled although the user has disabled Numba for other code.
    """
    said = run(CALLS + RUN + AFTERWARDS, NUMBA_DISABLE_JIT="1")
    assert said == [
        "12.0 kernels.use .",
        "True True True",
        "23.0 -11.0",
        "No matching definition",
        "True 12.0",
    ]


LATE = """
class Late(Exception):
    pass

def check():
    if told:
        raise Late

del told[:]
with compiling.checked(check):
    try:
        use.sell(use.Shop(np.arange(4.0), False), np.array([(1, 2)], use.Order))
    except Late:
        print("late", *told)
print(use.sell(use.Shop(np.arange(4.0), False), np.array([(1, 2)], use.Order)))
"""


def test_no_compilation_starts_after_the_time_limit(run: Run) -> None:
    """Tests that a check is called before each kernel, those that a kernel calls included, and no
    longer afterwards.
    """
    program = RUN.replace("print(use.total(x, 2), *told)\n", "") + LATE
    assert run(program) == ["late kernels.use .", "2.0"]


def test_without_a_place_to_write_kernels_still_run(run: Run) -> None:
    """Tests that kernels are compiled in the process where the cache cannot be written."""
    assert run(folder="/dev/null/nowhere") == ["12.0 kernels.use ."]


def test_a_folder_that_others_can_write_to_is_not_used(run: Run, tmp_path: Path) -> None:
    """Tests that kernels are not read from where somebody else can put them, and nothing is kept
    there.
    """
    place = tmp_path / "cache" / "specopt-kernels"
    place.mkdir(parents=True)
    place.chmod(0o777)
    assert run() == ["12.0 kernels.use ."]
    assert not [*place.rglob("*.nbi")]


def test_a_damaged_or_lost_cache_costs_a_compilation_only(run: Run, tmp_path: Path) -> None:
    """Tests that kernels run where their files are cut short, and where the folder goes away in
    between.
    """
    run()
    for path in (tmp_path / "cache").rglob("*.nb?"):
        path.write_bytes(path.read_bytes()[:100])
    assert run() == ["12.0"]
    lost = RUN.replace(
        "told = []", f"import shutil; shutil.rmtree({str(tmp_path / 'cache')!r})\ntold = []"
    )
    assert run(lost) == ["12.0 kernels.use ."]


def test_the_folder_is_the_users(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Tests that the cache lies where each system keeps such files, and that the choice of a user
    counts.
    """
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(sys, "platform", "linux")
    assert cache._of_user() == tmp_path / ".cache/specopt"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "else"))
    assert cache._of_user() == tmp_path / "else/specopt"
    monkeypatch.setattr(sys, "platform", "darwin")
    assert cache._of_user() == tmp_path / "Library/Caches/specopt"


def test_all_kernels_go_into_one_process() -> None:
    """Tests that no two folders of kernels give one name to different records."""
    for module in pkgutil.walk_packages(_kernels.__path__, _kernels.__name__ + "."):
        importlib.import_module(module.name)
