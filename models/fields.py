"""Dataclass fields whose annotations define validation, file reading and the JSON Schema.

A problem or plan is a frozen dataclass whose annotations specify the domain of each field, for
example ``input_tokens: Tokens`` or ``acceptance_rate: OpenUnit``. The annotations are used by

* `check`, which validates a directly constructed object and is called in ``__post_init__``,
* `parse`, which reads JSON-like data and rejects unknown fields and wrong types, and
* `specopt.models.schema`, which builds the JSON Schema.

Invalid values raise `InvalidInput`. The message states the field, the expected value and the actual
value.
"""

from __future__ import annotations

import dataclasses
import math
import re
import sys
import typing
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from types import NoneType, UnionType
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    ClassVar,
    Generic,
    Self,
    TypeVar,
    get_args,
    get_origin,
    get_type_hints,
)

import msgspec
import numpy as np
from msgspec import Meta
from numpy.typing import NDArray

from specopt.models.errors import InvalidInput, did_you_mean, shortened

T = TypeVar("T")

MAX_TOKENS = 10_000_000
"""Maximum token count in a field. The limit detects mistakes such as a size given in bytes."""

MAX_BUDGET = 10**15
"""Maximum token budget in a field. Every integer up to this value is exact in floating point."""

SMALLEST = sys.float_info.min
"""Smallest positive normal floating-point number, 2.2250738585072014e-308. Smaller numbers are
denormal and have fewer significant digits.
"""

MAX_KEY_CHARACTERS = 60
"""Maximum number of characters with which an error message quotes an unknown field's name. Longer
names are shortened.
"""


@dataclass(frozen=True)
class Column:
    """Annotation for an array field.

    The annotation specifies the type of the entries (`item`), a label (`size`) and the minimum
    length (`minimum_size`). All arrays of an object that have the same label must have the same
    length, including arrays with the empty label.
    """

    item: Any
    size: str = ""
    minimum_size: int = 1


class Immutable:
    """Base class for immutable dataclasses. Their arrays are read-only. Copying and unpickling call
    the constructor, so that the checks are repeated.
    """

    __dataclass_fields__: ClassVar[dict[str, Any]]

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            object.__setattr__(self, field.name, frozen(getattr(self, field.name)))

    def __reduce__(self) -> tuple[Any, ...]:
        values = {
            field.name: getattr(self, field.name)
            for field in dataclasses.fields(self)
            if field.init
        }
        return partial(type(self), **values), ()


def frozen(value: T) -> T:
    """Return `value` with all arrays made read-only, including arrays in tuples and mappings.
    Writeable arrays are copied, because the caller may change them later.
    """
    found: Any = value
    if isinstance(value, np.ndarray) and value.flags.writeable:
        found = value.copy()
        found.flags.writeable = False
    elif isinstance(value, tuple):
        found = tuple(map(frozen, value))
    elif isinstance(value, Mapping):
        found = dict(zip(value, map(frozen, value.values()), strict=True))
    return typing.cast("T", found)


class Custom(Immutable, ABC):
    """Base class for field values with a custom JSON form, which can be more compact than the
    default form for arrays and objects.
    """

    @classmethod
    @abstractmethod
    def parse(cls, data: object, where: str) -> Self:
        """Build the value from JSON-like data.

        Parameters
        ----------
        data
            JSON-like data.
        where
            Path of the data inside the file, used in error messages.

        Raises
        ------
        InvalidInput
            If the data is not a valid JSON form of the class.
        """

    @abstractmethod
    def dump(self) -> Any:
        """Return the value as JSON-like data that `parse` accepts."""

    @classmethod
    @abstractmethod
    def schema(cls) -> dict[str, Any]:
        """Return the JSON Schema for the value's JSON form."""


