"""Declaration, compilation and caching of kernels.

``@kernel("f8(f8[::1], i8)")`` declares a function that is called from Python code, together with
all signatures that such calls may have. ``@helper`` declares a function that only kernels call.
Importing a module compiles nothing. The first call of a kernel compiles exactly the declared
signatures, or loads them from the cache. Values that belong together are passed as one argument,
which is a `record` or an array of `rows`. If a call is so short that compiling the kernel would
take far longer, the Python interpreter executes it.

Numba stores compiled code in a directory that the module `cache.py` determines. The directory's
name depends on all kernel sources, so kernels may safely import kernels and helpers from other
files.
"""

from __future__ import annotations

import gc
import re
import shutil
import sys
import threading
from collections import namedtuple
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import numba
import numpy as np
from numba import njit, types
from numba.extending import register_jitable, typeof_impl

from specopt.solvers.kernels.cache import folder
from specopt.solvers.kernels.compiling import announced, meter, metered

MAX_INTERPRETED = 300_000
"""Maximum number of steps of a kernel that one process interprets, which takes about 0.3 s. Calls
that would exceed it are compiled.
"""

_lock = threading.RLock()
_named: dict[str, Any] = dict(vars(types))
"""Types that can be used in signatures, by name: Numba's types, records and rows."""


class Kernel:
    """A compiled function that can be called from Python and from other kernels."""

    def __init__(
        self,
        function: Callable[..., Any],
        signatures: tuple[Any, ...],
        nogil: bool,
        steps: Callable[..., float] | None,
    ) -> None:
        self.py_func = function
        self.declared = signatures
        module = function.__module__.removeprefix("specopt.solvers.").replace(".kernels.", ".")
        self.name = f"{module}:{function.__name__}"
        self.__doc__ = function.__doc__
        self._nogil, self._steps = nogil, steps
        self._interpreted = 0.0
        self._compiled: Any = None

    def __call__(self, *arguments: Any) -> Any:
        """Call the function. It is compiled first, unless it is already compiled or the call is
        short enough to be interpreted.
        """
        return (self._compiled or self.prepare_for(*arguments))(*arguments)

    def prepare_for(self, *arguments: Any) -> Any:
        """Return the function that should execute a call with these arguments.

        If the call has few steps and the kernel is not in the cache, the result is the interpreted
        function. Otherwise, the result is the compiled function.
        """
        if self._steps is not None and not self.is_ready and not numba.config.BOUNDSCHECK:
            self._interpreted += self._steps(*arguments)
            if self._interpreted <= MAX_INTERPRETED:
                return self._interpret
        return self.prepare()

    def _interpret(self, *arguments: Any) -> Any:
        with np.errstate(all="ignore"):  # compiled functions do not warn either
            found = self.py_func(*map(with_fields, arguments))
        return _converted(found, self.declared[0].return_type)

    @property
    def is_ready(self) -> bool:
        """Whether the kernel is loaded or in the cache, so a call requires no compilation."""
        return self._compiled is not None or (folder() is not None and self._mark().exists())

    def prepare(self) -> Any:
        """Compile the declared signatures, or load them from the cache. Return the compiled
        function.

        Kernels that this kernel calls are prepared first. During a solve, no compilation starts
        after the time limit.
        """
        if self._compiled is not None:
            return self._compiled
        for name in self.py_func.__code__.co_names:
            if isinstance(other := self.py_func.__globals__.get(name), Kernel):
                other.prepare()
        if not meter.is_running:
            meter.check()
        with (
            metered(),
            _lock,
            nullcontext() if self.is_ready else announced(self.name.partition(":")[0]),
        ):
            try:
                found = self._compiled or self._build(str(folder() or ""))
                if folder() is not None:
                    self._mark().touch()
            except Exception:  # a damaged cache, or an error that is raised again below
                shutil.rmtree(str(folder()), ignore_errors=True)
                found = self._build("")
        self._compiled = found
        return found

    def _build(self, cache: str) -> Any:
        with _set(DISABLE_JIT=0):  # NUMBA_DISABLE_JIT applies to the user's own code only
            with _set(
                CACHE_DIR=cache
            ):  # Numba reads this setting when it creates a function, before compiling
                found = njit(cache=bool(cache), nogil=self._nogil, no_cfunc_wrapper=True)(
                    self.py_func
                )
            # optimisation level 3 would make compilation a seventh slower
            with _set(OPT=type(numba.config.OPT)(2)), _without_collection():
                for signature in self.declared:
                    found.compile(signature)
        found.disable_compile()
        return found

    def _mark(self) -> Path:
        """Return the path of a marker file, which exists if and only if the kernel is cached."""
        return Path(str(folder()), self.name.replace(":", ".") + ".ready")


