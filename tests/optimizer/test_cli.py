"""The command line: what it prints where, what it writes, and how it exits."""

from __future__ import annotations

import dataclasses
import json
import os
import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import typer
from helpers.command_line import CommandLine, process

import specopt
from specopt.api.generate import FAMILIES
from specopt.api.solve import methods
from specopt.commands.cli import app
from specopt.console import progress
from specopt.console.progress import end_progress, print_progress, showing_kernels
from specopt.console.terminal import console
from specopt.kinds import KINDS
from specopt.models.result import Progress
from specopt.solvers.kernels.cache import NO_CACHE
from specopt.solvers.kernels.compiling import announced
from specopt.views.result import print_result

COMMANDS = tuple(typer.main.get_group(app).commands)


@pytest.fixture(autouse=True)
def problem(tmp_path: Path) -> specopt.ServingLatencyProblem:
    """A problem of four tasks, in `problem.json`."""
    made = specopt.generate("serving-latency/paper-1", tasks=4, max_output=50, seed=3)
    assert isinstance(made, specopt.ServingLatencyProblem)
    specopt.save(made, tmp_path / "problem.json")
    return made


# ---------------------------------------------------------------------------- help and usage


@pytest.mark.parametrize("line", ["--help", "-h", ""])
def test_help_lists_the_commands(cli: CommandLine, line: str) -> None:
    """Tests that help, asked for or by giving no command, lists every command and succeeds."""
    shown = cli(line).out
    assert all(command in shown for command in COMMANDS)


@pytest.mark.parametrize("command", COMMANDS)
def test_each_command_has_help(cli: CommandLine, command: str) -> None:
    """Tests that every command explains itself."""
    assert f"specopt {command}" in cli(f"{command} --help").out


def test_help_of_generate_lists_the_families(cli: CommandLine) -> None:
    """Tests that what can be generated is in the help, by name."""
    text = cli("generate --help").out
    assert [name for name in FAMILIES if name not in text] == []


def test_shells_complete() -> None:
    """Tests that a shell learns the commands that begin as typed."""
    env = {
        **os.environ,
        "_SPECOPT_COMPLETE": "complete_bash",
        "COMP_WORDS": "specopt pl",
        "COMP_CWORD": "1",
    }
    out, err = process("", env=env, stdout=subprocess.PIPE).communicate(timeout=600)
    assert (out.split(), err) == (["plan"], "")


def test_version(cli: CommandLine) -> None:
    """Tests that the version is that of the package."""
    assert cli("--version").out == f"specopt {specopt.__version__}\n"


@pytest.mark.parametrize(
    ("line", "word"),
    [
        ("fly", "fly"),
        ("solve", "FILE"),
        ("solve a.json --bogus", "--bogus"),
        ("solve a.json --time-limit soon", "soon"),
        ("solve a.json --seed -1", "-1"),
        ("evaluate a.json", "RESULT"),
        ("--bogus", "--bogus"),
    ],
)
def test_bad_usage(cli: CommandLine, line: str, word: str) -> None:
    """Tests that bad usage is one message that names what is wrong, and where help is."""
    command = ["specopt", *(name for name in line.split()[:1] if name in COMMANDS), "--help"]
    cli.refuses(line, word, f"see {' '.join(command)}")


@pytest.mark.parametrize(
    "line",
    [
        "solve {}",
        "evaluate {} {}",
        "report {} -o page.html",
        "validate {}",
        "plan --draft {0} --verify {0} --for vllm",
    ],
)
def test_a_name_that_is_too_long(cli: CommandLine, line: str) -> None:
    """Tests that a name that no file can have is bad usage, not a failure of the output."""
    cli.refuses(line.replace("{0}", "{}").format(*2 * [600 * "x" + ".json"]), "name", "too long")


# ---------------------------------------------------------------------------- solve


