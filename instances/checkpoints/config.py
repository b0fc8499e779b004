"""A `config.json`: the decoder's part of it, its type, and refusals of what that type does not have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

from specopt.instances.checkpoints.fields import MARKS, MODEL_TYPES
from specopt.instances.checkpoints.section import Section
from specopt.instances.checkpoints.tensors import Formulas
from specopt.models.errors import InvalidInput
from specopt.models.fields import describe

BY_HAND = "measure and enter seconds_per_token and kv_bytes_per_token by hand"
"""What a refusal of a model tells its reader to do."""

NESTED = ("text_config", "language_config", "llm_config", "thinker_config", "transformer_layer_config")
"""Where a decoder stands inside another config: of a model that reads images or sound, or of a draft head."""

TIED = "tie_word_embeddings"

FIXED_BY = {
    "attention_bias": "qkv_bias",
    "qkv_bias": "qkv_bias",
    "mlp_bias": "mlp_bias",
    "use_qk_norm": "query_key_norm",
    "qk_norm": "query_key_norm",
    "qk_layernorm": "query_key_norm",
}
"""Fields that may contradict a formula of the type that is True or False."""


class Config(Section):
    """The decoder in a `config.json`.

    Parameters
    ----------
    data
        The content of the file.

    Attributes
    ----------
    whole
        All of the file.
    notes
        What a reader should know.
    model_type, type
        The decoder's type, by name and as the table has it.
    """

    def __init__(self, data: object) -> None:
        super().__init__(data)
        self.whole, self.notes = self.data, list[str]()
        self.type = MODEL_TYPES["base"]
        name = self._enter()
        if name == "thinker_config" and self.data.get("text_config") is not None:
            name = self._enter()
        elif name is not None and (inner := next((key for key in NESTED if self.data.get(key) is not None), None)):
            raise InvalidInput(f"{self.where}{inner}: expected a decoder, got another config in it")
        if name not in (None, "transformer_layer_config"):
            around = "image encoders and their projectors"
            self.notes.append(f"{self.where[:-1]} alone is counted, not what is around it ({around})")
        found = self.data.get("model_type")
        if not found and self.where and f"{self.whole.get('model_type')}_text" in MODEL_TYPES:
            found = f"{self.whole['model_type']}_text"
        if found is None:
            raise InvalidInput(f"{self.where}model_type: required field is missing")
        self.model_type = found
        if self.is_known:
            self.type = MODEL_TYPES[found]

    def _enter(self) -> str | None:
        """Go into the first config inside this one, and return its name."""
        for name in NESTED:
            if self.data.get(name) is not None:
                super().__init__(self.data[name], self.path(name))
                return name
        return None

    @property
    def is_known(self) -> bool:
        """Whether the table has the type."""
        return isinstance(self.model_type, str) and self.model_type in MODEL_TYPES and self.model_type != "base"

    def get(self, name: str) -> Any:
        """Return a field of the decoder, or the default of its type; None where there is neither."""
        value, around = super().get(name), self.whole.get(name)
        if value is None and name == TIED:
            return around
        if value is None and name in self.type.defaults:
            value = self.type.defaults[name]
            self.note(f"{name}: absent; {value}, the default of {self.model_type}")
        elif value is not None and around is not None and around != value:
            raise InvalidInput(
                f"{self.where}{name}: {describe(value)} contradicts {describe(around)} around {self.where[:-1]}"
            )
        return value

    def note(self, text: str) -> None:
        """Add a note, unless it is there."""
        if text not in self.notes:
            self.notes.append(text)

    @property
    def formulas(self) -> Formulas:
        """The formulas of the type, over this config."""
        return Formulas(self, self.type.formulas)

    def refusal(self) -> InvalidInput:
        """Return the error for a type that cannot be counted."""
        known = ", ".join(name for name in MODEL_TYPES if not name.endswith("_text") and name != "base")
        found = describe(self.model_type)
        return InvalidInput(f"{self.where}model_type: expected one of {known}, got {found}; {BY_HAND}")

    def refuse_marks(self, *known: str) -> None:
        """Refuse fields that mean what neither the type nor the reader has."""
        patterns = [
            (pattern, mark["what"])
            for name, mark in MARKS.items()
            if name not in (*self.type.understands, *known)
            for pattern in mark["fields"]
        ]
        for place, where in ((self.data, self.where), (self.whole, "")):
            for key, value in place.items():
                what = next((what for pattern, what in patterns if fnmatchcase(str(key), pattern)), None)
                if what is not None and value not in (None, False, 0, [], {}, ""):
                    shown = key if str(key).isprintable() else describe(key)
                    raise InvalidInput(
                        f"{where}{shown}: {what} are not counted for {self.model_type}, got {describe(value)}; {BY_HAND}"
                    )

    def check_architectures(self, further: Sequence[str]) -> None:
        """Refuse other classes than those of the type, and further ones."""
        found = self.data.get("architectures")
        if found is None:
            return
        if not isinstance(found, list) or not all(isinstance(item, str) for item in found):
            raise InvalidInput(f"{self.where}architectures: expected a list of names, got {describe(found)}")
        expected = (*self.type.architecture, *further)
        if any(item.lower() not in [name.lower() for name in expected] for item in found):
            raise InvalidInput(
                f"{self.where}architectures: expected {' or '.join(expected)}, as model_type {self.model_type} has it,"
                f" got {describe(found)}"
            )

    def check_fixed(self, further: Mapping[str, str]) -> None:
        """Refuse fields that ask for what the type does not have: some readers would follow them, others not."""
        formulas = self.formulas
        fixed = {name: self.type.formulas[formula] for name, formula in FIXED_BY.items()}
        flags = {name: formula for name, formula in fixed.items() if formula in ("True", "False")}
        for name in flags:
            self.flag(name)
        for name, formula in (flags | dict(self.type.fixed) | dict(further)).items():
            found = self.get(name)
            if found is not None and found != (expected := formulas.value(formula)):
                raise InvalidInput(
                    f"{self.where}{name}: expected {_word(expected)}, as {self.model_type} has it, got {_word(found)}"
                )


def _word(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else describe(value)
