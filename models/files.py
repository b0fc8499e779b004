"""Functions that read and write files that contain problems, results or workloads.

Unknown fields and invalid values are rejected. An existing regular file is either replaced
completely or not changed, except the file to which standard output is redirected.
"""

from __future__ import annotations

import csv
import errno
import json
import math
import os
import re
import stat
import tempfile
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any, TypeVar, get_args, get_origin, overload

import msgspec

from specopt.models.arguments import number
from specopt.models.errors import InvalidInput, NotWritten, SpecoptError
from specopt.models.fields import describe, is_unicode, read
from specopt.models.problem import Problem, problem_type, refuse_subclass, strip_header
from specopt.models.reading import StrPath, expect_path, read_bytes
from specopt.models.result import Conflict, Result, Status, Termination
from specopt.models.workload import WORKLOADS, Workload

STDOUT = "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"

stdout = 1
"""File descriptor of standard output. The command line replaces this value with a duplicate."""

DISK_ERRORS = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO}
"""Error numbers that indicate a failure of the disk. All other numbers indicate an unsuitable path.
"""

T = TypeVar("T", bound=Problem[Any] | Result[Any] | Workload)


@overload
def load(path: StrPath) -> Problem | Result: ...


@overload
def load(path: StrPath, expected: type[T]) -> T: ...


def load(path: StrPath, expected: Any = None) -> Any:
    """Read a problem, a result or a workload from a JSON file.

    Parameters
    ----------
    path
        Path of the file.
    expected
        Class that the object in the file must have: a problem class, a workload class, `Result`, or
        a result with a plan class such as `Result[PromptChunkingPlan]`. None accepts any problem,
        result or workload.

    Raises
    ------
    InvalidInput
        If the file cannot be read, is not JSON, contains an invalid field, or does not have the
        expected content.
    """
    data = read_json(path)
    try:
        found = from_dict(data)
    except InvalidInput as error:
        raise InvalidInput(f"{path}: {error}") from None
    if expected is not None:
        (plan_type,) = get_args(expected) or (object,)
        fits = isinstance(found, get_origin(expected) or expected)
        if not fits or (isinstance(found, Result) and not isinstance(found.plan, plan_type | None)):
            names = ((Result, "result"), (Workload, "workload"), (Problem, "problem"))
            name = next(name for cls, name in names if isinstance(found, cls))
            wanted = expected if get_args(expected) else expected.__name__
            raise InvalidInput(
                f"{path}: expected {_words(wanted)}, got a {name} of kind {found.kind}"
            )
    return found


def _words(wanted: object) -> str:
    return {"Problem": "a problem", "Result": "a result"}.get(
        str(wanted), str(wanted).replace("specopt.models.", "")
    )


def save(obj: Problem | Result | Workload, path: StrPath) -> None:
    """Write a problem, a result or a workload to a JSON file.

    An existing file is either replaced completely or not changed.

    Raises
    ------
    InvalidInput
        If a file cannot be written to this path, or if the object is an instance of a user-defined
        subclass of a problem class.
    NotWritten
        If the operating system fails to write the file, for example because the disk is full.
    """
    if not isinstance(obj, (Problem, Result, Workload)):
        raise InvalidInput(
            f"save: expected a problem, result or workload, followed by a path, got {describe(obj)}"
        )
    if isinstance(obj, Problem):
        refuse_subclass(obj)
    write_text(path, to_json(obj.to_dict()) + "\n")


def from_dict(data: object) -> Problem | Result | Workload:
    """Build a problem, a result or a workload from JSON-like data. Data that contains the field
    `status` or `plan` is read as a result.
    """
    if not isinstance(data, Mapping):
        raise InvalidInput(f"the top level: expected an object, got {describe(data)}")
    if "kind" not in data:
        raise InvalidInput("kind: required field is missing")
    if "status" in data or "plan" in data:
        return result_from_dict(data)
    if isinstance(data["kind"], str) and data["kind"] in WORKLOADS:
        return WORKLOADS[data["kind"]].from_dict(data)
    return problem_type(data["kind"]).from_dict(data)


