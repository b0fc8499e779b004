"""Compile every kernel into the cache, those of simulators included: ``python -P tests/helpers/compile_kernels.py``."""

from __future__ import annotations

import pkgutil
from importlib import import_module

from specopt.solvers import _kernels


def main() -> None:
    """Compile them one after the other."""
    for module in pkgutil.walk_packages(_kernels.__path__, f"{_kernels.__name__}."):
        for value in vars(import_module(module.name)).values():
            if getattr(value, "declared", None) is not None:
                value.prepare()


if __name__ == "__main__":
    main()
