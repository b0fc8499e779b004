"""Methods specified on the command line by a name, optionally followed by a colon and options."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from specopt.api.arguments import option_types, pairs_of, typed
from specopt.api.solve import method_named
from specopt.api.solve import methods as methods_for
from specopt.models.errors import InvalidInput
from specopt.models.problem import Problem
from specopt.solvers.method import Method


def methods_of(
    texts: Sequence[str] | None, problems: Iterable[Problem]
) -> list[str | Method] | None:
    """Parse texts of the form ``NAME`` or ``NAME:option=value,...`` as methods; None means all.

    Raises
    ------
    InvalidInput
        If no problem has such a method, or a method has no such option.
    """
    if not texts:
        return None
    kinds = dict.fromkeys(type(problem) for problem in problems)
    found: list[str | Method] = []
    for text in texts:
        name, colon, options = text.partition(":")
        meant = named(name, kinds, "--method")
        if not colon:
            found.append(name)
            continue
        for method in meant:
            types = option_types(method)
            values = {}
            for option, value in pairs_of(options.split(","), f"--method {name}").items():
                if option not in types:
                    has = ", ".join(types) or "no options"
                    raise InvalidInput(f"--method {name}: no option {option!r}; it has {has}")
                values[option] = typed(f"--method {name}:{option}", types[option], value)
            found.append(method(**values))
    return found


def named(name: str, kinds: Collection[type[Problem]], where: str) -> list[type[Method]]:
    """Return the methods with a given name for some kinds of problems.

    Raises
    ------
    InvalidInput
        If no kind has such a method. The message begins with `where`.
    """
    found = [method for kind in kinds if (method := method_named(kind.kind, name)) is not None]
    if not found:
        known = sorted({method.name for kind in kinds for method in methods_for(kind)})
        raise InvalidInput(f"{where}: expected some of {', '.join(known)}, got {name!r}")
    return found
