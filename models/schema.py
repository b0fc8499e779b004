"""JSON Schemas for declared dataclasses.

Types and ranges are derived from annotations, descriptions from docstrings, and units from field
names. Every field has the keywords `description`, `unit` and `range`, and a `default` unless it is
required. The unit is "1" for numbers without a unit and "none" for other values. The range repeats
the standard keywords of JSON Schema in words.
"""

from __future__ import annotations

import dataclasses
import inspect
import json
import re
from collections.abc import Iterator
from functools import cache
from typing import Any

import msgspec

from specopt.models.fields import Form, form_of, forms_of, is_required, json_name

UNITS = {
    "seconds": "s",
    "second": "s",
    "hz": "Hz",
    "bytes": "byte",
    "bits": "bit",
    "tokens": "token",
    "token": "token",
    "flop": "FLOP",
    "interaction": "token^2",
    "length": "token",
    "lengths": "token",
    "chunks": "token",
    "goodput": "token per round or s",
    "samples": "token",
    "watts": "W",
    "spread": "s",
}
"""Mapping from words to units. A field's unit is determined by the last word of its name or, if the
name contains "_per_", by the last word of each part.
"""

COUNTS = ("pipeline_length",)
"""Names of fields that have no unit, although their last word is a key of `UNITS`."""

Schema = dict[str, Any]


def schema(cls: Any) -> Schema:
    """Return the JSON Schema for a declared dataclass or a union of declared dataclasses."""
    options = form_of(cls).classes
    if len(options) > 1:
        return {"anyOf": [schema(option) for option in options]}
    (only,) = options
    words = descriptions(only)
    fields = {field.name: field for field in dataclasses.fields(only)}
    return {
        "type": "object",
        "properties": {
            json_name(name): described(
                _type_of(form), name, words.get(json_name(name), ""), fields[name]
            )
            for name, form in forms_of(only).items()
        },
        "required": [json_name(name) for name, field in fields.items() if is_required(field)],
        "additionalProperties": False,
    }


def described(
    body: Schema, name: str, words: str, field: dataclasses.Field[Any] | None = None
) -> Schema:
    """Return a field's schema with the additional keywords `description`, `unit`, `range` and, for
    optional fields, `default`.
    """
    out = {
        "description": words,
        **body,
        "unit": unit_of(name) if _is_numeric(body) else "none",
        "range": range_of(body),
    }
    if field is not None and not is_required(field):
        out["default"] = field.default
    return out


def unit_of(name: str) -> str:
    """Derive the unit of a number from the name of its field. The unit "1" means that the number is
    dimensionless.

    Examples
    --------
    >>> unit_of("uplink_bits_per_second"), unit_of("overhead_seconds"), unit_of("snr")
    ('bit/s', 's', '1')
    """
    whole, _, per = name.partition("_per_")
    unit = "1" if name in COUNTS else UNITS.get(whole.rpartition("_")[2], "1")
    if not per:
        return unit
    return f"{unit}/{UNITS.get(per.rpartition('_')[2], per.replace('_', ' '))}"


def range_of(body: Schema) -> str:
    """Return a string that describes the domain of a value, for example "number >= 0"."""
    if "anyOf" in body:
        found = dict.fromkeys(range_of(one) for one in body["anyOf"] if one.get("type") != "null")
        return " or ".join(found) + (", or null" if {"type": "null"} in body["anyOf"] else "")
    if "const" in body or "enum" in body:
        return " or ".join(json.dumps(value) for value in body.get("enum", [body.get("const")]))
    kind = body.get("type", "anything")
    if isinstance(body.get("additionalProperties"), dict):
        return f"object of: {range_of(body['additionalProperties'])}"
    if kind == "array":
        items = body.get("items") or (body.get("prefixItems") or [{}])[0]
        least = body.get("minItems", 0)
        most = body.get("maxItems")
        count = f"{least}" if least == most else f"{least} or more"
        return f"list of {count}: {range_of(items)}"
    signs = (
        ("minimum", ">="),
        ("exclusiveMinimum", ">"),
        ("maximum", "<="),
        ("exclusiveMaximum", "<"),
    )
    limits = " and ".join(f"{sign} {body[key]}" for key, sign in signs if key in body)
    return f"{kind} {limits}".strip()


def summary_of(documented: object) -> str:
    """Return the first paragraph of an object's docstring as a single line."""
    return " ".join((inspect.getdoc(documented) or "").partition("\n\n")[0].split())


@cache
def descriptions(cls: type) -> dict[str, str]:
    """Return the descriptions of a class's parameters as a mapping from names to descriptions. They
    are read from the docstrings of the class and its base classes.
    """
    found: dict[str, str] = {}
    for part in reversed(cls.__mro__):
        lines = (
            inspect.cleandoc(part.__doc__ or "")
            .partition("Parameters\n----------\n")[2]
            .splitlines()
        )
        names: list[str] = []
        for line in lines:
            if re.fullmatch(r"-{3,}", line):  # the underline of the next heading
                break
            if line and not line.startswith(" "):
                names = [name.strip() for name in line.split(",")]
                found |= dict.fromkeys(names, "")
            for name in names if line.startswith(" ") else ():
                found[name] = f"{found[name]} {line.strip()}".strip()
    return found


ONE_OF = "one of"
"""String shown in the column "default" for a field that occurs only in some forms of an object. An
object must have exactly one form.
"""


def rows(body: Schema) -> list[dict[str, str]]:
    """Return the rows of a table that documents a schema, with one row per field.

    The fields of a nested object follow the field that contains the object. A field that occurs in
    several forms of an object is listed once.
    """
    return list({tuple(row.values()): row for row in _rows(body, "")}.values())


def _rows(body: Schema, path: str) -> Iterator[dict[str, str]]:
    for name, field in body.get("properties", {}).items():
        known = None if field.get("default") is None else json.dumps(field["default"])
        default = "required" if name in body["required"] else known or "optional"
        yield {
            "field": f"{path}{name}",
            "unit": field["unit"],
            "default": default,
            "range": field["range"],
            "description": field["description"],
        }
        inside = (field.get("items") or {}) if field.get("type") == "array" else field
        below = f"{path}{name}{'[]' if inside is not field else ''}."
        forms = [list(_rows(option, below)) for option in inside.get("anyOf", [inside])]
        forms = [form for form in forms if form]
        for form in forms:
            for row in form:
                deeper = "." in row["field"][len(below) :]
                shared = all(row["field"] in [one["field"] for one in other] for other in forms)
                yield row if deeper or shared else row | {"default": ONE_OF}


def _type_of(form: Form) -> Schema:
    if form.custom is not None:
        return form.custom.schema()
    if form.classes:
        return schema(form.hint)
    if form.item is not None:
        fewest = {"minItems": form.fewest} if form.fewest else {}
        return {"type": "array", "items": schema(form.item)} | fewest
    out = msgspec.json.schema(form.wire)
    if form.column is not None and form.column.minimum_size:
        out["minItems"] = form.column.minimum_size
    return out


def _is_numeric(body: Schema) -> bool:
    """Return whether a schema describes a number or a value that contains only numbers."""
    if "anyOf" in body:
        return all(_is_numeric(one) for one in body["anyOf"] if one.get("type") != "null")
    if body.get("type") == "array":
        return _is_numeric(body.get("items") or (body.get("prefixItems") or [{}])[0])
    if isinstance(body.get("additionalProperties"), dict):
        return _is_numeric(body["additionalProperties"])
    return body.get("type") in ("integer", "number")
