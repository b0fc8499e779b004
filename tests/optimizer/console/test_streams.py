"""Streams that are closed, broken or full, and files that are none: silence or one message, never a
traceback.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from helpers.command_line import CommandLine, process

import specopt

# ---------------------------------------------------------------------------- nobody reads


def test_a_reader_that_goes_away_is_no_news() -> None:
    """Tests that nothing is said where stdout is a closed pipe, by typer's output and by rich's."""
    for line in ("schema draft-control", "--help", "methods"):
        read, write = os.pipe()
        os.close(read)
        child = process(line, stdout=write)
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


def test_a_broken_stderr_changes_nothing(tmp_path: Path) -> None:
    """Tests that messages and progress that nobody reads do not end the work, nor change the exit
    code.
    """
    for line, code in (
        (f"generate draft-allocation/uniform -o {tmp_path}/new.json", 0),
        ("model x", 2),
    ):
        read, write = os.pipe()
        os.close(read)
        command = [sys.executable, "-P", "-m", "specopt", *line.split()]
        child = subprocess.run(command, stdout=subprocess.PIPE, stderr=write, timeout=600)
        os.close(write)
        assert (child.returncode, child.stdout) == (code, b"")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_full_disk_is_one_message() -> None:
    """Tests that output that cannot be written exits with 74 and one line."""
    with open("/dev/full", "w") as full:
        child = process("schema serving-latency", stdout=full)
        _, err = child.communicate(timeout=600)
    assert child.returncode == 74
    assert err.startswith("specopt: ") and err.count("\n") == 1


def test_names_beyond_the_encoding_of_stdout(tmp_path: Path) -> None:
    """Tests that a name that the terminal's encoding lacks is escaped."""
    path = tmp_path / "problem.json"
    data = specopt.generate("draft-allocation/uniform", clients=3).to_dict()
    path.write_text(json.dumps(data | {"name": "Zoë 中"}))
    env = {**os.environ, "PYTHONIOENCODING": "ascii"}
    child = process(f"solve {path}", stdout=subprocess.PIPE, env=env)
    out, _ = child.communicate(timeout=600)
    assert child.returncode == 0
    assert "Zo\\xeb \\u4e2d" in out


# ---------------------------------------------------------------------------- -o


@pytest.mark.parametrize(
    "line",
    [
        "solve problem.json",
        "generate draft-allocation/uniform",
        "import trace.csv --as serving-latency",
        "fit table.csv --x tokens --y s --form linear",
        "export csv result.json",
        "export yaml result.json",
        "export vllm --runtime runtime.json --acceptance rates.json --max-batch 8",
    ],
)
def test_targets(line: str, cli: CommandLine, tmp_path: Path) -> None:
    """Tests that commands write targets as they should: stdout alone, a link kept, the impossible
    refused.
    """
    problem = specopt.generate("draft-allocation/uniform", clients=3)
    specopt.save(problem, "problem.json")
    specopt.save(specopt.solve(problem), "result.json")
    rows = (f"{n},{0.01 + 0.002 * n + 0.0001 * (n % 3)}\n" for n in range(1, 20))
    Path("table.csv").write_text("tokens,s\n" + "".join(rows))
    one = {"seconds_per_token": 2e-4, "overhead_seconds": 0.03}
    Path("runtime.json").write_text(json.dumps({"draft": one, "verify": one}))
    Path("rates.json").write_text(json.dumps({"acceptance_rates": [0.8, 0.7]}))
    Path("trace.csv").write_text(
        "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:17:03.9799600,300,40\n"
    )
    cli(f"{line} -o plain")
    plain = without_seconds(Path("plain").read_text())

    printed = cli(f"{line} -o /dev/stdout")
    assert without_seconds(printed.out) == plain
    assert "written to /dev/stdout" in printed.err

    Path("real").write_text("old")
    Path("link").symlink_to("real")
    cli(f"{line} -o link")
    assert Path("link").is_symlink() and without_seconds(Path("real").read_text()) == plain

    Path("lost").symlink_to("no/such")
    refused = ["none/file", "lost", "/dev/full"]
    refused += [] if line.startswith("solve") else ["."]  # solve writes results into a folder
    refused += [word for word in line.split() if Path(word).is_file()][:1]
    for target in refused:
        before = Path(target).read_bytes() if Path(target).is_file() else None
        said = cli(f"{line} -o {target}", 74 if target == "/dev/full" else 2).err
        assert said.splitlines()[-1].startswith(f"specopt: {target}: "), said
        assert before is None or Path(target).read_bytes() == before
    assert Path("/dev/full").is_char_device()
    assert not [path.name for path in tmp_path.iterdir() if path.name.startswith(".")]


def without_seconds(text: str) -> list[str]:
    """Return the lines of a file without times and the problem's file, which depend on the run."""
    return [
        line
        for line in text.splitlines()
        if ("seconds" not in line or "per_token" in line) and "problem_file" not in line
    ]


def test_what_stdout_appends_to_is_kept(tmp_path: Path) -> None:
    """Tests that -o /dev/stdout neither replaces nor cuts the file that stdout is appended to."""
    log = tmp_path / "log"
    log.write_text("before\n")
    with log.open("a") as stream:
        child = process("generate draft-allocation/uniform -o /dev/stdout", stdout=stream)
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


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_full_disk_of_one_file(cli: CommandLine, tmp_path: Path) -> None:
    """Tests that several files exit with 74 if one result cannot be written, and keep the other."""
    for name in ("first", "second"):
        specopt.save(specopt.generate("draft-allocation/uniform", clients=3), f"{name}.json")
    Path("results").mkdir()
    Path("results/first.json").symlink_to("/dev/full")
    said = cli("solve first.json second.json -o results", 74).err
    assert "specopt: results/first.json: " in said
    assert specopt.load("results/second.json")
