"""Functions that compute identifiers for code, so that changes to the code can be detected.

Source files are identified by a digest. Classes are identified by a string that depends on their
code, the functions that they call, and the constants that they read.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from types import CodeType, FunctionType
from typing import Any

import msgspec


def digest_of(sources: Mapping[str, bytes]) -> str:
    """Return a short hexadecimal digest of source files, given as a mapping from file names to
    source code. The order of the files does not matter.
    """
    whole = hashlib.sha256()
    for name in sorted(sources):
        whole.update(f"{name} {len(sources[name])}\n".encode() + sources[name])
    return whole.hexdigest()[:16]


def text_of(classes: Iterable[type[Any]]) -> str:
    """Return a string that describes the code of classes, so that changes can be detected.

    The classes need not be defined in files. The string is the same in every process that uses the
    same Python version.
    """
    found: list[tuple[str, str]] = []
    seen: set[Any] = set()
    queue: list[tuple[str, Any]] = [
        (cls.__name__, cls) for cls in classes
    ]  # qualified names are lost when code is sent to other processes
    modules = {cls.__module__ for _, cls in queue}
    while queue:
        name, value = queue.pop()
        for inner in ("__func__", "fget", "func"):  # methods, properties and cached properties
            value = getattr(value, inner, value)
        parts: dict[Any, Any] = {}
        if not isinstance(value, FunctionType | type):
            with suppress(TypeError, ValueError, AttributeError, RecursionError):  # not a constant
                found.append(
                    (
                        name,
                        str(
                            msgspec.json.encode(
                                value, enc_hook=lambda one: one.tolist(), order="sorted"
                            )
                        ),
                    )
                )
        elif value in seen:
            continue
        elif isinstance(value, type):
            found.append((name, str([(base.__module__, base.__name__) for base in value.__mro__])))
            parts = dict(vars(value)) if value.__module__ in modules else {}
        else:
            codes = list(_codes(value.__code__))
            found.append(
                (name, str([(code.co_code, code.co_names, _constants(code)) for code in codes]))
            )
            cells = zip(value.__code__.co_freevars, value.__closure__ or (), strict=True)
            scope = value.__globals__ | {free: cell.cell_contents for free, cell in cells}
            names = [
                one for code in codes for one in code.co_names + code.co_freevars if one in scope
            ]
            parts = {one: scope[one] for one in names} | dict(enumerate(value.__defaults__ or ()))
            parts |= value.__kwdefaults__ or {}
        if parts:
            seen.add(value)
        queue += [
            (f"{name}.{part}", inner) for part, inner in parts.items() if str(part)[:2] != "__"
        ]
    return str(sorted(found))


def _codes(code: CodeType) -> Iterator[CodeType]:
    """Yield a code object and the code objects of all functions nested inside it."""
    yield code
    for part in code.co_consts:
        if isinstance(part, CodeType):
            yield from _codes(part)


def _constants(code: CodeType) -> list[str]:
    return [
        str(sorted(map(repr, part)) if isinstance(part, frozenset) else repr(part))
        for part in code.co_consts
        if not isinstance(part, CodeType)
    ]