class _ResultFile(msgspec.Struct, forbid_unknown_fields=True):
    plan: dict[str, Any] | None
    problem_sha256: str = ""
    problem_file: str | None = None
    method: str = "unknown"
    options: dict[str, Any] = {}
    status: Status = Status.FEASIBLE
    termination: Termination = Termination.EXHAUSTED
    objective: float | None = None
    bound: float | None = None
    gap: float | None = None
    seconds: float = 0.0
    terms: dict[str, float | dict[str, Any] | None] = {}
    stats: dict[str, Any] = {}
    explanation: str | None = None
    conflict: tuple[Conflict, ...] | None = None
    versions: dict[str, str] = {}


def result_from_dict(data: Mapping[str, Any]) -> Result:
    """Build a result from JSON-like data. Only `format`, `kind` and `plan` are required fields."""
    kind = data.get("kind")
    plan_type = problem_type(kind).plan_type
    body = strip_header(data, str(kind))
    found: _ResultFile = read(_ResultFile, body, "")
    number("seconds", found.seconds, 0)
    for name in ("fixed_seconds", "preparing_seconds"):
        number(f"stats.{name}", found.stats.get(name, 0.0), 0)
    fields = {name: getattr(found, name) for name in found.__struct_fields__ if name != "plan"}
    fields["conflict"] = found.conflict or ()
    return Result(
        kind=str(kind),
        plan=None if found.plan is None else plan_type.from_dict(found.plan),
        **fields,
    )


def read_json(path: StrPath) -> object:
    """Read a JSON file and return the JSON data.

    Raises
    ------
    InvalidInput
        If the file cannot be read, is not JSON, repeats a key, or contains a number that is too
        large for floating point.
    """
    raw = read_bytes(path)
    try:
        data = json.loads(
            raw.decode("utf-8"), parse_constant=refuse_constant, object_pairs_hook=unique_keys
        )
        if rb"\u" in raw and not is_unicode(json.dumps(data, ensure_ascii=False)):
            raise ValueError("an unpaired surrogate is not valid Unicode")
        if _LARGE.search(raw):
            _refuse_infinite(data, "")
        return data
    except InvalidInput as error:
        raise InvalidInput(f"{path}: {error}") from None
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"{path}: expected a JSON document in UTF-8: {error}") from None


_LARGE = re.compile(rb"[eE]\+?\d\d|\d{99}")
"""Pattern for a quick search. If it does not match, the file contains no number that is too large
for floating point.
"""


def _refuse_infinite(data: object, where: str) -> None:
    if isinstance(data, (dict, list)):
        for key, value in data.items() if isinstance(data, dict) else enumerate(data):
            _refuse_infinite(
                value, f"{where}[{key}]" if isinstance(data, list) else f"{where}.{key}".lstrip(".")
            )
    elif data in (math.inf, -math.inf):
        raise InvalidInput(f"{where}: expected a finite number, got {data}")


def to_json(data: Mapping[str, Any]) -> str:
    """Return a mapping as a JSON document that has one line per top-level field, so that even long
    arrays occupy a single line.
    """
    lines = (f" {json_text(key)}: {json_text(value)}" for key, value in data.items())
    return "{\n" + ",\n".join(lines) + "\n}"


def json_text(data: Any, indent: int | None = None) -> str:
    """Return data as a JSON document in printable ASCII. NaN and infinity raise a ValueError."""
    return json.dumps(data, indent=indent, allow_nan=False).replace("\x7f", "\\u007f")


def csv_text(rows: Iterable[Iterable[Any]]) -> str:
    """Return a table as a CSV document.

    Strings that a spreadsheet would evaluate as formulas receive a leading apostrophe, which
    prevents the evaluation.

    Examples
    --------
    >>> csv_text([("name", "gain"), ("=1+1", -0.5), ("+3", "-")])
    "name,gain\\n'=1+1,-0.5\\n+3,-\\n"
    """
    lines: list[str] = []
    stream = SimpleNamespace(write=lambda line: lines.append(line[:-2] + "\n"))
    csv.writer(stream, lineterminator="\r\n").writerows(
        [f"'{cell}" if isinstance(cell, str) and _runs(cell) else cell for cell in row]
        for row in rows
    )  # with \r, the writer quotes cells that contain \r
    return "".join(lines)


