"""Values that a JSON Schema allows: for fields that are optional, and so absent from most
problems.
"""

from __future__ import annotations

import random
from typing import Any

from fuzz.json_tree import Object


def allowed(rng: random.Random, schema: dict[str, Any], size: int) -> Any:
    """Return a value of a schema, as a tree; arrays get `size` items, numbers stay small unless the
    schema asks.
    """
    if "const" in schema:
        return schema["const"]
    if "enum" in schema:
        return rng.choice(schema["enum"])
    for union in ("anyOf", "oneOf"):
        if union in schema:
            return allowed(rng, rng.choice(schema[union]), size)
    kind = schema.get("type")
    if kind == "object":
        required = schema.get("required", ())
        chosen = [
            name for name in schema.get("properties", {}) if name in required or rng.random() < 0.3
        ]
        return Object((name, allowed(rng, schema["properties"][name], size)) for name in chosen)
    if kind == "array":
        items = schema.get("prefixItems") or [schema.get("items") or {}] * max(
            size, schema.get("minItems", 0)
        )
        return [allowed(rng, item, size) for item in items]
    if kind in ("integer", "number"):
        low = schema.get("minimum", schema.get("exclusiveMinimum", -10))
        high = schema.get(
            "maximum", schema.get("exclusiveMaximum", low + 10.0 ** rng.uniform(-6, 6))
        )
        if kind == "integer":
            return rng.randint(int(low), int(min(high, low + 20)))
        return min(max(rng.uniform(low, high), low + 1e-9), high - 1e-9)
    if kind == "boolean":
        return rng.random() < 0.5
    return None if kind == "null" else "text"
