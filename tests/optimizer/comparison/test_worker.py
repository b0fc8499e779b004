"""The process that solves cells: one thread for HiGHS."""

from __future__ import annotations

import subprocess
import sys

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
