"""The same seed gives the same plan: in every process, whatever hash seed, threads and other work
there are.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from specopt.kinds import KINDS

pytestmark = pytest.mark.nightly

PROBLEMS = {
    "serving-latency": [
        ("serving-latency/known-lengths", {"tasks": 40}),
        ("serving-latency/paper-1", {"tasks": 12, "max_output": 64}),
        ("serving-latency/paper-1", {"tasks": 3, "max_output": 16}),
    ],
    "continuous-serving": [("continuous-serving/paper-1", {"tasks": 12, "max_output": 64})],
    "prompt-chunking": [("prompt-chunking/random", {}), ("prompt-chunking/slow-message", {})],
    "draft-allocation": [("draft-allocation/ties", {"clients": 6})],
    "fair-goodput": [
        ("fair-goodput/paper-5", {"clients": 12}),
        ("fair-goodput/per-second", {"clients": 5}),
        ("fair-goodput/extreme-fairness", {"clients": 4}),
    ],
    "verification-batch": [("verification-batch/mixed", {"requests": 40})],
    "draft-control": [("draft-control/random", {})],
    "draft-stopping": [("draft-stopping/random", {"bins": 3, "max_draft": 5})],
    "placement": [("placement/one-class", {"number_of_clients": 12})],
}
"""Large enough that every method comes to its random parts."""

PROGRAM = """
import hashlib, json, sys
import specopt

found = {}
for family, parameters in json.loads(sys.argv[1]):
    problem = specopt.generate(family, seed=5, **parameters)
    for method in specopt.methods(problem):
        if method.requires or method.name in ("milp", "brute-force"):
            continue
        result = specopt.solve(problem, method.name, seed=11)
        plan = json.dumps(result.plan and result.plan.to_dict(), sort_keys=True)
        pair = result.objective, result.bound
        values = [value if value is None else value.hex() for value in pair]
        found[f"{family} {method.name}"] = [*values, hashlib.sha256(plan.encode()).hexdigest()]
print(json.dumps(found))
"""


def started(kind: str, **environment: str) -> subprocess.Popen[str]:
    """Start a process that has all methods of a kind answer."""
    command = [sys.executable, "-c", PROGRAM, json.dumps(PROBLEMS[kind])]
    return subprocess.Popen(
        command, env=os.environ | environment, stdout=subprocess.PIPE, text=True
    )


@pytest.mark.parametrize("kind", [kind.name for kind in KINDS])
def test_every_process_gives_the_same_answers(kind: str) -> None:
    """Tests that all methods agree to the last bit in two processes, one of them hashed, threaded
    and slowed otherwise.

    The integer programs' solver and brute force draw nothing at random.
    """
    first = started(kind, PYTHONHASHSEED="1", OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")
    other = started(kind, PYTHONHASHSEED="2", OMP_NUM_THREADS="2", OPENBLAS_NUM_THREADS="2")
    os.setpriority(
        os.PRIO_PROCESS, other.pid, 19
    )  # it waits for whatever else is at work, the first one to begin with
    answers = []
    for process in (first, other):
        out, _ = process.communicate()
        assert process.returncode == 0
        answers.append(json.loads(out))
    assert answers[0]
    assert answers[0] == answers[1]