@contextmanager
def _set(**values: Any) -> Iterator[None]:
    """Change Numba settings inside the `with` block, and restore them afterwards."""
    settings = vars(numba.config)
    before = {name: settings[name] for name in values}
    settings.update(values)
    try:
        yield
    finally:
        settings.update(before)


@contextmanager
def _without_collection() -> Iterator[None]:
    """Disable cyclic garbage collection inside the `with` block.

    Garbage collection would otherwise take a tenth of the compilation time.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def with_fields(argument: Any) -> Any:
    """Convert an argument for interpreted code, so the fields of its rows are accessible as
    attributes as in compiled code.
    """
    if isinstance(argument, tuple):
        return argument._make(map(with_fields, argument))  # type: ignore[attr-defined]
    has_fields = isinstance(argument, np.ndarray) and argument.dtype.names
    return argument.view(np.recarray) if has_fields else argument


def _converted(value: Any, kind: Any) -> Any:
    """Convert the result of an interpreted call to the Python type that the compiled function would
    return.
    """
    if isinstance(value, tuple):
        return tuple(map(_converted, value, kind.types))
    convert = {types.float64: float, types.int64: int, types.boolean: bool}.get(kind)
    return value if convert is None else convert(value)


@typeof_impl.register(Kernel)
def _type_of(kernel: Kernel, context: Any) -> Any:
    """Return the Numba type of a kernel, which allows kernels to call other kernels."""
    return numba.typeof(kernel.prepare())


def helper(function: Callable[..., Any], **options: Any) -> Any:
    """Declare a function that is compiled as part of the kernels that call it.

    If Python code calls the function, the call is interpreted.
    """
    function.py_func = function  # type: ignore[attr-defined]  # the same attribute as in `Kernel`
    return register_jitable(no_cfunc_wrapper=True, **options)(function)


def inlined(function: Callable[..., Any]) -> Any:
    """Declare a helper that is inlined at every call site, because a call would cost more than the
    helper's body.
    """
    return helper(function, forceinline=True)


def kernel(
    *signatures: str, nogil: bool = True, steps: Callable[..., float] | None = None
) -> Callable[[Callable[..., Any]], Any]:
    """Return a decorator that declares a kernel. Python code may call the kernel only with the
    signatures in `signatures`.

    A signature is a string in Numba's notation, including the return type. Signatures refer to
    records and rows by name. As an extension of the notation, ``const f8[::1]`` denotes a
    contiguous array that may be read-only, such as an array in a problem.

    If `nogil` is true, other Python threads can run during a call, which makes a call of one
    microsecond a tenth slower. `steps` is a function that estimates from the arguments how often
    the innermost loop runs. As long as the total is small, a kernel that is not in the cache is
    interpreted instead of compiled.
    """
    declared = tuple(_read(signature) for signature in signatures)
    return lambda function: Kernel(function, declared, nogil, steps)


def record(name: str, **fields: str) -> Any:
    """Create a named tuple class whose instances are passed to kernels as a single argument.

    The keyword arguments specify the type of each field in Numba's notation.
    """
    module = sys._getframe(1).f_globals["__name__"]
    found = namedtuple(name, fields, module=module)  # type: ignore[misc]  # noqa: PYI024  (made from arguments)
    _name(name, types.BaseTuple.from_types(tuple(map(_read, fields.values())), found))
    return found


def rows(name: str, **fields: str) -> np.dtype[Any]:
    """Create a structured data type with named numeric fields.

    In signatures, ``NAME[::1]`` denotes a contiguous array of this type.
    """
    found = np.dtype(list(fields.items()), align=True)
    _name(name, numba.from_dtype(found))
    return found


def _name(name: str, kind: Any) -> None:
    assert name not in _named, f"another type is called {name}"
    _named[name] = kind


def _read(text: str) -> Any:
    """Convert a string in Numba's notation to the type or signature that it denotes."""
    text = re.sub(
        r"const (\w+)\[((?:: *, *)*)::1\]",
        lambda found: f"Array({found[1]}, {found[2].count(':') + 1}, 'C', readonly=True)",
        text,
    )
    return eval(text, {}, _named)
