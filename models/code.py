"""A text of what classes do: their code, that of what it calls, and the constants it reads."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from types import CodeType, FunctionType
from typing import Any

import msgspec


def text_of(classes: Iterable[type[Any]]) -> str:
    """Return a text of classes, which need not stand in files: the same in every process with this Python."""
    found: dict[str, str] = {}
    queue: list[tuple[str, Any]] = [(cls.__name__, cls) for cls in classes]  # travelling costs qualified names
    modules = {cls.__module__ for _, cls in queue}
    while queue:
        name, value = queue.pop()
        if name in found:
            continue
        for inner in ("__func__", "fget", "func"):  # of methods, properties and cached ones
            value = getattr(value, inner, value)
        if isinstance(value, FunctionType):
            code, names = _code(value.__code__)
            found[name] = code
            cells = zip(value.__code__.co_freevars, value.__closure__ or (), strict=True)
            queue += [(f"{name}.{free}", cell.cell_contents) for free, cell in cells if free != "__class__"]
            queue += [(f"{name}.{place}", default) for place, default in enumerate(value.__defaults__ or ())]
            queue += (value.__kwdefaults__ or {}).items()
            queue += [(other, value.__globals__[other]) for other in names if other in value.__globals__]
        elif isinstance(value, type):
            found[name] = repr([(base.__module__, base.__name__) for base in value.__bases__])
            if value.__module__ in modules:
                queue += [(f"{name}.{part}", inner) for part, inner in vars(value).items() if part[:2] != "__"]
        else:
            with suppress(TypeError, ValueError, AttributeError, RecursionError):  # no constant
                found[name] = repr(msgspec.json.encode(value, enc_hook=lambda array: array.tolist(), order="sorted"))
    return repr(sorted(found.items()))


def _code(code: CodeType) -> tuple[str, list[str]]:
    """Return a text of compiled code, and the names that it looks up, in the functions inside it, too."""
    parts, names = [], list(code.co_names)
    for part in code.co_consts:
        if isinstance(part, CodeType):
            text, more = _code(part)
            names += more
        else:
            text = repr(sorted(map(repr, part)) if isinstance(part, frozenset) else part)
        parts.append(text)
    return repr((code.co_code, code.co_names, parts)), names
