"""What kernels use of Numba's inner parts, to compile less and to keep all in one folder; `kernel.py` goes without."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import cached_property
from typing import Any

from numba import njit, types
from numba.core.caching import CompileResultCacheImpl, FunctionCache, _CacheLocator
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler
from numba.core.registry import CPUDispatcher

from specopt.solvers._kernels.cache import digest, folder


class _Library(JITCodeLibrary):  # type: ignore[misc]  # numba ships no types
    """The code of a helper as it goes into kernels: they are optimised whole, and nobody else calls it."""

    def _optimize_final_module(self) -> None:
        pass

    def _finalize_final_module(self) -> None:
        self._finalized = True


class _Compiler(Compiler):  # type: ignore[misc]
    def define_pipelines(self) -> Any:
        """Return Numba's passes, with a library of our own and without machine code."""
        state = self.state
        state.library = _Library(state.targetctx.codegen(), state.func_id.func_qualname)
        state.flags.no_compile = True
        return super().define_pipelines()


class Helper(CPUDispatcher):  # type: ignore[misc]
    """What compiles a helper for the types that kernels call it with."""

    def __init__(self, function: Callable[..., Any], **options: Any) -> None:
        options |= {"nopython": True, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
        super().__init__(function, targetoptions=options, pipeline_class=_Compiler)

    def get_call_template(self, arguments: Any, named: Any) -> Any:
        """Take a constant for a number: Numba would compile the function once more for every constant."""
        numbers = tuple(map(types.unliteral, arguments))
        return super().get_call_template(numbers, {k: types.unliteral(v) for k, v in named.items()})

    def add_overload(self, compiled: Any) -> None:
        """Make it known to callers that are compiled; there is nothing for others to call."""
        compiled = compiled._replace(entry_point=object())
        self.targetctx.insert_user_function(compiled.entry_point, compiled.fndesc, [compiled.library])
        self.overloads[tuple(compiled.signature.args)] = compiled

    def _compile_for_args(self, *arguments: Any, **named: Any) -> Any:
        """Return what serves a call from Python, as in tests: the function compiled apart."""
        return self._apart

    @cached_property
    def _apart(self) -> Any:
        return njit(self.py_func)


class _Locator(_CacheLocator):  # type: ignore[misc]  # numba ships no types
    """Keeps what is compiled of these sources in one folder, whatever file a function is from."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._place = f"{function.__module__}-{function.__code__.co_firstlineno}"

    def get_cache_path(self) -> str:
        """Return the folder."""
        return str(folder())

    def get_source_stamp(self) -> str:
        """Return what the sources are."""
        return digest()

    def get_disambiguator(self) -> str:
        """Return what tells functions of one name apart."""
        return self._place

    @classmethod
    def from_function(cls, py_func: Callable[..., Any], py_file: str) -> _Locator:
        """Return the locator of a function."""
        return cls(py_func)


class _CacheFiles(CompileResultCacheImpl):  # type: ignore[misc]
    _locator_classes = (_Locator,)


class KernelCache(FunctionCache):  # type: ignore[misc]
    """Numba's, but a folder that is gone, full or damaged costs a compilation and nothing else."""

    _impl_class = _CacheFiles

    def _index_key(self, sig: Any, codegen: Any) -> Any:
        """Leave out the bytecode: the sources decide, and `python -OO` makes other bytecode of the same."""
        return sig, codegen.magic_tuple()

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return what was kept, or None."""
        try:
            return super().load_overload(sig, target_context)
        except Exception:  # whatever reading a damaged file may raise
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep what was compiled if that is possible."""
        with suppress(Exception):
            super().save_overload(sig, data)
