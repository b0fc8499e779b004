"""The table of field names: which fields of a config say what, by type of model. `fields.toml` explains its syntax."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Any


@dataclass(frozen=True, kw_only=True)
class ModelType:
    """What one `model_type` fixes.

    Parameters
    ----------
    architecture
        The classes of the decoder with its output head, as `architectures` names them.
    understands
        Of `MARKS` those whose fields mean nothing for the counts, or are in its formulas.
    kind_fields
        Fields that list the kind of each layer.
    kind_names
        Kinds of layers by their names in those fields.
    attention
        Forms of attention (of `ATTENTION`) by kind of layer.
    expert_fields
        Fields that list for each layer whether it has routed experts.
    layer, outside
        Tensors of each layer next to attention and feed-forward network, and of the decoder next to `DECODER`.
    names
        Names in checkpoints of the decoder, a dense network, experts, router, shared experts and (`mixer`) attention.
    defaults
        Sizes that configs of this type leave out when they equal the defaults of its class.
    drafts
        Field with the number of layers that predict further tokens.
    draft_fields, draft_kinds
        Fields with the kinds of the layers of such a head, and the kinds if they are absent, ``kind/network``; without
        either it is like the last layer that keeps something of every token.
    expert_dtype
        How a quantised config of this type stores experts unless it says otherwise.
    fixed
        Formulas of fields that have one value only.
    formulas
        Formulas by name.
    """

    architecture: Sequence[str]
    understands: Sequence[str]
    kind_fields: Sequence[str]
    kind_names: Mapping[str, str]
    attention: Mapping[str, str]
    expert_fields: Sequence[str]
    layer: Sequence[str]
    outside: Sequence[str]
    names: Mapping[str, str]
    defaults: Mapping[str, int]
    drafts: str
    draft_fields: Sequence[str]
    draft_kinds: Sequence[str]
    expert_dtype: str
    fixed: Mapping[str, str]
    formulas: Mapping[str, str]


MERGED = ("attention", "names", "fixed", "formulas")
"""Keys of an entry whose tables are merged with those of the entry that it is ``like``."""


def _entries(name: str) -> dict[str, dict[str, Any]]:
    """Return the entries of a part of the table, each with what it has from the one that it is ``like``."""
    found: dict[str, dict[str, Any]] = {}
    for key, entry in _TABLE[name].items():
        parent = found.get(entry.pop("like", "base"), {})
        merged = {part: parent.get(part, {}) | entry.get(part, {}) for part in MERGED if part in {**parent, **entry}}
        found[key] = {**parent, **entry, **merged}
    del found["base"]
    return found


_TABLE = tomllib.loads((resources.files(__package__) / "fields.toml").read_text(encoding="utf-8"))

MARKS: Mapping[str, Mapping[str, Any]] = _TABLE["marks"]
"""Fields (with wildcards) that, set to anything but nothing, mean what only some types have."""
CHECKED: Mapping[str, str] = _TABLE["checked"]
"""Fields that may contradict a formula of the type that is True or False."""
ATTENTION = _entries("attention")
"""Forms of attention: their tensors, and formulas of what they keep."""
FEED_FORWARD: Mapping[str, Sequence[str]] = _TABLE["feed_forward"]
"""Tensors of dense networks and of routed experts."""
DECODER: Sequence[str] = _TABLE["decoder"]["tensors"]
"""Tensors before and behind the layers."""
HEADS = _entries("heads")
"""Draft heads by kind."""
VISION = _entries("vision")
"""Formulas for image encoders, by the type of the whole model."""
QUANTISATION = _entries("quantisation")
"""Formulas of how a matrix is stored, by method."""
BASE_TYPE = ModelType(**_TABLE["types"]["base"])
"""What most types share."""
MODEL_TYPES = {name: ModelType(**entry) for name, entry in _entries("types").items()}
"""The types that are understood."""
