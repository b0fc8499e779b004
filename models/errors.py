"""The exceptions of specopt: bad input and impossible requests, never outcomes of a solve."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Any


def shortened(text: str, most: int) -> str:
    """Return a text cut in the middle to a given length."""
    if len(text) <= most:
        return text
    tail = most // 5
    return f"{text[: most - tail - 5].rstrip()} ... {text[-tail:].lstrip()}"


def did_you_mean(name: object, names: Iterable[str]) -> str:
    """Return ", did you mean ...?" for a name that is close to one of `names`, else nothing."""
    close = difflib.get_close_matches(str(name), list(names), 1)
    return f", did you mean {close[0]!r}?" if close else ""


MAX_CHARACTERS = 1000
"""Of a message: names in files are as long as their authors like."""


class SpecoptError(Exception):
    """Base class of every exception that specopt raises on purpose."""

    def __str__(self) -> str:
        return shortened(super().__str__(), MAX_CHARACTERS)


class InvalidInput(SpecoptError, ValueError):
    """A problem, plan, option or file that breaks its contract.

    The message names the field, what was expected and what came.
    """


class NotWritten(SpecoptError, OSError):
    """The system failed to write a file, for example because the disk is full."""


class Unsupported(SpecoptError):
    """A method that cannot take a problem, or does not exist; the message says which can."""


class MissingDependency(SpecoptError, ImportError):
    """An optional library is not installed; the message names the extra to install."""


class BrokenPlugin(SpecoptError):
    """A method or family of another distribution that cannot be used; the message names it and says
    why.
    """


class InternalError(SpecoptError):
    """A method returned what the judge refuses: a defect of ours; the message says where the case
    was saved.
    """


class RefutedProof(UserWarning):
    """A bound, or a proof that there is no plan, that the method's own plan refutes: a defect of
    ours, the plan holds.

    The message says where the case was saved.
    """


class Infeasible(SpecoptError):
    """Raised inside a method when the problem has no plan: why, in the user's terms; `solve` turns
    it into a result.

    Parameters
    ----------
    message
        Why.
    conflicts
        The same as data: each a `Conflict`.
    """

    def __init__(self, message: str | None, conflicts: Iterable[Any] = ()) -> None:
        super().__init__(message)
        self.conflicts = tuple(conflicts)


class OutOfTime(SpecoptError):
    """Raised inside a method when the time limit has passed; `solve` turns it into a result."""


class OutOfWork(OutOfTime):
    """Raised inside a method when the work allowed where no time is limited is spent; other methods
    may go on.
    """


class OutOfMemory(SpecoptError):
    """Raised inside a method before it would hold more than the memory limit; `solve` returns the
    best plan.
    """


class Stopped(SpecoptError):
    """Raised inside a method when the caller's callback asked to stop; `solve` returns the best
    plan.
    """


class ServerFailed(SpecoptError):
    """A server that answers wrongly, too late or not at all; the message is one line."""
