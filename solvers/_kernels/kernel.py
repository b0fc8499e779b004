"""How a kernel is declared, compiled and kept: what a call needs, when it needs it.

``@kernel("f8(f8[::1], i8)")`` declares a function that Python calls, with every signature it is called with;
``@helper`` one that only kernels call. Neither compiles at import: the first call of a kernel compiles it, or reads it
from the cache, for the signatures that it declares and for no other.

The cache belongs to this folder's sources as a whole, to Numba and to Python: an edit in any file here starts a new
one. So kernels may import kernels. It lies in ``NUMBA_CACHE_DIR``, else in the user's folder for caches, never beside
the sources: an installation may be read-only. Where neither can be written, kernels are compiled in every process.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import sys
import threading
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numba
from numba import njit
from numba.core import sigutils
from numba.core.caching import CompileResultCacheImpl, FunctionCache, NullCache, _CacheLocator
from numba.misc.appdirs import AppDirs

KEPT_SECONDS = 30 * 24 * 3600
"""Caches of other sources that nobody has written to for so long are removed."""

compiling: list[Callable[[str], object]] = []
"""Functions that are told the name of each kernel before it is compiled; the front door puts one here to show it."""

seconds = [0.0]
"""What compiling and reading the cache have taken in this process."""

_lock = threading.RLock()


def helper(function: Callable[..., Any]) -> Any:
    """Return a function that kernels call, compiled as part of them."""
    return _cached(njit(nogil=True, no_cfunc_wrapper=True)(function))


def kernel(*signatures: Any) -> Callable[[Callable[..., Any]], Any]:
    """Return a decorator for a function that Python calls with arguments of these signatures alone.

    A signature is Numba's, as a text or a value, with its return type; in a text ``const f8[::1]`` is a contiguous
    array that may be read-only, as problems hold theirs.
    """
    signatures = tuple(_readonly(signature) for signature in signatures)

    def declare(function: Callable[..., Any]) -> Any:
        dispatcher = _cached(njit(nogil=True, no_cfunc_wrapper=True)(function))
        dispatcher.declared = signatures

        def compile_declared(*arguments: Any, **named: Any) -> Any:
            prepare(dispatcher)
            return dispatcher

        dispatcher._compile_for_args = compile_declared  # what a call does that finds no compiled signature
        return dispatcher

    return declare


def is_ready(dispatcher: Any) -> bool:
    """Tell whether a kernel can be called without compiling."""
    return not dispatcher._can_compile


def is_cached(dispatcher: Any) -> bool:
    """Tell whether all signatures of a kernel lie in the cache, so that preparing it takes no time to speak of."""
    with _lock:
        return all(_in_cache(dispatcher, signature) for signature in dispatcher.declared)


def prepare(dispatcher: Any) -> None:
    """Compile every declared signature of a kernel, or read it from the cache."""
    with _lock:
        if is_ready(dispatcher):
            return
        started = time.perf_counter()
        if compiling and not is_cached(dispatcher):
            for tell in compiling:
                tell(f"{dispatcher.py_func.__module__.rpartition('.')[2]}.{dispatcher.py_func.__name__}")
        for signature in dispatcher.declared:
            arguments, returned = sigutils.normalize_signature(signature)
            dispatcher.compile(tuple(arguments))
            found = dispatcher.overloads[tuple(arguments)].signature.return_type
            assert found == returned, f"{dispatcher.py_func.__name__} returns {found}, declared is {returned}"
        dispatcher.disable_compile()
        del dispatcher._compile_for_args  # from now on other types are refused, as Numba does
        seconds[0] += time.perf_counter() - started


def _readonly(signature: Any) -> Any:
    if not isinstance(signature, str):
        return signature
    return re.sub(
        r"const (\w+)\[((?:: *, *)*)::1\]",
        lambda found: f"Array({found[1]}, {found[2].count(':') + 1}, 'C', readonly=True)",
        signature,
    )


def _in_cache(dispatcher: Any, signature: Any) -> bool:
    arguments, _ = sigutils.normalize_signature(signature)
    found = dispatcher._cache
    if isinstance(found, NullCache):
        return False
    key = found._index_key(tuple(arguments), dispatcher.targetctx.codegen())
    return key in found._cache_file._load_index()


def _cached(dispatcher: Any) -> Any:
    if folder() is not None:
        dispatcher._cache = _KernelCache(dispatcher.py_func)
    return dispatcher


class _Locator(_CacheLocator):  # type: ignore[misc]  # numba ships no types
    """Keeps what is compiled of these sources in one folder, whatever file a function is from."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._line = function.__code__.co_firstlineno

    def get_cache_path(self) -> str:
        """Return the folder."""
        return str(folder())

    def get_source_stamp(self) -> str:
        """Return what the sources are."""
        return digest()

    def get_disambiguator(self) -> str:
        """Return what tells functions of one name apart."""
        return str(self._line)

    @classmethod
    def from_function(cls, py_func: Callable[..., Any], py_file: str) -> _Locator:
        """Return the locator of a function."""
        return cls(py_func)


class _KernelCacheImpl(CompileResultCacheImpl):  # type: ignore[misc]
    _locator_classes = (_Locator,)


class _KernelCache(FunctionCache):  # type: ignore[misc]
    _impl_class = _KernelCacheImpl


@cache
def digest() -> str:
    """Return what the cache depends on, as a short name: all sources here, Numba and Python."""
    found = hashlib.sha256(f"{numba.__version__} {sys.version}".encode())
    for path in sorted(Path(__file__).parent.glob("*.py")):
        found.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return found.hexdigest()[:20]


@cache
def folder() -> Path | None:
    """Return the folder of the cache, made if it was missing; None if there is no place to write."""
    root = Path(numba.config.CACHE_DIR or AppDirs("specopt", False).user_cache_dir) / "specopt-kernels"
    found = root / digest()
    try:
        if not found.is_dir():
            found.mkdir(parents=True, exist_ok=True)
            _forget_old(root)
        return found if os.access(found, os.W_OK) else None
    except OSError:
        return None


def _forget_old(root: Path) -> None:
    for other in root.iterdir():
        if other.name != digest() and time.time() - other.stat().st_mtime > KEPT_SECONDS:
            shutil.rmtree(other, ignore_errors=True)