def test_solve_tells_what_was_not_asked(
    cli: CommandLine, problem: specopt.ServingLatencyProblem
) -> None:
    """Tests that another mechanism is told where its judged optimum is better, and only there;
    limits are kept.
    """
    alone = dataclasses.replace(problem, mechanism="autoregressive")
    other = specopt.solve(alone)
    found = cli("solve problem.json --json").json
    assert found["stats"]["unasked"] == {
        "changes": {"mechanism": "autoregressive"},
        "method": "auto",
        "objective": other.objective,
    }
    assert other.objective is not None and other.objective < found["objective"]
    would = f"with mechanism autoregressive, the objective would be {other.objective:.6g} (-"
    assert would in cli("solve problem.json").out
    for better in (alone, dataclasses.replace(problem, mechanism="any")):
        specopt.save(better, Path("better.json"))
        best = cli("solve better.json --time-limit 9 --json").json
        assert "unasked" not in best["stats"] and best["seconds"] < 9
        assert best["objective"] == other.objective


def test_solve_writes_the_result(cli: CommandLine, tmp_path: Path) -> None:
    """Tests that -o writes a result that loads, leaves nothing else behind, and replaces an older
    file.
    """
    Path("result.json").write_text("old")
    printed = cli("solve problem.json -o result.json --json").json
    assert specopt.load("result.json", specopt.Result).to_dict() == printed
    assert sorted(path.name for path in tmp_path.iterdir()) == ["problem.json", "result.json"]


def test_solve_with_method_and_options(cli: CommandLine) -> None:
    """Tests that a named method runs with its typed options, and from an earlier result."""
    found = cli("solve problem.json --method static-batching --option size=3 -o r.json --json").json
    assert (found["method"], found["options"]) == ("static-batching", {"size": 3})
    assert [len(batch) for batch in found["plan"]["batches"]] == [3, 1]
    again = cli("solve problem.json --method exact --warm-start r.json --json").json
    assert again["status"] == "optimal"


STATIC = "--method static-batching --option"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("--method magic", ["magic", "exact", "algorithm-1"]),
        (f"{STATIC} sise=3", ["sise", "size=8"]),
        ("--method no-batching --option size=3", ["size", "its options: none"]),
        (f"{STATIC} size=three", ["size", "an integer", "three"]),
        (f"{STATIC} size=0", ["size", "1", "got 0"]),
        (f"{STATIC} size", ["name=value", "'size'"]),
        (f"{STATIC} =3", ["name=value", "'=3'"]),
        (f"{STATIC} size=3 --option size=4", ["size", "twice"]),
        ("--gap -1", ["gap", "-1"]),
        ("--gap nan", ["gap", "nan"]),
        ("--time-limit -1", ["time_limit", "-1"]),
        ("--warm-start nowhere.json", ["nowhere.json"]),
        ("--memory-limit 0", ["--memory-limit: expected gigabytes > 0, got 0\n"]),
        ("--memory-limit nan", ["--memory-limit: expected gigabytes > 0, got nan\n"]),
        ("--memory-limit -inf", ["--memory-limit: expected gigabytes > 0, got -inf\n"]),
    ],
)
def test_solve_refuses(cli: CommandLine, options: str, words: list[str]) -> None:
    """Tests that each wrong method, option or limit is refused by name."""
    cli.refuses(f"solve problem.json {options}", *words)


def test_solve_refuses_what_is_no_problem(cli: CommandLine) -> None:
    """Tests that a file that is not there, or holds something else, is refused with its name."""
    cli.refuses("solve none.json", "none.json", "No such file")
    for content, words in (
        ("{", ["JSON"]),
        (
            '{"format": "specopt/1", "kind": "cooking"}',
            ["kind", "serving-latency", "cooking"],
        ),
        (
            '{"format": "specopt/1", "kind": "serving-latency", "speed": 3}',
            ["speed", "unknown field"],
        ),
    ):
        Path("bad.json").write_text(content)
        cli.refuses("solve bad.json", "bad.json", *words)
    cli("solve problem.json -o result.json")
    cli.refuses("solve result.json", "expected a problem, got a result")


