"""No drafts: each class alone on units that are filled as far as least rates and memory go."""

from dataclasses import dataclass

from specopt.solvers.placement.one_place import OnePlace


@dataclass(frozen=True)
class NoDrafts(OnePlace):
    """Nobody drafts."""

    name = "none"
    place = "none"
