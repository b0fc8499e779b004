"""The exceptions of specopt: bad input and impossible requests, never outcomes of a solve."""


class SpecoptError(Exception):
    """Base class of every exception that specopt raises on purpose."""


class InvalidInput(SpecoptError, ValueError):
    """A problem, plan, option or file that breaks its contract.

    The message names the field, what was expected and what came.
    """


class Unsupported(SpecoptError):
    """A method that cannot take a problem, or does not exist; the message says which can."""


class MissingDependency(SpecoptError, ImportError):
    """An optional library is not installed; the message names the extra to install."""


class InternalError(SpecoptError):
    """A method returned what the judge refuses: a defect of ours; the message says where the case was saved."""


class OutOfTime(SpecoptError):
    """Raised inside a method when the time limit has passed; `solve` turns it into a result."""


class OutOfMemory(SpecoptError):
    """Raised inside a method before it would hold more than the memory limit; `solve` returns the best plan."""


class Stopped(SpecoptError):
    """Raised inside a method when the caller's callback asked to stop; `solve` returns the best plan."""
