"""The default method of every kind on the instance library: the share of proven instances and the
gaps after 0.1, 1 and 10 s.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile

import numpy as np
from table import Benchmark, Row

import specopt
from specopt.api.library import best_known, load_saved, saved, saved_instance
from specopt.kinds import KINDS

LIMITS = (0.1, 1.0, 10.0)
WIDE = 0.05
"""Maximum gap after the shortest time. At most `MAX_WIDE` instances may exceed it."""
MAX_WIDE = 10
NEAR, SHARE_NEAR = 0.01, 0.95
"""After one second, at least the share `SHARE_NEAR` of the plans must be at most `NEAR` worse than
the best known ones.
"""

ONE = (
    "import json, sys, specopt; from specopt.api.library import load_saved\nproblem ="
    " load_saved(sys.argv[1]); found = specopt.solve(problem,"
    " time_limit=float(sys.argv[2]))\njson.dump([found.gap, found.seconds, found.objective],"
    " sys.stdout)"
)


def warm(smoke: bool) -> list[Row]:
    """Solve every instance in one process with loaded kernels."""
    names = [name for name in saved() if saved_instance(name).version == 1]
    names = [name for name in names if not smoke or name.endswith(("/K4", "/N4", "/n12", "/S3"))]
    for kind in KINDS:  # loads the kernels of every kind
        for family in kind.families:
            specopt.solve(family.generate(seed=1), time_limit=5.0 if not smoke else 0.05)
    rows, gaps, behind = [], {}, []
    for limit in LIMITS[:1] if smoke else LIMITS:
        for name in names:
            problem = load_saved(name)
            found = specopt.solve(problem, time_limit=limit)
            gaps[name, limit] = np.inf if found.gap is None else found.gap
            best = best_known(name).objective
            if limit == LIMITS[1] and best is not None and found.objective is not None:
                sign = 1.0 if problem.sense == "minimize" else -1.0
                behind.append(sign * (found.objective - best) / max(abs(best), 1e-300) <= NEAR)
    for kind in KINDS:
        mine = [name for name in names if name.startswith(f"{kind.name}/")]
        for limit in LIMITS:
            found_gaps = np.array([gaps[name, limit] for name in mine if (name, limit) in gaps])
            if len(found_gaps):
                figure = (
                    f"{np.mean(found_gaps == 0.0):.0%} proven, {_mean(found_gaps)}, widest"
                    f" {found_gaps.max():.2%}"
                )
                rows.append(Row(f"{kind.name}, {len(mine)} instances, {limit:g} s", figure))
    wide = [name for name in names if gaps[name, LIMITS[0]] > WIDE]
    figure = f"{len(wide)} above {WIDE:.0%}" + (f": {', '.join(wide)}" if wide else "")
    rows.append(
        Row(f"gaps after {LIMITS[0]:g} s", figure, f"at most {MAX_WIDE}", len(wide) <= MAX_WIDE)
    )
    if behind:
        share = float(np.mean(behind))
        subject = f"plans at most {NEAR:.0%} worse than the best known, {LIMITS[1]:g} s"
        rows.append(
            Row(subject, f"{share:.1%} of {len(behind)}", f"{SHARE_NEAR:.0%}", share >= SHARE_NEAR)
        )
    return rows


def cold(smoke: bool) -> list[Row]:
    """Solve the largest instance of the first family of each kind in its own process with an empty
    cache.
    """
    rows = []
    for kind in KINDS[:1] if smoke else KINDS:
        name = [one for one in saved() if one.startswith(kind.families[0].name + "/")][-1]
        best = best_known(name).objective
        for limit in (2.0,) if smoke else (2.0, 10.0):
            with tempfile.TemporaryDirectory() as cache:
                done = subprocess.run(
                    [sys.executable, "-P", "-c", ONE, name, str(limit)],
                    env=os.environ | {"NUMBA_CACHE_DIR": cache},
                    capture_output=True,
                    text=True,
                    check=True,
                )
            gap, seconds, objective = json.loads(done.stdout)
            worse = abs(objective - best) / abs(best) if objective is not None and best else np.inf
            figure = (
                f"gap {'none' if gap is None else f'{gap:.2%}'}, {worse:.2%} from the best plan,"
                f" {seconds:.1f} s"
            )
            rows.append(Row(f"{name}, {limit:g} s", figure, "10 % worse after 2 s", worse <= 0.1))
    return rows


def _mean(gaps: np.ndarray) -> str:
    finite = gaps[np.isfinite(gaps)]
    none = len(gaps) - len(finite)
    return f"mean gap {finite.mean():.2%}" + (f" ({none} without a bound)" if none else "")


BENCHMARKS = (
    Benchmark("the default, warm", warm),
    Benchmark("the default, with an empty cache", cold),
)
