"""Digests of the source code on which a result depends. This is the code of the method, of the
kind's kernels, and of the judge.

The digest of a module covers the source code of the module and, recursively, of all modules that it
imports from specopt, from the same package and from the same folder. Imports inside functions are
included. Edits elsewhere do not change the digest. Imports whose names are known only at run time
are not detected. Kernels are therefore looked up by kind.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterable, Iterator
from functools import cache
from importlib.metadata import packages_distributions, version
from importlib.util import find_spec, resolve_name
from pathlib import Path

from specopt.models.code import digest_of, text_of
from specopt.solvers.kernels.compiling import modules_of
from specopt.solvers.method import Method

INSTALLED = ("site-packages", "dist-packages")
"""Installation folders, in which files are unrelated to each other."""


def sources_of(method: type[Method]) -> dict[str, str]:
    """Return the version of a method's distribution and digests of the relevant source code.

    The digests cover the method, the kernels of its kind, and the judge.
    """
    kind = method.solves.kind.replace("-", "_")
    modules = [cls.__module__ for cls in method.__mro__ if issubclass(cls, Method)]
    texts = [text_of([method])] if _file(method.__module__) is None else []
    return {
        "version": version_of(method.__module__),
        "method": _digest(modules, texts),
        "kernels": _digest(modules_of(kind)),
        "judge": _digest([method.solves.__module__, "specopt.models.judge"]),
    }


@cache
def version_of(module: str) -> str:
    """Return the name and version of the distribution that contains a module.

    The result is an empty string if there is no such distribution.
    """
    top = module.partition(".")[0]
    names = ["specopt"] if top == "specopt" else packages_distributions().get(top, [])
    return ", ".join(f"{name} {version(name)}" for name in sorted(set(names)))


def _digest(modules: Iterable[str], texts: Iterable[str] = ()) -> str:
    found: dict[str, bytes] = {}
    queue = list(modules)
    tops = {"specopt", *(name.partition(".")[0] for name in queue)}
    homes = {
        file.parent for name in queue if (file := _file(name)) and file.parent.name not in INSTALLED
    }
    while queue:
        name = queue.pop()
        file = None if name in found else _file(name)
        if file is None:
            continue
        if name.partition(".")[0] in tops or file.parent in homes:
            found[name] = file.read_bytes()
            queue += _imported(name, file)
    return digest_of(found | {f"text {number}": text.encode() for number, text in enumerate(texts)})


def _file(name: str) -> Path | None:
    """Return the path of a module's file, or None if the module has no file or does not exist."""
    path = getattr(sys.modules.get(name), "__file__", None)
    if path is None and name not in sys.modules:
        try:
            spec = find_spec(name)
        except (ImportError, ValueError):
            return None
        path = None if spec is None or not spec.has_location else spec.origin
    return Path(path) if path is not None and Path(path).is_file() else None


def _imported(name: str, file: Path) -> Iterator[str]:
    """Yield the names of all modules that a module may import.

    They include names imported from packages, which may or may not be modules.
    """
    package = name if file.name == "__init__.py" else name.rpartition(".")[0]
    stub = file.with_suffix(".pyi")  # lists names that a package loads on first use
    files = (file, stub) if stub.is_file() else (file,)
    for base, parts in (one for path in files for one in _imports(path, path.stat().st_mtime_ns)):
        module = (
            resolve_name(base, package) if base.startswith(".") and package else base.lstrip(".")
        )
        yield module
        origin = _file(module) if parts else None
        if origin is not None and origin.name == "__init__.py":
            yield from (f"{module}.{part}" for part in parts)


@cache
def _imports(file: Path, changed: int) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Return the import statements in a file as pairs (module, imported names).

    `changed` is the file's modification time. It is part of the cache key, so that edited files are
    read again.
    """
    if file.suffix not in (".py", ".pyi"):
        return ()
    found: list[tuple[str, tuple[str, ...]]] = []
    for node in ast.walk(ast.parse(file.read_bytes())):
        if isinstance(node, ast.Import):
            found += [(alias.name, ()) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            found.append(
                ("." * node.level + (node.module or ""), tuple(alias.name for alias in node.names))
            )
    return tuple(found)
