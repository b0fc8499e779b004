"""Tests of `specopt validate`: predictions held against servers, and what they rest on,
corrected.
"""

from __future__ import annotations

import asyncio
import contextlib
import csv
import inspect
import json
import os
import stat
import sys
from collections.abc import Callable, Coroutine, Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

import numpy as np
import pytest
from helpers.command_line import CommandLine
from helpers.known_law_server import Law, LawServer, serving
from helpers.size import tokens_of

from specopt.instances.acceptance import read_acceptance
from specopt.instances.sweeps import read_sweeps
from specopt.measuring import client
from specopt.measuring.client import Client
from specopt.models.errors import InvalidInput, ServerFailed
from specopt.models.files import read_json
from specopt.models.load import Load, Seen
from specopt.models.position_acceptance import PositionAcceptance
from specopt.models.sweep import Condition, Point
from specopt.solvers.speculation_table.held import OfPasses, OfSweep, report

BELIEVED = Law(0.020, 0.0005, 0.003, 0.8)
TRUE = Law(0.026, 0.0009, 0.005, 0.6, idle=0.2)
QUICK = Law(0.01, 0.0, 0.0, 0.5)
LOADS, LENGTHS = (1, 2, 4, 8, 16), (None, 1, 2, 3)
MOST = 0.08
"""Median relative error that is left after one correction."""


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Work in a folder with a sweep of what is believed."""
    monkeypatch.chdir(tmp_path)
    rows = [
        (c, "none" if k is None else k, BELIEVED.speed(c, k), BELIEVED.tokens(k) if k else "")
        for c in LOADS
        for k in LENGTHS
    ]
    head = ("concurrency", "draft_length", "output_tokens_per_second", "mean_acceptance_length")
    with Path("sweep.csv").open("w") as file:
        csv.writer(file).writerows([head, *rows])


def _saw(law: Law, places: Sequence[tuple[int, int | None]]) -> list[Seen]:
    """Return loads at the law's pace."""
    return [
        Seen(c, k, Load(law.speed(c, k), 0.1, law.tokens(k) if k else None, 0.005))
        for c, k in places
    ]


# ---------------------------------------------------------------------------- over HTTP


@pytest.mark.slow
def test_one_correction_predicts_what_was_withheld(cli: CommandLine) -> None:
    """Tests that loads and a draft length that were not measured are predicted after one
    correction, over real HTTP.
    """
    more = "--tokens 24 --seconds 2"
    for length in (None, 3):
        with serving(TRUE, length) as endpoint:
            asked = f"sweep.csv --endpoint {endpoint} --loads 1,4,16 {more} --json"
            asked += " -o corrected.csv --acceptance-output rates.json"
            before = cli(f"validate {asked}").json
    assert before["median_error"] > 0.3
    assert before["order"]["pairs"] == 3
    assert {row["in"] for row in before["factors"]} == {
        "mean_acceptance_length",
        "output_tokens_per_second",
    }
    found = read_acceptance("rates.json")
    assert isinstance(found, PositionAcceptance)
    assert len(found.rates) == 3
    assert found.rates[0] == pytest.approx(TRUE.rate, abs=0.1)
    assert found.lower[0] < found.rates[0] < found.upper[0]
    for length in (None, 2, 3):
        with serving(TRUE, length) as endpoint:
            asked = f"corrected.csv --endpoint {endpoint} --loads 2,8 {more} --record withheld.json"
            after = cli(f"validate {asked} --json").json
    assert len(after["loads"]) == 6
    assert after["median_error"] <= MOST
    cli("tune corrected.csv --json")


