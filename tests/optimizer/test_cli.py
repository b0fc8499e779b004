"""The command line: what it prints where, what it writes, and how it exits."""

from __future__ import annotations

import dataclasses
import json
import os
import runpy
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import typer

import specopt
from specopt.api.generate import FAMILIES
from specopt.api.solve import methods
from specopt.commands.cli import app, run
from specopt.console import progress
from specopt.console.progress import end_progress, print_progress, showing_kernels
from specopt.console.terminal import console
from specopt.kinds import KINDS
from specopt.models.result import Progress
from specopt.solvers.kernels.cache import NO_CACHE
from specopt.solvers.kernels.compiling import announced
from specopt.views.result import print_result

Invoke = Callable[..., "Outcome"]
COMMANDS = tuple(typer.main.get_group(app).commands)


class Outcome:
    """What one command did: exit code, stdout, stderr."""

    def __init__(self, code: int, out: str, err: str) -> None:
        self.code, self.out, self.err = code, out, err

    @property
    def json(self) -> Any:
        """Stdout as JSON: nothing else may be on it."""
        return json.loads(self.out)


@pytest.fixture
def invoke(capsys: pytest.CaptureFixture[str]) -> Invoke:
    """A function that runs one command in this process."""

    def call(*arguments: str | Path) -> Outcome:
        code = run([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return Outcome(code, captured.out, captured.err)

    return call


@pytest.fixture
def problem_file(tmp_path: Path) -> Path:
    """A problem of four tasks."""
    path = tmp_path / "problem.json"
    specopt.save(specopt.generate("serving-latency/paper-1", tasks=4, max_output=50, seed=3), path)
    return path


@pytest.fixture
def hard_file(tmp_path: Path) -> Path:
    """A problem whose second task does not fit the draft memory."""
    path = tmp_path / "hard.json"
    data = specopt.generate("serving-latency/paper-1", tasks=3, max_output=50, seed=3).to_dict()
    data["draft_memory_bytes"] = 2.3e9
    data["input_tokens"] = [10, 9_000, 20]
    path.write_text(json.dumps(data))
    return path


def refused(outcome: Outcome, *words: str) -> None:
    """Check a refusal: exit code 2, nothing on stdout, one line on stderr with these words."""
    assert outcome.code == 2
    assert outcome.out == ""
    assert outcome.err.startswith("specopt: ")
    assert outcome.err.count("\n") == 1, outcome.err
    for word in words:
        assert word in outcome.err


# ---------------------------------------------------------------------------- help and usage


def test_help_lists_the_commands(invoke: Invoke) -> None:
    """Tests that help, asked for or by giving no command, lists every command and succeeds."""
    for arguments in (["--help"], ["-h"], []):
        outcome = invoke(*arguments)
        assert outcome.code == 0
        assert all(command in outcome.out for command in COMMANDS)


@pytest.mark.parametrize("command", COMMANDS)
def test_each_command_has_help(invoke: Invoke, command: str) -> None:
    """Tests that every command explains itself."""
    outcome = invoke(command, "--help")
    assert outcome.code == 0
    assert f"specopt {command}" in outcome.out


def test_help_of_generate_lists_the_families(invoke: Invoke) -> None:
    """Tests that what can be generated is in the help, by name."""
    text = invoke("generate", "--help").out
    assert [name for name in FAMILIES if name not in text] == []


def test_shells_complete() -> None:
    """Tests that a shell learns the commands that begin as typed."""
    env = {
        **os.environ,
        "_SPECOPT_COMPLETE": "complete_bash",
        "COMP_WORDS": "specopt pl",
        "COMP_CWORD": "1",
    }
    command = [sys.executable, "-P", "-m", "specopt"]
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["plan"]


def test_version(invoke: Invoke) -> None:
    """Tests that the version is that of the package."""
    assert invoke("--version").out == f"specopt {specopt.__version__}\n"


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (["fly"], "fly"),
        (["solve"], "FILE"),
        (["solve", "a.json", "--bogus"], "--bogus"),
        (["solve", "a.json", "--time-limit", "soon"], "soon"),
        (["solve", "a.json", "--seed", "-1"], "-1"),
        (["solve", "a.json", "b.json"], "b.json"),
        (["evaluate", "a.json"], "RESULT"),
        (["--bogus"], "--bogus"),
    ],
)
def test_bad_usage(invoke: Invoke, arguments: Sequence[str], word: str) -> None:
    """Tests that bad usage is one message that names what is wrong, and where help is."""
    command = ["specopt", *(name for name in arguments[:1] if name in COMMANDS), "--help"]
    refused(invoke(*arguments), word, f"see {' '.join(command)}")


