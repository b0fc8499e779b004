"""Where problems come from: generators, published settings, the instance library."""

from specopt.instances.families import FAMILIES, Family, generate
from specopt.instances.library.saved import BestKnown, best_known, load_saved, saved

__all__ = ["FAMILIES", "BestKnown", "Family", "best_known", "generate", "load_saved", "saved"]
