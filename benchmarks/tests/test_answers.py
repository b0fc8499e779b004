"""The answers recorded before a change: the same commit gives them again, and what differs is
listed.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import answers  # type: ignore[import-not-found]  # benchmarks are no package
import pytest

pytestmark = pytest.mark.nightly

INSTANCE = "draft-allocation/paper-5/N4-C24-mild"
MODEL = "model draft-15m.config.json"


def run(verb: str, file: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the script."""
    command = [sys.executable, "-P", answers.__file__, verb, str(file), *arguments, "--jobs", "1"]
    return subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)


def test_what_is_recorded_is_found_again_and_differences_are_listed(tmp_path: Path) -> None:
    """Tests that recording resumes and leaves out what does not end, and that a check lists what
    differs, only that.
    """
    file = tmp_path / "answers.jsonl"
    assert run("record", file, f"{INSTANCE} greedy", "--seconds", "0").stdout.splitlines() == [
        f"{INSTANCE} greedy: unfinished after 0 s",
        "1 cases recorded, 0 were already",
    ]
    file.write_text(file.read_text() + '{"case": "cut o')
    again = run("record", file, INSTANCE, MODEL)
    assert "\n9 cases recorded, 1 were already\n" in "\n" + again.stdout, again.stderr
    clean = run("check", file)
    assert clean.returncode == 0 and ": 0 differ; 1 were left out" in clean.stdout, (
        clean.stdout + clean.stderr
    )

    first, *lines = map(json.loads, file.read_text().splitlines())
    cases: dict[str, dict[str, Any]] = {line["case"]: line for line in lines}
    assert cases[f"{INSTANCE} (default)"]["answer"] == {
        "method": "auto",
        "runs": ["water-level", "greedy"],
    }
    proven = cases[f"{INSTANCE} milp"]["answer"]
    assert (
        proven["status"] == "optimal"
        and proven["plan"] == cases[f"{INSTANCE} brute-force"]["answer"]["plan"]
    )
    proven["objective"] *= 1 + 1e-12
    cases[MODEL]["answer"]["text"][0] = "draft-15m: no parameters"
    for line in lines:
        line["seconds"] = (
            0.3 if line["case"].endswith("greedy") or line["case"].endswith("float32") else 0.1
        )
    file.write_text("".join(json.dumps(line) + "\n" for line in (first, *lines)))
    found = run("check", file, "--small")
    assert found.returncode == 1
    listed = found.stdout.splitlines()
    assert [line for line in listed if line.startswith(f"{INSTANCE} milp: objective 4.17")]
    assert f"{MODEL}: text: -draft-15m: no parameters" in listed
    assert [line for line in listed if line.startswith(f"{MODEL}: text: +draft-15m: 15,")]
    assert (
        ": 2 differ; 1 were left out" in listed[-1]
        and listed[-1].endswith(", 1 are not small")
        and len(listed) == 4
    )


def test_differences() -> None:
    """Tests that numbers count as they are or within a tolerance, plans by the digest for it, and
    all else exactly.
    """

    def differences(before: object, now: object, tolerance: float = 0.0) -> list[str]:
        return list(answers.differences_of(before, now, tolerance))

    nan = float("nan")
    before = {"objective": 1.0, "bound": nan, "status": "optimal", "plan": "a", "rounded_plan": "b"}
    assert not differences(before, dict(before))
    close = {**before, "objective": 1.0 + 1e-12, "plan": "c"}
    assert differences(before, close) == ["objective 1.0 -> 1.000000000001", "plan 'a' -> 'c'"]
    assert not differences(before, close, 1e-9)
    assert differences(before, {**before, "rounded_plan": "d", "status": "feasible"}, 1e-9) == [
        "status 'optimal' -> 'feasible'",
        "rounded_plan 'b' -> 'd'",
    ]
    assert differences({"a": [1, {"b": 2}], "c": 0}, {"a": [1, {"b": 3}], "d": 0}) == [
        "a[1].b 2 -> 3",
        "c is gone",
        "d is new",
    ]
    assert differences({"a": [1]}, {"a": [1, 2]}) == ["a has 1 entries, now 2"]
    assert differences({"text": ["x", "y"]}, {"text": ["x", "z"]}) == ["text: -y", "text: +z"]
    printed, again = (
        {"text": ["bound: 8.2, 3 of 4", "-1e-5"]},
        {"text": ["bound: 8.20000000001, 3 of 4", "-1e-05"]},
    )
    assert len(differences(printed, again)) == 4 and not differences(printed, again, 1e-9)
    assert len(differences(printed, {"text": ["bound: 8.3, 3 of 4", "-1e-5"]}, 1e-9)) == 2
    assert len(differences(printed, {"text": ["bounds: 8.2, 3 of 4", "-1e-5"]}, 1e-9)) == 2
