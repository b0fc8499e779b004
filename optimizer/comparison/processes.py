"""The processes of a comparison: workers, how cells reach them, and the executors that run cells
elsewhere.

A worker is a process that answers requests over a pipe. It is started with its first request and
stays for the next one, unless it had to be killed.
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
from specopt.models.errors import InvalidInput, MissingDependency

ONE_THREAD = dict.fromkeys(
    ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"), "1"
)
START_SECONDS = 600.0
"""Time allowed for starting a worker and for building kernels, which happens once per machine."""

GRACE_SECONDS = 5.0
"""Time beyond its limit after which a method that ignores the limit is killed."""

Submit = Callable[[Cell], "Future[Record]"]


class Overstayed(Exception):
    """A worker did not answer in time; it has been killed."""


class Crashed(Exception):
    """A worker ended without an answer."""


class Worker:
    """One process that answers requests; see `specopt.comparison.worker.serve` for its side."""

    command: ClassVar[tuple[str, ...]] = (sys.executable, "-P", "-m", "specopt.comparison.worker")
    """Command line of the process; the number of its end of the pipe is added."""

    def __init__(self) -> None:
        self.process: subprocess.Popen[bytes] | None = None
        self.ended = False  # for good: a thread that is about to start the process must not
        self.sources: dict[str, dict[str, str]] = {}  # that the process has loaded, by method
        self._open = contextlib.ExitStack()

    def ask(self, request: Any, seconds: float | None) -> Any:
        """Return the answer to a request.

        Parameters
        ----------
        request
            Any value that can be pickled and that the process understands.
        seconds
            Time until it is killed, counted from when it is ready; None: never.

        Raises
        ------
        Overstayed, Crashed
            Afterwards a new process is started for the next request.
        """
        if self.process is None or self.process.poll() is not None:
            self._start()
        try:
            self._pipe.send(request)
            for allowed in (
                START_SECONDS,
                seconds,
            ):  # first it says that it is ready: what must be built is built
                if not self._pipe.poll(allowed):
                    raise Overstayed
                answer = self._pipe.recv()
            return answer
        except (EOFError, OSError):
            raise Crashed(self._how_it_ended()) from None
        except BaseException:
            self.close()
            raise

    def kill(self) -> None:
        """Kill the process and whatever it has started; a thread that waits for an answer sees it
        end.
        """
        if (process := self.process) is not None:
            with contextlib.suppress(OSError):
                os.killpg(process.pid, signal.SIGKILL)

    def close(self) -> None:
        """Kill the process, if there is one, and wait for its end."""
        self.kill()
        if self.process is not None:
            self.process.wait()
            self.process = None
        self._open.close()

    def _start(self) -> None:
        self.close()
        self._errors = self._open.enter_context(tempfile.TemporaryFile())  # noqa: SIM115 - as long as the process
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
                # Ctrl-C is the parent's to handle; and a group of its own to kill
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
    """Workers that threads share: as many as there are threads that ask at a time."""

    def __init__(self) -> None:
        self._all: list[Worker] = []
        self._idle: list[Worker] = []
        self._ended = False
        self._lock = threading.Lock()

    @contextmanager
    def one(self) -> Iterator[Worker]:
        """Lend a worker; one that is lent after the end is ended, too."""
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
        """Kill the processes; a thread that waits for one sees it end."""
        with self._lock:
            self._ended = True
            for worker in self._all:
                worker.ended = True
                worker.kill()

    def close(self) -> None:
        """Kill the processes and wait for their end; no thread may wait for one any more."""
        self.kill()
        for worker in self._all:
            worker.close()


_shared = Workers()
"""Workers of cells that executors of others run in this process."""

atexit.register(_shared.close)


def run_cell(
    cell: Cell, grace_seconds: float = GRACE_SECONDS, workers: Workers | None = None
) -> Record:
    """Solve a cell in a worker process on one thread, and return its record whatever happens.

    The worker is killed if it takes longer than 1.05 times the time limit and the grace.
    """
    started = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    limit = None if cell.time_limit is None else 1.05 * cell.time_limit + grace_seconds
    path = [str(Path(folder).absolute()) for folder in sys.path]
    begun = time.monotonic()
    try:
        with (workers or _shared).one() as worker:
            if worker.sources.setdefault(cell.pickled, cell.sources) != cell.sources:
                worker.close()  # it has loaded what was edited since
                worker.sources = {cell.pickled: cell.sources}
            found = worker.ask((cell, path), limit)
    except Overstayed:
        found = {
            "error": (
                f"killed {limit:.4g} s after its start: it ignored its time limit of"
                f" {cell.time_limit:g} s"
            )
        }
    except Crashed as crash:
        found = {"error": str(crash)}
    common = {"wall_seconds": time.monotonic() - begun, "started": started}
    common["host"] = platform.node()
    return Record.of(cell, **{"status": FAILED, **found, **common})


@contextmanager
def submitting(
    executor: Executor | str, jobs: int | None, grace_seconds: float
) -> Iterator[Submit]:
    """Open an executor, give the function that hands it a cell, and close the executor in the end.

    Parameters
    ----------
    executor
        ``local``: worker processes on this machine; ``dask://HOST:PORT``: the scheduler of a Dask
        cluster; ``ray``: the Ray cluster of ``RAY_ADDRESS``, or this machine; or any executor,
        which stays open.
    jobs
        Cells at a time with ``local``; None: as many as there are processors.
    grace_seconds
        How long a method may overstay its limit before it is killed.

    Raises
    ------
    InvalidInput
        If there is no such executor, or no cluster answers.
    MissingDependency
        If the engine is not installed.
    """
    if executor == "local":
        with _local(jobs) as (threads, workers):
            yield lambda cell: threads.submit(run_cell, cell, grace_seconds, workers)
    elif executor == "ray":
        with _ray() as remote:
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
def _local(jobs: int | None) -> Iterator[tuple[Executor, Workers]]:
    workers = Workers()  # of this comparison alone: another one in this process keeps its own
    threads = ThreadPoolExecutor(jobs or os.cpu_count() or 1, thread_name_prefix="specopt-compare")
    try:
        yield threads, workers
    finally:
        threads.shutdown(wait=False, cancel_futures=True)
        workers.kill()
        threads.shutdown(wait=True)
        workers.close()


@contextmanager
def _dask(address: str) -> Iterator[Executor]:
    try:
        import distributed
    except ImportError:
        raise MissingDependency("dask:// needs Dask: pip install 'specopt[dask]'") from None
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


@contextmanager
def _ray() -> Iterator[Callable[..., Any]]:
    try:
        import ray
    except ImportError:
        raise MissingDependency("ray needs Ray: pip install 'specopt[ray]'") from None
    started = not ray.is_initialized()
    if started:
        ray.init(
            address=os.environ.get("RAY_ADDRESS"), log_to_driver=False, include_dashboard=False
        )
    try:
        yield ray.remote(num_cpus=1)(run_cell).remote
    finally:
        if started:
            ray.shutdown()
