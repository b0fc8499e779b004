"""Streams that are closed, broken or full, and files that are none: silence or one message, never a
traceback.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import specopt
from specopt.commands.cli import run


def process(*arguments: str | Path, **options: Any) -> subprocess.Popen[str]:
    """Start the command as a process of its own."""
    command = [sys.executable, "-P", "-m", "specopt", *map(str, arguments)]
    return subprocess.Popen(command, stderr=subprocess.PIPE, text=True, **options)


@pytest.fixture
def problem(tmp_path: Path) -> Path:
    """A problem that is solved at once."""
    path = tmp_path / "problem.json"
    specopt.save(specopt.generate("draft-allocation/uniform", clients=3), path)
    return path


# ---------------------------------------------------------------------------- nobody reads


def test_a_reader_that_goes_away_is_no_news() -> None:
    """Tests that nothing is said where stdout is a closed pipe, by typer's output and by rich's."""
    for arguments in (["schema", "draft-control"], ["--help"], ["methods"]):
        read, write = os.pipe()
        os.close(read)
        child = process(*arguments, stdout=write)
        os.close(write)
        _, err = child.communicate(timeout=600)
        assert (child.returncode, err) == (141, "")


@pytest.mark.parametrize("number", [1, 2])
def test_closed_streams(number: int) -> None:
    """Tests that a command whose stdout or stderr was closed before its start runs and ends as
    usual.
    """
    for arguments, code in ((["schema", "draft-control"], 0), (["schema", "nothing"], 2)):
        script = (
            "import os, sys; os.close(int(sys.argv[1])); os.execv(sys.executable, sys.argv[2:])"
        )
        command = [sys.executable, "-P", "-m", "specopt", *arguments]
        child = subprocess.run(
            [sys.executable, "-c", script, str(number), *command], capture_output=True, timeout=600
        )
        assert child.returncode == code
        assert b"Traceback" not in child.stderr
        assert bool(child.stdout) == (number == 2 and code == 0)


def test_a_broken_stderr_changes_nothing(problem: Path, tmp_path: Path) -> None:
    """Tests that messages and progress that nobody reads do not end the work, nor change the exit
    code.
    """
    for arguments, code in (
        (["generate", "draft-allocation/uniform", "-o", tmp_path / "new.json"], 0),
        (["model", "x"], 2),
    ):
        read, write = os.pipe()
        os.close(read)
        command = [sys.executable, "-P", "-m", "specopt", *map(str, arguments)]
        child = subprocess.run(command, stdout=subprocess.PIPE, stderr=write, timeout=600)
        os.close(write)
        assert (child.returncode, child.stdout) == (code, b"")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_full_disk_is_one_message() -> None:
    """Tests that output that cannot be written exits with 2 and one line."""
    with open("/dev/full", "w") as full:
        child = process("schema", "serving-latency", stdout=full)
        _, err = child.communicate(timeout=600)
    assert child.returncode == 2
    assert err.startswith("specopt: ") and err.count("\n") == 1


def test_names_beyond_the_encoding_of_stdout(tmp_path: Path) -> None:
    """Tests that a name that the terminal's encoding lacks is escaped."""
    path = tmp_path / "problem.json"
    data = specopt.generate("draft-allocation/uniform", clients=3).to_dict()
    path.write_text(json.dumps(data | {"name": "Zoë 中"}))
    child = process(
        "solve", path, stdout=subprocess.PIPE, env={**os.environ, "PYTHONIOENCODING": "ascii"}
    )
    out, _ = child.communicate(timeout=600)
    assert child.returncode == 0
    assert "Zo\\xeb \\u4e2d" in out


@pytest.mark.nightly
def test_help_version_and_completion_go_to_stdout() -> None:
    """Tests that what typer prints by itself is on stdout, and nothing on stderr."""
    shell = {"_SPECOPT_COMPLETE": "complete_bash", "COMP_WORDS": "specopt sol", "COMP_CWORD": "1"}
    for words, environment, expected in (
        (["--version"], {}, "specopt "),
        (["export", "--help"], {}, "Usage: specopt export"),
        ([], shell, "solve"),
    ):
        out, err = run_as_specopt(words, environment)
        assert out.startswith(expected) and err == ""


def run_as_specopt(words: list[str], environment: dict[str, str]) -> tuple[str, str]:
    """Run the installed script, and return its stdout and stderr."""
    script = str(Path(sys.executable).parent / "specopt")
    env = os.environ | environment
    done = subprocess.run(
        [script, *words], capture_output=True, text=True, env=env, timeout=600, check=True
    )
    return done.stdout, done.stderr


# ---------------------------------------------------------------------------- -o