# ---------------------------------------------------------------------------- solve


def test_solve_prints_a_summary(invoke: Invoke, problem_file: Path) -> None:
    """Tests that solving succeeds and shows status, objective, bound and every batch."""
    outcome = invoke("solve", problem_file)
    assert outcome.code == 0
    for word in (
        "optimal",
        "objective",
        "inference",
        "communication",
        "bound",
        "gap",
        "padded input",
    ):
        assert word in outcome.out


def test_solve_json_is_the_result(invoke: Invoke, problem_file: Path) -> None:
    """Tests that --json prints the result alone on stdout, and that it passes the judge."""
    outcome = invoke("solve", problem_file, "--json")
    assert outcome.code == 0
    problem = specopt.load(problem_file)
    assert isinstance(problem, specopt.Problem)
    assert outcome.json["problem_sha256"] == problem.sha256
    plan = problem.plan_type.from_dict(outcome.json["plan"])
    assert problem.violations(plan) == []
    assert problem.evaluate(plan).objective == pytest.approx(outcome.json["objective"], rel=1e-12)


def test_solve_tells_what_was_not_asked(invoke: Invoke, problem_file: Path, tmp_path: Path) -> None:
    """Tests that another mechanism is told where its judged optimum is better, and only there;
    limits are kept.
    """
    given = specopt.load(problem_file, specopt.ServingLatencyProblem)
    alone = dataclasses.replace(given, mechanism="autoregressive")
    other = specopt.solve(alone)
    found = invoke("solve", problem_file, "--json").json
    assert found["stats"]["unasked"] == {
        "changes": {"mechanism": "autoregressive"},
        "method": "auto",
        "objective": other.objective,
    }
    assert other.objective is not None and other.objective < found["objective"]
    assert (
        f"but mechanism autoregressive would give {other.objective:.6g} (-"
        in invoke("solve", problem_file).out
    )
    for better in (alone, dataclasses.replace(given, mechanism="any")):
        specopt.save(better, tmp_path / "better.json")
        best = invoke("solve", tmp_path / "better.json", "--time-limit", "9", "--json").json
        assert (
            "unasked" not in best["stats"]
            and best["objective"] == other.objective
            and best["seconds"] < 9
        )


def test_solve_writes_the_result(invoke: Invoke, problem_file: Path, tmp_path: Path) -> None:
    """Tests that -o writes a result that loads, leaves nothing else behind, and replaces an older
    file.
    """
    target = tmp_path / "result.json"
    target.write_text("old")
    outcome = invoke("solve", problem_file, "-o", target, "--json")
    assert outcome.code == 0
    result = specopt.load(target)
    assert isinstance(result, specopt.Result)
    assert result.to_dict() == outcome.json
    assert sorted(path.name for path in tmp_path.iterdir()) == ["problem.json", "result.json"]


def test_solve_with_method_and_options(invoke: Invoke, problem_file: Path) -> None:
    """Tests that a named method runs with its typed options."""
    outcome = invoke(
        "solve", problem_file, "--method", "static-batching", "--option", "size=3", "--json"
    )
    assert outcome.json["method"] == "static-batching"
    assert outcome.json["options"] == {"size": 3}
    assert [len(batch) for batch in outcome.json["plan"]["batches"]] == [3, 1]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--method", "magic"], ["magic", "exact", "algorithm-1"]),
        (["--method", "static-batching", "--option", "sise=3"], ["sise", "size=8"]),
        (["--method", "no-batching", "--option", "size=3"], ["size", "no options"]),
        (
            ["--method", "static-batching", "--option", "size=three"],
            ["size", "an integer", "three"],
        ),
        (["--method", "static-batching", "--option", "size=0"], ["size", "1", "got 0"]),
        (["--method", "static-batching", "--option", "size"], ["name=value", "'size'"]),
        (["--method", "static-batching", "--option", "=3"], ["name=value", "'=3'"]),
        (
            ["--method", "static-batching", "--option", "size=3", "--option", "size=4"],
            ["size", "twice"],
        ),
        (["--gap", "-1"], ["gap", "-1"]),
        (["--gap", "nan"], ["gap", "nan"]),
        (["--time-limit", "-1"], ["time_limit", "-1"]),
        (["--warm-start", "nowhere.json"], ["nowhere.json"]),
    ],
)
def test_solve_refuses(
    invoke: Invoke, problem_file: Path, arguments: Sequence[str], words: Sequence[str]
) -> None:
    """Tests that each wrong method, option or limit is refused by name."""
    refused(invoke("solve", problem_file, *arguments), *words)