TokenCount = Annotated[int, Meta(ge=1, le=MAX_TOKENS)]
PositiveInt = TokenCount
NonNegativeInt = Annotated[int, Meta(ge=0, le=MAX_TOKENS)]
Positive = Annotated[float, Meta(gt=0)]
NonNegative = Annotated[float, Meta(ge=0)]
OpenUnit = Annotated[float, Meta(gt=0, lt=1)]
HalfOpenUnit = Annotated[float, Meta(ge=0, lt=1)]
Unit = Annotated[float, Meta(ge=0, le=1)]
TokenBudget = Annotated[int, Meta(ge=0, le=MAX_BUDGET)]

# For data that is read unchanged: the bounds exclude infinity and NaN.
Number = Annotated[float, Meta(ge=-sys.float_info.max, le=sys.float_info.max)]
Amount = Annotated[float, Meta(ge=0, le=sys.float_info.max)]
Count = Annotated[int, Meta(ge=0, le=2**53)]

if TYPE_CHECKING:
    Held = TypeVar("Held")
    Accepted = TypeVar("Accepted")

    class Given(Generic[Held, Accepted]):
        """Type of a field that stores values of one type, although the constructor also accepts
        another type.
        """

        def __get__(self, owner: object, kind: type | None = None) -> Held: ...
        def __set__(self, owner: object, value: Accepted) -> None: ...

else:

    class Given:
        """Type of a field that stores values of one type, although the constructor also accepts
        another type.
        """

        def __class_getitem__(cls, types: tuple[Any, Any]) -> Any:
            return types[0]


def required() -> Any:
    """Declare a `Given` field that has no default. Without this call, mypy does not recognise the
    type that the constructor accepts for the field.
    """
    return dataclasses.field()


def optional() -> Any:
    """Declare a `Given` field whose default is None."""
    return dataclasses.field(default=None)


def empty() -> Any:
    """Declare a `Given` field whose default is an empty tuple."""
    return dataclasses.field(default=())


ByName = Mapping[str, float | Sequence[float] | NDArray[Any]]
IntsLike = Sequence[int | np.integer[Any]] | NDArray[Any]
FloatsLike = Sequence[float | np.number[Any]] | NDArray[Any]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Truths = NDArray[np.bool_]

NonNegatives = Given[Annotated[Floats, Column(NonNegative)], FloatsLike]
OptionalNonNegatives = Given[Annotated[Floats, Column(NonNegative)] | None, FloatsLike | None]
Positives = Given[Annotated[Floats, Column(Positive)], FloatsLike]
Units = Given[Annotated[Floats, Column(Unit)], FloatsLike]
HalfOpenUnits = Given[Annotated[Floats, Column(HalfOpenUnit)], FloatsLike]
TokenCounts = Given[Annotated[Ints, Column(TokenCount)], IntsLike]
TokenBudgets = Given[Annotated[Ints, Column(TokenBudget)], IntsLike]
OptionalTokenBudgets = Given[Annotated[Ints, Column(TokenBudget)] | None, IntsLike | None]
"""Types of array fields without a label. All such fields of an object must have the same length."""

Objects = Given[tuple[T, ...], Sequence[T]]
SomeObjects = Given[Annotated[tuple[T, ...], Meta(min_length=1)], Sequence[T]]
"""Types of fields that contain nested objects. A field of type `SomeObjects` contains at least one.
"""


def parse(cls: type[T], data: object, where: str = "") -> T:
    """Build an object of a declared dataclass from JSON-like data.

    Parameters
    ----------
    cls
        Dataclass whose annotations declare its fields.
    data
        JSON-like data: mappings, lists, strings, numbers, Booleans and None.
    where
        Path of `data` inside the file, used in error messages. The path is empty at the top level.

    Raises
    ------
    InvalidInput
        If a field is unknown, missing, of the wrong type or outside its domain.
    """
    chosen = _choose(cls, data)
    struct = read(_wire(chosen), data, where, hints_of(chosen))
    kwargs = {
        name: _nested(expected, value, _join(where, json_name(name)))
        for name, expected in forms_of(chosen).items()
        if (value := getattr(struct, name)) is not msgspec.UNSET
    }
    try:
        return typing.cast("T", chosen(**kwargs))
    except InvalidInput as error:
        raise InvalidInput(_join(where, str(error))) from None


