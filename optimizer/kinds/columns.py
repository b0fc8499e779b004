"""Hypothesis strategies that the strategies for all kinds of problems share."""

from __future__ import annotations

from typing import TypeVar

from hypothesis import strategies as st

T = TypeVar("T")


def lists_of(item: st.SearchStrategy[T], size: int) -> st.SearchStrategy[list[T]]:
    """Return a strategy for lists of exactly `size` items."""
    return st.lists(item, min_size=size, max_size=size)
