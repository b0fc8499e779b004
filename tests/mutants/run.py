"""Mutation testing: change one thing at a time, anywhere in the product, and see whether the tests
that run it notice.

``make mutants`` draws lines of every folder and changes one thing in each: a comparison, an
operator, a number, a condition, a call. A recorded map says which tests call which function; those
that call the changed one run, the most special first. A survivor that is not in ``survivors.csv``
with its reason is printed: write the test that kills it, or list it. Kernels run as plain Python.
What tests may leave open is not drawn: messages, types, limits that have a name.
"""

from __future__ import annotations

import argparse
import contextlib
import csv
import hashlib
import importlib
import json
import multiprocessing
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import helpers.vectors  # noqa: F401, before numpy
import pytest
from mutants.changes import ROOT, Mutant, drawn

WORK = ROOT / "build/mutants"
TREE = WORK / "tree"
PACKAGE = TREE / "build/static/specopt"
KNOWN = Path(__file__).with_name("survivors.csv")
KILLED = WORK / "killed.json"
FOLDERS = {"models": 0.95, "solvers": 0.95, "optimizer": 0.85, "instances": 0.85}
"""The share of mutants that must be killed in every folder of the product."""

TEST_SECONDS, PLAIN_SECONDS = 20.0, 6.0
"""A test that takes more of the processor is left out; where kernels are plain Python many do."""

MUTANT_SECONDS = 60.0
"""The tests of a mutant take so long together where nothing is changed; further ones are left out.
"""

SLOW_IMPORTS = (
    "highspy",
    "hypothesis.extra.numpy",
    "numba",
    "rich.console",
    "scipy.optimize",
    "scipy.stats",
    "typer",
)

MAX_FILES = 10
"""So many files of tests are asked for each mutant."""

RECORDED = tuple(
    f"tests/{name}.py"
    for name in ("solvers/test_same_work", "instances/test_same_problems", "docs/test_questions")
)
"""These are asked as well: they compare what nearly all of the product does, or what its commands
print, with what was recorded.
"""

JOBS = os.cpu_count() or 1
"""So many mutants are tried at a time, each in a copy of its own."""

MAX_BYTES = 8 << 30
"""More memory is refused to a mutant."""

BROKEN = 70
"""How a process ends that does not come to its tests."""

Map = dict[str, tuple[float, frozenset[str]]]
"""A test -> its seconds, and the functions that it calls."""


