"""What a solve holds at most: ``python peak_memory.py`` with a case as JSON prints bytes measured
and declared.
"""

from __future__ import annotations

import json
import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import specopt


def measured(case: dict[str, Any]) -> tuple[float, float]:
    """Return the peak of a solve in a process of its own, beyond what it held before, and what the
    method declares.
    """
    command = [sys.executable, "-P", __file__, json.dumps(case)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=True)
    peak, declared = json.loads(done.stdout.splitlines()[-1])
    return float(peak), float(declared)


def _peak() -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(1024 * int(line.split()[1]) for line in lines if line.startswith("VmHWM"))


def _solved(case: dict[str, Any], size: str) -> tuple[float, float]:
    base = specopt.generate(case["family"], seed=1, **case[size])
    problem = base.from_dict(base.to_dict() | case.get("fields", {}))
    method = next(one for one in specopt.methods(type(problem)) if one.name == case["method"])()
    Path("/proc/self/clear_refs").write_text("5")  # the peak is what is held now
    before = _peak()
    specopt.solve(problem, method, memory_limit=math.inf)
    return _peak() - before, sum(method.bytes_needed(problem).values())


if __name__ == "__main__":
    one = json.loads(sys.argv[1])
    _solved(one, "small")  # libraries and kernels are loaded
    print(json.dumps(_solved(one, "large")))