def test_solve_refuses_a_method_that_cannot(invoke: Invoke, tmp_path: Path) -> None:
    """Tests that a method whose size limit is exceeded says so, and which methods can."""
    path = tmp_path / "large.json"
    specopt.save(specopt.generate("serving-latency/paper-1", tasks=20, seed=1), path)
    refused(invoke("solve", path, "--method", "brute-force"), "at most 8", "algorithm-1")


def test_solve_refuses_a_warm_start_that_is_no_use(
    invoke: Invoke, problem_file: Path, tmp_path: Path
) -> None:
    """Tests that a method without warm start refuses one instead of ignoring it."""
    result = tmp_path / "result.json"
    assert invoke("solve", problem_file, "-o", result).code == 0
    refused(
        invoke("solve", problem_file, "--method", "no-batching", "--warm-start", result),
        "warm_start",
    )


def test_solve_takes_a_warm_start(invoke: Invoke, problem_file: Path, tmp_path: Path) -> None:
    """Tests that an earlier result is taken by a method that can use one."""
    result = tmp_path / "result.json"
    assert invoke("solve", problem_file, "--method", "algorithm-1", "-o", result).code == 0
    outcome = invoke("solve", problem_file, "--method", "exact", "--warm-start", result, "--json")
    assert outcome.code == 0
    assert outcome.json["status"] == "optimal"


def test_solve_infeasible(invoke: Invoke, hard_file: Path, tmp_path: Path) -> None:
    """Tests that an infeasible problem exits with 1, names task and bytes, and still writes its
    result.
    """
    target = tmp_path / "result.json"
    outcome = invoke("solve", hard_file, "-o", target)
    assert outcome.code == 1
    assert "infeasible" in outcome.out
    assert "task 1 needs" in outcome.out
    result = specopt.load(target)
    assert isinstance(result, specopt.Result)
    assert result.status == "infeasible" and result.plan is None


def test_solve_without_time(invoke: Invoke, problem_file: Path) -> None:
    """Tests that a time limit of 0 gives a quick plan, or exits with 1 for none."""
    outcome = invoke("solve", problem_file, "--time-limit", "0", "--json")
    assert outcome.code == (0 if outcome.json["plan"] is not None else 1)
    assert outcome.json["termination"] in ("time_limit", "converged")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("", ["JSON"]),
        ("{", ["JSON"]),
        ("[]", ["expected an object"]),
        ("{}", ["kind"]),
        ('{"format": "specopt/1", "kind": "cooking"}', ["kind", "serving-latency", "cooking"]),
        (
            '{"format": "specopt/1", "kind": "serving-latency", "speed": 3}',
            ["speed", "unknown field"],
        ),
    ],
)
def test_solve_refuses_bad_files(
    invoke: Invoke, tmp_path: Path, content: str, words: Sequence[str]
) -> None:
    """Tests that a file that is no problem is refused with its name and the reason."""
    path = tmp_path / "bad.json"
    path.write_text(content)
    refused(invoke("solve", path), "bad.json", *words)


def test_solve_refuses_a_missing_file(invoke: Invoke, tmp_path: Path) -> None:
    """Tests that a file that is not there is refused with its name."""
    refused(invoke("solve", tmp_path / "none.json"), "none.json", "No such file")


