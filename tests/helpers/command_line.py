"""Commands as they are typed, run in this process."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from dataclasses import dataclass
from typing import Any

import pytest

from specopt.commands.cli import run


@dataclass(frozen=True)
class Printed:
    """What a command printed."""

    out: str
    err: str

    @property
    def json(self) -> Any:
        """Stdout as JSON: nothing else may be on it."""
        return json.loads(self.out)


@dataclass(frozen=True)
class CommandLine:
    """Runs commands in the test's folder."""

    capture: pytest.CaptureFixture[str]

    def __call__(self, line: str, code: int = 0) -> Printed:
        """Run a command, check its exit code, and return what it printed."""
        self.capture.readouterr()
        ended = run(shlex.split(line))
        printed = Printed(*self.capture.readouterr())
        assert ended == code, printed.err
        return printed

    def refuses(self, line: str, *words: str) -> None:
        """Check a refusal: exit code 2, nothing on stdout, one line on stderr with these words."""
        printed = self(line, 2)
        assert printed.out == ""
        assert printed.err.startswith("specopt: ") and printed.err.count("\n") == 1, printed.err
        for word in words:
            assert word in printed.err


def process(line: str, **options: Any) -> subprocess.Popen[str]:
    """Start a command as its own process."""
    command = [sys.executable, "-P", "-m", "specopt", *shlex.split(line)]
    return subprocess.Popen(command, stderr=subprocess.PIPE, text=True, **options)
