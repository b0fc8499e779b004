"""How a kernel is declared, compiled and kept.

``@kernel("f8(f8[::1], i8)")`` declares a function that Python calls, with every signature that it
is called with. ``@helper`` declares a function that only kernels call. Importing a module compiles
nothing: the first call of a kernel compiles the signatures that it declares and no others, or reads
them from the cache. Values that belong together are one argument: a `record`, or an array of
`rows`. A call that has little to do runs in the interpreter where compiling would take far longer.

Numba keeps what it compiles in the folder of `cache.py`. The name of the folder depends on all
sources here, so kernels may import kernels and helpers of other files.
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
"""Steps of a kernel that the interpreter runs in a process, about 0.3 s; after that it is
compiled.
"""

_lock = threading.RLock()
_named: dict[str, Any] = dict(vars(types))
"""What the names in signatures stand for: Numba's types, records and rows."""


class Kernel:
    """A compiled function that Python and other kernels call."""

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
        """Call the function; the first call that has much to do compiles it."""
        return (self._compiled or self.prepare_for(*arguments))(*arguments)

    def prepare_for(self, *arguments: Any) -> Any:
        """Return what makes a call with these arguments: the compiled function, or the interpreter
        if the call takes few steps and the function is not in the cache.
        """
        if self._steps is not None and not self.is_ready and not numba.config.BOUNDSCHECK:
            self._interpreted += self._steps(*arguments)
            if self._interpreted <= MAX_INTERPRETED:
                return self._interpret
        return self.prepare()

    def _interpret(self, *arguments: Any) -> Any:
        with np.errstate(all="ignore"):  # a compiled function does not warn either
            found = self.py_func(*map(with_fields, arguments))
        return _converted(found, self.declared[0].return_type)

    @property
    def is_ready(self) -> bool:
        """Whether a call takes no time to compile: the kernel is compiled here, or lies in the
        cache.
        """
        return self._compiled is not None or (folder() is not None and self._mark().exists())

    def prepare(self) -> Any:
        """Compile the declared signatures, or read them from the cache, and return what they are
        compiled to.

        Kernels that this one calls come first. Within a solve, no compilation starts after the time
        limit.
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
            except (
                Exception
            ):  # what reading a damaged cache may raise; an error of the kernel is raised once more
                shutil.rmtree(str(folder()), ignore_errors=True)
                found = self._build("")
        self._compiled = found
        return found

    def _build(self, cache: str) -> Any:
        with _set(DISABLE_JIT=0):  # NUMBA_DISABLE_JIT is for the user's own code
            with _set(
                CACHE_DIR=cache
            ):  # Numba reads it when it makes a function, before it compiles one
                found = njit(cache=bool(cache), nogil=self._nogil, no_cfunc_wrapper=True)(
                    self.py_func
                )
            # with 3, compiling takes a seventh longer
            with _set(OPT=type(numba.config.OPT)(2)), _without_collection():
                for signature in self.declared:
                    found.compile(signature)
        found.disable_compile()
        return found

    def _mark(self) -> Path:
        """Return the file that exists once the kernel is in the cache."""
        return Path(str(folder()), self.name.replace(":", ".") + ".ready")


@contextmanager
def _set(**values: Any) -> Iterator[None]:
    """Change settings of Numba in the enclosed code."""
    settings = vars(numba.config)
    before = {name: settings[name] for name in values}
    settings.update(values)
    try:
        yield
    finally:
        settings.update(before)


@contextmanager
def _without_collection() -> Iterator[None]:
    """Keep Python from searching for cyclic garbage in the enclosed code: a tenth of the time that
    compiling takes.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def with_fields(argument: Any) -> Any:
    """Return an argument whose rows have their fields as attributes in the interpreter, too."""
    if isinstance(argument, tuple):
        return argument._make(map(with_fields, argument))  # type: ignore[attr-defined]
    has_fields = isinstance(argument, np.ndarray) and argument.dtype.names
    return argument.view(np.recarray) if has_fields else argument


def _converted(value: Any, kind: Any) -> Any:
    """Return what a compiled function with a result of this type returns for a value."""
    if isinstance(value, tuple):
        return tuple(map(_converted, value, kind.types))
    convert = {types.float64: float, types.int64: int, types.boolean: bool}.get(kind)
    return value if convert is None else convert(value)


@typeof_impl.register(Kernel)
def _type_of(kernel: Kernel, context: Any) -> Any:
    """Let kernels call kernels."""
    return numba.typeof(kernel.prepare())


def helper(function: Callable[..., Any], **options: Any) -> Any:
    """Return a function that kernels call, compiled as part of them; Python calls it as it is
    written.
    """
    function.py_func = function  # type: ignore[attr-defined]  # as a kernel has it
    return register_jitable(no_cfunc_wrapper=True, **options)(function)


def inlined(function: Callable[..., Any]) -> Any:
    """Return a helper whose code is copied to every call of it: one so short that a call would cost
    more.
    """
    return helper(function, forceinline=True)


def kernel(
    *signatures: str, nogil: bool = True, steps: Callable[..., float] | None = None
) -> Callable[[Callable[..., Any]], Any]:
    """Return a decorator for a function that Python calls with arguments of these signatures alone.

    A signature is Numba's, as a text with its return type. In it ``const f8[::1]`` is a contiguous
    array that may be read-only, as problems hold theirs; records and rows are called by their
    names. With `nogil` other threads of Python run on meanwhile, which costs a call of a
    microsecond a tenth of it. `steps` estimates, from the arguments, how often the innermost loop
    runs: as long as that is seldom, a function that is not in the cache need not be compiled.
    """
    declared = tuple(_read(signature) for signature in signatures)
    return lambda function: Kernel(function, declared, nogil, steps)


def record(name: str, **fields: str) -> Any:
    """Return a class of named tuples that kernels take as one argument, each field of a type of its
    own.
    """
    module = sys._getframe(1).f_globals["__name__"]
    found = namedtuple(name, fields, module=module)  # type: ignore[misc]  # noqa: PYI024  (made from arguments)
    _name(name, types.BaseTuple.from_types(tuple(map(_read, fields.values())), found))
    return found


def rows(name: str, **fields: str) -> np.dtype[Any]:
    """Return the type of arrays whose entries have named numbers; a contiguous one is ``NAME[::1]``
    in signatures.
    """
    found = np.dtype(list(fields.items()), align=True)
    _name(name, numba.from_dtype(found))
    return found


def _name(name: str, kind: Any) -> None:
    assert name not in _named, f"another type is called {name}"
    _named[name] = kind


def _read(text: str) -> Any:
    """Return the type, or the signature, that a text stands for."""
    text = re.sub(
        r"const (\w+)\[((?:: *, *)*)::1\]",
        lambda found: f"Array({found[1]}, {found[2].count(':') + 1}, 'C', readonly=True)",
        text,
    )
    return eval(text, {}, _named)