def test_solve_refuses_a_result(invoke: Invoke, problem_file: Path, tmp_path: Path) -> None:
    """Tests that a result in the problem's place is recognised."""
    result = tmp_path / "result.json"
    assert invoke("solve", problem_file, "-o", result).code == 0
    refused(invoke("solve", result), "expected a problem, got a result")


def test_output_is_checked_before_the_work(
    invoke: Invoke, problem_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tests that a file that cannot be written is refused before anything is solved."""

    def never(*_: object, **__: object) -> None:
        raise AssertionError("solved in vain")

    monkeypatch.setattr(specopt, "solve", never)
    refused(
        invoke("solve", problem_file, "-o", tmp_path / "no" / "result.json"), "no such directory"
    )
    refused(invoke("solve", problem_file, "-o", tmp_path), "directory")
    refused(invoke("solve", problem_file, "-o", problem_file), "overwrite what is read")


def test_interrupted_solve_exits_with_130(
    invoke: Invoke, problem_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tests that after Ctrl-C the best plan so far is printed and written, and the exit code is
    130.
    """

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(
        "specopt.solvers.serving_latency.algorithm_1.algorithm_1_batches", interrupt
    )
    target = tmp_path / "result.json"
    outcome = invoke("solve", problem_file, "--method", "algorithm-1", "-o", target)
    assert outcome.code == 130
    assert "interrupted" in outcome.out
    result, problem = specopt.load(target), specopt.load(problem_file)
    assert isinstance(result, specopt.Result) and isinstance(problem, specopt.Problem)
    assert result.termination == "interrupted"
    assert specopt.verify(problem, result).feasible


def test_interrupt_outside_a_solve_exits_with_130(
    invoke: Invoke, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tests that Ctrl-C anywhere else is one word, not a traceback."""

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("specopt.kinds.kind_of", interrupt)
    outcome = invoke("schema", "serving-latency")
    assert (outcome.code, outcome.out, outcome.err) == (130, "", "specopt: interrupted\n")


# ---------------------------------------------------------------------------- evaluate


def test_evaluate_feasible(invoke: Invoke, problem_file: Path, tmp_path: Path) -> None:
    """Tests that a solver's plan is judged feasible with the objective that the result claims."""
    result = tmp_path / "result.json"
    solved = invoke("solve", problem_file, "-o", result, "--json").json
    outcome = invoke("evaluate", problem_file, result, "--json")
    assert outcome.code == 0
    assert outcome.json["feasible"] is True and outcome.json["matches"] is True
    assert outcome.json["objective"] == solved["objective"]
    assert outcome.json["violations"] == []
    assert sum(outcome.json["terms"].values()) == pytest.approx(solved["objective"], rel=1e-12)
    text = invoke("evaluate", problem_file, result)
    assert text.code == 0 and "feasible" in text.out


def edited(path: Path, **changes: Any) -> Path:
    """Write a copy of a result with some fields of its plan or itself replaced."""
    data = json.loads(path.read_text())
    for name, value in changes.items():
        (data["plan"] if name in data["plan"] else data)[name] = value
    target = path.with_name("edited.json")
    target.write_text(json.dumps(data))
    return target


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"bandwidth_share": [0.5, 0.5, 0.5, 0.5]}, "more than 1"),
        ({"speculation_length": 99}, "speculation_length"),
        ({"batches": [[0, 1], [2]]}, "task 3"),
        ({"batches": [[0, 1], [2, 3], [3]]}, "task 3"),
        ({"batches": [[0, 1], [2, 3, 17]]}, "17"),
    ],
)
def test_evaluate_violated(
    invoke: Invoke, problem_file: Path, tmp_path: Path, changes: dict[str, Any], word: str
) -> None:
    """Tests that a plan that breaks a constraint exits with 1 and names the constraint."""
    result = tmp_path / "result.json"
    assert invoke("solve", problem_file, "-o", result).code == 0
    outcome = invoke("evaluate", problem_file, edited(result, **changes))
    assert outcome.code == 1
    assert "violated" in outcome.out and word in outcome.out
    assert invoke("evaluate", problem_file, edited(result, **changes), "--json").json["violations"]


