"""Mutation testing: change one thing at a time, anywhere in the product, and see whether the tests that run it notice.

``make mutants`` draws lines of every folder and changes one thing in each: a comparison, an operator, a number, a
condition, a call. A recorded map says which tests call which function; those that call the changed one run, the most
special first. A survivor that is not in ``survivors.csv`` with its reason is printed: write the test that kills it, or
list it. Kernels run as plain Python. Arguments: parts of paths, to draw from the files that match, all together; what
may be drawn, how often and with what seed is said by options.
"""

from __future__ import annotations

import argparse
import ast
import bisect
import csv
import hashlib
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
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import highspy  # noqa: F401  (what takes long to import is there before processes are forked)
import hypothesis.extra.numpy
import numba
import pytest
import rich.console
import scipy.optimize
import scipy.stats
import typer  # noqa: F401

ROOT = Path(__file__).resolve().parents[2]
WORK = ROOT / "build/mutants"
TREE = WORK / "tree"
PACKAGE = TREE / "build/static/specopt"
KNOWN = Path(__file__).with_name("survivors.csv")
FOLDERS = {"models": 0.95, "solvers": 0.95, "optimizer": 0.85, "instances": 0.85}
"""The share of mutants that must be killed in every folder of the product."""

TEST_SECONDS, PLAIN_SECONDS = 5.0, 2.0
"""A test that takes more of the processor is left out; where kernels are plain Python many do."""

MUTANT_SECONDS = 20.0
"""The tests of a mutant take so long together where nothing is changed; further ones are left out."""

MAX_FILES = 5
"""So many files of tests are asked for each mutant."""

MAX_BYTES = 8 << 30
"""More memory is refused to a mutant."""

BROKEN = 70
"""How a process ends that does not come to its tests."""

Map = dict[str, tuple[float, frozenset[str]]]
"""A test -> its seconds, and the functions that it calls."""


class Mutant(NamedTuple):
    """A change: the function it is in, as FILE:NAME, its lines before and after, and the bytes that it replaces."""

    function: str
    was: str
    now: str
    span: tuple[int, int]
    text: bytes


SWAPS = {
    **{a: b for pair in ("< <=", "> >=", "== !=", "+ -", "* /", "and or") for a, b in (pair.split(), pair.split()[::-1])},
    **{"//": "/", "%": "*", "**": "*", "@": "*", "&": "|", "|": "&", "<<": ">>", ">>": "<<"},
    **{"is not": "is", "is": "is not", "not in": "in", "in": "not in"},
}
NAMES = {"min": "max", "max": "min", "all": "any", "any": "all", "minimum": "maximum", "maximum": "minimum"}
OPERATORS = re.compile(rb"is\s+not\b|not\s+in\b|\b(?:is|in|and|or)\b|//|\*\*|<<|>>|[<>=!]=|[-+*/%@&|<>]")


