"""Compile every kernel into the cache, those of simulators included: ``python -P
tests/helpers/compile_kernels.py``.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

from specopt import solvers


def main() -> None:
    """Compile them one after the other."""
    for path in sorted(Path(solvers.__path__[0]).glob("*/kernels/*.py")):
        for value in vars(
            import_module(f"specopt.solvers.{path.parts[-3]}.kernels.{path.stem}")
        ).values():
            if getattr(value, "declared", None) is not None:
                value.prepare()


if __name__ == "__main__":
    main()
