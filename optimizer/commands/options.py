"""Arguments and options of a command as the fields of one dataclass."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import MISSING, fields
from functools import wraps
from typing import Any, TypeVar, get_type_hints

T = TypeVar("T")


def from_fields(command: Callable[[Any], T]) -> Callable[..., T]:
    """Give a command, which takes one dataclass, an argument or option per field: its annotation, name and default."""
    [holder] = inspect.signature(command, eval_str=True).parameters.values()
    hints = get_type_hints(holder.annotation, include_extras=True)
    defaults = {one.name: inspect.Parameter.empty if one.default is MISSING else one.default
                for one in fields(holder.annotation)}  # fmt: skip

    @wraps(command)
    def called(**given: Any) -> T:
        return command(holder.annotation(**given))

    keyword = inspect.Parameter.KEYWORD_ONLY
    called.__annotations__ = {name: hints[name] for name in defaults}
    called.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [inspect.Parameter(name, keyword, default=value, annotation=hints[name]) for name, value in defaults.items()]
    )
    return called


def filled(call: Callable[..., T], options: Any, **others: Any) -> T:
    """Call a function or class with the options that it takes by the same names, and with others."""
    shared = {one.name for one in fields(options)} & set(inspect.signature(call).parameters) - others.keys()
    return call(**{name: getattr(options, name) for name in shared}, **others)
