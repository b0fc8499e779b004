"""Record the answers of specopt, and list the differences after a change that must not change them.

    python benchmarks/answers.py record FILE [WHAT ...] [--seconds S] [--jobs N]
    python benchmarks/answers.py check FILE [WHAT ...] [--small] [--tolerance R] [--jobs N]

A case is one of three things: a method on an instance of the library (objective, bound, status and
digests of the plan), the default method of an instance, or a command on the shipped examples (its
printed output). WHAT is the beginning of case names: a kind, an instance, an instance and a method,
or a command. No time limit is set. A case whose process had to be stopped after S seconds is
recorded as unfinished and never checked. The same holds for a case with two different answers in
two runs. `record` continues where an earlier run stopped. Seconds and versions are removed from the
printed output.

FILE contains a line of JSON per case: `case`, and either `answer` and `seconds` (processor time) or
`left_out` with the reason.
"""

from __future__ import annotations

import argparse
import contextlib
import difflib
import hashlib
import io
import json
import math
import os
import queue
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import specopt
from specopt.api.library import load_saved, saved
from specopt.api.simulate import SIMULATORS
from specopt.api.solve import choose
from specopt.comparison.processes import Crashed, TimedOut, Worker
from specopt.comparison.worker import serve as serve_requests
from specopt.engines import ENGINES
from specopt.kinds import KINDS
from specopt.solvers.auto import Auto

ROOT = Path(__file__).parents[1]
sys.path.append(str(ROOT / "benchmarks"))
RENAMED = (
    (r"^serving-latency/(\w+/\w+)-K24-rebatched", r"continuous-serving/\1-K24-together"),
    (r"^serving-latency/(\w+/\w+-K50-arrivals)", r"continuous-serving/\1"),
    (
        r"^serving-latency/laboratory/rebatched-serving-([1357])\b",
        r"continuous-serving/laboratory/continuous-serving-\1",
    ),
    (
        r"^serving-latency/laboratory/rebatched-serving-",
        "serving-latency/laboratory/continuous-serving-",
    ),
    (r"^reproduce theorems", "papers theorems"),
)
"""Patterns of old case names, and their new names. `check` runs the new names."""

EXAMPLES = (ROOT / "instances" / "data" / "measured", ROOT / "tests" / "data")
SEED = 0
SMALL_SECONDS = 0.2
TWICE_SECONDS = 5.0
"""A case that takes less time than this is run twice when it is recorded."""
PATIENCE = 5.0
"""A check waits this many times as long as the recording, because other work may share the machine.
"""
DEFAULT = "(default)"
DIGITS = 6
"""Number of digits of the numbers of a plan that are compared if a tolerance is given."""

SPENT = re.compile(r"solved in|, [\d.]+ s$")
"""Lines of text that report the time a run took."""

NUMBER = re.compile(r"(-?\d+(?:\.\d+)?(?:e[+-]?\d+)?)")

RATES = {"acceptance_histogram": [100, 80, 60, 160], "num_draft_tokens": 1200}
SHORT = {
    "draft-control": ("iterations=20",),
    "fair-goodput": ("rounds=30",),
    "verification-batch": ("devices=20", "seconds=10.0", "warm_up_seconds=2.0"),
    "prompt-chunking": ("requests=20", "warm_up_requests=5"),
}
"""Parameters that make a simulation of a kind short."""
VARYING = ("seconds", "fixed_seconds", "preparing_seconds", "versions", "stats")
"""Fields of printed JSON that report the time a run took, or where it ran."""

PASSES = "cpu-pair.csv --x new_tokens --y seconds_median --batch batch --cached cached_tokens"
ALONE, PAIR = "--where model=verify-100m", "--draft model=draft-15m --verify model=verify-100m"
MODELS = "--draft draft-15m.config.json --verify verify-100m.config.json"
SWEEP = "vllm-cpu-ngram.csv"
VERSION = {"tensorrt-llm": " --engine-version 1.3.0rc8"}
KEPT = [
    tuple(f"format-1/{kind.name}.{part}.json" for part in ("problem", "result")) for kind in KINDS
]
FRONTS = {
    "format-1/serving-latency.problem.json": "acceptance_rate --values 0.5,0.9",
    "format-1/placement.problem.json": "classes.round_trip_seconds.verifier --values [0.01],[0.2]",
    "format-1/draft-control.problem.json": "states.uplink_bits_per_second --values 1e4,1e6",
}
"""Problems, and the fields along which they are solved."""


