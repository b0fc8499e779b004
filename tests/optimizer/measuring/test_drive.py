"""Tests of engines that are started, loaded and ended by `specopt tune --drive`."""

from __future__ import annotations

import csv
import json
import shlex
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from helpers import stand_in_server
from helpers.stand_in_server import FASTEST, seconds_of_step, tokens_of_step

from specopt.commands.cli import run
from specopt.measuring.client import Client
from specopt.measuring.drive import drive
from specopt.measuring.record import Record
from specopt.models.errors import InvalidInput, ServerFailed
from specopt.models.load import Load
from specopt.solvers.speculation_table.tuning.tuner import Tuner


@pytest.fixture
def port() -> int:
    """Return a port that nothing listens on."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def _command(port: int, fault: str = "") -> str:
    return shlex.join([sys.executable, stand_in_server.__file__, str(port)]) + f" {{k}} {fault}"


@pytest.mark.slow
def test_an_engine_is_measured_until_nothing_is_to_be_gained(
    port: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Tests that the command starts a server for each length, finds the best one, and goes on where
    it ended.
    """
    sweep = tmp_path / "sweep.csv"
    arguments = [
        "tune",
        str(sweep),
        "--drive",
        _command(port),
        "--endpoint",
        f"http://127.0.0.1:{port}",
        "--loads",
        "1,2",
        "--max-length",
        "3",
        "--tokens",
        "12",
        "--seconds",
        "0.5",
        "--regret",
        "0.2",
        "--json",
    ]
    assert run(arguments) == 0
    found = json.loads(capsys.readouterr().out)
    assert {length for _, _, length in found["ranges"]} == {FASTEST}
    rows = list(csv.DictReader(sweep.read_text().splitlines()))
    assert {row["draft_length"] for row in rows} >= {"none", "1", "2", "3"}
    for row in rows:
        length = 0 if row["draft_length"] == "none" else int(row["draft_length"])
        law = int(row["concurrency"]) * tokens_of_step(length) / seconds_of_step(length)
        assert (
            0.2 * law < float(row["output_tokens_per_second"]) < 1.05 * law
        )  # a busy machine is slower, never faster
        if length:
            assert float(row["mean_acceptance_length"]) == tokens_of_step(length)
    assert run(arguments) == 0
    assert f"{0} loads measured" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("fault", "more", "words"),
    [
        ("refuses", {}, "at concurrency 1: .*500 Internal Server Error: .*out of memory"),
        ("dies", {}, "at concurrency 1: .*; it last printed: segmentation fault"),
        ("hangs", {"patience": 1.0}, "no answer within 1 s"),
        ("silent", {"start_seconds": 0.5}, "no answer at .* within 0.5 s of its start"),
    ],
)
def test_a_server_that_fails_is_one_line(
    fault: str, more: dict[str, float], words: str, port: int, tmp_path: Path
) -> None:
    """Tests that each way to fail is named with the draft length, and that the server is gone
    afterwards.
    """
    client = Client(
        endpoint=f"http://127.0.0.1:{port}/v1",
        max_tokens=(12,),
        seconds=0.5,
        patience=more.get("patience", 60.0),
    )
    seconds = more.get("start_seconds", 120.0)
    with pytest.raises(ServerFailed, match=words) as failed:
        tuner = Tuner([1, 2], [1, 2, 3])
        drive(_command(port, fault), tmp_path / "sweep.csv", client, tuner, seconds)
    assert "the server with draft length none" in str(failed.value)
    assert "\n" not in str(failed.value)
    with socket.socket() as one:
        assert one.connect_ex(("127.0.0.1", port)) != 0


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("false {k}", "ended with status 1"),
        ("no-such-program {k}", "cannot start 'no-such-program'"),
    ],
)
def test_a_command_that_starts_nothing_is_one_line(
    command: str, words: str, port: int, tmp_path: Path
) -> None:
    """Tests that a program that ends, or is not there, is said."""
    client = Client(endpoint=f"http://127.0.0.1:{port}")
    with pytest.raises(ServerFailed, match=words):
        drive(command, tmp_path / "s.csv", client, Tuner([1], [1, 2]))


def test_a_command_names_the_draft_length(tmp_path: Path) -> None:
    """Tests that a command without {k}, which would measure one setting as all, is refused; so is
    no address.
    """
    with pytest.raises(InvalidInput, match=r"expected a command with \{k\}"):
        client = Client(endpoint="http://x")
        drive("serve", tmp_path / "s.csv", client, Tuner([1], [1]))
    with pytest.raises(InvalidInput, match="expected an address"):
        Client(endpoint="localhost:8000")


class _Played:
    """A client without a server: the speed of an option, and Ctrl-C after some loads."""

    endpoint = "http://127.0.0.1:1"

    def __init__(self, most: int) -> None:
        self.length, self.left, self.asked = 0, most, list[tuple[int, int]]()

    def models(self) -> list[str]:
        raise ServerFailed("none")

    def run(self, concurrency: int) -> Load:
        if not self.left:
            raise KeyboardInterrupt
        self.left -= 1
        self.asked.append((concurrency, self.length))
        speed = concurrency * tokens_of_step(self.length) / seconds_of_step(self.length)
        return Load(speed, 0.1, float(tokens_of_step(self.length)))


def test_what_was_measured_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests that a drive that is interrupted goes on with what it lacks, and that a server stays
    for its length.
    """
    starts: list[str] = []

    @contextmanager
    def serving(words: list[str], client: _Played, *_: object) -> Iterator[None]:
        starts.extend(words)
        client.length = int(words[0]) if words[0].isdecimal() else 0
        yield

    monkeypatch.setattr("specopt.measuring.drive.serving", serving)

    def driven(client: Any) -> int:
        return drive("{k}", tmp_path / "s.csv", client, Tuner([1, 8], [1, 2, 3]))

    first, second = _Played(3), _Played(100)
    with pytest.raises(KeyboardInterrupt):
        driven(first)
    assert len((tmp_path / "s.csv").read_text().splitlines()) == 4
    measured = driven(second)
    assert measured == len(second.asked) > 0
    assert not set(first.asked) & set(second.asked)
    assert starts[:2] == ["none", "2"]  # both loads of a length with one server
    assert driven(_Played(0)) == 0


def test_a_record_whose_counts_rise_is_refused(tmp_path: Path) -> None:
    """Tests that more accepted tokens at a position than before it are refused by file and load."""
    load = {
        "tokens_per_second": 95.0,
        "first_token_seconds": 0.1,
        "acceptance_length": 2.0,
        "counted": [100.0, 300.0, 70.0, 80.0, 15.0],
    }
    loads = [{"concurrency": 1, "configured": 3, "load": load}]
    path = tmp_path / "loads.json"
    path.write_text(json.dumps({"settings": "any", "loads": loads}))
    with pytest.raises(InvalidInput, match=r"load\.counted: counts: expected"):
        Record.open(path, "any")
