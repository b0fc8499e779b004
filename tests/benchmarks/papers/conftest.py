"""Makes the folder of the papers importable: the benchmarks are no package."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[3] / "benchmarks"))