def test_evaluate_tells_a_false_claim(invoke: Invoke, problem_file: Path, tmp_path: Path) -> None:
    """Tests that an objective that is not the plan's is shown as such."""
    result = tmp_path / "result.json"
    assert invoke("solve", problem_file, "-o", result).code == 0
    outcome = invoke("evaluate", problem_file, edited(result, objective=0.5))
    assert outcome.code == 0
    assert "claimed" in outcome.out and "0.5" in outcome.out


def test_evaluate_refuses_what_is_not_this_problems_result(
    invoke: Invoke, problem_file: Path, tmp_path: Path
) -> None:
    """Tests that a problem, another problem's result, and a result without plan exit with 2."""
    result = tmp_path / "result.json"
    assert invoke("solve", problem_file, "-o", result).code == 0
    refused(invoke("evaluate", problem_file, problem_file), "expected a result, got a problem")
    other = tmp_path / "other.json"
    specopt.save(specopt.generate("serving-latency/paper-1", tasks=4, seed=9), other)
    refused(invoke("evaluate", other, result), "result.json", "another problem")
    data = json.loads(result.read_text()) | {"plan": None, "objective": None, "status": "none"}
    empty = tmp_path / "empty.json"
    empty.write_text(json.dumps(data))
    refused(invoke("evaluate", problem_file, empty), "empty.json", "plan")


# ---------------------------------------------------------------------------- methods, schema


def test_methods_lists_the_registry(invoke: Invoke) -> None:
    """Tests that every registered method is listed, as text and as JSON with its options."""
    entries = invoke("methods", "--json").json
    assert [entry["name"] for entry in entries] == [method.name for method in methods()]
    for entry in entries:
        assert entry["source"] and entry["guarantee"] and entry["complexity"] and entry["summary"]
        assert isinstance(entry["exact"], bool)
    for kind in KINDS:
        text = invoke("methods", kind.name).out
        assert all(m.name in text and m.source[:12] in text for m in kind.methods)
    static = next(entry for entry in entries if entry["name"] == "static-batching")
    assert static["options"] == [{"name": "size", "type": "int", "default": 8}]


def test_methods_and_schema_refuse_an_unknown_kind(invoke: Invoke) -> None:
    """Tests that a kind that does not exist is refused with those that do."""
    refused(invoke("methods", "cooking"), "cooking", "serving-latency")
    refused(invoke("schema", "cooking"), "cooking", "serving-latency")


def test_schema(invoke: Invoke) -> None:
    """Tests that the schema is that of the problem."""
    assert invoke("schema", "serving-latency").json == specopt.ServingLatencyProblem.json_schema()


# ---------------------------------------------------------------------------- generate


def test_generate_is_reproducible(invoke: Invoke, tmp_path: Path) -> None:
    """Tests that seed and parameters decide the problem, on stdout and in a file alike."""
    arguments = (
        "generate",
        "serving-latency/paper-1",
        "--param",
        "tasks=3",
        "--param",
        "alpha=0.7",
        "--seed",
        "5",
    )
    expected = specopt.generate("serving-latency/paper-1", tasks=3, alpha=0.7, seed=5)
    assert invoke(*arguments).json == expected.to_dict()
    target = tmp_path / "problem.json"
    outcome = invoke(*arguments, "-o", target)
    assert outcome.code == 0 and outcome.out == "" and "problem.json" in outcome.err
    assert specopt.load(target) == expected