def written_cell(cell: str) -> str:
    """Return the original string of a cell written by `csv_text`. The apostrophe that `csv_text`
    adds to formulas is removed.
    """
    return cell[1:] if cell.startswith("'") and _runs(cell[1:]) else cell


def _runs(text: str) -> bool:
    """Return whether a spreadsheet would evaluate a string as a formula. Leading apostrophes are
    ignored.
    """
    return _FORMULA.match(text) is not None and not DECIMAL.fullmatch(text)


_FORMULA = re.compile(r"'*[-=+@\t\r].", re.DOTALL)
DECIMAL = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
"""Pattern that matches a decimal number in a table cell."""


def write_text(path: StrPath, text: str) -> None:
    """Write a string to a UTF-8 file atomically, by the same procedure as `write_bytes`."""
    write_bytes(path, text.encode())


def write_bytes(path: StrPath, content: bytes) -> None:
    """Write a file atomically, by writing a temporary file in the same folder and renaming it.

    If the path is a symbolic link, its target is replaced. Two kinds of files cannot be replaced
    and are written directly: files that are not regular, such as devices and pipes, and the file to
    which standard output is redirected.

    Raises
    ------
    InvalidInput
        If a file cannot be written to this path.
    NotWritten
        If the operating system fails to write the file, for example because the disk is full.
    """
    expect_path(path)
    replaced = is_replaced(path)
    try:
        if not replaced:
            with open(os.dup(stdout) if is_stdout(path) else path, "wb") as stream:
                stream.write(content)
            return
        target = Path(os.path.realpath(path))
        mode = target.stat().st_mode if target.exists() else 0o666 & ~_umask()
        handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=".specopt-")
        try:
            with os.fdopen(handle, "wb") as stream:
                stream.write(content)
            os.chmod(temporary, stat.S_IMODE(mode))
            os.replace(temporary, target)
        except BaseException:
            os.unlink(temporary)
            raise
    except (OSError, ValueError) as error:  # ValueError: a zero byte in the path
        raise unwritten(path, error) from None


def unwritten(path: StrPath, error: OSError | ValueError) -> SpecoptError:
    """Return the exception to raise if a file cannot be written. The class depends on whether the
    disk or the path is the cause.
    """
    failed = isinstance(error, OSError) and error.errno in DISK_ERRORS
    reason = getattr(error, "strerror", None) or error
    return (NotWritten if failed else InvalidInput)(f"{path}: cannot be written ({reason})")


def is_replaced(path: StrPath) -> bool:
    """Return whether `write_bytes` replaces the file atomically instead of writing to it directly.

    The file is replaced if it is a regular file or does not exist, unless it is the file to which
    standard output is redirected.

    Raises
    ------
    InvalidInput
        If the path is not valid for a file.
    """
    try:
        return stat.S_ISREG(os.stat(path).st_mode) and not is_stdout(path)
    except FileNotFoundError:
        return True
    except (OSError, ValueError) as error:  # ValueError: a zero byte in the path
        raise unwritten(path, error) from None


def is_stdout(path: StrPath) -> bool:
    """Return whether a path refers to standard output. Examples are /dev/stdout and the file to
    which standard output is redirected.
    """
    try:
        found = os.stat(path)  # first, because stat rejects a cycle of links
        while (name := os.fspath(path)) not in STDOUT and os.path.islink(name):
            path = os.path.join(os.path.dirname(name), os.readlink(name))
        return name in STDOUT or os.path.samestat(found, os.fstat(stdout))
    except (OSError, ValueError):
        return False


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def refuse_constant(name: str) -> float:
    """Raise an error for NaN and infinity. Pass this as `parse_constant` to `json.loads`."""
    raise ValueError(f"{name} is not a valid JSON number")


def unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Build a dictionary, and raise an error if a key occurs twice. Pass this function as
    `object_pairs_hook` to `json.loads`.
    """
    out = dict(pairs)
    if len(out) != len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key, count in Counter(keys).items() if count > 1)
        raise ValueError(f"field {describe(twice)} appears twice")
    return out
