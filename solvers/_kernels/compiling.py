"""Who wants to know that a kernel is about to be compiled; apart from `kernel.py`, which imports Numba."""

from __future__ import annotations

from collections.abc import Callable

listeners: list[Callable[[str], object]] = []
"""They are told the module of each kernel before it is compiled; the front door puts one here to show it."""
