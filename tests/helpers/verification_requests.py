"""Requests for schedulers of verification."""

from __future__ import annotations

from typing import Any


def request(start: float = 0.0, **changes: Any) -> dict[str, Any]:
    """Return a window of four drafts of a response that began at a time and has no tokens yet."""
    return {
        "class_speed": 4.0,
        "expected_tokens": 3.0,
        "new_tokens": 5,
        "cached_tokens": 200,
        "tokens_done": 0,
        "response_start_seconds": start,
        "iteration_start_seconds": start,
        **changes,
    }
