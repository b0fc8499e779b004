"""A `config.json`: the decoder's part of it, its type, and refusals of what that type does not have."""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import Any

from specopt.instances.checkpoints.fields import BASE_TYPE, CHECKED, MARKS, MODEL_TYPES
from specopt.instances.checkpoints.section import Section
from specopt.instances.checkpoints.tensors import Formulas
from specopt.models.arguments import sequence
from specopt.models.errors import InvalidInput
from specopt.models.fields import describe

BY_HAND = "measure and enter seconds_per_token and kv_bytes_per_token by hand"
"""What a refusal of a model tells its reader to do."""

HEAD = "transformer_layer_config"

NESTED = ("text_config", "language_config", "llm_config", "thinker_config.text_config", "thinker_config", HEAD)
"""Where a decoder stands inside another config: of a model that reads images or sound, or of a draft head."""


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
    formulas
        The formulas of the type, over this config.
    """

    def __init__(self, data: object) -> None:
        super().__init__(data)
        self.whole, self.notes, self.type = self.data, dict[str, None](), BASE_TYPE
        path = next(filter(self.given, NESTED), "")
        if path:
            super().__init__(self.get(path), path)
            for inner in filter(self.given, NESTED):
                raise InvalidInput(f"{self.where}{inner}: expected a decoder, got another config in it")
        if path and path != HEAD:
            self.note(f"{path} alone is counted, not what is around it (image encoders and their projectors)")
        self.model_type = self.data.get("model_type")
        if not self.model_type and path and f"{self.whole.get('model_type')}_text" in MODEL_TYPES:
            self.model_type = f"{self.whole['model_type']}_text"
        if self.model_type is None:
            raise InvalidInput(f"{self.where}model_type: required field is missing")
        self.is_known = isinstance(self.model_type, str) and self.model_type in MODEL_TYPES
        if self.is_known:
            self.type = MODEL_TYPES[self.model_type]
        self.formulas = Formulas(self, self.type.formulas)

    def get(self, name: str) -> Any:
        """Return a field of the decoder, or the default of its type; None where there is neither."""
        value, around = super().get(name), self.whole.get(name)
        if value is None and name == "tie_word_embeddings":
            return around
        if value is None and name in self.type.defaults:
            value = self.type.defaults[name]
            self.note(f"{name}: absent; {value}, the default of {self.model_type}")
        elif None not in (value, around) and around != value:
            path = self.path(name)
            raise InvalidInput(f"{path}: {describe(value)} contradicts {describe(around)} around {self.where[:-1]}")
        return value

    def note(self, text: str) -> None:
        """Add a note, unless it is there."""
        self.notes[text] = None

    def refusal(self, why: str) -> InvalidInput:
        """Return the error for a type that cannot be counted."""
        known = ", ".join(name for name in MODEL_TYPES if not name.endswith("_text"))
        found = describe(self.model_type)
        return InvalidInput(f"{self.where}model_type: expected one of {known} ({why}), got {found}; {BY_HAND}")

    def refuse_marks(self, *further: str) -> None:
        """Refuse fields that mean what neither the type nor the reader has."""
        unknown = [mark for name, mark in MARKS.items() if name not in (*self.type.understands, *further)]
        for place, where in ((self.data, self.where), (self.whole, "")):
            for key, value in place.items():
                what = [mark["what"] for mark in unknown if any(fnmatchcase(str(key), name) for name in mark["fields"])]
                if what and value not in (None, False, [], {}, ""):
                    field = where + (key if str(key).isprintable() else describe(key))
                    counted = f"{what[0]} are not counted for {self.model_type}"
                    raise InvalidInput(f"{field}: {counted}, got {describe(value)}; {BY_HAND}")

    def check_architectures(self, *further: str) -> None:
        """Refuse other classes than those of the type, and further ones."""
        found = self.data.get("architectures")
        names = {str(item).lower() for item in ([] if found is None else sequence(self.path("architectures"), found))}
        expected = (*self.type.architecture, *further)
        if not names <= {name.lower() for name in expected}:
            listed, shown = " or ".join(expected), describe(found)
            raise InvalidInput(
                f"{self.where}architectures: expected {listed}, as model_type {self.model_type} has it, got {shown}"
            )

    def check_fixed(self, further: Mapping[str, str]) -> None:
        """Refuse fields that ask for what the type does not have: some readers would follow them, others not."""
        table = self.type.formulas
        flags = {name: table[formula] for name, formula in CHECKED.items() if table[formula] in ("True", "False")}
        for name, formula in {**flags, **self.type.fixed, **further}.items():
            found = self.flag(name) if name in flags and self.given(name) else self.get(name)
            expected = None if found is None else self.formulas.value(formula)
            if found != expected:
                words = [str(item).lower() if isinstance(item, bool) else describe(item) for item in (expected, found)]
                path = self.path(name)
                raise InvalidInput(f"{path}: expected {words[0]}, as {self.model_type} has it, got {words[1]}")
