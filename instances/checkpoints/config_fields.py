"""The fields of a `config.json`: the decoder's part of it, and the whole around that part."""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import Any

from specopt.instances.checkpoints.model_types import MARKS, MODEL_TYPES, ModelType, Switch
from specopt.models.arguments import boolean, integer
from specopt.models.errors import InvalidInput
from specopt.models.fields import MAX_TOKENS, describe

BY_HAND = "measure and enter seconds_per_token and kv_bytes_per_token by hand"
"""What a refusal of a model tells its reader to do."""

NESTED = ("text_config", "language_config", "llm_config", "thinker_config", "transformer_layer_config")
"""Where a decoder stands inside another config: of a model that reads images or sound, or of a draft head."""

MAX_LAYERS = 10_000
"""Largest number of layers that a config may have: each is counted by itself."""


class Fields:
    """One config while it is read.

    Parameters
    ----------
    data
        The content of a `config.json`.

    Attributes
    ----------
    whole, part, where
        All of it, the decoder's part, and that part's path.
    notes
        What a reader should know.
    model_type, type
        The decoder's type, by name and as the table has it.
    """

    def __init__(self, data: object) -> None:
        if not isinstance(data, Mapping):
            raise InvalidInput(f"the top level: expected an object, got {describe(data)}")
        self.whole: Mapping[str, Any] = data
        self.part: Mapping[str, Any] = data
        self.where = ""
        self.notes: list[str] = []
        for name in NESTED:
            if data.get(name) is not None:
                self._enter(name)
                break
        self.model_type, self.type = self._model_type()

    def _enter(self, name: str) -> None:
        part = self.part[name]
        if not isinstance(part, Mapping):
            raise InvalidInput(f"{self.where}{name}: expected an object, got {describe(part)}")
        self.part, self.where = part, f"{self.where}{name}."
        if name == "thinker_config" and part.get("text_config") is not None:
            self._enter("text_config")
            return
        for inner in NESTED:
            if part.get(inner) is not None:
                raise InvalidInput(f"{self.where}{inner}: expected a decoder, got another config in it")
        if name != "transformer_layer_config":
            around = "image encoders and their projectors"
            self.notes.append(f"{self.where[:-1]} alone is counted, not what is around it ({around})")

    def _model_type(self) -> tuple[str, ModelType]:
        found = self.part.get("model_type")
        if not found and self.where and f"{self.whole.get('model_type')}_text" in MODEL_TYPES:
            found = f"{self.whole['model_type']}_text"
        if found is None:
            raise InvalidInput(f"{self.where}model_type: required field is missing")
        if not isinstance(found, str) or found not in MODEL_TYPES:
            known = ", ".join(name for name in MODEL_TYPES if not name.endswith("_text"))
            raise InvalidInput(f"{self.where}model_type: expected one of {known}, got {describe(found)}; {BY_HAND}")
        return found, MODEL_TYPES[found]

    def get(self, name: str) -> Any:
        """Return a field of the decoder; None where it is absent, null or left to the class.

        Dots lead into objects; ``|`` is between names of which the first one that is there counts.
        """
        value = next(filter(lambda found: found is not None, map(self._at, name.split("|"))), None)
        around = self.whole.get(name)
        if value is None:
            return None
        if around is not None and around != value:
            raise InvalidInput(
                f"{self.where}{name}: {describe(value)} contradicts {describe(around)} around {self.where[:-1]}"
            )
        return value

    def _at(self, path: str) -> Any:
        value: Any = self.part
        for name in path.split("."):
            value = value.get(name) if isinstance(value, Mapping) else None
        return value

    def size(self, name: str, default: int | None = None, *, low: int = 1) -> int:
        """Return an integer >= `low`; without a default it has to be there, or in its type's defaults."""
        value, shown = self.get(name), name.partition("|")[0]
        if value is None and name in self.type.defaults:
            default = self.type.defaults[name]
            self.notes.append(f"{name}: absent; {default}, the default of {self.model_type}")
        if value is None:
            if default is None:
                raise InvalidInput(f"{self.where}{shown}: required field is missing")
            return default
        return integer(f"{self.where}{shown}", value, low, MAX_LAYERS if name.endswith("_layers") else MAX_TOKENS)

    def flag(self, name: str, default: bool) -> bool:
        """Return a yes or no."""
        value = self.get(name)
        return default if value is None else boolean(f"{self.where}{name}", value)

    def switch(self, switch: bool | Switch) -> bool:
        """Return a yes or no that the type fixes, or leaves to the config."""
        if isinstance(switch, Switch):
            return self.flag(switch.name, switch.default)
        return switch

    def tied(self) -> bool:
        """Return whether input and output embeddings are one matrix."""
        name = "tie_word_embeddings"
        if self.get(name) is None and self.whole.get(name) is not None:
            return boolean(name, self.whole[name])  # the whole's word counts for the decoder in it
        return self.flag(name, self.type.tied)

    def refuse_marks(self, *known: str) -> None:
        """Refuse fields that mean what neither the type nor the reader has."""
        for place, where in ((self.part, self.where), (self.whole, "")):
            for key, value in place.items():
                if value is None or value is False or value == 0 or value in ([], {}, ""):
                    continue
                for name, mark in MARKS.items():
                    if name not in (*self.type.marks, *known) and any(
                        fnmatchcase(str(key), pattern) for pattern in mark.fields
                    ):
                        shown = key if str(key).isprintable() else describe(key)
                        raise InvalidInput(
                            f"{where}{shown}: {mark.what} are not counted for {self.model_type}, got {describe(value)};"
                            f" {BY_HAND}"
                        )

    def check_architectures(self, *known: str) -> None:
        """Refuse other classes than the type's own."""
        found = self.part.get("architectures")
        if found is None:
            return
        if not isinstance(found, list) or not all(isinstance(item, str) for item in found):
            raise InvalidInput(f"{self.where}architectures: expected a list of names, got {describe(found)}")
        expected = (*self.type.architecture, *known)
        if any(item.lower() not in [name.lower() for name in expected] for item in found):
            raise InvalidInput(
                f"{self.where}architectures: expected {' or '.join(expected)}, as model_type {self.model_type} has it,"
                f" got {describe(found)}"
            )

    def check_fixed(self) -> None:
        """Refuse a config that asks for what its type does not have: some readers would follow it, others not."""
        kind = self.type
        fixed = {
            "attention_bias": kind.qkv_bias,
            "qkv_bias": kind.qkv_bias,
            "mlp_bias": kind.mlp_bias,
            "use_qk_norm": kind.query_key_norm,
            "qk_norm": kind.query_key_norm,
            "qk_layernorm": kind.query_key_norm,
        }
        for name, expected in fixed.items():
            if isinstance(expected, bool):
                self.flag(name, expected)
        for name, expected in (fixed | dict(kind.fixed)).items():
            found = self.get(name)
            if not isinstance(expected, Switch) and found is not None and found != expected:
                raise InvalidInput(
                    f"{self.where}{name}: expected {_word(expected)}, as {self.model_type} has it, got {_word(found)}"
                )


def _word(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else describe(value)
