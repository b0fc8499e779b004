"""specopt: optimal speculative decoding across edge and cloud.

>>> import specopt
>>> problem = specopt.generate("serving-latency/paper-1", tasks=5, seed=1)
>>> result = specopt.solve(problem)
>>> result.status.value
'optimal'
"""

from __future__ import annotations

from specopt.console import interrupts as _interrupts  # noqa: F401 - before the slow imports

# isort: split
import lazy_loader as _lazy_loader

from specopt.models.late import LATE as _LATE

_LATE.update(
    in_notebook="specopt.report.shown",
    in_text="specopt.report.shown",
    picture="specopt.report.shown",
    plugged_kinds="specopt.api.plugins",
)

_load, __dir__, __all__ = _lazy_loader.attach_stub(__name__, __file__)


def __getattr__(name: str) -> object:
    """Return a public object that `__init__.pyi` lists, or the version, by name."""
    if name in __all__:
        return _load(name)
    if name == "__version__":
        from importlib.metadata import version

        return version("specopt")
    from specopt.models.errors import did_you_mean

    raise AttributeError(f"module 'specopt' has no attribute {name!r}{did_you_mean(name, __all__)}")
