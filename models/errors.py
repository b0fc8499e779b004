"""Exceptions that specopt raises for invalid input and requests that cannot be satisfied. The
outcome of a solve is returned as a result instead.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Any


def shortened(text: str, limit: int) -> str:
    """Shorten a string to at most `limit` characters by replacing its middle with an ellipsis."""
    if len(text) <= limit:
        return text
    tail = limit // 5
    return f"{text[: limit - tail - 5].rstrip()} ... {text[-tail:].lstrip()}"


def did_you_mean(name: object, names: Iterable[str]) -> str:
    """Return a suggestion such as ", did you mean 'x'?" that can be appended to an error message.
    If no entry of `names` is similar to `name`, return an empty string.
    """
    close = difflib.get_close_matches(str(name), list(names), 1)
    return f", did you mean {close[0]!r}?" if close else ""


MAX_CHARACTERS = 1000
"""Maximum number of characters in an error message. Longer messages are shortened, because they may
quote names of any length from files.
"""


class SpecoptError(Exception):
    """Base class for all exceptions that specopt raises deliberately."""

    def __str__(self) -> str:
        return shortened(super().__str__(), MAX_CHARACTERS)


class InvalidInput(SpecoptError, ValueError):
    """A problem, plan, option or file is invalid.

    The message states the invalid field, the expected value and the actual value.
    """


class NotWritten(SpecoptError, OSError):
    """The operating system failed to write a file, for example because the disk is full."""


class Unsupported(SpecoptError):
    """A method does not exist or does not support the problem. The message lists methods that can
    be used instead.
    """


class MissingDependency(SpecoptError, ImportError):
    """An optional library is not installed. The message states which extra to install."""


class BrokenPlugin(SpecoptError):
    """A plug-in method or instance family, installed from another package, cannot be used. The
    message states its name and the reason.
    """


class InternalError(SpecoptError):
    """A method returned an invalid plan because of a bug in specopt. The message contains the path
    of a file in which the case has been saved.
    """


class RefutedProof(UserWarning):
    """A valid plan contradicts a claimed bound or proof of infeasibility, because of a bug in
    specopt.

    The message contains the path of a file in which the case has been saved.
    """


class Infeasible(SpecoptError):
    """Raised inside a method if the problem has no feasible plan. `solve` converts the exception
    into a result.

    Parameters
    ----------
    message
        Explanation for the user of why no plan is feasible.
    conflicts
        The same explanation as data, in the form of `Conflict` objects.
    """

    def __init__(self, message: str | None, conflicts: Iterable[Any] = ()) -> None:
        super().__init__(message)
        self.conflicts = tuple(conflicts)


class OutOfTime(SpecoptError):
    """Raised inside a method when the time limit has expired. `solve` converts the exception into a
    result.
    """


class OutOfWork(OutOfTime):
    """Raised inside a method when it has exhausted its work limit, which replaces a time limit.
    Other methods may continue.
    """


class OutOfMemory(SpecoptError):
    """Raised inside a method that would otherwise exceed the memory limit. `solve` returns the best
    plan found so far.
    """


class Stopped(SpecoptError):
    """Raised inside a method when the caller's callback requests a stop. `solve` returns the best
    plan found so far.
    """


class ServerFailed(SpecoptError):
    """A server sent an incorrect response, responded too late, or did not respond. The message is a
    single line.
    """
