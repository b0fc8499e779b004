"""All drafts beside the verifier: each class alone on units that are filled, with its best drafter and length."""

from dataclasses import dataclass

from specopt.solvers.placement.one_place import OnePlace


@dataclass(frozen=True)
class AllBeside(OnePlace):
    """All drafts come from beside the verifier."""

    name = "all-beside"
    place = "beside"
