"""The clock of a solve, which counts the seconds of imports and compilation."""

from __future__ import annotations

import importlib
import threading
from types import ModuleType
from typing import Any

from specopt.solvers.clock import Clock
from specopt.solvers.kernels.compiling import meter, metered


class Compiler(Clock):
    """A clock that imports modules of kernels and libraries, and counts the seconds of imports and
    compilation as preparing.
    """

    def __init__(self, time_limit: float | None = None, started: float | None = None) -> None:
        super().__init__(time_limit, started)
        self._metered_before = meter.seconds

    @property
    def preparing_seconds(self) -> float:
        """Seconds that this thread has spent on imports and compilation since the clock started."""
        return meter.seconds - self._metered_before

    def load(self, module: str) -> Any:
        """Return the module of kernels KIND.MODULE, each of which is compiled when it is first
        called.

        Raises
        ------
        OutOfTime
            If the module is not imported in time.
        """
        kind, _, name = module.partition(".")
        return self.load_library(f"specopt.solvers.{kind}.kernels.{name}")

    def load_library(self, name: str) -> Any:
        """Import a module that takes long to import, without overrunning the time limit.

        Raises
        ------
        OutOfTime
            If the module is not ready in time.
        """
        if name in _ready:
            return _ready[name]
        self.check()
        loader = _loaders.get(name)
        if loader is None:
            loader = _loaders[name] = threading.Thread(target=_load, args=(name,), daemon=True)
            loader.start()
        with metered():
            while loader.is_alive():
                loader.join(min(0.1, self.remaining))
                self.check()
        if name not in _ready:
            _loaders.pop(name, None)
            return importlib.import_module(name)  # it failed in the thread: let the error show here
        return _ready[name]


_ready: dict[str, ModuleType] = {}
_loaders: dict[str, threading.Thread] = {}


def _load(name: str) -> None:
    try:
        _ready[name] = importlib.import_module(name)
    except BaseException:  # repeated, and shown, in the caller's thread
        return
