"""All drafts beside the verifier: each class alone on units that are filled, with its best drafter and length."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from specopt.models.placement_plan import Place
from specopt.solvers.placement.one_place import OnePlace


@dataclass(frozen=True)
class AllBeside(OnePlace):
    """All drafts come from beside the verifier."""

    name: ClassVar[str] = "all-beside"
    place: ClassVar[Place] = "beside"
