"""Where problems come from: generators, published settings, saved files."""

from specopt.instances.families import FAMILIES, Family, generate
from specopt.instances.saved import load_saved, saved

__all__ = ["FAMILIES", "Family", "generate", "load_saved", "saved"]
