"""Keep numpy from vectors longer than AVX2's: they round differently, and searches whose values tie
go other ways.

So tests of what was recorded say the same on every processor. `make numerics` runs with all that
this one has.
"""

from __future__ import annotations

import os
import warnings
from importlib.metadata import version

OLD = "AVX512F AVX512CD AVX512_SKX AVX512_CLX AVX512_CNL AVX512_ICL AVX512_SPR"
LONG = (
    OLD
    if tuple(map(int, version("numpy").split(".")[:2])) < (2, 4)
    else "X86_V4 AVX512_ICL AVX512_SPR"
)
"""What numpy calls them."""

os.environ.setdefault("NPY_DISABLE_CPU_FEATURES", LONG)
with warnings.catch_warnings():
    warnings.simplefilter("ignore", ImportWarning)  # elsewhere than on x86 there are none
    import numpy  # noqa: F401
