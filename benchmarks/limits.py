"""Check time and memory limits at the largest size of every field, with one process per method and
field.

``python benchmarks/limits.py KIND CASE METHOD SECONDS [CLOCK]`` measures one cell and prints it as
JSON.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import itertools
import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from table import Benchmark, Row

import specopt
from specopt.models.draft_control.problem import MAX_DRAFT_LENGTH, MAX_RESOLUTION
from specopt.models.errors import InvalidInput, Unsupported
from specopt.models.fields import MAX_BUDGET, MAX_TOKENS
from specopt.models.placement.problem import PlacementProblem
from specopt.models.problem import Problem

MEMORY_BYTES = 2 * 2**30
LIMIT, KILLED_SECONDS = 1.0, 120.0
MANY, MOST = 100_000, 1_000_000
"""Entries of a long column. No field limits their number. Files of this size have a few
megabytes.
"""


def _with(
    family: str, *, params: dict[str, Any] | None = None, **fields: Any
) -> Callable[[], Problem]:
    """Return a function that builds a small generated problem with some fields increased. A field
    given as a function is changed in each of its parts.
    """

    def build() -> Problem:
        problem = specopt.generate(family, seed=1, **(params or {}))
        data = problem.to_dict()
        changed = {
            field: [part | change(part) for part in data[field]] if callable(change) else change
            for field, change in fields.items()
        }
        return problem.from_dict(data | changed)

    return build


def _chain(states: int) -> Callable[[], Problem]:
    """Return a function that builds a problem of draft control with many states, where all rows of
    the chain are full.
    """

    def build() -> Problem:
        base = specopt.generate("draft-control/paper-3", seed=1)
        random = np.random.default_rng(1)
        matrix = random.random((states, states))
        count = len(base.resolutions)
        rows = [
            {
                "uplink_bits_per_second": float(random.uniform(1e4, 1e6)),
                "downlink_bits_per_second": 1e5,
                "acceptance_rates": random.uniform(0.3, 0.95, count).tolist(),
            }
            for _ in range(states)
        ]
        matrix /= matrix.sum(axis=1, keepdims=True)
        return base.from_dict(base.to_dict() | {"states": rows, "transition": matrix.tolist()})

    return build


def _sampled(family: str, tasks: int, samples: int) -> Callable[[], Problem]:
    """Return a function that builds a serving problem with the given number of predicted lengths of
    every task.
    """

    def build() -> Problem:
        base = specopt.generate(family, seed=1, tasks=tasks)
        drawn = np.random.default_rng(1).integers(1, 513, (samples, tasks)).tolist()
        return base.from_dict(
            base.to_dict() | {"output_lengths": "predicted", "output_samples": drawn}
        )

    return build


def _finest(family: str) -> Callable[[], Problem]:
    """Return a function that builds a problem of draft control with a long column of
    resolutions.
    """

    def build() -> Problem:
        base = specopt.generate(family, seed=1)
        states = [
            state | {"acceptance_rates": np.linspace(0.1, 0.9, 2000).tolist()}
            for state in base.to_dict()["states"]
        ]
        return base.from_dict(base.to_dict() | {"resolutions": [*range(1, 2001)], "states": states})

    return build


def _trips(values: int) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """Return a change that gives a class the given number of round trips to every verifier."""
    seconds = np.linspace(0.01, 0.1, values).tolist()
    return lambda part: {"round_trip_seconds": dict.fromkeys(part["round_trip_seconds"], seconds)}


def _rates(positions: int) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """Return a change that gives a class an acceptance rate for the given number of positions, for
    every drafter.
    """
    rates = np.linspace(0.9, 0.5, positions).tolist()
    return lambda part: {"acceptance": dict.fromkeys(part["acceptance"], rates)}


def _passes(pieces: int) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """Return a change that gives a verifier passes with the given number of pieces, each of which
    is the longest somewhere.
    """
    slopes = np.linspace(1e-5, 1e-4, pieces)
    heads = 0.01 - 1e4 * (slopes - 1e-5) ** 2
    rows = [
        {"overhead_seconds": head, "seconds_per_token": slope}
        for head, slope in zip(heads.tolist(), slopes.tolist(), strict=True)
    ]
    rest = {"seconds_per_sequence": 1e-5, "seconds_per_cached_token": 1e-9}
    return lambda part: {"passes": [row | rest for row in rows]}


def _listed(classes: int) -> Callable[[], Problem]:
    """Return a function that builds a problem with the given number of classes of one client, none
    of which drafts on a device.
    """

    def build() -> Problem:
        data = specopt.generate(ONE, seed=1).to_dict()
        (first,) = data["classes"]
        few = {"clients": 1, "device_seconds_per_token": None, "round_trip_seconds": None}
        return PlacementProblem.from_dict(
            data | {"classes": [first | few | {"name": f"class {c}"} for c in range(classes)]}
        )

    return build


def _pools(pools: int) -> Callable[[], Problem]:
    """Return a function that builds a problem with the given number of draft pools that run every
    drafter.
    """

    def build() -> Problem:
        problem = specopt.generate(EDGE, seed=1)
        data = problem.to_dict()
        (pool,) = data["draft_pools"]
        for drafter in data["drafters"]:
            if drafter.get("server"):
                (passes,) = drafter["server"].values()
                drafter["server"] = {f"pool {p}": passes for p in range(pools)}
        return problem.from_dict(
            data | {"draft_pools": [pool | {"name": f"pool {p}"} for p in range(pools)]}
        )

    return build


LATENCY, CHUNKS, BATCH = (
    "serving-latency/paper-1",
    "prompt-chunking/paper-4",
    "verification-batch/mixed",
)
CONTROL, ALLOCATION, FAIR = (
    "draft-control/paper-3",
    "draft-allocation/paper-5",
    "fair-goodput/paper-5",
)
CONTINUOUS, ARRIVALS = "continuous-serving/paper-1", "continuous-serving/arrivals"
SMALL = {"tasks": 5, "max_input": 40, "max_output": 24}
LONG = {
    "output_tokens": [MAX_TOKENS] * 5,
    "max_output_tokens": MAX_TOKENS,
    "draft_memory_bytes": 1e15,
}
KNOWN = {"output_lengths": "known"}
KINKED = [
    {"seconds_per_flop": 0.0, "overhead_seconds": 0.05},
    {"seconds_per_flop": 1e-14, "overhead_seconds": 0.01},
]

STOPPING = "draft-stopping/random"
ONE, CLASSES, EDGE = "placement/one-class", "placement/many-classes", "placement/edge-cloud"
LEAST = {"least_rate": 5.0}
FAMILIES = {
    family.partition("/")[0]: family
    for family in (LATENCY, CONTINUOUS, CHUNKS, BATCH, CONTROL, ALLOCATION, FAIR, STOPPING, ONE)
}

CASES: dict[str, dict[str, Callable[[], Problem]]] = {
    "serving-latency": {
        "output_tokens": _with(LATENCY, params=SMALL, **LONG),
        "output_tokens, known": _with(LATENCY, params=SMALL, **LONG, **KNOWN),
        "output_tokens, any": _with(LATENCY, params=SMALL, **LONG, mechanism="any"),
        "input_tokens": _with(
            LATENCY, params=SMALL, input_tokens=[MAX_TOKENS] * 5, draft_memory_bytes=1e15
        ),
        "max_speculation_length": _with(LATENCY, params=SMALL, max_speculation_length=MAX_TOKENS),
        "max_speculation_length, known": _with(
            LATENCY, params=SMALL, max_speculation_length=MAX_TOKENS, **KNOWN
        ),
        "tasks": _with(LATENCY, params={"tasks": MANY}),
        "tasks, known": _with(LATENCY, params={"tasks": MANY}, **KNOWN),
        "10,000 tasks": _with(LATENCY, params={"tasks": 10_000}),
        "10,000 tasks, known": _with(LATENCY, params={"tasks": 10_000}, **KNOWN),
        "10,000 tasks in ample memory, a kinked runtime": _with(
            LATENCY,
            params={"tasks": 10_000},
            draft_memory_bytes=1e15,
            verify_runtime={"pieces": KINKED},
        ),
        "10,000 tasks in ample memory, a kinked runtime, known": _with(
            LATENCY,
            params={"tasks": 10_000},
            draft_memory_bytes=1e15,
            verify_runtime={"pieces": KINKED},
            **KNOWN,
        ),
        "1,000 tasks in ample memory": _with(
            LATENCY, params={"tasks": 1000}, draft_memory_bytes=1e15
        ),
        "tasks in ample memory, known": _with(
            LATENCY, params={"tasks": MANY}, draft_memory_bytes=1e15, **KNOWN
        ),
        "1,000,000 tasks": _with(LATENCY, params={"tasks": MOST}),
        "1,000,000 tasks, known": _with(LATENCY, params={"tasks": MOST}, **KNOWN),
        "1,000,000 tasks, a rate for each": _with(
            LATENCY, params={"tasks": MOST}, acceptance_rate=np.linspace(0.5, 0.9, MOST).tolist()
        ),
        "200 tasks, 10,000 samples": _sampled(LATENCY, 200, 10_000),
    },
    "continuous-serving": {
        "output_tokens": _with(CONTINUOUS, params=SMALL, **LONG, **KNOWN),
        "max_speculation_length": _with(
            CONTINUOUS, params=SMALL, max_speculation_length=MAX_TOKENS, **KNOWN
        ),
        "10,000 tasks": _with(CONTINUOUS, params={"tasks": 10_000}, **KNOWN),
        "1,000,000 tasks": _with(CONTINUOUS, params={"tasks": MOST}, **KNOWN),
        "tasks": _with(CONTINUOUS, params={"tasks": MANY}, **KNOWN),
        "200 tasks, 10,000 samples": _sampled(CONTINUOUS, 200, 10_000),
        "10,000 arrivals": _with(ARRIVALS, params={"tasks": 10_000}),
        "10,000 arrivals far apart": _with(
            ARRIVALS, params={"tasks": 10_000, "requests_per_second": 0.01}
        ),
        "arrivals": _with(ARRIVALS, params={"tasks": MANY}),
    },
    "prompt-chunking": {
        "pipeline_length": _with(CHUNKS, pipeline_length=MAX_TOKENS),
        "pipeline_length 1,000,000": _with(CHUNKS, pipeline_length=1_000_000),
        "pipeline_length 10,000": _with(CHUNKS, pipeline_length=10_000),
        "prompt_tokens": _with(CHUNKS, prompt_tokens=MAX_TOKENS),
        "both": _with(CHUNKS, prompt_tokens=MAX_TOKENS, pipeline_length=MAX_TOKENS),
        "knots": _with(
            CHUNKS,
            cloud_delay={"tokens": list(range(MANY)), "seconds": [1e-6 * x for x in range(MANY)]},
        ),
    },
    "draft-control": {
        "states": _chain(1000),
        "draft_lengths": _with(CONTROL, draft_lengths=[0, MAX_DRAFT_LENGTH]),
        "resolutions": _finest(CONTROL),
        "vocabulary_size": _with(
            CONTROL, vocabulary_size=MAX_TOKENS, resolutions=[MAX_RESOLUTION - r for r in range(5)]
        ),
    },
    "draft-stopping": {
        "max_draft_tokens": _with(STOPPING, params={"max_draft": 1000, "bins": 2}),
        "scores": _with(STOPPING, params={"bins": 1000}),
        "both": _with(STOPPING, params={"max_draft": 1000, "bins": 1000}),
        "both, 100 classes": _with(
            STOPPING, params={"max_draft": 1000, "bins": 1000, "classes": 100}
        ),
    },
    "placement": {
        "clients": _with(ONE, params={"number_of_clients": MAX_TOKENS}),
        "units": _with(ONE, params={"units": MAX_TOKENS, "number_of_clients": MAX_TOKENS}),
        "units, few clients": _with(ONE, params={"units": MAX_TOKENS}),
        "units, capacity": _with(
            ONE,
            params={"units": MAX_TOKENS, "number_of_clients": MAX_TOKENS, "objective": "capacity"},
        ),
        "clients of 10 classes": _with(
            CLASSES, params={"number_of_clients": 10 * MAX_TOKENS, "units": 30 * MANY}
        ),
        "clients of 10 classes, cost": _with(
            CLASSES,
            params={
                "number_of_clients": 10 * MAX_TOKENS,
                "units": 3 * MAX_TOKENS,
                "objective": "cost",
                **LEAST,
            },
        ),
        "max_draft_tokens": _with(ONE, params={"max_draft": 1000}),
        "max_draft_tokens of 10 classes": _with(CLASSES, params={"max_draft": 1000}),
        "max_draft_tokens, a rate for each": _with(
            ONE, params={"max_draft": 1000}, classes=_rates(1000)
        ),
        "1,000 classes": _with(CLASSES, params={"classes": 1000}),
        "1,000 classes, capacity": _with(
            CLASSES, params={"classes": 1000, "objective": "capacity", **LEAST}
        ),
        "classes": _listed(100_000),
        "100 drafters": _with(CLASSES, params={"drafters": 100}),
        "100 drafters, max_draft_tokens": _with(
            CLASSES, params={"drafters": 100, "max_draft": 1000}
        ),
        "100 verifiers": _with(CLASSES, params={"verifiers": 100, "units": 1000}),
        "100 draft pools": _pools(100),
        "10,000 draft pools": _pools(10_000),
        "round_trip_seconds": _with(ONE, classes=_trips(MANY)),
        "round_trip_seconds, 1,000,000 values": _with(ONE, classes=_trips(MOST)),
        "passes": _with(ONE, verifiers=_passes(MANY)),
        **{
            f"10,000 clients, {objective}": _with(
                CLASSES,
                params={
                    "objective": objective,
                    "units": 100,
                    "least_rate": 0.0 if objective in ("goodput", "fair") else 5.0,
                },
            )
            for objective in ("goodput", "fair", "capacity", "cost", "energy")
        },
    },
    "verification-batch": {
        "requests": _with(BATCH, params={"requests": MANY}),
        "1,000,000 requests": _with(BATCH, params={"requests": MOST}),
    },
    "draft-allocation": {
        "budget_tokens": _with(ALLOCATION, budget_tokens=MAX_BUDGET),
        "clients": _with("draft-allocation/uniform", params={"clients": MANY, "budget": 10 * MANY}),
        "1,000,000 clients": _with(
            "draft-allocation/uniform", params={"clients": MOST, "budget": 10 * MOST}
        ),
    },
    "fair-goodput": {
        "budget_tokens": _with(FAIR, budget_tokens=MAX_BUDGET),
        "budget_tokens per second": _with("fair-goodput/per-second", budget_tokens=MAX_BUDGET),
        "clients": _with(FAIR, params={"clients": MANY, "budget": 10 * MANY}),
        "1,000,000 clients": _with(FAIR, params={"clients": MOST, "budget": 10 * MOST}),
        "clients per second": _with(
            "fair-goodput/per-second", params={"clients": 10_000, "budget": 100_000}
        ),
    },
}
"""By kind, the largest size of each field that determines the cost of a method, in an otherwise
small problem.
"""


@dataclasses.dataclass(frozen=True)
class Cell:
    """The run of one method on one problem: seconds of validation and solve, peak memory, and the
    outcome.

    Of these seconds, `fixed_seconds` were spent on validation, digest and judging. `numbers` is the
    number of numbers in the problem.
    """

    outcome: str
    seconds: float
    fixed_seconds: float
    peak_bytes: int
    numbers: int = 0

    @property
    def allowed_seconds(self) -> float:
        """Time allowed for validation, digest and judging: 2 s for 100,000 tasks, 10 s for a
        million.
        """
        return 2.0 if self.numbers <= MANY * 6 else 10.0

    def late(self, limit: float) -> float:
        """Return the seconds beyond the guaranteed time, which are not positive if it was kept.

        The measured time of validation, digest and judging is added to the limit. If there are many
        numbers, the allowed time is added instead.
        """
        few = self.numbers < MANY
        on_top = min(self.fixed_seconds, self.allowed_seconds) if few else self.allowed_seconds
        return self.seconds - (1.05 * limit + 0.05 + on_top)

    def kept(self, limit: float) -> bool:
        """Return whether both the time and the memory limit were kept."""
        return self.late(limit) <= 0.0 and self.peak_bytes <= MEMORY_BYTES


def measure(kind: str, case: str, method: str, limit: float, clock: str = "perf_counter") -> Cell:
    """Measure one cell in its own process. The clock "process_time" is correct on a busy machine,
    too.
    """
    return next(iter(measure_all(kind, case, method, limit, clock).values()))


def measure_all(
    kind: str, case: str, method: str, limit: float, clock: str = "process_time"
) -> dict[str, Cell]:
    """Measure a case with one method, or with "all" methods that accept it, each in its own
    process.
    """
    command = [sys.executable, __file__, kind, case, method, str(limit), clock]
    env = os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(
        command, capture_output=True, text=True, env=env, timeout=3600, check=True
    )
    return {name: Cell(**cell) for name, cell in json.loads(done.stdout.splitlines()[-1]).items()}


def _small(kind: str, case: str) -> Problem:
    """Return a problem that is solved in a moment and needs every library and kernel of the
    case.
    """
    if kind not in ("serving-latency", "continuous-serving"):
        return specopt.generate(FAMILIES[kind], seed=1)
    fields = KNOWN if "known" in case or kind == "continuous-serving" else {}
    return _with(FAMILIES[kind], params=SMALL, **fields)()


def _children(kind: str, case: str, method: str, limit: float, clock: str) -> dict[str, Any]:
    """Measure methods one after the other, each in a process forked from this one, which holds the
    shared data.
    """
    problem = CASES[kind][case]()
    data, found = problem.to_dict(), {}
    numbers = json.dumps(data).count(",")
    for name in [one.name for one in specopt.methods(problem)] if method == "all" else [method]:
        if (
            clock != "perf_counter"
        ):  # libraries and kernels are loaded by other threads and processes
            with contextlib.suppress(Unsupported):
                specopt.solve(_small(kind, case), name, time_limit=600.0)
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            resource.setrlimit(resource.RLIMIT_CPU, (int(KILLED_SECONDS), int(KILLED_SECONDS)))
            os.write(
                writing,
                json.dumps(
                    dataclasses.asdict(_cell(type(problem), data, name, limit, clock))
                ).encode(),
            )
            os._exit(0)
        os.close(writing)
        with os.fdopen(reading, "rb") as pipe:
            text = pipe.read()
        os.waitpid(child, 0)
        lost = {
            "outcome": f"killed after {KILLED_SECONDS:g} s",
            "seconds": KILLED_SECONDS,
            "fixed_seconds": 0.0,
            "peak_bytes": 0,
        }
        found[name] = (json.loads(text) if text else lost) | {"numbers": numbers}
    return found


def _cell(of: type[Problem], data: dict[str, Any], method: str, limit: float, clock: str) -> Cell:
    time.perf_counter = getattr(time, clock)  # what a solve reads
    start = time.perf_counter()
    held = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    problem = of.from_dict(data)
    fixed = time.perf_counter() - start
    try:
        result = specopt.solve(problem, method, time_limit=limit)
        outcome = f"{result.status}, {result.termination}"
        fixed += result.stats["fixed_seconds"]
    except (InvalidInput, Unsupported) as error:
        outcome = f"refused: {error}"
    except BaseException as error:  # a method must raise nothing else
        outcome = f"{type(error).__name__}: {error}"
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - held
    return Cell(outcome, time.perf_counter() - start, fixed, peak * 1024)


@functools.cache
def _matrix(smoke: bool) -> list[tuple[str, Cell]]:
    """Return every method that accepts a case, the latest first."""
    cases = [(kind, case) for kind, of in CASES.items() for case in of]

    def measured(kind: str, case: str) -> list[tuple[str, Cell]]:
        try:
            cells = measure_all(kind, case, "algorithm-1" if smoke else "all", LIMIT)
        except subprocess.CalledProcessError as error:
            cells = {"all": Cell(error.stderr.strip().splitlines()[-1], KILLED_SECONDS, 0.0, 0)}
        print(
            kind,
            case,
            {name: round(cell.late(LIMIT), 2) for name, cell in cells.items()},
            file=sys.stderr,
        )
        return [(f"{kind}, {case}, {name}", cell) for name, cell in cells.items()]

    with ThreadPoolExecutor(int(os.environ.get("SPECOPT_JOBS", os.cpu_count() or 1))) as pool:
        found = pool.map(measured, *zip(*(cases[:1] if smoke else cases), strict=True))
    return sorted(itertools.chain.from_iterable(found), key=lambda one: -one[1].late(LIMIT))


def _row(subject: str, cell: Cell) -> Row:
    spent = (
        f"{cell.seconds:.2f} s, {cell.fixed_seconds:.2f} s of them fixed,"
        f" {cell.peak_bytes / 1e6:.0f} MB"
    )
    target = f"{LIMIT:g} s, {cell.allowed_seconds:g} s fixed, 2 GiB"
    return Row(subject, f"{spent}; {cell.outcome[:110]}", target, cell.kept(LIMIT))


def largest_fields(smoke: bool) -> list[Row]:
    """Report every method that accepts a case, at a limit of 1 s of processor time."""
    return [_row(*one) for one in sorted(_matrix(smoke), key=lambda one: one[0])]


def worst(smoke: bool) -> list[Row]:
    """Report the ten methods that exceeded the limit most or came closest to it, and the number
    that kept it.
    """
    found = _matrix(smoke)
    kept = sum(cell.kept(LIMIT) for _, cell in found)
    return [_row(*one) for one in found[:10]] + [
        Row("kept", f"{kept} of {len(found)}", f"{len(found)}", kept == len(found))
    ]


BENCHMARKS = (
    Benchmark("limits: the worst ten", worst),
    Benchmark("limits at the largest fields", largest_fields),
)

if __name__ == "__main__":
    kind, case, method, seconds, *clock = sys.argv[1:]
    print(json.dumps(_children(kind, case, method, float(seconds), *(clock or ["process_time"]))))
