"""Declaration of the arguments and options of a command as the fields of a dataclass."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import MISSING, field, fields
from functools import wraps
from typing import Annotated, Any, TypeVar, get_args, get_type_hints

from specopt.commands.shared import argument_info, count, number, option_info

T = TypeVar("T")


def option(metavar: str | None, text: str, *names: str, default: Any = None, **more: Any) -> Any:
    """Declare a dataclass field that is an option.

    By default, the option is named after the field.
    """
    return _declared(option_info(metavar, text, *names, **more), default)


def required(metavar: str, text: str, *names: str) -> Any:
    """Declare a dataclass field that is an option without a default."""
    return option(metavar, text, *names, default=MISSING)


def flag(text: str) -> Any:
    """Declare a dataclass field that is a flag: an option without a value."""
    return option(None, text, default=False)


def argument(metavar: str, text: str, default: Any = MISSING) -> Any:
    """Declare a dataclass field that is a positional argument."""
    return _declared(argument_info(metavar, text), default)


def _declared(info: Any, default: Any) -> Any:
    return field(default=default, metadata={"info": info})


def from_fields(command: Callable[[Any], T]) -> Callable[..., T]:
    """Convert a function with a dataclass parameter to a command with one option per field."""
    [holder] = inspect.signature(command, eval_str=True).parameters.values()
    hints = get_type_hints(holder.annotation, include_extras=True)
    parameters = []
    for one in fields(holder.annotation):
        hint = hints[one.name]
        if info := one.metadata.get("info"):
            info.parser = _parser(hint)
            if hint is bool and info.default is ...:  # otherwise, typer adds a negative option
                info.default = f"--{one.name.replace('_', '-')}"
            hint = Annotated[hint, info]
        default = inspect.Parameter.empty if one.default is MISSING else one.default
        parameters.append(
            inspect.Parameter(
                one.name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=hint
            )
        )

    @wraps(command)
    def called(**given: Any) -> T:
        return command(holder.annotation(**given))

    called.__annotations__ = {one.name: one.annotation for one in parameters}
    called.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return called


def _parser(hint: Any) -> Callable[[str], Any] | None:
    """Return the function that parses numbers of a type, or None if the type is not numeric."""
    found = (
        _PARSERS.get(part) if not get_args(part) else _parser(part)
        for part in get_args(hint) or (hint,)
    )
    return next(filter(None, found), None)


_PARSERS = {int: count, float: number}


def filled(call: Callable[..., T], options: Any, **others: Any) -> T:
    """Call a function or class with those options that match its parameters, and with `others`."""
    shared = {one.name for one in fields(options)} & set(
        inspect.signature(call).parameters
    ) - others.keys()
    return call(**{name: getattr(options, name) for name in shared}, **others)
