"""The first answer on a machine: complete commands with an empty cache of kernels, and again with
the warm one.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from table import Benchmark, Row

import specopt

FIRST_ANSWER_SECONDS, DEMO_SECONDS = 6.0, 9.0

PROBLEMS = {
    "serving-latency, 5 tasks": specopt.generate("serving-latency/paper-1", tasks=5, seed=1),
    "serving-latency, 100 tasks": specopt.generate("serving-latency/paper-1", tasks=100, seed=1),
    "continuous-serving, 5 tasks": specopt.generate("continuous-serving/paper-1", tasks=5, seed=1),
    "verification-batch, 12 requests": specopt.generate(
        "verification-batch/mixed", requests=12, seed=1
    ),
    "verification-batch": specopt.generate("verification-batch/mixed", seed=1),
    "prompt-chunking": specopt.generate("prompt-chunking/paper-4", seed=1),
    "draft-control": specopt.generate("draft-control/paper-3", seed=1),
    "draft-stopping": specopt.generate("draft-stopping/mixed", seed=1),
    "draft-allocation": specopt.generate("draft-allocation/paper-5", seed=1),
    "placement, 3 clients": specopt.generate(
        "placement/many-classes",
        number_of_clients=3,
        classes=3,
        verifiers=2,
        drafters=2,
        units=6,
        max_draft=4,
        seed=1,
    ),
    "fair-goodput per round": specopt.generate("fair-goodput/paper-5", seed=1),
    "fair-goodput per second": specopt.generate("fair-goodput/per-second", seed=1),
}


def _run(arguments: list[str], folder: Path) -> tuple[float, float]:
    """Return wall-clock seconds and processor seconds of a command that caches its kernels in a
    folder.
    """
    env = os.environ | {"NUMBA_CACHE_DIR": str(folder / "cache")}
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(
        [sys.executable, "-P", "-m", "specopt", *arguments],
        env=env,
        cwd=folder,
        capture_output=True,
        check=True,
    )
    seconds, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    return seconds, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def _row(subject: str, arguments: list[str], target: float, folder: Path) -> Row:
    (cold, processor), (warm, _) = _run(arguments, folder), _run(arguments, folder)
    figure = f"{cold:.1f} s at first ({processor:.1f} s of processor time), {warm:.1f} s later"
    return Row(subject, figure, f"{target:g} s at first", cold <= target)


def first_answers(smoke: bool) -> list[Row]:
    """Time `specopt solve` on a small problem of every kind with its default method, and `specopt
    demo`.
    """
    rows = []
    for subject, problem in list(PROBLEMS.items())[-1 if smoke else 0 :]:
        with tempfile.TemporaryDirectory() as name:
            specopt.save(problem, Path(name) / "problem.json")
            rows.append(
                _row(
                    f"specopt solve, {subject}",
                    ["solve", "problem.json"],
                    FIRST_ANSWER_SECONDS,
                    Path(name),
                )
            )
    if not smoke:
        with tempfile.TemporaryDirectory() as name:
            rows.append(_row("specopt demo", ["demo"], DEMO_SECONDS, Path(name)))
    return rows


BENCHMARKS = (Benchmark("the first answer on a machine", first_answers),)
