"""Time of a forward pass over a batch: from fitted forms and from measured tables, with its limits."""

from __future__ import annotations

from specopt.models.pass_time.pass_time import PassTime, Which
from specopt.models.pass_time.read import pass_time

__all__ = ["PassTime", "Which", "pass_time"]
