"""Helpers as parts of kernels: without machine code of their own, and once for all constants.

That takes internals of Numba, and saves the most of the time that kernels take to compile. Where one of them is missing
this module cannot be imported, and Numba's own functions serve.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

from numba import njit, types
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler, Flags
from numba.core.registry import CPUDispatcher

USED = (
    (JITCodeLibrary, ("_optimize_final_module", "_finalize_final_module")),
    (Compiler, ("define_pipelines",)),
    (Flags, ("no_compile", "no_cpython_wrapper", "no_cfunc_wrapper")),
    (CPUDispatcher, ("get_call_template", "add_overload", "_compile_for_args")),
)
"""What is replaced or set below: setting what is not there would go unnoticed."""

for _owner, _names in USED:
    for _name in _names:
        if not hasattr(_owner, _name):
            raise ImportError(f"Numba's {_owner.__name__} has no {_name}")


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
