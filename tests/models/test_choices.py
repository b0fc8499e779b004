"""Fields with few choices: the refusal lists them."""

from __future__ import annotations

import pytest

from specopt import InvalidInput, generate
from specopt.models.problem import problem_type


@pytest.mark.parametrize(
    ("family", "field", "choices"),
    [
        ("prompt-chunking/paper-4", "wait", "serial, overlap, none"),
        ("prompt-chunking/paper-4", "download", "all, last"),
        ("serving-latency/paper-1", "mechanism", "pipelined, sequential, autoregressive, any"),
        ("fair-goodput/paper-5", "per", "round, second"),
    ],
)
def test_a_wrong_choice_is_told_the_right_ones(family: str, field: str, choices: str) -> None:
    """Tests that a value that is none of a field's choices is refused with all of them."""
    data = {**generate(family).to_dict(), field: "other"}
    with pytest.raises(InvalidInput, match=f"^{field}: expected one of {choices}, got 'other'$"):
        problem_type(family.partition("/")[0]).from_dict(data)