def test_generate_sets_fields(invoke: Invoke) -> None:
    """Tests that --set replaces fields, nested ones by dots, entries by index, with JSON or
    text.
    """
    data = invoke(
        "generate",
        "serving-latency/paper-1",
        "--param",
        "tasks=2",
        "--set",
        "mechanism=sequential",
        "--set",
        "draft_runtime.overhead_seconds=0.25",
        "--set",
        "snr=[1.5, 2.5]",
        "--set",
        "input_tokens.1=77",
        "--set",
        "bandwidth_hz=1e6",
        "--set",
        "name=mine",
        "--set",
        "notes=null",
    ).json
    assert data["mechanism"] == "sequential"
    assert data["draft_runtime"]["overhead_seconds"] == 0.25
    assert data["snr"] == [1.5, 2.5]
    assert data["input_tokens"][1] == 77
    assert data["bandwidth_hz"] == 1e6
    assert data["name"] == "mine"
    assert "notes" not in data


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--param", "task=3"], ["task", "tasks=100"]),
        (["--param", "tasks=many"], ["tasks", "an integer", "many"]),
        (["--param", "tasks=0"], ["tasks", "0"]),
        (["--param", "tasks=2.0"], ["tasks", "an integer", "2.0"]),
        (["--param", "alpha=inf"], ["alpha", "finite"]),
        (["--param", "alpha=1.5"], ["alpha", "1.5"]),
        (["--param", "seed=3"], ["seed", "--seed"]),
        (["--param", "pair=13B"], ["pair", "1.1B-7B"]),
        (["--param", "tasks"], ["name=value"]),
        (["--set", "speed=3"], ["speed", "unknown field"]),
        (["--set", "draft_runtime.speed=3"], ["draft_runtime.speed", "unknown field"]),
        (["--set", "engine.speed=3"], ["engine"]),
        (["--set", "bandwidth_hz.x=3"], ["bandwidth_hz.x"]),
        (["--set", "snr.700=3"], ["700"]),
        (["--set", "snr=[1.0]"], ["snr", "100", "1"]),
        (["--set", "bandwidth_hz=fast"], ["bandwidth_hz", "expected float"]),
        (["--set", "bandwidth_hz=NaN"], ["bandwidth_hz"]),
        (
            ["--set", "max_speculation_length=7.0"],
            ["max_speculation_length", "expected int", "float"],
        ),
    ],
)
def test_generate_refuses(invoke: Invoke, arguments: Sequence[str], words: Sequence[str]) -> None:
    """Tests that each wrong parameter or field is refused by name."""
    refused(invoke("generate", "serving-latency/paper-1", *arguments), *words)


def test_generate_refuses_an_unknown_family(invoke: Invoke) -> None:
    """Tests that a family that does not exist is refused with those that do."""
    refused(invoke("generate", "serving-latency/paper-9"), "paper-9", "serving-latency/paper-1")


# ---------------------------------------------------------------------------- demo


def test_demo(invoke: Invoke, tmp_path: Path) -> None:
    """Tests that the demo solves, compares with every rival, and draws."""
    picture = tmp_path / "new" / "pipeline.png"
    outcome = invoke("demo", "--tasks", "12", "--picture", picture)
    assert outcome.code == 0
    for word in (
        "algorithm-1",
        "fixed-length",
        "no-batching",
        "static-batching",
        "max-batching",
        "heuristic-batching",
        "uniform-bandwidth",
        "SD without pipeline, same batches",
        "SD without pipeline, own batches",
        "autoregressive",
        "autoregressive, exact",
        "Prefill step",
        "Decoding step",
        str(picture),
    ):
        assert word in outcome.out
    assert picture.read_bytes().startswith(b"\x89PNG")
    refused = invoke("demo", "--picture", tmp_path / "pipeline.bmp")
    assert (
        refused.code == 2 and "--picture: expected a file named .png, .pdf or .svg" in refused.err
    )


def test_comparison_columns_align(invoke: Invoke, tmp_path: Path) -> None:
    """Tests that in the comparison every line ends in its column of seconds, and the numbers end
    where headers do.
    """
    lines = invoke("demo", "--tasks", "9", "--picture", tmp_path / "p.png").out.splitlines()
    start = next(i for i, line in enumerate(lines) if "vs first" in line)
    table = lines[start : lines.index("", start)]
    end = lines[start].index("objective") + len("objective")
    assert len(table) > 10
    assert all(line[end - 1] != " " and line[end] == " " for line in table)


# ---------------------------------------------------------------------------- the process


def process(*arguments: str | Path, **options: Any) -> subprocess.Popen[str]:
    """Start the command as a process of its own."""
    command = [sys.executable, "-P", "-m", "specopt", *map(str, arguments)]
    return subprocess.Popen(command, stderr=subprocess.PIPE, text=True, **options)


