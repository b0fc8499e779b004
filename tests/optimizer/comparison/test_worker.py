"""The process that solves cells: one thread for HiGHS."""

from __future__ import annotations

import subprocess
import sys

import pytest

from specopt.comparison.child import Child

HIGHS_WITH_TWO_THREADS = """
import highspy
from specopt.comparison.worker import keep_highs_to_one_thread
from specopt.solvers.highs import Highs
if {kept}:
    keep_highs_to_one_thread()
for threads in (2, 0):
    model = Highs()
    model.setOptionValue("threads", threads)
    model.addVar(0.0, 1.0)
    print(model.run() == highspy.HighsStatus.kOk)
"""


def test_highs_keeps_to_one_thread() -> None:
    """Tests that HiGHS has one thread in a worker: it refuses two, and takes whatever number there is."""
    for kept, expected in ((False, ["True", "True"]), (True, ["False", "True"])):
        code = HIGHS_WITH_TWO_THREADS.format(kept=kept)
        done = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, check=True)
        assert done.stdout.split() == expected


ONCE = """
import json, os, sys
for line in sys.stdin:
    request = json.loads(line)
    print(json.dumps({"ready": True}))
    print(json.dumps({"process": os.getpid()}), flush=True)
    if request["last"]:
        break
"""


def test_a_worker_that_ended_is_started_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests that one process answers request after request, and another one those after its end."""
    monkeypatch.setattr(Child, "command", (sys.executable, "-c", ONCE))
    child, found = Child(), []
    try:
        for last in (False, True, False):
            found.append(child.ask({"last": last}, 600.0)["process"])
            assert child.process is not None
            if last:
                child.process.wait(600)
    finally:
        child.close()
    assert found[0] == found[1] != found[2]