class Changes(ast.NodeVisitor):
    """Collects the changes of a file by line: what is in the place of which bytes."""

    def __init__(self, source: bytes) -> None:
        self.source = source
        self.starts = [0]
        for line in source.splitlines(keepends=True):
            self.starts.append(self.starts[-1] + len(line))
        self.scope: list[str] = []
        self.found: dict[int, list[tuple[str, tuple[int, int], bytes]]] = defaultdict(list)
        self.visit(ast.parse(source))

    def _at(self, line: int, column: int) -> int:
        return self.starts[line - 1] + column

    def _ends(self, node: Any) -> tuple[int, int]:
        return self._at(node.lineno, node.col_offset), self._at(node.end_lineno, node.end_col_offset)

    def _put(self, start: int, end: int, text: bytes) -> None:
        self.found[bisect.bisect(self.starts, start)].append((".".join(self.scope), (start, end), text))

    def _between(self, left: ast.AST, right: ast.AST) -> None:
        start, end = self._ends(left)[1], self._ends(right)[0]
        operator = OPERATORS.search(self.source, start, end)
        if operator:
            swapped = SWAPS[" ".join(operator[0].decode().split())]
            self._put(*operator.span(), swapped.encode())

    def _inside(self, node: Any, *parts: ast.AST) -> None:
        self.scope.append(node.name)
        for part in (*parts, *node.body):
            self.visit(part)
        self.scope.pop()

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        """Go on with the body; what decorates a class tells how it is written, not what it does."""
        self._inside(node)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        """Go on with defaults and body, without the types."""
        self._inside(node, *node.args.defaults, *filter(None, node.args.kw_defaults))

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        """Leave out the type."""
        if node.value:
            self.visit(node.value)

    def visit_Assert(self, node: ast.Assert) -> None:
        """Leave out what holds anyway."""

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        """Leave out messages."""

    def visit_Assign(self, node: ast.Assign) -> None:
        """Leave out how far to go, a constant with a name: no plan is right or wrong by it."""
        if self.scope or not isinstance(node.value, ast.Constant):
            self.generic_visit(node)

    def visit_keyword(self, node: ast.keyword) -> None:
        """Leave out whether lengths are checked, which are the same, and whether a field is printed."""
        if node.arg not in ("strict", "repr"):
            self.generic_visit(node)

    def visit_Compare(self, node: ast.Compare) -> None:
        """Change every comparison."""
        for left, right in zip([node.left, *node.comparators], node.comparators, strict=False):
            self._between(left, right)
        self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        """Change the first `and` or `or`."""
        self._between(*node.values[:2])
        self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        """Change an operator."""
        self._between(node.left, node.right)
        self.generic_visit(node)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        """Change the operator of an assignment."""
        self._between(node.target, node.value)
        self.generic_visit(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> None:
        """Leave out a sign, or a `not`."""
        start = self._ends(node)[0]
        self._put(start, start + (3 if isinstance(node.op, ast.Not) else 1), b"")
        self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        """Take another number, or the other truth."""
        value = node.value
        if isinstance(value, bool):
            self._put(*self._ends(node), str(not value).encode())
        elif isinstance(value, int | float):
            self._put(*self._ends(node), repr(value + 1 if isinstance(value, int) or not value else 2 * value).encode())

    def visit_Name(self, node: ast.Name) -> None:
        """Take the other end."""
        if node.id in NAMES:
            self._put(*self._ends(node), NAMES[node.id].encode())

    def visit_Attribute(self, node: ast.Attribute) -> None:
        """Take the other end."""
        if node.attr in NAMES:
            end = self._ends(node)[1]
            self._put(end - len(node.attr), end, NAMES[node.attr].encode())
        self.generic_visit(node)

    def _condition(self, node: Any) -> None:
        start, end = self._ends(node.test)
        self._put(start, end, b"not (" + self.source[start:end] + b")")
        self.generic_visit(node)

    visit_While = visit_IfExp = _condition

    def visit_If(self, node: ast.If) -> None:
        """Turn a condition round, but not what is for type checkers alone."""
        if not isinstance(node.test, ast.Name) or node.test.id != "TYPE_CHECKING":
            self._condition(node)

    def visit_comprehension(self, node: ast.comprehension) -> None:
        """Turn what is chosen round."""
        for test in node.ifs:
            start, end = self._ends(test)
            self._put(start, end, b"not (" + self.source[start:end] + b")")
        self.generic_visit(node)

    def visit_Expr(self, node: ast.Expr) -> None:
        """Leave out a call whose result nobody reads."""
        if isinstance(node.value, ast.Call):
            self._put(*self._ends(node), b"None")
        self.generic_visit(node)

    def visit_Break(self, node: ast.Break) -> None:
        """Go on instead."""
        self._put(*self._ends(node), b"continue")

    def visit_Continue(self, node: ast.Continue) -> None:
        """Stop instead."""
        self._put(*self._ends(node), b"break")


def mutants(file: str) -> dict[int, list[Mutant]]:
    """Return the changes of a file by line."""
    source = (ROOT / file).read_bytes()
    changes = Changes(source)
    return {
        line: [Mutant(f"{file}:{name}", *changed(source, span, text), span, text) for name, span, text in found]
        for line, found in changes.found.items()
    }


def changed(source: bytes, span: tuple[int, int], text: bytes) -> Iterator[str]:
    """Yield the lines that a change touches, before and after it, each as one line."""
    start, end = source.rfind(b"\n", 0, span[0]) + 1, source.find(b"\n", span[1])
    for middle in (source[span[0] : span[1]], text):
        yield " ".join((source[start : span[0]] + middle + source[span[1] : end]).decode().split())


def drawn(files: list[str], count: int, seed: int) -> list[Mutant]:
    """Return changes of lines that are drawn at random, one of a line: the same ones while those lines stay."""
    lines = []
    for found in (found for file in files for found in mutants(file).values()):
        lines.append((hashlib.sha256(f"{seed} {found[0].function} {found[0].was}".encode()).digest(), found))
    lines.sort(key=lambda line: line[0])
    return [found[key[0] % len(found)] for key, found in lines[:count]]


def copy() -> None:
    """Bring a copy of the checkout up to date, and lay the package out in it."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split("\0")
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
    for path in [*(TREE / "optimizer").iterdir(), *(TREE / part for part in FOLDERS if part != "optimizer")]:
        (PACKAGE / path.name).symlink_to(path)
    subprocess.run([sys.executable, "-m", "compileall", "-q", *(str(TREE / folder) for folder in FOLDERS)], check=True)


def plain() -> None:
    """Let kernels be the functions that they are written as."""
    from specopt.solvers._kernels import kernel
    from specopt.solvers.compiler import Compiler

    for name in ("helper", "inlined"):
        setattr(kernel, name, lambda function: function)
    kernel.kernel = lambda *signatures, **options: lambda function: function
    Compiler.compile_ahead = lambda self, *names: None  # type: ignore[method-assign]


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
        threading.settrace(self)  # type: ignore[arg-type]
        sys.settrace(self)  # type: ignore[arg-type]
        try:
            runtestprotocol(item, nextitem=nextitem)
        finally:
            sys.settrace(None)
            threading.settrace(None)  # type: ignore[arg-type]
            signal.setitimer(signal.ITIMER_PROF, 0.0)
        file = item.nodeid.partition("::")[0]
        tests = self.found.setdefault(file, {"digest": digest(file), "tests": {}})["tests"]
        if item.nodeid not in self.bad:
            tests[item.nodeid] = time.process_time() - started, sorted(filter(None, map(name_of, self.code)))
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
        items[:] = sorted((one for one in items if one.nodeid in self.order), key=lambda one: self.order[one.nodeid])


def pytest_process(arguments: list[str], plugin: Any, kernels: bool, seconds: float) -> int:
    """Run pytest in a process of its own that has what takes long to import; return how it ended."""

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
    try:
        os.killpg(process.pid or 0, signal.SIGKILL)
    except ProcessLookupError:
        pass
    process.join()
    return process.exitcode if process.exitcode is not None else -1


def recorded(files: list[str], kernels: bool) -> Map:
    """Return which tests of some files call what, recorded where a file is new or another."""
    path = WORK / f"{'plain' if kernels else 'compiled'}.json"
    found = json.loads(path.read_text()) if path.exists() else {}
    found = {file: entry for file, entry in found.items() if (TREE / file).exists() and entry["digest"] == digest(file)}
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
    """Return the files of tests that have to notice a change: of its file, of its module, of its folder or kind."""
    file, _, function = mutant.function.partition(":")
    stem = file.removesuffix("/__init__.py").removesuffix(".py").split("/")
    module = ".".join(["specopt", *(stem[1:] if stem[0] == "optimizer" else stem)])
    direct = re.compile(rf"\b({re.escape(module)}|{module.rpartition('.')[0]} import .*{stem[-1]})\b")
    named = re.compile(rf"\b{re.escape(function.partition('.')[0])}\b")
    folder, found = TREE / "tests" / stem[0], []
    for path in sorted(folder.rglob("test_*.py")):
        text, parents = path.read_text(), path.relative_to(folder).parts[:-1]
        kind = all(any(part.startswith(one) for part in stem[1:]) for one in parents)
        if "_kernels" in stem:
            kind = stem[2].startswith(path.stem[5:] if parents == ("_kernels",) else (*parents, "-")[0])
        points = 4 * (path.stem[5:] in stem) + 2 * bool(function and named.search(text)) + 1
        score = kind * points + 4 * bool(direct.search(text))
        if score:
            found.append((-score, -len(parents), len(text), str(path.relative_to(TREE))))
    return [name for *_, name in sorted(found)[:MAX_FILES]]


def tests_of(mutant: Mutant, found: Map) -> list[str]:
    """Return the tests that call a function, the most special first; outside functions, those that call its file."""
    file, _, name = mutant.function.partition(":")
    callers = [test for test, (_, names) in found.items() if mutant.function in names]
    if not callers:
        callers = [test for test, (_, names) in found.items() if any(each.startswith(f"{file}:{name}") for each in names)]
    if not callers:
        callers = [test for test, (_, names) in found.items() if any(each.startswith(f"{file}:") for each in names)]
    seconds, chosen = 0.0, []
    for test in sorted(callers, key=lambda test: (len(found[test][1]), found[test][0])):
        if not chosen or seconds + found[test][0] <= MUTANT_SECONDS:
            chosen.append(test)
            seconds += found[test][0]
    return chosen


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
        raise SystemExit(f"{mutant.function}: {(WORK / 'output').read_text()[-2000:]}")
    return code == 0


def main() -> int:
    """Draw, run, compare with what is known; return 1 if a folder has less than its share."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", help="parts of paths; without any all folders are drawn from, one by one")
    parser.add_argument("--count", type=int, default=60, help="how many lines are drawn")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--resume", action="store_true", help="take over what earlier runs have killed")
    chosen = parser.parse_args()
    path = WORK / "killed.json"
    dead = {tuple(one) for one in json.loads(path.read_text())} if chosen.resume and path.exists() else set()
    with KNOWN.open(newline="", encoding="utf-8") as file:
        known = {tuple(row[:3]): row[3] for row in csv.reader(file)}
    copy()
    environment()
    files = sorted(str(path.relative_to(ROOT)) for folder in FOLDERS for path in (ROOT / folder).rglob("*.py"))
    groups = {
        folder: [file for file in files if file.startswith(f"{folder}/")] for folder in FOLDERS
    } if not chosen.parts else {" ".join(chosen.parts): [file for file in files if any(part in file for part in chosen.parts)]}
    missed = False
    for name, group in groups.items():
        killed = reasons = 0
        print(f"{name}:")
        sample = drawn(group, chosen.count, chosen.seed)
        maps = {}
        for kernels in (False, True):
            asked = {name for one in sample if ("/_kernels/" in one.function) == kernels for name in files_of(one)}
            maps[kernels] = recorded(sorted(asked), kernels)
        for mutant in sample:
            kernels = "/_kernels/" in mutant.function
            if tuple(mutant[:3]) in known:
                reasons += 1
            elif tuple(mutant[:3]) not in dead and survives(mutant, maps[kernels], kernels):
                csv.writer(sys.stdout).writerow(mutant[:3])
                sys.stdout.flush()
            else:
                killed += 1
                dead.add(tuple(mutant[:3]))
                path.write_text(json.dumps(sorted(dead)))
            print(f"{name}: {killed} killed, {reasons} known", end="\r", file=sys.stderr)
        counted = len(sample) - reasons
        missed |= killed < FOLDERS.get(name, 0.85) * counted
        print(f"{name}: {killed} of {counted} killed ({killed / max(counted, 1):.1%}), {reasons} with a reason")
        sys.stdout.flush()
    return missed


def environment() -> None:
    """Let all processes find the copy, with the same random examples for every mutant."""
    os.chdir(TREE)
    os.environ |= {
        "CI": "1",
        "OMP_NUM_THREADS": "1",
        "PYTHONPATH": str(PACKAGE.parent),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    sys.dont_write_bytecode = True
    sys.path[0] = str(PACKAGE.parent)


if __name__ == "__main__":
    sys.exit(main())