def dump(obj: Any) -> dict[str, Any]:
    """Return an object of a declared dataclass as JSON-like data. Fields that have their default
    values are omitted.
    """
    out: dict[str, Any] = {}
    for field in dataclasses.fields(obj):
        value = getattr(obj, field.name)
        is_default = isinstance(value, (str, int, float, tuple)) and value == field.default
        if value is None or (is_default and not field.metadata.get("always")):
            continue
        out[json_name(field.name)] = plain(value)
    return out


def json_name(name: str) -> str:
    """Return the name that a field has in files.

    If this name is a Python keyword, the name in the code has a trailing underscore, which is
    removed.
    """
    return name.rstrip("_")


class Checked(Immutable):
    """Base class for dataclasses that are validated only by their fields' annotations."""

    def __post_init__(self) -> None:
        check(self)


def check(obj: Any) -> None:
    """Validate and normalise every declared field of an object. Call this in ``__post_init__``.

    Columns become read-only arrays, and NumPy scalars become Python numbers.

    Raises
    ------
    InvalidInput
        If a value has the wrong type or is outside its domain, or if two columns with the same
        label differ in length.
    """
    sizes: dict[str, tuple[str, int]] = {}
    cls: type = type(obj)
    for name, expected in forms_of(cls).items():
        value = getattr(obj, name)
        if value is None and expected.optional:
            continue
        if expected.column is None:
            object.__setattr__(obj, name, _scalar(name, expected, value))
            continue
        array = _array(name, expected.column, value)
        object.__setattr__(obj, name, array)
        first, size = sizes.setdefault(expected.column.size, (name, len(array)))
        if len(array) != size:
            raise InvalidInput(f"{name}: expected {size} entries, as in {first}, got {len(array)}")


def refuse_denormal(value: object, where: str = "") -> None:
    """Raise an error if an object, array or tuple contains denormal numbers.

    Denormal numbers are so small that floating point does not represent them with full precision.
    Products with such numbers may be inaccurate or 0, so bounds computed from them are not
    reliable.

    Raises
    ------
    InvalidInput
        If any number is denormal.
    """
    if isinstance(value, float):
        if 0 < abs(value) < SMALLEST:
            raise InvalidInput(
                f"{where}: expected 0 or an absolute value >= {SMALLEST}, got {value}"
            )
    elif isinstance(value, np.ndarray) and value.dtype.kind == "f":
        wrong = (value != 0) & (np.abs(value) < SMALLEST)
        if wrong.any():
            place = tuple(np.argwhere(wrong)[0].tolist())
            refuse_denormal(float(value[place]), where + "".join(f"[{index}]" for index in place))
    elif isinstance(value, tuple):
        for index, item in enumerate(value):
            refuse_denormal(item, f"{where}[{index}]")
    elif dataclasses.is_dataclass(value):
        own_form = isinstance(value, Custom)
        for name, item in vars(value).items():
            refuse_denormal(item, where if own_form else _join(where, name))


def count_numbers(value: object) -> int:
    """Count the numbers in an object, array, mapping or tuple, at any nesting depth. Every other
    value, such as a string or None, counts as one number.
    """
    if isinstance(value, np.ndarray):
        return value.size
    if dataclasses.is_dataclass(value):
        value = vars(value)
    if isinstance(value, Mapping):
        value = tuple(value.values())
    return sum(map(count_numbers, value)) if isinstance(value, tuple) else 1


def read(hint: Any, data: object, where: str, hints: Mapping[str, Any] | None = None) -> Any:
    """Convert JSON-like data to the type `hint` by strict msgspec conversion.

    Raises
    ------
    InvalidInput
        If the data does not have this type. The message begins with the path of the invalid value,
        and this path begins with `where`.
    """
    try:
        try:
            return msgspec.convert(data, hint, strict=True)
        except (msgspec.ValidationError, AttributeError):  # NumPy values are accepted too
            data = without_numpy(data)
            return msgspec.convert(data, hint, strict=True)
    except msgspec.ValidationError as error:
        raise InvalidInput(_explain(str(error), data, where, hint, hints or {})) from None
    except UnicodeEncodeError as error:
        raise InvalidInput(
            f"{where or 'the top level'}: expected a Unicode string, got {describe(error.object)}"
        ) from None


