"""Functions that check single arguments.

Each function returns the checked value or raises `InvalidInput` with the message "name: expected
..., got ...". NumPy scalars are accepted in the same way as Python numbers. Booleans and NaN are
not accepted as numbers.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, TypeGuard, TypeVar

import numpy as np

from specopt.models.errors import InvalidInput, did_you_mean
from specopt.models.fields import MAX_TOKENS, Floats, describe, frozen, is_unicode

T = TypeVar("T")

LARGEST = 1e100
"""Maximum value of times, durations and sizes that are passed to controllers running alongside a
server. Small multiples and sums of such values are still finite.
"""

Key = str | int
"""Type of the identifier of a client, a request or a task: a string or an integer. Booleans are not
allowed.
"""


def integer(name: str, value: object, low: int, high: int | None = None) -> int:
    """Return the value if it is an integer from `low` to `high`, and raise an error otherwise.

    If `high` is None, there is no upper limit. A limit of MAX_TOKENS or more only guards against
    typos, so the error message mentions such a limit only if the value exceeds the limit.

    Examples
    --------
    >>> integer("tasks", np.int64(3), 1)
    3
    >>> integer("tasks", True, 1)
    Traceback (most recent call last):
    specopt.models.errors.InvalidInput: tasks: expected an integer >= 1, got True
    """
    whole = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
    if not whole or value < low or (high is not None and value > high):  # type: ignore[operator]
        guard = high is None or (high >= MAX_TOKENS and not (whole and value > high))  # type: ignore[operator]
        word = f"an integer >= {low}" if guard else f"an integer from {low} to {high:,}"
        raise InvalidInput(f"{name}: expected {word}, got {describe(value)}")
    return int(value)  # type: ignore[call-overload, no-any-return]


def number(
    name: str,
    value: object,
    low: float = -math.inf,
    high: float = math.inf,
    *,
    above: float | None = None,
    below: float | None = None,
) -> float:
    """Return the value if it is a finite number from `low` to `high`, and raise an error otherwise.

    `above` and `below` are exclusive limits that replace `low` and `high`. An upper limit of
    LARGEST or more only guards against overflow, so the error message mentions such a limit only if
    the value exceeds the limit.

    Examples
    --------
    >>> number("rate", 0.5, 0, below=1)
    0.5
    >>> number("rate", 1, 0, below=1)
    Traceback (most recent call last):
    specopt.models.errors.InvalidInput: rate: expected a number in [0, 1), got 1
    """
    least = low if above is None else above
    most = high if below is None else below
    if is_number(value):
        try:
            found = float(value)
        except OverflowError:  # an integer too large for floating point
            found = math.inf
        inside = (found > least if above is not None else found >= least) and (
            found < most if below is not None else found <= most
        )
        if inside and math.isfinite(found):
            return found
    if most >= LARGEST and not (is_number(value) and value > most):
        most = math.inf
    raise InvalidInput(
        f"{name}: expected {_range(least, most, above is not None, below is not None)}, got "
        f"{describe(value)}"
    )


def positive(name: str, value: object) -> float:
    """Return the value if it is a finite number > 0, and raise an error otherwise."""
    return number(name, value, above=0)


def key_of(name: str, value: object) -> Key:
    """Return the value if it can identify a client, request or task, and raise an error otherwise.

    Valid identifiers are integers of at most 128 bits, and strings that UTF-8 can encode.

    Examples
    --------
    >>> key_of("client", np.int64(3))
    3
    """
    if isinstance(value, str) and is_unicode(value):
        return str.__str__(value)
    if (
        isinstance(value, (int, np.integer))
        and not isinstance(value, bool)
        and int(value).bit_length() <= 128
    ):
        return int(value)
    raise InvalidInput(f"{name}: expected a string or an integer, got {describe(value)}")


def sequence(name: str, value: object, size: int | None = None) -> list[Any]:
    """Return the entries of a list or an array, and raise an error if it does not have `size`
    entries. If `size` is None, any number of entries is valid.
    """
    listed = isinstance(value, Sequence) and not isinstance(value, (str, bytes))
    good = listed or getattr(value, "ndim", 0) > 0
    word = "a list" if size is None else f"{size} entries"
    if not good:
        raise InvalidInput(f"{name}: expected {word}, got {describe(value)}")
    entries: list[Any] = list(value)  # type: ignore[call-overload]
    if size is not None and len(entries) != size:
        raise InvalidInput(f"{name}: expected {word}, got {len(entries)}")
    return entries


MAX_LISTED = 20
"""Maximum number of choices that an error message lists. If there are more choices, the message
states only how many there are. In both cases, the message suggests a similar name if there is one.
"""


def one_of(name: str, value: object, choices: Iterable[T]) -> T:
    """Return the choice that has the same value and type as `value`, and raise an error if there is
    no such choice.
    """
    known = tuple(choices)
    for choice in known:
        both_text = isinstance(choice, str) and isinstance(value, str)
        if (both_text or type(choice) is type(value)) and choice == value:
            return choice
    words = tuple(map(str, known))
    listed = ", ".join(words) if len(words) <= MAX_LISTED else f"{len(words)} names"
    meant = did_you_mean(value, words) if isinstance(value, str) else ""
    raise InvalidInput(
        f"{name}: expected {'one of ' * (len(words) > 1)}{listed}, got {describe(value)}{meant}"
    )


def array(
    name: str,
    values: object,
    dimensions: int,
    low: float = -math.inf,
    high: float = math.inf,
    items: str = "finite numbers",
) -> Floats:
    """Convert values to a read-only array, and check the number of dimensions and the entries.

    The array must not be empty, and all entries must be finite numbers from `low` to `high`. Error
    messages refer to the entries as `items`.

    Examples
    --------
    >>> array("rates", [1, 2], 1)
    array([1., 2.])
    """
    try:
        found = np.array(values, np.float64)
    except (TypeError, ValueError):
        found = np.empty(0)
    good = np.isfinite(found) & (low <= found) & (found <= high)
    if found.ndim != dimensions or not found.size or not good.all():
        shape = ("a list", "a list of lists", "a three-dimensional list")[dimensions - 1]
        raise InvalidInput(f"{name}: expected {shape} of {items}, got {describe(values)}")
    return frozen(found)


def only_fields(data: Mapping[str, Any], known: Collection[str], where: str) -> None:
    """Raise an error if JSON-like data contains a field that is not in `known`. The message begins
    with `where` and lists the known fields.
    """
    unknown = sorted(str(key) for key in set(data) - set(known))
    if unknown:
        meant = did_you_mean(unknown[0], known)
        raise InvalidInput(
            f"{where}: unknown field {unknown[0]!r}{meant}; known fields:"
            f" {', '.join(sorted(known))}"
        )


def boolean(name: str, value: object) -> bool:
    """Return the value as a Python Boolean, and raise an error if it is not a Boolean. NumPy
    Booleans are accepted as well.
    """
    if not isinstance(value, (bool, np.bool_)):
        raise InvalidInput(f"{name}: expected true or false, got {describe(value)}")
    return bool(value)


def random_generator(seed: object) -> np.random.Generator:
    """Return NumPy's default random generator, seeded with an integer >= 0."""
    return np.random.default_rng(integer("seed", seed, 0))


def is_number(value: object) -> TypeGuard[float]:
    """Return whether a value is a Python or NumPy real number. NaN and infinity count as numbers,
    but Booleans do not.
    """
    return isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)


def _range(low: float, high: float, open_below: bool, open_above: bool) -> str:
    if math.isinf(high):
        if math.isinf(low):
            return "a finite number"
        return f"a finite number {'>' if open_below else '>='} {low:g}"
    if math.isinf(low):
        return f"a finite number {'<' if open_above else '<='} {high:g}"
    return f"a number in {'(' if open_below else '['}{low:g}, {high:g}{')' if open_above else ']'}"