def writing(problem: Path, tmp_path: Path) -> dict[str, list[str]]:
    """Return every command that writes a file with -o, its target left out."""
    result, table = tmp_path / "a-result.json", tmp_path / "table.csv"
    runtime, rates, trace = (
        tmp_path / "runtime.json",
        tmp_path / "rates.json",
        tmp_path / "trace.csv",
    )
    specopt.save(specopt.solve(specopt.load(problem)), result)  # type: ignore[arg-type]
    table.write_text(
        "tokens,s\n" + "".join(f"{n},{0.01 + 0.002 * n + 0.0001 * (n % 3)}\n" for n in range(1, 20))
    )
    one = {"seconds_per_token": 2e-4, "overhead_seconds": 0.03}
    runtime.write_text(json.dumps({"draft": one, "verify": one}))
    rates.write_text(json.dumps({"acceptance_rates": [0.8, 0.7]}))
    trace.write_text(
        "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:17:03.9799600,300,40\n"
    )
    return {
        "solve": ["solve", str(problem)],
        "generate": ["generate", "draft-allocation/uniform"],
        "import": ["import", str(trace), "--as", "serving-latency"],
        "fit": ["fit", str(table), "--x", "tokens", "--y", "s", "--form", "linear"],
        "csv": ["export", "csv", str(result)],
        "yaml": ["export", "yaml", str(result)],
        "vllm": [
            "export",
            "vllm",
            "--runtime",
            str(runtime),
            "--acceptance",
            str(rates),
            "--max-batch",
            "8",
        ],
    }


@pytest.mark.parametrize("name", ["solve", "generate", "import", "fit", "csv", "yaml", "vllm"])
def test_targets(
    name: str, problem: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Tests that commands write targets as they should: stdout alone, a link kept, the impossible
    refused.
    """
    command = writing(problem, tmp_path)[name]
    plain, real, link = tmp_path / "plain", tmp_path / "real", tmp_path / "link"
    assert run([*command, "-o", str(plain)]) == 0
    capfd.readouterr()

    assert run([*command, "-o", "/dev/stdout"]) == 0
    out, err = capfd.readouterr()
    assert without_seconds(out) == without_seconds(plain.read_text())
    assert "written to /dev/stdout" in err

    real.write_text("old")
    link.symlink_to(real)
    assert run([*command, "-o", str(link)]) == 0
    assert link.is_symlink() and without_seconds(real.read_text()) == without_seconds(
        plain.read_text()
    )
    capfd.readouterr()

    lost = tmp_path / "lost"
    lost.symlink_to(tmp_path / "no" / "such")
    refused = [str(tmp_path), str(tmp_path / "none" / "file"), str(lost), "/dev/full"]
    refused += [word for word in command if Path(word).is_file()][:1]
    for target in refused:
        before = Path(target).read_bytes() if Path(target).is_file() else None
        assert run([*command, "-o", target]) == 2, target
        out, err = capfd.readouterr()
        assert err.splitlines()[-1].startswith(f"specopt: {target}: "), err
        assert before is None or Path(target).read_bytes() == before
    assert Path("/dev/full").is_char_device()
    assert not [path.name for path in tmp_path.iterdir() if path.name.startswith(".")]


def without_seconds(text: str) -> list[str]:
    """Return the lines of a file without those that tell times."""
    return [line for line in text.splitlines() if "seconds" not in line or "per_token" in line]


def test_what_stdout_appends_to_is_kept(problem: Path, tmp_path: Path) -> None:
    """Tests that -o /dev/stdout neither replaces nor cuts the file that stdout is appended to."""
    log = tmp_path / "log"
    log.write_text("before\n")
    with log.open("a") as stream:
        child = process("generate", "draft-allocation/uniform", "-o", "/dev/stdout", stdout=stream)
        child.communicate(timeout=600)
    first, rest = log.read_text().split("\n", 1)
    assert first == "before"
    assert json.loads(rest)["kind"] == "draft-allocation"


def test_a_closed_stdout_stays_taken(tmp_path: Path) -> None:
    """Tests that where descriptor 1 was closed at the start, no file that is opened later becomes
    it.
    """
    program = (
        "import os, sys\n"
        "from specopt.console.stdout import take_stdout\n"
        "take_stdout()\n"
        "opened = open(sys.argv[1], 'w')\n"
        "sys.exit(opened.fileno() == 1)\n"
    )
    command = f'exec "{sys.executable}" -P -c "$0" "$1" >&-'
    ended = subprocess.run(
        ["sh", "-c", command, program, str(tmp_path / "file")], stderr=subprocess.PIPE, timeout=600
    )
    assert (ended.returncode, ended.stderr) == (0, b"")