def commands() -> dict[str, list[str]]:
    """Return the commands of every printed case. The output of the last one is recorded; the others
    prepare it.
    """
    fits = [
        f"{PASSES} {PAIR}",
        f"{PASSES} {ALONE} --flat --form roofline",
        f"{PASSES} {ALONE} --errors relative",
    ]
    fits += [
        f"{PASSES} {ALONE} --form {form}" for form in ("linear", "roofline", "additive", "table")
    ]
    fits += [
        f"{PASSES} {PAIR} --draft-model draft-15m.config.json --verify-model"
        " verify-100m.config.json"
    ]
    tunes = [
        "",
        "--robust",
        "--tpot 40",
        "--ask",
        "--loss 0.1",
        "--max-batch 32 --max-length 5 --extrapolate",
    ]
    tunes += [f"--engine {engine}{VERSION.get(engine, '')}" for engine in ENGINES]
    exports = [
        f"{engine} --runtime pair.json --acceptance rates.json{more}{VERSION.get(engine, '')}"
        for engine in ENGINES
        for more in ("", " --robust", " --max-batch 64 --extrapolate", " --max-batch 64")
    ]
    plans = ["serving-latency", "verification-batch", "prompt-chunking", "fair-goodput"]
    plans += [f"{engine} --acceptance rates.json{VERSION.get(engine, '')}" for engine in ENGINES]
    plays = [
        f"{kind} --policy {policy} --workload {workload.label} --replications 2"
        + "".join(f" --param {one}" for one in SHORT[kind])
        for kind, simulator in SIMULATORS.items()
        if simulator.policies
        for workload in simulator.workloads
        for policy in simulator.policies
    ]
    shown = [
        *(f"fit {words}" for words in fits),
        *(f"tune {SWEEP} {words}".strip() for words in tunes),
        *(f"plan {MODELS} --runtimes cpu-pair.csv --for {words}" for words in plans),
        *(f"export {words}" for words in exports),
        *(
            f"model {config} {words}".strip()
            for config in MODELS.split()[1::2]
            for words in ("", "--dtype float32")
        ),
        *(f"simulate {words}" for words in plays),
        *(f"evaluate {problem} {result}" for problem, result in KEPT),
        *(f"solve {problem}" for problem, _ in KEPT),
        *(f"sensitivity {problem}" for problem, _ in KEPT),
        *(f"front {problem} --field {field}" for problem, field in FRONTS.items()),
        "papers theorems",
    ]
    first = {"export": f"fit {PASSES} {PAIR} -o pair.json"}
    found = {
        line: [first[name], line] if (name := words.split()[0]) in first else [line]
        for words in shown
        for line in (words, f"{words} --json")
        if not line.startswith("front")
        or line.endswith("--json")  # its text contains the time of each point
    }
    for problem in sorted(path.name for path in EXAMPLES[1].glob("latency-*.json")):
        solved = f"solve {problem} --method algorithm-1 -o result.json"
        more = (
            "export csv result.json",
            "export yaml result.json",
            f"simulate {problem} result.json --replications 9",
        )
        found |= {
            f"{line.replace('result.json', f'{problem}.result')}": [solved, line] for line in more
        }
    return found


def cases(wanted: Sequence[str]) -> Iterator[str]:
    """Yield the cases whose names begin with a wanted text, or all cases if nothing is wanted."""

    def is_wanted(case: str) -> bool:
        return not wanted or case.startswith(tuple(wanted))

    for name in saved():
        if is_wanted(name) or any(each.startswith(name) for each in wanted):
            methods = [method.name for method in specopt.methods(load_saved(name))]
            yield from filter(is_wanted, [f"{name} {method}" for method in (DEFAULT, *methods)])
    yield from filter(is_wanted, commands())


