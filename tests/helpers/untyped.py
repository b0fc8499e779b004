"""Functions of specopt without their static types, for tests: a plan or an objective that is None
fails where it is read.
"""

from __future__ import annotations

from typing import Any

import specopt

generate: Any = specopt.generate
load: Any = specopt.load
solve: Any = specopt.solve
