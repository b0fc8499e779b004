"""Automatic measurement of an engine at all draft lengths that a tuner requests.

For each draft length, the engine is started, put under load and stopped. Each load is added to the
sweep as soon as it has been measured. After an interruption, the next run continues from the rows
in the file.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from specopt.console.streams import say
from specopt.instances.sweeps import read_sweeps
from specopt.measuring.client import Client
from specopt.models.errors import InvalidInput, ServerFailed
from specopt.models.load import name_of
from specopt.solvers.speculation_table.tuning.tuner import Tuner

PLACE = "{k}"
HEADER = "concurrency,draft_length,output_tokens_per_second,mean_acceptance_length\n"
_POLL = 0.2  # interval between two checks whether a server has started, in seconds
_LEAVE = 30.0  # time that a server is given to exit on its own, in seconds


def drive(
    command: str, sweep: Path, client: Client, tuner: Tuner, start_seconds: float = 900.0
) -> int:
    """Measure an engine until a tuner requests no more points.

    Return the number of measured loads.

    Parameters
    ----------
    command
        Command that starts the server. In it, {k} is replaced by the draft length, or by "none".
    sweep
        CSV file to which rows are added.
    client
        Client that generates the load.
    tuner
        Tuner that requests the points. It first receives the rows that are already in the file.
    start_seconds
        Maximum time for starting the server, in seconds.

    Raises
    ------
    InvalidInput
        If the command does not contain {k}.
    ServerFailed
        If the server does not start, or fails under a load. Earlier measurements remain in the
        sweep.
    """
    if PLACE not in command:
        raise InvalidInput(
            f"drive: expected a command with {PLACE}, the draft length, got {command!r}"
        )
    if sweep.exists():
        tuner.measurements += read_sweeps([sweep]).measurements
    measured = 0
    while points := tuner.ask():
        length = points[0].draft_length
        name = str(name_of(length))
        words = shlex.split(command.replace(PLACE, name))
        with serving(words, client, start_seconds, f"the server with draft length {name}"):
            while points and points[0].draft_length == length:
                concurrency = points[0].condition.concurrency
                load = client.run(concurrency)
                speed, accepted = load.tokens_per_second, None
                if length and load.acceptance_length is not None:
                    accepted = round(load.acceptance_length, 4)
                with sweep.open("a") as file:
                    file.write("" if file.tell() else HEADER)
                    cell = "" if accepted is None else f"{accepted:.4f}"
                    file.write(f"{concurrency},{name},{speed:.4f},{cell}\n")
                tuner.tell(points[0], speed, accepted)
                say(f"draft length {name}, concurrency {concurrency}: {load}")
                measured, points = measured + 1, tuner.ask()
    return measured


@contextmanager
def serving(
    words: Sequence[str], client: Client, start_seconds: float, name: str
) -> Iterator[None]:
    """Start a server with a command, and wait until the server responds.

    When the enclosed code ends, the server and all its child processes are stopped.

    Raises
    ------
    ServerFailed
        If the server does not start or fails. The message contains the server's name and the last
        line of its output.
    """
    with contextlib.suppress(ServerFailed):
        client.models()
        raise InvalidInput(
            f"endpoint: a server is already running at {client.endpoint}; stop it first"
        )
    with tempfile.TemporaryFile() as log:
        try:
            server = subprocess.Popen(
                words, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
            )
        except OSError as error:
            raise ServerFailed(f"drive: cannot start {words[0]!r}: {error.strerror}") from None
        try:
            deadline = time.monotonic() + start_seconds
            while server.poll() is None:
                with contextlib.suppress(ServerFailed):
                    client.models()
                    break
                if time.monotonic() > deadline:
                    raise ServerFailed(
                        f"no answer at {client.endpoint} within {start_seconds:g} s of its start"
                    )
                time.sleep(_POLL)
            else:
                raise ServerFailed(f"ended with status {server.returncode} before it answered")
            yield
        except ServerFailed as error:
            log.seek(0)
            said = log.read().decode(errors="replace").strip().splitlines()[-1:]
            last = f"; it last printed: {said[0][:300]}" if said else ""
            raise ServerFailed(f"{name}: {error}{last}") from None
        finally:
            _end(server)


def _end(server: subprocess.Popen[bytes]) -> None:
    """Stop a server and its child processes, first with SIGTERM and then with SIGKILL."""
    for kind in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(server.pid, kind)
        with contextlib.suppress(subprocess.TimeoutExpired):
            server.wait(_LEAVE)