def test_a_server_is_read_and_shown(cli: CommandLine, tmp_path: Path) -> None:
    """Tests that people get a page, that prompts and lengths are the user's, and that the record is
    whole JSON.
    """
    Path("prompts.txt").write_text("one\n\ntwo\n")
    Path("trace.csv").write_text("arrival_seconds,input_tokens,output_tokens\n0,40,9\n1,10,12\n")
    with serving(TRUE, 1) as endpoint:
        asked = (
            f"sweep.csv --endpoint {endpoint}/v1 --loads 1 --seconds 0.5 --prompts"
            " prompts.txt --trace trace.csv"
        )
        shown = cli(f"validate {asked}")
        assert "concurrency 1" not in cli(f"validate {asked}").err
    cli(f"validate {asked} --draft-length 1")
    assert "Acceptance by position: 0." in shown.out
    assert (
        "Order of options: 0 of 0 pairs that the intervals separate are in the predicted order:"
        " start the"
        " server" in shown.out
    )
    assert "concurrency 1, draft length 1: " in shown.err
    assert "synthetic" not in shown.err
    [one] = json.loads(Path("validate.json").read_text())["loads"]
    assert one["configured"] == 1
    drafts, tokens, accepted = one["load"]["counted"]
    assert accepted <= drafts == tokens
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "prompts.txt",
        "sweep.csv",
        "trace.csv",
        "validate.json",
    ]


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ("refuses", "500 Internal Server Error"),
        ("hangs", "no answer within 0.5 s"),
        ("later", "at concurrency 4: "),
    ],
)
def test_a_server_that_fails_is_one_line(fault: str, words: str, cli: CommandLine) -> None:
    """Tests that errors and silence end the command with one line and code 2, and that earlier
    loads are kept.
    """
    with serving(QUICK, None, fault) as endpoint:
        asked = f"sweep.csv --endpoint {endpoint} --loads 1,4 --tokens 8 --seconds 0.2"
        shown = cli(f"validate {asked} --patience {0.5 if fault == 'hangs' else 60}", 2)
    assert shown.out == ""
    assert [words in line for line in shown.err.splitlines() if line.startswith("specopt: ")] == [
        True
    ]
    assert Path("validate.json").exists() == (fault == "later")


def _endless(said: bytes) -> Callable[..., Coroutine[Any, Any, None]]:
    """Return what streams the same forever."""

    async def stream(self: LawServer, writer: asyncio.StreamWriter, asked: object) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n")
        try:
            while not writer.is_closing():
                writer.write(said)
                await asyncio.sleep(0.02)
        finally:
            writer.transport.abort()  # what nobody reads any more

    return stream


CUT = r"2 of 2 requests failed, .*/v1/completions: no answer within 0.2 s"


