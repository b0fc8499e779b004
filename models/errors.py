"""Exceptions raised by specopt. Exceptions report bad input and impossible requests. The outcome of
a solve is reported as a result instead.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Any


def shortened(text: str, limit: int) -> str:
    """Shorten a text to a maximum length by cutting out the middle."""
    if len(text) <= limit:
        return text
    tail = limit // 5
    return f"{text[: limit - tail - 5].rstrip()} ... {text[-tail:].lstrip()}"


def did_you_mean(name: object, names: Iterable[str]) -> str:
    """Return " (did you mean ...?)" if a name is close to an entry of `names`, otherwise an empty
    string.
    """
    close = difflib.get_close_matches(str(name), list(names), 1)
    return f" (did you mean {close[0]!r}?)" if close else ""


MAX_CHARACTERS = 1000
"""Maximum length of a message. Names in files can have any length, so longer messages are
shortened.
"""


class SpecoptError(Exception):
    """Base class of all exceptions that specopt raises deliberately."""

    def __str__(self) -> str:
        return shortened(super().__str__(), MAX_CHARACTERS)


class InvalidInput(SpecoptError, ValueError):
    """A problem, plan, option or file is invalid.

    The message names the field, the expected value and the actual value.
    """


class NotWritten(SpecoptError, OSError):
    """The operating system failed to write a file, for example because the disk is full."""


class Unsupported(SpecoptError):
    """A method does not exist or does not support a problem. The message names supported
    methods.
    """


class MissingDependency(SpecoptError, ImportError):
    """An optional library is not installed; the message names the extra to install."""


class BrokenPlugin(SpecoptError):
    """A method or an instance family from another distribution cannot be used. The message states
    the name of the method or family and the reason.
    """


class InternalError(SpecoptError):
    """A method returned a plan that the judge rejects, because of a defect in specopt. The message
    names the file in which the case has been saved.
    """


class RefutedProof(UserWarning):
    """A method's plan refutes a bound or a proof of infeasibility, because of a defect in specopt.
    The plan is valid.

    The message names the file in which the case has been saved.
    """


class Infeasible(SpecoptError):
    """Raised inside a method if the problem has no plan. `solve` converts the exception into a
    result.

    Parameters
    ----------
    message
        Reason why there is no plan, worded for the user.
    conflicts
        The same reason as data: a sequence of `Conflict` objects.
    """

    def __init__(self, message: str | None, conflicts: Iterable[Any] = ()) -> None:
        super().__init__(message)
        self.conflicts = tuple(conflicts)


class OutOfTime(SpecoptError):
    """Raised inside a method when the time limit has passed. `solve` converts the exception into a
    result.
    """


class OutOfWork(OutOfTime):
    """Raised inside a method when its work limit is exhausted; a work limit replaces a time limit.
    Other methods may continue.
    """


class OutOfMemory(SpecoptError):
    """Raised inside a method before the memory limit is exceeded. `solve` returns the best plan
    found so far.
    """


class Stopped(SpecoptError):
    """Raised inside a method when the caller's callback requests a stop. `solve` returns the best
    plan found so far.
    """


class ServerFailed(SpecoptError):
    """A server responded incorrectly, too late or not at all. The message is a single line."""