def test_output_is_checked_before_the_work(
    cli: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tests that a file that cannot be written is refused before anything is solved."""
    monkeypatch.setattr(specopt, "solve", None)
    cli.refuses("solve problem.json -o no/result.json", "no such directory")
    cli.refuses("solve problem.json -o .", "overwrite the input")
    cli.refuses("solve problem.json -o problem.json", "overwrite the input")


def test_interrupt_outside_a_solve_exits_with_130(
    cli: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tests that Ctrl-C anywhere else is one word, not a traceback."""

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("specopt.kinds.kind_of", interrupt)
    printed = cli("schema serving-latency", 130)
    assert (printed.out, printed.err) == ("", "specopt: interrupted\n")


# ---------------------------------------------------------------------------- evaluate


def test_evaluate_feasible(cli: CommandLine) -> None:
    """Tests that a solver's plan is judged feasible with the objective that the result claims."""
    solved = cli("solve problem.json -o result.json --json").json
    found = cli("evaluate problem.json result.json --json").json
    assert found["feasible"] is True and found["matches"] is True
    assert found["objective"] == solved["objective"]
    assert found["violations"] == []
    assert sum(found["terms"].values()) == pytest.approx(solved["objective"], rel=1e-12)
    assert "feasible" in cli("evaluate problem.json result.json").out


def edit(**changes: Any) -> None:
    """Write a copy of the result with some fields of its plan or itself replaced."""
    data = json.loads(Path("result.json").read_text())
    for name, value in changes.items():
        (data["plan"] if name in (data["plan"] or {}) else data)[name] = value
    Path("edited.json").write_text(json.dumps(data))


def test_evaluate_other_plans(cli: CommandLine) -> None:
    """Tests that a plan that breaks a constraint exits with 1 and names it, and that an objective
    that is not the plan's is shown as such.
    """
    cli("solve problem.json -o result.json")
    for changes, word in (
        ({"bandwidth_share": [0.5] * 4}, "the shares sum to 2, which exceeds 1"),
        ({"speculation_length": 99}, "speculation_length"),
        ({"batches": [[0, 1], [2, 3], [3]]}, "task 3"),
        ({"batches": [[0, 1], [2, 3, 17]]}, "17"),
    ):
        edit(**changes)
        shown = cli("evaluate problem.json edited.json", 1).out
        assert "violated" in shown and word in shown
        assert cli("evaluate problem.json edited.json --json", 1).json["violations"]
    edit(objective=0.5)
    shown = cli("evaluate problem.json edited.json").out
    assert "claimed" in shown and "0.5" in shown


@pytest.mark.parametrize("command", ["evaluate", "simulate"])
def test_what_is_not_this_problems_result_is_refused(cli: CommandLine, command: str) -> None:
    """Tests that a problem, another problem's result, and a result without plan exit with 2."""
    cli("solve problem.json -o result.json")
    cli.refuses(f"{command} problem.json problem.json", "expected a result, got a problem")
    cli("generate serving-latency/paper-1 --param tasks=4 --seed 9 -o other.json")
    cli.refuses(f"{command} other.json result.json", "result.json", "another problem")
    edit(plan=None, objective=None, status="none")
    cli.refuses(f"{command} problem.json edited.json", "edited.json", "plan")


# ---------------------------------------------------------------------------- methods, schema


def test_methods_lists_the_registry(cli: CommandLine) -> None:
    """Tests that every registered method is listed, as text and as JSON with its options."""
    entries = cli("methods --json").json
    assert [entry["name"] for entry in entries] == [method.name for method in methods()]
    for entry in entries:
        assert entry["source"] and entry["guarantee"] and entry["complexity"] and entry["summary"]
        assert isinstance(entry["exact"], bool)
    for kind in KINDS:
        text = cli(f"methods {kind.name}").out
        assert all(m.name in text and m.source[:12] in text for m in kind.methods)
    static = next(entry for entry in entries if entry["name"] == "static-batching")
    assert static["options"] == [{"name": "size", "type": "int", "default": 8}]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_schema(cli: CommandLine, kind: Any) -> None:
    """Tests that the schema is that of the problem."""
    schema = json.loads(json.dumps(kind.problem.json_schema()))
    assert cli(f"schema {kind.name}").json == schema


@pytest.mark.parametrize("command", ["methods", "schema", "warmup"])
def test_an_unknown_kind_is_refused(cli: CommandLine, command: str) -> None:
    """Tests that a kind that does not exist is refused with those that do."""
    cli.refuses(f"{command} cooking", "cooking", "kind: expected one of serving-latency")


# ---------------------------------------------------------------------------- generate


def test_generate_is_reproducible(cli: CommandLine) -> None:
    """Tests that seed and parameters decide the problem, on stdout and in a file alike."""
    command = "generate serving-latency/paper-1 --param tasks=3 --param alpha=0.7 --seed 5"
    expected = specopt.generate("serving-latency/paper-1", tasks=3, alpha=0.7, seed=5)
    assert cli(command).json == expected.to_dict()
    printed = cli(f"{command} -o made.json")
    assert printed.out == "" and "made.json" in printed.err
    assert specopt.load("made.json") == expected


def test_generate_sets_fields(cli: CommandLine) -> None:
    """Tests that --set replaces fields, nested ones by dots, entries by index, with JSON or
    text.
    """
    data = cli(
        "generate serving-latency/paper-1 --param tasks=2 --set mechanism=sequential"
        " --set draft_runtime.overhead_seconds=0.25 --set 'snr=[1.5, 2.5]'"
        " --set input_tokens.1=77 --set bandwidth_hz=1e6 --set name=mine --set notes=null"
    ).json
    assert data["mechanism"] == "sequential"
    assert data["draft_runtime"]["overhead_seconds"] == 0.25
    assert data["snr"] == [1.5, 2.5]
    assert data["input_tokens"][1] == 77
    assert data["bandwidth_hz"] == 1e6
    assert data["name"] == "mine"
    assert "notes" not in data


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("--param task=3", ["task", "tasks=100"]),
        ("--param tasks=many", ["tasks", "an integer", "many"]),
        ("--param tasks=0", ["tasks", "0"]),
        ("--param tasks=2.0", ["tasks", "an integer", "2.0"]),
        ("--param alpha=inf", ["alpha", "finite"]),
        ("--param alpha=1.5", ["alpha", "1.5"]),
        ("--param seed=3", ["seed", "--seed"]),
        ("--param pair=13B", ["pair", "1.1B-7B"]),
        ("--param tasks", ["name=value"]),
        ("--set speed=3", ["speed", "unknown field"]),
        ("--set draft_runtime.speed=3", ["draft_runtime.speed", "unknown field"]),
        ("--set engine.speed=3", ["engine"]),
        ("--set bandwidth_hz.x=3", ["bandwidth_hz.x"]),
        ("--set snr.700=3", ["700"]),
        ("--set snr=[1.0]", ["snr", "100", "1"]),
        ("--set bandwidth_hz=fast", ["bandwidth_hz", "expected float"]),
        ("--set bandwidth_hz=NaN", ["bandwidth_hz"]),
        ("--set max_speculation_length=7.0", ["max_speculation_length", "expected int", "float"]),
    ],
)
def test_generate_refuses(cli: CommandLine, options: str, words: list[str]) -> None:
    """Tests that each wrong parameter or field is refused by name."""
    cli.refuses(f"generate serving-latency/paper-1 {options}", *words)