def copy() -> None:
    """Bring a copy of the checkout up to date, and lay the package out in it."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.split("\0")
    names = {name for name in listed if name and (ROOT / name).is_file()}
    for name in names:
        source, target = ROOT / name, TREE / name
        if not target.exists() or source.stat().st_mtime_ns != target.stat().st_mtime_ns:
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, target)
    for path in TREE.rglob("*.py"):
        if str(path.relative_to(TREE)) not in names and "build" not in path.relative_to(TREE).parts:
            path.unlink()
    shutil.rmtree(PACKAGE, ignore_errors=True)
    PACKAGE.mkdir(parents=True)
    for path in [
        *(TREE / "optimizer").iterdir(),
        *(TREE / part for part in FOLDERS if part != "optimizer"),
    ]:
        (PACKAGE / path.name).symlink_to(path)
    subprocess.run(
        [sys.executable, "-m", "compileall", "-q", *(str(TREE / folder) for folder in FOLDERS)],
        check=True,
    )


def plain() -> None:
    """Let kernels be the functions that they are written as."""
    kernel: Any = importlib.import_module("specopt.solvers.kernels.kernel")

    def bare(function: Any) -> Any:
        function.py_func, function.prepare, function.is_ready = function, lambda: function, True
        function.prepare_for = lambda *arguments: function
        return function

    kernel.helper = kernel.inlined = bare
    kernel.kernel = lambda *signatures, **options: bare
    rows, np = kernel.rows, importlib.import_module("numpy")
    kernel.rows = lambda name, **fields: np.dtype(
        (np.record, rows(name, **fields))
    )  # entries have attributes


class Recorder:
    """Writes down which functions every test calls; forgets tests that fail or take long."""

    def __init__(self, path: Path, found: dict[str, Any], most: float) -> None:
        self.path, self.found, self.most = path, found, most
        self.code: set[Any] = set()
        self.bad: set[str] = set()
        self.file = ""

    def __call__(self, frame: Any, event: str, argument: Any) -> None:
        """Take a call down; the lines of it do not matter."""
        self.code.add(frame.f_code)

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Take down what does not pass."""
        if not report.passed:
            self.bad.add(report.nodeid)

    def pytest_runtest_protocol(self, item: Any, nextitem: Any) -> bool:
        """Run a test and take down what it calls."""
        from _pytest.runner import runtestprotocol

        def late(*_: object) -> None:
            raise TimeoutError

        signal.signal(signal.SIGPROF, late)
        signal.setitimer(signal.ITIMER_PROF, self.most)
        self.code.clear()
        started = time.process_time()
        item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
        threading.settrace(self)
        sys.settrace(self)
        try:
            runtestprotocol(item, nextitem=nextitem)
        finally:
            sys.settrace(None)
            threading.settrace(None)
            signal.setitimer(signal.ITIMER_PROF, 0.0)
        file = item.nodeid.partition("::")[0]
        tests = self.found.setdefault(file, {"digest": digest(file), "tests": {}})["tests"]
        if item.nodeid not in self.bad:
            tests[item.nodeid] = (
                time.process_time() - started,
                sorted(filter(None, map(name_of, self.code))),
            )
        if file != getattr(nextitem, "nodeid", "").partition("::")[0]:
            self.path.write_text(json.dumps(self.found))
        return True


def name_of(code: Any) -> str:
    """Return the name of a function of ours as FILE:NAME, or nothing."""
    if not code.co_filename.startswith(str(PACKAGE)):
        return ""
    path = code.co_filename[len(str(PACKAGE)) + 1 :]
    name = code.co_qualname.replace(".<locals>", "")
    name = re.sub(r"\.<\w+>.*", "", name)  # comprehensions belong to what they are in
    return f"{path if path.split('/')[0] in FOLDERS else 'optimizer/' + path}:{name}"


def digest(file: str) -> str:
    """Return what a file of tests depends on, as far as the map is concerned."""
    return hashlib.sha256((TREE / file).read_bytes()).hexdigest()[:16]


class Chosen:
    """Runs the chosen tests alone, in their order."""

    def __init__(self, tests: list[str]) -> None:
        self.order = {test: place for place, test in enumerate(tests)}

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        """Leave out all others."""
        items[:] = sorted(
            (one for one in items if one.nodeid in self.order),
            key=lambda one: self.order[one.nodeid],
        )


def pytest_process(arguments: list[str], plugin: Any, kernels: bool, seconds: float) -> int:
    """Run pytest in a process of its own that has what takes long to import; return how it
    ended.
    """

    def run() -> None:
        os.setpgid(0, 0)
        with Path(WORK / "output").open("w") as output:
            os.dup2(output.fileno(), 1)
            os.dup2(output.fileno(), 2)
        resource.setrlimit(resource.RLIMIT_DATA, (MAX_BYTES, MAX_BYTES))
        code = BROKEN
        try:
            if kernels:
                plain()
                arguments.extend(["-W", "ignore::RuntimeWarning"])
            arguments.extend(["-W", "ignore::pytest.PytestAssertRewriteWarning"])
            code = int(pytest.main(arguments, plugins=[plugin]))
        finally:
            os._exit(code)

    process = multiprocessing.get_context("fork").Process(target=run)
    process.start()
    process.join(seconds)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid or 0, signal.SIGKILL)
    process.join()
    return process.exitcode if process.exitcode is not None else -1


