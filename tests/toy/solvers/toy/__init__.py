"""Methods for `toy`."""

from __future__ import annotations

from specopt.solvers.method import Method
from specopt.solvers.toy.all_of_them import AllOfThem

METHODS: tuple[type[Method], ...] = (AllOfThem,)
