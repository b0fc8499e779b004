"""The decoder section of a `config.json`, together with the table entry for its model type.

Fields that do not belong to the model type are rejected.
"""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import Any

from specopt.instances.checkpoints.fields import (
    MODEL_TYPES,
    TABLE,
    UNLISTED,
    Entry,
    Formulas,
    Section,
)
from specopt.models.errors import InvalidInput
from specopt.models.fields import describe

BY_HAND = "measure and enter seconds_per_token and kv_bytes_per_token by hand"
"""Advice at the end of every message that rejects a model."""

HEAD = "transformer_layer_config"


class Config(Section):
    """The decoder section of a `config.json`.

    Parameters
    ----------
    data
        Content of the file.

    Attributes
    ----------
    whole
        Content of the whole file.
    notes
        Notes that are shown to the user, for example about defaults and parts that are not counted.
    model_type
        Name of the decoder's model type.
    type
        Entry for the model type in the table `fields.toml`.
    is_listed
        Whether the table contains this model type. If not, only the fields common to all types
        are known.
    formulas
        Formulas for the model type, evaluated for this config.
    """

    def __init__(self, data: object) -> None:
        super().__init__(data)
        self.whole = Section(data)
        self.notes = dict[str, None]()
        self.type = UNLISTED["grouped"]
        path = next(filter(self.given, TABLE["inside"]["fields"]), "")
        if path:
            super().__init__(self.get(path), path)
            if path != HEAD:
                self.note(
                    f"only {path} is counted, without the modules around it (image encoders and"
                    " their projectors)"
                )
        self.model_type = self.data.get(
            "model_type", path and f"{self.whole.get('model_type')}_text"
        )
        self.is_listed = str(self.model_type) in MODEL_TYPES
        form = "latent" if self.given("kv_lora_rank") else "grouped"
        self.type = MODEL_TYPES[self.model_type] if self.is_listed else UNLISTED[form]
        self.formulas = Formulas(self, self.type["formulas"])

    def get(self, name: str, default: Any = None) -> Any:
        """Return a field of the decoder, or the model type's default, or else the given default."""
        value = super().get(name)
        around = self.whole.data.get(name)
        if value is None and name == "tie_word_embeddings":
            value = around
        elif value is None and name in self.type["defaults"]:
            value = self.type["defaults"][name]
            self.note(f"{name}: absent; {value}, the default of {self.model_type}")
        elif None not in (value, around) and around != value:
            path = self.path(name)
            raise InvalidInput(
                f"{path}: {describe(value)} conflicts with {describe(around)}, the value outside"
                f" {self.where[:-1]}"
            )
        return default if value is None else value

    def note(self, text: str) -> None:
        """Add a note unless the same note is already present."""
        self.notes[text] = None

    def refusal(self, why: str) -> InvalidInput:
        """Return the error for a model type whose parameters cannot be counted."""
        known = ", ".join(name for name in MODEL_TYPES if not name.endswith("_text"))
        found = describe(self.model_type)
        return InvalidInput(
            f"{self.where}model_type: expected one of {known} ({why}), got {found}; {BY_HAND}"
        )

    def check(self, expected: Entry, *further: str) -> None:
        """Reject fields that do not belong to the model type.

        Such fields are ambiguous, because some programs use them and others ignore them.

        Parameters
        ----------
        expected
            Mapping from fields to formulas. Each formula computes the only value that the field may
            have.
        further
            Names of groups of fields (``marks`` in `fields.toml`) that are allowed in addition to
            the groups of the model type.
        """
        for name, mark in TABLE["marks"].items():
            if name not in (*self.type["understands"], *further):
                for key, value in (*self.data.items(), *self.whole.data.items()):
                    is_set = value not in (None, False, [], {}, "")
                    if is_set and any(fnmatchcase(str(key), field) for field in mark["fields"]):
                        words = (
                            f"{mark['what']} are not counted for {self.model_type}, got"
                            f" {describe(value)}"
                        )
                        raise InvalidInput(f"{describe(str(key))[1:-1]}: {words}; {BY_HAND}")
        for name, formula in expected.items():
            found = self.get(name)
            if found is not None and found != (value := self.formulas.value(formula)):
                words = (
                    f"expected {str(value).lower()}, as {self.model_type} has it, got"
                    f" {describe(found)}"
                )
                raise InvalidInput(f"{self.path(name)}: {words}")