def recorded(files: list[str], kernels: bool) -> Map:
    """Return which tests of some files call what, recorded where a file is new or another."""
    path = WORK / f"{'plain' if kernels else 'compiled'}.json"
    found = json.loads(path.read_text()) if path.exists() else {}
    found = {
        file: entry
        for file, entry in found.items()
        if (TREE / file).exists() and entry["digest"] == digest(file)
    }
    while missing := [file for file in files if file not in found]:
        arguments = ["-q", "-m", "not slow", "-p", "no:cacheprovider", *missing]
        path.write_text(json.dumps(found))
        recorder = Recorder(path, found, PLAIN_SECONDS if kernels else TEST_SECONDS)
        ended = pytest_process(arguments, recorder, kernels, 7200.0)
        found = json.loads(path.read_text())
        # A file without fast tests has nothing to record; one that ends the process is not used.
        left = [file for file in missing if file not in found]
        if ended == BROKEN:
            raise SystemExit((WORK / "output").read_text()[-2000:])
        for file in left if ended in (0, 1, 5) else left[:1]:
            found[file] = {"digest": digest(file), "tests": {}}
    path.write_text(json.dumps(found))
    tests = {test: entry for file in files for test, entry in found[file]["tests"].items()}
    return {test: (seconds, frozenset(names)) for test, (seconds, names) in tests.items()}


def files_of(mutant: Mutant) -> list[str]:
    """Return the files of tests that have to notice a change: of its file, of its module, of its
    folder or kind.
    """
    file, _, function = mutant.function.partition(":")
    stem = file.removesuffix("/__init__.py").removesuffix(".py").split("/")
    module = ".".join(["specopt", *(stem[1:] if stem[0] == "optimizer" else stem)])
    direct = re.compile(
        rf"\b({re.escape(module)}|{module.rpartition('.')[0]} import .*{stem[-1]})\b"
    )
    named = re.compile(rf"\b{re.escape(function.partition('.')[0])}\b")
    own, found = TREE / "tests" / stem[0], []
    for path in sorted((TREE / "tests").rglob("test_*.py")):
        text, near = path.read_text(), path.is_relative_to(own)
        parents = path.relative_to(own).parts[:-1] if near else ()
        kind = near and all(any(part.startswith(one) for part in stem[1:]) for one in parents)
        points = (
            4 * (path.stem[5:].removesuffix("_command") in [part.strip("_") for part in stem])
            + 2 * bool(function and named.search(text))
            + 1
        )
        score = kind * points + (4 if near else 2) * bool(
            direct.search(text) and (near or named.search(text))
        )
        if score:
            found.append((-score, -len(parents), len(text), str(path.relative_to(TREE))))
    return list(dict.fromkeys([*(name for *_, name in sorted(found)[:MAX_FILES]), *RECORDED]))


def tests_of(mutant: Mutant, found: Map) -> list[str]:
    """Return the tests that call a function, the most special first; where there is none, those
    that call its file.
    """
    file = mutant.function.partition(":")[0]
    callers = [test for test, (_, names) in found.items() if mutant.function in names]
    for start in (mutant.function, f"{file}:"):
        callers = callers or [
            test for test, (_, of) in found.items() if any(name.startswith(start) for name in of)
        ]
    seconds, chosen = 0.0, list[str]()
    for test in sorted(callers, key=lambda test: (len(found[test][1]), found[test][0])):
        if not chosen or seconds + found[test][0] <= MUTANT_SECONDS:
            chosen.append(test)
            seconds += found[test][0]
    return chosen


def settle(numbers: Any) -> None:
    """Give a process that tries mutants a folder and a copy of its own."""
    global WORK, TREE, PACKAGE
    WORK = WORK / str(numbers.get())
    TREE = WORK / "tree"
    PACKAGE = TREE / "build/static/specopt"
    copy()
    environment()


