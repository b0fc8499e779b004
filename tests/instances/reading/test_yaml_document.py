"""YAML as JSON: what JSON has not is refused by name, in no time."""

from __future__ import annotations

import pytest

from specopt.instances.reading.yaml_document import yaml_document
from specopt.models.errors import InvalidInput

NEST = "a: &a [x, x]\n" + "".join(
    f"{chr(98 + i)}: &{chr(98 + i)} [*{chr(97 + i)}, *{chr(97 + i)}]\n" for i in range(24)
)


def test_what_json_has_is_read() -> None:
    """Tests that text, numbers, lists and objects are read, and that integer keys are text, as JSON
    has them.
    """
    text = "model:\n  thinking_on: {1: 1.84, 2: 2.5}\n  other: [a, null, true, 3]\n"
    expected = {"model": {"thinking_on": {"1": 1.84, "2": 2.5}, "other": ["a", None, True, 3]}}
    assert yaml_document(text, "f.yaml") == expected


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            "a: &a [*a]",
            r"^f\.yaml: line 1: expected YAML: alias \*a is not supported; write its content$",
        ),
        ("a: &a {b: *a}", r"alias \*a"),
        (NEST, r"^f\.yaml: line 2: expected YAML: alias \*a"),
        ("a: 1\nb: 2\na: 3", "field 'a' appears twice"),
        ("m:\n  1: 2\n  '1': 3", "field '1' appears twice"),
        (
            "x: 1\nnull: 2",
            r"^f\.yaml: line 2: expected YAML: key None: expected a string; put it in quotes$",
        ),
        ("on: 2", "key True: expected a string"),
        ("1.5: 2", r"key 1\.5: expected a string"),
        ("? [1, 2]\n: 3", r"key \[1, 2\]: expected a string"),
        ("? {a: 1}\n: 3", "key {'a': 1}: expected a string"),
        ("2020-01-01: 3", "key datetime.date"),
        ("<<: {a: 1}", "merge"),
        ("!!int ''", "expected YAML: "),
        ("!!bool x", "expected YAML: "),
        ("!!timestamp x", "expected YAML: "),
        ("!!python/object/apply:os.system [ls]", "could not determine a constructor"),
        ("[" * 5000, "expected YAML: "),
        ("a: [", r"line 1: expected YAML: "),
        ("a: \x01", "expected YAML: "),
    ],
)
def test_what_json_has_not_is_refused(text: str, words: str) -> None:
    """Tests that each is one message with the file's name: aliases, keys twice or no text, odd
    tags, endless nests.
    """
    with pytest.raises(InvalidInput, match=words):
        yaml_document(text, "f.yaml")