def processor_seconds(pid: int) -> float:
    """What a process has used of the processor."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


# ---------------------------------------------------------------------------- kernels


@pytest.mark.nightly
def test_compiling_is_said_on_stderr_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests that a first run says what it prepares, that stdout stays JSON, and that a second run
    says nothing.
    """
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "cache"))
    path = tmp_path / "problem.json"
    specopt.save(specopt.generate("draft-allocation/uniform", seed=1), path)
    for expected in (1, 0):
        child = process("solve", path, "--json", stdout=subprocess.PIPE)
        out, err = child.communicate(timeout=600)
        assert json.loads(out)["status"] == "optimal"
        assert (
            err.count("preparing draft-allocation kernels, once on this machine ...\n") == expected
        )


@pytest.mark.nightly
def test_ctrl_c_while_compiling(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests that an interrupted compilation ends the command with exit code 130 and no
    traceback.
    """
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "cache"))
    path = tmp_path / "problem.json"
    specopt.save(specopt.generate("placement/edge-cloud", seed=1), path)
    for moment in (0.0, 0.3, 0.6):
        child = process("solve", path, stdout=subprocess.PIPE)
        assert child.stderr is not None
        said = child.stderr.readline()
        assert "preparing" in said
        time.sleep(moment)
        child.send_signal(signal.SIGINT)
        _, err = child.communicate(timeout=600)
        assert child.returncode == 130, err
        assert "Traceback" not in err and "Exception" not in err


def test_compiling_on_a_terminal_is_one_live_line(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tests that a terminal shows what is compiled as long as it is, also where one who shows it
    calls another.
    """
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    with showing_kernels(), showing_kernels(), announced("fair_goodput"):
        pass
    with announced("fair_goodput"):
        pass
    text = "\r\x1b[2Kpreparing fair-goodput kernels, once on this machine ...\r\x1b[2K"
    assert capsys.readouterr().err == text


def test_without_a_cache_nothing_is_once(
    small: specopt.ServingLatencyProblem,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Tests that where nothing is kept it is said, with the variable that names a folder, while
    compiling and after.
    """
    monkeypatch.setattr("specopt.console.progress.folder", lambda: None)
    with showing_kernels(), announced("toys_without_a_cache"):
        pass
    stats = {"preparing_seconds": 1.0, "no_cache": NO_CACHE}
    late = dataclasses.replace(
        specopt.solve(small, time_limit=0), termination=specopt.Termination.TIME_LIMIT, stats=stats
    )
    print_result(small, late, console())
    out, err = capsys.readouterr()
    assert err == f"preparing toys-without-a-cache kernels, {NO_CACHE} ...\n"
    assert NO_CACHE in " ".join(out.split()) and "warmup" not in out
    assert NO_CACHE in str(late)


# ---------------------------------------------------------------------------- progress


def test_progress_is_rate_limited(capsys: pytest.CaptureFixture[str]) -> None:
    """Tests that of many reports in a row one line is printed, on stderr, and none in the first
    moments.
    """
    end_progress()
    print_progress(Progress(0.1, 5.0, None, None))
    for _ in range(100):
        print_progress(Progress(3.0, 5.0, 4.0, 0.2))
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err == "    3.0 s  objective 5  bound 4  gap 20 %\n"
    end_progress()
    assert capsys.readouterr().err == ""


def test_the_first_report_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    """Tests that the first line of a process is not held back as if another had just been
    printed.
    """
    runpy.run_path(progress.__file__)["print_step"](1.0, "1 of 7")
    assert capsys.readouterr().err == "1 of 7\n"


def test_progress_on_a_terminal_is_one_live_line(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tests that a terminal gets a line that is rewritten in place and erased at the end."""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    end_progress()
    print_progress(Progress(3.0, 5.0, None, None))
    end_progress()
    end_progress()
    assert capsys.readouterr().err == "\r\x1b[2K    3.0 s  objective 5\r\x1b[2K"


@pytest.mark.parametrize("limit", ["-1", "0", "nan", "-inf"])
def test_a_memory_limit_is_positive(
    limit: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Tests that memory that no method can hold is refused by the option's name."""
    specopt.save(specopt.generate("draft-allocation/uniform"), tmp_path / "p.json")
    assert run(["solve", str(tmp_path / "p.json"), "--memory-limit", limit]) == 2
    assert (
        capsys.readouterr().err
        == f"specopt: --memory-limit: expected gigabytes > 0, got {float(limit):g}\n"
    )