def survives(mutant: Mutant, found: Map, kernels: bool) -> bool:
    """Say whether no test notices a change."""
    tests = tests_of(mutant, found)
    if not tests:
        return True
    path = TREE / mutant.function.partition(":")[0]
    source = path.read_bytes()
    before = path.stat()
    path.write_bytes(source[: mutant.span[0]] + mutant.text + source[mutant.span[1] :])
    files = sorted({test.partition("::")[0] for test in tests})
    arguments = ["-x", "-q", "-m", "not slow", "-p", "no:cacheprovider", *files]
    limit = 4.0 * sum(found[test][0] for test in tests) + 90.0
    try:
        code = pytest_process(arguments, Chosen(tests), kernels, limit)
    finally:
        path.write_bytes(source)
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    if code == 5:
        raise RuntimeError(f"{mutant.function}: {(WORK / 'output').read_text()[-2000:]}")
    return code == 0


def measure(
    name: str, sample: list[Mutant], known: set[tuple[str, ...]], dead: set[tuple[str, ...]]
) -> bool:
    """Print which mutants survive, and say whether too many do; add the others to those that are
    dead.
    """
    maps, fork = {}, multiprocessing.get_context("fork")
    for kernels in (False, True):
        asked = {
            file
            for one in sample
            if ("/kernels/" in one.function) == kernels
            for file in files_of(one)
        }
        maps[kernels] = recorded(sorted(asked), kernels)
    print(f"{name}:")
    counted = [one for one in sample if one[:3] not in known]
    tried = [one for one in counted if one[:3] not in dead]
    plainly = ["/kernels/" in one.function for one in tried]
    numbers = fork.Queue()
    for number in range(JOBS):
        numbers.put(number)
    killed = len(counted) - len(tried)
    with ProcessPoolExecutor(JOBS, fork, settle, (numbers,)) as pool:
        found = pool.map(survives, tried, [maps[one] for one in plainly], plainly)
        for mutant, lives in zip(tried, found, strict=True):
            if lives:
                csv.writer(sys.stdout).writerow(mutant[:3])
                sys.stdout.flush()
            else:
                killed += 1
                dead.add(mutant[:3])
                KILLED.write_text(json.dumps(sorted(dead)))
            print(f"{name}: {killed} killed", end="\r", file=sys.stderr)
    share, reasons = killed / max(len(counted), 1), len(sample) - len(counted)
    print(
        f"{name}: {killed} of {len(counted)} killed ({share:.1%}), {reasons} with a reason",
        flush=True,
    )
    return share < FOLDERS.get(name.split("/")[0], 0.85)


def main() -> int:
    """Draw and run mutants; return 1 if a folder has less than its share."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "parts",
        nargs="*",
        help="beginnings of paths, drawn from one by one; all four folders if none",
    )
    parser.add_argument("--count", type=int, default=60, help="how many lines are drawn of each")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--resume", action="store_true", help="take over what earlier runs have killed"
    )
    chosen = parser.parse_args()
    with KNOWN.open(newline="", encoding="utf-8") as file:
        known = {tuple(row[:3]) for row in csv.reader(file)}
    dead = (
        {tuple(one) for one in json.loads(KILLED.read_text())}
        if chosen.resume and KILLED.exists()
        else set()
    )
    copy()
    environment()
    files = sorted(
        str(path.relative_to(ROOT)) for folder in FOLDERS for path in (ROOT / folder).rglob("*.py")
    )
    missed = False
    for part in chosen.parts or [f"{folder}/" for folder in FOLDERS]:
        sample = drawn([file for file in files if file.startswith(part)], chosen.count, chosen.seed)
        missed |= measure(part, sample, known, dead)
    return missed


def environment() -> None:
    """Let all processes find the copy, with the same random examples, and what takes long to
    import.
    """
    os.chdir(TREE)
    os.environ |= {"CI": "1", "PYTHONPATH": str(PACKAGE.parent), "PYTHONDONTWRITEBYTECODE": "1"}
    sys.dont_write_bytecode = True
    sys.path.insert(0, str(PACKAGE.parent))
    for name in SLOW_IMPORTS:
        importlib.import_module(name)


if __name__ == "__main__":
    sys.exit(main())
