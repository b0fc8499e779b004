"""The exceptions of specopt, for bad input and impossible requests, not for results of a solve."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Any


def shortened(text: str, limit: int) -> str:
    """Return a text shortened to a given length by a cut in the middle."""
    if len(text) <= limit:
        return text
    tail = limit // 5
    return f"{text[: limit - tail - 5].rstrip()} ... {text[-tail:].lstrip()}"


def did_you_mean(name: object, names: Iterable[str]) -> str:
    """Return ", did you mean ...?" for a name that is close to one of `names`, otherwise an
    empty text.
    """
    close = difflib.get_close_matches(str(name), list(names), 1)
    return f", did you mean {close[0]!r}?" if close else ""


MAX_CHARACTERS = 1000
"""Longer messages are shortened to this length, because names in files can be of any length."""


class SpecoptError(Exception):
    """Base class of every exception that specopt raises on purpose."""

    def __str__(self) -> str:
        return shortened(super().__str__(), MAX_CHARACTERS)


class InvalidInput(SpecoptError, ValueError):
    """A problem, plan, option or file that breaks its contract.

    The message names the field, the expected value and the actual value.
    """


class NotWritten(SpecoptError, OSError):
    """The system failed to write a file, for example because the disk is full."""


class Unsupported(SpecoptError):
    """A method does not exist or does not support a problem; the message names methods that do."""


class MissingDependency(SpecoptError, ImportError):
    """An optional library is not installed; the message names the extra to install."""


class BrokenPlugin(SpecoptError):
    """A method or family of another distribution cannot be used; the message names it and the
    reason.
    """


class InternalError(SpecoptError):
    """A method returned a plan that the judge rejects: a defect in specopt. The message names the
    file with the case.
    """


class RefutedProof(UserWarning):
    """A bound or a proof of infeasibility is refuted by the method's plan: a defect in specopt. The
    plan is valid.

    The message names the file with the case.
    """


class Infeasible(SpecoptError):
    """Raised inside a method when the problem has no plan. The message gives the reason in the
    user's terms; `solve` turns it into a result.

    Parameters
    ----------
    message
        Reason in the user's terms.
    conflicts
        Reason as data: a list of `Conflict`.
    """

    def __init__(self, message: str | None, conflicts: Iterable[Any] = ()) -> None:
        super().__init__(message)
        self.conflicts = tuple(conflicts)


class OutOfTime(SpecoptError):
    """Raised inside a method when the time limit has passed; `solve` turns it into a result."""


class OutOfWork(OutOfTime):
    """Raised inside a method when the work limit that replaces a time limit is used up. Other
    methods may continue.
    """


class OutOfMemory(SpecoptError):
    """Raised inside a method before it would exceed the memory limit; `solve` returns the best
    plan.
    """


class Stopped(SpecoptError):
    """Raised inside a method when the caller's callback asked to stop; `solve` returns the best
    plan.
    """


class ServerFailed(SpecoptError):
    """A server answers incorrectly, too late or not at all; the message is one line."""
