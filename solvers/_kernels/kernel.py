"""How a kernel is declared, compiled and kept: what a call needs, when it needs it.

``@kernel("f8(f8[::1], i8)")`` declares a function that Python calls, with every signature it is called with;
``@helper`` one that only kernels call. Neither compiles at import: the first call of a kernel compiles it, or reads it
from the cache, for the signatures that it declares and for no other. What travels together is one argument: a
`record`, or an array of `rows`.

The cache, see `cache.py`, belongs to this folder's sources as a whole. So kernels may import kernels. Where there is
none, kernels are compiled in every process.
"""

from __future__ import annotations

import re
import sys
import threading
from collections import namedtuple
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import numba
import numpy as np
from numba import njit, types
from numba.core import sigutils

from specopt.solvers._kernels.cache import folder
from specopt.solvers._kernels.compiling import announced, metered

try:
    from specopt.solvers._kernels import internals
except (ImportError, AttributeError):  # a Numba whose inner parts are others: all compiles, in more time
    internals = None  # type: ignore[assignment]

_DISABLED = numba.config.DISABLE_JIT
_lock = threading.RLock()
_named: dict[str, Any] = dict(vars(types))
"""What the names in signatures stand for: Numba's types, records and rows."""


@contextmanager
def _compiling() -> Iterator[None]:
    """Let Numba compile in the enclosed code, also where NUMBA_DISABLE_JIT is set: that is for the user's own code."""
    if not _DISABLED:
        yield
        return
    with _lock:
        numba.config.DISABLE_JIT = False
        try:
            yield
        finally:
            numba.config.DISABLE_JIT = _DISABLED


@_compiling()
def helper(function: Callable[..., Any], **options: Any) -> Any:
    """Return a function that kernels call, compiled as part of them."""
    return njit(function) if internals is None else internals.Helper(function, **options)


def inlined(function: Callable[..., Any]) -> Any:
    """Return a helper whose code is copied to every call of it: one so short that a call would cost more."""
    return helper(function, forceinline=True)


def kernel(*signatures: Any, nogil: bool = True) -> Callable[[Callable[..., Any]], Any]:
    """Return a decorator for a function that Python calls with arguments of these signatures alone.

    A signature is Numba's, as a text or a value, with its return type. In a text ``const f8[::1]`` is a contiguous
    array that may be read-only, as problems hold theirs; records and rows are called by their names. With `nogil` other
    threads of Python run on meanwhile, which costs a call of a microsecond a tenth of it.
    """
    signatures = tuple(_read(signature) for signature in signatures)

    def declare(function: Callable[..., Any]) -> Any:
        dispatcher = _cached(function, nogil=nogil, no_cfunc_wrapper=True)
        dispatcher.declared = signatures

        def compile_declared(*arguments: Any, **named: Any) -> Any:
            prepare(dispatcher)
            return dispatcher

        dispatcher._compile_for_args = compile_declared  # what a call does that finds no compiled signature
        return dispatcher

    return declare


def record(name: str, **fields: str) -> Any:
    """Return a class of named tuples that kernels take as one argument, each field of a type of its own."""
    module = sys._getframe(1).f_globals["__name__"]
    found = namedtuple(name, list(fields), module=module)  # type: ignore[misc]  # noqa: PYI024  (made from arguments)
    _name(name, types.BaseTuple.from_types(tuple(map(_read, fields.values())), found))
    return found


def rows(name: str, **fields: str) -> np.dtype[Any]:
    """Return the type of arrays whose entries have named numbers; a contiguous one is ``NAME[::1]`` in signatures."""
    found = np.dtype(list(fields.items()), align=True)
    _name(name, numba.from_dtype(found))
    return found


def _name(name: str, kind: Any) -> None:
    assert name not in _named, f"another type is called {name}"
    _named[name] = kind


def is_ready(dispatcher: Any) -> bool:
    """Return whether a kernel can be called without compiling."""
    return not dispatcher._can_compile


def is_cached(dispatcher: Any) -> bool:
    """Return whether all signatures of a kernel lie in the cache, so that preparing it takes no time to speak of."""
    return all(_in_cache(dispatcher, signature) for signature in dispatcher.declared)


def name_of(dispatcher: Any) -> str:
    """Return a kernel's name as MODULE:KERNEL, without what holds all kernels."""
    return f"{dispatcher.py_func.__module__.partition('kernels.')[2]}:{dispatcher.py_func.__name__}"


def prepare(dispatcher: Any) -> None:
    """Compile every declared signature of a kernel, or read it from the cache."""
    with metered(), _lock, _compiling():
        if is_ready(dispatcher):
            return
        with nullcontext() if is_cached(dispatcher) else announced(name_of(dispatcher).partition(":")[0]):
            for signature in dispatcher.declared:
                arguments, returned = sigutils.normalize_signature(signature)
                dispatcher.compile(tuple(arguments))
                found = dispatcher.overloads[tuple(arguments)].signature.return_type
                assert found == returned, f"{dispatcher.py_func.__name__} returns {found}, declared is {returned}"
        dispatcher.disable_compile()
        del dispatcher._compile_for_args  # from now on other types are refused, as Numba does


def _read(text: Any) -> Any:
    """Return the type, or the signature, that a text stands for."""
    if not isinstance(text, str):
        return text
    text = re.sub(
        r"const (\w+)\[((?:: *, *)*)::1\]",
        lambda found: f"Array({found[1]}, {found[2].count(':') + 1}, 'C', readonly=True)",
        text,
    )
    return eval(text, {}, _named)


def _in_cache(dispatcher: Any, signature: Any) -> bool:
    arguments, _ = sigutils.normalize_signature(signature)
    try:
        found = dispatcher._cache
        return found._index_key(tuple(arguments), dispatcher.targetctx.codegen()) in found._cache_file._load_index()
    except Exception:  # no cache, or whatever reading a damaged file may raise
        return False


@_compiling()
def _cached(function: Callable[..., Any], **options: Any) -> Any:
    if folder() is None:
        return njit(**options)(function)
    if internals is not None:
        dispatcher = njit(**options)(function)
        dispatcher._cache = internals.KernelCache(function)
        return dispatcher
    before, numba.config.CACHE_DIR = numba.config.CACHE_DIR, str(folder())  # read when a cache is made
    try:
        return njit(cache=True, **options)(function)
    finally:
        numba.config.CACHE_DIR = before
