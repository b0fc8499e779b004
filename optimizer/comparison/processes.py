"""Execution of a comparison's cells in worker processes, locally or on other machines.

A worker is a process that answers requests over a pipe. It is started for the first request and
reused until it is killed.
"""

from __future__ import annotations

import atexit
import contextlib
import datetime
import os
import platform
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import contextmanager
from multiprocessing import Pipe
from pathlib import Path
from typing import Any, ClassVar

from specopt.comparison.cell import FAILED, Cell, Record
from specopt.models.errors import InvalidInput
from specopt.models.extras import library

ONE_THREAD = dict.fromkeys(
    ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"), "1"
)
"""Environment variables that restrict the libraries of a worker to one thread."""

START_SECONDS = 600.0
"""Time limit for starting a worker, in seconds. It includes the time for kernel compilation,
which is needed only once per machine.
"""

GRACE_SECONDS = 5.0
"""Time by which a method may exceed its time limit before it is killed, in seconds."""

Submit = Callable[[Cell], "Future[Record]"]


class TimedOut(Exception):
    """Exception for a worker that did not answer in time and was killed."""


class Crashed(Exception):
    """Exception for a worker process that ended without sending a response."""


class Worker:
    """Handle for a worker process, which runs `specopt.comparison.worker.serve`."""

    command: ClassVar[tuple[str, ...]] = (sys.executable, "-P", "-m", "specopt.comparison.worker")
    """Command line that starts the process. The descriptor of the worker's pipe end is appended."""

    def __init__(self) -> None:
        self.process: subprocess.Popen[bytes] | None = None
        self.ended = False  # if set, no thread may start the process again
        self.sources: dict[str, dict[str, str]] = {}  # loaded by the process, by method
        self._open = contextlib.ExitStack()

    def ask(self, request: Any, seconds: float | None) -> Any:
        """Send a request to the process and return the response.

        Parameters
        ----------
        request
            Any object that can be pickled and that the process accepts as a request.
        seconds
            Time limit for the response, in seconds, counted from the moment when the process is
            ready. None for no limit.

        Raises
        ------
        TimedOut
            If the process did not answer in time. The next request starts a new process.
        Crashed
            If the process ended. The next request starts a new process.
        """
        if self.process is None or self.process.poll() is not None:
            self._start()
        try:
            self._pipe.send(request)
            # the first answer reports that the process is ready and that all kernels are compiled
            for allowed in (START_SECONDS, seconds):
                if not self._pipe.poll(allowed):
                    raise TimedOut
                answer = self._pipe.recv()
            return answer
        except (EOFError, OSError):
            raise Crashed(self._how_it_ended()) from None
        except BaseException:
            self.close()
            raise

    def kill(self) -> None:
        """Kill the process and its children.

        A thread that is waiting for a response from the process receives an exception.
        """
        if (process := self.process) is not None:
            with contextlib.suppress(OSError):
                os.killpg(process.pid, signal.SIGKILL)

    def close(self) -> None:
        """Kill the process if it is running, and wait until it has ended."""
        self.kill()
        if self.process is not None:
            self.process.wait()
            self.process = None
        self._open.close()

    def _start(self) -> None:
        self.close()
        self._errors = self._open.enter_context(tempfile.TemporaryFile())  # noqa: SIM115 - open as long as the process
        self._pipe, theirs = Pipe()
        self._open.enter_context(self._pipe)
        with theirs:
            self.process = subprocess.Popen(
                (*self.command, str(theirs.fileno())),
                stdin=subprocess.DEVNULL,
                stdout=self._errors,
                stderr=self._errors,
                pass_fds=(theirs.fileno(),),
                env={**os.environ, **ONE_THREAD},
                # the parent handles Ctrl-C; with a separate session, the process group can be
                # killed
                start_new_session=True,
            )
        if self.ended:
            self.kill()

    def _how_it_ended(self) -> str:
        assert self.process is not None, "it was started before it was asked"
        code = self.process.wait()
        self._errors.seek(0)
        last = self._errors.read()[-2000:].decode(errors="replace").strip().splitlines()[-1:]
        how = f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
        return f"the process ended by {how}{': ' + last[0] if last else ''}"


class Workers:
    """A pool of workers shared by several threads.

    The pool grows to the largest number of threads that wait for a response at the same time.
    """

    def __init__(self) -> None:
        self._all: list[Worker] = []
        self._idle: list[Worker] = []
        self._ended = False
        self._lock = threading.Lock()

    @contextmanager
    def one(self) -> Iterator[Worker]:
        """Provide a worker to the calling thread for the duration of a `with` block.

        After `kill`, a process that such a worker starts is killed at once.
        """
        with self._lock:
            if not self._idle:
                self._idle.append(Worker())
                self._all.append(self._idle[-1])
            worker = self._idle.pop()
            worker.ended = self._ended
        try:
            yield worker
        finally:
            self._idle.append(worker)

    def kill(self) -> None:
        """Kill all processes. Threads that are waiting for a response receive an exception."""
        with self._lock:
            self._ended = True
            for worker in self._all:
                worker.ended = True
                worker.kill()

    def close(self) -> None:
        """Kill all processes and wait until they have ended.

        When this method is called, no thread may be waiting for a response.
        """
        self.kill()
        for worker in self._all:
            worker.close()