def answer(case: str) -> tuple[Any, float]:
    """Return the answer of a case, and its processor seconds."""
    instance, _, method = case.partition(" ")
    try:
        if instance.partition("/")[0] not in [kind.name for kind in KINDS]:
            return _printed(case)
        problem = load_saved(instance)
        started = time.process_time()
        if method == DEFAULT:
            default = choose(problem, None)
            runs = (
                [member.name for member in default.members(problem)]
                if isinstance(default, Auto)
                else []
            )
            return {"method": default.name, "runs": runs}, time.process_time() - started
        result = specopt.solve(problem, method, seed=SEED)
        seconds = time.process_time() - started
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}"}, 0.0
    plan = None if result.plan is None else result.plan.to_dict()
    return {
        "objective": result.objective,
        "bound": result.bound,
        "status": result.status.value,
        "plan": _digest(plan),
        "rounded_plan": _digest(_rounded(plan)),
    }, seconds


def _printed(case: str) -> tuple[Any, float]:
    """Return the output of the commands of a case, run in the folder of the examples."""
    from papers.run import main  # of benchmarks/papers, which is not a command

    from specopt.commands import cli

    *before, last = commands()[case]
    for line in before:
        cli.run(line.split())
    out, why, started = io.StringIO(), io.StringIO(), time.process_time()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(why):
        words = last.split()
        code = main(words[1:]) if words[0] == "papers" else cli.run(words)
    seconds, text = time.process_time() - started, out.getvalue()
    if code:
        return {"code": code, "refusal": why.getvalue().splitlines()[-1:]}, seconds
    if last.endswith("--json"):
        return {"json": _steady(json.loads(text))}, seconds
    return {
        "text": [line.rstrip() for line in text.splitlines() if not SPENT.search(line)]
    }, seconds


def _steady(data: Any) -> Any:
    """Return JSON without the time that a run took. Measured seconds are lists and are kept."""
    if isinstance(data, dict):
        return {
            name: _steady(value)
            for name, value in data.items()
            if name not in VARYING or isinstance(value, list)
        }
    return [_steady(value) for value in data] if isinstance(data, list) else data


def _rounded(data: Any) -> Any:
    if isinstance(data, dict):
        return {name: _rounded(value) for name, value in data.items()}
    if isinstance(data, list | tuple):
        return [_rounded(value) for value in data]
    return float(f"{data:.{DIGITS}g}") if isinstance(data, float) else data


def _digest(data: Any) -> str:
    return hashlib.sha256(json.dumps(data, sort_keys=True).encode()).hexdigest()[:16]


class Answerer(Worker):
    """A process that answers cases in a folder with the examples. It is replaced if it has to be
    stopped.
    """

    command = (sys.executable, "-P", str(Path(__file__).resolve()), "answer")

    def answer(self, case: str, limit: float | None) -> tuple[Any, float] | None:
        """Return the answer of a case and its seconds, or None if it did not end within the
        limit.
        """
        try:
            found, seconds = self.ask(case, limit)
        except TimedOut:
            return None
        except Crashed as error:
            return {"error": str(error)}, 0.0
        return found, seconds


def serve() -> int:
    """Answer the cases that the parent sends. Other printed output is discarded."""
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for examples in EXAMPLES:
            shutil.copytree(examples, folder, dirs_exist_ok=True)
        Path("rates.json").write_text(json.dumps(RATES))
        serve_requests(answer)
    return 0


