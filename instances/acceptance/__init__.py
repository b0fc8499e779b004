"""Acceptance by draft position or length from what serving engines report: one reader per
source.
"""

from __future__ import annotations

from specopt.instances.acceptance.read import read_acceptance

__all__ = ["read_acceptance"]
