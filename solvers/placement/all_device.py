"""All drafts on the devices: each class alone on units that are filled, with its best drafter and length."""

from dataclasses import dataclass

from specopt.solvers.placement.one_place import OnePlace


@dataclass(frozen=True)
class AllDevice(OnePlace):
    """All drafts come from the devices."""

    name = "all-device"
    place = "device"