def without_numpy(value: object) -> object:
    """Replace NumPy arrays and numbers in JSON-like data with lists and Python numbers."""
    if isinstance(value, (np.ndarray, np.generic)):
        return value.tolist()
    if isinstance(value, (list, tuple)):
        return type(value)(map(without_numpy, value))
    if isinstance(value, dict):
        return {key: without_numpy(one) for key, one in value.items()}
    return value


def describe(value: object) -> str:
    """Return a description of a value that error messages can quote. The description has at most 60
    characters.
    """
    try:
        text = repr(value)
    except (
        ValueError,
        RecursionError,
    ):  # an integer with more than 4,300 digits, or lists nested too deeply
        text = f"a value of type {type(value).__name__} that is too long to show"
    return text if len(text) <= 60 else text[:57] + "..."


def printable(text: str, limit: int = 400) -> str:
    """Return a string in a form that is safe to print on a single line.

    Nonprintable characters are escaped, and a long string is shortened to at most `limit`
    characters by removing its middle. Names in files may contain arbitrary characters, including
    terminal escape sequences.

    Examples
    --------
    >>> printable("a\\x1b[31mb"), printable("0123456789", limit=8)
    ('a\\\\x1b[31mb', '01 ... 9')
    """
    if len(text) > 2 * limit:
        text = text[:limit] + text[-limit:]
    return shortened(escaped(text), limit)


def escaped(text: str) -> str:
    """Return a string in which all nonprintable characters, including line breaks, are escaped."""
    return "".join(char if char.isprintable() else repr(char)[1:-1] for char in text)


def is_unicode(text: str) -> bool:
    """Return whether a string can be encoded in UTF-8. JSON strings may contain half of a surrogate
    pair, which cannot be encoded.
    """
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


# ---------------------------------------------------------------------------- annotations


@cache
def hints_of(cls: type) -> dict[str, Any]:
    """Return a mapping from each field of a declared dataclass to its annotation."""
    hints = get_type_hints(cls, include_extras=True)
    return {f.name: hints[f.name] for f in dataclasses.fields(cls)}


@dataclass(frozen=True)
class Form:
    """A field's annotation, parsed into the information that readers and checks need.

    Parameters
    ----------
    hint
        Original annotation.
    optional
        Whether the field may be None.
    column
        `Column` object if the field is an array, otherwise None.
    custom
        Subclass of `Custom` if the field has such a value, otherwise None.
    classes
        Dataclasses in the annotation: several for a union of dataclasses, and none for types such
        as numbers.
    item
        Type of the entries if the annotation is a tuple of dataclasses, otherwise None.
    fewest
        Minimum number of entries in a tuple.
    """

    hint: Any
    optional: bool
    column: Column | None
    custom: type[Custom] | None
    classes: tuple[type, ...]
    item: Any | None
    fewest: int

    @property
    def wire(self) -> Any:
        """Type to which msgspec converts the field's JSON-like data. Nested objects remain
        mappings.
        """
        if self.column is not None:
            return list[self.column.item]  # type: ignore[name-defined]  # built at run time
        if self.custom is not None:
            return Any
        if self.classes:
            return dict[str, Any] | None if self.optional else dict[str, Any]
        return self.hint if self.item is None else list[dict[str, Any]]


@cache
def form_of(hint: Any) -> Form:
    """Parse a field's annotation. Results are cached."""
    parts = _parts(hint)
    types = [part for part in parts if isinstance(part, type)]
    marks = [mark for part in parts for mark in getattr(part, "__metadata__", ())]
    bare = get_args(hint)[0] if get_origin(hint) is Annotated else hint
    items = (get_args(part)[0] for part in _parts(bare) if get_origin(part) is tuple)
    return Form(
        hint,
        NoneType in get_args(hint),
        next((mark for mark in marks if isinstance(mark, Column)), None),
        next((one for one in types if issubclass(one, Custom)), None),
        tuple(one for one in types if dataclasses.is_dataclass(one)),
        next((item for item in items if form_of(item).classes), None),
        max((getattr(mark, "min_length", None) or 0 for mark in marks), default=0),
    )