@pytest.mark.parametrize(
    ("said", "patience", "words"),
    [
        (b": keep-alive\n\n", 0.2, CUT),
        (b'data: {"choices": [{"text": "a"}]}\n\n', 0.2, CUT),
        (b"a line without an end", 0.2, CUT),
        (b"x" * 100, 60.0, "expected lines of fewer than 1,000 bytes"),
    ],
)
def test_an_answer_without_an_end_is_cut(
    said: bytes, patience: float, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tests that a request has a time limit, whatever the server keeps sending, and that a line
    without an end is an error long before it fills the memory.
    """
    monkeypatch.setattr(LawServer, "stream", _endless(said))
    monkeypatch.setattr("specopt.measuring.client.MAX_LINE_BYTES", 1000)
    with serving(QUICK, None) as url:
        asked = Client(endpoint=url, model="stand-in", seconds=0.1, patience=patience)
        with pytest.raises(ServerFailed, match=words):
            asked.run(1)


def test_a_head_without_an_end_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests that the time limit holds for other requests, and before the answer begins."""

    async def drip(self: LawServer, reader: object, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(asyncio.CancelledError):
            writer.write(b"HTTP/1.1 200 OK\r\n")
            await _endless(b"x")(self, writer, None)
        writer.close()

    monkeypatch.setattr(LawServer, "answer", drip)
    with (
        serving(QUICK, None) as url,
        pytest.raises(ServerFailed, match=r"no answer within 0.2 s"),
    ):
        Client(endpoint=url, patience=0.2).models()


@pytest.fixture
def refusing(monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    """Let a server refuse requests: the times that it does, by prompt."""
    stream, left = LawServer.stream, {"once": 1, "twice": 2}

    async def some(self: LawServer, writer: asyncio.StreamWriter, asked: dict[str, object]) -> None:
        prompt = str(asked["prompt"])
        if left.get(prompt, 0) > 0:
            left[prompt] -= 1
            self.plain(writer, "overloaded", "503 Service Unavailable")
        else:
            await stream(self, writer, asked)

    monkeypatch.setattr(LawServer, "stream", some)
    return left


@pytest.mark.parametrize(("share", "failed"), [(0.1, 1), (0.09, None), (0.0, None)])
def test_a_share_of_the_requests_may_fail(
    share: float, failed: int | None, refusing: dict[str, int]
) -> None:
    """Tests that a request is tried twice, that failed ones are counted, and that more than the
    share end a load.
    """
    prompts = ("a", "once", "twice", "b", "c", "d", "e", "f", "g", "h")
    with serving(Law(0.002, 0.0, 0.0, 0.5), None) as url:
        asked = Client(endpoint=url, prompts=prompts, max_tokens=(2,), requests=10, failures=share)
        if failed is None:
            with pytest.raises(
                ServerFailed,
                match=r"at concurrency 1: 1 of \d+ requests failed, the first with: .* 503",
            ):
                asked.run(1)
        else:
            load = asked.run(1)
            assert (load.requests, load.failed) == (10, failed)
            assert refusing == {"once": 0, "twice": 0}


def test_failed_requests_are_reported(refusing: dict[str, int], cli: CommandLine) -> None:
    """Tests that the share that failed is said while loading, in the text, and in the JSON with its
    notes.
    """
    Path("prompts.txt").write_text("a\ntwice\nb\n")
    with serving(Law(0.002, 0.0, 0.0, 0.5), None) as url:
        asked = (
            f"sweep.csv --endpoint {url} --loads 1 --prompts prompts.txt --tokens 2"
            " --requests 3 --failures 0.4"
        )
        shown = cli(f"validate {asked}")
        assert "tokens/s, 1 of 3 requests failed\n" in shown.err
        assert "1 of 3 requests failed." in shown.out
        data = cli(f"validate {asked} --json").json
    assert [(row["requests"], row["failed"]) for row in data["loads"]] == [(3, 1)]
    [note] = data["notes"]
    assert note.startswith("concurrency 1: ") and note.endswith(" tokens/s, 1 of 3 requests failed")


def test_a_server_that_dies_is_left_alone(refusing: dict[str, int]) -> None:
    """Tests that a load ends long before its time where every request fails."""
    refusing["a"] = 1000
    failed = pytest.raises(ServerFailed, match=r"([34]) of \1 requests failed")
    with serving(Law(0.002, 0.0, 0.0, 0.5), None) as url, failed:
        Client(endpoint=url, prompts=("a",), seconds=60.0).run(2)
    assert refusing["a"] >= 1000 - 2 * 4


@pytest.mark.parametrize("usage", ["many", -5, 10**400, float("nan"), float("inf")])
def test_a_usage_that_is_none_is_one_line(usage: object, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests that tokens which cannot have come are a failure of the server."""
    event = LawServer.event

    def other(self: LawServer, writer: Any, data: dict[str, object]) -> None:
        changed = {"usage": {"completion_tokens": usage}}
        event(self, writer, data if data["usage"] is None else changed)

    monkeypatch.setattr(LawServer, "event", other)
    with (
        serving(QUICK, None) as url,
        pytest.raises(ServerFailed, match="/v1/completions"),
    ):
        Client(endpoint=url, seconds=0.1, max_tokens=(2,)).run(1)


@pytest.mark.parametrize(
    "given",
    [
        {"endpoint": "http://[::"},
        {"endpoint": "http://127.0.0.1:99999"},
        {"patience": 0.0},
        {"requests": 0},
        {"failures": 1.5},
    ],
)
def test_no_client_asks_what_cannot_be_asked(given: dict[str, Any]) -> None:
    """Tests that an address without a server, and no patience at all, are refused."""
    with pytest.raises(
        InvalidInput, match=r"endpoint: expected an address|(patience|requests|failures): expected"
    ):
        Client(**{"endpoint": "http://127.0.0.1:8000", **given})


def test_no_server_is_one_line(cli: CommandLine) -> None:
    """Tests that an address at which nothing answers is said."""
    assert (
        "http://127.0.0.1:1/v1/models: Connection refused"
        in cli("validate sweep.csv --endpoint http://127.0.0.1:1", 2).err
    )


# ---------------------------------------------------------------------------- without a server


class _Played:
    """What `Client` does, at the law's pace: `left` loads, then Ctrl-C."""

    __signature__ = inspect.signature(Client)
    left = 100
    positions: tuple[float, ...] = ()

    def __init__(self, **given: Any) -> None:
        self.given, self.max_tokens = given, given["max_tokens"]
        self.prompts, self.seconds, self.endpoint = (
            given["prompts"],
            given["seconds"],
            given["endpoint"],
        )
        self.requests, self.patience = given["requests"], given["patience"]

    def models(self) -> list[str]:
        return ["stand-in"]

    def counted(self, before: Sequence[float] = ()) -> tuple[float, ...]:
        return _Played.positions

    def run(self, concurrency: int) -> Load:
        if not _Played.left:
            raise KeyboardInterrupt
        _Played.left -= 1
        return Load(TRUE.speed(concurrency, 2), 0.1, TRUE.tokens(2), 0.01)


@pytest.fixture
def played(monkeypatch: pytest.MonkeyPatch) -> type[_Played]:
    """Return the client that is taken in the place of the real one."""
    monkeypatch.setattr(client, "Client", _Played)
    monkeypatch.setattr(_Played, "left", 100)
    monkeypatch.setattr(_Played, "positions", ())
    return _Played


def test_ctrl_c_keeps_what_was_measured(played: type[_Played], cli: CommandLine) -> None:
    """Tests that what was measured is shown, written and gone on from; nothing is measured
    twice.
    """
    played.left = 2
    shown = cli("validate sweep.csv --draft-length 2 --json -o corrected.csv", 130)
    assert [row["concurrency"] for row in shown.json["loads"]] == [1, 2]
    assert "validate.json contains 2 loads" in shown.err
    assert read_sweeps(["corrected.csv"]).draft_lengths == (1, 2, 3)
    played.left = 3
    assert len(cli("validate sweep.csv --draft-length 2 --json").json["loads"]) == len(LOADS)


@pytest.mark.parametrize(
    ("record", "words"),
    [
        (None, "expected loads with the settings any model, own, 7 s, prompts"),
        ("{}", "settings: required field is missing"),
        ("[1]", "validate.json"),
        ('{"settings": "", "loads": [{"concurrency": "1"}]}', "loads[0].concurrency"),
    ],
)
def test_other_records_are_refused(
    record: str | None, words: str, played: type[_Played], cli: CommandLine
) -> None:
    """Tests that a record of other settings, or a file that is none, is refused in one line."""
    if record is None:
        cli("validate sweep.csv --draft-length 2")
    else:
        Path("validate.json").write_text(record)
    assert words in cli("validate sweep.csv --draft-length 2 --seconds 7", 2).err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (
            "sweep.csv --load-generator curl",
            "--load-generator: expected own, guidellm or vllm, got 'curl'",
        ),
        ("sweep.csv --load-generator guidellm", "run `pip install guidellm`"),
        (
            "sweep.csv --loads 0,1 --draft-length 2",
            "--loads: expected an integer from 1 to 4,096, got 0",
        ),
        (
            "sweep.csv --loads 9999 --draft-length 2",
            "--loads: expected an integer from 1 to 4,096, got 9999",
        ),
        ("sweep.csv --draft-length two", "--draft-length: expected integers"),
        ("sweep.csv -o sweep.csv", "would overwrite the input"),
        ("several.csv", "expected one drafter, mode, workload and context"),
        ("absent.csv", "absent.csv"),
    ],
)
def test_what_cannot_be_is_refused(
    arguments: str,
    words: str,
    played: type[_Played],
    cli: CommandLine,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Tests that wrong arguments are named before anything is measured."""
    monkeypatch.setenv("PATH", "")
    rows = [
        "concurrency,draft_length,output_tokens_per_second,drafter",
        "1,none,9,",
        "1,1,10,a",
        "1,1,11,b",
    ]
    Path("several.csv").write_text("\n".join(rows) + "\n")
    assert words in cli(f"validate {arguments}", 2).err
    assert not Path("validate.json").exists()


PROGRAM = """#!{python}
import json, sys
words = sys.argv[1:]
open("called.json", "w").write(json.dumps(words))
if "--nothing" in words:
    sys.exit()
if "vllm" in sys.argv[0]:
    path = words[words.index("--result-dir") + 1] + "/result.json"
    asked = words[words.index("--dataset-path") + 1]
else:
    path, asked = (json.loads(words[words.index(at) + 1])["path"] for at in ("--output", "--data"))
open("asked.jsonl", "w").write(open(asked).read())
open(path, "w").write(json.dumps({result}))
if "--fail" in words:
    sys.exit("no tokenizer of that name")
"""
RESULTS = {
    "vllm": {
        "output_throughput": 50.0,
        "max_concurrency": 4,
        "model_id": "m",
        "failed": 0,
        "completed": 9,
        "spec_decode_acceptance_length": 2.5,
    },
    "guidellm": {
        "benchmarks": [
            {
                "config": {"strategy": {"type_": "concurrent", "streams": 4}},
                "metrics": {
                    "output_tokens_per_second": {"successful": {"mean": 50.0}},
                    "request_totals": {"errored": 0},
                },
            }
        ]
    },
}
"""What the programs write, as far as it is read."""


@pytest.mark.nightly
@pytest.mark.parametrize("name", RESULTS)
def test_other_load_generators_are_called(
    name: str,
    played: type[_Played],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    cli: CommandLine,
) -> None:
    """Tests that a program on PATH gets prompts, load and address, its file is read, and its
    failure is one line.
    """
    program = tmp_path / "bin" / name
    program.parent.mkdir()
    program.write_text(PROGRAM.format(python=sys.executable, result=RESULTS[name]))
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", str(program.parent), prepend=os.pathsep)
    asked = "sweep.csv --loads 4 --draft-length 3 --tokens 32 --seconds 5 --json"
    generator = f"--load-generator \"{name} --more 'than one'\""
    [row] = cli(f"validate {asked} {generator} --endpoint http://host:1/v1").json["loads"]
    assert row["measured"] == 50.0
    words = json.loads(Path("called.json").read_text())
    assert words[-2:] == ["--more", "than one"]
    if name == "vllm":
        assert [
            words[words.index(at) + 1] for at in ("--base-url", "--model", "--max-concurrency")
        ] == ["http://host:1", "stand-in", "4"]
    else:
        given = {
            at: json.loads(words[words.index(f"--{at}") + 1])
            for at in ("backend", "profile", "constraint")
        }
        assert (given["backend"]["target"], given["backend"]["model"]) == (
            "http://host:1",
            "stand-in",
        )
        assert (given["profile"]["streams"], given["constraint"]["seconds"]) == (4, 5.0)
    lines = [json.loads(line) for line in Path("asked.jsonl").read_text().splitlines()]
    assert len(lines) == np.ceil(BELIEVED.speed(4, 3) * 5 / 32)
    assert lines[0]["output_tokens_count"] == 32
    Path("validate.json").unlink()
    for word, said in (
        ("--fail", "1; it last printed: no tokenizer of that name"),
        ("--nothing", "0; it last printed: nothing"),
    ):
        assert (
            f"at concurrency 4: {name} ended with status {said}"
            in cli(f"validate {asked} --load-generator '{name} {word}'", 2).err
        )


# ---------------------------------------------------------------------------- corrections


def test_runtimes_are_corrected() -> None:
    """Tests that passes, overhead and the cost of 0 drafts are corrected as far as withheld loads
    tell, in any form.
    """
    rates = PositionAcceptance.constant(TRUE.rate)
    sizes = [(b, n) for b in (1, 4, 16) for n in (1, 2, 4)]
    table = {
        "batch": [b for b, _ in sizes],
        "new_tokens": [n for _, n in sizes],
        "seconds": [BELIEVED.of_pass + BELIEVED.of_token * b * n for b, n in sizes],
        "spread": [0.001 for _ in sizes],
    }
    line = {"seconds_per_token": BELIEVED.of_token, "overhead_seconds": BELIEVED.of_pass}
    for verify in (line, {"table": table}):
        data = {
            "draft": {"seconds_per_token": 0.0, "overhead_seconds": BELIEVED.of_draft},
            "verify": verify,
        }
        believed = OfPasses(data, "runtimes", rates)
        assert believed.loads == ((1, 2, 4, 8, 16, 32, 64) if verify is line else (1, 2, 4, 8, 16))
        seen = _saw(TRUE, [(c, k) for c in (1, 4, 16) for k in (None, 0, 1, 3)])
        corrected = OfPasses(json.loads(believed.corrected(seen)), "corrected", rates)
        withheld = _saw(TRUE, [(c, k) for c in (2, 8) for k in (None, 0, 2)])
        assert report(believed, withheld)["median_error"] > 0.2
        assert report(corrected, withheld)["median_error"] <= MOST
        assert corrected.runtimes.zero_draft_cost == pytest.approx((TRUE.idle, TRUE.idle), abs=0.03)
        sources = {
            row["in"] for row in report(believed, seen)["factors"] if row["draft_length"] == 0
        }
        assert sources == {"zero_draft_cost"}


@pytest.mark.parametrize(
    "true", [TRUE, Law(0.04, 0.0003, 0.002, 0.9), Law(0.015, 0.002, 0.006, 0.5)]
)
def test_sweeps_are_corrected(true: Law) -> None:
    """Tests that three loads with and without drafts correct the others, whether the server is
    faster or slower.
    """
    seen = _saw(true, [(c, k) for c in (1, 4, 16) for k in (None, 3)])
    believed = OfSweep(read_sweeps(["sweep.csv"]), "sweep.csv")
    Path("corrected.csv").write_text(believed.corrected(seen))
    corrected = OfSweep(read_sweeps(["corrected.csv"]), "corrected.csv")
    withheld = _saw(true, [(c, k) for c in (2, 8) for k in (None, 1, 2, 3)])
    assert report(believed, withheld)["median_error"] > 0.2
    assert report(corrected, withheld)["median_error"] <= 0.04
    again = report(corrected, seen)
    assert again["median_error"] < 1e-9
    assert again["order"] == {"pairs": 3, "separated": 3, "right": 3}


def test_runtimes_are_validated_by_the_command(played: type[_Played], cli: CommandLine) -> None:
    """Tests that --acceptance makes the source runtimes, and that the output is read as such
    again.
    """
    Path("runtimes.json").write_text(
        json.dumps(
            {
                name: {"seconds_per_token": 0.001, "overhead_seconds": 0.01}
                for name in ("draft", "verify")
            }
        )
    )
    Path("rates.json").write_text(json.dumps({"acceptance_rate": TRUE.rate}))
    asked = "--acceptance rates.json --draft-length 2 --loads 1,8 --json"
    before = cli(f"validate runtimes.json {asked} -o corrected.json").json["median_error"]
    assert cli(f"validate corrected.json {asked}").json["median_error"] < before
    assert set(read_json("corrected.json")) == {"draft", "verify", "step_overhead_seconds"}  # type: ignore[call-overload]


@pytest.mark.parametrize(
    ("counted", "length"),
    [
        ((100.0, 300.0, 9.0, 0.0, 0.0), 3),
        ((100.0, 260.0, 9.0, 0.0, 0.0), 3),
        ((100.0, 110.0, 9.0, 0.0, 0.0), 1),
        ((0.0, 0.0, 0.0, 0.0, 0.0), 0),
        ((), 3),
    ],
)
def test_the_draft_length_is_what_was_drafted(counted: tuple[float, ...], length: int) -> None:
    """Tests that an engine that drafts by a table counts with what it drafted, not with what it is
    configured with.
    """
    assert Seen(4, 3, Load(100.0, 0.1, 2.0, 0.01, counted)).place == (4, length)


@pytest.mark.parametrize("said", ["1", "none"])
def test_a_draft_length_that_the_server_denies_is_refused(
    said: str, played: type[_Played], cli: CommandLine
) -> None:
    """Tests that a server that counts two positions drafts two tokens, whatever the user says."""
    played.positions = (10.0, 20.0, 5.0, 2.0)
    words = f"--draft-length: expected 2, as in the counters of the server, got {said}"
    assert words in cli(f"validate sweep.csv --draft-length {said}", 2).err
    cli("validate sweep.csv --draft-length 2")


def test_a_server_without_counters_is_taken_not_to_draft(
    played: type[_Played], cli: CommandLine
) -> None:
    """Tests that it is said that no drafts are assumed, unless the user says the length or the
    server counts.
    """
    said = "http://127.0.0.1:8000/metrics has no counters of drafts"
    assert said in cli("validate sweep.csv --loads 1").err
    assert said not in cli("validate sweep.csv --loads 1 --draft-length 2").err
    played.positions = (10.0, 20.0, 5.0, 2.0)
    assert said not in cli("validate sweep.csv --loads 1").err


def test_what_tune_wrote_is_held_against_the_server(
    played: type[_Played], cli: CommandLine
) -> None:
    """Tests that the predictions of a tuned table are those of its sweep, and that other objects
    are no plan.
    """
    cli("tune sweep.csv -o plan.json")
    rows = cli("validate plan.json --draft-length 2 --loads 2,8 --json -o new.csv").json["loads"]
    assert [row["concurrency"] for row in rows] == [2, 8]
    assert [row["predicted"] for row in rows] == pytest.approx(
        [BELIEVED.speed(2, 2), BELIEVED.speed(8, 2)], rel=0.05
    )
    assert read_sweeps(["new.csv"]).draft_lengths[-1] == 3
    Path("plan.json").write_text(json.dumps({"predictions": [{"concurrency": "two"}]}))
    Path("validate.json").unlink()
    assert "plan.json.predictions" in cli("validate plan.json --draft-length 2", 2).err


def test_other_json_is_no_plan(played: type[_Played], cli: CommandLine) -> None:
    """Tests that lines of JSON are read as the sweep that they are, and that a plan must name its
    drafter.
    """
    rows = [
        {
            "max_concurrency": c,
            "output_throughput": 40.0 * c**0.7,
            "completed": 9,
            "accept_length": 2.0,
        }
        for c in (1, 2, 4)
    ]
    Path("runs.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert "draft_length: the file does not contain it" in cli("validate runs.jsonl", 2).err
    cli("validate runs.jsonl@2 --loads 2 --draft-length 2")
    several = [
        {"concurrency": 2, "draft_length": 2, "tokens_per_second": 9.0, "drafter": name}
        for name in "ab"
    ]
    Path("plan.json").write_text(json.dumps({"predictions": several, "option": None}))
    Path("validate.json").unlink()
    assert "expected one drafter" in cli("validate plan.json --draft-length 2", 2).err
    several[0] |= {"low": 8.0, "high": 11.0}
    Path("plan.json").write_text(json.dumps({"predictions": several, "option": {"drafter": "a"}}))
    [row] = cli("validate plan.json --draft-length 2 --json").json["loads"]
    assert (row["predicted"], row["band"]) == (pytest.approx(9.0), [8.0, 11.0])


def test_a_sweep_without_acceptance_is_corrected_by_its_output() -> None:
    """Tests that what a server accepts corrects nothing twice where the sweep says nothing of
    acceptance.
    """
    rows = [f"{c},{k},{BELIEVED.speed(c, k)}" for c in LOADS for k in LENGTHS if k]
    Path("bare.csv").write_text(
        "\n".join(["concurrency,draft_length,output_tokens_per_second", *rows]) + "\n"
    )
    prediction = OfSweep(read_sweeps(["bare.csv"]), "bare.csv")
    Path("new.csv").write_text(prediction.corrected(_saw(TRUE, [(1, 2), (4, 2), (16, 2)])))
    found = {one.point: one for one in read_sweeps(["new.csv"]).measurements}
    for load in (2, 8):
        one = found[Point(Condition(load), 2)]
        assert one.tokens_per_second == pytest.approx(TRUE.speed(load, 2), rel=0.05)
        assert one.acceptance_length is None


def test_a_load_has_so_many_requests() -> None:
    """Tests that a load ends after the requests allowed, one of each worker at least."""
    seen: list[int] = []

    class Counting(Client):
        def _request(self, model: str, number: int) -> tuple[float, float, float, int]:
            seen.append(number)
            return super()._request(model, number)

    with serving(Law(0.005, 0.0, 0.0, 0.5), None) as url:
        for requests, workers, most in ((5, 2, 5), (1, 3, 3)):
            seen.clear()
            Counting(endpoint=url, seconds=60.0, max_tokens=(4,), requests=requests).run(workers)
            assert sorted(seen) == list(range(most))


def test_a_wait_ends_with_the_first_token(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests that a load waits until its first token, and that its tokens count as spread over the
    whole answer.
    """
    now = [0.0]

    def lines() -> Iterator[bytes]:
        for at, data in (
            (2.0, {"choices": [{"text": "a"}]}),
            (8.0, {"choices": [{"text": "b"}]}),
            (10.0, {"choices": [], "usage": {"completion_tokens": 4}}),
        ):
            now[0] = at
            yield b"data: " + json.dumps(data).encode()

    answer: Any = MagicMock(status=200)
    answer.read.return_value = b""  # no counters
    said = lines()
    answer.readline.side_effect = lambda most: next(said, b"")
    connection = MagicMock()
    connection.getresponse.return_value = answer
    monkeypatch.setattr("http.client.HTTPConnection", lambda *_, **__: connection)
    monkeypatch.setattr(client, "time", SimpleNamespace(monotonic=lambda: now[0]))
    load = Client(endpoint="http://127.0.0.1:8000", model="m", seconds=1.0).run(1)
    assert load.first_token_seconds == 2.0
    assert load.tokens_per_second == pytest.approx(4 / 10.0)


def test_a_server_without_models_or_with_pages_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests that no model, HTML and JSON of another shape are said in the words of the API."""
    for said, words in (
        ('{"data": []}', "expected a model, got none"),
        ("<html>", "expected JSON in the format of OpenAI's API"),
        ("[1]", "expected JSON in the format of OpenAI's API"),
    ):
        answer = MagicMock(status=200)
        answer.read.return_value = said.encode()
        connection = MagicMock()
        connection.getresponse.return_value = answer
        monkeypatch.setattr(
            "http.client.HTTPConnection", lambda *_, connection=connection, **__: connection
        )
        with pytest.raises(ServerFailed, match=words):
            Client(endpoint="http://127.0.0.1:8000").models()


def test_counters_that_go_down_are_named(
    played: type[_Played], cli: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tests that a server that was started anew during a load is not taken for one that drafts less
    than nothing.
    """
    monkeypatch.setattr(
        played, "run", lambda self, concurrency: Load(9.0, 0.1, 2.0, 0.0, (-5.0, -5.0, -1.0))
    )
    assert (
        "at concurrency 1: the counters decreased"
        in cli("validate sweep.csv --draft-length 1", 2).err
    )
    assert not Path("validate.json").exists()


def test_the_client_stays_small() -> None:
    """Tests that the client is a page that one reads."""
    assert tokens_of(Path(client.__file__).read_text()) <= 1700
    assert Client(endpoint="http://x").max_tokens == (256,)
