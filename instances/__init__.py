"""Where problems come from: generators, published settings, saved files."""

from specopt.instances.families import FAMILIES, Family, generate

__all__ = ["FAMILIES", "Family", "generate"]
