"""A process that solves cells, as seen from its parent: asked, waited for, and killed when it overstays."""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import signal
import subprocess
import sys
import tempfile
import time
from typing import IO, Any, ClassVar

ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")
START_SECONDS = 600.0
"""For starting and for building kernels, which happens once per machine."""


class Overstayed(Exception):
    """A child that did not answer in time; it has been killed."""


class Crashed(Exception):
    """A child that ended without an answer."""


class Child:
    """One worker process; it is started when first asked."""

    command: ClassVar[tuple[str, ...]] = (sys.executable, "-P", "-m", "specopt.comparison.worker")

    def __init__(self) -> None:
        self.process: subprocess.Popen[bytes] | None = None
        self.errors: IO[bytes] | None = None
        self.ended = False  # for good: a thread that is about to start the process must not
        self.sources: dict[str, dict[str, str]] = {}  # that it has loaded, by method
        self._rest = b""

    def ask(self, request: dict[str, Any], seconds: float | None) -> dict[str, Any]:
        """Return the answer to a request.

        Parameters
        ----------
        request
            What the worker understands.
        seconds
            When to kill it, counted from when it is ready; None: never.

        Raises
        ------
        Overstayed, Crashed
            Afterwards a new process is started for the next request.
        """
        if self.process is None or self.process.poll() is not None:
            self._start()
        assert self.process is not None and self.process.stdin is not None
        try:
            self.process.stdin.write(json.dumps(request).encode() + b"\n")
            self.process.stdin.flush()
            self._line(START_SECONDS)  # ready: whatever had to be built is built
            return dict(json.loads(self._line(seconds)))
        except BrokenPipeError:
            raise self._crash() from None
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Kill the process, if there is one."""
        process, self.process = self.process, None
        if process is not None:
            self.kill(process)
            process.wait()
            for pipe in (process.stdin, process.stdout):
                if pipe is not None:
                    with contextlib.suppress(OSError):
                        pipe.close()
        if self.errors is not None:
            self.errors.close()
            self.errors = None

    @staticmethod
    def kill(process: subprocess.Popen[bytes]) -> None:
        """Kill a worker and whatever it has started."""
        with contextlib.suppress(OSError):
            os.killpg(process.pid, signal.SIGKILL)

    def _start(self) -> None:
        self.close()
        self._rest = b""
        self.errors = tempfile.TemporaryFile()  # noqa: SIM115 - as long as the process lives
        self.process = subprocess.Popen(
            self.command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.errors,
            env={**os.environ, **ONE_THREAD},
            start_new_session=True,  # Ctrl-C is the parent's to handle; and a group of its own to kill
        )
        if self.ended:
            self.kill(self.process)

    def _line(self, seconds: float | None) -> bytes:
        assert self.process is not None and self.process.stdout is not None
        deadline = None if seconds is None else time.monotonic() + seconds
        with selectors.DefaultSelector() as selector:
            selector.register(self.process.stdout, selectors.EVENT_READ)
            while b"\n" not in self._rest:
                left = None if deadline is None else deadline - time.monotonic()
                if left is not None and left <= 0.0:
                    raise Overstayed
                if not selector.select(left):
                    continue
                read = os.read(self.process.stdout.fileno(), 1 << 16)
                if not read:
                    raise self._crash()
                self._rest += read
        line, _, self._rest = self._rest.partition(b"\n")
        return line

    def _crash(self) -> Crashed:
        assert self.process is not None
        code = self.process.wait()
        if self.errors is not None:
            self.errors.seek(0)
            last = self.errors.read()[-2000:].decode(errors="replace").strip().splitlines()[-1:]
        else:
            last = []
        how = f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
        return Crashed(f"the process ended by {how}{': ' + last[0] if last else ''}")
