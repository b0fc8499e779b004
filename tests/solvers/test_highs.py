"""HiGHS prints nothing: objects of ours, of Pyomo and of CVXPY, at the level of descriptors."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import highspy
import pytest

from specopt.solvers.highs import Highs, silent_highs

PROGRAM = """
import ctypes, os, sys
import specopt
from specopt.solvers.highs import Highs
from specopt.solvers.verification_batch import threshold
from specopt.solvers.verification_batch.threshold import Threshold

made = []
def counting(self, make=Highs.__init__):
    made.append(self)
    make(self)
Highs.__init__ = counting
Threshold.few_labels, Threshold.polished, threshold.MEETING = -1, 0, -1
for problem, method in (
    (specopt.generate("draft-control/random", seed=1), "linear-program"),
    (specopt.generate("verification-batch/mixed", requests=40, seed=0), "threshold"),
    (specopt.generate("verification-batch/mixed", requests=5, seed=0), "milp"),
    (specopt.generate("draft-allocation/uniform", clients=2, seed=1), "milp"),
    (specopt.generate("serving-latency/paper-1", tasks=2, max_input=64, max_output=4), "milp"),
    (specopt.generate("serving-latency/known-lengths", tasks=12, seed=1), "length-aware"),
):
    del made[:]
    specopt.solve(problem, method, time_limit=600.0)
    ctypes.CDLL(None).fflush(None)
    assert made, f"{problem.kind} {method} did not reach HiGHS"
    assert os.fstat(1).st_size == 0, f"{problem.kind} {method} printed"
from specopt.comparison.worker import keep_highs_to_one_thread
keep_highs_to_one_thread()
"""


def test_solving_by_highs_prints_nothing(tmp_path: Path) -> None:
    """Tests that no method that reaches HiGHS, directly, by Pyomo or by CVXPY, writes to descriptor
    1 or 2.

    In a process of its own: HiGHS prints its banner once in a process.
    """
    printed = tmp_path / "printed"
    with printed.open("wb") as stream:
        done = subprocess.run(
            [sys.executable, "-P", "-c", PROGRAM],
            stdout=stream,
            stderr=subprocess.PIPE,
            check=False,
        )
    assert (done.returncode, done.stderr.decode(), printed.read_text()) == (0, "", "")


def test_no_other_place_makes_a_highs_object() -> None:
    """Tests that the product has one place from which its HiGHS objects come."""
    root = Path(__file__).parents[2]
    for folder in ("optimizer", "solvers", "models", "instances"):
        for path in (root / folder).rglob("*.py"):
            text = path.read_text(encoding="utf-8")
            assert path.name == "highs.py" or "highspy.Highs(" not in text, path
            assert "silent_highs()" in text or not (
                "cp.HIGHS" in text or "pyomo.contrib.solver.solvers" in text
            ), path


def test_the_class_of_highspy_comes_back() -> None:
    """Tests that others' HiGHS objects are ours in the enclosed code alone, nested or not, also
    after an error.
    """
    own = highspy.Highs
    try:
        with silent_highs(), silent_highs():
            assert highspy.Highs is Highs
            raise KeyboardInterrupt
    except KeyboardInterrupt:
        assert highspy.Highs is own
    with silent_highs():
        with silent_highs():
            pass
        assert highspy.Highs is Highs
    assert highspy.Highs is own


def test_what_was_there_comes_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests that a class that somebody else has put in the place of HiGHS's is there again
    afterwards.
    """

    class Other(highspy.Highs):
        """Somebody else's."""

    monkeypatch.setattr(highspy, "Highs", Other)
    with silent_highs(), silent_highs():
        assert highspy.Highs is Highs
    assert highspy.Highs is Other


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_forked_child_solves_as_its_parent_did() -> None:
    """Tests that an integer program of a child of fork ends in its time, after one in its parent.

    HiGHS' own threads are not there in the child, which waits for them forever.
    """
    code = """
import os, signal, specopt
units = {"number_of_clients": 10**7, "units": 10**7}
specopt.solve(specopt.generate("placement/one-class"), "refined")
child = os.fork()
if not child:
    signal.alarm(600)
    problem = specopt.generate("placement/one-class", **units)
    result = specopt.solve(problem, "refined", time_limit=2.0)
    os._exit(0 if result.status == "feasible" else 1)
raise SystemExit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    assert subprocess.run([sys.executable, "-P", "-c", code], check=False).returncode == 0
