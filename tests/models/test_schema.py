"""Schemas: what every field of every kind says of itself, and what editors need."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from specopt import Problem, generate, load
from specopt.commands.cli import run
from specopt.kinds import KINDS
from specopt.models.errors import InvalidInput
from specopt.models.schema import range_of, rows, schema, unit_of

DIMENSIONLESS = {
    "snr",
    "acceptance_rate",
    "acceptance_rates",
    "weights",
    "fairness",
    "layers",
    "hidden",
    "ffn",
    "heads",
    "kv_heads",
    "head_dim",
    "vocabulary",
    "vocabulary_size",
    "pipeline_length",
    "max_chunks",
    "resolutions",
    "resolution",
    "transition",
    "bandwidth_share",
    "share",
    "batches",
    "batch",
    "changes",
    "first_step",
    "probability",
    "accepted",
    "first_rejection",
    "after",
    "start",
    "next",
    "acceptance",
    "units",
    "clients",
    "per_unit",
    "reserved_share",
    "weight",
    "draft_group",
}
"""Numbers that count things other than tokens, or are shares, ratios, indices."""


def fields_of(body: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any], bool]]:
    """Yield every field in a schema, wherever it is: name, what it says, whether it is required."""
    for name, field in body.get("properties", {}).items():
        yield name, field, name in body["required"]
    inside = [*body.get("properties", {}).values(), *body.get("anyOf", []), body.get("items")]
    for part in inside:
        if isinstance(part, dict):
            yield from fields_of(part)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_every_field_says_all_of_itself(kind: Any) -> None:
    """Tests that each field of problems and plans has meaning, unit, range, and a default unless it
    is required.
    """
    found = [*fields_of(kind.problem.json_schema()), *fields_of(schema(kind.plan))]
    assert len(found) > 5
    for name, field, is_required in found:
        assert len(field["description"].split()) >= 3 or name == "name", name
        assert field["unit"] and field["range"], name
        assert is_required != ("default" in field), name
        assert (field["unit"] == "1") <= (name in DIMENSIONLESS), name


def test_the_words_are_those_of_the_declaration() -> None:
    """Tests that meaning, unit, default and range of a field follow from docstring, name and
    annotation.
    """
    found = {row["field"]: row for row in rows(generate("prompt-chunking/paper-4").json_schema())}
    assert found["link_latency_seconds"] == {
        "field": "link_latency_seconds",
        "unit": "s",
        "default": "0.0",
        "range": "number >= 0",
        "description": found["link_latency_seconds"]["description"],
    }
    assert found["cloud_delay.tokens"]["range"].startswith("list of ")
    assert found["prompt_tokens"]["default"] == "required"
    assert found["max_chunks"]["default"] == "optional"
    nonempty = {
        row["field"]
        for kind in KINDS
        for row in rows(kind.problem.json_schema())
        if row["range"] == "list of 1 or more: object"
    }
    assert nonempty >= {"rounds", "states", "verify_runtime.pieces"}
    assert unit_of("seconds_per_interaction") == "s/token^2"
    assert range_of({"anyOf": [{"enum": ["a", "b"]}, {"type": "null"}]}) == '"a" or "b", or null'
    assert (
        range_of({"type": "array", "prefixItems": [{"type": "integer"}]})
        == "list of 0 or more: integer"
    )


def test_problem_files_may_name_their_schema(tmp_path: Path) -> None:
    """Tests that "$schema" is read past, is no part of the problem, and must be text; plans do not
    take it.
    """
    problem = generate("draft-allocation/paper-5")
    data = {"$schema": "./schema.json", **problem.to_dict()}
    (tmp_path / "problem.json").write_text(json.dumps(data))
    read = load(tmp_path / "problem.json")
    assert isinstance(read, Problem) and read == problem and read.sha256 == problem.sha256
    assert "$schema" not in read.to_dict()
    with pytest.raises(InvalidInput, match=r"^\$schema: expected a string, got 3$"):
        type(problem).from_dict(data | {"$schema": 3})
    with pytest.raises(InvalidInput, match=r"\$schema: unknown field"):
        problem.plan_type.from_dict({"$schema": "x", "draft_tokens": [1]})


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Tests that a schema is printed, written for editors, or shown as a table, and other formats
    are refused.
    """
    jsonschema = pytest.importorskip("jsonschema")
    path = tmp_path / "schema.json"
    assert run(["schema", "serving-latency", "-o", str(path)]) == 0
    written = json.loads(path.read_text())
    jsonschema.Draft202012Validator.check_schema(written)
    problem = generate("serving-latency/paper-1", tasks=3).to_dict()
    jsonschema.validate(problem | {"$schema": "schema.json"}, written)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(problem | {"bandwidth_hz": 0}, written)
    capsys.readouterr()
    assert run(["schema", "serving-latency", "--format", "table"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "bandwidth_hz  [Hz]  required; number > 0" in lines
    assert "verify_runtime.overhead_seconds  [s]  one of; number >= 0" in lines
    assert run(["schema", "serving-latency", "--format", "yaml"]) == 2
    assert "--format: expected json or table, got 'yaml'" in capsys.readouterr().err
