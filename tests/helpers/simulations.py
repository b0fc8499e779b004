"""Options that make simulations short."""

from __future__ import annotations

from typing import Any

SHORT: dict[str, dict[str, Any]] = {
    "draft-control": {"iterations": 5, "replications": 2},
    "fair-goodput": {"rounds": 5, "replications": 2},
    "verification-batch": {"devices": 2, "seconds": 1.0, "warm_up_seconds": 0.0, "replications": 1},
    "prompt-chunking": {"requests": 3, "warm_up_requests": 0, "replications": 1},
}
"""Options by kind."""