def test_generate_refuses_an_unknown_family(cli: CommandLine) -> None:
    """Tests that a family that does not exist is refused with those that do."""
    cli.refuses("generate serving-latency/paper-9", "paper-9", "serving-latency/paper-1")


# ---------------------------------------------------------------------------- demo


def test_demo(cli: CommandLine) -> None:
    """Tests that the demo solves, compares with every rival, and draws, and that in the comparison
    every line ends in its column of seconds, and the numbers end where headers do.
    """
    shown = cli("demo --tasks 12 --picture new/pipeline.png").out
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
        "new/pipeline.png",
    ):
        assert word in shown
    assert Path("new/pipeline.png").read_bytes().startswith(b"\x89PNG")
    lines = shown.splitlines()
    start = next(i for i, line in enumerate(lines) if "vs first" in line)
    table = lines[start : lines.index("", start)]
    end = lines[start].index("objective") + len("objective")
    assert len(table) > 10
    assert all(line[end - 1] != " " and line[end] == " " for line in table)
    cli.refuses(
        "demo --picture pipeline.bmp", "--picture: expected a file named .png, .pdf or .svg"
    )


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
        child = process(f"solve {path} --json", stdout=subprocess.PIPE)
        out, err = child.communicate(timeout=600)
        assert json.loads(out)["status"] == "optimal"
        assert (
            err.count("preparing draft-allocation kernels, once on this machine ...\n") == expected
        )


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
