"""Relations between optimal `toy` problems, of which there are none."""

from __future__ import annotations

RELATIONS = ()
