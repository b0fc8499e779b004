"""Loading of plug-ins: methods, families, policies and problem kinds from other distributions.

A distribution declares each plug-in as an entry point. Methods, families and policies belong to the
groups `specopt.methods`, `specopt.families` and `specopt.policies`, and their entry points are
named KIND.NAME. Kinds belong to the group `specopt.kinds`, and their entry points are named KIND.

Plug-ins are loaded on demand. If a plug-in that was requested by name cannot be used, an exception
is raised. If all plug-ins were requested, a warning is logged instead. In both cases, the message
names the entry point and its distribution.

Each plug-in is loaded in a separate thread. Unless the plug-in was requested by name, the thread is
abandoned if it does not finish in time. SystemExit and KeyboardInterrupt raised by a plug-in end
only this thread. Ctrl-C interrupts the main thread, which waits for the plug-in.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from functools import cache
from inspect import isabstract
from typing import TYPE_CHECKING, Any

from specopt.instances.family import Family
from specopt.kinds import KINDS, kinds
from specopt.kinds.kind import Kind
from specopt.models.errors import BrokenPlugin, InvalidInput, SpecoptError
from specopt.models.fields import describe, printable
from specopt.models.problem import problem_type
from specopt.solvers.method import Method
from specopt.solvers.policy import Policy

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

METHODS = "specopt.methods"
FAMILIES = "specopt.families"
POLICIES = "specopt.policies"
OWN_KINDS = "specopt.kinds"

LOAD_SECONDS = 10.0
"""Time limit for importing each plug-in when all plug-ins are requested, in seconds. There is no
limit for a plug-in that is requested by name.
"""

logger = logging.getLogger("specopt")


def plugged_kinds(name: str | None = None) -> tuple[Kind, ...]:
    """Return the kinds from other distributions: all of them, or only the kind with a given name.

    Raises
    ------
    BrokenPlugin
        If the plug-in with that name cannot be used.
    """
    return tuple(_all(OWN_KINDS) if name is None else filter(None, [plugged(OWN_KINDS, name)]))


def plugged_methods(kind: str) -> tuple[type[Method], ...]:
    """Return the methods that other distributions provide for one kind of problem."""
    return tuple(_all(METHODS, kind))


def plugged(group: str, name: str) -> Any:
    """Return the object that an entry point of another distribution refers to.

    The result is None if there is no entry point with this group and name.

    Raises
    ------
    BrokenPlugin
        If the plug-in cannot be used.
    """
    entry = next((entry for entry in _entries(group) if entry.name == name), None)
    value, wrong = (None, None) if entry is None else _loaded(entry, patient=True)
    if wrong is not None:
        raise BrokenPlugin(wrong)
    return value


def plugged_families() -> tuple[Family, ...]:
    """Return the families from other distributions. Families of plug-in kinds come first."""
    return (*(family for kind in plugged_kinds() for family in kind.families), *_all(FAMILIES))


def plugged_family(name: str) -> Family | None:
    """Return the family named KIND/FAMILY from another distribution, or None if none exists.

    Raises
    ------
    BrokenPlugin
        If the plug-in cannot be used.
    """
    if "/" not in name:
        return None
    own = (
        family
        for kind in plugged_kinds(name.partition("/")[0])
        for family in kind.families
        if family.name == name
    )
    found: Family | None = next(own, None) or plugged(FAMILIES, name.replace("/", ".", 1))
    return found


def distribution_of(method: type[Method]) -> str:
    """Return the name and version of the distribution that registered a method."""
    entry = _entry_of(method)
    return "specopt" if entry is None else _distribution(entry)


@contextmanager
def blamed(method: type[Method]) -> Iterator[None]:
    """Attribute unexpected exceptions to the plug-in that provides a method.

    Raises
    ------
    BrokenPlugin
        If the enclosed code raises an unexpected exception. The message names the plug-in.
    """
    try:
        yield
    except (SpecoptError, MemoryError):
        raise
    except (Exception, SystemExit) as error:
        entry = _entry_of(method)
        if entry is None:
            raise
        raise BrokenPlugin(
            printable(f"{_where(entry)}: {type(error).__name__}: {error}")
        ) from error


def _entry_of(method: type[Method]) -> EntryPoint | None:
    """Return the entry point that registered a method or the kind that contains the method.

    The result is None if there is no such entry point.
    """
    for group, name in (
        (METHODS, f"{method.solves.kind}.{method.name}"),
        (OWN_KINDS, method.solves.kind),
    ):
        for entry in _entries(group):
            value = _loaded(entry)[0] if entry.name == name else None
            if method in (value, *getattr(value, "methods", ())):
                return entry
    return None


def _all(group: str, kind: str | None = None) -> Iterator[Any]:
    for entry in _entries(group):
        if kind is None or entry.name.startswith(f"{kind}."):
            value, wrong = _loaded(entry)
            if wrong is None:
                yield value
            elif entry not in _reported:
                _reported.add(entry)
                logger.warning("%s", wrong)


_reported: set[EntryPoint] = set()
_hanging: set[str] = set()
"""Names of plug-in modules whose import did not finish in time."""


@cache
def _entries(group: str) -> tuple[EntryPoint, ...]:
    from importlib.metadata import entry_points

    return tuple(entry_points(group=group))


def _loaded(entry: EntryPoint, patient: bool = False) -> tuple[Any, str | None]:
    """Load an entry point, and return a pair (object, reason).

    If the entry point cannot be used, `reason` is an error message; otherwise, it is None. Unless
    `patient` is set, an entry point also counts as unusable if its import exceeds the time limit.
    """
    thread, found = _loading(entry)
    thread.join(None if patient else 0.0 if entry.module in _hanging else LOAD_SECONDS)
    if found:
        return found[0]
    _hanging.add(entry.module)
    return None, printable(
        f"{_where(entry)}: does not answer: its import did not end within {LOAD_SECONDS:g} s"
    )


@cache
def _loading(entry: EntryPoint) -> tuple[threading.Thread, list[tuple[Any, str | None]]]:
    found: list[tuple[Any, str | None]] = []
    thread = threading.Thread(target=lambda: found.append(_load(entry)), daemon=True)
    thread.start()
    return thread, found


def _load(entry: EntryPoint) -> tuple[Any, str | None]:
    where = _where(entry)
    try:
        if sum(other.name == entry.name for other in _entries(entry.group)) > 1:
            raise InvalidInput("another distribution declares the same name")
        value = entry.load()
        _CHECKS[entry.group](value, entry.name)
    except InvalidInput as error:
        return None, printable(f"{where}: {error}")
    except BaseException as error:
        return None, printable(f"{where}: cannot be loaded ({type(error).__name__}: {error})")
    return value, None


def _check_kind(value: Any, name: str) -> None:
    if not isinstance(value, Kind) or not value.methods:
        raise InvalidInput(f"expected a Kind with a method, got {describe(value)}")
    if value.name in [kind.name for kind in KINDS] or problem_type(value.name) is not value.problem:
        raise InvalidInput(f"a kind named {value.name!r} already exists; choose another name")
    if name != value.name:
        raise InvalidInput(f"expected an entry point named {value.name!r}")


def _check_method(value: Any, name: str) -> None:
    _check_class(value, Method, "run")
    for field in ("name", "source", "guarantee", "complexity"):
        if not isinstance(getattr(value, field, None), str):
            raise InvalidInput(
                f"{field}: expected a string, got {describe(getattr(value, field, None))}"
            )
    _check_name(
        name, value.solves.kind, value.name, lambda kind: [one.name for one in kind.methods]
    )
    value()  # checks that every option has a default


def _check_family(value: Any, name: str) -> None:
    if not isinstance(value, Family):
        raise InvalidInput(f"expected a Family, got {describe(value)}")
    _check_name(name, value.kind, value.label, lambda kind: [one.label for one in kind.families])


def _check_policy(value: Any, name: str) -> None:
    _check_class(value, Policy, "decide")
    _check_name(
        name,
        name.partition(".")[0],
        value.name,
        lambda kind: kind.simulator.policies if kind.simulator else (),
    )
    value()


_CHECKS = {
    METHODS: _check_method,
    FAMILIES: _check_family,
    POLICIES: _check_policy,
    OWN_KINDS: _check_kind,
}


def _check_class(value: Any, base: type[Any], function: str) -> None:
    if not (isinstance(value, type) and issubclass(value, base)) or isabstract(value):
        raise InvalidInput(
            f"expected a subclass of {base.__name__} with its own {function}, got {describe(value)}"
        )


def _check_name(name: str, kind: str, label: str, taken: Callable[[Kind], Collection[str]]) -> None:
    known = {one.name: one for one in kinds()}
    if kind not in known:
        raise InvalidInput(f"expected one of the kinds {', '.join(known)}, got {kind!r}")
    if name != f"{kind}.{label}":
        raise InvalidInput(f"expected an entry point named {f'{kind}.{label}'!r}")
    if label in taken(known[kind]):
        raise InvalidInput(f"specopt already has {label!r} for {kind}; choose another name")


def _where(entry: EntryPoint) -> str:
    return f"plug-in {entry.name} ({entry.group}) of {_distribution(entry)}"


def _distribution(entry: EntryPoint) -> str:
    return (
        "an unknown distribution"
        if entry.dist is None
        else f"{entry.dist.name} {entry.dist.version}"
    )
