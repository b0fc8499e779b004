"""The kernels that OpenBLAS has for other processors and that this one can run: they differ in the
last digits.

`OPENBLAS_CORETYPE` chooses them. `python tests/core_types.py` prints their names; elsewhere than on
Linux with an x86 processor there are none to choose from.
"""

from __future__ import annotations

from pathlib import Path

NEEDS = {"Nehalem": {"sse4_2"}, "Haswell": {"avx2", "fma"}, "SkylakeX": {"avx512bw"}}
"""Instructions that each one needs: without FMA, with it, and with long vectors."""


def supported() -> tuple[str, ...]:
    """Return the types whose instructions this processor has."""
    try:
        text = Path("/proc/cpuinfo").read_text()
    except OSError:
        return ()
    flags = next(
        (set(line.split()) for line in text.splitlines() if line.startswith("flags")), set()
    )
    return tuple(name for name, needs in NEEDS.items() if needs <= flags)


CORE_TYPES = supported()

if __name__ == "__main__":
    print(*CORE_TYPES)
