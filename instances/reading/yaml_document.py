"""Reader for YAML files that use only the features of JSON.

Aliases and repeated keys are rejected, and keys must be strings or integers.
"""

from __future__ import annotations

from typing import Any

import yaml

from specopt.models.errors import InvalidInput
from specopt.models.fields import describe
from specopt.models.files import unique_keys
from specopt.models.reading import StrPath


def yaml_document(text: str, path: StrPath) -> object:
    """Return the content of a YAML file. Integer keys are converted to strings.

    Raises
    ------
    InvalidInput
        If the text is not YAML, or if it uses features that JSON lacks.
    """
    try:
        return yaml.load(text, _Loader)
    except Exception as error:  # PyYAML raises any error, such as IndexError for `!!int ""`
        problem = getattr(error, "problem", None) or str(error) or type(error).__name__
        mark = getattr(error, "problem_mark", None)
        where = "" if mark is None else f"line {mark.line + 1}: "
        raise InvalidInput(f"{path}: {where}expected YAML: {problem}") from None


class _Loader(yaml.SafeLoader):  # type: ignore[misc]  # PyYAML has no annotations
    """A YAML loader that rejects aliases.

    An alias that refers to itself would expand without end, and nested aliases can expand to more
    data than fits in memory.
    """

    def compose_node(self, parent: Any, index: Any) -> Any:
        """Return the next YAML node, and raise an error if the node is an alias."""
        if self.check_event(yaml.AliasEvent):
            event = self.peek_event()
            message = f"alias *{event.anchor} is not supported; write its content"
            raise yaml.composer.ComposerError(None, None, message, event.start_mark)
        return super().compose_node(parent, index)

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[str, Any]:
        """Return a mapping whose keys are converted to strings.

        Repeated keys are rejected.
        """
        pairs = []
        for key_node, value_node in node.value:
            key = self.construct_object(key_node, deep=True)
            if type(key) not in (str, int):
                message = f"key {describe(key)}: expected text; put it in quotes"
                raise yaml.constructor.ConstructorError(None, None, message, key_node.start_mark)
            pairs.append((str(key), self.construct_object(value_node, deep=True)))
        return unique_keys(pairs)
