"""Readers for acceptance rates and lengths reported by serving engines.

Each module reads one file format. Files report acceptance by draft position or by draft length.
"""

from __future__ import annotations

from specopt.instances.acceptance.read import read_acceptance

__all__ = ["read_acceptance"]