_shared = Workers()
"""Workers for the cells that an executor runs in this process."""

atexit.register(_shared.close)


def run_cell(
    cell: Cell, grace_seconds: float = GRACE_SECONDS, workers: Workers | None = None
) -> Record:
    """Run a cell in a worker process with one thread, and return its record.

    If the run fails, the record contains the reason. The worker is killed if the solve takes longer
    than 1.05 times the time limit plus the grace period.
    """
    started = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    limit = None if cell.time_limit is None else 1.05 * cell.time_limit + grace_seconds
    path = [str(Path(folder).absolute()) for folder in sys.path]
    begun = time.monotonic()
    try:
        with (workers or _shared).one() as worker:
            if worker.sources.setdefault(cell.pickled, cell.sources) != cell.sources:
                worker.close()  # its process has loaded code that was edited since then
                worker.sources = {cell.pickled: cell.sources}
            found = worker.ask((cell, path), limit)
    except TimedOut:
        ignored = f"it ignored its time limit of {cell.time_limit:g} s"
        found = {"error": f"the process was killed {limit:.4g} s after its start: {ignored}"}
    except Crashed as crash:
        found = {"error": str(crash)}
    found |= {"wall_seconds": time.monotonic() - begun, "started": started}
    return Record.of(cell, **{"status": FAILED, "host": platform.node(), **found})


@contextmanager
def submitting(
    executor: Executor | str, jobs: int | None, grace_seconds: float
) -> Iterator[Submit]:
    """Open an executor and yield a function that submits a cell to it.

    The executor is closed at the end of the `with` block, unless the caller provided it.

    Parameters
    ----------
    executor
        Executor object or name of an executor. The name ``local`` selects worker processes on this
        machine. ``dask://HOST:PORT`` selects the Dask cluster with this scheduler, and ``ray``
        selects the Ray cluster at ``RAY_ADDRESS`` or on this machine.
    jobs
        Number of cells that ``local`` runs in parallel; None for the number of processors.
    grace_seconds
        Time by which a method may exceed its time limit before it is killed, in seconds.

    Raises
    ------
    InvalidInput
        If the executor is unknown, or if no scheduler answers at its address.
    MissingDependency
        If Dask or Ray is not installed.
    """
    if executor == "local":
        workers = Workers()  # not shared with other comparisons in this process
        threads = ThreadPoolExecutor(jobs or os.cpu_count() or 1, "specopt-compare")
        try:
            yield lambda cell: threads.submit(run_cell, cell, grace_seconds, workers)
        finally:
            threads.shutdown(wait=False, cancel_futures=True)
            workers.kill()
            threads.shutdown(wait=True)
            workers.close()
    elif executor == "ray":
        ray = library("ray", "ray needs Ray; run pip install 'specopt[ray]'")
        with contextlib.ExitStack() as stack:
            if not ray.is_initialized():
                address = os.environ.get("RAY_ADDRESS")
                ray.init(address=address, log_to_driver=False, include_dashboard=False)
                stack.callback(ray.shutdown)
            remote = ray.remote(num_cpus=1)(run_cell).remote
            yield lambda cell: remote(cell, grace_seconds).future()
    elif isinstance(executor, str):
        scheme, _, address = executor.partition("://")
        if scheme != "dask":
            raise InvalidInput(
                f"executor: expected local, dask://HOST:PORT or ray, got {executor!r}"
            )
        with _dask(address) as cluster:
            yield lambda cell: cluster.submit(run_cell, cell, grace_seconds)
    else:
        yield lambda cell: executor.submit(run_cell, cell, grace_seconds)


@contextmanager
def _dask(address: str) -> Iterator[Executor]:
    distributed = library("distributed", "dask:// needs Dask; run pip install 'specopt[dask]'")
    host, _, port = address.rpartition(":")
    if not (host and port.isdecimal()):
        raise InvalidInput(f"executor: expected dask://HOST:PORT, got 'dask://{address}'")
    open_client: Any = distributed.Client
    try:
        client = open_client(f"tcp://{address}", timeout=10, set_as_default=False)
    except (OSError, ValueError) as error:
        raise InvalidInput(
            f"executor: no Dask scheduler answers at {address} ({error or type(error).__name__})"
        ) from None
    with contextlib.closing(client):
        yield client.get_executor(pure=False)