def all_answers(
    asked: Sequence[str], jobs: int, ask: Callable[[Answerer, str], dict[str, Any]]
) -> Iterator[dict[str, Any]]:
    """Yield the result of `ask` for each case, in the order of completion, from several workers."""
    os.environ.update(COLUMNS="100", NO_COLOR="1")
    waiting: queue.SimpleQueue[str] = queue.SimpleQueue()
    done: queue.SimpleQueue[dict[str, Any] | BaseException] = queue.SimpleQueue()
    for case in asked:
        waiting.put(case)
    workers = [Answerer() for _ in range(jobs)]

    def work(worker: Answerer) -> None:
        with contextlib.suppress(queue.Empty):
            while True:
                case = waiting.get_nowait()
                try:
                    done.put(ask(worker, case))
                except BaseException as error:
                    done.put(error)

    for worker in workers:
        threading.Thread(target=work, args=(worker,), daemon=True).start()
    try:
        for _ in asked:
            found = done.get()
            if isinstance(found, BaseException):
                raise found
            yield found
    finally:
        for worker in workers:
            worker.close()


def record(file: Path, wanted: Sequence[str], limit: float, jobs: int) -> int:
    """Add the missing answers to a file."""
    commit = subprocess.run(
        ["git", "describe", "--always", "--dirty"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()
    if not file.exists():
        file.write_text(json.dumps({"commit": commit}) + "\n")
    text = file.read_text()
    file.write_text(text[: text.rindex("\n") + 1])  # without a line that was cut off
    begun, known = read(file)
    if begun != commit:
        print(
            f"{file} was begun at {begun}, this is {commit}: record in another file",
            file=sys.stderr,
        )
        return 2
    missing = [case for case in cases(wanted) if case not in known]
    kinds = {case.partition("/")[0] for case in missing} & {kind.name for kind in KINDS}
    if kinds:  # compilation is not part of a case
        subprocess.run(
            [sys.executable, "-P", "-m", "specopt", "-q", "warmup", *sorted(kinds)], check=True
        )
    simulated = {case.split()[1]: case for case in missing if case.startswith("simulate ")}
    with contextlib.closing(Answerer()) as worker:
        for case in simulated.values():
            worker.answer(case, None)  # compiles the code for simulations of the kind

    def ask(worker: Answerer, case: str) -> dict[str, Any]:
        found = worker.answer(case, limit)
        if found is None:
            return {"case": case, "left_out": f"unfinished after {limit:g} s"}
        seconds = found[1]
        if seconds < TWICE_SECONDS:
            again = worker.answer(case, limit)
            if again is None or again[0] != found[0]:
                return {"case": case, "left_out": "answers differ"}
            seconds = min(seconds, again[1])  # the first may have loaded kernels
        return {"case": case, "seconds": round(seconds, 4), "answer": found[0]}

    with file.open("a") as out:
        for number, line in enumerate(all_answers(missing, jobs, ask), 1):
            print(json.dumps(line), file=out, flush=True)
            if "left_out" in line:
                print(f"{line['case']}: {line['left_out']}", flush=True)
            if number % 100 == 0:
                print(f"{number} of {len(missing)}", file=sys.stderr, flush=True)
    print(f"{len(missing)} cases recorded, {len(known)} were already")
    return 0


def read(file: Path) -> tuple[str, dict[str, dict[str, Any]]]:
    """Return the commit of a file of answers, and its lines by case."""
    first, *lines = map(json.loads, file.read_text().splitlines())
    return first["commit"], {line["case"]: line for line in lines}


def check(file: Path, wanted: Sequence[str], small: bool, tolerance: float, jobs: int) -> int:
    """List the differences between the answers and those of a file."""
    commit, known = read(file)
    chosen = {
        case: line for case, line in known.items() if not wanted or case.startswith(tuple(wanted))
    }
    left_out = sum("left_out" in line for line in chosen.values())
    asked = [
        case
        for case, line in chosen.items()
        if "answer" in line and (not small or line["seconds"] < SMALL_SECONDS)
    ]

    def ask(worker: Answerer, case: str) -> dict[str, Any]:
        limit = PATIENCE * max(
            known[case]["seconds"], 12.0
        )  # the first cases of a process load and compile kernels
        now = case
        for old, new in RENAMED:
            now = re.sub(old, new, now)
        return {"case": case, "found": worker.answer(now, limit), "limit": limit}

    different = 0
    for line in all_answers(asked, jobs, ask):
        case = line["case"]
        if line["found"] is None:
            differences = [
                f"ended in {known[case]['seconds']:g} s, now not within {line['limit']:g} s"
            ]
        else:
            differences = list(differences_of(known[case]["answer"], line["found"][0], tolerance))
        different += bool(differences)
        for text in differences:
            print(f"{case}: {text}", flush=True)
    print(
        f"{len(asked)} answers of {commit}: {different} differ; {left_out} were left out when they"
        f" were recorded, {len(chosen) - left_out - len(asked)} are not small"
    )
    return 1 if different else 0


def differences_of(before: Any, now: Any, tolerance: float, place: str = "") -> Iterator[str]:
    """Yield the differences between two answers. Numbers differ if they exceed a relative
    tolerance.
    """
    if isinstance(before, dict) and isinstance(now, dict):
        unequal = "rounded_plan" if tolerance else "plan"
        for name in dict.fromkeys((*before, *now)):
            if (
                name in ("plan", "rounded_plan")
                and isinstance(before.get(name), str)
                and name != unequal
            ):
                continue
            where = f"{place}.{name}".lstrip(".")
            if name not in before or name not in now:
                yield f"{where} is {'new' if name in now else 'gone'}"
            else:
                yield from differences_of(before[name], now[name], tolerance, where)
    elif isinstance(before, list) and isinstance(now, list):
        if all(isinstance(each, str) for each in (*before, *now)):
            if tolerance and len(before) == len(now):
                now = [
                    one if _is_close(one, other, tolerance) else other
                    for one, other in zip(before, now, strict=True)
                ]
            lines = list(difflib.unified_diff(before, now, lineterm="", n=0))[2:]
            yield from (f"{place}: {line}" for line in lines if not line.startswith("@@"))
        elif len(before) != len(now):
            yield f"{place} has {len(before)} entries, now {len(now)}"
        else:
            for number, (one, other) in enumerate(zip(before, now, strict=True)):
                yield from differences_of(one, other, tolerance, f"{place}[{number}]")
    elif before != now and not (before != before and now != now):  # NaN is equal to itself here
        are_numbers = isinstance(before, float) and isinstance(now, float)
        if not (are_numbers and math.isclose(before, now, rel_tol=tolerance, abs_tol=0.0)):
            yield f"{place} {before!r} -> {now!r}"


def _is_close(one: str, other: str, tolerance: float) -> bool:
    """Return whether two lines differ only in numbers, and these by at most a relative
    tolerance.
    """
    parts, others = NUMBER.split(one), NUMBER.split(other)
    return parts[::2] == others[::2] and all(
        math.isclose(float(a), float(b), rel_tol=tolerance)
        for a, b in zip(parts[1::2], others[1::2], strict=True)
    )


def main() -> int:
    """Record or check."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n\n")[0])
    verbs = parser.add_subparsers(dest="verb", required=True)
    for verb in ("record", "check"):
        one = verbs.add_parser(verb)
        one.add_argument("file", type=Path, metavar="FILE", help="answers, a line of JSON per case")
        one.add_argument(
            "wanted", nargs="*", metavar="WHAT", help="beginnings of cases; default: all"
        )
        one.add_argument("--jobs", type=int, default=2, help="processes")
    verbs.choices["record"].add_argument(
        "--seconds", type=float, default=20.0, help="after which a case is stopped"
    )
    verbs.choices["check"].add_argument(
        "--small", action="store_true", help=f"only cases that took less than {SMALL_SECONDS} s"
    )
    verbs.choices["check"].add_argument(
        "--tolerance", type=float, default=0.0, help="relative, of numbers"
    )
    verbs.add_parser("answer").add_argument("pipe")  # what the processes do
    given = parser.parse_args()
    if given.verb == "answer":
        return serve()
    if given.verb == "record":
        return record(given.file, given.wanted, given.seconds, given.jobs)
    return check(given.file, given.wanted, given.small, given.tolerance, given.jobs)


if __name__ == "__main__":
    sys.exit(main())
