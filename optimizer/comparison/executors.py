"""Where cells run: threads that each hold a worker process, or another engine's executor."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

from specopt.comparison.run import Workers
from specopt.models.errors import InvalidInput, MissingDependency

KNOWN = "local, dask://HOST:PORT or ray"


@contextmanager
def executor_of(name: str, jobs: int | None) -> Iterator[Executor]:
    """Open an executor by name, and close it in the end.

    Parameters
    ----------
    name
        ``local``: worker processes on this machine; ``dask://HOST:PORT``: the scheduler of a Dask cluster; ``ray``: the
        Ray cluster of ``RAY_ADDRESS``, or this machine.
    jobs
        Cells at a time, here; None: as many as there are processors.

    Raises
    ------
    InvalidInput
        If there is no such executor, or no cluster answers.
    MissingDependency
        If the engine is not installed.
    """
    if name == "local":
        with local_executor(jobs) as executor:
            yield executor
    elif name.startswith("dask://"):
        with _dask(name.removeprefix("dask://")) as executor:
            yield executor
    elif name == "ray":
        with _ray() as executor:
            yield executor
    else:
        raise InvalidInput(f"executor: expected {KNOWN}, got {name!r}")


@contextmanager
def local_executor(jobs: int | None = None) -> Iterator[Executor]:
    """Open threads that each hold a worker process; the processes end with them."""
    workers = Workers()  # of this executor alone: another comparison in this process keeps its own
    executor = ThreadPoolExecutor(
        max_workers=jobs or os.cpu_count() or 1, thread_name_prefix="specopt-compare", initializer=workers.adopt_thread
    )
    try:
        yield executor
    finally:
        executor.shutdown(wait=False, cancel_futures=True)
        workers.kill()
        executor.shutdown(wait=True)
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
    try:
        yield client.get_executor(pure=False)
    finally:
        client.close()


class RayExecutor(Executor):
    """A concurrent.futures executor over Ray tasks, each on one processor."""

    def __init__(self, ray: Any) -> None:
        self._ray = ray
        self._call = ray.remote(num_cpus=1)(_call)

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Run a function as a Ray task."""
        future: Future[Any] = self._call.remote(fn, args, kwargs).future()
        return future


@contextmanager
def _ray() -> Iterator[Executor]:
    try:
        import ray
    except ImportError:
        raise MissingDependency("ray needs Ray: pip install 'specopt[ray]'") from None
    started = not ray.is_initialized()
    if started:
        ray.init(address=os.environ.get("RAY_ADDRESS"), log_to_driver=False, include_dashboard=False)
    try:
        yield RayExecutor(ray)
    finally:
        if started:
            ray.shutdown()


def _call(fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return fn(*args, **kwargs)
