"""What a process runs that restores schedulers for another one."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any


def restored(again: Callable[[Any], Any], text: str) -> str:
    """Return the state of what was restored from a state, both as JSON."""
    return json.dumps(again(json.loads(text)).state(), allow_nan=False)