@cache
def forms_of(cls: type) -> dict[str, Form]:
    """Return a mapping from each field of a declared dataclass to its parsed annotation."""
    return {name: form_of(hint) for name, hint in hints_of(cls).items()}


def _parts(hint: Any) -> tuple[Any, ...]:
    """Return the member types of a union, except None. If `hint` is not a union, return a tuple
    that contains only `hint`.
    """
    if get_origin(hint) in (typing.Union, UnionType):
        return tuple(arg for arg in get_args(hint) if arg is not type(None))
    return (hint,)


def is_required(field: dataclasses.Field[Any]) -> bool:
    """Return whether a dataclass field is required because it has no default."""
    return field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING


@cache
def _wire(cls: type) -> type[msgspec.Struct]:
    """Return a strict msgspec struct type that has the same fields as a dataclass. The type of
    nested objects is a mapping.
    """
    fields: list[Any] = []
    for field in dataclasses.fields(cls):
        wire = forms_of(cls)[field.name].wire
        fields.append(
            (field.name, wire)
            if is_required(field)
            else (field.name, wire | msgspec.UnsetType, msgspec.UNSET)
        )
    names = {name: json_name(name) for name in hints_of(cls)}
    return msgspec.defstruct(
        cls.__name__, fields, kw_only=True, forbid_unknown_fields=True, rename=names
    )


def _choose(cls: Any, data: object) -> Any:
    """Return the class of a union to which the data belongs. This is the class whose `mark` is a
    field name in the data, or the first class if there is none.
    """
    options = form_of(cls).classes
    if len(options) == 1:
        return options[0]
    names = data if isinstance(data, Mapping) else ()
    return next((one for one in options if getattr(one, "mark", None) in names), options[0])


def _nested(expected: Form, value: Any, where: str) -> Any:
    if value is None and (expected.custom is None or expected.optional):
        return None
    if expected.custom is not None:
        return expected.custom.parse(value, where)
    if expected.classes:
        return parse(expected.hint, value, where)
    if expected.item is not None:
        return tuple(
            parse(expected.item, entry, f"{where}[{index}]") for index, entry in enumerate(value)
        )
    return value


# ---------------------------------------------------------------------------- values


def _scalar(name: str, expected: Form, value: Any) -> Any:
    if isinstance(value, np.generic):
        value = value.item()
    if expected.custom is not None:
        return value if isinstance(value, expected.custom) else expected.custom.parse(value, name)
    if expected.classes:
        if not isinstance(value, expected.classes):
            words = " or ".join(option.__name__ for option in expected.classes)
            raise InvalidInput(f"{name}: expected {words}, got {describe(value)}")
        return value
    if expected.item is not None:
        value = tuple(value)
        if len(value) < expected.fewest:
            raise InvalidInput(
                f"{name}: expected {expected.fewest} or more entries, got {len(value)}"
            )
        return value
    value = read(expected.hint, value, name, {"": expected.hint})
    if isinstance(value, str) and not is_unicode(value):
        raise InvalidInput(f"{name}: expected a Unicode string, got {describe(value)}")
    if isinstance(value, float) and not math.isfinite(value):
        raise InvalidInput(f"{name}: expected a finite number, got {value}")
    return value


def _array(name: str, column: Column, value: Any) -> NDArray[Any]:
    meta = next(
        (m for m in getattr(column.item, "__metadata__", ()) if isinstance(m, Meta)), Meta()
    )
    kind = getattr(column.item, "__origin__", column.item)
    try:
        array = np.asarray(value)
    except (TypeError, ValueError):
        array = np.empty((0, 0), object)  # rejected below, because a column has one dimension
    allowed = "iu" if kind is int else "iuf"
    if isinstance(value, (list, tuple)) and bool in map(type, value):
        allowed = ""  # NumPy accepts Booleans as numbers
    if array.ndim == 1 and len(array) == 0:
        array = array.astype(np.int64 if kind is int else np.float64)
    if array.ndim != 1 or array.dtype.kind not in allowed:
        word = "integers" if kind is int else "numbers"
        raise InvalidInput(f"{name}: expected a list of {word}, got {describe(value)}")
    if len(array) < column.minimum_size:
        raise InvalidInput(
            f"{name}: expected {column.minimum_size} or more entries, got {len(array)}"
        )
    array = array.astype(
        np.int64 if kind is int else np.float64
    )  # always a copy, because the caller may change the array
    good = np.isfinite(array)
    rules = []
    for bound, symbol, test in (
        (meta.ge, ">=", np.greater_equal),
        (meta.gt, ">", np.greater),
        (meta.le, "<=", np.less_equal),
        (meta.lt, "<", np.less),
    ):
        if bound is not None:
            good &= test(array, bound)
            rules.append(f"{symbol} {bound}")
    if np.count_nonzero(good) < len(good):
        index = int(np.argmin(good))
        word = "an integer" if kind is int else "a finite number"
        raise InvalidInput(
            f"{name}[{index}]: expected {word} {' and '.join(rules)}".rstrip()
            + f", got {array[index]}"
        )
    array.flags.writeable = False
    return array


def plain(value: Any) -> Any:
    """Return a field's value as JSON-like data."""
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, Custom):
        return value.dump()
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return dump(value)
    if isinstance(value, (tuple, list)):
        return [plain(item) for item in value]
    return value


# ---------------------------------------------------------------------------- messages


def _join(where: str, rest: str) -> str:
    if not where:
        return rest
    return where + rest if rest.startswith("[") else f"{where}.{rest}"


_AT = re.compile(r"^(?P<text>.*?)(?: - at `\$(?P<path>.*)`)?$", re.DOTALL)
_STEP = re.compile(r"\.(?P<key>[^.\[\]]+)|\[(?P<index>\d+)\]")


def _explain(message: str, data: object, where: str, hint: Any, hints: Mapping[str, Any]) -> str:
    """Convert a msgspec error message into a message in specopt's format.

    The new message states the path, the expected value and the actual value. `hints` contains the
    annotations of the object that was read. If a field has a fixed set of choices, the message
    lists the choices.
    """
    found = _AT.match(message)
    assert found is not None
    text = found["text"].replace("`", "").replace("object | null", "object")
    path = (found["path"] or "").lstrip(".")
    unknown = re.match(r"Object contains unknown field (.*)", text, re.DOTALL)
    if unknown:
        key = unknown[1]
        shown = key if key.isprintable() and 0 < len(key) <= MAX_KEY_CHARACTERS else describe(key)
        struct = get_args(hint)[0] if get_origin(hint) is list else hint
        names = map(json_name, hints) if hints else getattr(struct, "__struct_fields__", ())
        meant = "" if "." in path else did_you_mean(key, names)
        return f"{_join(where, _join(path, shown))}: unknown field{meant}"
    missing = re.match(r"Object missing required field (.+)", text)
    if missing:
        return f"{_join(where, _join(path, missing[1]))}: required field is missing"
    expected, _, kind = text.partition(", got ")
    if expected.startswith("Invalid enum value"):
        choices = [str(choice) for part in _parts(hints.get(path)) for choice in get_args(part)]
        expected = f"expected one of {', '.join(choices)}" if choices else "expected another value"
    text = f"{expected}, got {describe(_value_at(data, path))}" + (f" ({kind})" if kind else "")
    place = _join(where, path) if path else where
    return f"{place or 'the top level'}: {text[0].lower()}{text[1:]}"


def _value_at(data: Any, path: str) -> object:
    for step in _STEP.finditer("." + path if path and not path.startswith("[") else path):
        try:
            data = data[step["key"]] if step["key"] is not None else data[int(step["index"])]
        except (KeyError, IndexError, TypeError):
            return "something else"
    return data
